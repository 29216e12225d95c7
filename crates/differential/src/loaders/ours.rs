//! What Beebox makes of an object by the conventions of a loader, in the common form.

use std::collections::BTreeSet;

use btf::TypeId;
use isa::ebpf::{PseudoLoad, RawInsn};
use object::maps::{Contents, InitialEntry, Map};
use object::overview::LinkOutcome;
use object::{Object, OpenOptions, Problem, Reference, Referent, RelocationFault};
use program::{MapParams, Subprog};
use spec::Kernel;
use spec::loader::LoaderKind;

use super::parsed::{Parsed, ParsedMap, ParsedProgram};

/// Opens an object, named by its path, and links its programs for a kernel.
pub fn parse(file: &[u8], path: &str, loader: LoaderKind, kernel: &Kernel) -> Parsed {
    let options = OpenOptions {
        name: Some(path),
        loader,
        ..OpenOptions::default()
    };
    let object = match Object::open_with(file, &options) {
        Ok(object) => object,
        Err(error) => {
            return Parsed {
                error: Some(error.to_string()),
                ..Parsed::default()
            };
        }
    };
    let all: Vec<_> = object.programs().map(|(id, _)| id).collect();
    let report = object.try_link(&all, kernel);
    let programs = report.programs.iter().filter_map(|linked| {
        let code = object.program_defs().get(linked.id)?;
        let target = code
            .rule
            .and_then(|rule| rule.target(code.section_name.to_str()?));
        let mut parsed = ParsedProgram {
            name: code.name.to_string(),
            kind: code.kind.map_or(0, |kind| kind.number()),
            attach: code.attach.map_or(0, |attach| attach.number()),
            flags: Some(code.section_flags().0),
            target: target.map(str::to_owned),
            license: Some(object.license().to_owned()),
            own_insns: Some(code.len()),
            ..ParsedProgram::default()
        };
        let (insns, references) = match &linked.outcome {
            LinkOutcome::Linked(linked) => {
                parsed.has_equal_offsets = has_equal_offsets(&object, linked.program.subprogs());
                (linked.program.insns(), &linked.references)
            }
            LinkOutcome::Unloadable(linked) => {
                let undefined = Problem::Relocation(RelocationFault::UnknownExtern);
                parsed.calls_undefined = *linked.error.problem() == undefined;
                (&linked.insns[..], &linked.references)
            }
            LinkOutcome::Refused(_) => return Some(parsed),
        };
        instructions(&object, insns, references, &mut parsed);
        Some(parsed)
    });
    let mut programs: Vec<ParsedProgram> = programs.collect();
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    let maps = object.maps().iter();
    let maps = maps.filter(|(_, map)| map.struct_ops().is_none());
    let mut maps: Vec<ParsedMap> = maps.map(|(_, map)| describe(&object, map)).collect();
    maps.sort_by(|one, other| one.name.cmp(&other.name));
    Parsed {
        error: None,
        programs,
        maps,
    }
}

/// True if two subprogs start at one offset of different sections.
fn has_equal_offsets(object: &Object<'_>, subprogs: &[Subprog]) -> bool {
    let mut offsets = BTreeSet::new();
    let called = subprogs.iter().skip(1).filter_map(|called| {
        let mut codes = object.program_defs().iter().map(|(_, code)| code);
        codes.find(|code| code.name == called.name.as_str())
    });
    let mut starts = called.map(|code| code.start);
    !starts.all(|start| offsets.insert(start))
}

/// Instructions with 0 for maps, the maps, and the slots that the kernel decides.
fn instructions(
    object: &Object<'_>,
    insns: &[RawInsn],
    references: &[Reference],
    parsed: &mut ParsedProgram,
) {
    let mut insns = insns.to_vec();
    for reference in references {
        let slot = reference.slot as usize;
        match reference.to {
            Referent::Map(map) | Referent::Value { map, .. }
                if object.maps().kconfig() != Some(map) =>
            {
                let name = object.maps().get(map).map(Map::name).unwrap_or_default();
                parsed.maps.push((slot, name.to_owned()));
                insns[slot].imm = 0;
                let is_value = insns[slot].pseudo_load() == Some(PseudoLoad::MapIdxValue);
                let source = match is_value {
                    true => PseudoLoad::MapValue,
                    false => PseudoLoad::MapFd,
                };
                insns[slot].set_src(source.number());
            }
            Referent::Call { .. } | Referent::FunctionAddress { .. } => {}
            _ => {
                parsed.open.insert(slot);
                // An ld_imm64, or what stands in its place.
                let next = insns.get(slot + 1);
                if insns[slot].is_wide_load() || next.is_some_and(|next| *next == insns[slot]) {
                    parsed.open.insert(slot + 1);
                }
            }
        }
    }
    let bytes = insns.iter().flat_map(|insn| insn.to_le_bytes());
    parsed.insns = Some(bytes.collect());
}

fn describe(object: &Object<'_>, map: &Map<'_>) -> ParsedMap {
    let program = |id| {
        object
            .program_defs()
            .get(id)
            .map(|code| code.name.to_string())
    };
    let entries = match map.contents() {
        Contents::Entries(entries) => entries.iter().map(|(key, entry)| {
            let name = match entry {
                InitialEntry::Map(id) => object.maps().get(*id).map(|map| map.name().to_owned()),
                InitialEntry::Program(id) => program(*id),
            };
            (*key, name.unwrap_or_default())
        }),
        Contents::Data(_) | Contents::Arena(_) | Contents::StructOps(_) => {
            return ParsedMap {
                data: map.data().and_then(|_| map.image()).map(|image| {
                    let mut bytes = vec![0; image.size() as usize];
                    image.read(0, &mut bytes);
                    bytes
                }),
                ..parameters(map.name(), map.params(), map.pinning())
            };
        }
    };
    ParsedMap {
        entries: Some(entries.collect()),
        inner: map.inner().map(|inner| Box::new(parameters("", inner, 0))),
        ..parameters(map.name(), map.params(), map.pinning())
    }
}

fn parameters(name: &str, params: &MapParams, pinning: u32) -> ParsedMap {
    let TypeId(key) = params.key_type;
    let TypeId(value) = params.value_type;
    ParsedMap {
        name: name.to_owned(),
        kind: params.map_type,
        key_size: params.key_size,
        value_size: params.value_size,
        max_entries: params.max_entries,
        flags: params.flags.0,
        pinning,
        btf_key: Some(key),
        btf_value: Some(value),
        ..ParsedMap::default()
    }
}

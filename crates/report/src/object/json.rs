//! Renderer of an object as JSON with all data. Keys are those of bpftool where it has the thing.

use object::overview::{Requirement, oldest};
use serde_json::{Value, json};
use spec::Kernel;
use spec::kernel::KernelField;

use super::text::extern_kind;
use super::{Missing, Place, Shown, Sizes, feature, kinds, relocations};

/// An object as JSON.
pub fn object_json(shown: &Shown<'_, '_>) -> Value {
    let Shown {
        object, overview, ..
    } = shown;
    let sizes = Sizes::of(object);
    let needs = overview.needs();
    json!({
        "file": shown.file,
        "loader": object.loader().name(),
        "license": object.license(),
        "kernel_version": object.kernel_version(),
        "linux": release(oldest(&needs)),
        "programs": programs(shown),
        "map_definitions": maps(shown),
        "externs": object.externs().iter().map(|wanted| json!({
            "name": wanted.name,
            "kind": extern_kind(wanted.kind),
            "weak": wanted.weak,
        })).collect::<Vec<_>>(),
        "globals": globals(shown),
        "kinds": kinds(object),
        "relocations": relocations(object).into_iter().map(|(what, times)| json!({
            "what": what,
            "count": times,
        })).collect::<Vec<_>>(),
        "needs": needs.iter().map(|need| self::need(shown, need)).collect::<Vec<_>>(),
        "linked": linked(shown),
        "sizes": {
            "file_bytes": shown.size,
            "insn_bytes": sizes.instructions,
            "data_bytes": sizes.data,
            "zero_bytes": sizes.zeros,
            "btf_bytes": sizes.types,
            "btf_ext_bytes": sizes.btf_ext,
            "dwarf_bytes": sizes.debug,
        },
    })
}

fn release(release: Option<spec::since::Release>) -> Value {
    release.map_or(Value::Null, |release| json!(release.to_string()))
}

fn programs(shown: &Shown<'_, '_>) -> Vec<Value> {
    let Shown {
        object, overview, ..
    } = shown;
    let name_of = |id| {
        object
            .program_defs()
            .get(id)
            .map(|code| code.name.to_string())
    };
    let programs = overview.programs.iter();
    programs
        .filter_map(|program| {
            let code = object.program_defs().get(program.id)?;
            let flags = code.flags.with(code.section_flags());
            let maps = program.maps.iter().filter_map(|id| object.maps().get(*id));
            Some(json!({
                "name": code.name.to_string(),
                "section": code.section_name.to_string(),
                "type": code.kind.map(|kind| kind.name()),
                "attach_type": code.attach.map(|attach| attach.name()),
                "prog_flags": flags.0,
                "autoload": code.autoload,
                "insn_count": program.slots,
                "own_insn_count": code.len(),
                "subprogs": program.functions.iter().filter_map(|id| name_of(*id)).collect::<Vec<_>>(),
                "stack_bytes": program.stack,
                "core_relocations": program.relocations,
                "map_names": maps.map(|map| map.name()).collect::<Vec<_>>(),
                "linux": release(oldest(overview.needs_of(program))),
                "needs": program.needs.iter().map(|need| self::need(shown, need)).collect::<Vec<_>>(),
            }))
        })
        .collect()
}

fn maps(shown: &Shown<'_, '_>) -> Vec<Value> {
    let Shown {
        object, overview, ..
    } = shown;
    let maps = object.maps().iter().zip(&overview.maps);
    maps.map(|((_, map), needs)| {
        let params = map.params();
        let mut value = json!({
            "name": map.name(),
            "kernel_name": map.kernel_name(),
            "type": params.kind().map(|kind| kind.name()),
            "type_number": params.map_type,
            "bytes_key": params.key_size,
            "bytes_value": params.value_size,
            "max_entries": params.max_entries,
            "flags": params.flags.0,
            "flag_names": params.flags.names().collect::<Vec<_>>(),
            "map_extra": params.extra,
            "numa_node": params.numa_node,
            "pinned": map.pin,
            "autocreate": map.autocreate,
            "linux": release(oldest(needs)),
            "needs": needs.iter().map(|need| self::need(shown, need)).collect::<Vec<_>>(),
        });
        if let Some(inner) = map.inner() {
            value["inner"] = json!({
                "type": inner.kind().map(|kind| kind.name()),
                "bytes_key": inner.key_size,
                "bytes_value": inner.value_size,
                "max_entries": inner.max_entries,
                "flags": inner.flags.0,
            });
        }
        value
    })
    .collect()
}

fn globals(shown: &Shown<'_, '_>) -> Vec<Value> {
    let maps = shown.object.maps();
    let globals = shown.object.globals();
    globals
        .map(|global| {
            let map = maps.get(global.map);
            json!({
                "name": global.name,
                "map": map.map(|map| map.name()),
                "offset": global.offset,
                "size": global.size,
                "static": global.is_static,
            })
        })
        .collect()
}

fn need(shown: &Shown<'_, '_>, need: &Requirement) -> Value {
    let (category, name) = feature(shown.object, need);
    let place = need.site.and_then(|site| Place::of(shown.object, site));
    json!({
        "kind": if category.is_empty() { "feature" } else { category },
        "name": name,
        "linux": release(need.since.map(|since| since.release)),
        "guarded": need.is_guarded,
        "reference": need.since.map(|since| since.source.to_string()),
        "function": place.as_ref().map(|place| &place.code),
        "insn": place.as_ref().map(|place| place.slot),
        "file": place.as_ref().and_then(|place| place.line.as_ref()).map(|line| &line.file),
        "line": place.as_ref().and_then(|place| place.line.as_ref()).map(|line| line.line),
    })
}

fn linked(shown: &Shown<'_, '_>) -> Value {
    let Some((target, link_report)) = shown.link_report else {
        return Value::Null;
    };
    let programs = link_report.programs.iter().filter_map(|program| {
        let code = shown.object.program_defs().get(program.id)?;
        let missing = program.missing().map(|reference| {
            let missing = Missing::of(shown.object, reference.to, target.kernel);
            json!({
                "insn": reference.slot,
                "what": missing.what,
                "absence": missing.absence,
            })
        });
        Some(json!({
            "name": code.name.to_string(),
            "error": program.refusal().map(|error| error.to_string()),
            "missing": missing.collect::<Vec<_>>(),
        }))
    });
    json!({
        "kernel": kernel_json(target.kernel),
        "error": link_report.refusal.as_ref().map(|error| error.to_string()),
        "programs": programs.collect::<Vec<_>>(),
    })
}

/// The kernel, with the source of each fact; `unknown` for facts without a value.
fn kernel_json(kernel: &Kernel) -> Value {
    let sources = KernelField::ALL.map(|field| {
        let source = match kernel.has(field) {
            true => kernel.source(field).to_string(),
            false => "unknown".to_owned(),
        };
        (field.name().to_owned(), Value::String(source))
    });
    json!({
        "name": kernel.name(),
        "version": kernel.version().map(|version| version.to_string()),
        "sources": Value::Object(sources.into_iter().collect()),
    })
}

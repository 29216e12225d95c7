//! Verification of the programs of an object, each loaded alone.
//!
//! A program is loaded as libbpf 1.x loads it when nothing else of the object is
//! wanted: only its own instructions and those it calls, the contents of globals as
//! they stand in the file, no pinning, one entry in maps that state none. Where
//! something external is missing, undefined symbols become weak, so that only what
//! uses them is refused; maps of kinds that the kernel lacks are left out.

mod cost;

use std::borrow::Cow;

use btf::{Btf, Kind, Shape};
use object::{Error, Object, OpenOptions, Problem, ProgramId};
use program::Program;
use spec::Kernel;
use spec::maps::MapKind;
use spec::programs::{LoadFlags, ProgramType};

pub use cost::{FunctionCost, LineCost, cost_by_function, cost_by_line};
pub use spec::registry::Registry;
pub use verifier::{
    Cost, InsnCost, Options, Refusal, RefusalKind, Statistics, Stress, SubprogCost, Verdict,
    Verification, verify,
};

/// How programs are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadRules {
    /// Load flags beside those that sections ask for.
    pub flags: LoadFlags,
    /// Add the load flags of `test_prog_flags` declaration tags, as the kernel's
    /// selftests declare them.
    pub test_flags: bool,
}

/// A program of an object, loaded alone.
#[derive(Debug)]
pub struct Loaded {
    /// Its name.
    pub name: String,
    /// Its section.
    pub section: String,
    /// Its type, if its section says one.
    pub kind: Option<ProgramType>,
    /// The program, or why it cannot be loaded.
    pub program: Result<Program, Error>,
    /// True if undefined symbols had to become weak.
    pub weak_externs: bool,
}

/// Loads each program of an object alone, in the order of the file. `choose` says by
/// name which are wanted. `change` may change the object before programs are linked.
///
/// # Errors
/// If the object cannot be opened; a program that cannot be linked is an item.
pub fn load_each(
    file: &[u8],
    name: &str,
    kernel: &Kernel,
    rules: LoadRules,
    choose: &dyn Fn(&str) -> bool,
    change: &dyn Fn(&mut Object<'_>),
    visit: &mut dyn FnMut(Loaded),
) -> Result<(), Error> {
    let mut object = open(file, name)?;
    change(&mut object);
    let wanted: Vec<ProgramId> = object
        .programs()
        .filter(|(_, code)| choose(&code.name.to_string()))
        .map(|(id, _)| id)
        .collect();
    let load = |object: &mut Object<'_>, id| load_one(object, id, kernel, rules);
    let mut all: Vec<Option<Loaded>> = wanted.iter().map(|&id| load(&mut object, id)).collect();
    if all.iter().flatten().any(is_missing_extern) {
        let mut file = file.to_vec();
        object::weaken(&mut file);
        let mut object = open(&file, name)?;
        change(&mut object);
        for (loaded, &id) in all.iter_mut().zip(&wanted) {
            if loaded.as_ref().is_some_and(is_missing_extern) {
                let again = load(&mut object, id);
                *loaded = again.map(|loaded| Loaded {
                    weak_externs: true,
                    ..loaded
                });
            }
        }
    }
    all.into_iter().flatten().for_each(visit);
    Ok(())
}

fn open<'a>(file: &'a [u8], name: &str) -> Result<Object<'a>, Error> {
    let options = OpenOptions {
        name: Some(name),
        ..OpenOptions::default()
    };
    let mut object = Object::open_with(file, &options)?;
    let ids: Vec<_> = object.maps().iter().map(|(id, _)| id).collect();
    for id in ids {
        let Some(map) = object.maps_mut().get_mut(id) else {
            continue;
        };
        map.pin = None;
        let kind = map.params().kind();
        // Kinds newer than 6.18 have no map there.
        if kind.is_none_or(|kind| kind > MapKind::Arena) && map.struct_ops().is_none() {
            map.autocreate = false;
        }
        let has_entries_by_owner = matches!(
            kind,
            Some(
                MapKind::SkStorage
                    | MapKind::TaskStorage
                    | MapKind::InodeStorage
                    | MapKind::CgroupStorage
                    | MapKind::CgrpStorage
                    | MapKind::StructOps
            )
        );
        if map.params().max_entries == 0 && !has_entries_by_owner {
            map.set_max_entries(1);
        }
    }
    Ok(object)
}

fn is_missing_extern(loaded: &Loaded) -> bool {
    let error = loaded.program.as_ref().err();
    error.is_some_and(|error| matches!(error.problem(), Problem::Extern(_)))
}

fn load_one(
    object: &mut Object<'_>,
    id: ProgramId,
    kernel: &Kernel,
    rules: LoadRules,
) -> Option<Loaded> {
    let start = {
        let code = object.codes().get(id)?;
        (code.section, code.start)
    };
    object.set_autoload(|code| (code.section, code.start) == start);
    let code = object.codes().get(id)?;
    let name = code.name.to_string();
    let section = code.section_name.to_string();
    let kind = code.kind;
    let mut linked = object.link(kernel);
    let is_of_struct_ops = kind == Some(ProgramType::StructOps);
    if !is_of_struct_ops
        && let Err(error) = &linked
        && matches!(error.problem(), Problem::StructOps(_))
    {
        // Types that the kernel lacks concern only the programs in them.
        let ids: Vec<_> = object.maps().iter().map(|(id, _)| id).collect();
        for id in ids {
            if let Some(map) = object.maps_mut().get_mut(id)
                && map.struct_ops().is_some()
            {
                map.autocreate = false;
            }
        }
        linked = object.link(kernel);
    }
    let program = linked.and_then(|mut linked| {
        let of_wanted = linked
            .unloadable
            .iter()
            .position(|program| program.id == id);
        if let Some(at) = of_wanted {
            return Err(linked.unloadable.swap_remove(at).error);
        }
        // Programs of struct_ops maps are loaded with any other.
        let wanted = linked.programs.into_iter().find(|linked| linked.id == id);
        Ok(wanted.map(|linked| linked.program))
    });
    let program = match program {
        Ok(program) => Ok(program?),
        Err(error) => Err(error),
    };
    let mut flags = rules.flags;
    if rules.test_flags {
        flags = object
            .types()
            .map_or(flags, |types| with_test_flags(types, &name, flags));
    }
    let program = program.map(|program| with_flags(program, flags));
    Some(Loaded {
        name,
        section,
        kind,
        program,
        weak_externs: false,
    })
}

fn with_flags(program: Program, flags: LoadFlags) -> Program {
    if flags == LoadFlags::default() {
        return program;
    }
    let builder = program.to_builder().flags(program.flags().with(flags));
    // Flags change nothing that makes a program valid.
    builder.build().unwrap_or(program)
}

const TEST_FLAGS: &[(&str, u32)] = &[
    ("BPF_F_STRICT_ALIGNMENT", 1 << 0),
    ("BPF_F_ANY_ALIGNMENT", 1 << 1),
    ("BPF_F_TEST_RND_HI32", 1 << 2),
    ("BPF_F_TEST_STATE_FREQ", 1 << 3),
    ("BPF_F_SLEEPABLE", 1 << 4),
    ("BPF_F_XDP_HAS_FRAGS", 1 << 5),
    ("BPF_F_TEST_REG_INVARIANTS", 1 << 7),
];

/// The flags with those of the declaration tags `comment:test_prog_flags=FLAG` of a
/// function; `!FLAG` takes one away.
fn with_test_flags(types: &Btf<'_>, function: &str, flags: LoadFlags) -> LoadFlags {
    let Some(function) = types.find(Kind::Func, function) else {
        return flags;
    };
    let mut tags: Vec<Cow<'_, str>> = Vec::new();
    for ty in types.of_kind(Kind::DeclTag) {
        if let Shape::DeclTag(tag) = ty.shape()
            && tag.target == function.id()
            && tag.component == -1
        {
            tags.push(ty.name().to_string_lossy());
        }
    }
    tags.into_iter().fold(flags, |flags, tag| {
        let Some((_, value)) = tag.split_once("test_prog_flags=") else {
            return flags;
        };
        let (name, is_cleared) = match value.strip_prefix('!') {
            Some(name) => (name, true),
            None => (value, false),
        };
        let known = TEST_FLAGS.iter().find(|(flag, _)| *flag == name);
        let bits = known.map_or_else(|| parse_number(name), |(_, bits)| *bits);
        match is_cleared {
            true => LoadFlags(flags.0 & !bits),
            false => flags.with(LoadFlags(bits)),
        }
    })
}

fn parse_number(text: &str) -> u32 {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap_or(0),
        None => text.parse().unwrap_or(0),
    }
}

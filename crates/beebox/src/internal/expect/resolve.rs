//! Checks that what statements name is there and fits, before anything runs.

use object::Object;
use spec::programs::ProgramType;

use super::statement::{Expected, Line, Statement};
use crate::internal::maps_json::{Element, KeyNames, find, read};
use crate::internal::run::{LoadedObject, StorageOwner, can_test_run, verdict_list, verdict_names};

/// True for a statement in front of tests about a map of the object that no program of this test uses: it is
/// about the other tests.
pub(super) fn is_of_other_test(line: &Line, object: &Object<'_>, loaded: &LoadedObject) -> bool {
    let map = match &line.statement {
        Statement::Set { map, .. } | Statement::Delete { map, .. } => map,
        Statement::Fault(fault) => match &fault.map {
            Some(map) => map,
            None => return false,
        },
        _ => return false,
    };
    let mut maps = object.maps().iter();
    line.is_setup && find(loaded, map).is_err() && maps.any(|(_, known)| known.name() == map)
}

/// Checks that a statement's map, key, value and variable are there and fit.
pub(super) fn resolve(
    statement: &Statement,
    object: &Object<'_>,
    loaded: &LoadedObject,
    cpu: u32,
) -> Result<(), String> {
    let types = object.btf();
    // Objects are given later.
    let owner = |_: &str| Ok(StorageOwner::Number(0));
    let names = KeyNames { cpu, owner: &owner };
    match statement {
        Statement::Set { map, key, value } => {
            Element::find(loaded, types, (map, key), names)?.check(value)
        }
        Statement::Expect(Expected::Element { map, key, value }) => {
            let element = Element::find(loaded, types, (map, key), names)?;
            value.iter().try_for_each(|value| element.check(value))
        }
        Statement::Expect(Expected::Entries { map, .. }) => find(loaded, map)
            .map(|_| ())
            .map_err(|fault| fault.to_string()),
        Statement::Expect(Expected::Record { map, .. }) => {
            let found = find(loaded, map).map_err(|fault| fault.to_string())?;
            match found.map.kind() {
                kind if kind.has_records() => Ok(()),
                kind => Err(format!(
                    "map {map} is of kind {}; ring buffers and perf buffers have records",
                    kind.name()
                )),
            }
        }
        Statement::Expect(Expected::Global { name, value }) => {
            let (ty, mut bytes) = global(object, loaded, name)?;
            let formats = loaded.formats_of_variable(object, name);
            read(types, ty, value, &mut bytes, &formats)
        }
        Statement::Delete { map, key } => {
            Element::find(loaded, types, (map, key), names).map(|_| ())
        }
        Statement::Fault(fault) => match &fault.map {
            Some(map) => find(loaded, map)
                .map(|_| ())
                .map_err(|fault| fault.to_string()),
            None => Ok(()),
        },
        Statement::Run { program, .. } => {
            let place = loaded.program_place(program);
            let kind = place.map(|place| loaded.program_kind(place));
            match kind.filter(|kind| !can_test_run(*kind) && *kind != ProgramType::SkSkb) {
                Some(kind) => Err(format!(
                    "programs of type {} take arguments or fields by name, in a model of the kernel: \
                     run {program} {{NAME: VALUE}}",
                    kind.name()
                )),
                None => Ok(()),
            }
        }
        Statement::Cpu(cpu) if *cpu >= loaded.cpus() => {
            let cpus = loaded.cpus();
            Err(format!(
                "there is no CPU {cpu}: the machine has {cpus}, from 0"
            ))
        }
        _ => Ok(()),
    }
}

/// Checks that what is expected is something that the run before it can give.
pub(super) fn check_applicable(
    expected: &Expected,
    run: &Statement,
    loaded: &LoadedObject,
) -> Result<(), String> {
    let (program, is_capture) = match run {
        Statement::Run { program, .. } => (program, false),
        Statement::Capture { program, .. } => (program, true),
        Statement::RunModel { program, .. } | Statement::Iterate { program, .. } => {
            (program, false)
        }
        _ => return Ok(()),
    };
    let check_verdict = |name: &str| {
        let place = loaded.program_place(program);
        let Some(kind) = place.map(|place| loaded.program_kind(place)) else {
            return Ok(());
        };
        let names = verdict_names(kind);
        let is_name = match names.is_empty() {
            true => name.parse::<i32>().is_ok(),
            false => names.contains(&name) || name.starts_with("unknown ("),
        };
        let names = match names.is_empty() {
            true => "numbers".to_owned(),
            false => verdict_list(&names),
        };
        let kind = kind.name();
        is_name.then_some(()).ok_or_else(|| {
            format!("programs of type {kind} have no verdict {name:?}; they have {names}")
        })
    };
    match expected {
        Expected::Verdict { name, count } => {
            if count.is_some() && !is_capture {
                return Err("a count is of packets of a capture, and the run is on one".to_owned());
            }
            check_verdict(name)
        }
        Expected::NotVerdict(name)
        | Expected::Instructions {
            verdict: Some(name),
            ..
        } => check_verdict(name),
        Expected::Retval(_)
        | Expected::Unchanged(_)
        | Expected::Bytes(..)
        | Expected::BytesAt { .. }
        | Expected::Redirect(_)
        | Expected::Checksums
        | Expected::Field { .. }
        | Expected::ContextFields(_)
            if is_capture =>
        {
            Err("it is of a run on one packet, and the last run is on a capture".to_owned())
        }
        _ => Ok(()),
    }
}

/// Type and bytes of a global variable.
pub(super) fn global(
    object: &Object<'_>,
    loaded: &LoadedObject,
    name: &str,
) -> Result<(btf::TypeId, Vec<u8>), String> {
    let Some(global) = object.global(name) else {
        let names: Vec<String> = object.globals().map(|global| global.name).collect();
        let names = names.join(", ");
        return Err(format!("the object has no variable {name}; it has {names}"));
    };
    let bytes = loaded
        .global_bytes(name)
        .map_err(|error| error.to_string())?;
    Ok((global.ty, bytes))
}

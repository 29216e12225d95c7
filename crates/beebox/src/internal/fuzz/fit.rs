//! What a program takes: the parts of its inputs, and the properties and maps that it can have.

use ::kernel::programs::TestProgram;
use object::Object;
use spec::helpers::HelperId;
use spec::programs::ProgramType;

use super::campaign::FuzzPlan;
use super::mutator::Shape;
use super::property::{Holds, Property};
use crate::internal::expect::ExpectationKind;
use crate::internal::run::{LoadedObject, Marked, verdict_list, verdict_names};

/// Offset of the family in `struct bpf_sk_lookup`, the cookie in front of which is not given, and the end of the
/// fields that are.
const SK_LOOKUP_FAMILY: usize = 8;
const SK_LOOKUP_END: usize = 64;

/// What inputs of a program consist of.
pub(super) fn shape(loaded: &LoadedObject, marked: &Marked, plan: &FuzzPlan) -> Shape {
    let place = loaded.program_place(&plan.program).unwrap_or_default();
    let kind = loaded.program_kind(place);
    let rules = TestProgram::of(kind);
    let has_packets = rules.is_some_and(TestProgram::has_packet);
    let (context, settable) = match (has_packets, plan.contexts) {
        (true, false) => (0, Vec::new()),
        _ => context_of(loaded, place, kind),
    };
    let maps = loaded
        .maps()
        .filter(|map| plan.vary.contains(&map.def.name));
    let maps = maps.map(|map| {
        let key = map.def.params.key_size as usize;
        (map.def.name.clone(), key, map.map.value_len())
    });
    Shape {
        has_packets,
        context,
        settable,
        family: (kind == ProgramType::SkLookup).then_some(SK_LOOKUP_FAMILY),
        has_time: loaded.calls(HelperId::returns_time),
        has_random: loaded.calls(HelperId::returns_random),
        maps: maps.collect(),
        most_steps: match loaded.has_state(marked) {
            true => plan.packets,
            false => 1,
        },
    }
}

/// Bytes of the contexts that a test run takes, and which of them may be set.
fn context_of(loaded: &LoadedObject, place: usize, kind: ProgramType) -> (usize, Vec<usize>) {
    const RAW_ARGUMENTS: usize = 12 * 8;
    let len = match kind {
        ProgramType::SkLookup => {
            let settable = SK_LOOKUP_FAMILY + 4..SK_LOOKUP_END;
            return (SK_LOOKUP_END, settable.collect());
        }
        ProgramType::RawTracepoint => RAW_ARGUMENTS,
        ProgramType::Syscall => loaded.context_bytes(place).max(8),
        _ if TestProgram::of(kind).is_some_and(TestProgram::has_packet) => {
            // Of `struct __sk_buff`: mark, priority, cb and tstamp; others have no such fields.
            let settable = [8..12, 32..36, 48..68, 152..160];
            return match TestProgram::of(kind).is_some_and(TestProgram::has_sk_buff) {
                true => (192, settable.into_iter().flatten().collect()),
                false => (0, Vec::new()),
            };
        }
        _ => 64,
    };
    (len, (0..len).collect())
}

/// Checks that a program can have a property.
pub(super) fn check(
    property: &Property,
    object: &Object<'_>,
    loaded: &LoadedObject,
    program: &str,
    kind: ProgramType,
) -> Result<(), String> {
    match &property.0 {
        Holds::Never { verdict, .. } | Holds::Always { verdict, .. } => {
            let names = verdict_names(kind);
            let is_known = match names.is_empty() {
                true => verdict.parse::<i32>().is_ok(),
                false => names.contains(&verdict.as_str()) || verdict.starts_with("unknown ("),
            };
            let known = match names.is_empty() {
                true => "numbers".to_owned(),
                false => verdict_list(&names),
            };
            let kind = kind.name();
            is_known.then_some(()).ok_or_else(|| {
                format!("programs of type {kind} have no verdict {verdict:?}; they have {known}")
            })
        }
        Holds::Expect(expectation) => {
            let is_data = expectation.kind() == ExpectationKind::Output;
            let has_packet = TestProgram::of(kind).is_some_and(TestProgram::has_packet);
            if is_data && !has_packet {
                return Err(format!("programs of type {} get no packet", kind.name()));
            }
            expectation.resolve(object, loaded, program)
        }
        Holds::Idempotent => match TestProgram::of(kind).is_some_and(TestProgram::has_packet) {
            true => Ok(()),
            false => Err(format!("programs of type {} get no packet", kind.name())),
        },
        Holds::Check(..) | Holds::Ends | Holds::Same => Ok(()),
    }
}

/// Checks that the contents of a map can be inputs.
pub(super) fn check_varied(loaded: &LoadedObject, name: &str) -> Result<(), String> {
    let found = loaded.maps().find(|map| map.def.name == name);
    let Some(map) = found else {
        let known: Vec<&str> = loaded.maps().map(|map| map.def.name.as_str()).collect();
        let known = match known.is_empty() {
            true => "they use none".to_owned(),
            false => format!("there are {}", known.join(", ")),
        };
        return Err(format!("no loaded program uses a map {name}; {known}"));
    };
    let is_kept = loaded.kept_maps().any(|kept| kept == name);
    let has_keys = map.def.params.key_size > 0 && map.def.initial_value().is_none();
    match has_keys && !is_kept && loaded.written(map).is_some() {
        true => Ok(()),
        false => Err(format!(
            "map {name} of kind {} has no elements that inputs can have",
            map.map.kind().name()
        )),
    }
}

//! Families of helpers that call functions of the program.

use program::MapParams;
use spec::maps::MapKind;
use spec::programs::ProgramType;

use super::Family;
use super::case::{Case, MAP, Setup, digest};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[
    Family::new("loops", loops),
    Family::new("loops in loops", nested_loops),
    Family::new("entries of arrays", array_entries),
    Family::new("entries of hashes", hash_entries),
];

/// Program types that call these helpers and may return any number.
const TYPES: &[ProgramType] = &[
    ProgramType::SchedCls,
    ProgramType::Xdp,
    ProgramType::SocketFilter,
];

fn case(choices: &mut Choices<'_>, text: String) -> Case {
    Case {
        kind: choices.pick(TYPES),
        ..Case::tc(choices, text)
    }
}

/// Numbers of calls, and what is none.
fn count(choices: &mut Choices<'_>) -> u64 {
    match choices.below(6) {
        0 => match choices.value() {
            // So many calls would take long.
            many @ 1000..=0x80_0000 => many % 1000,
            value => value,
        },
        1 => choices.pick(&[
            (1 << 23) + 1,
            1 << 31,
            u32::MAX.into(),
            1 << 32,
            1 << 32 | 3,
        ]),
        _ => choices.pick(&[0, 1, 2, 3, 17, 64, 300]),
    }
}

fn flags(choices: &mut Choices<'_>) -> u64 {
    match choices.one_in(8) {
        true => choices.pick(&[1, 2, 8, 1 << 32, u64::MAX]),
        false => 0,
    }
}

/// The callback of a loop, which stops in one round if it is made: the words that it gets
/// are mixed with the round.
fn round(choices: &mut Choices<'_>, name: &str) -> String {
    let stop = choices.pick(&[0u32, 1, 5, 63, 1000, 1 << 30]);
    let factor = 2 * choices.below(1000) + 3;
    format!(
        "{name}:\nr3 = *(u64 *)(r2 + 0)\nr3 *= {factor}\nr3 += r1\n*(u64 *)(r2 + 0) = r3\n\
         r0 = 0\nif r1 != {stop} goto {name}_out\nr0 = 1\n{name}_out:\nexit\n"
    )
}

fn loops(choices: &mut Choices<'_>) -> Case {
    let (count, flags) = (count(choices), flags(choices));
    let round = round(choices, "round");
    // The count is a constant of the verifier, or one that it does not know. Linux refuses
    // programs with callbacks that no run reaches.
    let given = match count > 0 && choices.one_in(2) {
        true => format!("r1 = {count:#x} ll\n"),
        false => format!("call 7\nr0 -= r0\nr1 = {count:#x} ll\nr1 += r0\n"),
    };
    let digest = digest(8, 1);
    let text = format!(
        "*(u64 *)(r10 - 8) = 7\n{given}r2 = func(round) ll\nr3 = r10\nr3 += -8\n\
         r4 = {flags:#x} ll\ncall 181\n{digest}\n{round}"
    );
    case(choices, text)
}

fn nested_loops(choices: &mut Choices<'_>) -> Case {
    let (outer, inner) = (1 + choices.below(12), 1 + choices.below(12));
    let stop = choices.below(14);
    let round = round(choices, "round");
    let digest = digest(8, 1);
    let text = format!(
        "*(u64 *)(r10 - 8) = 7\nr1 = {outer}\nr2 = func(outer) ll\nr3 = r10\nr3 += -8\nr4 = 0\n\
         call 181\n{digest}\nouter:\nr6 = r1\nr7 = r2\nr1 = {inner}\nr2 = func(round) ll\nr3 = r7\n\
         r4 = 0\ncall 181\nr1 = *(u64 *)(r7 + 0)\nr1 *= 5\nr1 += r0\n*(u64 *)(r7 + 0) = r1\nr0 = 0\n\
         if r6 != {stop} goto outer_out\nr0 = 1\nouter_out:\nexit\n{round}"
    );
    case(choices, text)
}

fn map(kind: MapKind, max_entries: u32) -> Setup {
    let params = MapParams {
        map_type: kind.number(),
        key_size: 4,
        value_size: 16,
        max_entries,
        ..MapParams::default()
    };
    Setup(params, None)
}

/// Updates of a few keys with numbers of their own.
fn updates(choices: &mut Choices<'_>, keys: u32) -> String {
    let update = |_| {
        let (key, number) = (choices.below(keys), choices.value());
        format!(
            "*(u32 *)(r10 - 8) = {key}\nr1 = {number:#x} ll\n*(u64 *)(r10 - 24) = r1\n\
             *(u64 *)(r10 - 16) = {key}\nr1 = {MAP:#x} ll\nr2 = r10\nr2 += -8\nr3 = r10\nr3 += -24\n\
             r4 = 0\ncall 2\n"
        )
    };
    (0..keys.min(8)).map(update).collect()
}

fn array_entries(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[MapKind::Array, MapKind::PercpuArray]);
    let entries = 1 + choices.below(20);
    let (updates, flags) = (updates(choices, entries), flags(choices));
    let stop = choices.below(30);
    let digest = digest(32, 1);
    let visit = "visit:\nr5 = *(u32 *)(r2 + 0)\nr1 = *(u64 *)(r3 + 0)\nr0 = *(u64 *)(r4 + 0)\n\
                 r0 *= 31\nr0 += r1\nr0 += r5\n*(u64 *)(r4 + 0) = r0\n*(u64 *)(r3 + 8) = r0\n";
    let text = format!(
        "*(u64 *)(r10 - 32) = 1\n{updates}r1 = {MAP:#x} ll\nr2 = func(visit) ll\nr3 = r10\n\
         r3 += -32\nr4 = {flags:#x} ll\ncall 164\n{digest}\n{visit}\
         r0 = 0\nif w5 != {stop} goto out\nr0 = 1\nout:\nexit\n"
    );
    case(choices, text).with_map(map(kind, entries))
}

/// Hashes are visited in another order here, so that what a callback adds up does not
/// depend on it.
fn hash_entries(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[
        MapKind::Hash,
        MapKind::PercpuHash,
        MapKind::LruHash,
        MapKind::LruPercpuHash,
    ]);
    let (entries, keys) = match kind {
        MapKind::LruHash | MapKind::LruPercpuHash => (4096, 12),
        _ => (1 + choices.below(20), 12),
    };
    let (updates, flags) = (updates(choices, keys), flags(choices));
    let change = match choices.below(4) {
        0 => format!("r1 = {MAP:#x} ll\nr2 = r7\ncall 3\nr8 += r0\n"),
        1 => format!("r1 = {MAP:#x} ll\nr2 = r7\nr3 = r6\nr4 = 2\ncall 2\nr8 += r0\n"),
        2 => "*(u64 *)(r6 + 0) = r8\n".to_owned(),
        _ => String::new(),
    };
    let digest = digest(40, 2);
    // The end comes after so many entries, whichever they are.
    let (stop, adds) = match choices.one_in(3) {
        true => {
            let stop = 1 + choices.below(6);
            (format!("if r1 != {stop} goto out\nr0 = 1\nout:\n"), "")
        }
        false => (String::new(), "*(u64 *)(r9 + 8) = r8\n"),
    };
    // The verifier follows a known number that is compared from call to call, without an end.
    let unknown_zero = "call 7\nr0 -= r0\n*(u64 *)(r10 - 40) = r0\n";
    let text = format!(
        "{unknown_zero}*(u64 *)(r10 - 32) = 1\n{updates}r1 = {MAP:#x} ll\n\
         r2 = func(visit) ll\nr3 = r10\nr3 += -40\nr4 = {flags:#x} ll\ncall 164\nr6 = r0\n\
         {unknown_zero}r1 = {MAP:#x} ll\nr2 = func(visit) ll\nr3 = r10\nr3 += -40\nr4 = 0\ncall 164\n\
         r0 += r6\n{digest}\n\
         visit:\nr6 = r3\nr7 = r2\nr9 = r4\nr8 = *(u32 *)(r2 + 0)\nr1 = *(u64 *)(r3 + 8)\n\
         r8 *= 31\nr8 += r1\n{change}r1 = *(u64 *)(r9 + 8)\nr8 += r1\n{adds}\
         r1 = *(u64 *)(r9 + 0)\nr1 += 1\n*(u64 *)(r9 + 0) = r1\nr0 = 0\n{stop}exit\n"
    );
    case(choices, text).with_map(map(kind, entries))
}

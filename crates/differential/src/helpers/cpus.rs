//! Values of maps for each CPU, in runs on several CPUs. Variables that the kernel has for each
//! are not compared: it takes no program with one where it has no symbols of data.

use std::fmt::Write as _;

use program::MapParams;
use spec::maps::MapKind;
use spec::programs::ProgramType;

use super::Family;
use super::case::{Case, MAP, Setup};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("maps of CPUs", maps)];

/// Adds the result in `r0` to the sum.
const MIX: &str = "r9 *= 31\nr9 += r0\n";

/// Types whose test runs take place on a CPU.
const KINDS: &[ProgramType] = &[
    ProgramType::SchedCls,
    ProgramType::Xdp,
    ProgramType::RawTracepoint,
    ProgramType::Syscall,
];

/// Some CPUs of this machine, on which a program runs in turn.
pub(super) fn some_cpus(choices: &mut Choices<'_>) -> Vec<u32> {
    let count = sys::bpf::possible_cpus() as u32;
    (0..1 + choices.below(5))
        .map(|_| choices.below(count))
        .collect()
}

/// A number that a CPU may have.
pub(super) fn number(choices: &mut Choices<'_>) -> u32 {
    choices.pick(&[0, 0, 1, 1, 2, 8191, 8192, u32::MAX])
}

/// A program of such a type, with packet if it has one.
fn case(choices: &mut Choices<'_>, text: String) -> Case {
    let kind = choices.pick(KINDS);
    let cpus = some_cpus(choices);
    let case = match kind {
        ProgramType::SchedCls | ProgramType::Xdp => Case::tc(choices, text),
        _ => Case::new(kind, text),
    };
    Case { kind, cpus, ..case }
}

/// Bytes of the values, which are rounded up to 8 for each CPU.
const SIZES: &[u32] = &[4, 8, 12, 20, 24];

/// Operations on values of the CPU of the run and of others.
fn maps(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[
        MapKind::PercpuArray,
        MapKind::PercpuHash,
        MapKind::LruPercpuHash,
    ]);
    let size = choices.pick(SIZES);
    // LRU maps with few entries choose what they forget.
    let max_entries = match kind {
        MapKind::LruPercpuHash => 1024,
        _ => choices.pick(&[3, 4]),
    };
    let params = MapParams {
        map_type: kind.number(),
        key_size: 4,
        value_size: size,
        max_entries,
        ..MapParams::default()
    };
    let mut text = String::from("r9 = 1\ncall 8\nr8 = r0\n");
    for slot in 1..=3 {
        let _ = write!(
            text,
            "r1 = {}\nr1 += r8\n*(u64 *)(r10 - {}) = r1\n",
            choices.below(1000),
            8 * slot
        );
    }
    for at in 0..2 + choices.below(10) {
        let key = choices.below(5);
        let _ = write!(
            text,
            "*(u32 *)(r10 - 32) = {key}\nr1 = {MAP:#x} ll\nr2 = r10\nr2 += -32\n"
        );
        text += &operation(choices, size, at);
    }
    text += "r0 = r9\nr0 &= 0x7fff\nexit";
    case(choices, text).with_map(Setup(params, None))
}

/// One operation with the map and the key in `r1` and `r2`; `at` numbers its labels.
fn operation(choices: &mut Choices<'_>, size: u32, at: u32) -> String {
    let last = size - 4;
    let change = format!(
        "r1 = *(u32 *)(r0 + {last})\nr9 *= 31\nr9 += r1\nr1 += r8\nr1 += 1\n\
         *(u32 *)(r0 + {last}) = r1\n*(u16 *)(r0 + 0) = r9\nnone{at}:\n"
    );
    match choices.below(8) {
        0..=2 => {
            let flags = choices.pick(&[0, 0, 0, 1, 2, 3, 4]);
            format!("r3 = r10\nr3 += -24\nr4 = {flags}\ncall 2\n{MIX}")
        }
        3 => format!("call 3\n{MIX}"),
        4 | 5 => {
            let cpu = number(choices);
            format!("w3 = {cpu}\ncall 195\nif r0 == 0 goto none{at}\n{change}")
        }
        _ => format!("call 1\nif r0 == 0 goto none{at}\n{change}"),
    }
}

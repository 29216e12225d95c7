//! Families of helpers on memory: dynptrs, reads at any address, storage of control groups,
//! stacks.

use program::MapParams;
use spec::maps::MapKind;
use spec::programs::ProgramType;

use super::Family;
use super::case::{Case, MAP, Setup, VALUE, digest, words};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[
    Family::new("dynptrs to memory", local_dynptrs),
    Family::new("dynptrs to records", record_dynptrs),
    Family::new("memory at any address", probes),
    Family::new("text at any address", text_probes),
    Family::new("storage of control groups", cgroup_storage),
    Family::new("control groups in arrays", under_cgroup),
    Family::new("stacks with wrong arguments", stacks),
];

/// Bytes of values.
const VALUE_SIZE: u32 = 64;

/// An array of one value.
fn array() -> Setup {
    let params = MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size: VALUE_SIZE,
        max_entries: 1,
        ..MapParams::default()
    };
    Setup(params, None)
}

fn flags(choices: &mut Choices<'_>) -> u64 {
    match choices.one_in(6) {
        true => choices.pick(&[1, 2, 8, 1 << 32, u64::MAX]),
        false => 0,
    }
}

/// An offset into so many bytes, or a wrong one.
fn offset(choices: &mut Choices<'_>, size: u32) -> u64 {
    match choices.below(6) {
        0 => choices.value() & u64::from(u32::MAX),
        1 => u64::from(size).saturating_sub(choices.below(4).into()),
        _ => choices.below(size + 2).into(),
    }
}

/// Calls on the dynptr at `r10 - 48`, whose results are mixed into `r6`: reads into and writes
/// from the 32 bytes below the frame pointer.
fn dynptr_calls(choices: &mut Choices<'_>, size: u32) -> String {
    let call = |at: u32, choices: &mut Choices<'_>| {
        let (offset, flags) = (offset(choices, size), flags(choices));
        let len = choices.below(33);
        let mixed = "r6 *= 31\nr6 += r0\n";
        match choices.below(3) {
            0 => format!(
                "r1 = r10\nr1 += -32\nr2 = {len}\nr3 = r10\nr3 += -48\nr4 = {offset:#x} ll\n\
                 r5 = {flags:#x} ll\ncall 201\n{mixed}"
            ),
            1 => format!(
                "r1 = r10\nr1 += -48\nr2 = {offset:#x} ll\nr3 = r10\nr3 += -32\nr4 = {len}\n\
                 r5 = {flags:#x} ll\ncall 202\n{mixed}"
            ),
            _ => format!(
                "r1 = r10\nr1 += -48\nr2 = {offset:#x} ll\nr3 = {}\ncall 203\n\
                 if r0 == 0 goto none{at}\nr1 = *(u64 *)(r0 + 0)\nr0 = 1\nr6 ^= r1\n\
                 *(u32 *)(r10 - 52) = w1\nnone{at}:\n{mixed}",
                8 + choices.below(20)
            ),
        }
    };
    (0..1 + choices.below(4))
        .map(|at| call(at, choices))
        .collect()
}

fn local_dynptrs(choices: &mut Choices<'_>) -> Case {
    let (size, flags) = (choices.below(VALUE_SIZE + 1), flags(choices));
    let stores = words(choices, 4);
    let calls = dynptr_calls(choices, size);
    let digest = digest(32, 4);
    let text = format!(
        "{stores}r1 = {VALUE:#x} ll\nr2 = {size}\nr3 = {flags:#x} ll\nr4 = r10\nr4 += -48\n\
         call 197\nr6 = r0\n{calls}r0 = r6\n{digest}"
    );
    Case::tc(choices, text).with_map(array())
}

fn record_dynptrs(choices: &mut Choices<'_>) -> Case {
    let params = MapParams {
        map_type: MapKind::Ringbuf.number(),
        max_entries: 4096,
        ..MapParams::default()
    };
    let record = |at: u32, choices: &mut Choices<'_>| {
        let size = match choices.below(8) {
            0 => choices.pick(&[0, 4080, 4088, 4089, 5000, 1 << 24, u32::MAX]),
            1 => 1000 + choices.below(3000),
            _ => choices.below(80),
        };
        let flags = flags(choices);
        let calls = dynptr_calls(choices, size.min(100));
        let calls = calls.replace("none", &format!("none{at}_"));
        let (end, wakeup) = (choices.pick(&[199, 200]), choices.below(4));
        format!(
            "r1 = {MAP:#x} ll\nr2 = {size:#x} ll\nr3 = {flags:#x} ll\nr4 = r10\nr4 += -48\ncall 198\n\
             r6 *= 31\nr6 += r0\n{calls}r1 = r10\nr1 += -48\nr2 = {wakeup}\ncall {end}\n\
             r1 = {MAP:#x} ll\nr2 = 0\ncall 134\nr6 *= 31\nr6 += r0\n"
        )
    };
    let stores = words(choices, 4);
    let records: String = (0..1 + choices.below(3))
        .map(|at| record(at, choices))
        .collect();
    let digest = digest(32, 4);
    let text = format!("{stores}r6 = 0\n{records}r0 = r6\n{digest}");
    Case::tc(choices, text).with_map(Setup(params, None))
}

/// Types whose programs read at any address.
const READERS: [ProgramType; 4] = [
    ProgramType::SchedCls,
    ProgramType::Xdp,
    ProgramType::Syscall,
    ProgramType::RawTracepoint,
];

/// The address of the value, of the stack, or one where nothing is: none that is canonical on a
/// processor with addresses of 57 bits alone, where Linux has another error number for it.
fn address(choices: &mut Choices<'_>) -> String {
    match choices.below(4) {
        0 => {
            let nowhere = [
                0u64,
                1,
                4096,
                0x7fff_ffff_dfff,
                0x7fff_ffff_ffff,
                1 << 56,
                1 << 60,
                0xfeff_ffff_ffff_ffff,
                0xffff_ffff_ffff_f000,
            ];
            format!("r3 = {:#x} ll\n", choices.pick(&nowhere))
        }
        1 => "r3 = r10\nr3 += -32\n".to_owned(),
        _ => format!("r3 = {VALUE:#x} ll\nr3 += {}\n", choices.below(17)),
    }
}

/// A program of a type that reads at any address, with a map; other types than those with
/// packets get none.
fn reader(choices: &mut Choices<'_>, text: String) -> Case {
    let kind = choices.pick(&READERS);
    let mut case = Case {
        kind,
        ..Case::tc(choices, text)
    };
    if matches!(kind, ProgramType::Syscall | ProgramType::RawTracepoint) {
        case.packet.clear();
    }
    case.with_map(array())
}

fn probes(choices: &mut Choices<'_>) -> Case {
    let stores = words(choices, 4);
    let (value, size) = (choices.value(), choices.below(33));
    let from = address(choices);
    let digest = digest(80, 4);
    let text = format!(
        "{stores}r1 = {VALUE:#x} ll\nr2 = {value:#x} ll\n*(u64 *)(r1 + 0) = r2\n\
         *(u64 *)(r1 + 16) = r2\n*(u64 *)(r10 - 80) = 3\n*(u64 *)(r10 - 72) = 3\n\
         *(u64 *)(r10 - 64) = 3\n*(u64 *)(r10 - 56) = 3\nr1 = r10\nr1 += -80\nr2 = {size}\n{from}\
         call 113\n{digest}"
    );
    reader(choices, text)
}

fn text_probes(choices: &mut Choices<'_>) -> Case {
    let letters = |choices: &mut Choices<'_>| {
        let mut word = [0; 8];
        for byte in word.iter_mut().take(choices.below(9) as usize) {
            *byte = 1 + choices.below(255) as u8;
        }
        u64::from_le_bytes(word)
    };
    let stores: String = (1..=4)
        .map(|slot| {
            format!(
                "r1 = {:#x} ll\n*(u64 *)(r10 - {}) = r1\n",
                letters(choices),
                8 * slot
            )
        })
        .collect();
    let value: String = (0..4)
        .map(|slot| {
            format!(
                "r2 = {:#x} ll\n*(u64 *)(r1 + {}) = r2\n",
                letters(choices),
                8 * slot
            )
        })
        .collect();
    let size = choices.below(25);
    let from = address(choices);
    let digest = digest(80, 4);
    let text = format!(
        "{stores}r1 = {VALUE:#x} ll\n{value}*(u64 *)(r10 - 80) = 3\n*(u64 *)(r10 - 72) = 3\n\
         *(u64 *)(r10 - 64) = 3\n*(u64 *)(r10 - 56) = 3\nr1 = r10\nr1 += -80\nr2 = {size}\n{from}\
         call 115\n{digest}"
    );
    reader(choices, text)
}

fn cgroup_storage(choices: &mut Choices<'_>) -> Case {
    let kinds = [MapKind::CgroupStorage, MapKind::PercpuCgroupStorage];
    let params = MapParams {
        map_type: choices.pick(&kinds).number(),
        key_size: choices.pick(&[8, 16]),
        value_size: 16,
        ..MapParams::default()
    };
    let (first, second) = (choices.value(), choices.value());
    let text = format!(
        "r1 = {MAP:#x} ll\nr2 = 0\ncall 81\nr6 = *(u64 *)(r0 + 0)\nr1 = {first:#x} ll\n\
         *(u64 *)(r0 + 0) = r1\nr1 = {second:#x} ll\n*(u64 *)(r0 + 8) = r1\n\
         r1 = {MAP:#x} ll\nr2 = 0\ncall 81\nr1 = *(u64 *)(r0 + 0)\nr2 = *(u64 *)(r0 + 8)\nr6 *= 31\n\
         r6 += r1\nr6 *= 31\nr6 += r2\nr6 &= 1\nr0 = r6\nexit"
    );
    let case = Case {
        kind: ProgramType::CgroupSkb,
        ..Case::tc(choices, text)
    };
    case.with_map(Setup(params, None))
}

fn under_cgroup(choices: &mut Choices<'_>) -> Case {
    let params = MapParams {
        map_type: MapKind::CgroupArray.number(),
        key_size: 4,
        value_size: 4,
        max_entries: 1 + choices.below(8),
        ..MapParams::default()
    };
    let index = match choices.one_in(4) {
        true => choices.value(),
        false => choices.below(10).into(),
    };
    let text = match choices.one_in(2) {
        true => format!("r2 = {MAP:#x} ll\nr3 = {index:#x} ll\ncall 33\nexit"),
        false => format!("r1 = {MAP:#x} ll\nr2 = {index:#x} ll\ncall 37\nexit"),
    };
    Case::tc(choices, text).with_map(Setup(params, None))
}

fn stacks(choices: &mut Choices<'_>) -> Case {
    let digest = digest(32, 4);
    // Flags that no release knows, or a size that holds no whole entry.
    let (size, flags) = match choices.one_in(2) {
        true => (
            8 * choices.below(5),
            choices.pick(&[1u64 << 12, 1 << 40, 1 << 63]),
        ),
        false => (1 + 8 * choices.below(4) + choices.below(7), 0),
    };
    let stores = words(choices, 4);
    let text = format!(
        "r6 = r1\n{stores}r1 = r6\nr2 = r10\nr2 += -32\nr3 = {size}\nr4 = {flags:#x} ll\ncall 67\n{digest}"
    );
    let mut case = Case {
        kind: ProgramType::RawTracepoint,
        ..Case::tc(choices, text)
    };
    case.packet.clear();
    case
}

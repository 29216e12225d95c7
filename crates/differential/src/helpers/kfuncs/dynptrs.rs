//! Families of dynptrs to packets, their metadata and values of maps.

use program::MapParams;
use spec::maps::MapKind;
use spec::programs::ProgramType;

use super::call;
use crate::helpers::Family;
use crate::helpers::case::{Case, MAP, Setup, bytes_at};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[
    Family::new("dynptrs of socket buffers", of_skb),
    Family::new("dynptrs of xdp", of_xdp),
    Family::new("dynptrs of metadata", of_metadata),
];

/// Places in the frame: two dynptrs, a buffer.
const FIRST: u32 = 16;
const SECOND: u32 = 32;
const BUFFER: u32 = 96;
const BUFFER_SIZE: u32 = 64;

/// Mixes the low half of `r0` into `r9`.
const MIX: &str = "w1 = w0\nr9 *= 31\nr9 += r1\n";

/// Puts the address of a place in the frame into a register.
fn place(reg: &str, at: u32) -> String {
    format!("{reg} = r10\n{reg} += -{at}\n")
}

/// Mixes the words of the buffer into `r9`.
fn mix_buffer(words: u32) -> String {
    let word = |at| {
        let offset = BUFFER - 8 * at;
        format!("r1 = *(u64 *)(r10 - {offset})\nr9 *= 31\nr9 += r1\n")
    };
    (0..words).map(word).collect()
}

/// Setting that an operation is drawn for.
struct Setting {
    /// Bytes that the first dynptr has at first.
    len: u32,
    /// Its bytes are not only read, as far as the verifier knows.
    is_writable: bool,
}

/// An offset or length: small, near the length, or any.
fn number(choices: &mut Choices<'_>, near: u32) -> u32 {
    match choices.below(6) {
        0 => choices.value() as u32,
        1 => near.saturating_sub(3) + choices.below(6),
        2 => 0,
        _ => choices.below(near.max(1)),
    }
}

fn operation(choices: &mut Choices<'_>, setting: &Setting, at: u32) -> String {
    let dynptr = choices.pick(&[FIRST, FIRST, SECOND]);
    let other = choices.pick(&[FIRST, SECOND]);
    let (offset, len) = (number(choices, setting.len), number(choices, setting.len));
    match choices.below(11) {
        0 => {
            let (start, end) = match choices.one_in(3) {
                true => (offset, len),
                false => (
                    choices.below(8),
                    setting.len.saturating_sub(choices.below(8)),
                ),
            };
            let call = call("bpf_dynptr_adjust");
            format!(
                "{}r2 = {start:#x} ll\nr3 = {end:#x} ll\n{call}{MIX}",
                place("r1", dynptr)
            )
        }
        1 => {
            let name = choices.pick(&["bpf_dynptr_is_null", "bpf_dynptr_is_rdonly"]);
            // The upper bytes of a `bool` are undefined.
            format!("{}{}r0 &= 0xff\n{MIX}", place("r1", dynptr), call(name))
        }
        2 => format!("{}{}{MIX}", place("r1", dynptr), call("bpf_dynptr_size")),
        3 | 4 => {
            let size = 8 * (1 + choices.below(BUFFER_SIZE / 8));
            let is_written = setting.is_writable && choices.one_in(2);
            let name = match is_written {
                true => "bpf_dynptr_slice_rdwr",
                false => "bpf_dynptr_slice",
            };
            let buffer = match choices.one_in(4) {
                true => "r3 = 0\n".to_owned(),
                false => place("r3", BUFFER),
            };
            let change = match is_written {
                true => format!("r1 = {}\n*(u32 *)(r0 + 4) = r1\n", choices.value() as i32),
                false => String::new(),
            };
            format!(
                "{}r2 = {offset:#x} ll\n{buffer}r4 = {size}\n{}if r0 == 0 goto none{at}\n\
                 r1 = *(u64 *)(r0 + {})\nr9 *= 31\nr9 += r1\n{change}none{at}:\nr9 += 1\n",
                place("r1", dynptr),
                call(name),
                size - 8
            )
        }
        5 => {
            let len = choices.below(BUFFER_SIZE + 1);
            let flags = choices.pick(&[0, 0, 0, 1]);
            format!(
                "{}r2 = {len}\n{}r4 = {offset:#x} ll\nr5 = {flags}\ncall 201\n{MIX}{}",
                place("r1", BUFFER),
                place("r3", dynptr),
                mix_buffer(BUFFER_SIZE / 8)
            )
        }
        6 if setting.is_writable => {
            let len = choices.below(BUFFER_SIZE + 1);
            let flags = choices.pick(&[0, 0, 0, 4]);
            format!(
                "{}r2 = {offset:#x} ll\n{}r4 = {len}\nr5 = {flags}\ncall 202\n{MIX}",
                place("r1", dynptr),
                place("r3", BUFFER)
            )
        }
        7 if setting.is_writable => format!(
            "{}r2 = {offset:#x} ll\n{}r4 = {:#x} ll\nr5 = {len:#x} ll\n{}{MIX}",
            place("r1", dynptr),
            place("r3", other),
            number(choices, setting.len),
            call("bpf_dynptr_copy")
        ),
        8 if setting.is_writable => format!(
            "{}r2 = {offset:#x} ll\nr3 = {len:#x} ll\nr4 = {}\n{}{MIX}",
            place("r1", dynptr),
            choices.below(256),
            call("bpf_dynptr_memset")
        ),
        9 if setting.is_writable => {
            let (name, is_user) = choices.pick(&[
                ("bpf_probe_read_kernel_dynptr", false),
                ("bpf_probe_read_kernel_str_dynptr", false),
                ("bpf_probe_read_user_dynptr", true),
                ("bpf_probe_read_user_str_dynptr", true),
            ]);
            let (size, from) = match is_user || choices.one_in(4) {
                true => (len, "r4 = 0x10 ll\n".to_owned()),
                false => (choices.below(BUFFER_SIZE + 1), place("r4", BUFFER)),
            };
            format!(
                "{}r2 = {offset:#x} ll\nr3 = {size:#x} ll\n{from}{}{MIX}",
                place("r1", dynptr),
                call(name)
            )
        }
        _ => format!(
            "{}r2 = {:#x} ll\nr3 = {:#x} ll\n{}{MIX}",
            place("r1", dynptr),
            choices.below(4),
            setting.len.saturating_sub(choices.below(4)),
            call("bpf_dynptr_adjust")
        ),
    }
}

/// A program that makes two dynptrs: one of the packet by a call, one that is its clone or of
/// the value of a map.
fn program(choices: &mut Choices<'_>, kind: ProgramType, from: &str, setting: &Setting) -> Case {
    let flags = match choices.one_in(10) {
        true => choices.pick(&[1u64, 1 << 32]),
        false => 0,
    };
    let buffer: Vec<u8> = (0..BUFFER_SIZE).map(|_| choices.below(256) as u8).collect();
    let second = match choices.one_in(2) {
        true => format!(
            "{}{}{}{MIX}",
            place("r1", FIRST),
            place("r2", SECOND),
            call("bpf_dynptr_clone")
        ),
        false => format!(
            "r1 = {MAP:#x} ll\nr2 = r10\nr2 += -104\ncall 1\nif r0 == 0 goto out\nr1 = r0\n\
             r2 = {}\nr3 = {flags:#x} ll\n{}call 197\n{MIX}",
            choices.pick(&[0, 40, 512]),
            place("r4", SECOND)
        ),
    };
    let mut text = format!(
        "r6 = r1\nr9 = 1\n{}*(u64 *)(r10 - 104) = 0\nr1 = r6\nr2 = {flags:#x} ll\n{}{}{MIX}{second}",
        bytes_at(BUFFER, &buffer),
        place("r3", FIRST),
        call(from)
    );
    for at in 0..1 + choices.below(8) {
        text += &operation(choices, setting, at);
    }
    text += "out:\nr0 = r9\nr0 >>= 32\nr0 ^= r9\n";
    text += match kind {
        ProgramType::CgroupSkb => "r0 &= 1\nexit\n",
        _ => "exit\n",
    };
    let params = MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size: 512,
        max_entries: 1,
        ..MapParams::default()
    };
    Case {
        packet: (0..setting.len).map(|at| (at ^ at >> 8) as u8).collect(),
        ..Case::new(kind, text)
    }
    .with_map(Setup(params, None))
}

fn of_skb(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[
        ProgramType::SchedCls,
        ProgramType::SchedCls,
        ProgramType::SchedAct,
        ProgramType::SocketFilter,
        ProgramType::CgroupSkb,
        ProgramType::LwtXmit,
        ProgramType::LwtIn,
    ]);
    let setting = Setting {
        len: 64 + choices.below(400),
        is_writable: matches!(
            kind,
            ProgramType::SchedCls | ProgramType::SchedAct | ProgramType::LwtXmit
        ),
    };
    program(choices, kind, "bpf_dynptr_from_skb", &setting)
}

fn of_xdp(choices: &mut Choices<'_>) -> Case {
    let setting = Setting {
        len: choices.pick(&[60, 200, 1500, 3520, 4500, 9000]),
        is_writable: true,
    };
    let case = program(choices, ProgramType::Xdp, "bpf_dynptr_from_xdp", &setting);
    Case {
        has_fragments: true,
        ..case
    }
}

fn of_metadata(choices: &mut Choices<'_>) -> Case {
    let setting = Setting {
        len: 64,
        is_writable: true,
    };
    let kind = choices.pick(&[ProgramType::SchedCls, ProgramType::SchedAct]);
    program(choices, kind, "bpf_dynptr_from_skb_meta", &setting)
}

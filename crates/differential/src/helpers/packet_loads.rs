//! Legacy packet loads between calls that move the packet and its headers: offsets from the
//! start of the packet, from its network and from its link-layer header.

use isa::classic::{LL_OFFSET, NET_OFFSET};
use spec::programs::ProgramType;

use super::Family;
use super::case::Case;
use super::packets::{MIX, SKB_FIELDS, room_call, sequence};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("packet loads", packet_loads)];

fn packet_loads(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[
        ProgramType::SchedCls,
        ProgramType::SchedAct,
        ProgramType::SocketFilter,
    ]);
    let fields = match kind {
        ProgramType::SocketFilter => &[0, 4, 16],
        _ => SKB_FIELDS,
    };
    sequence(choices, kind, fields, |choices, len| {
        match kind != ProgramType::SocketFilter && choices.one_in(3) {
            true => room_call(choices, len),
            false => load(choices, len) + MIX,
        }
    })
}

/// A load, mostly inside the packet: outside, the program returns 0.
fn load(choices: &mut Choices<'_>, len: usize) -> String {
    let size = choices.pick(&["u8", "u16", "u32"]);
    let from = choices.pick(&[0, NET_OFFSET, LL_OFFSET]);
    let within = match choices.below(12) {
        0 => (len as u32 + 4).saturating_sub(choices.below(40)),
        1 => choices.pick(&[u32::MAX, 0x8_0000, 0x10_0000]),
        _ => choices.below(40),
    };
    let offset = from.wrapping_add(within) as i32;
    match choices.one_in(2) {
        true => format!("r0 = *({size} *)skb[{offset}]\n"),
        false => {
            let index = choices.value() as i32;
            let high = choices.pick(&[0, 1, -1]);
            let offset = displacement(offset.wrapping_sub(index));
            // The load uses the low half of the index only.
            format!(
                "r1 = {high}\nr1 <<= 32\nw2 = {index}\nr1 |= r2\nr0 = *({size} *)skb[r1{offset}]\n"
            )
        }
    }
}

/// A number that is added to a register, as text; nothing for 0.
fn displacement(number: i32) -> String {
    match number {
        0 => String::new(),
        1.. => format!(" + {number}"),
        _ => format!(" - {}", number.unsigned_abs()),
    }
}

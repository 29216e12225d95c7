//! Uses of sockets by programs: maps that hold them, selections, local storage, SYN cookies.

use std::net::IpAddr;

use btf::TypeId;
use program::MapParams;
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;

use super::super::case::{Case, MAP, Setup, bytes_at};
use super::{COMMON, MIX, PORTS, TUPLE, WHOLE, address, question, reads, result, tuple};
use testkit::ebpf::Choices;

/// Most sockets that maps take.
const SLOTS: u32 = 40;

/// A map that holds the sockets of the network, by their numbers.
fn map_of_sockets(choices: &mut Choices<'_>) -> Setup {
    let kind = choices.pick(&[MapKind::Sockmap, MapKind::Sockhash]);
    let params = MapParams {
        map_type: kind.number(),
        key_size: 4,
        value_size: 8,
        max_entries: SLOTS,
        ..MapParams::default()
    };
    Setup(params, None)
}

/// A call of a helper with the map and the key at `r10 - 8`.
fn with_key(helper: u32) -> String {
    format!("r1 = {MAP:#x} ll\nr2 = r10\nr2 += -8\ncall {helper}\n")
}

/// A lookup in the map of the case; goes to a label if it holds nothing.
fn from_map(choices: &mut Choices<'_>, otherwise: &str) -> String {
    let key = choices.below(26);
    let lookup = with_key(1);
    format!("*(u32 *)(r10 - 8) = {key}\n{lookup}if r0 == 0 goto {otherwise}\nr7 = r0\n")
}

/// Reads a socket of a map, puts it at another place, removes it.
pub(super) fn maps(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[
        ProgramType::SchedCls,
        ProgramType::SchedAct,
        ProgramType::Xdp,
    ]);
    let mut text = String::from("r6 = r1\nr9 = 0\n");
    text += &from_map(choices, "none");
    text += "r9 = 1\n";
    text += &reads(choices, "r7", &[COMMON, WHOLE]);
    text += &question(choices, kind, 0);
    if kind != ProgramType::Xdp && choices.one_in(2) {
        let (key, flags) = (
            choices.pick(&[3, 30, 39, 40]),
            choices.pick(&[0, 0, 1, 2, 3]),
        );
        text += &format!(
            "*(u32 *)(r10 - 8) = {key}\nr1 = {MAP:#x} ll\nr2 = r10\nr2 += -8\nr3 = r7\n\
             r4 = {flags}\ncall 2\n{MIX}"
        );
    }
    text += "r1 = r7\ncall 86\n";
    if choices.one_in(3) {
        text += &with_key(3);
        text += MIX;
    }
    text += &from_map(choices, "none");
    text += &reads(choices, "r7", &[WHOLE]);
    text += "r1 = r7\ncall 86\n";
    text += &result(kind);
    let case = Case::tc(choices, text);
    Case { kind, ..case }.with_map(map_of_sockets(choices))
}

/// Selects sockets for a connection.
pub(super) fn selections(choices: &mut Choices<'_>) -> Case {
    let mut text = String::from("r6 = r1\nr9 = 0\n");
    for at in 0..1 + choices.below(3) {
        let none = format!("none{at}");
        text += &from_map(choices, &none);
        text += &reads(choices, "r7", &[COMMON, WHOLE]);
        for _ in 0..1 + choices.below(2) {
            let flags = choices.pick(&[2, 2, 2, 3, 3, 0, 1, 4, 1 << 31]);
            text += &format!("r1 = r6\nr2 = r7\nr3 = {flags}\ncall 124\n{MIX}");
        }
        text += &format!("r1 = r7\ncall 86\n{none}:\n");
        if choices.one_in(5) {
            let flags = choices.pick(&[0, 1, 3]);
            text += &format!("r1 = r6\nr2 = 0\nr3 = {flags}\ncall 124\n{MIX}");
        }
    }
    let fields = reads(choices, "r1", &[&[(16, 4), (44, 4), (8, 4)]]).replace("r1 = *", "r2 = *");
    let fields = fields
        .replace("r9 += r1", "r9 += r2")
        .replace("w1 = w1", "w2 = w2");
    text += &format!("r1 = *(u64 *)(r6 + 0)\nif r1 == 0 goto out\nr9 += 3\n{fields}out:\n");
    // One bit of the sum, or that the connection passes.
    text += match choices.one_in(2) {
        true => "r0 = 1\nexit",
        false => "r9 *= 1640531527\nr0 = r9\nr0 >>= 17\nr0 &= 1\nexit",
    };
    let is_ipv6 = choices.one_in(2);
    let mut context = vec![0; 72];
    context[8] = if is_ipv6 { 10 } else { 2 };
    context[12] = choices.pick(&[6, 17]);
    context[60..62].copy_from_slice(&choices.pick(&PORTS).to_ne_bytes());
    for (ipv4, ipv6) in [(16, 20), (40, 44)] {
        match address(choices, is_ipv6) {
            IpAddr::V4(address) => context[ipv4..ipv4 + 4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => context[ipv6..ipv6 + 16].copy_from_slice(&address.octets()),
        }
    }
    let case = Case {
        kind: ProgramType::SkLookup,
        packet: Vec::new(),
        context,
        ..Case::tc(choices, text)
    };
    case.with_map(map_of_sockets(choices))
}

/// Finds a socket and keeps it in `r7`; goes to `none` if there is none.
fn find(choices: &mut Choices<'_>) -> String {
    let tuple = tuple(choices);
    let (len, helper) = (tuple.len(), choices.pick(&[84, 84, 85]));
    format!(
        "r6 = r1\nr9 = 0\n{}r1 = r6\nr2 = r10\nr2 += -{TUPLE}\nr3 = {len}\nr4 = -1\nr5 = 0\n\
         call {helper}\nif r0 == 0 goto none\nr7 = r0\nr9 = 1\n",
        bytes_at(TUPLE, &tuple),
    )
}

/// Values that belong to sockets.
pub(super) fn storage(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[ProgramType::SchedCls, ProgramType::CgroupSkb]);
    let is_of_packet = choices.one_in(3);
    let mut text = match is_of_packet {
        true => "r6 = r1\nr9 = 1\nr7 = *(u64 *)(r6 + 168)\nif r7 == 0 goto none\n".to_owned(),
        false => find(choices),
    };
    for at in 0..1 + choices.below(5) {
        let flags = choices.pick(&[0, 1, 1, 1, 2, 3]);
        let value = match choices.one_in(2) {
            true => "0".to_owned(),
            false => format!("r10\nr3 += -{TUPLE}"),
        };
        text += &match choices.below(4) {
            0 => format!("r1 = {MAP:#x} ll\nr2 = r7\ncall 108\n{MIX}"),
            _ => format!(
                "r1 = 5\n*(u64 *)(r10 - {TUPLE}) = r1\n*(u64 *)(r10 - 72) = r1\n\
                 r1 = {MAP:#x} ll\nr2 = r7\nr3 = {value}\nr4 = {flags}\ncall 107\n\
                 r9 *= 31\nif r0 == 0 goto m{at}\nr1 = *(u64 *)(r0 + 0)\nr9 += r1\n\
                 r1 *= 7\nr1 += 3\n*(u64 *)(r0 + 0) = r1\nm{at}:\n"
            ),
        };
    }
    if !is_of_packet {
        text += "r1 = r7\ncall 86\n";
    }
    text += &result(kind);
    let params = MapParams {
        map_type: MapKind::SkStorage.number(),
        key_size: 4,
        value_size: 16,
        flags: MapFlags::NO_PREALLOC,
        key_type: TypeId(1),
        value_type: TypeId(1),
        ..MapParams::default()
    };
    let case = Case::tc(choices, text);
    Case { kind, ..case }.with_map(Setup(params, None))
}

/// Places of the headers below the frame pointer.
const IP: u32 = 240;
const TCP: u32 = 160;

/// A cookie of a socket is made, acknowledged and checked.
pub(super) fn cookies(choices: &mut Choices<'_>) -> Case {
    let version = choices.pick(&[4, 4, 6, 6, 5]);
    let mut ip: Vec<u8> = (0..40).map(|_| choices.below(256) as u8).collect();
    ip[0] = version << 4 | 5;
    let mut tcp: Vec<u8> = (0..24).map(|_| choices.below(256) as u8).collect();
    tcp[12] = choices.pick(&[6, 6, 6, 6, 5]) << 4;
    tcp[13] = choices.pick(&[2, 2, 2, 2, 0x12, 0x10, 3, 0x42]);
    tcp[20..24].copy_from_slice(&[2, 4, choices.below(8) as u8, 0xb4]);
    let ip_len = choices.pick(&[40, 40, 20, 19, 21]);
    let tcp_len = choices.pick(&[24, 24, 24, 20, 19]);
    let (sequence, acknowledged, flags) = (TCP - 4, TCP - 8, TCP - 13);
    let acknowledging = choices.pick(&[0x10, 0x10, 0x10, 0x18, 0x12, 0x14, 0]);
    let wrong = choices.pick(&[0, 0, 1 << 24, 1]);
    let headers = format!(
        "r1 = r7\nr2 = r10\nr2 += -{IP}\nr3 = {ip_len}\nr4 = r10\nr4 += -{TCP}\nr5 = {tcp_len}\n"
    );
    let mut text = find(choices);
    let stores = [bytes_at(IP, &ip), bytes_at(TCP, &tcp)].concat();
    text += &stores;
    if !choices.one_in(6) {
        // Of a cookie the segment size is compared.
        text += &format!(
            "{headers}call 110\nr8 = r0\nr1 = r0\nif r1 s< 0 goto error\nr1 >>= 32\nerror:\n\
             r9 *= 31\nr9 += r1\nw1 = w8\nw1 += {wrong}\nw1 += 1\nr1 = be32 r1\n\
             *(u32 *)(r10 - {acknowledged}) = r1\nr1 = *(u32 *)(r10 - {sequence})\nr1 = be32 r1\n\
             w1 += 1\nr1 = be32 r1\n*(u32 *)(r10 - {sequence}) = r1\n"
        );
    }
    text += &format!("*(u8 *)(r10 - {}) = {acknowledging}\n", flags);
    text += &format!("{headers}call 100\n{MIX}r1 = r7\ncall 86\n");
    text += &result(ProgramType::SchedCls);
    Case::tc(choices, text)
}

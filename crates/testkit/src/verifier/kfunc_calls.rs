//! Calls of every kfunc by programs of every type that can be loaded, with arguments of every
//! kind: both verifiers must give the same answer.

use std::ops::Range;
use std::sync::Arc;

use btf::Btf;
use program::{Image, InitialContents, MapDef, MapParams, Program};
use spec::maps::{MapFlags, MapKind};
use spec::programs::{LoadFlags, ProgramType};
use spec::registry::{Kfunc, Registry};

use super::ask::VerifierPair;
use super::simple::assembled;
use super::soak::Tally;
use crate::ebpf::Choices;

/// Program types, with the expected attach type and the offsets of `data` and `data_end` in
/// contexts with packets.
const TYPES: &[(ProgramType, u32, Option<(u32, u32)>)] = &[
    (ProgramType::Xdp, 0, Some((0, 4))),
    (ProgramType::SchedCls, 0, Some((76, 80))),
    (ProgramType::SchedAct, 0, Some((76, 80))),
    (ProgramType::SocketFilter, 0, None),
    (ProgramType::CgroupSkb, 0, Some((76, 80))),
    (ProgramType::LwtXmit, 0, Some((76, 80))),
    (ProgramType::SkSkb, 0, Some((76, 80))),
    (ProgramType::FlowDissector, 17, None),
    (ProgramType::RawTracepoint, 0, None),
    (ProgramType::Tracepoint, 0, None),
    (ProgramType::SockOps, 3, None),
    (ProgramType::CgroupSockAddr, 8, None),
    (ProgramType::CgroupSockopt, 21, None),
    (ProgramType::SkLookup, 36, None),
    (ProgramType::Syscall, 0, None),
];

/// Constants of programs: two strings, then text without an end.
const CONSTANTS: [u8; 128] = {
    let strings = b"text\0more text\0";
    let mut bytes = [b'x'; 128];
    let mut at = 0;
    while at < strings.len() {
        bytes[at] = strings[at];
        at += 1;
    }
    bytes
};

/// Compares calls of every kfunc of a registry in programs of every type: for each a program of
/// every seed.
pub fn compare_kfunc_calls(
    verifiers: &mut VerifierPair<'_>,
    registry: &Registry,
    types: &Btf<'_>,
    seeds: Range<u64>,
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let known = registry.kfuncs.values().filter(|kfunc| kfunc.btf_id != 0);
    for (kfunc, number) in known.zip(0u64..) {
        for (at, (kind, attach, packet)) in (0u64..).zip(TYPES.iter().copied()) {
            for seed in seeds.clone() {
                let mut choices = Choices::from_seed(seed << 20 | number << 8 | at);
                let text = program(&mut choices, kfunc, kind, packet, types);
                let program = build(&text, kind, attach, &mut choices)?;
                let origin = || format!("{} in {}, seed {seed}", kfunc.name, kind.name());
                tally.compare(verifiers, &program, kind.name(), origin);
            }
        }
    }
    Ok(tally)
}

/// The text of a program that calls a kfunc.
fn program(
    choices: &mut Choices<'_>,
    kfunc: &Kfunc,
    kind: ProgramType,
    packet: Option<(u32, u32)>,
    types: &Btf<'_>,
) -> String {
    let mut text = "r6 = r1\n*(u64 *)(r10 - 8) = 0\n*(u64 *)(r10 - 16) = 0\n\
                    *(u64 *)(r10 - 24) = 7\n*(u64 *)(r10 - 32) = 0\nr9 = 0\n"
        .to_owned();
    // A number that is not known, and one with bounds.
    text += "call 5\nr7 = r0\nr8 = r0\nr8 &= 15\n";
    // A value of a map, checked for null or not.
    if choices.one_in(2) {
        text += "ld_pseudo r1, 5, 0\nr2 = r10\nr2 += -8\ncall 1\nr9 = r0\n";
        if !choices.one_in(4) {
            text += "if r9 == 0 goto out\n";
        }
    }
    let count = parameters(kfunc, types).max(1);
    for number in 1..=count.min(5) {
        let reg = format!("r{number}");
        text += &argument(choices, &reg, packet);
    }
    text += &format!("call kfunc({})\n", kfunc.btf_id);
    text += match choices.below(8) {
        0 => "r1 = *(u32 *)(r0 + 0)\n",
        1 => "if r0 == 0 goto out\nr1 = *(u32 *)(r0 + 0)\n",
        2 => "if r0 != 0 goto out\n",
        3 => "r7 = r0\n",
        4 => "*(u64 *)(r0 + 0) = 0\n",
        5 => "r6 = *(u64 *)(r10 - 16)\nr1 = *(u64 *)(r6 + 0)\n",
        _ => "",
    };
    if choices.one_in(6) {
        text += &format!(
            "{}call kfunc({})\n",
            argument(choices, "r1", packet),
            kfunc.btf_id
        );
    }
    let result = match kind {
        ProgramType::SockOps | ProgramType::CgroupSockAddr | ProgramType::SkLookup => 1,
        _ => 0,
    };
    text + &format!("out:\nr0 = {result}\nexit\n")
}

/// Number of parameters of a kfunc.
fn parameters(kfunc: &Kfunc, types: &Btf<'_>) -> usize {
    let func = types.get(btf::TypeId(kfunc.btf_id));
    let proto = func.and_then(|func| func.referred());
    match proto
        .and_then(|proto| types.get(proto))
        .map(|ty| ty.shape())
    {
        Some(btf::Shape::Proto(proto)) => proto.params().count(),
        _ => 0,
    }
}

/// Puts an argument of some kind into a register.
fn argument(choices: &mut Choices<'_>, reg: &str, packet: Option<(u32, u32)>) -> String {
    match choices.below(22) {
        0 => String::new(),
        1 | 2 => format!("{reg} = 0\n"),
        3 => format!(
            "{reg} = {}\n",
            choices.pick(&[1, 4, 8, 12, 16, 36, 48, 408])
        ),
        4 => format!("{reg} = {}\n", choices.pick(&[-1, -8, i32::MAX, i32::MIN])),
        5 => format!("{reg} = 0x100000000 ll\n"),
        6 => format!("{reg} = r7\n"),
        7 => format!("{reg} = r8\n"),
        8..=10 => format!("{reg} = r6\n"),
        11..=13 => {
            let offset = choices.pick(&[8, 16, 24, 32, 40, 64, 0]);
            format!("{reg} = r10\n{reg} += -{offset}\n")
        }
        14 => format!("{reg} = r10\n{reg} += r8\n{reg} += -32\n"),
        15 => format!("ld_pseudo {reg}, 5, 0\n"),
        16 => format!("{reg} = r9\n"),
        17 => format!(
            "{reg} = r9\n{reg} += {}\n",
            choices.pick(&[1, 40, 44, 48, -1])
        ),
        18 => format!(
            "ld_pseudo {reg}, 6, 1\n{reg} += {}\n",
            choices.pick(&[0, 5, 120])
        ),
        19 => format!("{reg} = r6\n{reg} += 8\n"),
        _ => match packet {
            Some((data, end)) => {
                let least = choices.pick(&[4, 8, 16, 40]);
                // The bound is in r5, which a later argument replaces.
                format!(
                    "{reg} = *(u32 *)(r6 + {data})\nr7 = *(u32 *)(r6 + {end})\nr0 = {reg}\n\
                     r0 += {least}\nif r0 > r7 goto out\nr7 = 3\n"
                )
            }
            None => format!("{reg} = r7\n"),
        },
    }
}

/// The program with its maps: an array, and constants.
fn build(
    text: &str,
    kind: ProgramType,
    attach: u32,
    choices: &mut Choices<'_>,
) -> Result<Program, String> {
    let array = MapDef::new(
        "",
        MapParams {
            map_type: MapKind::Array.number(),
            key_size: 4,
            value_size: 48,
            max_entries: 4,
            ..MapParams::default()
        },
    );
    let mut constants = MapDef::new(
        "",
        MapParams {
            map_type: MapKind::Array.number(),
            key_size: 4,
            value_size: CONSTANTS.len() as u32,
            max_entries: 1,
            flags: MapFlags::RDONLY_PROG,
            ..MapParams::default()
        },
    );
    constants.contents = InitialContents::Value {
        image: Image::new(&CONSTANTS, CONSTANTS.len() as u32),
        frozen: true,
    };
    let insns = assembled(text).map_err(|error| format!("{error}\n{text}"))?;
    let flags = match kind {
        ProgramType::Syscall => LoadFlags::SLEEPABLE,
        _ => LoadFlags::default(),
    };
    let license = if choices.one_in(50) {
        "Proprietary"
    } else {
        "GPL"
    };
    Program::builder(kind, insns)
        .expected_attach_type(attach)
        .flags(flags)
        .maps(vec![Arc::new(array), Arc::new(constants)])
        .license(license)
        .build()
        .map_err(|error| error.to_string())
}

//! Families whose calls change the packet or what the kernel knows of it: sequences of calls
//! on frames, and the inputs of test runs.

use program::MapParams;
use spec::maps::MapKind;
use spec::programs::ProgramType;

use super::Family;
use super::case::{Case, MAP, Setup, bytes_at, words};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[
    Family::new("room in tc packets", tc_room),
    Family::new("metadata of tc packets", tc_metadata),
    Family::new("room in XDP packets", xdp_room),
    Family::new("fragments of XDP packets", xdp_fragments),
    Family::new("redirection", redirection),
    Family::new("packets of lightweight tunnels", lwt),
    Family::new("perf buffers that are not there", perf),
    Family::new("what does not exist", absent),
    Family::new("inputs of test runs", inputs),
];

/// A frame of a length that test runs take: IP, tagged, or of random type.
fn frame(choices: &mut Choices<'_>) -> Vec<u8> {
    let len = choices.pick(&[54, 60, 74, 100, 200, 1514]) + choices.below(20) as usize;
    let mut frame: Vec<u8> = (0..len).map(|_| choices.below(256) as u8).collect();
    let mut at = 12;
    let tags = choices.pick(&[0, 0, 0, 1, 2]);
    for _ in 0..tags {
        let kind = choices.pick(&[0x8100u16, 0x88a8]);
        frame[at..at + 2].copy_from_slice(&kind.to_be_bytes());
        at += 4;
    }
    let kind = match choices.below(10) {
        0 => choices.below(0x10000) as u16,
        1 => 46,
        2..=6 => 0x0800,
        _ => 0x86dd,
    };
    frame[at..at + 2].copy_from_slice(&kind.to_be_bytes());
    match kind {
        0x0800 => frame[at + 2] = 0x45,
        0x86dd => frame[at + 2] = 0x60 | choices.below(16) as u8,
        _ => {}
    }
    frame
}

/// The result is mixed into `r9`, which the caller prepared.
pub(super) const MIX: &str = "r9 *= 31\nr9 += r0\n";

/// Mixes words below the frame pointer into `r9`.
fn mix_words(count: u32) -> String {
    let word = |slot| format!("r1 = *(u64 *)(r10 - {})\nr9 *= 31\nr9 += r1\n", 8 * slot);
    (1..=count).map(word).collect()
}

/// Mixes fields of the context into `r9`, folds it and returns it.
fn end(fields: &[u32]) -> String {
    let field = |at: &u32| format!("r1 = *(u32 *)(r6 + {at})\nr9 *= 31\nr9 += r1\n");
    let fields: String = fields.iter().map(field).collect();
    format!("{fields}r0 = r9\nr0 >>= 32\nr0 ^= r9\nexit")
}

/// Fields of `struct __sk_buff` that helpers change: len, pkt_type, mark, protocol, VLAN,
/// hash, gso_segs, gso_size.
pub(super) const SKB_FIELDS: &[u32] = &[0, 4, 8, 16, 20, 24, 28, 68, 164, 176];

/// A program of some calls on a frame.
pub(super) fn sequence(
    choices: &mut Choices<'_>,
    kind: ProgramType,
    fields: &[u32],
    mut call: impl FnMut(&mut Choices<'_>, usize) -> String,
) -> Case {
    let packet = frame(choices);
    let mut text = "r6 = r1\nr9 = 0\n".to_owned();
    for _ in 0..1 + choices.below(8) {
        text += &call(choices, packet.len());
    }
    text += &end(fields);
    Case {
        packet,
        ..Case::new(kind, text)
    }
}

/// A number near a length, small, or any.
pub(super) fn length(choices: &mut Choices<'_>, near: usize) -> u64 {
    match choices.below(8) {
        0 => choices.value(),
        1 => choices.pick(&[0, 1, 13, 14, 15, 33, 34, 54, 4096, 16_064, 16_065, 65_536]),
        2..=4 => (near as u64 + 30).saturating_sub(choices.below(60).into()),
        _ => choices.below(near as u32 + 20).into(),
    }
}

/// Flags: none, or wrong ones.
pub(super) fn flags(choices: &mut Choices<'_>) -> u64 {
    match choices.below(12) {
        0 => choices.value(),
        1 => 1,
        _ => 0,
    }
}

fn tc_room(choices: &mut Choices<'_>) -> Case {
    let gso = choices.one_in(4);
    let case = sequence(choices, ProgramType::SchedCls, SKB_FIELDS, room_call);
    match gso {
        true => with_segments(case),
        false => case,
    }
}

/// A case whose packet stands for two segments.
fn with_segments(mut case: Case) -> Case {
    case.context = vec![0; 192];
    case.context[164..168].copy_from_slice(&2u32.to_le_bytes());
    case.context[176..180].copy_from_slice(&100u32.to_le_bytes());
    case
}

/// A call that adds or removes bytes, or depends on where headers are.
pub(super) fn room_call(choices: &mut Choices<'_>, len: usize) -> String {
    let call = match choices.below(12) {
        0 => {
            let kind = choices.pick(&[0x8100u16, 0x88a8, 0x0800, 0]).to_be();
            let tci = choices.below(0x10000);
            format!("r1 = r6\nr2 = {kind}\nr3 = {tci}\ncall 18\n")
        }
        1 | 2 => "r1 = r6\ncall 19\n".to_owned(),
        3 => {
            let to = choices
                .pick(&[0x0800u16, 0x86dd, 0x86dd, 0x0800, 0x8100])
                .to_be();
            let flags = flags(choices);
            format!("r1 = r6\nr2 = {to}\nr3 = {flags:#x} ll\ncall 31\n")
        }
        4 => {
            // What is behind the end of a packet without its headers is not defined.
            let to = match length(choices, len) {
                to @ 14..100 => to + 86,
                to => to,
            };
            let flags = flags(choices);
            format!("r1 = r6\nr2 = {to:#x} ll\nr3 = {flags:#x} ll\ncall 38\n")
        }
        5 => {
            let count = match choices.below(4) {
                0 => length(choices, len),
                _ => choices.below(80).into(),
            };
            let flags = flags(choices);
            format!("r1 = r6\nr2 = {count:#x} ll\nr3 = {flags:#x} ll\ncall 43\n")
        }
        6 | 7 => {
            let difference = match choices.below(6) {
                0 => choices.value() as i32,
                1 => choices.pick(&[0x1000, 0xfff, -0xfff, -0x1000, i32::MIN]),
                _ => choices.between(-70, 70),
            };
            let mode = choices.pick(&[0, 0, 1, 1, 2]);
            let known = choices.pick(&[
                0u64, 0, 1, 2, 4, 6, 10, 18, 26, 0x20, 0x42, 0x80, 0x100, 0x180,
            ]);
            let inner = choices.pick(&[0u64, 0, 0, 14, 4, 200]) << 56;
            let flags = match choices.below(8) {
                0 => choices.value(),
                _ => known | inner,
            };
            format!("r1 = r6\nr2 = {difference}\nr3 = {mode}\nr4 = {flags:#x} ll\ncall 50\n")
        }
        8 => {
            let len = length(choices, len);
            format!("r1 = r6\nr2 = {len:#x} ll\ncall 39\n")
        }
        9 => "r1 = r6\ncall 97\n".to_owned(),
        10 => {
            let (offset, start) = (length(choices, len.min(60)), choices.below(3));
            format!(
                "*(u64 *)(r10 - 8) = 7\nr1 = r6\nr2 = {offset:#x} ll\nr3 = r10\nr3 += -8\n\
                 r4 = 8\nr5 = {start}\ncall 68\n{}",
                mix_words(1)
            )
        }
        _ => {
            let offset = length(choices, len);
            format!(
                "{}r1 = r6\nr2 = {offset:#x} ll\nr3 = r10\nr3 += -16\nr4 = 16\nr5 = {}\ncall 9\n",
                words(choices, 2),
                choices.pick(&[0, 0, 1, 2, 3, 4])
            )
        }
    };
    call + MIX
}

fn tc_metadata(choices: &mut Choices<'_>) -> Case {
    let gso = choices.one_in(4);
    let mut case = sequence(choices, ProgramType::SchedCls, SKB_FIELDS, metadata_call);
    // The time of delivery and its type.
    let mix = "r1 = *(u64 *)(r6 + 152)\nr9 *= 31\nr9 += r1\nr1 = *(u8 *)(r6 + 180)\n\
               r9 *= 31\nr9 += r1\nr0 = r9\n";
    case.text = case.text.replacen("r0 = r9\n", mix, 1);
    match gso {
        true => with_segments(case),
        false => case,
    }
}

/// A call that reads or changes what the kernel knows of a packet.
fn metadata_call(choices: &mut Choices<'_>, len: usize) -> String {
    let call = match choices.below(13) {
        0 => format!("r1 = r6\nr2 = {}\ncall 32\n", choices.below(9)),
        1 => format!("r1 = r6\nr2 = {}\ncall 40\n", choices.value() as i32),
        2 => "r1 = r6\ncall 41\n".to_owned(),
        3 => format!("r1 = r6\nr2 = {}\ncall 48\n", choices.value() as i32),
        4 | 5 => format!(
            "r1 = r6\nr2 = {}\ncall 135\n",
            choices.pick(&[0, 0, 1, 1, 2, 3, 4, -1])
        ),
        6 => {
            let time = choices.pick(&[0, 0, 1, 1 << 60, u64::MAX]);
            format!(
                "r1 = r6\nr2 = {time:#x} ll\nr3 = {}\ncall 192\n",
                choices.below(5)
            )
        }
        7 => {
            // Two answers of the kernel's random key are equal, and a known hash follows.
            "r1 = r6\ncall 34\nr7 = r0\nr1 = r6\ncall 34\nr7 -= r0\nr9 *= 31\nr9 += r7\n\
             if r0 != 0 goto +1\nr9 += 1\nr1 = r6\nr2 = 5\ncall 48\n"
                .to_owned()
        }
        8 => {
            let size = choices.pick(&[44u64, 44, 44, 28, 24, 22, 8, 10, 43]);
            let mut key: Vec<u8> = (0..48).map(|_| choices.below(256) as u8).collect();
            if choices.percent(80) {
                key[22..24].fill(0);
            }
            if choices.percent(60) {
                key[24..28].fill(0);
            }
            let flags = match choices.below(6) {
                0 => choices.value(),
                _ => choices.pick(&[0, 0, 1, 1, 2, 4, 8, 0x20, 0x2f, 0x10, 0x40]),
            };
            format!(
                "{}r1 = r6\nr2 = r10\nr2 += -48\nr3 = {size}\nr4 = {flags:#x} ll\ncall 21\n",
                bytes_at(48, &key)
            )
        }
        9 => {
            let size = choices.pick(&[44u64, 44, 44, 28, 24, 22, 8, 10, 43]);
            let flags = choices.pick(&[0u64, 0, 1, 1, 0x10, 0x11, 2, 1 << 40]);
            format!(
                "{}r1 = r6\nr2 = r10\nr2 += -48\nr3 = {size}\nr4 = {flags:#x} ll\ncall 20\n{}",
                bytes_at(48, &[7; 48]),
                mix_words(6)
            )
        }
        10 => {
            let size = choices.pick(&[4, 8, 20, 256, 260, 5, 16]);
            format!(
                "{}r1 = r6\nr2 = r10\nr2 += -264\nr3 = {size}\ncall 30\n",
                bytes_at(264, &[9; 264])
            )
        }
        11 => {
            let size = choices.pick(&[4, 8, 16, 20, 24]);
            format!(
                "{}r1 = r6\nr2 = r10\nr2 += -24\nr3 = {size}\ncall 29\n{}",
                bytes_at(24, &[7; 24]),
                mix_words(3)
            )
        }
        _ => mtu_call(choices, len),
    };
    call + MIX
}

fn mtu_call(choices: &mut Choices<'_>, len: usize) -> String {
    let index = choices.pick(&[0, 0, 1, 1, 2, -1]);
    let given = choices.pick(&[0, 0, 1, len as u32, 65_536, 65_537, u32::MAX]);
    let difference = match choices.below(4) {
        0 => choices.value() as i32,
        1 => choices.pick(&[65_536, 65_500, -65_536, i32::MAX]),
        _ => choices.between(-100, 100),
    };
    let flags = choices.pick(&[0u64, 0, 0, 1, 2, 1 << 33]);
    format!(
        "r1 = {given:#x} ll\n*(u64 *)(r10 - 8) = r1\nr1 = r6\nr2 = {index}\nr3 = r10\nr3 += -8\n\
         r4 = {difference}\nr5 = {flags:#x} ll\ncall 163\n{}",
        mix_words(1)
    )
}

/// A call of XDP.
fn xdp_call(choices: &mut Choices<'_>, len: usize) -> String {
    let near = len as i32;
    // Linux 6.18 computes a wrong length of a fragment from the least number, which has no
    // positive one: it must not be asked.
    let any = (choices.value() as i32).max(-i32::MAX);
    let call = match choices.below(8) {
        0 => {
            let delta = choices.pick(&[any, -14, -4, 4, 14, -200, -256, near - 14, near - 13]);
            format!("r1 = r6\nr2 = {delta}\ncall 44\n")
        }
        1 => {
            let delta = choices.pick(&[any, -4, -8, -32, 4, 8, -2, -252, -256, 0]);
            format!("r1 = r6\nr2 = {delta}\ncall 54\n")
        }
        2 => {
            let grow = 3776 - 256 - near;
            let delta =
                choices.pick(&[any, -4, 4, 100, 4096, grow, grow + 1, 14 - near, 13 - near]);
            format!("r1 = r6\nr2 = {delta}\ncall 65\n")
        }
        3 => "r1 = r6\ncall 188\n".to_owned(),
        4 => {
            let offset = length(choices, len);
            let count = 1 + choices.below(40);
            format!(
                "{}r1 = r6\nr2 = {offset:#x} ll\nr3 = r10\nr3 += -40\nr4 = {count}\ncall 189\n{}",
                bytes_at(40, &[7; 40]),
                mix_words(5)
            )
        }
        5 => {
            let offset = length(choices, len);
            let count = 1 + choices.below(40);
            format!(
                "{}r1 = r6\nr2 = {offset:#x} ll\nr3 = r10\nr3 += -40\nr4 = {count}\ncall 190\n",
                words(choices, 5)
            )
        }
        6 => mtu_call(choices, len),
        _ => {
            // What the program sees of the packet: bytes of metadata and of the linear part.
            return "r1 = *(u32 *)(r6 + 0)\nr2 = *(u32 *)(r6 + 4)\nr3 = *(u32 *)(r6 + 8)\n\
                    r2 -= r1\nr1 -= r3\nr9 *= 31\nr9 += r1\nr9 *= 31\nr9 += r2\n"
                .to_owned();
        }
    };
    call + MIX
}

/// Fields of `struct xdp_md`: interface and queue.
const XDP_FIELDS: &[u32] = &[12, 16];

fn xdp_room(choices: &mut Choices<'_>) -> Case {
    let mut case = sequence(choices, ProgramType::Xdp, XDP_FIELDS, xdp_call);
    let len = case.packet.len() as u32;
    if choices.one_in(3) {
        case.context = xdp_context(choices, len);
    }
    case
}

/// A context for a packet of so many bytes, sometimes a wrong one.
fn xdp_context(choices: &mut Choices<'_>, len: u32) -> Vec<u8> {
    let metadata = choices.pick(&[0, 0, 4, 16, 32, 2, 252, 256]);
    let end = match choices.below(4) {
        0 => choices.below(len + 10),
        _ => len,
    };
    let ifindex = choices.pick(&[0, 0, 1, 1, 7]);
    let queue = choices.pick(&[0, 0, 0, 0, 1]);
    let fields = [
        metadata,
        end,
        choices.pick(&[0, 0, 0, 0, 0, 0, 1]),
        ifindex,
        queue,
    ];
    let mut context: Vec<u8> = fields.into_iter().flat_map(u32::to_le_bytes).collect();
    match choices.below(10) {
        0 => context.truncate(choices.below(20) as usize),
        1 => context.resize(30, 0),
        2 => context.resize(30, choices.below(2) as u8),
        _ => {}
    }
    context
}

fn xdp_fragments(choices: &mut Choices<'_>) -> Case {
    let mut case = sequence(choices, ProgramType::Xdp, XDP_FIELDS, |choices, _| {
        let len = choices.pick(&[3520, 3600, 7616, 9000, 20_000]);
        xdp_call(choices, len)
    });
    let len = choices.pick(&[
        3519, 3520, 3521, 3600, 7616, 7617, 9000, 20_000, 73_152, 73_153,
    ]);
    case.packet = (0..len).map(|at: u32| (at ^ at >> 8) as u8).collect();
    case.has_fragments = true;
    if choices.one_in(4) {
        case.context = xdp_context(choices, len);
    }
    case
}

fn redirection(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[ProgramType::Xdp, ProgramType::SchedCls]);
    let map = choices.pick(&[
        MapKind::Devmap,
        MapKind::DevmapHash,
        MapKind::Cpumap,
        MapKind::Xskmap,
    ]);
    let fields: &[u32] = if kind == ProgramType::Xdp {
        XDP_FIELDS
    } else {
        SKB_FIELDS
    };
    let mut case = sequence(choices, kind, fields, |choices, _| {
        let index = choices.pick(&[0, 1, 1, 2, -1]);
        let flags = match choices.below(8) {
            0 => choices.value(),
            _ => choices.pick(&[0, 0, 1, 2, 3, 4, 8, 16, 24]),
        };
        let call = match (kind, choices.below(5)) {
            (ProgramType::Xdp, 0..=3) => format!(
                "r1 = {MAP:#x} ll\nr2 = {}\nr3 = {flags:#x} ll\ncall 51\n",
                choices.below(6)
            ),
            (ProgramType::Xdp, _) | (_, 0) => {
                format!("r1 = {index}\nr2 = {flags:#x} ll\ncall 23\n")
            }
            (_, 1) => format!("r1 = {index}\nr2 = {flags:#x} ll\ncall 155\n"),
            (_, 2) => {
                let size = choices.pick(&[20, 20, 24, 8]);
                format!(
                    "{}r1 = {index}\nr2 = r10\nr2 += -24\nr3 = {size}\nr4 = {flags:#x} ll\ncall 152\n",
                    bytes_at(24, &[0; 24])
                )
            }
            _ => format!("r1 = r6\nr2 = {index}\nr3 = {flags:#x} ll\ncall 13\n"),
        };
        call + MIX
    });
    if kind == ProgramType::Xdp {
        let params = MapParams {
            map_type: map.number(),
            key_size: 4,
            value_size: 4,
            max_entries: 4,
            ..MapParams::default()
        };
        case.maps = vec![Setup(params, None)];
    }
    case
}

fn lwt(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[
        ProgramType::LwtIn,
        ProgramType::LwtOut,
        ProgramType::LwtXmit,
    ]);
    // These have no field for the time, and no bytes in front of the network header.
    let fields = &[0, 4, 8, 16, 20, 24, 28, 68];
    sequence(choices, kind, fields, |choices, len| {
        let call = match (kind, choices.below(6)) {
            (ProgramType::LwtXmit, 0) => {
                let (to, flags) = (length(choices, len), flags(choices));
                format!("r1 = r6\nr2 = {to:#x} ll\nr3 = {flags:#x} ll\ncall 38\n")
            }
            (ProgramType::LwtXmit, 1) => {
                let (count, flags) = (choices.below(60), flags(choices));
                format!("r1 = r6\nr2 = {count}\nr3 = {flags:#x} ll\ncall 43\n")
            }
            (ProgramType::LwtXmit, 2) => {
                let offset = length(choices, len);
                format!(
                    "{}r1 = r6\nr2 = {offset:#x} ll\nr3 = r10\nr3 += -16\nr4 = 16\nr5 = 0\ncall 9\n",
                    words(choices, 2)
                )
            }
            (_, 3) => {
                let len = length(choices, len);
                format!("r1 = r6\nr2 = {len:#x} ll\ncall 39\n")
            }
            (_, 4) => "r1 = r6\ncall 24\n".to_owned(),
            _ => {
                let offset = length(choices, len);
                format!(
                    "{}r1 = r6\nr2 = {offset:#x} ll\nr3 = r10\nr3 += -16\nr4 = 16\ncall 26\n{}",
                    bytes_at(16, &[7; 16]),
                    mix_words(2)
                )
            }
        };
        call + MIX
    })
}

fn perf(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[
        ProgramType::Xdp,
        ProgramType::SchedCls,
        ProgramType::SocketFilter,
        ProgramType::CgroupSkb,
        ProgramType::LwtXmit,
    ]);
    let params = MapParams {
        map_type: MapKind::PerfEventArray.number(),
        key_size: 4,
        value_size: 4,
        max_entries: 3,
        ..MapParams::default()
    };
    let is_tc = kind == ProgramType::SchedCls;
    let mut case = sequence(choices, kind, &[], |choices, len| {
        let flags = match choices.below(6) {
            0 => choices.value(),
            _ => {
                let bytes = choices.pick(&[0, 0, 1, len as u64 - 15, len as u64, len as u64 + 1]);
                bytes << 32 | choices.pick(&[0, 1, 2, 3, 0xffff_ffff])
            }
        };
        let size = 1 + choices.below(24);
        let call = match choices.below(4) {
            0 if is_tc => format!("r1 = {MAP:#x} ll\nr2 = {flags:#x} ll\ncall 22\n"),
            1 if is_tc => {
                let size = choices.pick(&[24, 24, 16]);
                format!(
                    "{}r1 = {MAP:#x} ll\nr2 = {flags:#x} ll\nr3 = r10\nr3 += -24\nr4 = {size}\n\
                     call 55\n{}",
                    bytes_at(24, &[7; 24]),
                    mix_words(3)
                )
            }
            _ => format!(
                "{}r1 = r6\nr2 = {MAP:#x} ll\nr3 = {flags:#x} ll\nr4 = r10\nr4 += -24\n\
                 r5 = {size}\ncall 25\n",
                words(choices, 3)
            ),
        };
        call + MIX
    });
    case.maps = vec![Setup(params, None)];
    if kind == ProgramType::CgroupSkb {
        case.text = case.text.replace("r0 ^= r9\n", "r0 ^= r9\nr0 &= 1\n");
    }
    case
}

fn absent(choices: &mut Choices<'_>) -> Case {
    sequence(choices, ProgramType::SchedCls, SKB_FIELDS, |choices, _| {
        let call = match choices.below(9) {
            0 => "r1 = r6\ncall 17\n".to_owned(),
            1 => "r1 = r6\ncall 24\n".to_owned(),
            2 => "r1 = r6\ncall 151\n".to_owned(),
            3 => {
                let flags = flags(choices);
                format!(
                    "{}r1 = r6\nr2 = {}\nr3 = r10\nr3 += -32\nr4 = {}\nr5 = {flags:#x} ll\n\
                     call 66\n{}",
                    bytes_at(32, &[7; 32]),
                    choices.below(3),
                    choices.pick(&[8, 28, 32]),
                    mix_words(4)
                )
            }
            4 => {
                let (helper, size) = (choices.pick(&[84, 85, 99]), choices.pick(&[12, 36, 20]));
                let flags = flags(choices);
                let netns = choices.pick(&[-1, 0, 5]);
                return format!(
                    "{}r1 = r6\nr2 = r10\nr2 += -40\nr3 = {size}\nr4 = {netns}\n\
                     r5 = {flags:#x} ll\ncall {helper}\nif r0 == 0 goto +2\nr1 = r0\ncall 86\n\
                     r9 += 1\n",
                    words(choices, 5)
                );
            }
            5 => "r1 = r6\ncall 47\n".to_owned(),
            6 => format!(
                "{}r1 = r10\nr1 += -24\nr2 = {}\nr3 = {}\ncall {}\n{}",
                bytes_at(24, &[7; 24]),
                1 + choices.below(24),
                choices.pick(&[0, 8]),
                choices.pick(&[112, 114]),
                mix_words(3)
            ),
            7 => format!("r1 = {}\ncall 123\n", choices.pick(&[0, 60, -1])),
            _ => format!("r1 = r6\nr2 = {}\ncall 83\n", choices.pick(&[0, 60, -1])),
        };
        call + MIX
    })
}

/// Programs that return what they see of inputs, right and wrong ones.
fn inputs(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[
        ProgramType::Xdp,
        ProgramType::SchedCls,
        ProgramType::SchedAct,
        ProgramType::SocketFilter,
        ProgramType::CgroupSkb,
        ProgramType::LwtIn,
        ProgramType::LwtXmit,
        ProgramType::FlowDissector,
        ProgramType::Netfilter,
        ProgramType::SkLookup,
        ProgramType::Syscall,
        ProgramType::RawTracepoint,
    ]);
    let mut packet = frame(choices);
    if choices.one_in(3) {
        packet.truncate(choices.below(60) as usize);
    }
    let random = |choices: &mut Choices<'_>, len: usize| -> Vec<u8> {
        (0..len).map(|_| choices.below(256) as u8).collect()
    };
    let mut context = Vec::new();
    let text = match kind {
        ProgramType::Xdp => {
            let len = packet.len() as u32;
            if choices.one_in(2) {
                context = xdp_context(choices, len);
            }
            format!("r6 = r1\nr9 = 0\n{}", end(XDP_FIELDS))
        }
        ProgramType::FlowDissector => {
            if choices.one_in(2) {
                context = vec![0; choices.pick(&[56, 56, 52, 57])];
                let at = choices.pick(&[48, 48, 48, 49, 50, 10]);
                context[at] = choices.pick(&[0, 1, 3, 9]);
            }
            let (offset, value) = (2 * choices.below(2), choices.below(0x10000));
            format!(
                "r6 = r1\nr7 = *(u64 *)(r6 + 144)\n*(u16 *)(r7 + {offset}) = {value}\n\
                 r9 = *(u32 *)(r7 + 48)\n*(u64 *)(r10 - 8) = 7\nr1 = r6\nr2 = 0\nr3 = r10\n\
                 r3 += -8\nr4 = 8\ncall 26\n{MIX}{}r0 = r9\nexit",
                mix_words(1)
            )
        }
        ProgramType::Netfilter => {
            if choices.one_in(2) {
                context = vec![0; choices.pick(&[48, 48, 48, 2, 1, 49])];
                context[0] = choices.pick(&[0, 1, 2, 3, 3, 4, 5]);
                if let Some(family) = context.get_mut(1) {
                    *family = choices.pick(&[2, 2, 2, 10, 10, 7]);
                }
                if choices.one_in(8) {
                    *context.last_mut().expect("it is not empty") = 1;
                }
            }
            format!("r0 = {}\nexit", choices.below(2))
        }
        ProgramType::SkLookup => {
            if choices.percent(80) {
                packet.clear();
            }
            context = vec![0; 72];
            context[8..12]
                .copy_from_slice(&choices.pick(&[2u32, 2, 10, 10, 0, 0x1_0002]).to_le_bytes());
            context[12] = choices.pick(&[6, 17]);
            let addresses = random(choices, 46);
            context[16..62].copy_from_slice(&addresses);
            context[38..40].fill(0);
            match choices.below(12) {
                0 => context[62] = 1,
                1 => context[64] = 1,
                2 => context[0] = 1,
                3 => context.truncate(choices.below(73) as usize),
                4 => context.push(choices.below(2) as u8),
                _ => {}
            }
            let fields: String = [8, 12, 16, 20, 24, 28, 32, 40, 44, 48, 52, 56, 60, 64]
                .iter()
                .map(|at| format!("r1 = *(u32 *)(r6 + {at})\nr9 *= 31\nr9 += r1\n"))
                .collect();
            format!("r6 = r1\nr9 = 0\n{fields}r9 &= 1\nr0 = r9\nexit")
        }
        ProgramType::Syscall => {
            if choices.percent(80) {
                packet.clear();
            }
            context = random(choices, 16);
            "r6 = r1\nr9 = *(u64 *)(r6 + 0)\nr1 = *(u64 *)(r6 + 8)\nr9 *= r1\n\
             *(u64 *)(r6 + 8) = r9\nr0 = r9\nexit"
                .to_owned()
        }
        ProgramType::RawTracepoint => {
            if choices.percent(80) {
                packet.clear();
            }
            let len = choices.pick(&[16, 24, 96, 97, 104]);
            context = random(choices, len);
            "r6 = r1\nr9 = *(u64 *)(r6 + 0)\nr1 = *(u64 *)(r6 + 8)\nr9 *= r1\nr0 = r9\nexit"
                .to_owned()
        }
        _ => {
            if choices.one_in(2) {
                context = skb_context(choices, packet.len() as u32);
            }
            let fields: &[u32] = match kind {
                ProgramType::SchedCls | ProgramType::SchedAct => {
                    &[0, 4, 8, 16, 20, 24, 28, 32, 36, 40, 48, 64, 160, 164, 176]
                }
                _ => &[0, 4, 8, 16, 20, 24, 28, 32, 36, 40, 48, 64],
            };
            let mut text = format!("r6 = r1\nr9 = 0\n{}", end(fields));
            if kind == ProgramType::CgroupSkb {
                text = text.replace("r0 ^= r9\n", "r0 ^= r9\nr0 &= 1\n");
            }
            text
        }
    };
    Case {
        packet,
        context,
        ..Case::new(kind, text)
    }
}

/// A context for a packet of so many bytes, sometimes a wrong one.
fn skb_context(choices: &mut Choices<'_>, len: u32) -> Vec<u8> {
    let mut context = vec![0; 192];
    let mut put = |at: usize, value: u32| {
        context[at..at + 4].copy_from_slice(&value.to_le_bytes());
    };
    for at in [8, 32, 36, 48, 52, 56, 60, 64, 152, 156, 184, 188] {
        put(at, choices.value() as u32);
    }
    put(40, choices.pick(&[0, 0, 1, 1, 5]));
    put(
        160,
        choices.pick(&[
            0,
            0,
            len,
            len,
            len + 5,
            len.saturating_sub(15),
            65_536,
            65_537,
        ]),
    );
    put(164, choices.pick(&[0, 0, 1, 65_535, 65_536]));
    put(176, choices.pick(&[0, 0, 100]));
    match choices.below(6) {
        0 => context[choices.below(192) as usize] = 1,
        1 => context.truncate(choices.below(192) as usize),
        2 => context.resize(200, choices.below(2) as u8),
        _ => {}
    }
    context
}

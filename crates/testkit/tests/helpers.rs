//! Helpers in the checked engine and in the running kernel: equal results.

use std::fs;

use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory, Permission};
use isa::ebpf::{RawInsn, assemble, decode, encode};
use kernel::maps::{Host, Map, RunGuard, ValueLayout};
use kernel::programs::SKB;
use program::MapParams;
use spec::SplitMix;
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;
use sys::Errno;
use sys::bpf::{Map as KernelMap, MapRequest, ProgLoad, TestRun};
use vm::{System, World};

use beebox_testkit::ebpf::Choices;

/// Constants in programs that stand for the map of an index, and for its first value.
const MAP: u64 = 0x6d61_7000_0000_0000;
const VALUE: u64 = 0x7661_6c00_0000_0000;

/// Opcode of `ld_imm64`, and its source registers for a map and for a value of a map.
const LD_IMM64: u8 = 0x18;
const PSEUDO_MAP_FD: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;

/// `BPF_F_RDONLY_PROG`.
const RDONLY_PROG: MapFlags = MapFlags::RDONLY_PROG;

/// A map of a program, and the first value of one that is frozen.
#[derive(Clone, Debug)]
struct Setup(MapParams, Option<Vec<u8>>);

/// A program with its maps.
struct Case {
    text: String,
    maps: Vec<Setup>,
}

impl From<String> for Case {
    fn from(text: String) -> Case {
        Case {
            text,
            maps: Vec::new(),
        }
    }
}

impl Case {
    /// The instructions, with what `resolve` says in place of maps and values: the source
    /// register and both immediates.
    fn slots(&self, resolve: impl Fn(bool, u32) -> (u8, [i32; 2])) -> Vec<RawInsn> {
        let mut slots = encode(&assemble(&self.text).unwrap()).unwrap();
        for at in 0..slots.len() {
            let high = slots.get(at + 1).map_or(0, |slot| slot.imm as u32);
            let constant = u64::from(high) << 32 | u64::from(slots[at].imm as u32);
            let is_map = constant & !0xff == MAP;
            if slots[at].code == LD_IMM64 && (is_map || constant & !0xff == VALUE) {
                let (source, [low, high]) = resolve(is_map, constant as u32 & 0xff);
                slots[at].regs |= source << 4;
                (slots[at].imm, slots[at + 1].imm) = (low, high);
            }
        }
        slots
    }
}

/// The low half of what a tc program returns for a packet, in the checked engine, and the
/// packet.
fn ours(case: &Case, packet: &[u8]) -> (u32, Vec<u8>) {
    let system = own_system();
    let maps: Vec<Map> = case.maps.iter().map(our_map).collect();
    let guard = RunGuard::new();
    let (mut packet, mut context) = (packet.to_vec(), vec![0; SKB.size]);
    let len = packet.len() as u32;
    let mut memory = Memory::new();
    let data = memory.add_packet(&mut packet).unwrap();
    SKB.set_packet(&mut context, memory.address(data) as u32, len, len);
    let context = memory.add_context(&mut context).unwrap();
    for map in &maps {
        (memory.add_map("map", map, &guard, Permission::ReadWrite)).unwrap();
    }
    let slots = case.slots(|is_map, index| {
        let address = match is_map {
            true => memory.map_pointer(index).unwrap(),
            false => memory.numbered_map_value(index, 0).unwrap(),
        };
        (0, [address as i32, (address >> 32) as i32])
    });
    let entry = Entry {
        arguments: [memory.address(context), 0, 0, 0, 0],
    };
    let mut calls = Calls::resolved(|number, arguments, memory| {
        let mut random = SplitMix::new(0);
        let mut clock = || 0;
        let mut world = World {
            system: &system,
            ..World::new(&mut random, &mut clock, 0)
        };
        let helper = kernel::helpers::find(number)?;
        Some(helper(arguments, memory, &mut world))
    });
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut calls,
        packet: None,
    };
    let program = CheckedProgram::new(decode(&slots));
    let outcome = program.run(cx, entry, &Limits::default()).outcome;
    (outcome.unwrap() as u32, packet)
}

/// What helpers report of this thread.
fn own_system() -> System {
    let link = fs::read_link("/proc/thread-self").unwrap_or_default();
    let pid = link
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    let name = fs::read("/proc/thread-self/comm").unwrap_or_default();
    let mut comm = [0; 16];
    for (to, from) in comm.iter_mut().zip(name.trim_ascii_end()) {
        *to = *from;
    }
    System {
        pid: pid.unwrap_or_default(),
        tgid: std::process::id(),
        comm,
        ..System::DEFAULT
    }
}

fn our_map(Setup(params, value): &Setup) -> Map {
    let layout = ValueLayout::plain(params.value_size as usize);
    let map = Map::create(params, layout, &Host::default()).unwrap();
    if let Some(value) = value {
        map.update(&[0; 4], value, 0).unwrap();
    }
    map
}

fn kernel_map(Setup(params, value): &Setup) -> Result<KernelMap, Errno> {
    let map = KernelMap::create(&MapRequest {
        map_type: params.map_type,
        key_size: params.key_size,
        value_size: params.value_size,
        max_entries: params.max_entries,
        flags: params.flags.0,
        ..MapRequest::default()
    })?;
    if let Some(value) = value {
        map.update(&[0; 4], value)?;
        map.freeze()?;
    }
    Ok(map)
}

/// The same in the running kernel; `None` where it cannot be asked.
fn theirs(case: &Case, packet: &[u8]) -> Option<(u32, Vec<u8>)> {
    const WHAT: &str = "helpers and the running kernel's";
    let maps: Result<Vec<KernelMap>, Errno> = case.maps.iter().map(kernel_map).collect();
    let maps = oracle::found(WHAT, maps)?;
    let slots = case.slots(|is_map, index| {
        let source = if is_map {
            PSEUDO_MAP_FD
        } else {
            PSEUDO_MAP_VALUE
        };
        (source, [maps[index as usize].descriptor() as i32, 0])
    });
    let request = ProgLoad::new(ProgramType::SchedCls.number(), &slots);
    let (loaded, _) = oracle::found(WHAT, request.load().map_err(|refused| refused.errno))?;
    let mut out = [0; 1024];
    let result = loaded.test_run(&TestRun::on(packet), &mut out, &mut []);
    let result = result.unwrap();
    Some((result.retval, out[..result.data_len].to_vec()))
}

/// Compares a number of generated programs on generated packets: result and packet.
fn compare<C: Into<Case>>(seed: u64, mut program: impl FnMut(&mut Choices<'_>, usize) -> C) {
    let mut choices = Choices::from_seed(seed);
    for _ in 0..PROGRAMS {
        let len = 34 + choices.below(100) as usize;
        let packet: Vec<u8> = (0..len).map(|_| choices.below(256) as u8).collect();
        let case = program(&mut choices, len).into();
        let Some(theirs) = theirs(&case, &packet) else {
            return;
        };
        let (text, maps) = (&case.text, &case.maps);
        assert_eq!(
            ours(&case, &packet),
            theirs,
            "{text}\n{maps:?}\n{packet:02x?}"
        );
    }
}

/// Programs of each comparison.
const PROGRAMS: u32 = 1000;

/// Folds `r0` and the words of a buffer below the frame pointer into 32 bits.
fn digest(buffer: u32, words: u32) -> String {
    let word = |at| {
        let offset = buffer - 8 * at;
        format!("r1 = *(u64 *)(r10 - {offset})\nr0 *= 31\nr0 += r1\n")
    };
    let mixed: String = (0..words).map(word).collect();
    format!("{mixed}r1 = r0\nr1 >>= 32\nr0 ^= r1\nexit")
}

/// Stores bytes in a buffer below the frame pointer, filled up with zeros to whole words.
fn bytes_at(buffer: u32, bytes: &[u8]) -> String {
    let store = |(at, word): (u32, &[u8])| {
        let mut whole = [0; 8];
        whole[..word.len()].copy_from_slice(word);
        let (number, offset) = (u64::from_le_bytes(whole), buffer - 8 * at);
        format!("r1 = {number:#x} ll\n*(u64 *)(r10 - {offset}) = r1\n")
    };
    (0..).zip(bytes.chunks(8)).map(store).collect()
}

/// A read-only map whose value is this text, zero-terminated.
fn constant(text: &[u8]) -> Setup {
    let mut value = text.to_vec();
    value.resize(128, 0);
    let params = MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size: 128,
        max_entries: 1,
        flags: RDONLY_PROG,
        ..MapParams::default()
    };
    Setup(params, Some(value))
}

/// Stores random words below the frame pointer.
fn words(choices: &mut Choices<'_>, count: u32) -> String {
    let store = |slot| {
        let value = choices.value();
        format!("r1 = {value:#x} ll\n*(u64 *)(r10 - {}) = r1\n", 8 * slot)
    };
    (1..=count).map(store).collect()
}

#[test]
fn checksum_differences_are_those_of_linux() {
    compare(28, |choices, _| {
        let stores = words(choices, 8);
        let mut side = |register: u32| {
            let size = 4 * choices.below(9);
            let (from, size_in) = (register, register + 1);
            match (size, choices.one_in(8)) {
                (0, true) => format!("r{from} = 0\nr{size_in} = 0\n"),
                _ => format!(
                    "r{from} = r10\nr{from} += -{}\nr{size_in} = {size}\n",
                    size.max(4)
                ),
            }
        };
        let (from, to) = (side(1), side(3));
        let seed = choices.value();
        format!("{stores}{from}{to}r5 = {seed:#x} ll\ncall 28\nexit")
    });
}

#[test]
fn checksums_of_any_size_are_those_of_linux() {
    compare(29, |choices, _| {
        let stores = words(choices, 2);
        let size = 1 + choices.below(16);
        format!("{stores}r1 = r10\nr1 += -16\nr2 = {size}\nr3 = 0\nr4 = 0\nr5 = 0\ncall 28\nexit")
    });
}

#[test]
fn packet_bytes_and_errors_are_those_of_linux() {
    compare(26, |choices, packet| {
        let len = 1 + choices.below(16);
        let offset = match choices.below(4) {
            0 => choices.value(),
            1 => packet as u64 - choices.below(20) as u64,
            _ => choices.below(packet as u32).into(),
        };
        // The error, mixed with every byte that was written.
        format!(
            "*(u64 *)(r10 - 8) = 7\n*(u64 *)(r10 - 16) = 7\nr2 = {offset:#x} ll\nr3 = r10\n\
             r3 += -16\nr4 = {len}\ncall 26\nr1 = *(u64 *)(r10 - 8)\nr0 *= 31\nr0 += r1\n\
             r1 = *(u64 *)(r10 - 16)\nr0 *= 31\nr0 += r1\nr1 = r0\nr1 >>= 32\nr0 ^= r1\nexit"
        )
    });
}

#[test]
fn relative_packet_bytes_are_those_of_linux() {
    compare(68, |choices, packet| {
        let len = 1 + choices.below(16);
        let offset = match choices.below(4) {
            0 => choices.value(),
            1 => packet as u64 - choices.below(34) as u64,
            _ => choices.below(packet as u32).into(),
        };
        let (start, digest) = (choices.below(3), digest(16, 2));
        format!(
            "*(u64 *)(r10 - 8) = 7\n*(u64 *)(r10 - 16) = 7\nr2 = {offset:#x} ll\nr3 = r10\n\
             r3 += -16\nr4 = {len}\nr5 = {start}\ncall 68\n{digest}"
        )
    });
}

#[test]
fn stored_packet_bytes_are_those_of_linux() {
    compare(9, |choices, packet| {
        let len = 1 + choices.below(16);
        let offset = match choices.below(4) {
            0 => choices.value(),
            1 => packet as u64 - choices.below(20) as u64,
            _ => choices.below(packet as u32).into(),
        };
        let flags = choices.pick(&[0u64, 0, 0, 1, 2, 3, 4, 1 << 32]);
        let words = words(choices, 2);
        format!(
            "r6 = r1\n{words}r1 = r6\nr2 = {offset:#x} ll\nr3 = r10\nr3 += -16\nr4 = {len}\n\
             r5 = {flags:#x} ll\ncall 9\nexit"
        )
    });
}

#[test]
fn replaced_checksums_are_those_of_linux() {
    compare(10, |choices, packet| {
        let helper = choices.pick(&[10, 11]);
        let offset = match choices.below(8) {
            0 => choices.value(),
            1 => packet as u64 - choices.below(4) as u64,
            _ => u64::from(choices.below(packet as u32)) & !1,
        };
        let marks = match helper {
            11 => choices.pick(&[0, 0x10, 0x20, 0x30, 0x60, 0x90]),
            _ => 0,
        };
        let flags = match choices.below(10) {
            0 => choices.value(),
            _ => marks | choices.pick(&[0, 2, 2, 4, 4, 3, 8]),
        };
        let from = if choices.one_in(2) {
            0
        } else {
            choices.value()
        };
        let to = choices.value();
        format!(
            "r2 = {offset:#x} ll\nr3 = {from:#x} ll\nr4 = {to:#x} ll\nr5 = {flags:#x} ll\n\
             call {helper}\nexit"
        )
    });
}

#[test]
fn numbers_in_text_are_those_of_linux() {
    compare(105, |choices, _| {
        let helper = choices.pick(&[105, 106]);
        let mut text: Vec<u8> = (0..choices.below(3))
            .map(|_| choices.pick(b" \t\n\xa0\x0b"))
            .collect();
        text.extend(choices.pick(&["", "", "-", "+", "--"]).bytes());
        text.extend(choices.pick(&["", "", "0", "0x", "0X", "00"]).bytes());
        let digits = choices.pick(&["01", "01234567", "0123456789", "0123456789abcdefABCDEFgx"]);
        let count = choices.pick(&[0, 1, 3, 10, 18, 19, 20, 22, 70]);
        text.extend((0..count).map(|_| choices.pick(digits.as_bytes())));
        text.extend(choices.pick(&["", " ", "z", "9223372036854775808"]).bytes());
        text.resize(text.len().clamp(1, 120), 0);
        let flags = match choices.below(8) {
            0 => choices.value(),
            _ => choices.pick(&[0, 0, 0, 8, 10, 16, 2]),
        };
        let len = 1 + choices.below(text.len() as u32);
        let stores = bytes_at(136, &text);
        let digest = digest(8, 1);
        format!(
            "{stores}*(u64 *)(r10 - 8) = 7\nr1 = r10\nr1 += -136\nr2 = {len}\n\
             r3 = {flags:#x} ll\nr4 = r10\nr4 += -8\ncall {helper}\n{digest}"
        )
    });
}

#[test]
fn compared_text_is_as_in_linux() {
    compare(182, |choices, _| {
        let second: Vec<u8> = (0..choices.below(20))
            .map(|_| choices.pick(b"ab\xff"))
            .collect();
        let mut first = second.clone();
        first.resize(24, 0);
        for _ in 0..choices.below(2) {
            first[choices.below(20) as usize] = choices.pick(b"ab\xff\0");
        }
        let len = 1 + choices.below(24);
        let stores = bytes_at(24, &first);
        Case {
            text: format!(
                "{stores}r1 = r10\nr1 += -24\nr2 = {len}\nr3 = {VALUE:#x} ll\ncall 182\nexit"
            ),
            maps: vec![constant(&second)],
        }
    });
}

#[test]
fn formatted_text_is_as_in_linux() {
    compare(165, |choices, _| {
        let kinds = [
            "d", "i", "u", "x", "X", "ld", "lu", "lx", "lld", "llX", "c", "px", "s", "pI4", "pi4",
            "pI6", "pi6",
        ];
        let flags = ["", "", "", "0", "-", "+", " ", "+0", "-0", "- "];
        let widths = ["", "", "1", "5", "12", "20"];
        let (mut format, mut data) = (String::new(), Vec::new());
        for _ in 0..choices.below(5) {
            let kind = choices.pick(&kinds);
            // What follows an address behind the end of the buffer reads wrong arguments.
            if format.contains("%pI") || format.contains("%pi") {
                break;
            }
            let is_plain = kind.len() > 1 && kind.starts_with('p');
            if !is_plain {
                format += &format!("%{}{}{kind}", choices.pick(&flags), choices.pick(&widths));
            } else {
                format += &format!("%{kind}");
            }
            format += choices.pick(&["", " ", "%%", ", "]);
            if matches!(kind, "s") {
                format += " ";
            }
            let is_address = kind == "s" || kind.contains('I') || kind.contains("pi");
            data.push(match is_address {
                true => choices.pick(&[0, 1, u64::MAX]),
                false => choices.value(),
            });
        }
        format += choices.pick(&["", "!", "end"]);
        data.resize(data.len() + choices.below(2) as usize, 5);
        let size = choices.below(65);
        let bytes: Vec<u8> = data.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stores = bytes_at(64, &[0; 64]) + &bytes_at(160, &bytes);
        let (len, digest) = (bytes.len(), digest(64, 8));
        let pointer = match len {
            0 => "r4 = 0".to_owned(),
            _ => "r4 = r10\nr4 += -160".to_owned(),
        };
        Case {
            text: format!(
                "{stores}r1 = r10\nr1 += -64\nr2 = {size}\nr3 = {VALUE:#x} ll\n{pointer}\n\
                 r5 = {len}\ncall 165\n{digest}"
            ),
            maps: vec![constant(format.as_bytes())],
        }
    });
}

#[test]
fn values_without_keys_are_those_of_linux() {
    compare(87, |choices, _| {
        let kind = choices.pick(&[MapKind::Queue, MapKind::Stack]);
        let params = MapParams {
            map_type: kind.number(),
            value_size: 8,
            max_entries: 3,
            ..MapParams::default()
        };
        let mut text = "r6 = 0\n*(u64 *)(r10 - 8) = 0\n".to_owned();
        for _ in 0..12 {
            let mix = "r1 = *(u64 *)(r10 - 8)\nr6 *= 31\nr6 += r0\nr6 *= 31\nr6 += r1\n";
            let value = format!("r1 = {MAP:#x} ll\nr2 = r10\nr2 += -8\n");
            text += &match choices.below(4) {
                0 => format!("{value}call 88\n{mix}"),
                1 => format!("{value}call 89\n{mix}"),
                _ => {
                    let store = words(choices, 1);
                    let flags = choices.pick(&[0u64, 0, 2, 1, 3, 1 << 32]);
                    format!("{store}{value}r3 = {flags:#x} ll\ncall 87\n{mix}")
                }
            };
        }
        text += &format!("r0 = r6\n{}", digest(8, 1));
        Case {
            text,
            maps: vec![Setup(params, None)],
        }
    });
}

#[test]
fn records_in_rings_are_counted_as_in_linux() {
    compare(130, |choices, _| {
        let params = MapParams {
            map_type: MapKind::Ringbuf.number(),
            max_entries: 4096,
            ..MapParams::default()
        };
        let mut text = "r6 = 0\n".to_owned() + &bytes_at(400, &[7; 400]);
        let mut count = 0;
        for _ in 0..15 {
            let end = match choices.below(3) {
                0 => "",
                1 => "*(u64 *)(r0 + 0) = 5\nr1 = r0\nr2 = 0\ncall 132\n",
                _ => "r1 = r0\nr2 = 1\ncall 133\n",
            };
            if !end.is_empty() {
                let size = choices.pick(&[8u32, 9, 100, 1000, 2040, 4080, 4088, 5000, 1 << 30]);
                let flags = choices.pick(&[0u64, 0, 0, 0, 1, 1 << 32]);
                let at = count;
                count += 1;
                text += &format!(
                    "r1 = {MAP:#x} ll\nr2 = {size}\nr3 = {flags:#x} ll\ncall 131\nr6 *= 31\n\
                     if r0 == 0 goto full{at}\nr6 += 1\n{end}full{at}:\n"
                );
                continue;
            }
            let size = choices.below(401);
            let flags = choices.pick(&[0u64, 0, 0, 1, 2, 3, 4, 1 << 32]);
            let query = choices.pick(&[0u64, 0, 1, 2, 3, 4, 5, 1 << 32]);
            text += &format!(
                "r1 = {MAP:#x} ll\nr2 = r10\nr2 += -400\nr3 = {size}\nr4 = {flags:#x} ll\n\
                 call 130\nr6 *= 31\nr6 += r0\nr1 = {MAP:#x} ll\nr2 = {query:#x} ll\n\
                 call 134\nr6 *= 31\nr6 += r0\n"
            );
        }
        text += &format!("r0 = r6\n{}", digest(400, 1));
        Case {
            text,
            maps: vec![Setup(params, None)],
        }
    });
}

#[test]
fn the_process_is_reported_as_in_linux() {
    compare(16, |choices, _| {
        let size = 1 + choices.below(24);
        let clear = bytes_at(24, &[7; 24]);
        let call = match choices.below(4) {
            0 => "call 14\n".to_owned(),
            1 => "call 15\n".to_owned(),
            2 => format!("r1 = r10\nr1 += -24\nr2 = {size}\ncall 16\n"),
            _ => {
                let (dev, ino) = (choices.value(), choices.value());
                format!(
                    "r1 = {dev:#x} ll\nr2 = {ino:#x} ll\nr3 = r10\nr3 += -24\nr4 = {size}\n\
                     call 120\n"
                )
            }
        };
        format!("{clear}{call}{}", digest(24, 3))
    });
}

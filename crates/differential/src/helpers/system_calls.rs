//! The family of system calls that programs make: maps, types and programs by bpf(2).
//!
//! Every descriptor is closed by the program that opened it, as it would stay open in this
//! process. Linux 6.18 waits for itself when a program makes a map that fails late, and for
//! local storage: maps are plain arrays and hashes here, with arguments that are valid or
//! refused at once.

use btf::{Builder, Encoding, Int};
use program::MapParams;
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;

use super::Family;
use super::case::{Case, MAP, Setup};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("system calls", calls)];

/// Places below the frame pointer: descriptors, data of keys and values, attributes.
const SLOTS: u32 = 4;
const KEY: u32 = 40;
const DATA: u32 = 160;
const ATTRIBUTES: u32 = 400;
/// Size of `union bpf_attr`, and of attributes with something behind it.
const SIZE: u32 = 168;
const LONG_SIZE: u32 = 208;

/// Places in the value of the map that holds what is loaded.
const LICENSE: usize = 0;
const INSNS: usize = 16;
const TYPES: usize = 512;
const VALUE_SIZE: usize = 1024;

/// A program that is made step by step.
struct Code {
    text: String,
    labels: u32,
}

impl Code {
    fn put(&mut self, line: &str) {
        self.text += line;
        self.text += "\n";
    }

    /// Sets all attributes to zero.
    fn clear(&mut self) {
        self.put("r1 = 0");
        for at in 0..LONG_SIZE / 8 {
            self.put(&format!("*(u64 *)(r10 - {}) = r1", ATTRIBUTES - 8 * at));
        }
    }

    fn set32(&mut self, member: u32, value: u32) {
        self.put(&format!("r1 = {value:#x} ll"));
        self.put(&format!("*(u32 *)(r10 - {}) = r1", ATTRIBUTES - member));
    }

    fn set64(&mut self, member: u32, value: u64) {
        self.put(&format!("r1 = {value:#x} ll"));
        self.put(&format!("*(u64 *)(r10 - {}) = r1", ATTRIBUTES - member));
    }

    /// Sets a member to an address: that of a register and an offset.
    fn set_address(&mut self, member: u32, register: u32, offset: i64) {
        self.put(&format!("r1 = r{register}\nr1 += {offset}"));
        self.put(&format!("*(u64 *)(r10 - {}) = r1", ATTRIBUTES - member));
    }

    /// Sets a member to a descriptor of a slot, or to one that is not open.
    fn set_descriptor(&mut self, member: u32, choices: &mut Choices<'_>) {
        match choices.below(12) {
            0 => self.set32(member, choices.pick(&[1000, u32::MAX])),
            _ => {
                let slot = 8 * (1 + choices.below(SLOTS));
                self.put(&format!("r1 = *(u64 *)(r10 - {slot})"));
                self.put(&format!("*(u32 *)(r10 - {}) = r1", ATTRIBUTES - member));
            }
        }
    }

    /// Calls bpf(2) and adds its result to the digest; a descriptor that it opens gets a slot.
    fn call(&mut self, command: u32, size: u32, slot: Option<u32>) {
        if let Some(slot) = slot {
            self.close(slot);
        }
        self.labels += 1;
        let label = self.labels;
        self.put(&format!(
            "r1 = {command}\nr2 = r10\nr2 += -{ATTRIBUTES}\nr3 = {size}\ncall 166\n\
             if r0 s<= 0 goto done{label}"
        ));
        if let Some(slot) = slot {
            self.put(&format!("*(u64 *)(r10 - {}) = r0", 8 * slot));
        }
        self.put(&format!("r0 = 1\ndone{label}:"));
        self.digest();
    }

    /// Closes the descriptor of a slot.
    fn close(&mut self, slot: u32) {
        let slot = 8 * slot;
        self.put(&format!(
            "r1 = *(u64 *)(r10 - {slot})\ncall 168\nr1 = -1\n*(u64 *)(r10 - {slot}) = r1"
        ));
        self.digest();
    }

    fn digest(&mut self) {
        self.put("r9 *= 31\nr9 += r0");
    }
}

/// Types: an integer and an array of it.
fn types() -> Vec<u8> {
    let mut builder = Builder::new();
    let name = builder.string("int");
    builder.int(
        name,
        Int {
            size: 4,
            bits: 32,
            offset: 0,
            encoding: Encoding::SIGNED,
        },
    );
    builder.finish()
}

/// Programs of type socket_filter: accepted, refused, and one that uses a map.
const FILTERS: [&str; 5] = [
    "r0 = 0\nexit",
    "r0 = r2\nexit",
    "r0 = 0\n*(u64 *)(r10 - 1024) = r0\nexit",
    "r0 = 0",
    "r1 = 0x0 ll\n*(u32 *)(r10 - 4) = r0\nexit",
];
/// The one that looks up a key in a map, whose descriptor is put into its first instruction.
const LOOKUP: &str = "r1 = 0x0 ll\nr2 = 0\n*(u64 *)(r10 - 16) = r2\n*(u64 *)(r10 - 8) = r2\n\
                      r2 = r10\nr2 += -16\ncall 1\nr0 = 0\nexit";

fn calls(choices: &mut Choices<'_>) -> Case {
    let filter = match choices.below(3) {
        0 => LOOKUP,
        _ => choices.pick(&FILTERS),
    };
    let insns = isa::ebpf::assemble(filter).expect("a program that is assembled");
    let mut slots = isa::ebpf::encode(&insns).expect("instructions have an encoding");
    if filter == LOOKUP {
        slots[0].set_src(1);
    }
    let bytes: Vec<u8> = slots.iter().flat_map(|slot| slot.to_le_bytes()).collect();
    let mut blob = types();
    let types_len = blob.len() as u32;
    if choices.one_in(3) {
        let at = choices.below(types_len) as usize;
        blob[at] = choices.below(256) as u8;
    }
    let mut value = vec![0; VALUE_SIZE];
    value[LICENSE..LICENSE + 4].copy_from_slice(b"GPL\0");
    value[INSNS..INSNS + bytes.len()].copy_from_slice(&bytes);
    value[TYPES..TYPES + blob.len()].copy_from_slice(&blob);

    let mut code = Code {
        text: String::new(),
        labels: 0,
    };
    code.put("r9 = 0\nr1 = 0");
    for at in 1..=ATTRIBUTES / 8 {
        code.put(&format!("*(u64 *)(r10 - {}) = r1", 8 * at));
    }
    code.put("r1 = -1");
    for slot in 1..=SLOTS {
        code.put(&format!("*(u64 *)(r10 - {}) = r1", 8 * slot));
    }
    code.put(&format!(
        "r1 = {MAP:#x} ll\nr2 = r10\nr2 += -{KEY}\ncall 1\nif r0 == 0 goto end\nr7 = r0"
    ));
    for _ in 0..2 + choices.below(7) {
        code.clear();
        match choices.below(13) {
            0..=3 => create(&mut code, choices),
            4 | 5 => change(&mut code, choices),
            6 => freeze(&mut code, choices),
            7 => load_types(&mut code, choices, types_len),
            8..=10 => load_program(&mut code, choices, slots.len() as u32, filter == LOOKUP),
            11 => code.close(1 + choices.below(SLOTS)),
            _ => refused(&mut code, choices),
        }
    }
    for slot in 1..=SLOTS {
        code.close(slot);
    }
    code.put("r0 = r9\nr1 = r9\nr1 >>= 32\nr0 ^= r1\nend:\nexit");
    let params = MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size: VALUE_SIZE as u32,
        max_entries: 1,
        ..MapParams::default()
    };
    Case {
        kind: ProgramType::Syscall,
        packet: Vec::new(),
        ..Case::tc(choices, code.text).with_map(Setup(params, Some(value)))
    }
}

/// `BPF_MAP_CREATE` of an array or hash.
fn create(code: &mut Code, choices: &mut Choices<'_>) {
    let is_array = choices.one_in(2);
    let mut kind = if is_array {
        MapKind::Array
    } else {
        MapKind::Hash
    }
    .number();
    let mut key_size = if is_array {
        4
    } else {
        choices.pick(&[1, 4, 8, 16])
    };
    let mut value_size = choices.pick(&[1, 4, 8, 64]);
    let mut entries = 1 + choices.below(4);
    let mut flags = match is_array {
        true => choices.pick(&[0, 0, MapFlags::RDONLY.0, MapFlags::WRONLY.0]),
        false => choices.pick(&[0, MapFlags::NO_PREALLOC.0]),
    };
    match choices.below(16) {
        0 => kind = choices.pick(&[0, 100]),
        1 if is_array => key_size = choices.pick(&[0, 3, 8]),
        2 => value_size = choices.pick(&[0, u32::MAX]),
        3 => entries = 0,
        4 => flags |= choices.pick(&[1 << 30, 1 << 16, MapFlags::RDONLY.0 | MapFlags::WRONLY.0]),
        5 => code.set64(64, 1),
        6 => code.set32(choices.pick(&[92, 96, 160]), 1),
        7 => code.set32(52, 1),
        8 => code.set32(60, 1),
        _ => {}
    }
    code.set32(0, kind);
    code.set32(4, key_size);
    code.set32(8, value_size);
    code.set32(12, entries);
    code.set32(16, flags);
    code.set32(28, u32::from_le_bytes(*b"a_.9"));
    // Members behind the size are zero.
    let size = choices.pick(&[SIZE, 92, 32, 20, LONG_SIZE]);
    code.call(0, size, Some(1 + choices.below(SLOTS)));
}

/// `BPF_MAP_UPDATE_ELEM` or `BPF_MAP_DELETE_ELEM`.
fn change(code: &mut Code, choices: &mut Choices<'_>) {
    let command = choices.pick(&[2, 2, 3]);
    code.set_descriptor(0, choices);
    code.set_address(8, 10, -i64::from(DATA));
    // The first byte decides the index in an array, with a zero behind it.
    let key = choices.below(5);
    code.put(&format!("r1 = {key}\n*(u64 *)(r10 - {DATA}) = r1"));
    if command == 2 {
        code.set_address(16, 10, -i64::from(DATA));
        code.set64(24, choices.pick(&[0, 0, 0, 1, 2, 3, 4, 8, 1 << 32]));
    }
    match choices.below(12) {
        0 => code.set64(8, choices.pick(&[0, 1, 1 << 60])),
        1 => code.set64(16, choices.pick(&[0, 1, 1 << 60])),
        2 => code.set32(choices.pick(&[24, 32, 40]), 1),
        _ => {}
    }
    let size = choices.pick(&[SIZE, SIZE, 32, LONG_SIZE, 16]);
    code.call(command, size, None);
}

/// `BPF_MAP_FREEZE`.
fn freeze(code: &mut Code, choices: &mut Choices<'_>) {
    code.set_descriptor(0, choices);
    if choices.one_in(8) {
        code.set32(4, 1);
    }
    code.call(22, choices.pick(&[SIZE, 4]), None);
}

/// `BPF_BTF_LOAD`.
fn load_types(code: &mut Code, choices: &mut Choices<'_>, len: u32) {
    code.set_address(0, 7, TYPES as i64);
    code.set32(16, len);
    code.set32(28, 7);
    match choices.below(12) {
        0 => code.set64(0, choices.pick(&[0, 1 << 60])),
        1 => code.set32(16, choices.pick(&[0, 8, len - 1, 1 << 25])),
        // A buffer without level or size.
        2 => code.set64(8, 1),
        3 => code.set32(20, 100),
        4 => code.set32(24, choices.pick(&[1, 16, 0x8000_0000])),
        5 => code.set32(32, choices.pick(&[1, 1 << 17])),
        6 => code.set32(40, 1),
        _ => {}
    }
    let size = choices.pick(&[SIZE, 40, 32]);
    code.call(18, size, Some(1 + choices.below(SLOTS)));
    // The length of the log.
    code.put(&format!("r0 = *(u32 *)(r10 - {})", ATTRIBUTES - 28));
    code.digest();
}

/// `BPF_PROG_LOAD`.
fn load_program(code: &mut Code, choices: &mut Choices<'_>, count: u32, has_map: bool) {
    if has_map {
        let slot = 8 * (1 + choices.below(SLOTS));
        let at = INSNS + 4;
        code.put(&format!(
            "r1 = *(u64 *)(r10 - {slot})\n*(u32 *)(r7 + {at}) = r1"
        ));
    }
    code.set32(0, ProgramType::SocketFilter.number());
    code.set32(4, count);
    code.set_address(8, 7, INSNS as i64);
    code.set_address(16, 7, LICENSE as i64);
    code.set32(48, u32::from_le_bytes(*b"a_.9"));
    code.set32(140, 7);
    match choices.below(14) {
        0 => code.set32(0, choices.pick(&[0, 1000])),
        1 => code.set32(4, choices.pick(&[0, 1_000_001])),
        2 => code.set64(8, choices.pick(&[0, 1 << 60])),
        3 => code.set64(16, choices.pick(&[0, 1 << 60])),
        4 => code.set32(44, choices.pick(&[1 << 30, 1, 8])),
        5 => code.set32(48, u32::from_le_bytes(*b"a b\0")),
        6 => code.set64(32, 1),
        7 => code.set32(28, 100),
        8 => code.set32(24, 1 << 20),
        9 => code.set32(72, 1000),
        _ => {}
    }
    let size = choices.pick(&[SIZE, 144, 72]);
    code.call(5, size, Some(1 + choices.below(SLOTS)));
    code.put(&format!("r0 = *(u32 *)(r10 - {})", ATTRIBUTES - 140));
    code.digest();
}

/// Commands that are refused at once.
fn refused(code: &mut Code, choices: &mut Choices<'_>) {
    let command = choices.below(40);
    match command {
        14 => {
            code.set32(0, choices.pick(&[0, u32::MAX]));
            code.set32(8, choices.pick(&[0, 1, 1 << 3]));
            code.set32(16, choices.below(2));
            code.call(14, SIZE, None);
        }
        17 => {
            code.set32(8, choices.pick(&[1000, u32::MAX]));
            code.set32(24, choices.below(2));
            code.call(17, SIZE, None);
        }
        28 => {
            code.set32(0, choices.pick(&[1000, u32::MAX]));
            code.set32(64, choices.below(2));
            code.call(28, SIZE, None);
        }
        // Programs may not give these; something behind the attributes is worse for others.
        command => {
            code.set32(SIZE, 1);
            code.call(command, LONG_SIZE, None);
        }
    }
}

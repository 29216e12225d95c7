//! A program that calls helpers, with its maps and its input.

use isa::ebpf::{RawInsn, assemble, encode};
use program::MapParams;
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;

use crate::ebpf::Choices;

/// Constants in programs that stand for the map of an index, and for its first value.
pub(super) const MAP: u64 = 0x6d61_7000_0000_0000;
pub(super) const VALUE: u64 = 0x7661_6c00_0000_0000;

/// Opcode of `ld_imm64`, and its source register for functions.
const LD_IMM64: u8 = 0x18;
const PSEUDO_FUNC: u8 = 4;

/// A map of a program, and the first value of one that is frozen.
#[derive(Clone, Debug)]
pub(super) struct Setup(pub(super) MapParams, pub(super) Option<Vec<u8>>);

/// A program with its maps and its input.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) kind: ProgramType,
    pub(super) text: String,
    pub(super) maps: Vec<Setup>,
    pub(super) packet: Vec<u8>,
    pub(super) context: Vec<u8>,
    /// The program takes packets in several pieces.
    pub(super) has_fragments: bool,
}

impl Case {
    /// A tc program without maps, on a packet of random bytes.
    pub(super) fn tc(choices: &mut Choices<'_>, text: String) -> Case {
        let len = 34 + choices.below(100) as usize;
        Case {
            kind: ProgramType::SchedCls,
            text,
            maps: Vec::new(),
            packet: (0..len).map(|_| choices.below(256) as u8).collect(),
            context: Vec::new(),
            has_fragments: false,
        }
    }

    pub(super) fn with_map(self, map: Setup) -> Case {
        Case {
            maps: vec![map],
            ..self
        }
    }

    /// The instructions, with what `resolve` says in place of maps and values: the source
    /// register and both immediates.
    pub(super) fn slots(&self, resolve: impl Fn(bool, u32) -> (u8, [i32; 2])) -> Vec<RawInsn> {
        let insns = assemble(&self.text).unwrap_or_else(|error| panic!("{error}\n{}", self.text));
        let mut slots = encode(&insns).expect("assembled instructions have an encoding");
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

/// True for maps that the sockets of the world are put into.
pub(super) fn holds_sockets(params: &MapParams) -> bool {
    let kinds = [MapKind::Sockmap, MapKind::Sockhash];
    kinds.iter().any(|kind| kind.number() == params.map_type)
}

/// First slots of the functions to which instructions refer by address, ascending.
pub(super) fn callbacks(slots: &[RawInsn]) -> Vec<u32> {
    let referred = slots.iter().zip(1..).filter_map(|(slot, next)| {
        let is_reference = slot.code == LD_IMM64 && slot.src() == PSEUDO_FUNC;
        is_reference.then(|| (next + slot.imm) as u32)
    });
    let mut starts: Vec<u32> = referred.collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Folds `r0` and the words of a buffer below the frame pointer into 32 bits.
pub(super) fn digest(buffer: u32, words: u32) -> String {
    let word = |at| {
        let offset = buffer - 8 * at;
        format!("r1 = *(u64 *)(r10 - {offset})\nr0 *= 31\nr0 += r1\n")
    };
    let mixed: String = (0..words).map(word).collect();
    format!("{mixed}r1 = r0\nr1 >>= 32\nr0 ^= r1\nexit")
}

/// Stores bytes in a buffer below the frame pointer, filled up with zeros to whole words.
pub(super) fn bytes_at(buffer: u32, bytes: &[u8]) -> String {
    let store = |(at, word): (u32, &[u8])| {
        let mut whole = [0; 8];
        whole[..word.len()].copy_from_slice(word);
        let (number, offset) = (u64::from_le_bytes(whole), buffer - 8 * at);
        format!("r1 = {number:#x} ll\n*(u64 *)(r10 - {offset}) = r1\n")
    };
    (0..).zip(bytes.chunks(8)).map(store).collect()
}

/// A read-only map whose value is this text, zero-terminated.
pub(super) fn constant(text: &[u8]) -> Setup {
    let mut value = text.to_vec();
    value.resize(128, 0);
    let params = MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size: 128,
        max_entries: 1,
        flags: MapFlags::RDONLY_PROG,
        ..MapParams::default()
    };
    Setup(params, Some(value))
}

/// Stores random words below the frame pointer.
pub(super) fn words(choices: &mut Choices<'_>, count: u32) -> String {
    let store = |slot| {
        let value = choices.value();
        format!("r1 = {value:#x} ll\n*(u64 *)(r10 - {}) = r1\n", 8 * slot)
    };
    (1..=count).map(store).collect()
}

//! A program that calls helpers, with its maps and its input.

use btf::TypeId;
use isa::ebpf::{PseudoCall, PseudoLoad, RawInsn, assemble, encode};
use program::MapParams;
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;

use super::program_types::{LOCKED_SIZE, TYPES, holder};
use testkit::ebpf::Choices;

/// Constants in programs that stand for the map of an index, and for its first value.
pub(super) const MAP: u64 = 0x6d61_7000_0000_0000;
pub(super) const VALUE: u64 = 0x7661_6c00_0000_0000;

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
    /// The program and its maps have the types of [`super::program_types`].
    pub(super) has_types: bool,
    /// The function that gets the cookie of an exception.
    pub(super) exception_callback: Option<String>,
    /// The CPUs of several runs with the same maps, of which the results count together, and
    /// data and context of the last one; without any the program runs once, on any CPU.
    pub(super) cpus: Vec<u32>,
}

impl Case {
    /// A program without maps and input.
    pub(super) fn new(kind: ProgramType, text: String) -> Case {
        Case {
            kind,
            text,
            maps: Vec::new(),
            packet: Vec::new(),
            context: Vec::new(),
            has_fragments: false,
            has_types: false,
            exception_callback: None,
            cpus: Vec::new(),
        }
    }

    /// A tc program with a map whose value holds objects, and one whose values have resilient
    /// locks.
    pub(super) fn with_all_maps(text: &str) -> Case {
        let array = |value_type: TypeId, value_size: u32| MapParams {
            map_type: MapKind::Array.number(),
            key_size: 4,
            value_size,
            value_type,
            max_entries: 2,
            ..MapParams::default()
        };
        let maps = [
            array(TYPES.holder, holder::SIZE),
            array(TYPES.locked, LOCKED_SIZE),
        ];
        Case {
            packet: vec![0; 64],
            has_types: true,
            maps: maps.map(|params| Setup(params, None)).into(),
            ..Case::new(ProgramType::SchedCls, text.to_owned())
        }
    }

    /// A tc program without maps, on a packet of random bytes.
    pub(super) fn tc(choices: &mut Choices<'_>, text: String) -> Case {
        let len = 34 + choices.below(100) as usize;
        Case {
            packet: (0..len).map(|_| choices.below(256) as u8).collect(),
            ..Case::new(ProgramType::SchedCls, text)
        }
    }

    pub(super) fn with_map(self, map: Setup) -> Case {
        Case {
            maps: vec![map],
            ..self
        }
    }

    /// The first slot of the exception callback, which comes last in all slots.
    pub(super) fn exception_callback_at(&self, slots: &[RawInsn]) -> Option<usize> {
        let callback = self.exception_callback.as_ref()?;
        Some(slots.len() - assembled(callback).len())
    }

    /// The CPUs that the program runs on, one after the other; `None` for any.
    pub(super) fn runs(&self) -> Vec<Option<u32>> {
        match self.cpus[..] {
            [] => vec![None],
            _ => self.cpus.iter().copied().map(Some).collect(),
        }
    }

    /// The result of all runs.
    pub(super) fn result(&self, results: &[u32]) -> u32 {
        let mix = |sum: u32, result: &u32| sum.wrapping_mul(31).wrapping_add(*result);
        results.iter().fold(0, mix)
    }

    /// The instructions, with what `resolve` says in place of maps and values: the source
    /// register and both immediates.
    pub(super) fn slots(&self, resolve: impl Fn(bool, u32) -> (u8, [i32; 2])) -> Vec<RawInsn> {
        let mut slots = assembled(&self.text);
        if let Some(callback) = &self.exception_callback {
            slots.extend(assembled(callback));
        }
        for at in 0..slots.len() {
            let high = slots.get(at + 1).map_or(0, |slot| slot.imm as u32);
            let constant = u64::from(high) << 32 | u64::from(slots[at].imm as u32);
            let is_map = constant & !0xff == MAP;
            if slots[at].is_wide_load() && (is_map || constant & !0xff == VALUE) {
                let (source, [low, high]) = resolve(is_map, constant as u32 & 0xff);
                slots[at].regs |= source << 4;
                (slots[at].imm, slots[at + 1].imm) = (low, high);
            }
        }
        slots
    }
}

/// True for maps that the sockets of the network are put into.
pub(super) fn holds_sockets(params: &MapParams) -> bool {
    let kinds = [MapKind::Sockmap, MapKind::Sockhash];
    kinds.iter().any(|kind| kind.number() == params.map_type)
}

fn assembled(text: &str) -> Vec<RawInsn> {
    let insns = assemble(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    encode(&insns).expect("assembled instructions have an encoding")
}

/// First slots of the functions to which instructions refer by address, ascending; with those
/// that they call if `with_called`.
pub(super) fn callbacks(slots: &[RawInsn], with_called: bool) -> Vec<u32> {
    let referred = slots.iter().zip(1..).filter_map(|(slot, next)| {
        let is_reference = slot.pseudo_load() == Some(PseudoLoad::Func);
        let is_call = slot.pseudo_call() == Some(PseudoCall::Local);
        (is_reference || is_call && with_called).then(|| (next + slot.imm) as u32)
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

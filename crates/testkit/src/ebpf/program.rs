//! A program as it was generated, and the forms in which it can be run.

use super::draft::{Item, link};
use super::scope::{alu, load, mov};
use super::{Choices, idioms, near_miss};
use isa::ebpf::{AluOp, Insn, Operand, Reg, Size, Width};

/// Dialect of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Everything that our engines run.
    Engines,
    /// What Linux's verifier lets pass in an XDP program: accesses to the stack
    /// are aligned, atomics only touch the stack, an address that depends on data
    /// is compared with the end, counts and divisors are in range, little is
    /// executed.
    Kernel,
}

/// Entry of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Our engines: `r1` is the address of the memory, `r2` its length.
    Memory,
    /// The kernel: `r1` is the address of a `struct xdp_md`, the memory is the
    /// packet.
    Xdp,
}

/// Composition of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Idioms by number: as they are, and near misses.
    pub(super) idioms: Vec<(u8, bool)>,
    /// Near misses by kind.
    pub(super) near_misses: [u32; near_miss::KINDS],
    /// Loops that only `may_goto` ends.
    pub endless: u32,
}

impl Notes {
    pub(super) fn idiom(&mut self, number: usize, is_near_miss: bool) {
        self.idioms.push((number as u8, is_near_miss));
    }

    pub(super) fn near_miss(&mut self, kind: usize) {
        self.near_misses[kind] += 1;
    }
}

const _: () = assert!(idioms::ALL.len() <= u8::MAX as usize);

/// A generated program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The entry first.
    pub(super) functions: Vec<Vec<Item>>,
    /// Bytes of memory that it needs; with fewer it returns 0 at once.
    pub memory_len: usize,
    /// Composition.
    pub notes: Notes,
}

impl Program {
    /// Its slots, for that entry.
    pub fn code(&self, entry: Entry) -> Vec<Insn> {
        let mut begin: Vec<Item> = match entry {
            Entry::Memory => vec![
                Item::Plain(mov(Reg::R3, Reg::R1)),
                Item::Plain(alu(AluOp::Add, Width::W64, Reg::R3, Operand::Reg(Reg::R2))),
                Item::Plain(mov(Reg::R2, Reg::R1)),
            ],
            Entry::Xdp => vec![
                Item::Plain(load(Size::W, Reg::R3, Reg::R1, 4)),
                Item::Plain(load(Size::W, Reg::R2, Reg::R1, 0)),
            ],
        };
        begin.extend_from_slice(&self.functions[0]);
        let rest = self.functions[1..].iter().map(Vec::as_slice);
        let all: Vec<&[Item]> = std::iter::once(begin.as_slice()).chain(rest).collect();
        link(&all)
    }

    /// Initial memory of the required length, from one of several distributions.
    pub fn memory(&self, choices: &mut Choices<'_>) -> Vec<u64> {
        let words = self.memory_len.div_ceil(8);
        let distribution = choices.below(8);
        let repeated = choices.value();
        let word = |_| match distribution {
            0 => repeated,
            1..4 => choices.value(),
            4 => choices.value() & choices.bits() & choices.bits(),
            _ => choices.bits(),
        };
        (0..words).map(word).collect()
    }
}

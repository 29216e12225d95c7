//! What compilers write in several instructions because BPF has no single one.
//!
//! A pass forward follows values within straight-line code: each register holds
//! a value with a number, whole or shifted by a constant. Where two shifts of one
//! value meet again in an `or`, the three are a rotation.
//!
//! A rewrite never needs a register that the program did not give it. Often the
//! whole value is still in one, and is rotated from there; the shifts are left out
//! as dead where nothing else reads them. Where it was shifted in place, that
//! shift is left out, if nothing else reads its result, so that the register still
//! holds the whole value when the rotation is made in it.
//!
//! Cost: linear, a few nanoseconds an instruction.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Width};

use crate::analysis::{Fact, Halves, Transfer};

/// Another way to do an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// Not at all: what it makes is only wanted as part of a later rewrite.
    Skip,
    /// `dst` is `src` rotated left; a rotation of the low half zeroes the upper
    /// one.
    Rotate {
        width: Width,
        dst: Reg,
        src: Reg,
        left: u8,
    },
}

impl Rewrite {
    /// What it reads and writes.
    pub(crate) fn transfer(self) -> Transfer {
        match self {
            Rewrite::Skip => Transfer::pure(Halves::NONE, Halves::NONE),
            Rewrite::Rotate {
                width, dst, src, ..
            } => {
                let reads = match width {
                    Width::W32 => Halves::low(src),
                    Width::W64 => Halves::both(src),
                };
                Transfer::pure(reads, Halves::both(dst))
            }
        }
    }
}

/// The number of a value; equal numbers are equal values.
type Value = u32;

/// What a register holds.
#[derive(Clone, Copy, Debug)]
struct Holding {
    /// Of the low half.
    low: Value,
    /// Of the whole register.
    whole: Value,
    shifted: Option<Shifted>,
}

/// A value shifted by a constant, not zero.
#[derive(Clone, Copy, Debug)]
struct Shifted {
    /// The value before, as far as the width goes.
    value: Value,
    width: Width,
    left: bool,
    count: u8,
    /// Where.
    slot: u32,
    /// Something has read it since.
    is_read: bool,
}

struct Finder<'a> {
    holdings: [Holding; Reg::COUNT],
    next: Value,
    rewrites: &'a mut Vec<Rewrite>,
    facts: &'a mut [Fact],
}

/// Finds rewrites; notes them in `facts` and gives them their own transfers.
pub(crate) fn find(
    insns: &[Insn],
    facts: &mut [Fact],
    transfers: &mut [Transfer],
    rewrites: &mut Vec<Rewrite>,
) {
    let first = rewrites.len();
    let mut finder = Finder {
        holdings: [Holding {
            low: 0,
            whole: 0,
            shifted: None,
        }; Reg::COUNT],
        next: 1,
        rewrites,
        facts,
    };
    for (slot, &insn) in insns.iter().enumerate() {
        if finder.facts[slot].is_target {
            finder.forget_all();
        }
        let chosen = slot > 0 && finder.facts[slot - 1].is_selection;
        if chosen {
            // The move may be done or not.
            finder.mark_read(transfers[slot]);
            transfers[slot].written().for_each(|reg| finder.forget(reg));
        } else {
            finder.follow(slot, insn, transfers[slot]);
        }
    }
    if rewrites.len() > first {
        for (fact, transfer) in facts.iter().zip(transfers) {
            if fact.rewrite != 0 {
                *transfer = rewrites[fact.rewrite as usize - 1].transfer();
            }
        }
    }
}

impl Finder<'_> {
    fn fresh(&mut self) -> Value {
        self.next += 1;
        self.next
    }

    /// The register holds something new.
    fn forget(&mut self, reg: Reg) {
        let (low, whole) = (self.fresh(), self.fresh());
        self.holdings[reg.index()] = Holding {
            low,
            whole,
            shifted: None,
        };
    }

    fn forget_all(&mut self) {
        (0..Reg::COUNT as u8)
            .filter_map(Reg::new)
            .for_each(|reg| self.forget(reg));
    }

    fn follow(&mut self, slot: usize, insn: Insn, transfer: Transfer) {
        if let Insn::Alu {
            op,
            width,
            dst,
            src,
        } = insn
        {
            match (op, src) {
                (AluOp::Or | AluOp::Xor | AluOp::Add, Operand::Reg(src))
                    if self.rotate(slot, width, dst, src) =>
                {
                    self.forget(dst);
                    return;
                }
                (AluOp::Mov, Operand::Reg(src)) => {
                    self.mark_read(transfer);
                    return self.copy(width, dst, src);
                }
                (AluOp::Lsh | AluOp::Rsh, Operand::Imm(count)) => {
                    return self.shift(slot, op == AluOp::Lsh, width, dst, count);
                }
                _ => {}
            }
        }
        self.mark_read(transfer);
        for reg in transfer.written() {
            self.forget(reg);
        }
        if let Insn::Jump { .. } | Insn::MayGoto { .. } = insn {
            // Whatever is wanted where it leads must be there.
            for holding in &mut self.holdings {
                if let Some(shifted) = &mut holding.shifted {
                    shifted.is_read = true;
                }
            }
        }
    }

    fn mark_read(&mut self, transfer: Transfer) {
        for reg in transfer.read() {
            if let Some(shifted) = &mut self.holdings[reg.index()].shifted {
                shifted.is_read = true;
            }
        }
    }

    fn copy(&mut self, width: Width, dst: Reg, src: Reg) {
        let Holding { low, whole, .. } = self.holdings[src.index()];
        let whole = match width {
            Width::W64 => whole,
            Width::W32 => self.fresh(),
        };
        self.holdings[dst.index()] = Holding {
            low,
            whole,
            shifted: None,
        };
    }

    fn shift(&mut self, slot: usize, left: bool, width: Width, dst: Reg, count: i32) {
        let before = self.holdings[dst.index()];
        self.forget(dst);
        let (value, bits) = match width {
            Width::W32 => (before.low, 32),
            Width::W64 => (before.whole, 64),
        };
        // A shift of something shifted is not a shift of what that was.
        if count > 0 && count < bits {
            self.holdings[dst.index()].shifted = Some(Shifted {
                value,
                width,
                left,
                count: count as u8,
                slot: slot as u32,
                is_read: false,
            });
        }
    }

    /// Whether `dst op= src` joins two shifts to a rotation.
    fn rotate(&mut self, slot: usize, width: Width, dst: Reg, src: Reg) -> bool {
        let (Some(a), Some(b)) = (
            self.holdings[dst.index()].shifted,
            self.holdings[src.index()].shifted,
        ) else {
            return false;
        };
        let bits = match a.width {
            Width::W32 => 32,
            Width::W64 => 64,
        };
        // Halves shifted as such have nothing above them to join.
        let joins = a.value == b.value
            && a.left != b.left
            && a.width == b.width
            && (a.width == width || width == Width::W64)
            && a.count + b.count == bits;
        if !joins {
            return false;
        }
        let (width, left) = (a.width, if a.left { a.count } else { b.count });
        let src = match self.holder(a.value, width) {
            Some(src) => src,
            // Only `dst` held it, until it was shifted there.
            None if !a.is_read && self.facts[a.slot as usize].rewrite == 0 => {
                self.rewrite(a.slot as usize, Rewrite::Skip);
                dst
            }
            None => return false,
        };
        self.rewrite(
            slot,
            Rewrite::Rotate {
                width,
                dst,
                src,
                left,
            },
        );
        true
    }

    /// A register that holds the value, as far as the width goes.
    fn holder(&self, value: Value, width: Width) -> Option<Reg> {
        let holds = |reg: &Reg| match width {
            Width::W32 => self.holdings[reg.index()].low == value,
            Width::W64 => self.holdings[reg.index()].whole == value,
        };
        (0..10).filter_map(Reg::new).find(holds)
    }

    fn rewrite(&mut self, slot: usize, rewrite: Rewrite) {
        self.rewrites.push(rewrite);
        self.facts[slot].rewrite = self.rewrites.len() as u32;
    }
}

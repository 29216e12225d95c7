//! Common subexpression elimination for the length of the IPv4 header.
//!
//! A capture filter computes `4*([14]&0xf)` for each field behind the header: a packet
//! load, a mask, a shift and a copy to the index register. The packet does not change
//! during a run. Where the register holds that value on every path, the computation is
//! replaced by a copy to `r0`, which is mostly dead. The analysis is a forward
//! must-analysis over one value.
//!
//! Cost: one pass over the program, if it has two such loads and no loops.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Size, Width};

use super::{Finder, Rewrite};
use crate::analysis::Fact;

/// A register that holds the header length computed from the byte at an offset.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Length {
    reg: Reg,
    at: i32,
}

/// Data-flow state before a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No path reaches the slot.
    Unreached,
    Known(Option<Length>),
}

impl State {
    /// Meet of two paths.
    fn meet(self, other: State) -> State {
        match (self, other) {
            (State::Unreached, state) | (state, State::Unreached) => state,
            (one, another) if one == another => one,
            _ => State::Known(None),
        }
    }
}

/// Instructions that compute a length; the last one copies it to its register.
const PARTS: usize = 4;

/// Removes computations of lengths that a register already holds. `slots` are the one-byte
/// packet loads, in ascending order, of a program without back edges.
pub(in crate::analysis) fn find(
    insns: &[Insn],
    slots: impl Iterator<Item = usize>,
    facts: &mut [Fact],
    rewrites: &mut Vec<Rewrite>,
) {
    let lengths: Vec<(usize, Length)> = slots
        .filter_map(|slot| Some((slot, length(insns, facts, slot)?)))
        .collect();
    if lengths.len() < 2 {
        return;
    }
    let mut finder = Finder {
        insns,
        facts,
        rewrites,
    };
    let mut arriving = vec![State::Unreached; insns.len()];
    let mut lengths = lengths.into_iter().peekable();
    // The slot whose instruction completes a length, and that length.
    let mut completed = None;
    let mut state = State::Known(None);
    for slot in 0..insns.len() {
        state = state.meet(arriving[slot]);
        if let Some((_, length)) = lengths.next_if(|&(start, _)| start == slot) {
            if state == State::Known(Some(length)) {
                finder.remove_length(slot, length);
            }
            completed = Some((slot + PARTS - 1, length));
        }
        let fact = &finder.facts[slot];
        state = match (completed, state) {
            (Some((at, length)), _) if at == slot => State::Known(Some(length)),
            (_, State::Known(Some(held))) if fact.writes(held.reg) => State::Known(None),
            _ => state,
        };
        if let Some(target) = fact.jump() {
            arriving[target] = arriving[target].meet(state);
        }
        if fact.stops() {
            state = State::Unreached;
        }
    }
}

/// The length that the four instructions from a slot compute.
fn length(insns: &[Insn], facts: &[Fact], slot: usize) -> Option<Length> {
    let by_imm = |insn, op, imm| {
        insn == Insn::Alu {
            op,
            width: Width::W32,
            dst: Reg::R0,
            src: Operand::Imm(imm),
        }
    };
    let &[load, mask, shift, copy] = insns[slot..].first_chunk::<PARTS>()?;
    let Insn::PacketAbs {
        size: Size::B,
        imm: at,
    } = load
    else {
        return None;
    };
    let is_alone = facts[slot + 1..slot + PARTS]
        .iter()
        .all(|fact| !fact.is_target());
    match copy {
        Insn::Alu {
            op: AluOp::Mov,
            width: Width::W32,
            dst: reg,
            src: Operand::Reg(Reg::R0),
        } if reg != Reg::R0
            && is_alone
            && by_imm(mask, AluOp::And, 15)
            && by_imm(shift, AluOp::Lsh, 2) =>
        {
            Some(Length { reg, at })
        }
        _ => None,
    }
}

impl Finder<'_> {
    /// Removes the instructions that compute a length and keeps a copy to `r0`.
    fn remove_length(&mut self, slot: usize, length: Length) {
        let last = slot + PARTS - 1;
        for at in slot..last {
            self.rewrite(at, Rewrite::Skip);
        }
        self.rewrite(
            last,
            Rewrite::Copy {
                dst: Reg::R0,
                src: length.reg,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Optimizations;
    use crate::analysis::Analysis;
    use classic::text::{self, Form};
    use classic::{Rules, Semantics, check, convert};
    use lower::ClassicFilter;

    /// Number of lengths that are removed from a capture filter.
    fn removed(filter: &str) -> usize {
        let program = text::read(filter.as_bytes(), Some(Form::Asm)).expect(filter);
        let checked = check(&program, Rules::Capture).expect(filter);
        let lowered =
            ClassicFilter::from_converted(convert(&checked, Semantics::Capture)).into_code();
        let analysis = Analysis::of(&lowered, Optimizations::ALL);
        let is_copy = |rewrite: &&Rewrite| matches!(rewrite, Rewrite::Copy { .. });
        analysis.rewrites.iter().filter(is_copy).count()
    }

    const LENGTH: &str = "ldxb 4*([14]&0xf)\n";
    const USE: &str = "ldh [x + 14]\njeq #22, L\n";
    const ENDS: &str = "ldb [x + 26]\nret a\nL: ret #0\n";

    #[test]
    fn a_length_in_a_register_is_not_computed_again() {
        assert_eq!(removed(&[LENGTH, USE, LENGTH, ENDS].concat()), 1);
        assert_eq!(
            removed(&[LENGTH, USE, LENGTH, USE, LENGTH, ENDS].concat()),
            2
        );
    }

    #[test]
    fn the_length_must_be_available_on_every_path() {
        let both = [
            "ldb [0]\njeq #1, other\n",
            LENGTH,
            USE,
            "ja both\nother: ",
            LENGTH,
            USE,
            "both: ",
        ];
        assert_eq!(removed(&[&both.concat(), LENGTH, ENDS].concat()), 1);
        let around = [
            "ldb [0]\njeq #1, other\n",
            LENGTH,
            USE,
            "other: ",
            LENGTH,
            ENDS,
        ];
        assert_eq!(removed(&around.concat()), 0);
    }

    #[test]
    fn the_offset_and_the_register_must_be_the_same() {
        let other = "ldxb 4*([15]&0xf)\n";
        assert_eq!(removed(&[LENGTH, USE, other, ENDS].concat()), 0);
        assert_eq!(
            removed(&[LENGTH, USE, "tax\nldh [x + 1]\njeq #2, L\n", LENGTH, ENDS].concat()),
            0
        );
    }
}

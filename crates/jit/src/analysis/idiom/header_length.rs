//! Common subexpression elimination for the length of the IPv4 header.
//!
//! A capture filter computes `4*([14]&0xf)` for each field behind the header: a packet
//! load, a mask, a shift and a copy to the index register. The packet does not change
//! during a run. Where the register holds that value on every path, only the copy to `r0`
//! is left, which is mostly dead.
//!
//! Cost: one pass over the program, if it has two such loads and no loops.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Size, Width};

use super::{Finder, Rewrite};
use crate::analysis::Fact;

/// A register that holds the length that the load at this offset gives.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Length {
    reg: Reg,
    at: i32,
}

/// What is known where control is, whichever way it came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It does not come here.
    Unreached,
    Known(Option<Length>),
}

impl State {
    /// What holds by both ways.
    fn meet(self, other: State) -> State {
        match (self, other) {
            (State::Unreached, state) | (state, State::Unreached) => state,
            (one, another) if one == another => one,
            _ => State::Known(None),
        }
    }
}

/// Instructions of a length, the last of which copies it to its register.
const PARTS: usize = 4;

/// Leaves out lengths that are known. Packet loads of a byte stand in these slots of
/// a program whose jumps all lead forward.
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
    // Made at the slot of that number.
    let mut made = None;
    let mut state = State::Known(None);
    for slot in 0..insns.len() {
        state = state.meet(arriving[slot]);
        if let Some((_, length)) = lengths.next_if(|&(start, _)| start == slot) {
            if state == State::Known(Some(length)) {
                finder.leave_out(slot, length);
            }
            made = Some((slot + PARTS - 1, length));
        }
        let fact = &finder.facts[slot];
        state = match (made, state) {
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

/// The length that is made by the load at a slot and what follows it.
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
    /// Leaves out the instructions of a length, but for the copy in `r0`.
    fn leave_out(&mut self, slot: usize, length: Length) {
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
    use lower::Lowered;

    /// How many lengths of a capture filter are left out.
    fn left_out(filter: &str) -> usize {
        let program = text::read(filter.as_bytes(), Some(Form::Asm)).expect(filter);
        let checked = check(&program, Rules::Capture).expect(filter);
        let lowered = Lowered::from_classic(convert(&checked, Semantics::Capture));
        let analysis = Analysis::of(&lowered, Optimizations::ALL);
        let is_copy = |rewrite: &&Rewrite| matches!(rewrite, Rewrite::Copy { .. });
        analysis.rewrites.iter().filter(is_copy).count()
    }

    const LENGTH: &str = "ldxb 4*([14]&0xf)\n";
    const USE: &str = "ldh [x + 14]\njeq #22, L\n";
    const ENDS: &str = "ldb [x + 26]\nret a\nL: ret #0\n";

    #[test]
    fn a_length_that_is_held_is_left_out() {
        assert_eq!(left_out(&[LENGTH, USE, LENGTH, ENDS].concat()), 1);
        assert_eq!(
            left_out(&[LENGTH, USE, LENGTH, USE, LENGTH, ENDS].concat()),
            2
        );
    }

    #[test]
    fn it_must_be_held_whichever_way_control_came() {
        let both = [
            "ldb [0]\njeq #1, other\n",
            LENGTH,
            USE,
            "ja both\nother: ",
            LENGTH,
            USE,
            "both: ",
        ];
        assert_eq!(left_out(&[&both.concat(), LENGTH, ENDS].concat()), 1);
        let around = [
            "ldb [0]\njeq #1, other\n",
            LENGTH,
            USE,
            "other: ",
            LENGTH,
            ENDS,
        ];
        assert_eq!(left_out(&around.concat()), 0);
    }

    #[test]
    fn it_must_be_the_same() {
        let other = "ldxb 4*([15]&0xf)\n";
        assert_eq!(left_out(&[LENGTH, USE, other, ENDS].concat()), 0);
        assert_eq!(
            left_out(&[LENGTH, USE, "tax\nldh [x + 1]\njeq #2, L\n", LENGTH, ENDS].concat()),
            0
        );
    }
}

//! Reduces a program while a predicate still holds (delta debugging).
//!
//! Ranges of instructions are removed, with the jumps and calls across them shortened,
//! then constants are simplified. A reduced program can be unsafe, so the predicate
//! `still` must check safety too ([`reference`](super::reference) does). Each attempt is
//! one call of `still`; O(n log n) calls for n instructions if most can be removed.

use super::draft::with_distance;
use isa::ebpf::{AluOp, Callee, Imm64, Insn, Operand, Value64, Width};

/// The smallest program found that is `still` interesting; `program` itself when
/// nothing smaller is.
pub fn shrink(program: &[Insn], mut still: impl FnMut(&[Insn]) -> bool) -> Vec<Insn> {
    let mut best = program.to_vec();
    loop {
        let helped = drop_stretches(&mut best, &mut still) | simplify(&mut best, &mut still);
        if !helped {
            return best;
        }
    }
}

fn drop_stretches(best: &mut Vec<Insn>, still: &mut impl FnMut(&[Insn]) -> bool) -> bool {
    let mut helped = false;
    let mut stretch = (best.len() / 2).max(1);
    while stretch >= 1 {
        let mut at = best.len();
        while at > 0 {
            at = at.saturating_sub(stretch);
            let end = (at + stretch).min(best.len());
            let smaller = without(best, at, end);
            if smaller.len() < best.len() && still(&smaller) {
                *best = smaller;
                helped = true;
            }
        }
        stretch /= 2;
    }
    helped
}

fn simplify(best: &mut [Insn], still: &mut impl FnMut(&[Insn]) -> bool) -> bool {
    let mut helped = false;
    for at in 0..best.len() {
        let was = best[at];
        for simpler in simpler(was) {
            best[at] = simpler;
            if simpler != was && still(best) {
                helped = true;
                break;
            }
            best[at] = was;
        }
    }
    helped
}

/// The program without these slots (and the other half of a 64-bit immediate); jumps to
/// them go to the next slot.
fn without(program: &[Insn], start: usize, end: usize) -> Vec<Insn> {
    let is_second = |slot: usize| program.get(slot) == Some(&Insn::Imm64High);
    let start = start - usize::from(is_second(start));
    let end = end + usize::from(is_second(end));
    let moved = |slot: i64| match slot {
        slot if slot <= start as i64 => slot,
        slot if slot < end as i64 => start as i64,
        slot => slot - (end - start) as i64,
    };
    let mut result = Vec::with_capacity(program.len());
    for (at, &insn) in program.iter().enumerate() {
        if (start..end).contains(&at) {
            continue;
        }
        let here = moved(at as i64);
        let shortened = |off: i32| (moved(at as i64 + 1 + i64::from(off)) - here - 1) as i32;
        result.push(match insn {
            Insn::Jump { off, .. } | Insn::Goto { off } | Insn::MayGoto { off } => {
                with_distance(insn, shortened(off.into()))
            }
            Insn::GotoLong { off } => with_distance(insn, shortened(off)),
            Insn::Call(Callee::Local(off)) => Insn::Call(Callee::Local(shortened(off))),
            other => other,
        });
    }
    result
}

/// Each is simpler by an order without a circle, so rounds come to an end.
fn simpler(insn: Insn) -> Vec<Insn> {
    let smaller = |imm: i32| {
        [0, 1, imm / 2]
            .into_iter()
            .filter(move |&new| less(new, imm))
    };
    match insn {
        Insn::Alu {
            op,
            width,
            dst,
            src: Operand::Imm(imm),
        } => smaller(imm)
            .map(|imm| Insn::Alu {
                op,
                width,
                dst,
                src: Operand::Imm(imm),
            })
            .collect(),
        Insn::Store {
            size,
            base,
            off,
            src: Operand::Imm(imm),
        } => smaller(imm)
            .map(|imm| Insn::Store {
                size,
                base,
                off,
                src: Operand::Imm(imm),
            })
            .collect(),
        // A long constant becomes a short one; its second slot goes later.
        Insn::LoadImm64 {
            dst,
            imm: Imm64::Value(value),
        } => [0, 1, value.get() / 2]
            .into_iter()
            .filter(|&new| new < value.get())
            .map(|new| Insn::LoadImm64 {
                dst,
                imm: Imm64::Value(Value64::new(new)),
            })
            .collect(),
        Insn::Load { dst, .. } => [0, 1, -1]
            .map(|imm| Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst,
                src: Operand::Imm(imm),
            })
            .to_vec(),
        _ => Vec::new(),
    }
}

fn less(new: i32, old: i32) -> bool {
    new.unsigned_abs() < old.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ebpf::{Choices, Dialect, Entry, Generator};
    use isa::ebpf::assemble;

    #[test]
    fn shrinking_keeps_the_failing_part() {
        let shows = |p: &[Insn]| {
            p.iter()
                .any(|insn| matches!(insn, Insn::LoadAcquire { .. }))
        };
        let generator = Generator::new(Dialect::Engines);
        let program = (0..)
            .map(|seed| generator.program(&mut Choices::from_seed(seed)))
            .map(|program| program.code(Entry::Memory))
            .find(|code| shows(code))
            .expect("one of them");
        assert_eq!(shrink(&program, shows).len(), 1);
    }

    #[test]
    fn jumps_and_calls_follow_their_targets() {
        let program = assemble(
            "
            if r1 == 0 goto out
            r2 = 5 ll
            call far
        out:
            r0 = 0
            exit
        far:
            r0 = 1
            exit",
        )
        .expect("a program");
        let shorter = "
            if r1 == 0 goto out
            call far
        out:
            exit
        far:
            r0 = 1
            exit";
        // The first slot of the constant alone, then what the jump led to.
        let without_constant = without(&program, 1, 2);
        let left = without(&without_constant, 2, 3);
        assert_eq!(left, assemble(shorter).expect("a program"));
    }
}

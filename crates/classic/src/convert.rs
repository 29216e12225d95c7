//! Conversion of classic programs to the internal instruction set (eBPF).
//!
//! The result is an ordinary eBPF program: a socket filter whose context is
//! `struct __sk_buff`, or for seccomp one whose context is `struct seccomp_data`.
//!
//! | classic | internal |
//! |---|---|
//! | `A` | `r0`, so that a return needs no move |
//! | `X` | `r7`, which calls and packet loads keep |
//! | `M[i]` | four bytes of the stack at `r10 - 64 + 4 * i` |
//! | packet | `r6` holds the context, as legacy packet loads demand |
//! | `jt`/`jf` | one branch that falls through, inverted where that saves one |
//! | ancillary loads | context loads, or calls (`spec::calls`) |
//!
//! A backward pass (`liveness.rs`) finds which of `A`, `X` and `M[]` are read
//! later, so that no code is made for values that no one reads (`ldx 4*([14]&0xf)`
//! needs no copy of `A` when a load follows, as it nearly always does), and code
//! that nothing reaches is left out. A forward pass (`layout.rs`) finds how many
//! slots each instruction takes, which settles every jump. Then the code is
//! written, one kind of instruction after the other: programs of people mix kinds
//! so that a processor cannot guess which comes next, and each wrong guess costs
//! more than the rest of an instruction's conversion.
//!
//! All passes are linear in the program's length; for programs with backward jumps
//! (capture rules only) the first goes on where something changed, at most once
//! for each place at each instruction.

use isa::ebpf::Insn;

use crate::{Checked, Rules, Semantics};

mod emitter;
mod forms;
mod insns;
mod liveness;
mod special;

use emitter::Emitter;
use liveness::Liveness;
use special::Special;

/// A converted program.
#[derive(Clone, Debug)]
pub struct Converted {
    insns: Vec<Insn>,
    /// For each classic instruction the slot where its code starts.
    start: Vec<u32>,
    rules: Rules,
    semantics: Semantics,
}

impl Converted {
    /// The eBPF program, one element per slot.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// For each slot the classic instruction it comes from; `None` for the
    /// prologue.
    pub fn origin(&self) -> Vec<Option<usize>> {
        let mut origin = vec![None; self.insns.len()];
        let ends = self.start[1..]
            .iter()
            .copied()
            .chain([self.insns.len() as u32]);
        for (index, (&start, end)) in self.start.iter().zip(ends).enumerate() {
            origin[start as usize..end as usize].fill(Some(index));
        }
        origin
    }

    /// The program itself.
    pub fn into_insns(self) -> Vec<Insn> {
        self.insns
    }

    /// The rules that the classic program was checked by.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// The semantics that it was converted for.
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }
}

/// Converts a checked program. Seccomp filters know one semantics only, and
/// `semantics` does not matter for them.
pub fn convert(program: &Checked, semantics: Semantics) -> Converted {
    let special = Special {
        rules: program.rules(),
        semantics,
    };
    let program = program.program();
    let emitter = Emitter::run(program, Liveness::of(program), &special);
    Converted {
        insns: emitter.insns,
        start: emitter.start,
        rules: special.rules,
        semantics,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use isa::classic::SockFilter;
    use std::time::{Duration, Instant};

    fn converted(program: &[SockFilter], rules: Rules, semantics: Semantics) -> Vec<Insn> {
        let checked = check(program, rules).expect("the test's program is valid");
        convert(&checked, semantics).into_insns()
    }

    #[test]
    fn values_that_no_one_reads_cost_no_code() {
        // ldx 4*([14]&0xf); ldh [x + 14]; jeq #22; ret #1; ret #0
        let program = [
            SockFilter::new(0xb1, 0, 0, 14),
            SockFilter::new(0x48, 0, 0, 14),
            SockFilter::new(0x15, 0, 1, 22),
            SockFilter::new(0x06, 0, 0, 1),
            SockFilter::new(0x06, 0, 0, 0),
        ];
        let insns = converted(&program, Rules::Socket, Semantics::Kernel);
        // The context, five for the header, the load, one branch, two returns:
        // A and X need no zero, A no copy.
        assert_eq!(insns.len(), 1 + 4 + 1 + 1 + 4);
    }

    #[test]
    fn hostile_loops_convert_in_linear_time() {
        // Each ja leads to the one before it; the first of them to the end.
        let n = 200_000u32;
        let mut program = vec![SockFilter::new(0x05, 0, 0, n - 1)];
        program.push(SockFilter::new(0x05, 0, 0, n - 1));
        program.extend((2..=n).map(|_| SockFilter::new(0x05, 0, 0, -2i32 as u32)));
        program.push(SockFilter::new(0x16, 0, 0, 0));
        let start = Instant::now();
        let insns = converted(&program, Rules::Capture, Semantics::Capture);
        assert!(!insns.is_empty());
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{:?}",
            start.elapsed()
        );
    }
}

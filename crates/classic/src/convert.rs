//! Conversion of classic programs to the internal instruction set (eBPF).
//!
//! The result is an ordinary eBPF program: a socket filter whose context is
//! `struct __sk_buff`, or for seccomp one whose context is `struct seccomp_data`.
//!
//! | classic | internal |
//! |---|---|
//! | `A` | `r0`, so that a return needs no move |
//! | `X` | `r7`, which is callee-saved |
//! | `M[i]` | four bytes of the stack at `r10 - 64 + 4 * i` |
//! | packet | `r6` holds the context, as legacy packet loads require |
//! | `jt`/`jf` | one branch that falls through, inverted where that saves one |
//! | ancillary loads | context loads, or calls (`spec::calls`) |
//!
//! A backward pass (`code.rs`) emits the code. Liveness of `A`, `X` and `M[]`
//! (`liveness.rs`) and the offsets of all targets are known at each instruction, so that no
//! code is emitted for dead values (`ldx 4*([14]&0xf)` needs no copy of `A` when a load
//! follows). A table has the templates of most opcodes (`forms.rs`). Unreachable code is
//! removed.
//!
//! Cost: linear in the program's length. For programs with backward jumps (capture rules
//! only) liveness is first iterated to a fixpoint with a work list, at most once for each
//! place at each instruction.

use isa::ebpf::Insn;

use crate::{Checked, Rules, Semantics};

mod code;
mod forms;
mod insns;
mod liveness;
mod special;

use code::EmittedCode;
use special::Special;

/// A converted program.
#[derive(Clone, Debug)]
pub struct Converted {
    code: EmittedCode,
    rules: Rules,
    semantics: Semantics,
}

impl Converted {
    /// The eBPF program, one element per slot.
    pub fn insns(&self) -> &[Insn] {
        &self.code.insns
    }

    /// The classic instruction of each slot; `None` for the prologue.
    pub fn origin(&self) -> Vec<Option<usize>> {
        let mut origin = vec![None; self.code.insns.len()];
        for (index, slots) in self.code.ranges().enumerate() {
            origin[slots].fill(Some(index));
        }
        origin
    }

    /// The instructions.
    pub fn into_insns(self) -> Vec<Insn> {
        self.code.insns
    }

    /// The rules by which the classic program was checked.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// The semantics of the conversion.
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }
}

/// Converts a checked program. `semantics` is ignored for seccomp filters, which have only
/// one.
pub fn convert(program: &Checked, semantics: Semantics) -> Converted {
    let special = Special {
        rules: program.rules(),
        semantics,
    };
    Converted {
        code: code::write(program.program(), &special),
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
    fn dead_values_need_no_code() {
        // ldx 4*([14]&0xf); ldh [x + 14]; jeq #22; ret #1; ret #0
        let program = [
            SockFilter::new(0xb1, 0, 0, 14),
            SockFilter::new(0x48, 0, 0, 14),
            SockFilter::new(0x15, 0, 1, 22),
            SockFilter::new(0x06, 0, 0, 1),
            SockFilter::new(0x06, 0, 0, 0),
        ];
        let insns = converted(&program, Rules::Socket, Semantics::Kernel);
        // The context, five for the header, the load, one branch, two returns: A and X need
        // no initialisation, A no copy.
        assert_eq!(insns.len(), 1 + 4 + 1 + 1 + 4);
    }

    #[test]
    fn unreachable_code_is_removed() {
        let ret = |k| SockFilter::new(0x06, 0, 0, k);
        let over_one = SockFilter::new(0x05, 0, 0, 1);
        // ja over a return, which another return follows; and more returns at the end.
        for (program, kept) in [
            (vec![ret(1), ret(2), ret(3)], 1),
            (vec![over_one, ret(1), ret(2)], 2),
            (vec![over_one, ret(1), over_one, ret(2), ret(3), ret(4)], 3),
        ] {
            let checked = check(&program, Rules::Socket).expect("the test's program is valid");
            let converted = convert(&checked, Semantics::Kernel);
            let slots = 1 + program.iter().enumerate().fold(0, |slots, (index, raw)| {
                let reached = converted.origin().contains(&Some(index));
                slots + usize::from(reached) * if raw.code == 0x06 { 2 } else { 1 }
            });
            assert_eq!(converted.insns().len(), slots);
            let mut origins: Vec<_> = converted.origin().into_iter().flatten().collect();
            origins.dedup();
            assert_eq!(origins.len(), kept);
        }
    }

    #[test]
    fn a_comparison_implied_by_the_next_one_is_removed() {
        let ret = |k| SockFilter::new(0x06, 0, 0, k);
        let jeq = |jt, jf, k| SockFilter::new(0x15, jt, jf, k);
        let load = SockFilter::new(0x28, 0, 0, 12);
        for (first, second, kept) in [
            // All but 0x800 leads to the last return, and in the second to the other.
            (jeq(2, 0, 0x86dd), jeq(0, 1, 0x800), false),
            (jeq(1, 0, 0x86dd), jeq(1, 0, 0x800), false),
            // The same constant, another target, another condition.
            (jeq(2, 0, 0x800), jeq(0, 1, 0x800), true),
            (jeq(1, 0, 0x86dd), jeq(0, 1, 0x800), true),
            (jeq(0, 2, 0x86dd), jeq(0, 1, 0x800), true),
        ] {
            let program = [load, first, second, ret(1), ret(0)];
            let checked = check(&program, Rules::Socket).expect("the test's program is valid");
            let converted = convert(&checked, Semantics::Kernel);
            assert_eq!(converted.origin().contains(&Some(1)), kept, "{program:?}");
        }
    }

    #[test]
    fn jumps_beyond_16_bits_use_gotol() {
        // jeq over a ja over many loads.
        let loads = 40_000;
        let mut program = vec![
            SockFilter::new(0x15, 1, 0, 0),
            SockFilter::new(0x05, 0, 0, loads),
        ];
        program.extend((0..loads).map(|_| SockFilter::new(0x30, 0, 0, 1)));
        program.push(SockFilter::new(0x16, 0, 0, 0));
        let insns = converted(&program, Rules::Capture, Semantics::Capture);
        let off = loads as i32;
        assert_eq!(insns.len(), program.len() + 2);
        assert_eq!(insns[3], Insn::GotoLong { off });
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
            start.elapsed() < Duration::from_secs(60),
            "{:?}",
            start.elapsed()
        );
    }
}

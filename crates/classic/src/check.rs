//! The checker: which programs may run, and why the others may not.
//!
//! The rules are those of Linux 6.18 (`bpf_check_classic` and, for seccomp,
//! `seccomp_check_filter` in net/core/filter.c and kernel/seccomp.c; facts, not
//! code). One pass over the program and one over its jumps; O(n) time and space.

use isa::classic::{Insn, SockFilter};

/// Whose rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rules {
    /// `SO_ATTACH_FILTER`.
    Socket,
    /// seccomp(2).
    Seccomp,
    /// A filter on a capture, which no kernel sees: as for sockets, but of any
    /// length, with backward `ja` (libpcap's `protochain` makes them), scratch
    /// memory that starts as zero, and loads at any offset.
    Capture,
}

/// A program that obeys its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    insns: Vec<Insn>,
    rules: Rules,
}

impl Checked {
    /// The instructions.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// The rules it obeys.
    pub fn rules(&self) -> Rules {
        self.rules
    }
}

/// Which part of the kernel refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The checker (EINVAL).
    Checker,
    /// The conversion to eBPF: a converted jump is beyond 16 bits (EINVAL).
    Conversion,
    /// Memory accounting (ENOMEM).
    Memory,
}

/// The rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// No instructions.
    Empty,
    /// More than 4,096 instructions.
    TooLong,
    /// An opcode off the table (for seccomp: not allowed there).
    UnknownOpcode,
    /// Division or modulo by the constant 0.
    DivisionByZero,
    /// A shift by a constant of 32 or more.
    ShiftTooFar,
    /// `M[k]` with `k` above 15.
    MemoryOutOfRange,
    /// `M[k]` read on some path before it is written.
    MemoryNotWritten,
    /// A jump that leaves the program.
    JumpOutOfRange,
    /// An absolute load in the ancillary area that names no extension.
    UnknownExtension,
    /// A seccomp load that is unaligned or beyond `struct seccomp_data`.
    SeccompOffset,
    /// The last instruction is not a return.
    NoReturn,
    /// A jump of the converted program does not fit 16 bits.
    ConvertedJumpTooFar,
    /// The converted program is larger than the memory limit allows.
    MemoryLimit,
}

/// Why a program may not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which part of the kernel refuses.
    pub stage: Stage,
    /// The rule that is broken.
    pub rule: Rule,
    /// The instruction that breaks it, where one does.
    pub at: Option<usize>,
    /// The error number that the kernel answers with (22 EINVAL, 12 ENOMEM).
    pub errno: i32,
}

impl Refusal {
    fn checker(rule: Rule, at: Option<usize>) -> Refusal {
        Refusal {
            stage: Stage::Checker,
            rule,
            at,
            errno: 22,
        }
    }
}

/// Checks a program.
pub fn check(program: &[SockFilter], rules: Rules) -> Result<Checked, Refusal> {
    if program.is_empty() {
        return Err(Refusal::checker(Rule::Empty, None));
    }
    let insns = program.iter().map(|&raw| Insn::decode(raw)).collect();
    Ok(Checked { insns, rules })
}

//! Results of a verification: verdict, reason, statistics.

use std::fmt;

use program::creation::RefusedMap;
use spec::behaviour::Behaviours;
use spec::since::Release;

use crate::Errno;
use crate::rejection::{Flow, Program, Rejection};
use crate::release::Requirement;

/// Class of a refusal, as explanations group them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum RefusalKind {
    /// The instruction is malformed or unknown.
    Encoding,
    /// Subprograms and jumps out of range.
    ControlFlow,
    /// Instructions that no path reaches.
    Unreachable,
    /// A loop where none is allowed.
    BackEdge,
    /// BTF, func_info or line_info of the program.
    Btf,
    /// A register is read before it is written.
    Uninitialized,
    /// Arithmetic that pointers do not allow.
    PointerArithmetic,
    /// A scalar is used as a pointer, or a pointer of a wrong kind.
    WrongType,
    /// A pointer that may be null is used.
    MaybeNull,
    /// An access outside the object.
    OutOfBounds,
    /// An offset whose range is too wide.
    Unbounded,
    /// A misaligned access.
    Misaligned,
    /// An access that the object does not allow, such as a write to read-only memory.
    Forbidden,
    /// Uninitialised or corrupted stack.
    Stack,
    /// Context access.
    Context,
    /// A helper or kfunc that the program may not call here.
    Unavailable,
    /// An argument of a call.
    Argument,
    /// A reference that is not released, or released twice.
    Reference,
    /// Locks.
    Lock,
    /// RCU, preemption and IRQ sections.
    Section,
    /// A value that is returned.
    ReturnValue,
    /// An infinite loop.
    Loop,
    /// Too many instructions or branches to walk over.
    Complexity,
    /// Too much stack along a call chain.
    StackSize,
    /// Too many frames on a call chain.
    CallDepth,
    /// Another limit: subprograms, maps, size.
    Limit,
    /// A map that the kernel does not create.
    MapCreation,
    /// Map kinds and map use.
    Map,
    /// The licence.
    License,
    /// Missing privilege.
    Privilege,
    /// The attach target.
    AttachTarget,
    /// The kernel's release lacks what the program uses. The message is not the kernel's.
    Release,
    /// The kernel's own failure ("verifier bug").
    KernelBug,
    /// Anything else.
    Other,
}

/// Refusal of a program: reason, error number, place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Error number of bpf(2).
    pub errno: Errno,
    /// The instruction at which the walk stood.
    pub insn: Option<u32>,
    /// Class.
    pub kind: RefusalKind,
    pub(crate) rejection: Box<Rejection>,
    /// Whose words it has.
    rules: Behaviours,
}

impl Refusal {
    pub(crate) fn new(rejection: Rejection, insn: Option<u32>) -> Refusal {
        let (errno, kind) = rejection.rule();
        Refusal {
            errno,
            insn,
            kind,
            rejection: Box::new(rejection),
            rules: Behaviours::default(),
        }
    }

    /// Gives it the words of a kernel.
    pub(crate) fn adapt(&mut self, rules: Behaviours) {
        self.rejection.adapt(rules);
        self.rules = rules;
    }

    /// The kernel's last line before the statistics, without newline.
    pub fn message(&self) -> String {
        self.rejection.words(self.rules).to_string()
    }

    /// What the kernel's release lacks, with the release that has it, if that is why it refuses.
    #[doc(hidden)]
    pub fn lacks(&self) -> Option<(&Requirement, Release)> {
        match &*self.rejection {
            Rejection::Program(Program::ReleaseLacks { what, since, .. }) => Some((what, *since)),
            _ => None,
        }
    }

    /// The reason in one line: the message, or of an infinite loop, whose last line is a state of
    /// registers, the line of the kernel's log that names it.
    pub fn reason(&self) -> String {
        if let (Rejection::Flow(Flow::InfiniteLoop { .. }), Some(insn)) =
            (&*self.rejection, self.insn)
        {
            return format!("infinite loop detected at insn {insn}");
        }
        match self.message() {
            message if message.is_empty() => {
                format!("the kernel refuses it with error {}", self.errno.0)
            }
            message => message,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(insn) = self.insn {
            write!(f, "instruction {insn}: ")?;
        }
        f.write_str(&self.reason())
    }
}

impl std::error::Error for Refusal {}

/// Reason why verification stops before the program is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The program is refused.
    Refused(Box<Refusal>),
    /// The program uses a feature that this verifier does not support.
    Unsupported(String),
    /// An invariant of this verifier does not hold.
    Bug(String),
}

/// Result of a check.
pub type Result<T> = std::result::Result<T, Stop>;

impl Stop {
    /// The same with another error number, if it is a refusal.
    #[must_use]
    pub fn with_errno(mut self, errno: Errno) -> Stop {
        if let Stop::Refused(refusal) = &mut self {
            refusal.errno = errno;
        }
        self
    }

    /// The same of another class, if it is a refusal.
    #[must_use]
    pub(crate) fn with_kind(mut self, kind: RefusalKind) -> Stop {
        if let Stop::Refused(refusal) = &mut self {
            refusal.kind = kind;
        }
        self
    }

    /// The stop of an unsupported program.
    pub fn unsupported(what: impl Into<String>) -> Stop {
        Stop::Unsupported(what.into())
    }
}

/// The verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Safe.
    Accepted,
    /// Refused, with the reason.
    Refused(Refusal),
    /// Unsupported, with the reason.
    Unsupported(String),
    /// An invariant of this verifier does not hold; not a verdict.
    Bug(String),
}

/// The kernel's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Instructions walked over.
    pub insns_processed: u32,
    /// Most states kept at one instruction.
    pub max_states_per_insn: u32,
    /// States made.
    pub total_states: u32,
    /// Most states kept at one time.
    pub peak_states: u32,
    /// Longest parent chain walked to mark reads; 0 since 6.18.
    pub longest_mark_read_walk: u32,
}

/// Everything that verification finds out.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The verdict.
    pub verdict: Verdict,
    /// The map that the kernel does not create, if that is why it refuses the program.
    #[doc(hidden)]
    pub refused_map: Option<RefusedMap>,
    /// Counts.
    pub statistics: Statistics,
    /// Counts of precision tracking.
    #[doc(hidden)]
    pub precision: crate::precise::PrecisionCounts,
    /// Time of the verification in microseconds.
    pub duration_us: u64,
    /// Stack depth in bytes by subprogram.
    pub stack_depth: Vec<u32>,
    /// Cost of each instruction, if it was requested and the walk began.
    #[doc(hidden)]
    pub cost: Option<crate::Cost>,
    /// Facts for a compiler, if they were requested and the program is accepted.
    #[doc(hidden)]
    pub facts: Option<crate::ProgramFacts>,
    /// The log as the kernel writes it at the requested level, its last lines if it is longer
    /// than [`LOG_LIMIT`](crate::LOG_LIMIT); empty at level 0.
    pub log: String,
    /// Bytes of the log before those lines.
    pub log_left_out: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rejection::Call;

    #[test]
    fn a_loop_is_named_and_not_its_state() {
        let state = String::from(" R0=1");
        let mut refusal = Refusal::new(Flow::InfiniteLoop { state }.into(), Some(7));
        assert_eq!(refusal.message(), "old state: R0=1");
        assert_eq!(refusal.reason(), "infinite loop detected at insn 7");
        *refusal.rejection = Call::Silent.into();
        assert_eq!(
            refusal.to_string(),
            "instruction 7: the kernel refuses it with error 22"
        );
    }
}

//! The eBPF verifier: proves programs safe as Linux 6.18 does, with the kernel's
//! verdict, reason, counts and log.
//!
//! Abstract interpretation over all paths in the kernel's order, with precision
//! tracking and pruning by state equality. Six contexts, narrow to wide:
//!
//! * `input::Input`: program, kernel, registry, options; read only.
//! * `analysis::Analysis`: results of the passes before the walk; read only.
//! * [`state::State`]: what is known on the current path.
//! * `env::Env`: the current path with all of the above, and the requests that a
//!   check may make (a precise scalar, a fork, a new identity).
//! * `explore::Explorer`: work list, checkpoints, counters.
//! * `log::Sink`: the log.
//!
//! | module | contents |
//! |---|---|
//! | [`domain`] | numbers: tnum, ranges, arithmetic on them |
//! | [`state`] | registers, stack slots, objects on the stack, frames, references |
//! | `analysis` | control flow, subprograms, prune points, liveness |
//! | `alu`, `mem`, `flow`, `call`, `resolve` | one check per kind of instruction |
//! | `explore` | order of the walk, pruning, loops |
//! | [`precise`] | backtracking |
//! | `privilege`, `speculation` | callers without capabilities |
//! | `insn_facts`, `recorded` | facts for a compiler, states for the soundness oracle |
//! | `walk` | the steps of the walk, to be looked at |
//! | [`reason`] | explanations of refusals |
//! | `log` | the log's text |
//! | `diagnosis` | the report in logs of Linux 7.3 and newer |
//!
//! # Modules
//!
//! `analysis/` has the passes before the walk (control flow, subprograms, live registers), `explore/`
//! the walk and its pruning, `state/` registers, stack slots and frames, `domain/` numbers,
//! `precise/` precision tracking; `alu/`, `mem/`, `call/`, `flow/` check instructions, `resolve/`
//! map references; `xlated/` computes the form that Linux would keep of a program, of which nothing
//! runs; `log/` writes the kernel's log, `diagnosis/` the report that newer kernels put into it. `type_rules.rs` has the rules that go by the program type, a
//! row for each. `objects.rs` has the types of allocated objects. `privilege.rs` has what callers may load, `release.rs` what other releases lack,
//! `speculation.rs` speculative execution. `insn_facts/` collects facts for a compiler,
//! `recorded.rs` states for the soundness oracle, `walk/` the steps of a walk. `reason/` explains refusals: `trace.rs` records
//! the path, `values.rs` finds definitions along it, `rules/` has one rule for each class,
//! `cause.rs` and `cause/` what they find.
#![forbid(unsafe_code)]

mod alu;
mod analysis;
mod attach;
mod call;
mod cost;
mod diagnosis;
pub mod domain;
mod env;
mod explore;
mod flow;
mod input;
mod insn_facts;
#[macro_use]
mod log;
mod mem;
mod objects;
mod options;
pub mod precise;
mod privilege;
mod proof;
pub mod reason;
mod recorded;
mod rejection;
mod release;
mod resolve;
mod speculation;
pub mod state;
mod type_rules;
mod verdict;
mod verify;
mod walk;
mod xlated;

pub use cost::{ChainCost, Cost, InsnCost, SubprogCost};
pub use domain::{Scalar, Tnum};
pub use insn_facts::{
    Branch, CallFact, FunctionStack, InsnFact, OffsetRange, PacketCheck, Pointer, PointerKind,
    ProgramFacts, Value,
};
pub use log::{LogOutput, LogTail};
pub use options::{Options, Stress};
pub use proof::Proof;
pub use recorded::{RecordedState, RecordedStates};
pub use release::RULES;
#[doc(hidden)]
pub use release::Requirement;
pub use state::MapRef;
pub use verdict::{Refusal, RefusalKind, Result, Statistics, Stop, Verdict, Verification};
pub use xlated::{FormSlot, KernelCode, LiveCode, Spills};

pub(crate) use log::{refuse, refuse_if};
pub(crate) use spec::Errno;

pub use verify::{LOG_LIMIT, explain, verify, verify_recorded, verify_to, walk};
pub use walk::{KeptSteps, PrecisionRequest, StatePlace, StepEnd, Walk, WalkStep};

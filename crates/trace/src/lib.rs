//! What a run of a program did: the path that it took by source line, the values that decided its
//! branches, its calls, writes and variables.
//!
//! A [`Recorder`] is an observer of the checked engine. It follows where the value of each register
//! comes from, so that a branch is told as `ip.protocol 17 != 6`, with and without debug
//! information; with that of `clang -g` ([`dwarf::Debug`]) variables have their names. What happens
//! outside of the instructions, names of functions and contents of maps, comes from a [`Host`].
//!
//! # Modules
//!
//! `run.rs` is the record of a run, `recorder.rs` makes it, `origin.rs` names values, `variables.rs`
//! watches variables, `frame.rs` finds them in frames, `inspect.rs` has those of a frame for a debugger,
//! `type_ref.rs` their types, `call_stack.rs` follows calls, `signature.rs` knows functions by BTF, `fold.rs` folds loops; `dwarf` reads debug information.
#![forbid(unsafe_code)]

mod call_stack;
pub mod dwarf;
mod fold;
mod frame;
mod inspect;
mod member;
mod origin;
mod recorder;
mod run;
mod signature;
mod type_ref;
mod variables;

pub use call_stack::{CallSite, CallStack, StackFrame};
pub use fold::{Folded, fold};
pub use inspect::{FoundVariable, FrameAt, FunctionFacts, VariableAt};
pub use recorder::{Host, Recorder, Traced, TracedMap};
pub use run::{
    CallArgument, NamedValue, Run, SeenVariable, Target, TraceEvent, UnseenVariable, Visit,
};
pub use type_ref::{FieldOf, NumberForm, TypeForm, VariableType, bit_field, enumerator, part};

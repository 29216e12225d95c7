//! A model of the kernel around a program that Linux does not test-run, as far as a test gives it:
//! objects by their types, contexts by names of arguments and fields, results of functions.
//!
//! What was not given is an error that names type and field when a program reads it, not zero. What
//! Linux makes of the results of these programs is not modelled.
//!
//! # Modules
//!
//! `value.rs` is the language of values, `memory.rs` has the objects with the bytes that were given,
//! `write.rs` puts values into them by type, with `composites.rs` and `pointers.rs`, `names.rs` names bytes,
//! `context.rs` makes contexts of programs, with the names of `syscalls.rs`, `iterator.rs` those of a read of an
//! iterator. `model_calls.rs` answers calls and records those of functions that are
//! not modelled, `functions.rs` has those about given objects, `storage.rs` their local storage, `answer.rs` results that were given, `seq.rs`
//! the text of iterators; `compare.rs` compares what programs left.

mod answer;
mod compare;
mod composites;
mod context;
mod functions;
mod iterator;
mod memory;
mod model_calls;
mod names;
mod pointers;
mod seq;
mod storage;
mod syscalls;
mod value;
mod write;

pub use answer::{GivenResult, ModelCall};
pub use context::{ContextForm, ModelContext};
pub use iterator::{Iteration, IteratorContext};
pub use memory::ModelMemory;
pub use model_calls::Model;
pub use value::{MemberPath, ModelError, ModelValue, OpenBrackets, ValueError, number_of};

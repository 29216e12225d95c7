//! Calls of programs: helpers, kfuncs, functions of the host, callbacks, bpf(2).

pub(crate) mod bit_operation;
mod bpf_call;
mod engine_calls;
mod given_memory;
mod host_function;
mod implementation;
pub(crate) mod iteration;
mod memory_port;
mod model_port;

pub use bit_operation::bit_operation;
pub use bpf_call::{BpfCall, SystemCalls};
pub use engine_calls::{Call, find_call};
pub use given_memory::{GivenAccess, GivenMemory};
pub use host_function::{HostFunction, HostMemory, host_call};
pub use implementation::{Implementation, signatures};
pub use iteration::{CallBlock, Cursor, Iteration, IterationStep, begin_calls, next_call};
pub use memory_port::{Helper, MemoryPort};
pub use model_port::{ModelPort, ModelPrograms, Opened};

//! Functions of the host, and what the macros [`kfunc!`](crate::kfunc) and
//! [`kfunc_struct!`](crate::kfunc_struct) expand to.

mod argument;
mod structure;

pub use argument::{Argument, Copied, Number, Words};
pub use spec::host::{
    Argument as ArgumentType, BadFunctions, Field, HELPER_NUMBERS, MOST_FUNCTIONS, NumberType,
    Parameter, Pointee, Prototype, header,
};
pub use spec::registry::{KfuncFlags, ProgramTypes};
pub use structure::{Member, Object, field};
pub use vm::{HostFunction, HostMemory};

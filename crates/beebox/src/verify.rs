//! Verification of the programs of an object, each loaded alone: [`Object::verify`](crate::Object::verify)
//! for a kernel, [`Object::verify_matrix`](crate::Object::verify_matrix) for several.

pub use crate::internal::verify::matrix::{KernelVerdict, ProgramMatrix};
pub use crate::internal::verify::{
    Explanation, InsnPlace, Options, ProgramVerification, Refusal, RefusalKind, SourceLine,
    Statistics, Verdict, Verification,
};

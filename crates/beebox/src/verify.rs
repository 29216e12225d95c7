//! Verification of the programs of an object, each loaded alone.

pub use crate::internal::verify::matrix::{KernelVerdict, ProgramMatrix, verify_matrix};
pub use crate::internal::verify::{
    Explanation, InsnPlace, Options, ProgramVerification, Refusal, RefusalKind, SourceLine,
    Statistics, Verdict, Verification, verify_object,
};

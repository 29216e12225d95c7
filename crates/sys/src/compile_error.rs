//! Errors of compiling filter expressions.

use std::fmt;

/// Error of compiling an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// libpcap rejects the file header with this message.
    Header(String),
    /// libpcap rejects the expression with this message.
    Expression(String),
    /// The expression has a NUL character.
    Nul,
    /// The C library had no memory for a file in memory.
    OutOfMemory,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Header(message) => write!(f, "libpcap refuses the link type: {message}"),
            CompileError::Expression(message) => {
                write!(f, "libpcap refuses the expression: {message}")
            }
            CompileError::Nul => f.write_str("the expression has a NUL character"),
            CompileError::OutOfMemory => f.write_str("no memory for the expression"),
        }
    }
}

impl std::error::Error for CompileError {}

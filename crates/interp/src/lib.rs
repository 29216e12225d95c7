//! The threaded interpreter.

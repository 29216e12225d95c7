//! Classic programs as text and bytes, in every form that tools write.
//!
//! ```
//! use beebox::internal::text::{self, Form};
//!
//! let program = text::read(b"ldh [12]\njeq #0x800, ip, no\nip: ret #-1\nno: ret #0", None)?;
//! let decimal = text::write(&program, Form::Decimal);
//! assert!(decimal.starts_with(b"4\n40 0 0 12\n"));
//! # Ok::<(), text::ReadError>(())
//! ```

pub use classic::text::{
    ByteOrder, Form, MAX_BYTES, Problem, ReadError, TextPlace, dump_line, read, write,
};

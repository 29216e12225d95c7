//! Coverage: which source lines, branches and functions of an object its runs executed.
//!
//! ```
//! use beebox::{Loader, Object, TestRun};
//!
//! fn main() -> Result<(), beebox::Error> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
//!     let object = Object::open("examples/packets/firewall.bpf.o")?;
//!     let instance = Loader::default().coverage(true).load(&object)?;
//!     instance.program("firewall")?.test_run(&TestRun::packet(&[0; 64]))?;
//!
//!     let coverage = instance.coverage();
//!     let lines = coverage.totals().lines;
//!     assert!(lines.hit > 0 && lines.hit < lines.found);
//!     assert!(coverage.lines("firewall.bpf.c").any(|(_, count)| count == Some(1)));
//!     assert!(coverage.lcov().contains("SF:firewall.bpf.c\n"));
//!     Ok(())
//! }
//! ```
//!
//! Coverage of several instances or processes is merged: [`Coverage::merge`], [`read_lcov`].

use crate::failure::{Cause, Error};

pub use report::coverage::{Coverage, Share, Totals};

/// Reads a tracefile of lcov. Records that are no lines, branches or functions are skipped.
///
/// # Errors
/// [`ErrorKind::Format`](crate::ErrorKind::Format), with the line, for records that are not as lcov
/// writes them.
pub fn read_lcov(text: &str) -> Result<Coverage, Error> {
    report::coverage::read_lcov(text).map_err(|fault| Cause::Lcov(fault).into())
}

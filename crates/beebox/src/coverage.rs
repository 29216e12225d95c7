//! Coverage: which source lines, branches and functions of an object its runs executed.
//!
//! ```
//! use beebox::coverage::lcov;
//! use beebox::{Loader, Object, TestRun};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
//!     let object = Object::open("examples/packets/firewall.bpf.o")?;
//!     let instance = Loader::default().coverage(true).load(&object)?;
//!     instance.program("firewall")?.test_run(&TestRun::packet(&[0; 64]))?;
//!
//!     let coverage = instance.coverage();
//!     let lines = coverage.totals().lines;
//!     assert!(lines.hit > 0 && lines.hit < lines.found);
//!     let tracefile = lcov(&coverage);
//!     assert!(tracefile.contains("SF:firewall.bpf.c\n"));
//!     Ok(())
//! }
//! ```
//!
//! Coverage of several instances or processes is merged: [`Coverage::merge`], [`read_lcov`].

pub use report::coverage::{
    BranchCoverage, BranchPlace, Coverage, FileCoverage, FunctionCoverage, HtmlPage, LcovFault,
    LineCoverage, Share, Totals, cobertura, html, lcov, read_lcov, summary, text,
};

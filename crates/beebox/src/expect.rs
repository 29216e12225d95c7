//! Expectation files: what runs of programs have to give, checked.
//!
//! A file has one statement a line; a line that begins with `#` is a comment.
//! The statements are run in order over the same maps:
//!
//! ```text
//! set open_ports 80 = 0
//! run firewall zero:60
//! verdict XDP_PASS
//! data unchanged
//! ```
//!
//! A test in Rust opens an object, loads maps from JSON, and checks a file:
//!
//! ```
//! use beebox::expect::ExpectFile;
//! use beebox::{Loader, MapsJson, Object, TestRun};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
//!     let object = Object::open("examples/packets/firewall.bpf.o")?;
//!     let instance = Loader::default().load(&object)?;
//!     instance.fill_maps(&object, &MapsJson::parse(br#"{"open_ports": [{"key": 443, "value": 0}]}"#)?)?;
//!     instance.program("firewall")?.test_run(&TestRun::packet(&[0; 64]))?;
//!
//!     let file = ExpectFile::parse(
//!         "a test",
//!         "run firewall zero:60\n verdict XDP_DROP\n map open_ports entries 1",
//!         ".".as_ref(),
//!     )?;
//!     let report = instance.check(&object, &file)?;
//!     assert!(!report.is_met());
//!     let difference = report.expectations[0].difference.as_ref().ok_or("it is met")?;
//!     assert_eq!(difference.what, "expected XDP_DROP, got XDP_PASS (2)");
//!     assert!(report.expectations[1].difference.is_none());
//!     Ok(())
//! }
//! ```

pub use crate::internal::expect::{CheckReport, CheckedExpectation, ExpectDifference, ExpectFile};

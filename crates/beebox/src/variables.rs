//! Global variables of objects that are set before programs are loaded, by path.
//!
//! An assignment is `NAME = VALUE`, as veristat's `-G` takes it. The name goes on into members and
//! elements (`config.ports[2].low`); the value is a number or the name of an enumerator, and so is
//! an index.
//!
//! ```
//! use beebox::variables::Assignment;
//! use beebox::{Loader, Object};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
//!     let object = Object::open("examples/packets/dispatch.bpf.o")?;
//!     let loader = Loader::default().assign([Assignment::parse("others = 0x10")?]);
//!     assert_eq!(loader.load(&object)?.global::<u64>("others")?, 16);
//!     let absent = Loader::default().assign([Assignment::parse("other = 1")?]);
//!     assert!(absent.load(&object).is_err());
//!     Ok(())
//! }
//! ```

pub use crate::internal::variables::{Assignment, VariableError};

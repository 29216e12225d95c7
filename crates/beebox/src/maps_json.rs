//! Maps and records of loaded objects as JSON, in the form of bpftool's dumps, and maps filled
//! from it.
//!
//! A file of maps is an object of lists of entries, by name of the map:
//! `{"blocked": [{"key": {"prefixlen": 24, "saddr": 131072}, "value": 7}]}`. Keys and values have
//! the members of their types, or are bytes in hexadecimal where the object has no types. Values of
//! program arrays are names of programs, those of maps of sockets cookies of the network. Members
//! that are left out are 0, and are listed ([`LeftOut`]).
//!
//! ```
//! use beebox::{Loader, Object, TestRun, XdpAction};
//! use beebox::maps_json::MapsJson;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
//!     let object = Object::open("examples/packets/firewall.bpf.o")?;
//!     let instance = Loader::default().load(&object)?;
//!     instance.fill_maps(&object, &MapsJson::open("examples/packets/rules.json")?)?;
//!
//!     let result = instance.program("firewall")?.test_run(&TestRun::packet(&[0; 64]))?;
//!     assert_eq!(result.verdict, XdpAction::Pass);
//!     let maps = instance.maps_json(&object)?;
//!     assert!(maps.contains("\"blocked\""));
//!     Ok(())
//! }
//! ```

pub use crate::internal::maps_json::{LeftOut, MapsJson, MapsJsonError};

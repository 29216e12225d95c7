//! Access rules for the gateway (`bpf/`): the rule file, and what the data plane looks
//! up.
//!
//! The first rule that matches a packet decides. [`RuleSet`] is a list of rules with the
//! actions for packets that none matches; [`RuleSet::parse`] reads the text form, [`import`]
//! reads what iptables and nftables print. [`Compiled`] has the classes of each field and the
//! bitmap of each class; [`Compiled::table`] is the array that programs read. [`Header`] is
//! what rules ask of a packet, [`RuleSet::first_match`] the definition of the answer.
//!
//! ```
//! use beebox_gateway::{Action, Compiled, Header, RuleSet};
//!
//! let rules = RuleSet::parse("default drop\npass proto tcp to 192.0.2.0/24 port 80,443\n")?;
//! let compiled = Compiled::new(&rules)?;
//! let mut packet = [0; 54];
//! packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
//! packet[23] = 6;
//! packet[30..34].copy_from_slice(&[192, 0, 2, 7]);
//! packet[36..38].copy_from_slice(&443u16.to_be_bytes());
//! let header = Header::of(&packet);
//! assert_eq!(rules.first_match(&header).rule, 1);
//! assert_eq!(compiled.table().lookup(&header).rule, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod analysis;
mod bitmap;
mod classes;
mod compile;
mod header;
pub mod import;
mod layout;
mod packet_text;
mod plane;
mod ports;
mod rules;
mod space;
mod state;
mod table;
mod trie;

pub use classes::Field;
pub use compile::{CapacityExceeded, Compiled, Sizes};
pub use header::{Address, Header, Packet, TransportHeader};
pub use packet_text::PacketTextError;
pub use plane::{Capacity, Hits, Hook, OBJECT, Plane, PlaneError, set_up};
pub use rules::{
    Action, Addresses, Match, Ports, Prefix, Protocols, Rule, RuleError, RuleSet, TransportHeaders,
    protocol_name,
};
pub use state::{StateError, is_state, read_state, write_state};
pub use table::Table;

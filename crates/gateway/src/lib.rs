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
//!
//! # Modules
//!
//! `rules/` reads and writes rule files, `import/` what iptables and nftables print (`chains.rs`
//! makes one list of chains, `conditions.rs` has unions of products, `assumptions.rs` what is known
//! of all packets); `header.rs` reads packets as the data plane does. `classes.rs` finds the
//! classes of a field by a sweep over its ranges, `bitmap.rs` stores each block of 512 rules once,
//! `trie.rs` and `ports.rs` build lookups, `compile.rs` writes the table, whose places `layout.rs`
//! names; `table.rs` is the data plane's lookup in Rust, `plane.rs` the object
//! `crates/gateway/bpf/gateway.bpf.o` with a table. `space.rs` has sets of packets as products of
//! ranges, `analysis.rs` rules without packets and differences of sets, `overlap.rs` an index of
//! rules that overlap.
#![forbid(unsafe_code)]

pub mod analysis;
mod bitmap;
mod classes;
mod compile;
mod header;
pub mod import;
mod layout;
mod overlap;
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

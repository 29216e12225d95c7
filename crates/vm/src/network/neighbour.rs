//! Neighbours: hardware addresses of hosts on the links of devices.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// The valid entries of the neighbour tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours(BTreeMap<(u32, IpAddr), [u8; 6]>);

impl Neighbours {
    /// No neighbours.
    pub const fn new() -> Neighbours {
        Neighbours(BTreeMap::new())
    }

    /// Adds a neighbour on the device of an index, in place of one of that address.
    pub fn add(&mut self, device: u32, address: IpAddr, mac: [u8; 6]) {
        self.0.insert((device, address), mac);
    }

    /// The hardware address of a neighbour.
    pub fn get(&self, device: u32, address: IpAddr) -> Option<[u8; 6]> {
        self.0.get(&(device, address)).copied()
    }

    /// Number of neighbours.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without neighbours.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

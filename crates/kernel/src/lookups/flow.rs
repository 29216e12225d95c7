//! Flow key of a route lookup (`struct flowi`).

use std::net::IpAddr;

/// Flow key of a route lookup (`struct flowi`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Index of the device that received it.
    pub(crate) input: u32,
    /// Index of the device that has to send it; 0 for any.
    pub(crate) output: u32,
    /// Routes of other devices do not count (IPv6).
    pub(crate) is_bound: bool,
    /// Index of the device whose VRF it belongs to.
    pub(crate) vrf_device: u32,
    pub(crate) mark: u32,
    /// Type of service or traffic class.
    pub(crate) tos: u8,
    pub(crate) protocol: u8,
    /// Its source is known (IPv6).
    pub(crate) has_source: bool,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Ports, in host order.
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    /// Flow label of IPv6, in host order.
    pub(crate) flow_label: u32,
}

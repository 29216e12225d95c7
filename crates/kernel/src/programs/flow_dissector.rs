//! flow_dissector: a packet, and flow keys that the program fills.

use std::ops::RangeInclusive;

use spec::programs::TestRunKind;
use spec::{Errno, Result};
use vm::{FLOW_DISSECTOR, PacketBuffer};

use super::test_run::{LINK_HEADER, PAGE, TestInput, copy, get, put, sized};

/// Sizes of frames.
pub(super) const SIZES: RangeInclusive<usize> = LINK_HEADER..=PAGE;

/// Bytes of `struct bpf_flow_keys`.
const KEYS: usize = 56;
/// Offsets in it.
const NETWORK_OFFSET: usize = 0;
const TRANSPORT_OFFSET: usize = 2;
const PROTOCOL: usize = 10;
const FLAGS: usize = 48;

/// A frame, and flow keys of which only the flags are given.
///
/// # Errors
/// EINVAL for a wrong size or other fields.
pub(super) fn test_input(frame: &[u8], given: &[u8]) -> Result<TestInput> {
    Errno::EINVAL.when(!SIZES.contains(&frame.len()))?;
    let given = match given {
        [] => Vec::new(),
        _ => sized(given, KEYS)?,
    };
    let mut flags = 0;
    if !given.is_empty() {
        let mut others = given.clone();
        put(&mut others, FLAGS, 0);
        Errno::EINVAL.when(others.iter().any(|byte| *byte != 0))?;
        flags = get(&given, FLAGS);
    }
    Ok(TestInput {
        given,
        ..input(frame, flags)
    })
}

/// A frame with the keys that a dissection begins with.
pub(super) fn input(frame: &[u8], flags: u32) -> TestInput {
    let mut keys = vec![0; KEYS];
    let link_header = (LINK_HEADER as u16).to_le_bytes();
    copy(&mut keys, NETWORK_OFFSET, &link_header);
    copy(&mut keys, TRANSPORT_OFFSET, &link_header);
    copy(&mut keys, PROTOCOL, frame.get(12..14).unwrap_or(&[0; 2]));
    put(&mut keys, FLAGS, flags);
    TestInput {
        rules: TestRunKind::FlowDissector,
        packet: Some(PacketBuffer::new(FLOW_DISSECTOR, frame, 0, 0)),
        context: vec![0; FLOW_DISSECTOR.size],
        flow_keys: Some(keys.clone()),
        packet_socket: None,
        hook: None,
        initial_keys: Some(keys),
        given: Vec::new(),
    }
}

/// The keys after the run, with offsets inside the packet.
pub(super) fn data_out(keys: &[u8], packet: &PacketBuffer) -> Vec<u8> {
    let mut keys = keys.to_vec();
    let end = packet.len() as u16;
    let network = clamp(&mut keys, NETWORK_OFFSET, LINK_HEADER as u16, end);
    clamp(&mut keys, TRANSPORT_OFFSET, network, end);
    keys
}

/// Limits an offset to a range.
fn clamp(keys: &mut [u8], at: usize, least: u16, most: u16) -> u16 {
    let value = u16::from_le_bytes([keys[at], keys[at + 1]]);
    let value = value.max(least).min(most);
    copy(keys, at, &value.to_le_bytes());
    value
}

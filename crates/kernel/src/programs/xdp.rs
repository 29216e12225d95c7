//! XDP: a packet in a page with room in front and behind, fragments behind it.

use std::ops::RangeInclusive;

use spec::programs::TestRunKind;
use spec::{Errno, Result};
use vm::{HEADROOM, PacketBuffer, System, XDP};

use super::test_run::{LINK_HEADER, PAGE, SHARED_INFO, TestInput, get, put, sized};

/// Most bytes of a packet that lie in one piece.
pub(super) const MAX_LINEAR: usize = PAGE - HEADROOM - SHARED_INFO;

/// Sizes of packets: a page for each of 17 fragments behind the linear part.
pub(super) const SIZES: RangeInclusive<usize> = LINK_HEADER..=MAX_LINEAR + 17 * PAGE;

/// Bytes that the kernel keeps in front of a packet (`struct xdp_frame`).
pub(crate) const FRAME: usize = 40;

/// Offsets in `struct xdp_md`.
const DATA: usize = 0;
const DATA_END: usize = 4;
const DATA_META: usize = 8;
pub(crate) const INGRESS_IFINDEX: usize = 12;
pub(crate) const RX_QUEUE_INDEX: usize = 16;
const EGRESS_IFINDEX: usize = 20;

/// True for lengths of metadata that the kernel does not take.
pub(crate) fn is_wrong_metadata(len: usize) -> bool {
    !len.is_multiple_of(4) || len > 255
}

/// A packet; the context says how many bytes of it are metadata (`data`) and where the
/// linear part ends (`data_end`), and which queue of which interface received it.
pub(super) fn test_input(frame: &[u8], given: &[u8], system: &System) -> Result<TestInput> {
    let given = match given {
        [] => Vec::new(),
        _ => sized(given, XDP.size)?,
    };
    let (mut metadata, mut linear) = (0, frame.len());
    if !given.is_empty() {
        let field = |at| get(&given, at) as usize;
        let is_wrong = field(DATA_META) != 0
            || field(DATA_END) > frame.len()
            || field(DATA) > field(DATA_END)
            || field(EGRESS_IFINDEX) != 0;
        (metadata, linear) = (field(DATA), field(DATA_END));
        if is_wrong || is_wrong_metadata(metadata) || metadata > HEADROOM - FRAME {
            return Err(Errno::EINVAL);
        }
    }
    let linear = linear.min(MAX_LINEAR + metadata);
    Errno::EINVAL.when(frame.len() < LINK_HEADER + metadata)?;
    let (ifindex, queue) = match &given[..] {
        [] => (0, 0),
        given => (get(given, INGRESS_IFINDEX), get(given, RX_QUEUE_INDEX)),
    };
    let interface = match ifindex {
        0 if queue != 0 => return Err(Errno::EINVAL),
        0 => System::LOOPBACK,
        index if system.network.device(index).is_none() => return Err(Errno::ENODEV),
        _ if queue != 0 => return Err(Errno::EINVAL),
        index => index,
    };
    let (linear, fragments) = frame.split_at(linear);
    Errno::ENOMEM.when(fragments.len() > 17 * PAGE)?;
    let headroom = HEADROOM - metadata;
    let tailroom = PAGE - SHARED_INFO - headroom - linear.len();
    let mut packet = PacketBuffer::new(XDP, linear, headroom, tailroom);
    let end = packet.end();
    packet.set_bounds(headroom, HEADROOM, end);
    for fragment in fragments.chunks(PAGE) {
        packet.add_fragment(fragment);
    }
    Ok(input(packet, interface, queue, given))
}

/// A packet of any length, in one piece.
pub(super) fn captured(frame: &[u8]) -> TestInput {
    let packet = PacketBuffer::new(XDP, frame, HEADROOM, captured_tailroom(frame));
    input(packet, System::LOOPBACK, 0, Vec::new())
}

/// Makes an input that [`captured`] returned that of another packet.
#[inline]
pub(super) fn recapture(input: &mut TestInput, frame: &[u8]) {
    if let Some(packet) = &mut input.packet {
        packet.refill(frame, HEADROOM, captured_tailroom(frame));
    }
    if let Some(context) = input.context.first_chunk_mut::<{ XDP.size }>() {
        *context = [0; XDP.size];
        put(context, INGRESS_IFINDEX, System::LOOPBACK);
    }
}

fn captured_tailroom(frame: &[u8]) -> usize {
    MAX_LINEAR.saturating_sub(frame.len())
}

fn input(packet: PacketBuffer, interface: u32, queue: u32, given: Vec<u8>) -> TestInput {
    let mut context = vec![0; XDP.size];
    put(&mut context, INGRESS_IFINDEX, interface);
    put(&mut context, RX_QUEUE_INDEX, queue);
    TestInput {
        rules: TestRunKind::Xdp,
        packet: Some(packet),
        context,
        flow_keys: None,
        packet_socket: None,
        hook: None,
        initial_keys: None,
        given,
    }
}

/// Metadata and packet.
pub(super) fn data_out(packet: &PacketBuffer) -> Vec<u8> {
    let mut out = packet.visible()[..packet.metadata_len()].to_vec();
    out.extend_from_slice(&packet.to_vec());
    out
}

/// The context that was given, with the lengths of metadata and of the linear part with it.
pub(super) fn context_out(input: &TestInput) -> Vec<u8> {
    let mut out = match input.given.is_empty() {
        true => vec![0; XDP.size],
        false => input.given.clone(),
    };
    if let Some(packet) = &input.packet {
        put(&mut out, DATA, packet.metadata_len() as u32);
        put(&mut out, DATA_END, packet.visible().len() as u32);
    }
    out
}

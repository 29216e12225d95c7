//! Types whose context is `struct __sk_buff`: a linear packet from the loopback device.

use std::ops::RangeInclusive;

use spec::programs::{SkbRun, TestRunKind};
use spec::{Errno, Result};
use vm::network::SocketView;
use vm::{PacketBuffer, SKB, System};

use super::test_run::{LINK_HEADER, PAGE, SHARED_INFO, TestInput, copy, get, put, sized};

/// Bytes in front of a packet (`NET_SKB_PAD`).
const HEADROOM: usize = 64;
/// Most bytes of a packet.
pub(super) const MOST: usize = PAGE - HEADROOM - SHARED_INFO;

pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;

/// Most bytes of a packet with its segments (`GSO_LEGACY_MAX_SIZE`).
const MOST_WIRE_LEN: u32 = 65_536;
/// Most segments (`GSO_MAX_SEGS`).
const MOST_SEGMENTS: u32 = 65_535;

use field::{
    CB, DATA, FAMILY, GSO_SEGS, GSO_SIZE, HWTSTAMP, IFINDEX, INGRESS_IFINDEX, LOCAL_IP4, LOCAL_IP6,
    MARK, PACKET_TYPE, PRIORITY, PROTOCOL, REMOTE_IP4, REMOTE_IP6, TSTAMP, WIRE_LEN,
};

/// Offsets in `struct __sk_buff`.
pub(crate) mod field {
    pub(crate) const PACKET_TYPE: usize = 4;
    pub(crate) const MARK: usize = 8;
    pub(crate) const PROTOCOL: usize = 16;
    pub(crate) const VLAN_PRESENT: usize = 20;
    pub(crate) const VLAN_TCI: usize = 24;
    pub(crate) const VLAN_PROTOCOL: usize = 28;
    pub(crate) const PRIORITY: usize = 32;
    pub(crate) const INGRESS_IFINDEX: usize = 36;
    pub(crate) const IFINDEX: usize = 40;
    pub(crate) const CB: usize = 48;
    pub(crate) const HASH: usize = 68;
    /// Start of the packet, and its end behind it.
    pub(crate) const DATA: usize = 76;
    pub(crate) const FAMILY: usize = 88;
    pub(crate) const REMOTE_IP4: usize = 92;
    pub(crate) const LOCAL_IP4: usize = 96;
    pub(crate) const REMOTE_IP6: usize = 100;
    pub(crate) const LOCAL_IP6: usize = 116;
    pub(crate) const TSTAMP: usize = 152;
    pub(crate) const WIRE_LEN: usize = 160;
    pub(crate) const GSO_SEGS: usize = 164;
    pub(crate) const GSO_SIZE: usize = 176;
    pub(crate) const TSTAMP_TYPE: usize = 180;
    pub(crate) const HWTSTAMP: usize = 184;
}

/// Fields that a test run returns.
const RETURNED: &[(usize, usize)] = &[
    (MARK, 4),
    (PRIORITY, 4),
    (INGRESS_IFINDEX, 4),
    (IFINDEX, 4),
    (CB, 20),
    (TSTAMP, 8),
    (WIRE_LEN, 4),
    (GSO_SEGS, 4),
    (HWTSTAMP, 8),
];

/// True for fields that a test run takes: the same ones and the size of segments.
fn is_given(at: usize) -> bool {
    let is_in = |(start, len): &(usize, usize)| (*start..start + len).contains(&at);
    RETURNED.iter().any(is_in) || is_in(&(GSO_SIZE, 4))
}

/// The sizes that a test run takes for a frame like this one.
pub(super) fn sizes(frame: &[u8]) -> RangeInclusive<usize> {
    let network_header = match ethertype(frame) {
        Some(ETHERTYPE_IPV4) => 20,
        Some(ETHERTYPE_IPV6) => 40,
        _ => 0,
    };
    LINK_HEADER + network_header..=MOST
}

/// A frame, and the context's fields that may be given.
///
/// # Errors
/// EINVAL for a wrong size or other fields, ENODEV for an interface that there is not.
pub(super) fn test_input(
    frame: &[u8],
    given: &[u8],
    rules: SkbRun,
    system: &System,
) -> Result<TestInput> {
    Errno::EINVAL.when(!(LINK_HEADER..=MOST).contains(&frame.len()))?;
    let given = match given {
        [] => Vec::new(),
        _ => sized(given, SKB.size)?,
    };
    let interface = match &given[..] {
        [] => 0,
        given => get(given, IFINDEX),
    };
    if interface > System::LOOPBACK && system.network.device(interface).is_none() {
        return Err(Errno::ENODEV);
    }
    Errno::EINVAL.when(!sizes(frame).contains(&frame.len()))?;
    let mut input = captured(frame, rules);
    if given.is_empty() {
        clear_wire_len(&mut input);
        return Ok(input);
    }
    if (0..SKB.size).any(|at| given[at] != 0 && !is_given(at)) {
        return Err(Errno::EINVAL);
    }
    let context = &mut input.context;
    let own_len = get(context, WIRE_LEN);
    for at in (0..SKB.size).filter(|at| is_given(*at)) {
        context[at] = given[at];
    }
    put(context, IFINDEX, interface.max(System::LOOPBACK));
    match get(&given, WIRE_LEN) {
        0 => put(context, WIRE_LEN, own_len),
        len if len < own_len || len > MOST_WIRE_LEN => return Err(Errno::EINVAL),
        _ => {}
    }
    put(context, GSO_SIZE, u32::from(get(&given, GSO_SIZE) as u16));
    match get(&given, GSO_SEGS) > MOST_SEGMENTS {
        true => Err(Errno::EINVAL),
        false => Ok(TestInput { given, ..input }),
    }
}

/// Bytes of a stream, as a program of a socket map sees them, with the fields of the context that are given.
///
/// # Errors
/// EINVAL for too many bytes, E2BIG for a larger context.
pub(super) fn stream(bytes: &[u8], given: &[u8]) -> Result<TestInput, Errno> {
    if bytes.len() > MOST {
        return Err(Errno::EINVAL);
    }
    let rules = SkbRun {
        has_link_header: true,
        is_sent: false,
        is_read_only: false,
    };
    let given = match given {
        [] => Vec::new(),
        _ => sized(given, SKB.size)?,
    };
    let mut input = captured(bytes, rules);
    let is_address = |at: &usize| (DATA..DATA + 8).contains(at);
    for at in (0..given.len()).filter(|at| !is_address(at) && given[*at] != 0) {
        input.context[at] = given[at];
    }
    Ok(TestInput { given, ..input })
}

/// A frame of any length.
pub(super) fn captured(frame: &[u8], rules: SkbRun) -> TestInput {
    let mut input = TestInput {
        rules: TestRunKind::Skb(rules),
        packet: Some(PacketBuffer::new(SKB, &[], HEADROOM, 0)),
        context: vec![0; SKB.size],
        flow_keys: None,
        packet_socket: None,
        hook: None,
        initial_keys: None,
        given: Vec::new(),
    };
    recapture(&mut input, frame, rules);
    input
}

/// Makes an input that [`captured`] returned that of another packet.
pub(super) fn recapture(input: &mut TestInput, frame: &[u8], rules: SkbRun) {
    let Some(packet) = &mut input.packet else {
        return;
    };
    packet.refill(frame, HEADROOM, 0);
    packet.state.is_sent = rules.is_sent;
    packet.state.is_read_only = rules.is_read_only;
    let network = HEADROOM + LINK_HEADER.min(frame.len());
    packet.state.network_header = network;
    if !rules.has_link_header {
        let end = packet.end();
        packet.set_bounds(network, network, end);
    }
    input.context.fill(0);
    fill(&mut input.context, frame, packet.len());
    input.packet_socket = Some(socket(frame));
}

/// Makes an input that [`test_input`] returned without a context that of another packet.
pub(super) fn refill(input: &mut TestInput, frame: &[u8], rules: SkbRun) {
    recapture(input, frame, rules);
    clear_wire_len(input);
}

/// Linux 6.18 computes it from a context only.
fn clear_wire_len(input: &mut TestInput) {
    put(&mut input.context, WIRE_LEN, 0);
}

/// The link-layer header in front of a packet that does not begin with it.
pub(super) fn link_header(packet: &PacketBuffer) -> &[u8] {
    let start = packet.state.link_header;
    let header = packet.before().get(start..).unwrap_or(&[]);
    &header[..header.len().min(LINK_HEADER)]
}

/// The packet after a run: in front of one without link-layer header are as many zeros.
pub(super) fn data_out(packet: &PacketBuffer, rules: SkbRun) -> Vec<u8> {
    let mut data = match rules.has_link_header {
        true => Vec::new(),
        false => vec![0; LINK_HEADER],
    };
    data.extend_from_slice(&packet.to_vec());
    data
}

/// The context that was given, with what a run changed in it.
pub(super) fn context_out(input: &TestInput) -> Vec<u8> {
    let mut out = match input.given.is_empty() {
        true => vec![0; SKB.size],
        false => input.given.clone(),
    };
    for &(at, len) in RETURNED {
        out[at..at + len].copy_from_slice(&input.context[at..at + len]);
    }
    out
}

/// The socket that a frame belongs to: from is here, to is there.
fn socket(frame: &[u8]) -> SocketView {
    let mut socket = SocketView::OF_TEST_RUN;
    let network = frame.get(LINK_HEADER..).unwrap_or(&[]);
    match ethertype(frame) {
        Some(ETHERTYPE_IPV4) if network.len() >= 20 => {
            socket.put(SocketView::FAMILY, &2u32.to_le_bytes());
            socket.put(SocketView::LOCAL_IPV4, &network[12..16]);
            socket.put(SocketView::REMOTE_IPV4, &network[16..20]);
        }
        Some(ETHERTYPE_IPV6) if network.len() >= 40 => {
            socket.put(SocketView::FAMILY, &10u32.to_le_bytes());
            socket.put(SocketView::LOCAL_IPV6, &network[8..24]);
            socket.put(SocketView::REMOTE_IPV6, &network[24..40]);
        }
        _ => {}
    }
    socket
}

/// Fills in the `struct __sk_buff` of a frame from the loopback device.
fn fill(context: &mut [u8], frame: &[u8], len: usize) {
    put(context, IFINDEX, System::LOOPBACK);
    put(context, PACKET_TYPE, packet_type(frame));
    put(context, PROTOCOL, u32::from(protocol(frame).swap_bytes()));
    put(context, WIRE_LEN, len as u32);
    let network = frame.get(LINK_HEADER..).unwrap_or(&[]);
    // They are those of its socket.
    match ethertype(frame) {
        Some(ETHERTYPE_IPV4) if network.len() >= 20 => {
            put(context, FAMILY, 2);
            copy(context, LOCAL_IP4, &network[12..16]);
            copy(context, REMOTE_IP4, &network[16..20]);
        }
        Some(ETHERTYPE_IPV6) if network.len() >= 40 => {
            put(context, FAMILY, 10);
            copy(context, LOCAL_IP6, &network[8..24]);
            copy(context, REMOTE_IP6, &network[24..40]);
        }
        _ => {}
    }
}

pub(super) fn ethertype(frame: &[u8]) -> Option<u16> {
    let bytes = frame.get(12..14)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// `eth_type_trans`: the type of the frame; a length is LLC, or Novell's form of it.
fn protocol(frame: &[u8]) -> u16 {
    const LEAST_TYPE: u16 = 0x0600;
    const NOVELL: u16 = 1;
    const LLC: u16 = 4;
    match ethertype(frame) {
        Some(found) if found >= LEAST_TYPE => found,
        _ if frame.get(14..16) == Some(&[0xff, 0xff]) => NOVELL,
        _ => LLC,
    }
}

/// Whom the frame is for, seen from the loopback device, whose address and broadcast
/// address are 0.
pub(super) fn packet_type(frame: &[u8]) -> u32 {
    const HOST: u32 = 0;
    const MULTICAST: u32 = 2;
    const OTHER_HOST: u32 = 3;
    match frame.first_chunk::<6>() {
        Some([0, 0, 0, 0, 0, 0]) => HOST,
        Some([first, ..]) if first & 1 != 0 => MULTICAST,
        _ => OTHER_HOST,
    }
}

//! Frames that no program at hand would send: VLAN tags (one, two of either
//! kind), spanning tree, MPLS, PPPoE, IGMP, SCTP, broadcast and multicast.
//! Lengths and checksums are right.

use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, bind, send as send_on, socket,
};

use crate::Outcome;

/// Sends every frame through a packet socket.
pub(crate) fn send(interface: &str) -> Outcome {
    let address = getifaddrs()?
        .filter(|entry| entry.interface_name == interface)
        .find_map(|entry| entry.address?.as_link_addr().copied())
        .ok_or_else(|| format!("no interface {interface}"))?;
    let socket = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    bind(socket.as_raw_fd(), &address)?;
    for frame in frames() {
        send_on(socket.as_raw_fd(), &frame, MsgFlags::empty())?;
        sleep(Duration::from_millis(2));
    }
    Ok(())
}

const LEFT: [u8; 6] = [2, 0, 0, 0, 0, 1];
const RIGHT: [u8; 6] = [2, 0, 0, 0, 0, 2];
const BROADCAST: [u8; 6] = [0xff; 6];

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const CUSTOMER_TAG: u16 = 0x8100;
const SERVICE_TAG: u16 = 0x88a8;

const ICMP: u8 = 1;
const IGMP: u8 = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// A question for the address of www.example.test.
const DNS_QUERY: &[u8] =
    b"\xbe\xe5\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x04test\0\0\x01\0\x01";

const SOURCE: [u8; 4] = [192, 0, 2, 2];
const TARGET: [u8; 4] = [192, 0, 2, 1];
const SOURCE6: [u8; 16] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
const TARGET6: [u8; 16] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

fn frames() -> Vec<Vec<u8>> {
    let v4 = |protocol, payload: &[u8]| ipv4(protocol, TARGET, payload);
    let ssh = || tcp_syn(&pseudo4(TARGET), 40_022, 22);
    let ssh6 = || tcp_syn(&pseudo6(), 40_022, 22);
    let dns = || udp(&pseudo4(TARGET), 40_053, 53, DNS_QUERY);
    let https6 = || tcp_syn(&pseudo6(), 40_443, 443);
    let one = |tci| vec![(CUSTOMER_TAG, tci)];
    let two = |outer, service, inner| vec![(outer, service), (CUSTOMER_TAG, inner)];
    vec![
        // 802.1Q; the upper three bits of the tag are the priority.
        ethernet(LEFT, &one(100), IPV4, &v4(UDP, &dns())),
        ethernet(LEFT, &one(5 << 13 | 100), IPV4, &v4(TCP, &ssh())),
        ethernet(LEFT, &one(200), IPV6, &ipv6(TCP, &ssh6())),
        ethernet(LEFT, &one(200), IPV6, &ipv6(TCP, &https6())),
        ethernet(BROADCAST, &one(100), ARP, &arp_request()),
        ethernet(LEFT, &one(0), IPV4, &v4(ICMP, &echo_request())),
        // 802.1ad, and two tags of the customer's kind.
        ethernet(LEFT, &two(SERVICE_TAG, 1000, 42), IPV4, &v4(TCP, &ssh())),
        ethernet(
            LEFT,
            &two(SERVICE_TAG, 1000, 42),
            IPV6,
            &ipv6(UDP, &udp(&pseudo6(), 40_053, 53, DNS_QUERY)),
        ),
        ethernet(
            LEFT,
            &two(SERVICE_TAG, 1001, 100),
            IPV4,
            &v4(ICMP, &echo_request()),
        ),
        ethernet(LEFT, &two(CUSTOMER_TAG, 300, 42), IPV4, &v4(UDP, &dns())),
        ethernet(LEFT, &[(SERVICE_TAG, 1002)], IPV4, &v4(TCP, &ssh())),
        // No tags.
        ethernet([0x01, 0x80, 0xc2, 0, 0, 0], &[], 38, &spanning_tree()),
        ethernet(LEFT, &[], 0x8847, &mpls(&v4(TCP, &ssh()))),
        ethernet(LEFT, &[], 0x8864, &pppoe(&v4(UDP, &dns()))),
        ethernet(
            BROADCAST,
            &[],
            IPV4,
            &ipv4(UDP, [255; 4], &udp(&pseudo4([255; 4]), 68, 67, b"discover")),
        ),
        ethernet(
            [1, 0, 0x5e, 0, 0, 251],
            &[],
            IPV4,
            &ipv4(
                UDP,
                [224, 0, 0, 251],
                &udp(&pseudo4([224, 0, 0, 251]), 5353, 5353, DNS_QUERY),
            ),
        ),
        ethernet(
            [1, 0, 0x5e, 0, 0, 22],
            &[],
            IPV4,
            &ipv4(IGMP, [224, 0, 0, 22], &igmp_report()),
        ),
        ethernet(LEFT, &[], IPV4, &v4(SCTP, &sctp_abort())),
        // Data that stands where a first fragment has its ports, and looks like them.
        ethernet(LEFT, &[], IPV4, &later_fragment(v4(TCP, &ssh()))),
    ]
}

/// A frame to `to`. `kind` is an EtherType or, up to 1,500, the length of an
/// 802.3 frame.
fn ethernet(to: [u8; 6], tags: &[(u16, u16)], kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [to, RIGHT].concat();
    for (protocol, tci) in tags {
        frame.extend(protocol.to_be_bytes());
        frame.extend(tci.to_be_bytes());
    }
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

fn ipv4(protocol: u8, to: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend((20 + payload.len() as u16).to_be_bytes());
    header.extend([0x12, 0x34, 0, 0, 64, protocol, 0, 0]);
    header.extend(SOURCE);
    header.extend(to);
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum);
    header.extend(payload);
    header
}

/// Moves an IPv4 packet 1,480 bytes into a longer one.
fn later_fragment(mut packet: Vec<u8>) -> Vec<u8> {
    packet[6..8].copy_from_slice(&(1480 / 8_u16).to_be_bytes());
    packet[10..12].fill(0);
    let sum = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum);
    packet
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0];
    header.extend((payload.len() as u16).to_be_bytes());
    header.extend([next, 64]);
    header.extend(SOURCE6);
    header.extend(TARGET6);
    header.extend(payload);
    header
}

/// The addresses that the checksum of a transport header covers.
fn pseudo4(to: [u8; 4]) -> Vec<u8> {
    [SOURCE, to].concat()
}

fn pseudo6() -> Vec<u8> {
    [SOURCE6, TARGET6].concat()
}

fn udp(pseudo: &[u8], from: u16, to: u16, data: &[u8]) -> Vec<u8> {
    let len = 8 + data.len() as u16;
    let mut segment = [from, to, len, 0].map(u16::to_be_bytes).concat();
    segment.extend(data);
    let sum = transport_checksum(pseudo, UDP, &segment);
    segment[6..8].copy_from_slice(&sum);
    segment
}

fn tcp_syn(pseudo: &[u8], from: u16, to: u16) -> Vec<u8> {
    let mut segment = [from, to].map(u16::to_be_bytes).concat();
    segment.extend([0x5e, 0xed, 0, 1, 0, 0, 0, 0]);
    // Six words of header, SYN, a window; the sum; one option: 1,460 bytes at most.
    segment.extend([0x60, 0x02, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5, 0xb4]);
    let sum = transport_checksum(pseudo, TCP, &segment);
    segment[16..18].copy_from_slice(&sum);
    segment
}

fn echo_request() -> Vec<u8> {
    let mut message = vec![8, 0, 0, 0, 0xbe, 0xe5, 0, 1];
    message.extend(b"tagged");
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    message
}

fn igmp_report() -> Vec<u8> {
    // Version 3, one record: exclude no source of 224.0.0.251.
    let mut message = vec![0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 224, 0, 0, 251];
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    message
}

fn arp_request() -> Vec<u8> {
    let mut request = vec![0, 1, 8, 0, 6, 4, 0, 1];
    request.extend(RIGHT);
    request.extend(SOURCE);
    request.extend([0; 6]);
    request.extend(TARGET);
    request
}

/// A bridge that announces itself as root (802.1D, after its LLC header).
fn spanning_tree() -> Vec<u8> {
    let bridge = [[0x80, 0].as_slice(), &RIGHT].concat();
    let mut message = vec![0x42, 0x42, 0x03, 0, 0, 0, 0, 0];
    message.extend(&bridge);
    message.extend([0; 4]);
    message.extend(&bridge);
    message.extend([0x80, 1, 0, 0, 20, 0, 2, 0, 15, 0]);
    message
}

/// Two labels, the second at the bottom of the stack.
fn mpls(inner: &[u8]) -> Vec<u8> {
    let label = |label: u32, bottom: u32| (label << 12 | bottom << 8 | 64).to_be_bytes();
    [&label(1024, 0), &label(100, 1), inner].concat()
}

fn pppoe(inner: &[u8]) -> Vec<u8> {
    let mut session = vec![0x11, 0, 0, 7];
    session.extend((2 + inner.len() as u16).to_be_bytes());
    session.extend([0, 0x21]);
    session.extend(inner);
    session
}

/// An association broken off (the checksum is a CRC-32c).
fn sctp_abort() -> Vec<u8> {
    let mut message = [40_036, 36_412].map(u16::to_be_bytes).concat();
    message.extend([0, 0, 0, 7, 0, 0, 0, 0, 6, 0, 0, 4]);
    let sum = crc32c(&message).to_le_bytes();
    message[8..12].copy_from_slice(&sum);
    message
}

fn transport_checksum(pseudo: &[u8], protocol: u8, segment: &[u8]) -> [u8; 2] {
    let mut covered = pseudo.to_vec();
    covered.extend([0, protocol]);
    covered.extend((segment.len() as u16).to_be_bytes());
    covered.extend(segment);
    checksum(&covered)
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| low.into()))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| {
        if crc & 1 == 1 {
            crc >> 1 ^ 0x82f6_3b78
        } else {
            crc >> 1
        }
    };
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_published_examples() {
        // RFC 1071, section 3; the check value of CRC-32c.
        assert_eq!(
            checksum(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]),
            (!0xddf2_u16).to_be_bytes()
        );
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn every_frame_is_one_that_ethernet_carries() {
        for frame in frames() {
            assert!((60..=1514).contains(&frame.len()));
        }
    }
}

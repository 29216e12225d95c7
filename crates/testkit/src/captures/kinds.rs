//! The kinds of packets, and how often each is drawn.

use spec::{Random, SplitMix};

use super::Mix;
use super::frame::{Frame, IPV4, IPV6, LLC};

/// Draws one packet of a mix.
pub(super) fn draw(mix: Mix, random: &mut SplitMix) -> Frame {
    let (kind, size) = match mix {
        Mix::Small => (ordinary(random), size(random, 700, 200)),
        Mix::Large => (ordinary(random), size(random, 380, 118)),
        Mix::Every => (below(random, KINDS), 60 + below(random, 140) as usize),
    };
    let mut frame = Packet { random, size }.of_kind(kind);
    if mix == Mix::Every && below(random, 12) == 0 {
        let len = frame.payload.len() as u32;
        frame.payload.truncate(below(random, len + 1) as usize);
    }
    frame
}

/// A frame's size, from shares in thousandths of small and of middling ones; the
/// rest is full.
fn size(random: &mut SplitMix, small: u32, middling: u32) -> usize {
    let share = below(random, 1000);
    (match share {
        _ if share < small => 60 + below(random, 40),
        _ if share < small + middling => 100 + below(random, 510),
        _ => 1514,
    }) as usize
}

/// Kinds of packets; the first few are those of ordinary traffic.
const KINDS: u32 = 35;

/// A kind, with its frequency in ordinary traffic.
fn ordinary(random: &mut SplitMix) -> u32 {
    match below(random, 100) {
        0..62 => 0,
        62..70 => 1,
        70..82 => 2,
        82..88 => 3,
        88..91 => 4,
        91..92 => 5,
        92..94 => 6,
        94..96 => 7,
        _ => 8,
    }
}

fn below(random: &mut SplitMix, limit: u32) -> u32 {
    ((u64::from(random.next_u32()) * u64::from(limit)) >> 32) as u32
}

/// One packet being made.
struct Packet<'r> {
    random: &'r mut SplitMix,
    /// Bytes of the whole Ethernet frame.
    size: usize,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

impl Packet<'_> {
    #[rustfmt::skip]
    fn of_kind(mut self, kind: u32) -> Frame {
        match kind {
            0 => self.ipv4(TCP, 0),
            1 => self.ipv6(TCP, &[]),
            2 => self.ipv4(UDP, 0),
            3 => self.dns(),
            4 => self.ipv4(1, 0),
            5 => self.arp(0x0806),
            6 => self.ipv6(58, &[]),
            7 => self.ipv6(UDP, &[]),
            8 => { let offset = self.below(90) as u16; self.ipv4(UDP, if offset < 30 { 0x2000 } else { offset }) }
            9 => self.ipv4(TCP, 0x2000),
            10 => self.tagged(0x8100, 1),
            11 => self.tagged(0x88a8, 2),
            12 => self.mpls(1),
            13 => self.mpls(2),
            14 => self.pppoe(),
            15 => { let protocol = self.pick(&[2, 103, 112, 50, 51, 47, 89, 4, 41, 88]); self.ipv4(protocol, 0) }
            16 => self.ipv4(132, 0),
            17 => self.ipv6(132, &[]),
            18 => { let next = self.pick(&[0, 43, 60]); self.ipv6(UDP, &[next]) }
            19 => self.ipv6(TCP, &[44]),
            20 => self.ipv6(TCP, &[0, 51]),
            21 => self.arp(0x8035),
            22 => self.group(IPV4),
            23 => self.group(IPV6),
            24 => self.llc(&[0x42, 0x42, 3]),
            25 => self.llc(&[0xe0, 0xe0, 3]),
            26 => self.llc(&[0xf0, 0xf0, 3]),
            27 => self.llc(&[0xfe, 0xfe, 3]),
            28 => { let head = self.pick(&[[0xaa, 0xaa, 3], [0xaa, 0xaa, 0x10], [6, 6, 1], [6, 7, 0x7f]]); self.llc(&head) }
            29 => { let kind = self.pick(&[0x809b, 0x80f3, 0x6003, 0x6004, 0x6001, 0x6002, 0x8137, 0x88cc, 0x88f7, 0x8864, 0x9100]); self.other(kind) }
            30 => self.snap(),
            31 => self.options(),
            32 => self.vxlan(),
            33 => self.geneve(),
            _ => self.ipv6(2, &[]),
        }
    }

    fn below(&mut self, limit: u32) -> u32 {
        below(self.random, limit)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    /// One of few stations, so that hosts and networks have several packets.
    fn mac(&mut self) -> [u8; 6] {
        [0x02, 0, 0, 0, 0, self.below(8) as u8 + 1]
    }

    fn address4(&mut self) -> [u8; 4] {
        match self.below(8) {
            0..4 => [192, 168, self.below(4) as u8, self.below(8) as u8 + 1],
            4..6 => [10, self.below(4) as u8, 0, 1],
            6 => [127, 0, 0, 1],
            _ => self.random.next_u32().to_be_bytes(),
        }
    }

    fn address6(&mut self) -> [u8; 16] {
        let mut address = [0; 16];
        let prefix = self.pick(&[[0x20, 0x01, 0x0d, 0xb8], [0xfe, 0x80, 0, 0]]);
        address[..4].copy_from_slice(&prefix);
        address[15] = self.below(8) as u8 + 1;
        address
    }

    fn port(&mut self) -> u16 {
        match self.below(2) {
            0 => 32_768 + self.below(28_000) as u16,
            _ => self.pick(&[
                22, 25, 53, 80, 80, 123, 143, 443, 443, 443, 993, 1500, 5353, 8080,
            ]),
        }
    }

    fn frame(&mut self, ethertype: u16, payload: Vec<u8>) -> Frame {
        Frame {
            ethertype,
            to: self.mac(),
            from: self.mac(),
            payload,
        }
    }

    /// A transport header and data, to fill `len` bytes or more.
    fn transport(&mut self, protocol: u8, len: usize) -> Vec<u8> {
        let (source, destination) = (self.port().to_be_bytes(), self.port().to_be_bytes());
        let mut bytes = [source, destination].concat();
        match protocol {
            TCP => {
                let (sequence, acknowledged) = (self.random.next_u32(), self.random.next_u32());
                bytes.extend_from_slice(&sequence.to_be_bytes());
                bytes.extend_from_slice(&acknowledged.to_be_bytes());
                let words = self.pick(&[5, 5, 8, 8, 10]);
                let flags = self.pick(&[
                    0x10, 0x10, 0x10, 0x18, 0x18, 0x02, 0x12, 0x11, 0x04, 0x29, 0xc2,
                ]);
                bytes.extend_from_slice(&[words << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
                bytes.resize(usize::from(words) * 4, 1);
            }
            UDP => {
                bytes.extend_from_slice(&(len.max(8) as u16).to_be_bytes());
                bytes.extend_from_slice(&[0, 0]);
            }
            1 => {
                let kind = self.pick(&[
                    [0, 0],
                    [8, 0],
                    [3, 1],
                    [3, 3],
                    [5, 0],
                    [11, 0],
                    [12, 0],
                    [13, 0],
                    [14, 0],
                    [17, 0],
                ]);
                bytes[..2].copy_from_slice(&kind);
            }
            58 => {
                let kind = self.pick(&[
                    [1, 0],
                    [3, 0],
                    [128, 0],
                    [129, 0],
                    [133, 0],
                    [134, 0],
                    [135, 0],
                    [136, 0],
                    [137, 0],
                ]);
                bytes[..2].copy_from_slice(&kind);
            }
            _ => bytes[0] = self.pick(&[0x11, 0x12, 0x16, 0x20, 0x45]),
        }
        while bytes.len() < len {
            bytes.extend_from_slice(&self.random.next_u64().to_be_bytes());
        }
        bytes.truncate(len.max(20));
        bytes
    }

    fn ipv4(&mut self, protocol: u8, fragment: u16) -> Frame {
        let payload = self.transport(protocol, self.size.saturating_sub(34));
        let packet = self.ipv4_packet(protocol, fragment, &[], &payload);
        self.frame(IPV4, packet)
    }

    fn ipv4_packet(
        &mut self,
        protocol: u8,
        fragment: u16,
        options: &[u8],
        payload: &[u8],
    ) -> Vec<u8> {
        let words = 5 + options.len() / 4;
        let total = (words * 4 + payload.len()) as u16;
        let mut packet = vec![0x40 | words as u8, self.pick(&[0, 0, 0, 0x10, 0xb8])];
        packet.extend_from_slice(&total.to_be_bytes());
        packet.extend_from_slice(&(self.random.next_u32() as u16).to_be_bytes());
        packet.extend_from_slice(&fragment.to_be_bytes());
        packet.extend_from_slice(&[self.pick(&[1, 63, 64, 128, 255]), protocol, 0, 0]);
        packet.extend_from_slice(&self.address4());
        packet.extend_from_slice(&self.address4());
        packet.extend_from_slice(options);
        let checksum = checksum(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend_from_slice(payload);
        packet
    }

    fn options(&mut self) -> Frame {
        let payload = self.transport(TCP, 40);
        let packet = self.ipv4_packet(TCP, 0x4000, &[7, 7, 4, 0, 0, 0, 0, 0], &payload);
        self.frame(IPV4, packet)
    }

    fn dns(&mut self) -> Frame {
        let mut payload = self.transport(UDP, self.size.saturating_sub(34).min(200));
        let server = self.pick(&[0usize, 2]);
        payload[server..server + 2].copy_from_slice(&53u16.to_be_bytes());
        let packet = self.ipv4_packet(UDP, 0, &[], &payload);
        self.frame(IPV4, packet)
    }

    /// With extension headers before the transport header.
    fn ipv6(&mut self, protocol: u8, extensions: &[u8]) -> Frame {
        let size = self.size.saturating_sub(54 + 8 * extensions.len());
        let mut payload = self.transport(protocol, size);
        let mut next = protocol;
        for &extension in extensions.iter().rev() {
            // Eight bytes each: the next header, no more length (an
            // authentication header counts in words and less two).
            let len = u8::from(extension == 51) * 4;
            let mut header = vec![next, len, 0, 0, 0, 0, 0, 1];
            header.resize(8 + usize::from(len) * 4, 0);
            header.extend_from_slice(&payload);
            (payload, next) = (header, extension);
        }
        let mut packet = vec![0x60, self.pick(&[0, 0, 0xb8]), 0, 0];
        packet.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        packet.extend_from_slice(&[next, 64]);
        packet.extend_from_slice(&self.address6());
        packet.extend_from_slice(&self.address6());
        packet.extend_from_slice(&payload);
        self.frame(IPV6, packet)
    }

    fn arp(&mut self, ethertype: u16) -> Frame {
        let mut packet = vec![0, 1, 8, 0, 6, 4, 0, self.pick(&[1, 2])];
        packet.extend_from_slice(&self.mac());
        packet.extend_from_slice(&self.address4());
        packet.extend_from_slice(&self.mac());
        packet.extend_from_slice(&self.address4());
        packet.resize(46, 0);
        let mut frame = self.frame(ethertype, packet);
        frame.to = [0xff; 6];
        frame
    }

    /// To a broadcast or multicast address.
    fn group(&mut self, ethertype: u16) -> Frame {
        if ethertype == IPV4 {
            let mut frame = self.ipv4(UDP, 0);
            let (to, address) = self.pick(&[
                ([0xff; 6], [255, 255, 255, 255]),
                ([0xff; 6], [192, 168, 1, 255]),
                ([0x01, 0, 0x5e, 0, 0, 0xfb], [224, 0, 0, 251]),
            ]);
            frame.to = to;
            frame.payload[16..20].copy_from_slice(&address);
            frame
        } else {
            let mut frame = self.ipv6(58, &[]);
            frame.to = [0x33, 0x33, 0, 0, 0, 1];
            frame.payload[24..40]
                .copy_from_slice(&[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            frame
        }
    }

    fn inner(&mut self) -> Frame {
        match self.below(4) {
            0 => self.ipv6(TCP, &[]),
            1 => self.arp(0x0806),
            2 => self.ipv4(UDP, 0),
            _ => self.ipv4(TCP, 0),
        }
    }

    /// Inside one or two VLAN tags.
    fn tagged(&mut self, outer: u16, tags: usize) -> Frame {
        let mut frame = self.inner();
        for tag in (0..tags).rev() {
            let control = self.pick(&[1u16, 100, 100, 0x6064, 4000]);
            let mut payload = control.to_be_bytes().to_vec();
            payload.extend_from_slice(&frame.ethertype.to_be_bytes());
            payload.extend_from_slice(&frame.payload);
            frame.payload = payload;
            frame.ethertype = if tag == 0 { outer } else { 0x8100 };
        }
        frame
    }

    fn mpls(&mut self, labels: u32) -> Frame {
        let mut frame = match self.below(2) {
            0 => self.ipv6(TCP, &[]),
            _ => self.ipv4(TCP, 0),
        };
        let mut payload = Vec::new();
        for label in 1..=labels {
            let number = self.pick(&[16u32, 1024, 100_000]);
            let bottom = u32::from(label == labels);
            payload.extend_from_slice(&(number << 12 | bottom << 8 | 64).to_be_bytes());
        }
        payload.extend_from_slice(&frame.payload);
        frame.payload = payload;
        frame.ethertype = self.pick(&[0x8847, 0x8847, 0x8848]);
        frame
    }

    fn pppoe(&mut self) -> Frame {
        let ethertype = self.pick(&[0x8863, 0x8864, 0x8864, 0x8864]);
        let mut frame = self.inner();
        let protocol: u16 = match frame.ethertype {
            IPV4 => 0x0021,
            IPV6 => 0x0057,
            _ => 0xc021,
        };
        let session = self.pick(&[0x0001u16, 0x0027]);
        let mut payload = vec![0x11, 0];
        payload.extend_from_slice(&session.to_be_bytes());
        payload.extend_from_slice(&(frame.payload.len() as u16 + 2).to_be_bytes());
        payload.extend_from_slice(&protocol.to_be_bytes());
        payload.extend_from_slice(&frame.payload);
        frame.payload = payload;
        frame.ethertype = ethertype;
        frame
    }

    fn llc(&mut self, head: &[u8]) -> Frame {
        let mut payload = head.to_vec();
        while payload.len() < 46 {
            payload.push(self.below(256) as u8);
        }
        let mut frame = self.frame(LLC, payload);
        if head[0] == 0x42 {
            frame.to = [0x01, 0x80, 0xc2, 0, 0, 0];
        }
        frame
    }

    fn snap(&mut self) -> Frame {
        let organisation = self.pick(&[[0, 0, 0], [8, 0, 7], [0, 0, 0x0c]]);
        let kind = self.pick(&[0x0800u16, 0x809b, 0x80f3, 0x8137]);
        let inner = self.ipv4(TCP, 0).payload;
        let mut payload = vec![0xaa, 0xaa, 3];
        payload.extend_from_slice(&organisation);
        payload.extend_from_slice(&kind.to_be_bytes());
        payload.extend_from_slice(&inner);
        self.frame(LLC, payload)
    }

    fn other(&mut self, ethertype: u16) -> Frame {
        let payload = self.transport(0, 46);
        self.frame(ethertype, payload)
    }

    fn tunnelled(&mut self, port: u16, header: &[u8]) -> Frame {
        let Frame {
            ethertype,
            to,
            from,
            payload: inner,
        } = self.inner();
        let mut payload = self.transport(UDP, 8);
        payload.truncate(8);
        payload[2..4].copy_from_slice(&port.to_be_bytes());
        payload.extend_from_slice(header);
        payload.extend_from_slice(&to);
        payload.extend_from_slice(&from);
        payload.extend_from_slice(&ethertype.to_be_bytes());
        payload.extend_from_slice(&inner);
        let packet = self.ipv4_packet(UDP, 0, &[], &payload);
        self.frame(IPV4, packet)
    }

    fn vxlan(&mut self) -> Frame {
        let network = self.pick(&[1, 42]);
        self.tunnelled(4789, &[8, 0, 0, 0, 0, 0, network, 0])
    }

    fn geneve(&mut self) -> Frame {
        let network = self.pick(&[1, 42]);
        self.tunnelled(6081, &[0, 0, 0x65, 0x58, 0, 0, network, 0])
    }
}

/// The Internet checksum of a header whose checksum field is 0.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

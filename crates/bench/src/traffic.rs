//! Packets to filter: a made-up but realistic mix, the same in every run.
//!
//! The mix is what an office uplink carries, as a capture with a snapshot length
//! of 128 bytes holds it: frames of 60 to 128 bytes end to end in one buffer,
//! each after a record header of 16 bytes. Kinds, ports, directions, header
//! lengths and payloads come from a generator with a fixed seed, in no order
//! that a branch predictor could learn. Of 100 frames about:
//!
//! | frames | what |
//! |---|---|
//! | 62 | TCP over IPv4: 30 of 100 to or from port 22, 45 port 443, 10 port 80, the rest high ports; half of them without payload; 3 of 100 with IP options |
//! | 19 | UDP over IPv4: DNS, QUIC, high ports |
//! | 11 | TCP or UDP over IPv6, with the same ports |
//! | 3 | later fragments of IPv4 |
//! | 2 | ICMP |
//! | 2 | ARP |
//! | 1 | 802.1Q-tagged |

use spec::SplitMix;

/// Number of frames of the large set.
pub(crate) const MANY: usize = 16_384;

const SNAPSHOT_LENGTH: usize = 128;
const RECORD_HEADER: usize = 16;
const SHORTEST: usize = 60;

/// Frames, end to end in one buffer as a capture holds them.
pub(crate) struct Traffic {
    buffer: Vec<u8>,
    records: Vec<Record>,
}

struct Record {
    start: usize,
    captured: usize,
    wire_len: u32,
}

/// One frame.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// The captured bytes.
    pub(crate) data: &'a [u8],
    /// Its length on the wire.
    pub(crate) wire_len: u32,
    /// The captured bytes and seven more, for engines that load eight bytes for one.
    pub(crate) with_slack: &'a [u8],
}

impl Traffic {
    /// The mix of the module's text.
    pub(crate) fn mixed(frames: usize) -> Traffic {
        let mut dice = Dice(SplitMix::new(22));
        let mut traffic = Traffic::empty();
        for _ in 0..frames {
            traffic.push(&dice.frame());
        }
        traffic
    }

    /// One frame of an SSH session: TCP over IPv4 to port 22, with payload.
    pub(crate) fn ssh() -> Traffic {
        let mut dice = Dice(SplitMix::new(1));
        let mut traffic = Traffic::empty();
        traffic.push(&dice.ipv4_tcp(
            Ports {
                src: 50_022,
                dst: 22,
            },
            5,
            36,
        ));
        traffic
    }

    fn empty() -> Traffic {
        Traffic {
            buffer: Vec::new(),
            records: Vec::new(),
        }
    }

    fn push(&mut self, frame: &[u8]) {
        let captured = frame.len().min(SNAPSHOT_LENGTH);
        if self.buffer.is_empty() {
            self.buffer.resize(RECORD_HEADER, 0);
        }
        self.records.push(Record {
            start: self.buffer.len(),
            captured,
            wire_len: frame.len() as u32,
        });
        self.buffer.extend_from_slice(&frame[..captured]);
        self.buffer.resize(self.buffer.len() + RECORD_HEADER, 0);
    }

    /// All frames in order.
    pub(crate) fn frames(&self) -> Vec<Frame<'_>> {
        self.records
            .iter()
            .map(|record| {
                let end = record.start + record.captured;
                Frame {
                    data: &self.buffer[record.start..end],
                    wire_len: record.wire_len,
                    with_slack: &self.buffer[record.start..end + 7],
                }
            })
            .collect()
    }
}

#[derive(Clone, Copy)]
struct Ports {
    src: u16,
    dst: u16,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
const VLAN: u16 = 0x8100;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

struct Dice(SplitMix);

impl Dice {
    fn below(&mut self, bound: u32) -> u32 {
        (((self.0.next_u64() >> 32) * u64::from(bound)) >> 32) as u32
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.below(256) as u8)
    }

    fn frame(&mut self) -> Vec<u8> {
        match self.below(100) {
            0..62 => {
                let ports = self.tcp_ports();
                let payload = self.payload();
                let words = if self.below(100) < 3 { 6 } else { 5 };
                self.ipv4_tcp(ports, words, payload)
            }
            62..81 => {
                let ports = self.udp_ports();
                let payload = 30 + self.below(1200) as usize;
                let datagram = self.udp(ports, payload);
                self.ipv4(UDP, 5, 0, &datagram)
            }
            81..92 => self.ipv6(),
            92..95 => {
                let offset = 185 * (1 + self.below(8) as u16);
                let rest = vec![self.below(256) as u8; 1480];
                self.ipv4(UDP, 5, offset, &rest)
            }
            95..97 => {
                let echo = self.bytes::<64>();
                self.ipv4(ICMP, 5, 0, &echo)
            }
            97..99 => {
                let request = self.bytes::<28>();
                self.ethernet(ARP, &request)
            }
            _ => {
                let ports = self.tcp_ports();
                let plain = self.ipv4_tcp(ports, 5, 200);
                // The tag stands between the addresses and the EtherType.
                let tagged = [&[0, 100], &plain[12..]].concat();
                self.ethernet(VLAN, &tagged)
            }
        }
    }

    fn tcp_ports(&mut self) -> Ports {
        let service = match self.below(100) {
            0..30 => 22,
            30..75 => 443,
            75..85 => 80,
            _ => self.high_port(),
        };
        self.either_way(service)
    }

    fn udp_ports(&mut self) -> Ports {
        let service = match self.below(100) {
            0..40 => 53,
            40..80 => 443,
            _ => self.high_port(),
        };
        self.either_way(service)
    }

    fn either_way(&mut self, service: u16) -> Ports {
        let client = self.high_port();
        if self.below(2) == 0 {
            Ports {
                src: client,
                dst: service,
            }
        } else {
            Ports {
                src: service,
                dst: client,
            }
        }
    }

    fn high_port(&mut self) -> u16 {
        32_768 + self.below(28_000) as u16
    }

    /// None, little (interactive), or a full segment.
    fn payload(&mut self) -> usize {
        match self.below(4) {
            0 | 1 => 0,
            2 => 1 + self.below(200) as usize,
            _ => 1448,
        }
    }

    fn ipv4_tcp(&mut self, ports: Ports, header_words: u8, payload: usize) -> Vec<u8> {
        let segment = self.tcp(ports, payload);
        self.ipv4(TCP, header_words, 0, &segment)
    }

    fn ipv6(&mut self) -> Vec<u8> {
        let (protocol, payload) = if self.below(3) == 0 {
            let ports = self.udp_ports();
            (UDP, self.udp(ports, 120))
        } else {
            let ports = self.tcp_ports();
            let length = self.payload();
            (TCP, self.tcp(ports, length))
        };
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([protocol, 64]);
        packet.extend(self.bytes::<32>());
        packet.extend(payload);
        self.ethernet(IPV6, &packet)
    }

    fn ipv4(&mut self, protocol: u8, header_words: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let header = usize::from(header_words) * 4;
        let mut packet = vec![0x40 | header_words, 0];
        packet.extend(((header + payload.len()) as u16).to_be_bytes());
        packet.extend(self.bytes::<2>());
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol]);
        packet.extend(self.bytes::<10>());
        // Options that do nothing.
        packet.resize(header, 1);
        packet.extend(payload);
        self.ethernet(IPV4, &packet)
    }

    fn tcp(&mut self, ports: Ports, payload: usize) -> Vec<u8> {
        // With timestamps, as nearly every segment today.
        let header_words = if self.below(10) == 0 { 5 } else { 8 };
        let mut segment = Vec::with_capacity(64 + payload);
        segment.extend(ports.src.to_be_bytes());
        segment.extend(ports.dst.to_be_bytes());
        segment.extend(self.bytes::<8>());
        segment.extend([header_words << 4, 0x10]);
        segment.extend(self.bytes::<6>());
        segment.resize(usize::from(header_words) * 4, 1);
        let filler = self.below(256) as u8;
        segment.resize(segment.len() + payload, filler);
        segment
    }

    fn udp(&mut self, ports: Ports, payload: usize) -> Vec<u8> {
        let mut datagram = Vec::with_capacity(8 + payload);
        datagram.extend(ports.src.to_be_bytes());
        datagram.extend(ports.dst.to_be_bytes());
        datagram.extend((8 + payload as u16).to_be_bytes());
        datagram.extend(self.bytes::<2>());
        let filler = self.below(256) as u8;
        datagram.resize(8 + payload, filler);
        datagram
    }

    fn ethernet(&mut self, protocol: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(14 + packet.len());
        frame.extend(self.bytes::<12>());
        frame.extend(protocol.to_be_bytes());
        frame.extend(packet);
        frame.resize(frame.len().max(SHORTEST), 0);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_large_set_is_distinct_and_holds_every_kind() {
        let traffic = Traffic::mixed(MANY);
        let frames = traffic.frames();
        let distinct: HashSet<_> = frames.iter().map(|frame| frame.data).collect();
        assert_eq!(distinct.len(), MANY);
        for protocol in [IPV4, IPV6, ARP, VLAN] {
            let kind = protocol.to_be_bytes();
            let share = frames.iter().filter(|frame| frame.data[12..14] == kind);
            assert!(share.count() * 200 > MANY, "{protocol:#x}");
        }
        for frame in &frames {
            assert!((SHORTEST..=SNAPSHOT_LENGTH).contains(&frame.data.len()));
            assert!(frame.wire_len as usize >= frame.data.len());
            assert_eq!(frame.with_slack.len(), frame.data.len() + 7);
        }
    }
}

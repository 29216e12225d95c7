//! Interfaces of captures and their timestamps.

use crate::{ByteOrder, LinkType};

/// One interface of a capture. A pcap file has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Link type of the packets.
    pub link_type: LinkType,
    /// Snapshot length that the file states: maximum captured bytes of a packet; 0 is no
    /// limit.
    pub snaplen: u32,
    /// Unit of timestamps.
    pub resolution: Resolution,
    /// Seconds to add to timestamps.
    pub time_offset: i64,
    /// Byte order of the file or section that describes it.
    pub order: ByteOrder,
}

impl Interface {
    /// An Ethernet interface without a snapshot limit that counts microseconds,
    /// described in little-endian order: what an empty capture is written for.
    pub const UNKNOWN: Interface = Interface {
        link_type: LinkType::ETHERNET,
        snaplen: LinkType::ETHERNET.max_captured(),
        resolution: Resolution::MICROSECONDS,
        time_offset: 0,
        order: ByteOrder::Little,
    };
}

/// Unit of timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// 10⁻ⁿ seconds; n is at most 19.
    Decimal(u8),
    /// 2⁻ⁿ seconds; n is at most 63.
    Binary(u8),
}

impl Resolution {
    /// Microseconds, the default of both formats.
    pub const MICROSECONDS: Resolution = Resolution::Decimal(6);
    /// Nanoseconds.
    pub const NANOSECONDS: Resolution = Resolution::Decimal(9);

    /// Units in a second.
    pub fn per_second(self) -> u64 {
        match self {
            Resolution::Decimal(digits) => 10u64.pow(u32::from(digits)),
            Resolution::Binary(bits) => 1 << bits,
        }
    }

    /// Value of pcapng's `if_tsresol`.
    pub fn encode(self) -> u8 {
        match self {
            Resolution::Decimal(digits) => digits,
            Resolution::Binary(bits) => 0x80 | bits,
        }
    }

    /// Resolution of a value of pcapng's `if_tsresol`; `None` if it exceeds 64 bits.
    pub fn decode(byte: u8) -> Option<Resolution> {
        match byte {
            0..=19 => Some(Resolution::Decimal(byte)),
            0x80..=0xbf => Some(Resolution::Binary(byte & 0x7f)),
            _ => None,
        }
    }
}

/// Time of capture of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds of the second; finer resolutions are truncated.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// Timestamp of a count of the interface's units since 1970.
    pub fn from_units(units: u64, interface: &Interface) -> Timestamp {
        let per_second = interface.resolution.per_second();
        let fraction = u128::from(units % per_second) * 1_000_000_000 / u128::from(per_second);
        Timestamp {
            seconds: ((units / per_second) as i64).wrapping_add(interface.time_offset),
            nanoseconds: fraction as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolution_byte_decodes_to_itself_or_not_at_all() {
        for byte in 0..=255 {
            match Resolution::decode(byte) {
                Some(resolution) => {
                    assert_eq!(resolution.encode(), byte);
                    assert!(resolution.per_second() >= 1);
                }
                None => assert!((20..0x80).contains(&byte) || byte >= 0xc0),
            }
        }
    }

    #[test]
    fn units_become_seconds_and_nanoseconds() {
        let mut interface = Interface {
            link_type: LinkType::ETHERNET,
            snaplen: 0,
            resolution: Resolution::MICROSECONDS,
            time_offset: 0,
            order: ByteOrder::Little,
        };
        let at = |interface: &Interface, units| {
            let time = Timestamp::from_units(units, interface);
            (time.seconds, time.nanoseconds)
        };
        assert_eq!(at(&interface, 1_500_000), (1, 500_000_000));
        interface.resolution = Resolution::Binary(2);
        assert_eq!(at(&interface, 7), (1, 750_000_000));
        interface.resolution = Resolution::Decimal(19);
        interface.time_offset = -2;
        assert_eq!(at(&interface, u64::MAX), (-1, 844_674_407));
        interface.resolution = Resolution::Decimal(0);
        assert_eq!(at(&interface, 5), (3, 0));
    }
}

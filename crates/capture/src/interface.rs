//! Where packets came by, and the clock that stamped them.

use crate::{ByteOrder, LinkType};

/// One interface of a capture. A pcap file has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// What its packets start with.
    pub link_type: LinkType,
    /// The most bytes kept of a packet, as the file states it (0: no limit).
    pub snaplen: u32,
    /// Unit of its timestamps.
    pub resolution: Resolution,
    /// Seconds to add to its timestamps.
    pub time_offset: i64,
    /// Byte order of the file or section that describes it.
    pub order: ByteOrder,
}

/// Unit of timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// 10 to the minus so many seconds; at most 19.
    Decimal(u8),
    /// 2 to the minus so many seconds; at most 63.
    Binary(u8),
}

impl Resolution {
    /// Microseconds: what both formats mean unless they say otherwise.
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

    /// As pcapng's `if_tsresol` writes it.
    pub fn encode(self) -> u8 {
        match self {
            Resolution::Decimal(digits) => digits,
            Resolution::Binary(bits) => 0x80 | bits,
        }
    }

    /// From pcapng's `if_tsresol`; `None` when 64 bits can't hold it.
    pub fn decode(byte: u8) -> Option<Resolution> {
        match byte {
            0..=19 => Some(Resolution::Decimal(byte)),
            0x80..=0xbf => Some(Resolution::Binary(byte & 0x7f)),
            _ => None,
        }
    }
}

/// When a packet was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// And nanoseconds; what is finer is dropped.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// A count of units since 1970.
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

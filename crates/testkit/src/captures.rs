//! Captures to measure with and to test with, of any size, the same for the same
//! seed.
//!
//! A mix of traffic is drawn from: mostly TCP, some UDP and DNS, a little ICMP,
//! ARP and IPv6, a few fragments; sizes as on a link with many small packets
//! (276 bytes on average) or many full ones (784). [`Mix::Every`] instead draws
//! every kind of frame that a capture filter can name, equally often, also cut
//! short: that is for tests.
//!
//! A large capture repeats a pool of distinct packets in a shuffled order with
//! fresh timestamps: making packets anew would take longer than filtering them,
//! and the pool is too large for a branch predictor to learn.

mod frame;
mod kinds;

use std::io::{self, BufWriter, Write};

use capture::{ByteOrder, Interface, PcapHeader, Resolution};
use spec::{Random, SplitMix};

pub use frame::Link;

/// Kind of the packets of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Ordinary traffic, 276 bytes on average.
    Small,
    /// Ordinary traffic, 784 bytes on average.
    Large,
    /// Every kind of frame, none larger than 200 bytes.
    Every,
}

/// Distinct packets in a capture.
const POOL: usize = 1 << 15;

/// Bytes kept of a packet, as tcpdump has it.
pub const SNAPLEN: u32 = 262_144;

/// Distinct packets of a mix, without link-layer header.
pub fn packets(mix: Mix, link: Link, count: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut random = SplitMix::new(seed);
    let mut packets = Vec::with_capacity(count);
    while packets.len() < count {
        packets.extend(kinds::draw(mix, &mut random).on(link));
    }
    packets
}

/// Writes a pcap capture of at least `bytes` bytes; gives the number of packets.
pub fn write(mix: Mix, link: Link, bytes: u64, seed: u64, out: impl Write) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let header = PcapHeader::new(Interface {
        link_type: link.link_type(),
        snaplen: SNAPLEN,
        resolution: Resolution::MICROSECONDS,
        time_offset: 0,
        order: ByteOrder::Little,
    });
    out.write_all(header.raw())?;
    let pool = packets(mix, link, POOL, seed);
    let mut random = SplitMix::new(!seed);
    let (mut written, mut count) = (header.raw().len() as u64, 0);
    let mut microseconds = 1_700_000_000_000_000u64;
    while written < bytes {
        let draw = random.next_u32();
        let packet = &pool[draw as usize % POOL];
        microseconds += u64::from(draw >> 20);
        let len = packet.len() as u32;
        // A few are captured in part.
        let kept = if draw.is_multiple_of(64) {
            len.min(96)
        } else {
            len
        };
        let seconds = (microseconds / 1_000_000) as u32;
        let fraction = (microseconds % 1_000_000) as u32;
        for word in [seconds, fraction, kept, len] {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(&packet[..kept as usize])?;
        written += 16 + u64::from(kept);
        count += 1;
    }
    out.flush()?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_match_the_names() {
        for (mix, average) in [(Mix::Small, 276), (Mix::Large, 784)] {
            let packets = packets(mix, Link::Ethernet, 40_000, 7);
            let total: usize = packets.iter().map(Vec::len).sum();
            let found = total / packets.len();
            assert!(found.abs_diff(average) < average / 20, "{mix:?}: {found}");
        }
    }

    #[test]
    fn equal_seeds_give_equal_captures() {
        let capture = |seed| {
            let mut bytes = Vec::new();
            let count = write(Mix::Small, Link::LinuxSll2, 100_000, seed, &mut bytes).unwrap();
            assert!(count > 100 && bytes.len() >= 100_000);
            bytes
        };
        assert_eq!(capture(3), capture(3));
        assert_ne!(capture(3), capture(4));
    }
}

//! Finding a record somewhere in the middle of a capture.
//!
//! Neither format marks where records start, so this guesses: a place is taken
//! when a chain of plausible records starts there. A guess can be wrong; whoever
//! splits a capture compares it with where the part before really ended, and
//! reads the part again from there when it differs. So a good guess only saves
//! time.
//!
//! Cost: a byte-wise search over one record's length in general, some four
//! steps of a chain per byte at worst.

use crate::framing::{Framing, Kind};

/// Records that must follow one another for a place to be taken.
const CHAIN: usize = 12;

/// Seconds between two of them.
const GAP: u32 = 7 * 24 * 3600;

/// Offset in `bytes` at which a record (or block) of such a capture probably
/// starts. A chain that reaches the end of `bytes` sooner is taken when it has
/// two links.
pub fn first_record(framing: &Framing, bytes: &[u8]) -> Option<usize> {
    (0..bytes.len()).find(|&at| is_chain(framing, &bytes[at..]))
}

fn is_chain(framing: &Framing, bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let mut before = None;
    for links in 0..CHAIN {
        let Some(len) = framing.record_len(rest) else {
            return links >= 2;
        };
        let is_plausible = match &framing.0 {
            Kind::Pcap(header) => {
                let (seconds, _) = header.stored_time(rest);
                let follows = before.is_none_or(|before| seconds.abs_diff(before) <= GAP);
                before = Some(seconds);
                follows && header.is_plausible(rest)
            }
            Kind::Pcapng(sections) => sections.is_plausible(rest),
        };
        if !is_plausible {
            return false;
        }
        match rest.get(len as usize..) {
            Some(after) => rest = after,
            None => return links >= 2,
        }
    }
    true
}

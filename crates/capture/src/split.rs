//! Heuristic search for the start of a record in the middle of a capture, to split it.
//!
//! Neither format marks the start of records, so the search accepts the first offset at
//! which a chain of plausible records starts. The result may be wrong: the caller
//! compares it with the end of the preceding part and reads the part again if they
//! differ.
//!
//! Linear in the distance to the record: a few steps of a chain for each byte.

use crate::framing::{Framing, Kind};

/// Number of consecutive plausible records that are required.
const CHAIN: usize = 12;

/// Maximum time between two of them in seconds.
const MAX_GAP: u32 = 7 * 24 * 3600;

/// Offset in `bytes` at which a record or block of this capture probably starts. A
/// shorter chain that reaches the end of `bytes` needs two records.
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
                let follows = before.is_none_or(|before| seconds.abs_diff(before) <= MAX_GAP);
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

//! Where records start in the middle of a capture, to split it. Neither format marks it.
//!
//! [`first_record`] guesses for threads of one process: the first offset at which a chain of
//! plausible records starts. The result may be wrong: the caller compares it with the end of the
//! preceding part and reads the part again if they differ. Linear in the distance to the record: a
//! few steps of a chain for each byte.
//!
//! [`boundary`] answers for tasks that cannot compare, such as those of a cluster: neighbours compute
//! the same answer from the same bytes. It takes each plausible record that reaches over the place,
//! from whatever byte before it, and keeps those that plausible records follow. Of a capture inside
//! a packet the records and the packet's own end are both kept, so there is no answer, and the part
//! before is read on. Linear in the bytes, with a small constant: few of them look like a length.

use crate::framing::{Framing, Kind};

/// Number of consecutive plausible records that are required.
const CHAIN: usize = 12;

/// Maximum time between two of them in seconds.
const MAX_GAP: u32 = 7 * 24 * 3600;

/// Bytes that [`boundary`] is given before and behind a place, if the capture has them; no record
/// that counts is longer.
pub const BOUNDARY_REACH: usize = 512 << 10;

/// Offset in `bytes` at which a record or block of this capture probably starts. A
/// shorter chain that reaches the end of `bytes` needs two records.
pub fn first_record(framing: &Framing, bytes: &[u8]) -> Option<usize> {
    (0..bytes.len()).find(|&at| is_chain(framing, &bytes[at..], CHAIN, false))
}

/// Offset in `bytes` of the first record or block that starts at `at` or behind it; their length if
/// the capture ends before one (`is_end`: it ends with `bytes`). `None` if that is in doubt. In
/// pcapng, `bytes` and `at` lie at multiples of 4 of the capture, as all blocks do.
pub fn boundary(framing: &Framing, bytes: &[u8], at: usize, is_end: bool) -> Option<usize> {
    let mut starts = match &framing.0 {
        Kind::Pcap(header) => {
            let end_of = |from: usize| {
                let record = &bytes[from..];
                let len = usize::try_from(header.record_len(record)?).ok()?;
                let end = from.checked_add(len)?;
                let encloses = end >= at && end <= bytes.len() && header.is_plausible(record);
                encloses.then_some(end)
            };
            let first = at.saturating_sub(header.max_record());
            (first..at).filter_map(end_of).collect::<Vec<_>>()
        }
        Kind::Pcapng(sections) => {
            let encloses = |&end: &usize| {
                let len = end.checked_sub(4).and_then(|len_at| bytes.get(len_at..end));
                let len = len.map(|len| sections.order().u32(len, 0) as usize);
                let from = len.and_then(|len| end.checked_sub(len));
                from.is_some_and(|from| {
                    from < at && from + 12 <= end && sections.is_plausible(&bytes[from..end])
                })
            };
            let ends = (at..=bytes.len()).step_by(4);
            ends.filter(encloses).collect()
        }
    };
    starts.sort_unstable();
    starts.dedup();
    for links in [CHAIN, usize::MAX] {
        if links == CHAIN || starts.len() > 1 {
            starts.retain(|&start| is_chain(framing, &bytes[start..], links, is_end));
        }
    }
    match starts[..] {
        [start] => Some(start),
        _ => None,
    }
}

/// True if so many plausible records follow each other from the start of `bytes`, or those that
/// there are, of which there are two unless the capture ends with them.
fn is_chain(framing: &Framing, bytes: &[u8], most: usize, is_end: bool) -> bool {
    let mut rest = bytes;
    let mut before = None;
    for links in 0..most {
        let Some(len) = framing.record_len(rest) else {
            return links >= 2 || is_end && rest.is_empty();
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
        match usize::try_from(len).ok().and_then(|len| rest.get(len..)) {
            Some(after) => rest = after,
            None => return links >= 2,
        }
    }
    true
}

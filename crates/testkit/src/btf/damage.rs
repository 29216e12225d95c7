//! Mutation of a BTF blob: words changed, moved or removed, or the blob truncated.

use spec::SplitMix;

/// Bytes of the header.
const HEADER: usize = 24;

/// Values at the edges of what fields hold.
const EDGES: &[u32] = &[
    0,
    1,
    2,
    3,
    7,
    8,
    9,
    31,
    32,
    33,
    127,
    128,
    0xff,
    0xffff,
    0xf_ffff,
    0x10_0000,
    0xff_ffff,
    0x100_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fff0,
    0xffff_ffff,
];

/// Damages a blob in one to four places.
pub fn damage(blob: &mut Vec<u8>, random: &mut SplitMix) {
    for _ in 0..=random.next_u64() % 4 {
        damage_once(blob, random);
    }
}

fn damage_once(blob: &mut Vec<u8>, random: &mut SplitMix) {
    let mut below = |limit: usize| (random.next_u64() % limit.max(1) as u64) as usize;
    if blob.len() < HEADER + 16 {
        blob.push(below(256) as u8);
        return;
    }
    let types_len = u32::from_le_bytes([blob[12], blob[13], blob[14], blob[15]]) as usize;
    let words = types_len.min(blob.len() - HEADER - 4) / 4;
    let at = HEADER + 4 * below(words);
    let word = u32::from_le_bytes([blob[at], blob[at + 1], blob[at + 2], blob[at + 3]]);
    let new = match below(24) {
        0..4 => word ^ 1 << below(32),
        4..8 => word.wrapping_add(below(9) as u32).wrapping_sub(4),
        8..11 => EDGES[below(EDGES.len())],
        11..13 => below(32) as u32,
        13..15 => {
            let from = HEADER + 4 * below(words);
            u32::from_le_bytes([blob[from], blob[from + 1], blob[from + 2], blob[from + 3]])
        }
        // Another kind, or another count.
        15..17 => word & !0x1f00_0000 | (below(32) as u32) << 24,
        17 => word & 0xffff_0000 | below(5) as u32,
        18 if below(3) == 0 => return reshape(blob, types_len, below),
        18 => return damage_header(blob, below),
        19 | 20 => return damage_strings(blob, HEADER + types_len, below),
        21 => return take_out(blob, at, below(2) == 0),
        22 => {
            let len = below(blob.len());
            return blob.truncate(if below(8) == 0 { len } else { blob.len() - 1 });
        }
        _ => {
            let extra = below(8);
            return blob.extend(std::iter::repeat_n(below(2) as u8, extra));
        }
    };
    blob[at..at + 4].copy_from_slice(&new.to_le_bytes());
}

fn damage_header(blob: &mut [u8], mut below: impl FnMut(usize) -> usize) {
    let at = below(HEADER);
    match below(3) {
        0 => blob[at] = below(256) as u8,
        1 => blob[at] = blob[at].wrapping_add(below(9) as u8).wrapping_sub(4),
        _ => {
            let at = at & !3;
            let edge = EDGES[below(EDGES.len())];
            blob[at..at + 4].copy_from_slice(&edge.to_le_bytes());
        }
    }
}

/// Removes or swaps whole sections, with a matching header.
fn reshape(blob: &mut Vec<u8>, types_len: usize, mut below: impl FnMut(usize) -> usize) {
    let types_end = (HEADER + types_len).min(blob.len());
    let types = blob[HEADER..types_end].to_vec();
    let strings = blob[types_end..].to_vec();
    blob.truncate(HEADER);
    let (types_len, strings_len) = (types.len() as u32, strings.len() as u32);
    let header = match below(4) {
        // No types, which may stand where they are not aligned.
        0 => {
            blob.extend(strings);
            [strings_len, 0, 0, strings_len]
        }
        1 => {
            blob.extend(strings);
            [0, 0, 0, strings_len]
        }
        2 => {
            blob.extend(strings);
            blob.extend(types);
            [strings_len, types_len, 0, strings_len]
        }
        _ => return,
    };
    for (field, word) in header.into_iter().enumerate() {
        blob[8 + 4 * field..12 + 4 * field].copy_from_slice(&word.to_le_bytes());
    }
}

fn damage_strings(blob: &mut [u8], from: usize, mut below: impl FnMut(usize) -> usize) {
    if from < blob.len() {
        let at = from + below(blob.len() - from);
        const BYTES: &[u8] = b"\0\0 .-_09azAZ\x7f\x80\xa0\xc0\xd7\xff:\n";
        blob[at] = BYTES[below(BYTES.len())];
    }
}

/// Removes or duplicates a word, with a matching header.
fn take_out(blob: &mut Vec<u8>, at: usize, double: bool) {
    let word: Vec<u8> = blob[at..at + 4].to_vec();
    let change = if double {
        blob.splice(at..at, word);
        4
    } else {
        blob.drain(at..at + 4);
        -4
    };
    for field in [12, 16] {
        let old = u32::from_le_bytes([
            blob[field],
            blob[field + 1],
            blob[field + 2],
            blob[field + 3],
        ]);
        let new = old.wrapping_add_signed(change);
        blob[field..field + 4].copy_from_slice(&new.to_le_bytes());
    }
}

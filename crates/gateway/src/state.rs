//! A compiled set as a file: its rules and its table.

use std::error::Error;
use std::fmt;

use crate::rules::{RuleError, RuleSet};
use crate::table::Table;

/// Begins the file; the digit is the version of the form and of the table.
const MAGIC: &[u8; 8] = b"BEEGATE3";

/// Reason why a file is no compiled set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateError {
    /// It does not begin as one.
    Magic,
    /// It ends at this byte, or is damaged before it.
    Damaged(usize),
    /// Its rules cannot be read.
    Rules(RuleError),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::Magic => f.write_str("no compiled set of rules of this version"),
            StateError::Damaged(at) => {
                write!(
                    f,
                    "damaged compiled set of rules of {at} bytes; compile it again"
                )
            }
            StateError::Rules(error) => write!(f, "rules of the compiled set: {error}"),
        }
    }
}

impl Error for StateError {}

/// True if bytes begin as those of a compiled set.
pub fn is_state(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC[..7])
}

/// Bytes in front of the rules: magic, checksum of what follows it, length of the rules, words of
/// the table.
const HEAD: usize = 32;

/// The bytes of a file: the head, the rules, the table without the zeros at its end.
pub fn write_state(set: &RuleSet, table: &Table) -> Vec<u8> {
    let (text, used) = (set.to_string(), table.used());
    let mut bytes = Vec::with_capacity(HEAD + text.len() + used.len() * 8);
    bytes.extend(MAGIC);
    bytes.extend([0; 8]);
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend((table.size() as u64 / 8).to_le_bytes());
    bytes.extend(text.as_bytes());
    for word in used {
        bytes.extend(word.to_le_bytes());
    }
    let sum = checksum(&bytes[16..]);
    bytes[8..16].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Reads what [`write_state`] wrote.
pub fn read_state(bytes: &[u8]) -> Result<(RuleSet, Table), StateError> {
    let damaged = || StateError::Damaged(bytes.len());
    let rest = bytes.strip_prefix(MAGIC).ok_or(StateError::Magic)?;
    let (sum, body) = rest.split_first_chunk().ok_or_else(damaged)?;
    if checksum(body) != u64::from_le_bytes(*sum) {
        return Err(damaged());
    }
    let number = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes));
    let (text, rest) = body.split_first_chunk().ok_or_else(damaged)?;
    let (words, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
    let text = number(text).map_err(|_| damaged())?;
    let words = number(words).map_err(|_| damaged())?;
    let (text, used) = rest.split_at_checked(text).ok_or_else(damaged)?;
    let text = std::str::from_utf8(text).map_err(|_| damaged())?;
    let set = RuleSet::parse(text).map_err(StateError::Rules)?;
    let table = Table::of_used(words, used).ok_or_else(damaged)?;
    match table.rules() == set.rules.len() {
        true => Ok((set, table)),
        false => Err(damaged()),
    }
}

/// FNV-1a over numbers of 8 bytes.
fn checksum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(0xcbf2_9ce4_8422_2325, |sum, word| {
        (sum ^ word).wrapping_mul(0x0100_0000_01b3)
    })
}

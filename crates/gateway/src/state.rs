//! A compiled set as a file: its rules and its table.

use std::error::Error;
use std::fmt;

use crate::rules::{RuleError, RuleSet};
use crate::table::Table;

/// Begins the file; the digit is the version of the form and of the table.
const MAGIC: &[u8; 8] = b"BEEGATE2";

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

/// The bytes of a file: magic, checksum of what follows, length of the rules, rules, table.
pub fn write_state(set: &RuleSet, table: &Table) -> Vec<u8> {
    let text = set.to_string();
    let mut body = (text.len() as u64).to_le_bytes().to_vec();
    body.extend(text.as_bytes());
    body.extend(table.to_bytes());
    let mut bytes = MAGIC.to_vec();
    bytes.extend(checksum(&body).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// Reads what [`write_state`] wrote.
pub fn read_state(bytes: &[u8]) -> Result<(RuleSet, Table), StateError> {
    let damaged = StateError::Damaged(bytes.len());
    let rest = bytes.strip_prefix(MAGIC).ok_or(StateError::Magic)?;
    let (sum, body) = rest.split_first_chunk().ok_or(damaged.clone())?;
    if checksum(body) != u64::from_le_bytes(*sum) {
        return Err(damaged);
    }
    let (len, rest) = body.split_first_chunk().ok_or(damaged.clone())?;
    let len = usize::try_from(u64::from_le_bytes(*len)).map_err(|_| damaged.clone())?;
    let (text, table) = rest.split_at_checked(len).ok_or(damaged.clone())?;
    let text = std::str::from_utf8(text).map_err(|_| damaged.clone())?;
    let set = RuleSet::parse(text).map_err(StateError::Rules)?;
    let table = Table::of_bytes(table).ok_or(damaged.clone())?;
    match table.rules() == set.rules.len() {
        true => Ok((set, table)),
        false => Err(damaged),
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

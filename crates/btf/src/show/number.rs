//! Numbers of objects as text.

use super::Value;

/// The first eight bytes.
pub(super) fn low(value: &Value) -> [u8; 8] {
    let mut low = [0; 8];
    low.copy_from_slice(&value[..8]);
    low
}

/// The number of that many bits, at most 64, in decimal digits.
pub(super) fn decimal(value: &Value, bits: u32, is_signed: bool) -> Vec<u8> {
    let unused = 64 - bits;
    let number = u64::from_le_bytes(low(value)) << unused;
    match is_signed {
        true => (number as i64 >> unused).to_string(),
        false => (number >> unused).to_string(),
    }
    .into_bytes()
}

/// True if that many bits, at most 64, are zero.
pub(super) fn is_zero(value: &Value, bits: u32) -> bool {
    u64::from_le_bytes(low(value)) << (64 - bits) == 0
}

/// That many bits, at most 128, from a bit on (`btf_int128_shift`).
#[doc(alias = "btf_int128_shift")]
pub(super) fn bits(value: &Value, bit: u32, bits: u32) -> u128 {
    let number = u128::from_le_bytes(*value).checked_shr(bit).unwrap_or(0);
    match bits {
        0 => 0,
        1..=128 => number << (128 - bits) >> (128 - bits),
        _ => number,
    }
}

/// A number in hexadecimal digits (`btf_int128_print`).
#[doc(alias = "btf_int128_print")]
pub(super) fn hexadecimal(number: u128) -> Vec<u8> {
    format!("{number:#x}").into_bytes()
}

/// True for the characters that Linux prints: those of ASCII and of the upper half of
/// Latin-1.
pub(super) fn printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | 0xa0..)
}

//! `bpf_strtol` and `bpf_strtoul`: numbers in text.

use spec::{Errno, Result};
use vm::MemoryPort;

use crate::call::{Call, Return};

/// Most bytes of a number after blanks and sign; what follows is not looked at.
const MOST_DIGITS: usize = 63;

/// A number in text: its magnitude, whether a sign is before it, and the bytes that it
/// takes.
struct Parsed {
    magnitude: u64,
    is_negative: bool,
    len: usize,
}

/// `long bpf_strtol(buf, size_t buf_len, u64 flags, s64 *res)`: how many bytes the number
/// takes, `-EINVAL` without digits or for another base than 0, 8, 10 or 16, `-ERANGE` if it
/// does not fit. `res` is 0 then.
pub(super) fn strtol<M: MemoryPort>(Call(arguments, memory, _): Call<M>) -> Return<M> {
    convert(arguments, memory, |parsed| {
        let number = match parsed.is_negative {
            true => 0u64.wrapping_sub(parsed.magnitude),
            false => parsed.magnitude,
        };
        let fits = match parsed.is_negative {
            true => number as i64 <= 0,
            false => number as i64 >= 0,
        };
        if fits { Ok(number) } else { Err(Errno::ERANGE) }
    })
}

/// `long bpf_strtoul(buf, size_t buf_len, u64 flags, u64 *res)`: as [`strtol`], and
/// `-EINVAL` for a negative number.
pub(super) fn strtoul<M: MemoryPort>(Call(arguments, memory, _): Call<M>) -> Return<M> {
    convert(arguments, memory, |parsed| match parsed.is_negative {
        true => Err(Errno::EINVAL),
        false => Ok(parsed.magnitude),
    })
}

fn convert<M: MemoryPort>(
    [buffer, len, flags, result, _]: [u64; 5],
    memory: &mut M,
    number: impl Fn(&Parsed) -> Result<u64>,
) -> Return<M> {
    let mut text = vec![0; len as usize];
    memory.read(buffer, &mut text)?;
    let parsed = parse(&text, flags).and_then(|parsed| Ok((number(&parsed)?, parsed.len)));
    let (number, status) = match parsed {
        Ok((number, len)) => (number, len as u64),
        Err(errno) => (0, errno.negated()),
    };
    memory.write(result, &number.to_le_bytes())?;
    Ok(status)
}

fn parse(text: &[u8], flags: u64) -> Result<Parsed> {
    let given = match flags {
        0 | 8 | 10 | 16 => flags,
        _ => return Err(Errno::EINVAL),
    };
    let blanks = text.iter().take_while(|byte| is_blank(**byte)).count();
    let is_negative = text.get(blanks) == Some(&b'-');
    let start = blanks + usize::from(is_negative);
    let rest = text.get(start..).unwrap_or_default();
    let rest = &rest[..rest.len().min(MOST_DIGITS)];
    let (base, prefix) = base_of(rest, given);
    let digits = rest[prefix..].iter().map_while(|byte| digit(*byte, base));
    let mut magnitude = Some(0u64);
    let mut count = 0;
    for digit in digits {
        let shifted = magnitude.and_then(|number| number.checked_mul(base));
        magnitude = shifted.and_then(|number| number.checked_add(digit));
        count += 1;
    }
    Errno::EINVAL.when(count == 0)?;
    Ok(Parsed {
        magnitude: magnitude.ok_or(Errno::ERANGE)?,
        is_negative,
        len: start + prefix + count,
    })
}

/// The base of a number, and the length of the prefix that names it.
fn base_of(text: &[u8], given: u64) -> (u64, usize) {
    let has_x = matches!(text, [b'0', b'x' | b'X', ..]);
    let is_hex = has_x && text.get(2).is_some_and(u8::is_ascii_hexdigit);
    let base = match (given, text.first()) {
        (0, Some(b'0')) if is_hex => 16,
        (0, Some(b'0')) => 8,
        (0, _) => 10,
        _ => given,
    };
    (base, if base == 16 && has_x { 2 } else { 0 })
}

fn digit(byte: u8, base: u64) -> Option<u64> {
    let digit = u64::from((byte as char).to_digit(16)?);
    (digit < base).then_some(digit)
}

/// White space as Linux 6.18 has it: of Latin-1, with the space that does not break.
fn is_blank(byte: u8) -> bool {
    matches!(byte, 9..=13 | b' ' | 0xa0)
}

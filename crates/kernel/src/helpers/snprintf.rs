//! `bpf_snprintf`: text of a format and numbers (`bpf_bprintf_prepare` and `vsnprintf` of
//! Linux).
//!
//! Addresses are printed as they are (`%p`, `%pK`, `%px`, `%ps`, `%pS`, `%pB`): there are
//! no symbols and no secret to hash them with.

use spec::{Errno, Result};
use vm::MemoryPort;

use crate::call::{Call, Return};

/// Most arguments (`MAX_BPRINTF_VARARGS`).
const MOST_ARGUMENTS: u64 = 12;

/// Most bytes of a format that are looked at.
const MOST_BYTES: u64 = 1024;

/// Bytes of the buffer for the arguments of a text (`MAX_BPRINTF_BIN_ARGS`).
const ARGUMENT_BYTES: usize = 512;

/// Used part of the buffer into which Linux copies arguments before it formats them.
#[derive(Default)]
struct ArgumentBuffer {
    used: usize,
}

impl ArgumentBuffer {
    fn room(&self) -> usize {
        ARGUMENT_BYTES.saturating_sub(self.used)
    }

    /// Uses bytes for text.
    fn put_text(&mut self, len: usize) -> Result {
        Errno::ENOSPC.when(len > self.room())?;
        self.used += len;
        Ok(())
    }

    /// Uses bytes for a number.
    fn put_number(&mut self, len: usize) -> Result {
        self.used = self.used.next_multiple_of(4);
        self.put_text(len)
    }
}

/// `long bpf_snprintf(char *str, u32 str_size, const char *fmt, u64 *data, u32 data_len)`:
/// the length of the text with its final zero byte, also where only a part of it fits;
/// `-EINVAL` for a wrong format or number of arguments.
pub(super) fn snprintf<M: MemoryPort>(
    Call([to, size, format, data, data_len], memory, _): Call<M>,
) -> Return<M> {
    let size = size as u32 as usize;
    let Some(arguments) = arguments(data, data_len, memory)? else {
        return Ok(Errno::EINVAL.negated());
    };
    let mut format_text = Vec::new();
    for at in 0..MOST_BYTES {
        let mut byte = [0];
        memory.read(format.wrapping_add(at), &mut byte)?;
        if byte == [0] {
            break;
        }
        format_text.extend(byte);
    }
    match text(&format_text, &arguments, size, memory) {
        Ok(mut text) => {
            let len = text.len() as u64 + 1;
            text.truncate(size.saturating_sub(1));
            text.push(0);
            text.truncate(size);
            if !text.is_empty() {
                memory.write(to, &text)?;
            }
            Ok(len)
        }
        Err(errno) => Ok(errno.negated()),
    }
}

/// The arguments of a format in an array of `len` bytes; `None` if Linux refuses it.
pub(crate) fn arguments<M: MemoryPort>(
    data: u64,
    len: u64,
    memory: &M,
) -> Result<Option<Vec<u64>>, M::Fault> {
    let len = u64::from(len as u32);
    if !len.is_multiple_of(8) || len > 8 * MOST_ARGUMENTS || len > 0 && data == 0 {
        return Ok(None);
    }
    let read = |index: u64| {
        let mut bytes = [0; 8];
        memory.read(data.wrapping_add(8 * index), &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    };
    let arguments: Result<Vec<u64>, M::Fault> = (0..len / 8).map(read).collect();
    arguments.map(Some)
}

/// A conversion of a format, between `%` and its letters.
#[derive(Clone, Copy, Default)]
struct Layout {
    is_left: bool,
    has_sign: bool,
    has_blank: bool,
    has_zeros: bool,
    width: usize,
}

/// The text of a format and arguments, for a buffer of `size` bytes, which it may exceed.
pub(crate) fn text<M: MemoryPort>(
    format: &[u8],
    arguments: &[u64],
    size: usize,
    memory: &M,
) -> Result<Vec<u8>> {
    let is_text = |byte: &u8| !byte.is_ascii_control() || matches!(byte, 9..=13);
    Errno::EINVAL.when(!format.iter().all(is_text))?;
    let mut out = Vec::new();
    let mut arguments = arguments.iter().copied();
    let mut buffer = ArgumentBuffer::default();
    let mut rest = format;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'%', [b'%', after @ ..]) => {
                out.push(b'%');
                rest = after;
            }
            (b'%', _) => {
                let argument = arguments.next().ok_or(Errno::EINVAL)?;
                let before = out.len();
                let is_address = is_address(rest);
                rest = convert(rest, argument, memory, &mut buffer, &mut out)?;
                if is_address && before >= size {
                    out.truncate(before);
                }
            }
            (byte, _) => out.push(*byte),
        }
    }
    Ok(out)
}

/// True for Internet addresses, which Linux 6.18 does not count behind the end of the buffer.
fn is_address(format: &[u8]) -> bool {
    matches!(layout(format).1, [b'p', b'I' | b'i', ..])
}

/// Writes the text of one conversion; returns what follows it in the format.
fn convert<'f, M: MemoryPort>(
    format: &'f [u8],
    argument: u64,
    memory: &M,
    buffer: &mut ArgumentBuffer,
    out: &mut Vec<u8>,
) -> Result<&'f [u8]> {
    let (layout, letters) = layout(format);
    let ends = |rest: &[u8]| {
        let next = rest.first();
        next.is_none_or(|byte| byte.is_ascii_punctuation() || matches!(byte, b' ' | 9..=13))
    };
    let (body, rest) = match letters {
        [
            b'p',
            family @ (b'I' | b'i'),
            version @ (b'4' | b'6'),
            rest @ ..,
        ] => (address(*family, *version, argument, memory, buffer)?, rest),
        [b'p', b'k' | b'u', b's', rest @ ..] | [b's', rest @ ..] if ends(rest) => {
            (string(argument, memory, buffer)?, rest)
        }
        [b'p', b'K' | b'x' | b's' | b'S' | b'B', rest @ ..] => (pointer(argument, buffer)?, rest),
        [b'p', rest @ ..] if ends(rest) => (pointer(argument, buffer)?, rest),
        [b'c', rest @ ..] => {
            buffer.put_text(1)?;
            (vec![argument as u8], rest)
        }
        [b'l', b'l', kind, rest @ ..] | [b'l', kind, rest @ ..] if *kind != b'l' => {
            buffer.put_number(8)?;
            integer(*kind, argument, argument as i64, layout, out)?;
            return Ok(rest);
        }
        [kind, rest @ ..] => {
            buffer.put_number(4)?;
            let (unsigned, signed) = (argument as u32, argument as i32);
            integer(*kind, unsigned.into(), signed.into(), layout, out)?;
            return Ok(rest);
        }
        [] => return Err(Errno::EINVAL),
    };
    pad(&body, layout, out);
    // Letters behind an address may say how to print it; Linux 6.18 skips them all.
    let skipped = match letters {
        [b'p', ..] => rest
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric())
            .count(),
        _ => 0,
    };
    Ok(&rest[skipped..])
}

/// Flags and width.
fn layout(format: &[u8]) -> (Layout, &[u8]) {
    let mut layout = Layout::default();
    let mut rest = format;
    while let [flag @ (b'0' | b'+' | b'-' | b' '), after @ ..] = rest {
        match flag {
            b'0' => layout.has_zeros = true,
            b'+' => layout.has_sign = true,
            b'-' => layout.is_left = true,
            _ => layout.has_blank = true,
        }
        rest = after;
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = rest[..digits].iter().fold(0usize, |number, digit| {
        (number * 10 + usize::from(digit - b'0')).min(MOST_WIDTH)
    });
    layout.width = number;
    (layout, &rest[digits..])
}

/// Widths are cut to this number (`FIELD_WIDTH_MAX` is larger than any text here).
const MOST_WIDTH: usize = 1 << 16;

/// Writes a number.
fn integer(kind: u8, unsigned: u64, signed: i64, layout: Layout, out: &mut Vec<u8>) -> Result {
    let digits = match kind {
        b'd' | b'i' => signed.unsigned_abs().to_string(),
        b'u' => unsigned.to_string(),
        b'x' => format!("{unsigned:x}"),
        b'X' => format!("{unsigned:X}"),
        _ => return Err(Errno::EINVAL),
    };
    let sign = match kind {
        b'd' | b'i' if signed < 0 => "-",
        b'd' | b'i' if layout.has_sign => "+",
        b'd' | b'i' if layout.has_blank => " ",
        _ => "",
    };
    if layout.has_zeros && !layout.is_left {
        let zeros = layout.width.saturating_sub(sign.len() + digits.len());
        out.extend_from_slice(sign.as_bytes());
        out.extend(std::iter::repeat_n(b'0', zeros));
        out.extend_from_slice(digits.as_bytes());
    } else {
        pad(format!("{sign}{digits}").as_bytes(), layout, out);
    }
    Ok(())
}

/// Writes text in its width.
fn pad(body: &[u8], layout: Layout, out: &mut Vec<u8>) {
    let blanks = std::iter::repeat_n(b' ', layout.width.saturating_sub(body.len()));
    match layout.is_left {
        true => {
            out.extend_from_slice(body);
            out.extend(blanks);
        }
        false => {
            out.extend(blanks);
            out.extend_from_slice(body);
        }
    }
}

fn pointer(address: u64, buffer: &mut ArgumentBuffer) -> Result<Vec<u8>> {
    buffer.put_number(8)?;
    Ok(format!("{address:016x}").into_bytes())
}

/// The string at an address, as much as fits; empty if it cannot be read.
fn string<M: MemoryPort>(address: u64, memory: &M, buffer: &mut ArgumentBuffer) -> Result<Vec<u8>> {
    let most = buffer.room().checked_sub(1).ok_or(Errno::ENOSPC)?;
    let mut text = Vec::new();
    while text.len() < most {
        let mut byte = [0];
        if !memory.probe(address.wrapping_add(text.len() as u64), &mut byte) {
            text.clear();
            break;
        }
        if byte == [0] {
            break;
        }
        text.extend(byte);
    }
    buffer.put_text(text.len() + 1)?;
    Ok(text)
}

/// The Internet address at an address; of zeros if it cannot be read.
fn address<M: MemoryPort>(
    family: u8,
    version: u8,
    at: u64,
    memory: &M,
    buffer: &mut ArgumentBuffer,
) -> Result<Vec<u8>> {
    let mut bytes = [0; 16];
    let len = if version == b'4' { 4 } else { 16 };
    Errno::ENOSPC.when(buffer.room() < len)?;
    if !memory.probe(at, &mut bytes[..len]) {
        bytes.fill(0);
    }
    let bytes = &bytes[..len];
    let (parts, separator): (Vec<String>, &str) = match (version, family) {
        (b'4', b'I') => (bytes.iter().map(u8::to_string).collect(), "."),
        (b'4', _) => (bytes.iter().map(|b| format!("{b:03}")).collect(), "."),
        (_, family) => {
            let words = bytes.chunks(2).map(|w| format!("{:02x}{:02x}", w[0], w[1]));
            (words.collect(), if family == b'I' { ":" } else { "" })
        }
    };
    let text = parts.join(separator).into_bytes();
    // Where the text is longer than the room, it uses all of it.
    buffer.used += text.len() + 1;
    Ok(text)
}

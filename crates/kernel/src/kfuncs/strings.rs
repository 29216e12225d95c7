//! String functions. Their pointers are not verified: an address that is not of the kernel
//! gives `-ERANGE`, memory that cannot be read `-EFAULT`, and a string without an end within
//! 65,536 bytes `-E2BIG`.

use spec::Errno;
use vm::MemoryPort;

use super::int;
use crate::call::{Call, Return};

/// Bytes of a string that are looked at (`XATTR_SIZE_MAX`).
const MOST: u64 = 65_536;

/// First address that user memory cannot have, with the page behind it.
const USER_END: u64 = 1 << 47;
/// First address of the upper half.
const KERNEL: u64 = 0xffff_8000_0000_0000;
/// The page of vsyscalls, which counts as user memory.
const VSYSCALL: u64 = 0xffff_ffff_ff60_0000;
const PAGE: u64 = 4096;
/// Bytes that are read at once.
const PORTION: usize = 64;

/// Error of a string function.
type Failure = Errno;

/// A string, read as far as it is needed.
struct Text<'m, M> {
    memory: &'m M,
    address: u64,
    bytes: Vec<u8>,
}

impl<'m, M: MemoryPort> Text<'m, M> {
    fn new(memory: &'m M, address: u64) -> Result<Text<'m, M>, Failure> {
        let is_vsyscall = (VSYSCALL..VSYSCALL + PAGE).contains(&address);
        let text = Text {
            memory,
            address,
            bytes: Vec::new(),
        };
        match address {
            _ if is_vsyscall => Err(Errno::ERANGE),
            USER_END..KERNEL => Err(Errno::ERANGE),
            // Addresses of memory here are numbers that user memory would have.
            0..USER_END if !memory.probe(address, &mut [0]) => Err(Errno::ERANGE),
            _ => Ok(text),
        }
    }

    /// The byte at an index.
    fn at(&mut self, index: u64) -> Result<u8, Failure> {
        let index = index as usize;
        while self.bytes.len() <= index {
            let next = self.address.wrapping_add(self.bytes.len() as u64);
            let mut portion = [0; PORTION];
            if self.memory.probe(next, &mut portion) {
                self.bytes.extend_from_slice(&portion);
                continue;
            }
            let mut byte = [0];
            Errno::EFAULT.when(!self.memory.probe(next, &mut byte))?;
            self.bytes.push(byte[0]);
        }
        Ok(self.bytes[index])
    }

    /// The index of a byte at which `is_end` holds, and that byte.
    fn find(&mut self, is_end: impl Fn(u8) -> bool) -> Result<(u64, u8), Failure> {
        for index in 0..MOST {
            let byte = self.at(index)?;
            if is_end(byte) {
                return Ok((index, byte));
            }
        }
        Err(Errno::E2BIG)
    }
}

fn result(found: Result<u64, Failure>) -> u64 {
    int(found.unwrap_or_else(Errno::negated))
}

/// -1, 0 or 1: the order of two strings.
fn compare<M: MemoryPort>(
    memory: &M,
    [first, second]: [u64; 2],
    fold: impl Fn(u8) -> u8,
) -> Result<u64, Failure> {
    let mut first = Text::new(memory, first)?;
    let mut second = Text::new(memory, second)?;
    for index in 0..MOST {
        let (one, other) = (fold(first.at(index)?), fold(second.at(index)?));
        match one.cmp(&other) {
            std::cmp::Ordering::Less => return Ok(-1i64 as u64),
            std::cmp::Ordering::Greater => return Ok(1),
            std::cmp::Ordering::Equal if one == 0 => return Ok(0),
            std::cmp::Ordering::Equal => {}
        }
    }
    Err(Errno::E2BIG)
}

/// Lower case in Latin-1, as the kernel's table has it: all letters but the multiplication
/// sign.
fn lower(byte: u8) -> u8 {
    match byte {
        b'A'..=b'Z' | 0xc0..=0xd6 | 0xd8..=0xde => byte + 32,
        _ => byte,
    }
}

/// `int bpf_strcmp(const char *s1__ign, const char *s2__ign)`: -1, 0 or 1.
pub(super) fn strcmp<M: MemoryPort>(Call([first, second, ..], memory, _): Call<M>) -> Return<M> {
    Ok(result(compare(memory, [first, second], |byte| byte)))
}

/// `int bpf_strcasecmp(const char *s1__ign, const char *s2__ign)`: as [`strcmp`], without
/// regard to case.
pub(super) fn strcasecmp<M: MemoryPort>(
    Call([first, second, ..], memory, _): Call<M>,
) -> Return<M> {
    Ok(result(compare(memory, [first, second], lower)))
}

/// `int bpf_strlen(const char *s__ign)`: bytes in front of the zero byte.
pub(super) fn strlen<M: MemoryPort>(Call([text, ..], memory, _): Call<M>) -> Return<M> {
    Ok(result(length(memory, text, MOST)))
}

/// `int bpf_strnlen(const char *s__ign, size_t count)`: as [`strlen`], at most `count`.
pub(super) fn strnlen<M: MemoryPort>(Call([text, count, ..], memory, _): Call<M>) -> Return<M> {
    Ok(result(length(memory, text, count)))
}

fn length<M: MemoryPort>(memory: &M, text: u64, count: u64) -> Result<u64, Failure> {
    let mut text = Text::new(memory, text)?;
    for index in 0..count.min(MOST) {
        if text.at(index)? == 0 {
            return Ok(index);
        }
    }
    match count < MOST {
        true => Ok(count),
        false => Err(Errno::E2BIG),
    }
}

/// `int bpf_strchr(const char *s__ign, char c)`: index of the first such byte, the end
/// included; `-ENOENT` if there is none.
pub(super) fn strchr<M: MemoryPort>(Call([text, byte, ..], memory, _): Call<M>) -> Return<M> {
    Ok(result(find_byte(memory, text, MOST, byte as u8)))
}

/// `int bpf_strnchr(const char *s__ign, size_t count, char c)`: as [`strchr`], in the first
/// `count` bytes.
pub(super) fn strnchr<M: MemoryPort>(
    Call([text, count, byte, ..], memory, _): Call<M>,
) -> Return<M> {
    Ok(result(find_byte(memory, text, count, byte as u8)))
}

fn find_byte<M: MemoryPort>(memory: &M, text: u64, count: u64, wanted: u8) -> Result<u64, Failure> {
    let mut text = Text::new(memory, text)?;
    for index in 0..count.min(MOST) {
        match text.at(index)? {
            byte if byte == wanted => return Ok(index),
            0 => return Err(Errno::ENOENT),
            _ => {}
        }
    }
    match count < MOST {
        true => Err(Errno::ENOENT),
        false => Err(Errno::E2BIG),
    }
}

/// `int bpf_strchrnul(const char *s__ign, char c)`: index of the first such byte or of the
/// end.
pub(super) fn strchrnul<M: MemoryPort>(Call([text, wanted, ..], memory, _): Call<M>) -> Return<M> {
    let wanted = wanted as u8;
    let found = Text::new(memory, text)
        .and_then(|mut text| text.find(|byte| byte == 0 || byte == wanted))
        .map(|(index, _)| index);
    Ok(result(found))
}

/// `int bpf_strrchr(const char *s__ign, int c)`: index of the last such byte, the end
/// included; `-ENOENT` if there is none.
pub(super) fn strrchr<M: MemoryPort>(Call([text, wanted, ..], memory, _): Call<M>) -> Return<M> {
    let wanted = wanted as i32;
    let found = Text::new(memory, text).and_then(|mut text| {
        let (end, _) = text.find(|byte| byte == 0)?;
        let bytes = &text.bytes[..=end as usize];
        let last = bytes.iter().rposition(|byte| i32::from(*byte) == wanted);
        last.map(|index| index as u64).ok_or(Errno::ENOENT)
    });
    Ok(result(found))
}

/// `int bpf_strspn(const char *s__ign, const char *accept__ign)`: bytes at the start that are
/// all in the other string.
pub(super) fn strspn<M: MemoryPort>(Call([text, accepted, ..], memory, _): Call<M>) -> Return<M> {
    Ok(result(span(memory, [text, accepted], false)))
}

/// `int bpf_strcspn(const char *s__ign, const char *reject__ign)`: bytes at the start none of
/// which is in the other string.
pub(super) fn strcspn<M: MemoryPort>(Call([text, rejected, ..], memory, _): Call<M>) -> Return<M> {
    Ok(result(span(memory, [text, rejected], true)))
}

/// Index of the first byte that is in the set, or is not.
fn span<M: MemoryPort>(
    memory: &M,
    [text, set]: [u64; 2],
    ends_at_member: bool,
) -> Result<u64, Failure> {
    let mut text = Text::new(memory, text)?;
    let mut set = Text::new(memory, set)?;
    for index in 0..MOST {
        let byte = text.at(index)?;
        if byte == 0 {
            return Ok(index);
        }
        let (_, found) = set.find(|member| member == byte || member == 0)?;
        if (found != 0) == ends_at_member {
            return Ok(index);
        }
    }
    Err(Errno::E2BIG)
}

/// `int bpf_strstr(const char *s1__ign, const char *s2__ign)`: index at which the second
/// string occurs in the first; `-ENOENT` if it does not.
pub(super) fn strstr<M: MemoryPort>(Call([text, wanted, ..], memory, _): Call<M>) -> Return<M> {
    Ok(result(find_text(memory, [text, wanted], MOST)))
}

/// `int bpf_strnstr(const char *s1__ign, const char *s2__ign, size_t len)`: as [`strstr`], in
/// the first `len` bytes.
pub(super) fn strnstr<M: MemoryPort>(
    Call([text, wanted, len, ..], memory, _): Call<M>,
) -> Return<M> {
    Ok(result(find_text(memory, [text, wanted], len)))
}

fn find_text<M: MemoryPort>(
    memory: &M,
    [text, wanted]: [u64; 2],
    len: u64,
) -> Result<u64, Failure> {
    let mut text = Text::new(memory, text)?;
    let mut wanted = Text::new(memory, wanted)?;
    for start in 0..MOST {
        let mut at = 0;
        while at < MOST && start + at <= len {
            let byte = wanted.at(at)?;
            if byte == 0 {
                return Ok(start);
            }
            if start + at == len {
                break;
            }
            match text.at(start + at)? {
                0 => return Err(Errno::ENOENT),
                other if other != byte => break,
                _ => at += 1,
            }
        }
        Errno::E2BIG.when(at == MOST)?;
        Errno::ENOENT.when(start + at == len)?;
    }
    Err(Errno::E2BIG)
}

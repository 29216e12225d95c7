//! Helpers on dynptrs: pointers with a length that is checked when they are used.
//!
//! A dynptr is 16 bytes in the memory of the program, laid out as Linux's
//! (`struct bpf_dynptr_kern`): the address of what it points into, a size with its kind, and
//! an offset. No program reads them: the verifier keeps them from it.

use spec::Errno;
use vm::{MemoryPort, RunContext};

use super::bytes::Bytes;
use super::map::status;

/// Most bytes of a dynptr (`DYNPTR_MAX_SIZE`).
const MOST_BYTES: u32 = (1 << 24) - 1;
/// Bit of the size from which on the kind is (`DYNPTR_TYPE_SHIFT`), and the bit of read-only
/// ones.
const KIND_SHIFT: u32 = 28;
const READ_ONLY: u32 = 1 << 31;

/// Memory that the program gave, a record of a ring buffer (`enum bpf_dynptr_type`).
const LOCAL: u32 = 1;
const RINGBUF: u32 = 2;

/// A dynptr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dynptr {
    /// Address of what it points into; 0: it is invalid.
    data: u64,
    /// The size, with the kind.
    size: u32,
    offset: u32,
}

impl Dynptr {
    /// A dynptr to memory of so many bytes.
    pub(super) fn local(data: u64, size: u32) -> Dynptr {
        Dynptr::of_kind(LOCAL, data, size)
    }

    fn of_kind(kind: u32, data: u64, size: u32) -> Dynptr {
        Dynptr {
            data,
            size: size | kind << KIND_SHIFT,
            offset: 0,
        }
    }

    fn read<M: MemoryPort>(memory: &M, address: u64) -> Result<Dynptr, M::Fault> {
        let mut bytes = [0; 16];
        memory.read(address, &mut bytes)?;
        let [data, rest] = [&bytes[..8], &bytes[8..]].map(|half| {
            let mut word = [0; 8];
            word.copy_from_slice(half);
            u64::from_ne_bytes(word)
        });
        Ok(Dynptr {
            data,
            size: rest as u32,
            offset: (rest >> 32) as u32,
        })
    }

    pub(super) fn write<M: MemoryPort>(self, memory: &mut M, address: u64) -> Result<(), M::Fault> {
        let rest = u64::from(self.offset) << 32 | u64::from(self.size);
        memory.write(address, &self.data.to_ne_bytes())?;
        memory.write(address.wrapping_add(8), &rest.to_ne_bytes())
    }

    /// Number of its bytes.
    fn len(self) -> u32 {
        self.size & MOST_BYTES
    }

    fn is_read_only(self) -> bool {
        self.size & READ_ONLY != 0
    }

    /// Address of bytes at an offset. `-EINVAL` if it is invalid, `-E2BIG` if they are not
    /// all in it.
    fn address(self, offset: u64, len: u64) -> Result<u64, Errno> {
        // Linux takes both for numbers of 32 bits or 64, as its release has them.
        let size = u64::from(self.len());
        match self.data {
            0 => Err(Errno::EINVAL),
            _ if len > size || offset > size - len => Err(Errno::E2BIG),
            data => Ok(data + u64::from(self.offset) + offset),
        }
    }
}

/// `long bpf_dynptr_from_mem(void *data, u32 size, u64 flags, struct bpf_dynptr *ptr)`: 0;
/// `-E2BIG` for more than 2^24 - 1 bytes, `-EINVAL` for flags: the dynptr is invalid then.
pub(super) fn dynptr_from_mem<M: MemoryPort>(
    [data, size, flags, dynptr, _]: [u64; 5],
    memory: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    let made = match size as u32 {
        size if size > MOST_BYTES => Err(Errno::E2BIG),
        _ if flags != 0 => Err(Errno::EINVAL),
        size => Ok(Dynptr::local(data, size)),
    };
    set(memory, dynptr, made)
}

/// Writes a dynptr, or an invalid one; what the helper returns.
fn set<M: MemoryPort>(
    memory: &mut M,
    address: u64,
    made: Result<Dynptr, Errno>,
) -> Result<u64, M::Fault> {
    made.unwrap_or_default().write(memory, address)?;
    Ok(status(made.map(drop)))
}

/// `long bpf_dynptr_read(void *dst, u32 len, const struct bpf_dynptr *src, u32 offset, u64
/// flags)`: 0; `-EINVAL` for an invalid dynptr or flags, `-E2BIG` for bytes that are not in
/// it.
pub(super) fn dynptr_read<M: MemoryPort>(
    [to, len, dynptr, offset, flags]: [u64; 5],
    memory: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    let from = match flags {
        0 => Dynptr::read(memory, dynptr)?.address(narrow(offset), narrow(len)),
        _ => Err(Errno::EINVAL),
    };
    copy(memory, from.map(|from| (from, to)), len)
}

/// `long bpf_dynptr_write(const struct bpf_dynptr *dst, u32 offset, void *src, u32 len, u64
/// flags)`: as [`dynptr_read`]; `-EINVAL` for a read-only dynptr too.
pub(super) fn dynptr_write<M: MemoryPort>(
    [dynptr, offset, from, len, flags]: [u64; 5],
    memory: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    let dynptr = Dynptr::read(memory, dynptr)?;
    let to = match dynptr.data {
        0 => Err(Errno::EINVAL),
        _ if dynptr.is_read_only() => Err(Errno::EINVAL),
        _ => dynptr.address(narrow(offset), narrow(len)),
    };
    let to = match flags {
        0 => to,
        _ => to.and(Err(Errno::EINVAL)),
    };
    copy(memory, to.map(|to| (from, to)), len)
}

/// Lengths and offsets have 32 bits.
fn narrow(number: u64) -> u64 {
    u64::from(number as u32)
}

/// Copies bytes that may overlap.
fn copy<M: MemoryPort>(
    memory: &mut M,
    between: Result<(u64, u64), Errno>,
    len: u64,
) -> Result<u64, M::Fault> {
    let (from, to) = match between {
        Ok(between) => between,
        Err(errno) => return Ok(errno.negated()),
    };
    let mut bytes = Bytes::zeroed(narrow(len) as usize);
    memory.read(from, bytes.get_mut())?;
    memory.write(to, bytes.get())?;
    Ok(0)
}

/// `void *bpf_dynptr_data(const struct bpf_dynptr *ptr, u32 offset, u32 len)`: the address of
/// the bytes; null for an invalid or read-only dynptr, and if they are not in it.
pub(super) fn dynptr_data<M: MemoryPort>(
    [dynptr, offset, len, ..]: [u64; 5],
    memory: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    let dynptr = Dynptr::read(memory, dynptr)?;
    Ok(match dynptr.is_read_only() {
        true => 0,
        false => dynptr.address(narrow(offset), narrow(len)).unwrap_or(0),
    })
}

/// `long bpf_ringbuf_reserve_dynptr(map, u32 size, u64 flags, struct bpf_dynptr *ptr)`: 0;
/// `-E2BIG` for more than 2^24 - 1 bytes, `-EINVAL` for flags and without room: the dynptr is
/// invalid then.
pub(super) fn ringbuf_reserve_dynptr<M: MemoryPort>(
    [map, size, flags, dynptr, _]: [u64; 5],
    memory: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    let size = size as u32;
    let made = match size {
        _ if flags != 0 => Err(Errno::EINVAL),
        size if size > MOST_BYTES => Err(Errno::E2BIG),
        size => match memory.reserve(map, size.into(), 0)? {
            0 => Err(Errno::EINVAL),
            record => Ok(Dynptr::of_kind(RINGBUF, record, size)),
        },
    };
    set(memory, dynptr, made)
}

/// `void bpf_ringbuf_submit_dynptr(struct bpf_dynptr *ptr, u64 flags)`: hands the record to
/// the host; nothing if the dynptr is invalid.
pub(super) fn ringbuf_submit_dynptr<M: MemoryPort>(
    [dynptr, ..]: [u64; 5],
    memory: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    end_record(memory, dynptr, false)
}

/// `void bpf_ringbuf_discard_dynptr(struct bpf_dynptr *ptr, u64 flags)`: the host skips the
/// record.
pub(super) fn ringbuf_discard_dynptr<M: MemoryPort>(
    [dynptr, ..]: [u64; 5],
    memory: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    end_record(memory, dynptr, true)
}

fn end_record<M: MemoryPort>(
    memory: &mut M,
    address: u64,
    is_discarded: bool,
) -> Result<u64, M::Fault> {
    let dynptr = Dynptr::read(memory, address)?;
    if dynptr.data != 0 {
        memory.submit(dynptr.data, is_discarded)?;
        Dynptr::default().write(memory, address)?;
    }
    Ok(0)
}

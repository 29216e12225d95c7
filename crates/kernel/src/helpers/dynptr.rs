//! Helpers on dynptrs ([`crate::dynptr`]).

use spec::{Errno, Result};
use vm::MemoryPort;

use super::bytes::Bytes;
use super::map::status;
use crate::call::{Call, Return, fail_if};
use crate::dynptr::{Dynptr, DynptrKind, MOST_BYTES};

/// `long bpf_dynptr_from_mem(void *data, u32 size, u64 flags, struct bpf_dynptr *ptr)`: 0;
/// `-E2BIG` for more than 2^24 - 1 bytes, `-EINVAL` for flags: the dynptr is invalid then.
pub(super) fn dynptr_from_mem<M: MemoryPort>(
    Call([data, size, flags, dynptr, _], memory, _): Call<M>,
) -> Return<M> {
    let made = match size as u32 {
        size if size > MOST_BYTES => Err(Errno::E2BIG),
        _ if flags != 0 => Err(Errno::EINVAL),
        size => Ok(Dynptr::new(DynptrKind::Local, data, size)),
    };
    set(memory, dynptr, made)
}

/// Writes a dynptr, or an invalid one; what the helper returns.
fn set<M: MemoryPort>(memory: &mut M, address: u64, made: Result<Dynptr>) -> Return<M> {
    made.unwrap_or_default().write(memory, address)?;
    Ok(status(made.map(drop)))
}

/// `long bpf_dynptr_read(void *dst, u32 len, const struct bpf_dynptr *src, u32 offset, u64
/// flags)`: 0; `-EINVAL` for an invalid dynptr or flags, `-E2BIG` for bytes that are not in
/// it.
pub(super) fn dynptr_read<M: MemoryPort>(
    Call([to, len, dynptr, offset, flags], memory, _): Call<M>,
) -> Return<M> {
    fail_if!(flags != 0 => Errno::EINVAL);
    let mut bytes = Bytes::zeroed(narrow(len) as usize);
    let dynptr = Dynptr::read(memory, dynptr)?;
    let read = dynptr.read_bytes(memory, narrow(offset), bytes.get_mut())?;
    if read.is_ok() {
        memory.write(to, bytes.get())?;
    }
    Ok(status(read))
}

/// `long bpf_dynptr_write(const struct bpf_dynptr *dst, u32 offset, void *src, u32 len, u64
/// flags)`: as [`dynptr_read`]; `-EINVAL` for a read-only dynptr too. The flags are those of
/// `bpf_skb_store_bytes` for the packet of a socket buffer, and 0 for others.
pub(super) fn dynptr_write<M: MemoryPort>(
    Call([dynptr, offset, from, len, flags], memory, _): Call<M>,
) -> Return<M> {
    let dynptr = Dynptr::read(memory, dynptr)?;
    let bytes = Bytes::read(memory, from, narrow(len) as usize)?;
    let written = dynptr.write_bytes(memory, narrow(offset), bytes.get(), flags)?;
    Ok(status(written))
}

/// Lengths and offsets have 32 bits.
fn narrow(number: u64) -> u64 {
    u64::from(number as u32)
}

/// `void *bpf_dynptr_data(const struct bpf_dynptr *ptr, u32 offset, u32 len)`: the address of
/// the bytes; null for an invalid or read-only dynptr, and if they are not in it.
pub(super) fn dynptr_data<M: MemoryPort>(
    Call([dynptr, offset, len, ..], memory, _): Call<M>,
) -> Return<M> {
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
    Call([map, size, flags, dynptr, _], memory, _): Call<M>,
) -> Return<M> {
    let size = size as u32;
    let made = match size {
        _ if flags != 0 => Err(Errno::EINVAL),
        size if size > MOST_BYTES => Err(Errno::E2BIG),
        size => match memory.reserve(map, size.into(), 0)? {
            0 => Err(Errno::EINVAL),
            record => Ok(Dynptr::new(DynptrKind::Ringbuf, record, size)),
        },
    };
    set(memory, dynptr, made)
}

/// `void bpf_ringbuf_submit_dynptr(struct bpf_dynptr *ptr, u64 flags)`: hands the record to
/// the host; nothing if the dynptr is invalid.
pub(super) fn ringbuf_submit_dynptr<M: MemoryPort>(
    Call([dynptr, ..], memory, _): Call<M>,
) -> Return<M> {
    end_record(memory, dynptr, false)
}

/// `void bpf_ringbuf_discard_dynptr(struct bpf_dynptr *ptr, u64 flags)`: the host skips the
/// record.
pub(super) fn ringbuf_discard_dynptr<M: MemoryPort>(
    Call([dynptr, ..], memory, _): Call<M>,
) -> Return<M> {
    end_record(memory, dynptr, true)
}

fn end_record<M: MemoryPort>(memory: &mut M, address: u64, is_discarded: bool) -> Return<M> {
    let dynptr = Dynptr::read(memory, address)?;
    if !dynptr.is_null() {
        memory.submit(dynptr.data(), is_discarded)?;
        Dynptr::default().write(memory, address)?;
    }
    Ok(0)
}

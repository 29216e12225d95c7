//! Functions on dynptrs ([`crate::dynptr`]).

use spec::{Errno, Result};
use vm::ModelPort;

use super::int;
use crate::call::{Call, Return};
use crate::dynptr::{Dynptr, DynptrKind};
use crate::helpers::{Bytes, why_unreadable};

/// Bytes that are copied at once to and from packets in several pieces.
const PORTION: usize = 256;

fn status(result: Result) -> u64 {
    int(result.map_or_else(Errno::negated, |()| 0))
}

/// Makes a dynptr of a packet; an invalid one and `-EINVAL` for flags.
fn from_packet<M: ModelPort>(
    memory: &mut M,
    [context, flags, dynptr]: [u64; 3],
    kind: DynptrKind,
) -> Return<M> {
    let packet = memory.packet(context)?;
    let size = match kind {
        DynptrKind::SkbMeta => packet.metadata_len(),
        DynptrKind::Skb | DynptrKind::Xdp | DynptrKind::Local | DynptrKind::Ringbuf => packet.len(),
    };
    let made = Dynptr::new(kind, context, size as u32);
    let made = match packet.state.is_read_only {
        true => made.read_only(),
        false => made,
    };
    let made = match flags {
        0 => Ok(made),
        _ => Err(Errno::EINVAL),
    };
    made.unwrap_or_default().write(memory, dynptr)?;
    Ok(status(made.map(drop)))
}

/// `int bpf_dynptr_from_skb(struct __sk_buff *s, u64 flags, struct bpf_dynptr *ptr__uninit)`: 0;
/// `-EINVAL` for flags: the dynptr is invalid then.
pub(super) fn dynptr_from_skb<M: ModelPort>(
    Call([context, flags, dynptr, ..], memory, _): Call<M>,
) -> Return<M> {
    from_packet(memory, [context, flags, dynptr], DynptrKind::Skb)
}

/// `int bpf_dynptr_from_skb_meta(struct __sk_buff *skb_, u64 flags, ptr__uninit)`: as
/// [`dynptr_from_skb`], of the metadata.
pub(super) fn dynptr_from_skb_meta<M: ModelPort>(
    Call([context, flags, dynptr, ..], memory, _): Call<M>,
) -> Return<M> {
    from_packet(memory, [context, flags, dynptr], DynptrKind::SkbMeta)
}

/// `int bpf_dynptr_from_xdp(struct xdp_md *x, u64 flags, ptr__uninit)`: as [`dynptr_from_skb`].
pub(super) fn dynptr_from_xdp<M: ModelPort>(
    Call([context, flags, dynptr, ..], memory, _): Call<M>,
) -> Return<M> {
    from_packet(memory, [context, flags, dynptr], DynptrKind::Xdp)
}

/// `int bpf_dynptr_adjust(const struct bpf_dynptr *p, u32 start, u32 end)`: makes it point to a
/// part of its bytes. `-EINVAL` if it is invalid or the part ends before its start, `-ERANGE` if
/// it is no part.
pub(super) fn dynptr_adjust<M: ModelPort>(
    Call([dynptr, start, end, ..], memory, _): Call<M>,
) -> Return<M> {
    let part = Dynptr::read(memory, dynptr)?.part(start as u32, end as u32);
    if let Ok(part) = part {
        part.write(memory, dynptr)?;
    }
    Ok(status(part.map(drop)))
}

/// `int bpf_dynptr_clone(const struct bpf_dynptr *p, struct bpf_dynptr *clone__uninit)`: 0;
/// `-EINVAL` and an invalid clone of an invalid one.
pub(super) fn dynptr_clone<M: ModelPort>(
    Call([dynptr, clone, ..], memory, _): Call<M>,
) -> Return<M> {
    let dynptr = Dynptr::read(memory, dynptr)?;
    let cloned = match dynptr.is_null() {
        true => Err(Errno::EINVAL),
        false => Ok(dynptr),
    };
    cloned.unwrap_or_default().write(memory, clone)?;
    Ok(status(cloned.map(drop)))
}

/// `bool bpf_dynptr_is_null(const struct bpf_dynptr *p)`.
pub(super) fn dynptr_is_null<M: ModelPort>(Call([dynptr, ..], memory, _): Call<M>) -> Return<M> {
    Ok(Dynptr::read(memory, dynptr)?.is_null().into())
}

/// `bool bpf_dynptr_is_rdonly(const struct bpf_dynptr *p)`: false for an invalid one.
pub(super) fn dynptr_is_rdonly<M: ModelPort>(Call([dynptr, ..], memory, _): Call<M>) -> Return<M> {
    let dynptr = Dynptr::read(memory, dynptr)?;
    Ok((!dynptr.is_null() && dynptr.is_read_only()).into())
}

/// `__u32 bpf_dynptr_size(const struct bpf_dynptr *p)`: the number of its bytes; `-EINVAL` of an
/// invalid one.
pub(super) fn dynptr_size<M: ModelPort>(Call([dynptr, ..], memory, _): Call<M>) -> Return<M> {
    let dynptr = Dynptr::read(memory, dynptr)?;
    Ok(match dynptr.is_null() {
        true => int(Errno::EINVAL.negated()),
        false => dynptr.len().into(),
    })
}

/// `void *bpf_dynptr_slice(const struct bpf_dynptr *p, u32 offset, void *buffer__opt, u32
/// buffer__szk)`: the address of the bytes; that of the buffer with a copy of them, if they are
/// of a packet and in several pieces; null without a buffer, and if they are not all in it.
pub(super) fn dynptr_slice<M: ModelPort>(
    Call([dynptr, offset, buffer, len, _], memory, _): Call<M>,
) -> Return<M> {
    let dynptr = Dynptr::read(memory, dynptr)?;
    slice(memory, dynptr, [offset, buffer, len])
}

/// `void *bpf_dynptr_slice_rdwr(p, u32 offset, void *buffer__opt, u32 buffer__szk)`: as
/// [`dynptr_slice`]; null of a read-only dynptr.
pub(super) fn dynptr_slice_rdwr<M: ModelPort>(
    Call([dynptr, offset, buffer, len, _], memory, _): Call<M>,
) -> Return<M> {
    let dynptr = Dynptr::read(memory, dynptr)?;
    match dynptr.is_read_only() {
        true => Ok(0),
        false => slice(memory, dynptr, [offset, buffer, len]),
    }
}

fn slice<M: ModelPort>(
    memory: &mut M,
    dynptr: Dynptr,
    [offset, buffer, len]: [u64; 3],
) -> Return<M> {
    let (offset, len) = (u64::from(offset as u32), u64::from(len as u32));
    match dynptr.slice(memory, offset, len)? {
        Ok(address) => return Ok(address),
        Err(Errno::EFAULT) if buffer != 0 => {}
        Err(_) => return Ok(0),
    }
    let mut bytes = Bytes::zeroed(len as usize);
    if dynptr.read_bytes(memory, offset, bytes.get_mut())?.is_err() {
        return Ok(0);
    }
    memory.write(buffer, bytes.get())?;
    Ok(buffer)
}

/// `int bpf_dynptr_copy(struct bpf_dynptr *dst_ptr, u32 dst_off, struct bpf_dynptr *src_ptr, u32
/// src_off, u32 size)`: 0; `-E2BIG` for bytes that are not all in both, `-EINVAL` for an invalid
/// one or a target that is read-only.
pub(super) fn dynptr_copy<M: ModelPort>(
    Call([to, to_offset, from, from_offset, size], memory, _): Call<M>,
) -> Return<M> {
    let (to, from) = (Dynptr::read(memory, to)?, Dynptr::read(memory, from)?);
    let (to_offset, from_offset) = (u64::from(to_offset as u32), u64::from(from_offset as u32));
    let size = size as u32 as usize;
    let len = size as u64;
    let source = from.slice(memory, from_offset, len)?;
    let target = match to.is_read_only() {
        true => Err(Errno::EINVAL),
        false => to.slice(memory, to_offset, len)?,
    };
    let portion = match (source, target) {
        // What is in one piece on a side is copied at once.
        (Ok(_), _) | (_, Ok(_)) => size.max(1),
        (Err(_), Err(_)) => {
            let checked = to.check_range(to_offset, len);
            let checked = checked.and_then(|()| from.check_range(from_offset, len));
            if let Err(errno) = checked {
                return Ok(int(errno.negated()));
            }
            PORTION
        }
    };
    let mut done = 0;
    while done < size || size == 0 && portion == 1 {
        let mut bytes = Bytes::zeroed(portion.min(size - done));
        let read = from.read_bytes(memory, from_offset + done as u64, bytes.get_mut())?;
        let copied = match read {
            Ok(()) => to.write_bytes(memory, to_offset + done as u64, bytes.get(), 0)?,
            Err(errno) => Err(errno),
        };
        if copied.is_err() || size == 0 {
            return Ok(status(copied));
        }
        done += bytes.get().len();
    }
    Ok(0)
}

/// `int bpf_dynptr_memset(struct bpf_dynptr *p, u32 offset, u32 size, u8 val)`: 0; `-EINVAL` of
/// a read-only dynptr, `-E2BIG` for bytes that are not all in it.
pub(super) fn dynptr_memset<M: ModelPort>(
    Call([dynptr, offset, size, value, _], memory, _): Call<M>,
) -> Return<M> {
    let dynptr = Dynptr::read(memory, dynptr)?;
    let (offset, size) = (u64::from(offset as u32), u64::from(size as u32));
    if dynptr.is_read_only() {
        return Ok(int(Errno::EINVAL.negated()));
    }
    if let Err(errno) = dynptr.check_range(offset, size) {
        return Ok(int(errno.negated()));
    }
    if size == 0 {
        return Ok(0);
    }
    let mut bytes = Bytes::zeroed(size as usize);
    bytes.get_mut().fill(value as u8);
    let written = dynptr.write_bytes(memory, offset, bytes.get(), 0)?;
    Ok(status(written))
}

/// Reads memory at any address; the bytes, or why not.
type ReadMemory<M> = fn(&M, u64, usize) -> Result<Vec<u8>>;

/// Fills a part of a dynptr with memory at an address. A text ends with its zero byte, and its
/// length is the result.
fn fill<M: ModelPort>(
    memory: &mut M,
    [dynptr, offset, size, from]: [u64; 4],
    (is_text, read): (bool, ReadMemory<M>),
) -> Return<M> {
    let dynptr = Dynptr::read(memory, dynptr)?;
    let (offset, size) = (u64::from(offset as u32), u64::from(size as u32));
    if let Err(errno) = dynptr.check_range(offset, size) {
        return Ok(int(errno.negated()));
    }
    let bytes = match read(memory, from, size as usize) {
        Ok(bytes) => bytes,
        Err(errno) => return Ok(int(errno.negated())),
    };
    if bytes.is_empty() {
        return Ok(0);
    }
    match dynptr.write_bytes(memory, offset, &bytes, 0)? {
        Ok(()) if is_text => Ok(bytes.len() as u64),
        written => Ok(status(written)),
    }
}

fn kernel_bytes<M: ModelPort>(memory: &M, from: u64, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    match memory.probe(from, &mut bytes) {
        true => Ok(bytes),
        false => Err(why_unreadable(from)),
    }
}

/// The bytes of a text with its zero byte, which takes the place of what is too long.
fn kernel_text<M: ModelPort>(memory: &M, from: u64, len: usize) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for at in 0..len as u64 {
        let mut byte = [0];
        if !memory.probe(from.wrapping_add(at), &mut byte) {
            return Err(why_unreadable(from));
        }
        text.extend(byte);
        if byte == [0] {
            break;
        }
    }
    if let Some(last) = text.last_mut() {
        *last = 0;
    }
    Ok(text)
}

/// The process has no memory.
fn user_bytes<M: ModelPort>(_: &M, _: u64, len: usize) -> Result<Vec<u8>> {
    match len {
        0 => Ok(Vec::new()),
        _ => Err(Errno::EFAULT),
    }
}

/// `int bpf_probe_read_kernel_dynptr(struct bpf_dynptr *dptr, u32 off, u32 size, const void
/// *unsafe_ptr__ign)`: 0; `-E2BIG` for bytes that are not all in it, `-EFAULT` or `-ERANGE` if
/// nothing is at the address.
pub(super) fn probe_read_kernel_dynptr<M: ModelPort>(
    Call([dynptr, offset, size, from, _], memory, _): Call<M>,
) -> Return<M> {
    fill(memory, [dynptr, offset, size, from], (false, kernel_bytes))
}

/// `int bpf_probe_read_kernel_str_dynptr(dptr, u32 off, u32 size, const void *unsafe_ptr__ign)`:
/// the length of the text with its zero byte; errors as of [`probe_read_kernel_dynptr`].
pub(super) fn probe_read_kernel_str_dynptr<M: ModelPort>(
    Call([dynptr, offset, size, from, _], memory, _): Call<M>,
) -> Return<M> {
    fill(memory, [dynptr, offset, size, from], (true, kernel_text))
}

/// Defines functions that read memory of a process, which has none.
macro_rules! of_process {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("`int bpf_", stringify!($name), "(dptr, u32 off, u32 size, …)`: ")]
            /// `-EFAULT`; 0 for no bytes, `-E2BIG` for bytes that are not all in the dynptr.
            pub(super) fn $name<M: ModelPort>(Call([dynptr, offset, size, from, _], memory, _): Call<M>) -> Return<M> {
                fill(memory, [dynptr, offset, size, from], (false, user_bytes))
            }
        )*
    };
}

of_process! {
    probe_read_user_dynptr
    probe_read_user_str_dynptr
    copy_from_user_dynptr
    copy_from_user_str_dynptr
    copy_from_user_task_dynptr
    copy_from_user_task_str_dynptr
}

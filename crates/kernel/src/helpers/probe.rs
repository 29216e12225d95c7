//! Helpers that read memory at any address.
//!
//! Memory of the kernel is the memory of the run: its stack, context, packet and maps.

use spec::Errno;
use vm::MemoryPort;

use super::EFAULT;
use super::bytes::Bytes;
use crate::call::{Call, Return};

/// The first address behind those of user space, and the page that Linux 6.18 adds
/// (`copy_from_kernel_nofault_allowed`).
const USER_END: u64 = 0x7fff_ffff_f000 + 0x1000;

/// `long bpf_probe_read_kernel(void *to, u32 size, const void *from)`: 0; `-ERANGE` for
/// addresses that the kernel does not have, `-EFAULT` where nothing is: `to` is zero then.
pub(super) fn probe_read_kernel<M: MemoryPort>(
    Call([to, size, from, ..], memory, _): Call<M>,
) -> Return<M> {
    let mut bytes = Bytes::zeroed(size as u32 as usize);
    let result = match memory.probe(from, bytes.get_mut()) {
        true => 0,
        false => {
            // Those that nothing was read into take no memory, however many they are.
            bytes = Bytes::zeroed(size as u32 as usize);
            match absent(from) {
                // Nothing is read where the kernel may read.
                EFAULT if bytes.get().is_empty() => 0,
                errno => errno,
            }
        }
    };
    memory.write(to, bytes.get())?;
    Ok(result)
}

/// `long bpf_probe_read(void *to, u32 size, const void *from)`: as [`probe_read_kernel`];
/// `-EFAULT` for addresses of user space.
pub(super) fn probe_read<M: MemoryPort>(Call(arguments, memory, cx): Call<M>) -> Return<M> {
    // Memory of a run is at addresses of this process, where native code runs.
    let result = probe_read_kernel(Call(arguments, memory, cx))?;
    match result == Errno::ERANGE.negated() && arguments[2] < USER_END {
        true => super::user_memory::probe_read_user(Call(arguments, memory, cx)),
        false => Ok(result),
    }
}

/// `long bpf_probe_read_kernel_str(void *to, u32 size, const void *from)`: the length of the
/// text with its final zero byte, which takes the place of what does not fit; errors as of
/// [`probe_read_kernel`].
pub(super) fn probe_read_kernel_str<M: MemoryPort>(
    Call([to, size, from, ..], memory, _): Call<M>,
) -> Return<M> {
    let size = u64::from(size as u32);
    let mut text = Vec::new();
    for at in 0..size {
        let mut byte = [0];
        if !memory.probe(from.wrapping_add(at), &mut byte) {
            memory.write(to, Bytes::zeroed(size as usize).get())?;
            return Ok(absent(from));
        }
        text.extend(byte);
        if byte == [0] {
            break;
        }
    }
    if let Some(last) = text.last_mut() {
        *last = 0;
    }
    memory.write(to, &text)?;
    Ok(text.len() as u64)
}

/// `long bpf_probe_read_str(void *to, u32 size, const void *from)`: as
/// [`probe_read_kernel_str`]; `-EFAULT` for addresses of user space.
pub(super) fn probe_read_str<M: MemoryPort>(Call(arguments, memory, cx): Call<M>) -> Return<M> {
    let result = probe_read_kernel_str(Call(arguments, memory, cx))?;
    match result == Errno::ERANGE.negated() && arguments[2] < USER_END {
        true => super::user_memory::probe_read_user_str(Call(arguments, memory, cx)),
        false => Ok(result),
    }
}

/// Error of reading an unmapped address.
pub(crate) fn why_unreadable(address: u64) -> Errno {
    let is_canonical = (address as i64) << 16 >> 16 == address as i64;
    match address < USER_END || !is_canonical {
        true => Errno::ERANGE,
        false => Errno::EFAULT,
    }
}

/// Return value of reading an unmapped address.
pub(super) fn absent(address: u64) -> u64 {
    why_unreadable(address).negated()
}

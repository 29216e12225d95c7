//! Helpers that work on the entries of maps.

use spec::maps::MapKind;
use spec::{Errno, Result};
use vm::MemoryPort;

use super::bytes::Bytes;
use super::socket_parts::{Found, found, in_map};
use crate::call::{Call, Return};

/// `void *bpf_map_lookup_elem(map, key)`: the address of the value, of a map of sockets the
/// socket; or null.
pub(super) fn map_lookup_elem<M: MemoryPort>(
    Call([map, key, ..], memory, cx): Call<M>,
) -> Return<M> {
    let key = Bytes::read(memory, key, memory.map(map)?.key_size)?;
    match memory.lookup(map, cx.cpu(), key.get())? {
        0 => in_map(map, key.get(), memory, cx),
        value => Ok(value),
    }
}

/// `void *bpf_map_lookup_percpu_elem(map, key, u32 cpu)`: the address of the value of
/// another CPU; null also if there is no such CPU.
pub(super) fn map_lookup_percpu_elem<M: MemoryPort>(
    Call([map, key, cpu, ..], memory, _): Call<M>,
) -> Return<M> {
    let object = memory.map(map)?;
    let (cpu, copies) = (cpu as u32, object.copies);
    let key = Bytes::read(memory, key, object.key_size)?;
    match cpu < copies {
        true => memory.lookup(map, cpu, key.get()),
        false => Ok(0),
    }
}

/// `long bpf_map_update_elem(map, key, value, u64 flags)`. For maps of sockets the value is a
/// socket: `-EINVAL` for null and for what is no whole socket, `-EOPNOTSUPP` for those that the
/// map does not take.
pub(super) fn map_update_elem<M: MemoryPort>(
    Call([map, key, value, flags, _], memory, cx): Call<M>,
) -> Return<M> {
    let map = memory.map(map)?;
    let key = Bytes::read(memory, key, map.key_size)?;
    if map.kind.holds_sockets() {
        let sockets = &cx.system.network.sockets;
        return Ok(status(match found(value, memory, sockets)? {
            Found::Numbered(_, socket) => map.operations().update_socket(key.get(), socket, flags),
            Found::Nothing => Err(Errno::EINVAL),
            Found::OfPacket => Err(Errno::EOPNOTSUPP),
        }));
    }
    let value = Bytes::read(memory, value, map.value_size)?;
    Ok(status(map.operations().update(
        cx.cpu(),
        key.get(),
        value.get(),
        flags,
    )))
}

/// `long bpf_map_delete_elem(map, key)`.
pub(super) fn map_delete_elem<M: MemoryPort>(
    Call([map, key, ..], memory, cx): Call<M>,
) -> Return<M> {
    let map = memory.map(map)?;
    let key = Bytes::read(memory, key, map.key_size)?;
    Ok(status(map.operations().delete(cx.cpu(), key.get())))
}

/// `long bpf_map_push_elem(map, value, u64 flags)`.
pub(super) fn map_push_elem<M: MemoryPort>(
    Call([map, value, flags, ..], memory, _): Call<M>,
) -> Return<M> {
    let map = memory.map(map)?;
    let value = Bytes::read(memory, value, map.value_size)?;
    Ok(status(map.operations().push(value.get(), flags)))
}

/// `long bpf_map_pop_elem(map, value)`: the value is zero if there is none.
pub(super) fn map_pop_elem<M: MemoryPort>(Call([map, value, ..], memory, _): Call<M>) -> Return<M> {
    let map = memory.map(map)?;
    let mut bytes = vec![0; map.value_size];
    let result = map.operations().pop(&mut bytes);
    if !matches!(result, Err(Errno::ENOTSUPP | Errno::EOPNOTSUPP)) {
        memory.write(value, &bytes)?;
    }
    Ok(status(result))
}

/// `long bpf_map_peek_elem(map, value)`: as [`map_pop_elem`], but the value stays; of a set,
/// whether the value may be in it.
pub(super) fn map_peek_elem<M: MemoryPort>(
    Call([map, value, ..], memory, _): Call<M>,
) -> Return<M> {
    let map = memory.map(map)?;
    let mut bytes = vec![0; map.value_size];
    if map.kind == MapKind::BloomFilter {
        memory.read(value, &mut bytes)?;
        return Ok(status(map.operations().peek(&mut bytes)));
    }
    let result = map.operations().peek(&mut bytes);
    if !matches!(result, Err(Errno::ENOTSUPP | Errno::EOPNOTSUPP)) {
        memory.write(value, &bytes)?;
    }
    Ok(status(result))
}

/// Return value of a helper for a result: 0, or the negated error number.
pub(super) fn status(result: Result) -> u64 {
    match result {
        Ok(()) => 0,
        Err(errno) => errno.negated(),
    }
}

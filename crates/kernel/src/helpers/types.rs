//! Helpers about the types of the kernel.

use btf::{Kind, ShowError, ShowFlags, TypeId};
use spec::Errno;
use vm::MemoryPort;

use super::bytes::Bytes;
use super::probe::why_unreadable;
use crate::call::{Call, Return, fail_if};

/// Size of `struct btf_ptr`.
const POINTER_SIZE: u32 = 16;

/// `long bpf_snprintf_btf(char *str, u32 str_size, struct btf_ptr *ptr, u32 btf_ptr_size, u64
/// flags)`: the length of the text of an object without its final zero byte, also where only a
/// part of it fits; `-EINVAL` for unknown flags, another size of `ptr` and without types,
/// `-ENOENT` for an id that no type has, `-EFAULT` or `-ERANGE` if the object cannot be read.
///
/// Pointers are printed as they are, also without `BTF_F_PTR_RAW`: there is no secret to hash
/// them with.
pub(super) fn snprintf_btf<M: MemoryPort>(
    Call([to, size, pointer, pointer_size, flags], memory, cx): Call<M>,
) -> Return<M> {
    let is_wrong = flags & !ShowFlags::ALL.0 != 0 || pointer_size as u32 != POINTER_SIZE;
    let Some(types) = cx.types.filter(|_| !is_wrong) else {
        return Ok(Errno::EINVAL.negated());
    };
    let [mut address, mut id] = [[0; 8]; 2];
    memory.read(pointer, &mut address)?;
    memory.read(pointer + 8, &mut id[..4])?;
    let id = u64::from_le_bytes(id) as u32;
    fail_if!(id == 0 => Errno::EINVAL);
    fail_if!(types.get(TypeId(id)).is_none() => Errno::ENOENT);
    let address = u64::from_le_bytes(address);
    let (mut text, shown) = types.show(TypeId(id), address, ShowFlags(flags), &mut |at, into| {
        memory.probe(at, into)
    });
    let len = text.len() as u64;
    if !text.is_empty() {
        let size = size as u32 as usize;
        text.truncate(size.saturating_sub(1));
        text.push(0);
        text.truncate(size);
        memory.write(to, &text)?;
    }
    Ok(match shown {
        Ok(()) => len,
        Err(ShowError::Type) => Errno::EINVAL.negated(),
        Err(ShowError::Memory(address)) => why_unreadable(address).negated(),
    })
}

/// `long bpf_btf_find_by_name_kind(char *name, int name_sz, u32 kind, int flags)`: the id of the
/// first type of that name and kind; `-ENOENT` without one, `-EINVAL` for flags, a name that does
/// not end with a zero byte, and without types.
pub(super) fn btf_find_by_name_kind<M: MemoryPort>(
    Call([name, size, kind, flags, _], memory, cx): Call<M>,
) -> Return<M> {
    let size = size as i32;
    fail_if!(flags as u32 != 0 || size <= 1 => Errno::EINVAL);
    let mut bytes = Bytes::zeroed(size as usize);
    memory.read(name, bytes.get_mut())?;
    let (Some(types), Some(0)) = (cx.types, bytes.get().last()) else {
        return Ok(Errno::EINVAL.negated());
    };
    let name = bytes.get().split(|byte| *byte == 0).next();
    let name = name.unwrap_or_default();
    let found = Kind::from_number(kind as u32).and_then(|kind| match name {
        [] => types
            .types()
            .find(|ty| ty.kind() == kind && ty.name().is_empty()),
        name => types.find_all(kind, name).next(),
    });
    Ok(match found {
        Some(ty) => ty.id().0.into(),
        None => Errno::ENOENT.negated(),
    })
}

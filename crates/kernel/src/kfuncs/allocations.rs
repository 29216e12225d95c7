//! Objects that programs allocate, with references.

use vm::ModelPort;

use crate::call::{Call, Return};

/// Bytes of the largest object (4,096 less a link of the allocator).
const MOST_BYTES: usize = 4096 - 8;

/// `void *bpf_obj_new_impl(u64 local_type_id__k, void *meta__ign)`: an object of a structure of
/// the program; null for more than 4,088 bytes and without memory.
pub(super) fn obj_new_impl<M: ModelPort>(Call([type_id, ..], memory, _): Call<M>) -> Return<M> {
    let layout = memory.layout(type_id)?;
    let made = match layout.size {
        0..=MOST_BYTES => memory.objects()?.allocate(&layout),
        _ => None,
    };
    Ok(held(memory, made))
}

/// `void *bpf_percpu_obj_new_impl(u64 local_type_id__k, void *meta__ign)`: an object with a copy
/// for each CPU; null without memory.
pub(super) fn percpu_obj_new_impl<M: ModelPort>(
    Call([type_id, ..], memory, _): Call<M>,
) -> Return<M> {
    let layout = memory.layout(type_id)?;
    let made = memory.objects()?.allocate_percpu(&layout);
    Ok(held(memory, made))
}

/// The pointer to an object that the run holds now; null for none.
pub(super) fn held<M: ModelPort>(memory: &mut M, object: Option<u64>) -> u64 {
    if let Some(pointer) = object {
        memory.hold(pointer);
    }
    object.unwrap_or(0)
}

/// `void bpf_obj_drop_impl(void *p__alloc, void *meta__ign)`: drops a reference.
pub(super) fn obj_drop_impl<M: ModelPort>(Call([pointer, ..], memory, _): Call<M>) -> Return<M> {
    memory.give(pointer)?;
    memory.objects()?.drop_reference(pointer);
    Ok(0)
}

/// `void bpf_percpu_obj_drop_impl(void *p__alloc, void *meta__ign)`: as [`obj_drop_impl`].
pub(super) fn percpu_obj_drop_impl<M: ModelPort>(call: Call<M>) -> Return<M> {
    obj_drop_impl(call)
}

/// `void *bpf_refcount_acquire_impl(void *p__refcounted_kptr, void *meta__ign)`: the same
/// object, with one more reference.
pub(super) fn refcount_acquire_impl<M: ModelPort>(
    Call([pointer, ..], memory, _): Call<M>,
) -> Return<M> {
    let objects = memory.objects()?;
    if objects.start(pointer) != Some(pointer) {
        return Err(memory.refuse(format!("no object is at {pointer:#x}")));
    }
    objects.add_reference(pointer);
    memory.hold(pointer);
    Ok(pointer)
}

//! Lists of objects: heads in values of maps and in objects, under the lock beside them.

use spec::Errno;
use vm::ModelPort;

use super::allocations::held;
use super::int;
use crate::call::{Call, Return};

/// `int bpf_list_push_front_impl(struct bpf_list_head *head, struct bpf_list_node *node, void
/// *meta__ign, u64 off)`: the object of the node becomes the list's; `-EINVAL` if its node is in
/// a list already: the reference is dropped.
pub(super) fn list_push_front_impl<M: ModelPort>(
    Call([head, node, ..], memory, _): Call<M>,
) -> Return<M> {
    push(memory, head, node, true)
}

/// `int bpf_list_push_back_impl(head, node, void *meta__ign, u64 off)`: as
/// [`list_push_front_impl`].
pub(super) fn list_push_back_impl<M: ModelPort>(
    Call([head, node, ..], memory, _): Call<M>,
) -> Return<M> {
    push(memory, head, node, false)
}

fn push<M: ModelPort>(memory: &mut M, head: u64, node: u64, at_front: bool) -> Return<M> {
    let list = memory.root(head)?;
    let object = give_object(memory, node)?;
    let objects = memory.objects()?;
    if objects.push(list, node, at_front) {
        return Ok(0);
    }
    objects.drop_reference(object);
    Ok(int(Errno::EINVAL.negated()))
}

/// Takes the reference to the object of a node from the run; the object.
pub(super) fn give_object<M: ModelPort>(memory: &mut M, node: u64) -> Return<M> {
    // What is no object is not held either.
    let object = memory.objects()?.start(node).unwrap_or(node);
    memory.give(object)?;
    Ok(object)
}

/// The node of an object that the run holds now; null for none.
pub(super) fn held_node<M: ModelPort>(memory: &mut M, node: Option<u64>) -> Return<M> {
    let object = match node {
        Some(node) => memory.objects()?.start(node),
        None => None,
    };
    held(memory, object);
    Ok(node.unwrap_or(0))
}

/// `struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *head)`: the first node, with
/// its object; null if the list is empty.
pub(super) fn list_pop_front<M: ModelPort>(Call([head, ..], memory, _): Call<M>) -> Return<M> {
    let list = memory.root(head)?;
    let node = memory.objects()?.pop(list, true);
    held_node(memory, node)
}

/// `struct bpf_list_node *bpf_list_pop_back(struct bpf_list_head *head)`: the last one.
pub(super) fn list_pop_back<M: ModelPort>(Call([head, ..], memory, _): Call<M>) -> Return<M> {
    let list = memory.root(head)?;
    let node = memory.objects()?.pop(list, false);
    held_node(memory, node)
}

/// `struct bpf_list_node *bpf_list_front(struct bpf_list_head *head)`: the first node, which
/// stays in the list.
pub(super) fn list_front<M: ModelPort>(Call([head, ..], memory, _): Call<M>) -> Return<M> {
    let list = memory.root(head)?;
    Ok(memory.objects()?.end(list, true).unwrap_or(0))
}

/// `struct bpf_list_node *bpf_list_back(struct bpf_list_head *head)`: the last one.
pub(super) fn list_back<M: ModelPort>(Call([head, ..], memory, _): Call<M>) -> Return<M> {
    let list = memory.root(head)?;
    Ok(memory.objects()?.end(list, false).unwrap_or(0))
}

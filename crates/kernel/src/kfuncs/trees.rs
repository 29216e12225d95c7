//! Trees of objects: roots in values of maps and in objects, under the lock beside them. A
//! function of the program says which of two nodes is less.

use spec::Errno;
use vm::{Iteration, IterationStep, ModelPort, Side};

use super::int;
use super::lists::{give_object, held_node};
use crate::call::{Call, Return};

/// `int bpf_rbtree_add_impl(struct bpf_rb_root *root, struct bpf_rb_node *node, bool (*less)(a,
/// b), void *meta__ign, u64 off)`: the object of the node becomes the tree's, behind those that
/// it is not less than; `-EINVAL` if its node is in a tree already: the reference is dropped.
pub(super) fn rbtree_add_impl<M: ModelPort>(
    Call([root, node, less, ..], memory, _): Call<M>,
) -> Return<M> {
    let tree = memory.root(root)?;
    let object = give_object(memory, node)?;
    let objects = memory.objects()?;
    if !objects.claim(tree, node) {
        objects.drop_reference(object);
        return Ok(int(Errno::EINVAL.negated()));
    }
    memory.begin(Box::new(Insertion {
        tree,
        node,
        less,
        compared: None,
    }));
    Ok(0)
}

/// The calls of `less` on the way from the root of a tree to the place of a node.
struct Insertion {
    tree: u64,
    node: u64,
    less: u64,
    /// The node that the last call compared with.
    compared: Option<u64>,
}

impl<M: ModelPort> Iteration<M> for Insertion {
    fn next(&mut self, memory: &mut M, returned: Option<u64>) -> Result<IterationStep, M::Fault> {
        let objects = memory.objects()?;
        // The function returns a `bool`.
        let side = match returned.map(|returned| returned as u8) {
            Some(0) | None => Side::Right,
            Some(_) => Side::Left,
        };
        let place = self.compared.map(|compared| (compared, side));
        let next = match place {
            Some((compared, side)) => objects.child(self.tree, compared, side),
            None => objects.root(self.tree),
        };
        let Some(next) = next else {
            objects.insert(self.tree, self.node, place);
            return Ok(IterationStep::Return(0));
        };
        self.compared = Some(next);
        Ok(IterationStep::Call {
            function: self.less,
            arguments: [self.node, next, 0, 0, 0],
        })
    }
}

/// `struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root, struct bpf_rb_node *node)`:
/// the node, with its object; null if it is not in the tree.
pub(super) fn rbtree_remove<M: ModelPort>(Call([root, node, ..], memory, _): Call<M>) -> Return<M> {
    let tree = memory.root(root)?;
    let is_removed = memory.objects()?.remove(tree, node);
    held_node(memory, is_removed.then_some(node))
}

/// `struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root)`: the first node, which
/// stays in the tree.
pub(super) fn rbtree_first<M: ModelPort>(Call([root, ..], memory, _): Call<M>) -> Return<M> {
    let tree = memory.root(root)?;
    Ok(memory.objects()?.first(tree).unwrap_or(0))
}

/// `struct bpf_rb_node *bpf_rbtree_root(struct bpf_rb_root *root)`: the root's node.
pub(super) fn rbtree_root<M: ModelPort>(Call([root, ..], memory, _): Call<M>) -> Return<M> {
    let tree = memory.root(root)?;
    Ok(memory.objects()?.root(tree).unwrap_or(0))
}

/// `struct bpf_rb_node *bpf_rbtree_left(struct bpf_rb_root *root, struct bpf_rb_node *node)`:
/// the left child; null without one and for a node that is not in the tree.
pub(super) fn rbtree_left<M: ModelPort>(Call([root, node, ..], memory, _): Call<M>) -> Return<M> {
    let tree = memory.root(root)?;
    let child = memory.objects()?.child(tree, node, Side::Left);
    Ok(child.unwrap_or(0))
}

/// `struct bpf_rb_node *bpf_rbtree_right(root, node)`: the right child.
pub(super) fn rbtree_right<M: ModelPort>(Call([root, node, ..], memory, _): Call<M>) -> Return<M> {
    let tree = memory.root(root)?;
    let child = memory.objects()?.child(tree, node, Side::Right);
    Ok(child.unwrap_or(0))
}

//! Red-black trees of nodes that are known by their addresses.
//!
//! Insertion and removal are those of the textbook (Cormen et al., "Introduction to
//! Algorithms"), as in Linux (`lib/rbtree.c`), so that trees have the shape that they have
//! there. The caller finds the place of a new node. Both are logarithmic.

use std::collections::HashMap;

/// The number for no node.
const NONE: u64 = 0;

/// One of the two children of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one of nodes that come before.
    Left,
    /// The one of nodes that come behind.
    Right,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    parent: u64,
    children: [u64; 2],
    is_red: bool,
}

/// A tree.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: HashMap<u64, Node>,
    root: u64,
}

impl Tree {
    /// The root, if it has nodes.
    pub(super) fn root(&self) -> Option<u64> {
        (self.root != NONE).then_some(self.root)
    }

    /// The first node in order.
    pub(super) fn first(&self) -> Option<u64> {
        let mut node = self.root()?;
        while let Some(left) = self.child(node, Side::Left) {
            node = left;
        }
        Some(node)
    }

    /// A child of a node.
    pub(super) fn child(&self, node: u64, side: Side) -> Option<u64> {
        let child = self.at(node, side);
        (child != NONE).then_some(child)
    }

    /// All nodes, in no order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = u64> {
        self.nodes.keys().copied()
    }

    /// Inserts a node as the child of a parent that has none on that side, or as the root of an
    /// empty tree.
    pub(super) fn insert(&mut self, node: u64, place: Option<(u64, Side)>) {
        let inserted = Node {
            parent: place.map_or(NONE, |(parent, _)| parent),
            is_red: true,
            ..Node::default()
        };
        self.nodes.insert(node, inserted);
        match place {
            Some((parent, side)) => self.set_child(parent, side, node),
            None => self.root = node,
        }
        self.balance_insertion(node);
    }

    fn balance_insertion(&mut self, mut node: u64) {
        loop {
            let parent = self.parent(node);
            if parent == NONE {
                return self.set_red(node, false);
            }
            if !self.is_red(parent) {
                return;
            }
            // A red node is no root.
            let grandparent = self.parent(parent);
            let side = self.side_of(grandparent, parent);
            let uncle = self.at(grandparent, side.other());
            if self.is_red(uncle) {
                self.set_red(uncle, false);
                self.set_red(parent, false);
                self.set_red(grandparent, true);
                node = grandparent;
                continue;
            }
            let mut upper = parent;
            if self.at(parent, side.other()) == node {
                self.rotate(parent, side);
                upper = node;
            }
            self.set_red(upper, false);
            self.set_red(grandparent, true);
            return self.rotate(grandparent, side.other());
        }
    }

    /// Removes a node of the tree.
    pub(super) fn remove(&mut self, node: u64) {
        let Some(removed) = self.nodes.get(&node).copied() else {
            return;
        };
        let [left, right] = removed.children;
        // The node that takes the place, and where a black one is missing now.
        let missing = match (left, right) {
            (NONE, NONE) => {
                self.replace(removed.parent, node, NONE);
                (!removed.is_red).then_some(removed.parent)
            }
            (child, NONE) | (NONE, child) => {
                self.replace(removed.parent, node, child);
                self.set_red(child, removed.is_red);
                None
            }
            _ => {
                let mut successor = right;
                while self.at(successor, Side::Left) != NONE {
                    successor = self.at(successor, Side::Left);
                }
                let was_red = self.is_red(successor);
                let child = self.at(successor, Side::Right);
                let mut parent = successor;
                if successor != right {
                    parent = self.parent(successor);
                    self.set_child(parent, Side::Left, child);
                    self.set_child(successor, Side::Right, right);
                }
                self.set_child(successor, Side::Left, left);
                self.replace(removed.parent, node, successor);
                self.set_red(successor, removed.is_red);
                match child {
                    NONE => (!was_red).then_some(parent),
                    child => {
                        self.set_red(child, false);
                        None
                    }
                }
            }
        };
        self.nodes.remove(&node);
        if let Some(parent) = missing {
            self.balance_removal(parent);
        }
    }

    /// Mends a tree in which paths through a child of a node have one black node too few: at
    /// first the child that it does not have.
    fn balance_removal(&mut self, mut parent: u64) {
        let mut node = NONE;
        while parent != NONE {
            let side = self.side_of(parent, node);
            let mut sibling = self.at(parent, side.other());
            if self.is_red(sibling) {
                self.set_red(sibling, false);
                self.set_red(parent, true);
                self.rotate(parent, side);
                sibling = self.at(parent, side.other());
            }
            let inner = self.at(sibling, side);
            if !self.is_red(self.at(sibling, side.other())) {
                if !self.is_red(inner) {
                    self.set_red(sibling, true);
                    if self.is_red(parent) {
                        return self.set_red(parent, false);
                    }
                    node = parent;
                    parent = self.parent(node);
                    continue;
                }
                self.set_red(inner, false);
                self.set_red(sibling, true);
                self.rotate(sibling, side.other());
                sibling = inner;
            }
            let parent_is_red = self.is_red(parent);
            self.set_red(sibling, parent_is_red);
            self.set_red(parent, false);
            self.set_red(self.at(sibling, side.other()), false);
            return self.rotate(parent, side);
        }
    }

    /// Puts the child of a node on the other side in its place, and the node to a side of it.
    fn rotate(&mut self, node: u64, side: Side) {
        let upper = self.at(node, side.other());
        let parent = self.parent(node);
        self.set_child(node, side.other(), self.at(upper, side));
        self.replace(parent, node, upper);
        self.set_child(upper, side, node);
    }

    /// Puts another node, or none, in the place of a child of a parent; without a parent, of the
    /// root.
    fn replace(&mut self, parent: u64, old: u64, new: u64) {
        match parent {
            NONE => {
                self.root = new;
                self.set_parent(new, NONE);
            }
            parent => {
                let side = self.side_of(parent, old);
                self.set_child(parent, side, new);
            }
        }
    }

    /// The side of a parent on which a child is.
    fn side_of(&self, parent: u64, child: u64) -> Side {
        match self.at(parent, Side::Left) == child {
            true => Side::Left,
            false => Side::Right,
        }
    }

    fn node(&self, node: u64) -> Node {
        self.nodes.get(&node).copied().unwrap_or_default()
    }

    fn at(&self, node: u64, side: Side) -> u64 {
        self.node(node).children[side as usize]
    }

    fn parent(&self, node: u64) -> u64 {
        self.node(node).parent
    }

    /// False for none.
    fn is_red(&self, node: u64) -> bool {
        self.node(node).is_red
    }

    fn set_red(&mut self, node: u64, is_red: bool) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.is_red = is_red;
        }
    }

    fn set_parent(&mut self, node: u64, parent: u64) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.parent = parent;
        }
    }

    fn set_child(&mut self, parent: u64, side: Side, child: u64) {
        if let Some(parent) = self.nodes.get_mut(&parent) {
            parent.children[side as usize] = child;
        }
        self.set_parent(child, parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of black nodes on every path down from a node; the order and colours are checked.
    fn black_height(tree: &Tree, node: Option<u64>, range: std::ops::Range<u64>) -> usize {
        let Some(node) = node else {
            return 1;
        };
        assert!(range.contains(&node));
        let children = [Side::Left, Side::Right].map(|side| tree.child(node, side));
        for child in children.into_iter().flatten() {
            assert_eq!(tree.parent(child), node);
            assert!(!tree.is_red(node) || !tree.is_red(child));
        }
        let left = black_height(tree, children[0], range.start..node);
        let right = black_height(tree, children[1], node + 1..range.end);
        assert_eq!(left, right);
        left + usize::from(!tree.is_red(node))
    }

    fn place(tree: &Tree, node: u64) -> Option<(u64, Side)> {
        let mut place = None;
        let mut at = tree.root();
        while let Some(parent) = at {
            let side = match node < parent {
                true => Side::Left,
                false => Side::Right,
            };
            place = Some((parent, side));
            at = tree.child(parent, side);
        }
        place
    }

    #[test]
    fn trees_stay_balanced_and_in_order() {
        let mut random = spec::SplitMix::new(5);
        let mut draw = |below: u64| spec::Random::next_u32(&mut random) as u64 % below;
        let mut tree = Tree::default();
        let mut nodes = std::collections::BTreeSet::new();
        for round in 0..6000 {
            let node = 1 + draw(200);
            let grows = draw(100) < if round / 1000 % 2 == 0 { 60 } else { 40 };
            match nodes.contains(&node) {
                true if !grows => {
                    tree.remove(node);
                    nodes.remove(&node);
                }
                false if grows => {
                    let place = place(&tree, node);
                    tree.insert(node, place);
                    nodes.insert(node);
                }
                _ => continue,
            }
            black_height(&tree, tree.root(), 1..1000);
            assert!(!tree.root().is_some_and(|root| tree.is_red(root)));
            assert_eq!(tree.nodes().count(), nodes.len());
            assert_eq!(tree.first(), nodes.first().copied());
        }
        assert!(!nodes.is_empty());
    }
}

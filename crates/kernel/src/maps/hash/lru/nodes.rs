//! Circular doubly linked lists of elements. A list is a head between its last and its first
//! element. The lock of the list that an element is in protects the links of that element.
//!
//! Layout of a node, an element or a head, in cells: links to the next and the previous node;
//! place and CPU.

use std::sync::Arc;

use vm::sync::atomic::Ordering::Relaxed;
use vm::sync::atomic::{AtomicBool, AtomicU64};
use vm::{Cells, OutOfMemory};

/// A list, by the number of its head.
#[derive(Clone, Copy, Debug)]
pub(super) struct List(pub(super) u32);

/// The kind of list that an element is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Free,
    Active,
    Inactive,
    /// The pending list of a CPU.
    Pending(u32),
}

/// The links, places and marks of elements, and the heads of lists.
#[derive(Debug)]
pub(super) struct Nodes {
    cells: Cells,
    /// For each element, whether it was used since its mark was cleared.
    marks: Arc<[AtomicBool]>,
}

/// Cells of a node.
const STRIDE: usize = 2;

impl Nodes {
    /// So many elements, which are in no list yet, and so many lists without elements.
    pub(super) fn new(elements: u32, lists: u32) -> Result<Nodes, OutOfMemory> {
        let nodes = Nodes {
            cells: Cells::zeroed((elements as usize + lists as usize) * STRIDE)?,
            marks: (0..elements).map(|_| AtomicBool::new(false)).collect(),
        };
        for number in 0..lists {
            let List(head) = nodes.list(number);
            nodes.link(head, head);
        }
        Ok(nodes)
    }

    /// A list by its number.
    pub(super) fn list(&self, number: u32) -> List {
        List(self.marks.len() as u32 + number)
    }

    pub(super) fn marks(&self) -> &Arc<[AtomicBool]> {
        &self.marks
    }

    #[inline(always)]
    pub(super) fn mark(&self, element: u32) {
        let mark = &self.marks[element as usize];
        if !mark.load(Relaxed) {
            mark.store(true, Relaxed);
        }
    }

    pub(super) fn is_marked(&self, element: u32) -> bool {
        self.marks[element as usize].load(Relaxed)
    }

    /// The place of an element. Without the lock of its list it may change meanwhile.
    pub(super) fn place(&self, element: u32) -> Place {
        let state = self.cell(element, 1).load(Relaxed);
        match state & 3 {
            0 => Place::Free,
            1 => Place::Active,
            2 => Place::Inactive,
            _ => Place::Pending((state >> 2) as u32),
        }
    }

    /// Puts an element that is in no list into one, as the first, without a mark.
    pub(super) fn put(&self, element: u32, list: List, place: Place) {
        self.marks[element as usize].store(false, Relaxed);
        let state = match place {
            Place::Free => 0,
            Place::Active => 1,
            Place::Inactive => 2,
            Place::Pending(cpu) => 3 | u64::from(cpu) << 2,
        };
        self.cell(element, 1).store(state, Relaxed);
        let List(head) = list;
        let first = self.next(head);
        self.link(head, element);
        self.link(element, first);
    }

    /// Takes an element out of its list.
    pub(super) fn take_out(&self, element: u32) {
        self.link(self.previous(element), self.next(element));
    }

    /// The first element of a list.
    pub(super) fn first(&self, list: List) -> Option<u32> {
        let List(head) = list;
        let first = self.next(head);
        (first != head).then_some(first)
    }

    /// The elements of a list from the last one on. An element that was returned may be moved.
    pub(super) fn backwards(&self, list: List) -> impl Iterator<Item = u32> {
        let List(head) = list;
        let mut next = self.previous(head);
        std::iter::from_fn(move || {
            let element = next;
            (element != head).then(|| {
                next = self.previous(element);
                element
            })
        })
    }

    /// The node behind another one.
    pub(super) fn next(&self, node: u32) -> u32 {
        self.cell(node, 0).load(Relaxed) as u32
    }

    /// The node before another one.
    pub(super) fn previous(&self, node: u32) -> u32 {
        (self.cell(node, 0).load(Relaxed) >> 32) as u32
    }

    /// Makes a node the next one of another.
    fn link(&self, node: u32, next: u32) {
        let links = u64::from(self.previous(node)) << 32 | u64::from(next);
        self.cell(node, 0).store(links, Relaxed);
        let links = u64::from(node) << 32 | u64::from(self.next(next));
        self.cell(next, 0).store(links, Relaxed);
    }

    fn cell(&self, node: u32, cell: usize) -> &AtomicU64 {
        &self.cells.as_slice()[node as usize * STRIDE + cell]
    }
}

//! Active, inactive and free elements under one lock (`struct bpf_lru_list`).

use vm::sync::atomic::AtomicU32;
use vm::sync::atomic::Ordering::Relaxed;

use super::nodes::{List, Nodes, Place};
use crate::maps::spin_lock::{SpinGuard, SpinLock};

/// Lists of elements by age, and the elements of no list, which were never used.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Generations {
    lock: SpinLock,
    active: List,
    inactive: List,
    free: List,
    active_len: AtomicU32,
    inactive_len: AtomicU32,
    /// The node of the inactive list at which its next rotation starts.
    hand: AtomicU32,
    /// The first element that was never used, and the one behind the last.
    unused: AtomicU32,
    end: u32,
}

/// The lists, locked.
pub(super) struct Locked<'l> {
    lists: &'l Generations,
    nodes: &'l Nodes,
    /// Most elements that a rotation or a shrinking visits.
    most: usize,
    _guard: SpinGuard<'l>,
}

impl Generations {
    /// Numbers of lists.
    pub(super) const LISTS: u32 = 3;

    /// Lists from a number on, of the elements of a range.
    pub(super) fn new(nodes: &Nodes, list: u32, elements: std::ops::Range<u32>) -> Generations {
        let inactive = nodes.list(list + 1);
        Generations {
            lock: SpinLock::default(),
            active: nodes.list(list),
            inactive,
            free: nodes.list(list + 2),
            active_len: AtomicU32::new(0),
            inactive_len: AtomicU32::new(0),
            hand: AtomicU32::new(inactive.0),
            unused: AtomicU32::new(elements.start),
            end: elements.end,
        }
    }

    /// The elements of the lists, and those that were never used.
    #[cfg(test)]
    pub(super) fn elements(&self, nodes: &Nodes) -> Vec<u32> {
        let lists = [self.active, self.inactive, self.free];
        let elements = lists.into_iter().flat_map(|list| nodes.backwards(list));
        elements
            .chain(self.unused.load(Relaxed)..self.end)
            .collect()
    }

    /// Locks the lists; rotations and shrinkings visit so many elements at most.
    pub(super) fn lock<'l>(&'l self, nodes: &'l Nodes, most: usize) -> Locked<'l> {
        Locked {
            lists: self,
            nodes,
            most,
            _guard: self.lock.lock(),
        }
    }
}

impl Locked<'_> {
    /// Puts an element that is in none of the lists into the active list if it is marked, and
    /// otherwise into the inactive one.
    pub(super) fn add(&self, element: u32) {
        match self.nodes.is_marked(element) {
            true => self.put(element, Place::Active),
            false => self.put(element, Place::Inactive),
        }
    }

    /// Puts an element that is in none of the lists into one, as the first.
    pub(super) fn put(&self, element: u32, place: Place) {
        if let Some(len) = self.len(place) {
            len.store(len.load(Relaxed) + 1, Relaxed);
        }
        let list = match place {
            Place::Active => self.lists.active,
            Place::Inactive => self.lists.inactive,
            Place::Free | Place::Pending(_) => self.lists.free,
        };
        self.nodes.put(element, list, place);
    }

    /// Takes an element out of its list.
    pub(super) fn take_out(&self, element: u32) {
        if let Some(len) = self.len(self.nodes.place(element)) {
            len.store(len.load(Relaxed) - 1, Relaxed);
        }
        if self.lists.hand.load(Relaxed) == element {
            let before = self.nodes.previous(element);
            self.lists.hand.store(before, Relaxed);
        }
        self.nodes.take_out(element);
    }

    fn relocate(&self, element: u32, place: Place) {
        self.take_out(element);
        self.put(element, place);
    }

    fn len(&self, place: Place) -> Option<&AtomicU32> {
        match place {
            Place::Active => Some(&self.lists.active_len),
            Place::Inactive => Some(&self.lists.inactive_len),
            Place::Free | Place::Pending(_) => None,
        }
    }

    /// Takes a free element.
    pub(super) fn take_free(&self) -> Option<u32> {
        if let Some(element) = self.nodes.first(self.lists.free) {
            self.nodes.take_out(element);
            return Some(element);
        }
        let unused = self.lists.unused.load(Relaxed);
        (unused < self.lists.end).then(|| {
            self.lists.unused.store(unused + 1, Relaxed);
            unused
        })
    }

    /// Has elements change places by their marks, which are cleared: of the active list, if it
    /// is longer than the inactive one, and of the inactive list.
    pub(super) fn rotate(&self) {
        if self.lists.inactive_len.load(Relaxed) < self.lists.active_len.load(Relaxed) {
            self.rotate_active();
        }
        self.rotate_inactive();
    }

    /// The last elements of the active list become the first ones of a list.
    fn rotate_active(&self) {
        let first = self.nodes.first(self.lists.active);
        for element in self.nodes.backwards(self.lists.active).take(self.most) {
            match self.nodes.is_marked(element) {
                true => self.relocate(element, Place::Active),
                false => self.relocate(element, Place::Inactive),
            }
            if Some(element) == first {
                return;
            }
        }
    }

    /// Marked elements of the inactive list become active. The visit of its elements, in a
    /// circle, goes on where the last one ended, and ends where it began.
    fn rotate_inactive(&self) {
        let (nodes, List(head)) = (self.nodes, self.lists.inactive);
        if nodes.first(self.lists.inactive).is_none() {
            return;
        }
        let mut element = self.lists.hand.load(Relaxed);
        let last = match nodes.next(element) {
            next if next == head => nodes.next(head),
            next => next,
        };
        let mut before = head;
        for _ in 0..self.most {
            if element == head {
                element = nodes.previous(head);
            }
            before = nodes.previous(element);
            if nodes.is_marked(element) {
                self.relocate(element, Place::Active);
            }
            if element == last {
                break;
            }
            element = before;
        }
        self.lists.hand.store(before, Relaxed);
    }

    /// Evicts up to so many elements from the end of the inactive list that are not marked;
    /// without one, the last element of the inactive or else of the active list that can be
    /// evicted. `keep` gets each.
    pub(super) fn shrink(&self, count: u32, evict: &impl Fn(u32) -> bool, keep: impl Fn(u32)) {
        let mut evicted = 0;
        let evict = |element| {
            let is_evicted = evict(element);
            if is_evicted {
                self.take_out(element);
                keep(element);
            }
            is_evicted
        };
        for element in self.nodes.backwards(self.lists.inactive).take(self.most) {
            if self.nodes.is_marked(element) {
                self.relocate(element, Place::Active);
            } else if evict(element) {
                evicted += 1;
                if evicted == count {
                    break;
                }
            }
        }
        if evicted == 0 {
            let list = match self.nodes.first(self.lists.inactive) {
                Some(_) => self.lists.inactive,
                None => self.lists.active,
            };
            let mut elements = self.nodes.backwards(list);
            let _ = elements.find(|element| evict(*element));
        }
    }
}

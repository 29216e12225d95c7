//! `lpm_trie`: values by the longest prefix that matches.
//!
//! A binary trie with compressed paths, as Linux's `kernel/bpf/lpm_trie.c`: a node stands
//! for a prefix; two prefixes that part where no entry is get an intermediate node, which
//! has no value and always two children. Lookups take no lock; updates take the map's. A
//! node that is gone is recycled when no run that began before can hold it ([`RunGuard`]).
//!
//! Layout of a node, in cells: links to both children (index + 1, 0 for none); prefix length
//! and whether it is intermediate; the prefix's bytes; value.

use std::sync::{Arc, PoisonError};
use vm::sync::atomic::AtomicU64;
use vm::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use vm::sync::{Mutex, MutexGuard};

use spec::{Errno, Result};
use vm::{CellAddress, CellSlice, DirectAccess, MapFunction, MapOperations, WordLookup};

use super::flags::{EXIST, NOEXIST};
use super::pool::{Layout, Pool};
use super::resources::{NoResources, Resources};
use super::{Definition, Host, RunGuard, SyscallOperations, ValueLayout, key};

const CHILDREN: usize = 0;
const PREFIX: usize = 1;
const DATA: usize = 2;
const INTERMEDIATE: u64 = 1 << 32;

/// A trie of prefixes; see the module's text.
#[derive(Debug)]
pub(super) struct LpmTrie {
    pool: Arc<Pool>,
    /// Cell 0: the root's link. The lock holds the number of entries.
    root: AtomicU64,
    entries: Mutex<u32>,
    most: u32,
    /// Bytes of a prefix.
    data_size: usize,
    value: ValueLayout,
}

/// A key: length of the prefix in bits, and its bytes.
#[derive(Clone, Copy)]
struct Prefix<'a> {
    len: u32,
    data: &'a [u8],
}

impl<'a> Prefix<'a> {
    /// The bit at an index, from the most significant one of the first byte on.
    fn bit(self, index: u32) -> usize {
        usize::from(self.data[index as usize / 8] >> (7 - index % 8) & 1)
    }
}

/// A node, by its index in the pool.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Node(u32);

/// A place that holds a link: the root, or a child of a node.
#[derive(Clone, Copy)]
enum Slot {
    Root,
    Child(Node, usize),
}

impl LpmTrie {
    pub(super) fn new(map: &Definition, host: &Host) -> Result<LpmTrie> {
        let data_size = map.params.key_size as usize - 4;
        let stride = DATA + key::cells_of(data_size) + map.value.cells();
        // An entry needs a node, and an intermediate one at most.
        let expected = map.params.max_entries.saturating_mul(2);
        let pool = Pool::growing(Layout::plain(stride), expected, u32::MAX / 2, host.cpus);
        Ok(LpmTrie {
            pool: Arc::new(pool.map_err(|_| Errno::ENOMEM)?.charging(&host.memory, 0)),
            root: AtomicU64::new(0),
            entries: Mutex::new(0),
            most: map.params.max_entries,
            data_size,
            value: map.value.clone(),
        })
    }

    fn most_bits(&self) -> u32 {
        self.data_size as u32 * 8
    }

    fn prefix<'a>(&self, key: &'a [u8]) -> Option<Prefix<'a>> {
        let (len, data) = key.split_first_chunk::<4>()?;
        let len = u32::from_le_bytes(*len);
        (len <= self.most_bits()).then_some(Prefix { len, data })
    }

    #[inline(always)]
    fn cells(&self, node: Node) -> &[AtomicU64] {
        self.pool.element(node.0)
    }

    fn child(&self, slot: Slot) -> Option<Node> {
        let link = match slot {
            Slot::Root => self.root.load(Acquire) as u32,
            Slot::Child(node, 0) => self.cells(node)[CHILDREN].load(Acquire) as u32,
            Slot::Child(node, _) => (self.cells(node)[CHILDREN].load(Acquire) >> 32) as u32,
        };
        link.checked_sub(1).map(Node)
    }

    /// Changes a link; only under the lock.
    fn set(&self, slot: Slot, node: Option<Node>) {
        let link = node.map_or(0, |node| u64::from(node.0 + 1));
        let (cell, side) = match slot {
            Slot::Root => (&self.root, 0),
            Slot::Child(node, side) => (&self.cells(node)[CHILDREN], side),
        };
        let others = cell.load(Relaxed) & !(0xffff_ffff << (32 * side));
        cell.store(others | link << (32 * side), Release);
    }

    fn len(&self, node: Node) -> u32 {
        self.cells(node)[PREFIX].load(Relaxed) as u32
    }

    fn is_intermediate(&self, node: Node) -> bool {
        self.cells(node)[PREFIX].load(Relaxed) & INTERMEDIATE != 0
    }

    fn data(&self, node: Node) -> CellSlice<'_> {
        CellSlice::new(&self.cells(node)[DATA..], self.data_size)
    }

    #[inline(always)]
    fn value(&self, node: Node) -> &[AtomicU64] {
        &self.cells(node)[DATA + key::cells_of(self.data_size)..]
    }

    /// Bits in which a node and a key agree, at most the shorter prefix.
    fn common(&self, node: Node, key: Prefix<'_>) -> u32 {
        let limit = key.len.min(self.len(node));
        let mut bits = 0;
        for (cell, bytes) in self.cells(node)[DATA..].iter().zip(key.data.chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let difference = u64::from_be(cell.load(Relaxed)) ^ u64::from_be_bytes(word);
            bits += difference.leading_zeros();
            if difference != 0 || bits >= limit {
                break;
            }
        }
        bits.min(limit)
    }

    /// A node that nothing links to yet.
    fn new_node(&self, len: u32, data: &[u8], is_intermediate: bool) -> Result<Node> {
        let index = self.pool.take(0).map_err(|_| Errno::ENOMEM)?;
        let node = Node(index.ok_or(Errno::ENOMEM)?);
        let flag = if is_intermediate { INTERMEDIATE } else { 0 };
        let cells = self.cells(node);
        cells[CHILDREN].store(0, Relaxed);
        cells[PREFIX].store(u64::from(len) | flag, Relaxed);
        key::write(&cells[DATA..], data);
        Ok(node)
    }

    /// Frees a node when no run can hold it any more.
    fn retire(&self, node: Node) {
        let pool = Arc::clone(&self.pool);
        RunGuard::new().defer(move || pool.give_back(0, node.0));
    }

    fn lock(&self) -> MutexGuard<'_, u32> {
        // Links change in one step, so a panic elsewhere leaves the trie whole.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot at which a walk for a key ends, the node there, and how many bits agree.
    fn walk(&self, key: Prefix<'_>) -> (Slot, Option<Node>, u32, Option<(Slot, Node)>) {
        let (mut slot, mut parent) = (Slot::Root, None);
        while let Some(node) = self.child(slot) {
            let common = self.common(node, key);
            let len = self.len(node);
            if len != common || len == key.len {
                return (slot, Some(node), common, parent);
            }
            parent = Some((slot, node));
            slot = Slot::Child(node, key.bit(len));
        }
        (slot, None, 0, parent)
    }

    /// Counts an entry that is to be added.
    fn admit(&self, entries: &mut u32, flags: u64) -> Result {
        Errno::ENOENT.when(flags == EXIST)?;
        Errno::ENOSPC.when(*entries == self.most)?;
        *entries += 1;
        Ok(())
    }

    /// The first node of a subtree in the order of iteration: more specific before less.
    fn leftmost(&self, from: Node) -> Option<Node> {
        let (mut at, mut found) = (Some(from), None);
        while let Some(node) = at {
            let left = self.child(Slot::Child(node, 0));
            at = match self.is_intermediate(node) {
                true => left,
                false => {
                    found = Some(node);
                    left.or_else(|| self.child(Slot::Child(node, 1)))
                }
            };
        }
        found
    }

    /// The node after the one with this key; the first if there is none with it.
    fn following(&self, root: Node, key: Option<Prefix<'_>>) -> Option<Node> {
        let Some(key) = key else {
            return self.leftmost(root);
        };
        let mut path = vec![root];
        loop {
            let node = *path.last()?;
            let (common, len) = (self.common(node, key), self.len(node));
            if len != common || len == key.len {
                if len != common || self.is_intermediate(node) {
                    return self.leftmost(root);
                }
                break;
            }
            match self.child(Slot::Child(node, key.bit(len))) {
                Some(child) => path.push(child),
                None => return self.leftmost(root),
            }
        }
        while let Some(node) = path.pop() {
            let parent = *path.last()?;
            if self.child(Slot::Child(parent, 0)) == Some(node)
                && let Some(right) = self.child(Slot::Child(parent, 1))
            {
                return self.leftmost(right);
            }
            if !self.is_intermediate(parent) {
                return Some(parent);
            }
        }
        None
    }
}

impl WordLookup for LpmTrie {
    fn key_size(&self) -> usize {
        self.data_size + 4
    }

    #[inline(always)]
    fn lookup_words<const N: usize>(
        &self,
        _: impl Fn() -> u32,
        key: [u64; N],
    ) -> Option<CellAddress<'_>> {
        // The prefix's bytes begin behind its length, in the upper half of the first number.
        let data: [u64; N] = std::array::from_fn(|at| {
            let next = key.get(at + 1).map_or(0, |next| next << 32);
            (key[at] >> 32 | next).swap_bytes()
        });
        let most = (key[0] as u32).min(self.most_bits());
        if most != key[0] as u32 {
            return None;
        }
        let mut found = None;
        let mut link = self.root.load(Acquire) as u32;
        while let Some(node) = link.checked_sub(1).map(Node) {
            let cells = self.cells(node);
            let children = cells[CHILDREN].load(Acquire);
            let prefix = cells[PREFIX].load(Relaxed);
            let len = prefix as u32;
            let limit = len.min(most);
            let mut common = 0;
            for (cell, word) in cells[DATA..].iter().zip(data) {
                let difference = u64::from_be(cell.load(Relaxed)) ^ word;
                common += difference.leading_zeros();
                if difference != 0 || common >= limit {
                    break;
                }
            }
            if common < len || len > most {
                break;
            }
            if prefix & INTERMEDIATE == 0 {
                found = Some(node);
            }
            if len == most {
                break;
            }
            let side = data[len as usize / 64] >> (63 - len % 64) & 1;
            link = (children >> (32 * side)) as u32;
        }
        found.map(|node| CellAddress::of(self.value(node)))
    }
}

impl MapOperations for LpmTrie {
    fn direct_lookup(self: Arc<Self>) -> Option<DirectAccess> {
        MapFunction::lookup(self).map(DirectAccess::Function)
    }

    fn lookup<'g>(&'g self, _: &'g RunGuard, _: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        let key = self.prefix(key)?;
        let (mut slot, mut found) = (Slot::Root, None);
        while let Some(node) = self.child(slot) {
            let (common, len) = (self.common(node, key), self.len(node));
            if common == self.most_bits() {
                found = Some(node);
                break;
            }
            if common < len {
                break;
            }
            if !self.is_intermediate(node) {
                found = Some(node);
            }
            slot = Slot::Child(node, key.bit(len));
        }
        found.map(|node| CellSlice::new(self.value(node), self.value.size))
    }

    fn update(&self, _: u32, key: &[u8], value: &[u8], flags: u64) -> Result {
        self.store(key, value, flags, &NoResources)
    }

    fn delete(&self, _: u32, key: &[u8]) -> Result {
        let key = self.prefix(key).ok_or(Errno::EINVAL)?;
        let mut entries = self.lock();
        let (slot, node, common, parent) = self.walk(key);
        let exact = |node: &Node| {
            let len = self.len(*node);
            len == key.len && len == common && !self.is_intermediate(*node)
        };
        let node = node.filter(exact).ok_or(Errno::ENOENT)?;
        *entries -= 1;
        let children = [0, 1].map(|side| self.child(Slot::Child(node, side)));
        match (children, parent) {
            ([Some(_), Some(_)], _) => {
                self.cells(node)[PREFIX].fetch_or(INTERMEDIATE, Relaxed);
                return Ok(());
            }
            // An intermediate parent goes too; its other child takes its place.
            ([None, None], Some((above, parent))) if self.is_intermediate(parent) => {
                let side = usize::from(self.child(Slot::Child(parent, 0)) == Some(node));
                self.set(above, self.child(Slot::Child(parent, side)));
                self.retire(parent);
            }
            ([left, right], _) => self.set(slot, left.or(right)),
        }
        self.retire(node);
        Ok(())
    }

    fn covers(&self, address: u64, len: usize) -> bool {
        let index = self.pool.element_at(address);
        let element = index.map(|index| self.pool.element(index));
        element.is_some_and(|element| super::special::covers(&element[DATA..], address, len))
    }
}

impl SyscallOperations for LpmTrie {
    fn store(&self, key: &[u8], value: &[u8], flags: u64, _: &dyn Resources) -> Result {
        Errno::EINVAL.when(flags > EXIST)?;
        let key = self.prefix(key).ok_or(Errno::EINVAL)?;
        let mut entries = self.lock();
        let (slot, node, common, _) = self.walk(key);
        let replaced = node.filter(|node| self.len(*node) == common);
        match replaced.filter(|node| !self.is_intermediate(*node)) {
            Some(_) if flags == NOEXIST => return Err(Errno::EEXIST),
            Some(_) => {}
            None => self.admit(&mut entries, flags)?,
        }
        let new = self.new_node(key.len, key.data, false)?;
        CellSlice::new(self.value(new), self.value.size).write(0, value);
        if let Some(old) = replaced {
            let children = self.cells(old)[CHILDREN].load(Relaxed);
            self.cells(new)[CHILDREN].store(children, Relaxed);
            self.set(slot, Some(new));
            self.retire(old);
            return Ok(());
        }
        let Some(node) = node else {
            self.set(slot, Some(new));
            return Ok(());
        };
        let data = self.data(node).to_vec();
        let its = Prefix {
            len: self.len(node),
            data: &data,
        };
        if common == key.len {
            self.set(Slot::Child(new, its.bit(common)), Some(node));
            self.set(slot, Some(new));
            return Ok(());
        }
        let parting = self.new_node(common, &data, true)?;
        self.set(Slot::Child(parting, its.bit(common)), Some(node));
        self.set(Slot::Child(parting, key.bit(common)), Some(new));
        self.set(slot, Some(parting));
        Ok(())
    }

    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        let guard = RunGuard::new();
        let value = self.lookup(&guard, 0, key).ok_or(Errno::ENOENT)?;
        value.read(0, out);
        Ok(())
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        let _guard = RunGuard::new();
        let root = self.child(Slot::Root).ok_or(Errno::ENOENT)?;
        let key = key.and_then(|key| self.prefix(key));
        let node = self.following(root, key).ok_or(Errno::ENOENT)?;
        let (len, data) = next.split_at_mut(4);
        len.copy_from_slice(&self.len(node).to_le_bytes());
        self.data(node).read(0, data);
        Ok(())
    }
}

//! Objects that programs allocate, and the lists and trees that hold them.
//!
//! Programs know objects by addresses that no other object gets as long as the store exists:
//! the address of an object that was freed is no memory. Lists and trees are known by the place
//! of their root on the host: in the value of a map, or in an object. The bytes of roots and
//! nodes stay as programs see them, zero.
//!
//! An object is freed when its last reference is dropped. What its fields own goes with it, and
//! what the values of maps own when the map frees them.

mod tree;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use tree::Side;

use crate::{Addresses, CELL_BYTES, CellSlice, Cells};
use tree::Tree;

/// Bits of the addresses of an object.
const SPAN_BITS: u32 = 16;
/// Most objects that are ever made.
const MOST_OBJECTS: u64 = 1 << 29;
/// Most bytes of all objects that exist.
const MOST_BYTES: usize = 256 << 20;

/// Object that a field owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owned {
    /// The object of a pointer.
    Object,
    /// The objects of a list head.
    List,
    /// The objects of the root of a tree.
    Tree,
}

/// A field that owns objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwningField {
    /// Bytes from the start of the value or object.
    pub offset: usize,
    /// Object that it owns.
    pub owned: Owned,
}

/// Layout of the objects of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectLayout {
    /// Name of the type.
    pub name: String,
    /// Bytes of an object.
    pub size: usize,
    /// Fields that own others.
    pub owning: Vec<OwningField>,
}

/// The objects of all programs of a host.
#[derive(Debug)]
pub struct Objects {
    cpus: u32,
    places: Places,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    places: Places,
    /// Number of the next object.
    next: u64,
    /// Bytes of all objects.
    bytes: usize,
    /// By number.
    objects: HashMap<u64, Object>,
    /// By the places of their roots.
    lists: HashMap<u64, VecDeque<u64>>,
    trees: HashMap<u64, Tree>,
    /// The places of the roots that nodes belong to, by the addresses of the nodes.
    owners: HashMap<u64, u64>,
}

#[derive(Debug)]
struct Object {
    layout: Arc<ObjectLayout>,
    memory: Cells,
    references: u32,
    /// Objects behind it that are its copies on the CPUs; it has no memory of its own then.
    copies: u32,
}

impl Object {
    fn cells(&self) -> CellSlice<'_> {
        match self.copies {
            0 => self.memory.slice(0, self.layout.size),
            _ => CellSlice::new(&[], 0),
        }
    }
}

/// The addresses of objects.
#[derive(Clone, Copy, Debug)]
struct Places {
    /// That of the first object.
    first: u64,
}

impl Places {
    /// The address of the object of a number.
    fn address_of(self, number: u64) -> u64 {
        self.first + (number << SPAN_BITS)
    }

    /// The number of the object that an address could be in, and the offset in it.
    fn place_of(self, address: u64) -> Option<(u64, usize)> {
        let offset = address.checked_sub(self.first)?;
        let number = offset >> SPAN_BITS;
        let in_object = offset & ((1 << SPAN_BITS) - 1);
        (number < MOST_OBJECTS).then_some((number, in_object as usize))
    }
}

impl Objects {
    /// No objects, on a machine with so many CPUs; the first one gets the address of
    /// [`Addresses::DEFAULT`].
    pub fn new(cpus: u32) -> Objects {
        Objects::starting_at(Addresses::DEFAULT.objects, cpus)
    }

    /// No objects, on a machine with so many CPUs; the first one gets that address.
    pub fn starting_at(first: u64, cpus: u32) -> Objects {
        let places = Places { first };
        Objects {
            cpus,
            places,
            state: Mutex::new(State::new(places)),
        }
    }

    /// Number of CPUs of the machine.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of objects that exist, copies on CPUs among them.
    pub fn count(&self) -> usize {
        self.state().objects.len()
    }

    /// Makes an object with one reference; its address, or `None` if there is no memory.
    pub fn allocate(&self, layout: &Arc<ObjectLayout>) -> Option<u64> {
        self.state().allocate(layout, 0)
    }

    /// Makes an object with a copy for each CPU: its address is no memory, but the pointer that
    /// [`Objects::copy_on`] takes.
    pub fn allocate_percpu(&self, layout: &Arc<ObjectLayout>) -> Option<u64> {
        let mut state = self.state();
        let pointer = state.allocate(layout, self.cpus)?;
        for _ in 0..self.cpus {
            if state.allocate(layout, 0).is_none() {
                state.drop_reference(pointer);
                return None;
            }
        }
        Some(pointer)
    }

    /// The address of the copy on a CPU of an object with copies; `None` if there is none.
    pub fn copy_on(&self, pointer: u64, cpu: u32) -> Option<u64> {
        let (number, _) = self.places.place_of(pointer)?;
        let state = self.state();
        let object = state.objects.get(&number)?;
        (cpu < object.copies).then(|| self.places.address_of(number + 1 + u64::from(cpu)))
    }

    /// The address of the object that an address lies in.
    pub fn start(&self, address: u64) -> Option<u64> {
        let (number, offset) = self.places.place_of(address)?;
        let state = self.state();
        let object = state.objects.get(&number)?;
        (offset < object.layout.size.max(1)).then(|| self.places.address_of(number))
    }

    /// The layout of the object at an address.
    pub fn layout(&self, pointer: u64) -> Option<Arc<ObjectLayout>> {
        let (number, _) = self.places.place_of(pointer)?;
        let state = self.state();
        Some(Arc::clone(&state.objects.get(&number)?.layout))
    }

    /// Something of so many bytes at an address, if they are all in one object.
    fn with_bytes<R>(
        &self,
        address: u64,
        len: usize,
        access: impl FnOnce(CellSlice<'_>, usize) -> R,
    ) -> Option<R> {
        let (number, offset) = self.places.place_of(address)?;
        let state = self.state();
        let cells = state.objects.get(&number)?.cells();
        (offset + len <= cells.len()).then(|| access(cells, offset))
    }

    /// Reads bytes of an object.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        self.with_bytes(address, into.len(), |cells, at| cells.read(at, into))
    }

    /// Writes bytes of an object.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Option<()> {
        self.with_bytes(address, bytes.len(), |cells, at| cells.write(at, bytes))
    }

    /// Replaces the `N` bytes at an aligned address by what `update` makes of them; the old
    /// ones.
    pub fn update<const N: usize>(&self, address: u64, update: impl Fn(u64) -> u64) -> Option<u64> {
        self.with_bytes(address, N, |cells, at| cells.update::<N>(at, update))
    }

    /// The place on the host of a byte of an object.
    pub fn place(&self, address: u64) -> Option<u64> {
        self.with_bytes(address, 1, |cells, at| {
            cells.address().addr() as u64 + at as u64
        })
    }

    /// Adds a reference to an object; false if there is none at the address.
    pub fn add_reference(&self, pointer: u64) -> bool {
        let mut state = self.state();
        let object = self
            .places
            .place_of(pointer)
            .and_then(|(number, _)| state.objects.get_mut(&number));
        object.map(|object| object.references += 1).is_some()
    }

    /// Drops a reference to an object; the last one frees it with all that it owns.
    pub fn drop_reference(&self, pointer: u64) {
        self.state().drop_reference(pointer);
    }

    /// Adds a node to an end of the list at a place; false if it is in a list or tree already.
    pub fn push(&self, list: u64, node: u64, at_front: bool) -> bool {
        let mut state = self.state();
        if state.owners.contains_key(&node) {
            return false;
        }
        state.owners.insert(node, list);
        let nodes = state.lists.entry(list).or_default();
        match at_front {
            true => nodes.push_front(node),
            false => nodes.push_back(node),
        }
        true
    }

    /// Removes the node at an end of the list at a place.
    pub fn pop(&self, list: u64, from_front: bool) -> Option<u64> {
        let mut state = self.state();
        let nodes = state.lists.get_mut(&list)?;
        let node = match from_front {
            true => nodes.pop_front(),
            false => nodes.pop_back(),
        }?;
        state.owners.remove(&node);
        Some(node)
    }

    /// The node at an end of the list at a place.
    pub fn end(&self, list: u64, is_front: bool) -> Option<u64> {
        let state = self.state();
        let nodes = state.lists.get(&list)?;
        match is_front {
            true => nodes.front(),
            false => nodes.back(),
        }
        .copied()
    }

    /// Claims a node for the tree at a place, into which [`Objects::insert`] puts it; false if
    /// it is in a list or tree already.
    pub fn claim(&self, tree: u64, node: u64) -> bool {
        let mut state = self.state();
        if state.owners.contains_key(&node) {
            return false;
        }
        state.owners.insert(node, tree);
        true
    }

    /// Inserts a node into the tree at a place: as a child of a node that has none on that side,
    /// or as the root.
    pub fn insert(&self, tree: u64, node: u64, place: Option<(u64, Side)>) {
        let mut state = self.state();
        state.trees.entry(tree).or_default().insert(node, place);
    }

    /// Removes a node of the tree at a place; false if it is not in it.
    pub fn remove(&self, tree: u64, node: u64) -> bool {
        let mut state = self.state();
        if state.owners.get(&node) != Some(&tree) {
            return false;
        }
        let State { trees, owners, .. } = &mut *state;
        let Some(nodes) = trees.get_mut(&tree) else {
            return false;
        };
        owners.remove(&node);
        nodes.remove(node);
        true
    }

    /// The root of the tree at a place.
    pub fn root(&self, tree: u64) -> Option<u64> {
        self.state().trees.get(&tree)?.root()
    }

    /// The first node of the tree at a place.
    pub fn first(&self, tree: u64) -> Option<u64> {
        self.state().trees.get(&tree)?.first()
    }

    /// A child of a node of the tree at a place; `None` also for a node that is not in it.
    pub fn child(&self, tree: u64, node: u64, side: Side) -> Option<u64> {
        let state = self.state();
        let is_inside = state.owners.get(&node) == Some(&tree);
        state
            .trees
            .get(&tree)?
            .child(node, side)
            .filter(|_| is_inside)
    }

    /// Frees what the fields of a value own, which lies in cells: pointers become zero, lists and
    /// trees empty.
    pub fn free_fields(&self, value: CellSlice<'_>, fields: &[OwningField]) {
        let mut state = self.state();
        let mut freed = Vec::new();
        state.take_owned(value, fields, &mut freed);
        state.drop_all(freed);
    }
}

impl State {
    fn new(places: Places) -> State {
        State {
            places,
            next: 0,
            bytes: 0,
            objects: HashMap::new(),
            lists: HashMap::new(),
            trees: HashMap::new(),
            owners: HashMap::new(),
        }
    }

    fn allocate(&mut self, layout: &Arc<ObjectLayout>, copies: u32) -> Option<u64> {
        let cells = match copies {
            0 => layout.size.div_ceil(CELL_BYTES),
            _ => 0,
        };
        let bytes = self.bytes + cells * CELL_BYTES;
        if self.next == MOST_OBJECTS || bytes > MOST_BYTES || layout.size >> SPAN_BITS != 0 {
            return None;
        }
        let object = Object {
            layout: Arc::clone(layout),
            memory: Cells::zeroed(cells).ok()?,
            references: 1,
            copies,
        };
        let number = self.next;
        self.next += 1;
        self.bytes = bytes;
        self.objects.insert(number, object);
        Some(self.places.address_of(number))
    }

    fn drop_reference(&mut self, pointer: u64) {
        self.drop_all(vec![pointer]);
    }

    /// Drops references, and those of what is freed by that.
    fn drop_all(&mut self, mut dropped: Vec<u64>) {
        while let Some(pointer) = dropped.pop() {
            let Some((number, _)) = self.places.place_of(pointer) else {
                continue;
            };
            let Some(object) = self.objects.get_mut(&number) else {
                continue;
            };
            object.references -= 1;
            if object.references > 0 {
                continue;
            }
            let Some(object) = self.objects.remove(&number) else {
                continue;
            };
            self.bytes -= object.memory.as_slice().len() * CELL_BYTES;
            let places = self.places;
            let copies = 1..=u64::from(object.copies);
            dropped.extend(copies.map(|copy| places.address_of(number + copy)));
            if object.copies == 0 {
                self.take_owned(object.cells(), &object.layout.owning, &mut dropped);
            }
        }
    }

    /// Takes the objects that fields own out of them.
    fn take_owned(&mut self, value: CellSlice<'_>, fields: &[OwningField], taken: &mut Vec<u64>) {
        let start = value.address().addr() as u64;
        for field in fields {
            let place = start + field.offset as u64;
            let nodes: Vec<u64> = match field.owned {
                Owned::Object => {
                    let pointer = value.update::<8>(field.offset, |_| 0);
                    taken.extend((pointer != 0).then_some(pointer));
                    continue;
                }
                Owned::List => self.lists.remove(&place).into_iter().flatten().collect(),
                Owned::Tree => match self.trees.remove(&place) {
                    Some(tree) => tree.nodes().collect(),
                    None => Vec::new(),
                },
            };
            for node in nodes {
                self.owners.remove(&node);
                taken.push(node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(owning: &[(usize, Owned)]) -> Arc<ObjectLayout> {
        let owning = owning.iter();
        let owning = owning.map(|&(offset, owned)| OwningField { offset, owned });
        Arc::new(ObjectLayout {
            name: "node".to_owned(),
            size: 60,
            owning: owning.collect(),
        })
    }

    #[test]
    fn what_an_object_owns_is_freed_with_it() {
        let objects = Objects::new(2);
        let owner = layout(&[(8, Owned::List), (24, Owned::Tree), (40, Owned::Object)]);
        let first = objects.allocate(&owner).unwrap();
        let places = [8, 24].map(|offset| objects.place(first + offset).unwrap());
        let others: Vec<u64> = (0..4).map(|_| objects.allocate(&owner).unwrap()).collect();
        assert!(objects.push(places[0], others[0] + 16, true));
        assert!(objects.claim(places[1], others[1] + 16));
        objects.insert(places[1], others[1] + 16, None);
        objects.update::<8>(first + 40, |_| others[2]);
        assert!(!objects.push(places[0], others[1] + 16, true));
        objects.add_reference(others[1]);
        assert_eq!(objects.count(), 5);
        objects.drop_reference(first);
        assert_eq!(objects.count(), 2);
        assert_eq!(objects.start(others[0]), None);
        // A reference was left.
        assert_eq!(objects.start(others[1] + 16), Some(others[1]));
        assert!(objects.push(places[0], others[1] + 16, true));
    }

    #[test]
    fn bytes_are_those_of_one_object() {
        let objects = Objects::new(2);
        let pointer = objects.allocate(&layout(&[])).unwrap();
        assert_eq!(objects.write(pointer + 56, &[1; 4]), Some(()));
        assert_eq!(objects.write(pointer + 57, &[1; 4]), None);
        assert_eq!(objects.read(pointer - 1, &mut [0; 2]), None);
        objects.drop_reference(pointer);
        assert_eq!(objects.read(pointer, &mut [0; 2]), None);
        assert_ne!(objects.allocate(&layout(&[])), Some(pointer));
    }

    #[test]
    fn objects_with_copies_have_memory_on_each_cpu() {
        let objects = Objects::new(2);
        let pointer = objects.allocate_percpu(&layout(&[])).unwrap();
        assert_eq!(objects.write(pointer, &[1]), None);
        let copies = [0, 1, 2].map(|cpu| objects.copy_on(pointer, cpu));
        assert_eq!(objects.write(copies[1].unwrap(), &[1]), Some(()));
        assert_eq!(copies[2], None);
        objects.drop_reference(pointer);
        assert_eq!(objects.count(), 0);
    }

    #[test]
    fn memory_is_limited() {
        let objects = Objects::new(2);
        let large = Arc::new(ObjectLayout {
            size: 60_000,
            ..(*layout(&[])).clone()
        });
        let made = std::iter::from_fn(|| objects.allocate(&large)).count();
        assert_eq!(made, MOST_BYTES / 60_000);
    }
}

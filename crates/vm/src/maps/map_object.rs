//! Maps as programs reach them: what goes for every kind, beside the operations of its own.

use std::any::Any;
use std::mem::offset_of;
use std::ops::Deref;
use std::sync::Arc;

use spec::maps::{MapFlags, MapKind};

use crate::{Cursor, DirectAccess, MapOperations, Objects, OwningField, RunGuard, Timers};

/// What goes for a map of every kind.
#[derive(Debug)]
pub struct MapAttributes {
    /// The kind.
    pub kind: MapKind,
    /// Most entries.
    pub max_entries: u32,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// The flags of its creation.
    pub flags: MapFlags,
    /// Values of an entry: the possible CPUs in per-CPU maps, otherwise 1.
    pub copies: u32,
    /// The timers of the host, if values have some.
    pub timers: Option<Arc<Timers>>,
    /// The objects of the host and the fields of values that own some, if there are any.
    pub objects: Option<(Arc<Objects>, Vec<OwningField>)>,
    /// What ends when the memory of the map does, as the host's account of it.
    pub charge: Option<Box<dyn Any + Send + Sync>>,
}

/// A map (`struct bpf_map`). Native code reads its fields at the address of its handle.
#[derive(Debug)]
#[repr(C)]
pub struct MapObject {
    operations: Arc<dyn MapOperations>,
    /// Of an array with one value for each index the address of the first; otherwise 0.
    elements: u64,
    /// Number of its indices, and bytes from one to the next.
    entries: u32,
    stride: u32,
    attributes: MapAttributes,
}

impl MapObject {
    /// The operations of its kind.
    #[inline]
    pub fn operations(&self) -> &Arc<dyn MapOperations> {
        &self.operations
    }

    /// A number that identifies the map as long as it exists.
    pub fn identity(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }

    /// Frees the objects that values own.
    fn free_objects(&self, objects: &Objects, fields: &[OwningField]) {
        let guard = RunGuard::new();
        for cpu in 0..self.copies {
            let mut cursor = Cursor::default();
            while let Some([_, value]) = self.operations.next_entry(&guard, cpu, &mut cursor) {
                objects.free_fields(value, fields);
            }
            if let Some(cell) = cursor.key_cell.take() {
                guard.release_key_cell(cell);
            }
        }
    }
}

impl Deref for MapObject {
    type Target = MapAttributes;

    #[inline]
    fn deref(&self) -> &MapAttributes {
        &self.attributes
    }
}

impl Drop for MapObject {
    fn drop(&mut self) {
        if let Some(timers) = &self.timers {
            timers.free_map(self.identity());
        }
        if let Some((objects, fields)) = &self.objects {
            self.free_objects(objects, fields);
        }
    }
}

/// A map at an address that stands for it in the instructions of verified programs. The address
/// is valid as long as the handle or a clone exists.
#[derive(Clone, Debug)]
pub struct MapHandle(Arc<MapObject>);

impl MapHandle {
    /// A new map.
    pub fn new(attributes: MapAttributes, operations: Arc<dyn MapOperations>) -> MapHandle {
        let (mut elements, mut entries, mut stride) = (0, 0, 0);
        if let Some(DirectAccess::Elements(values)) = Arc::clone(&operations).direct_lookup()
            && values.copies() == 1
            && let Ok(distance) = u32::try_from(values.stride())
        {
            (elements, entries, stride) = (values.address(), values.entries(), distance);
        }
        MapHandle(Arc::new(MapObject {
            operations,
            elements,
            entries,
            stride,
            attributes,
        }))
    }

    /// Bytes from the address to that of the first value, a number of 8 bytes, of an array
    /// with one value for each index; the number is 0 for other maps.
    pub const ELEMENTS: usize = offset_of!(MapObject, elements);

    /// Bytes from the address to the number of indices of such an array, 4 bytes.
    pub const ENTRIES: usize = offset_of!(MapObject, entries);

    /// Bytes from the address to the distance of its values, 4 bytes.
    pub const STRIDE: usize = offset_of!(MapObject, stride);

    /// The address.
    pub fn address(&self) -> u64 {
        Arc::as_ptr(&self.0).expose_provenance() as u64
    }
}

impl Deref for MapHandle {
    type Target = MapObject;

    #[inline]
    fn deref(&self) -> &MapObject {
        &self.0
    }
}

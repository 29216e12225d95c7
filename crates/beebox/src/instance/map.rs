//! Handles of maps, and their elements as Rust types.

use std::fmt;
use std::sync::Arc;

use spec::Errno;
use spec::maps::{MapFlags, MapKind};

use super::Instance;
use crate::failure::Error;
use crate::internal::pod::{self, Pod};
use crate::internal::run::{DataError, ObjectMap};

/// A map of an [`Instance`]. Clones are the same map, and programs of other threads may use it at
/// the same time.
///
/// Keys and values are [`Pod`] types of the same size as the map's, or bytes. Of per-CPU maps the
/// functions with `percpu` in their names read and write the values of all CPUs.
#[derive(Clone)]
pub struct Map {
    instance: Instance,
    named: Named,
}

/// The map that a handle names.
#[derive(Clone)]
enum Named {
    /// A map of the object, by its place.
    Object(usize),
    /// A map that fits a map of maps.
    Inner(Arc<ObjectMap>),
}

/// Elements that an update may change or add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdateMode {
    /// `BPF_ANY`: it adds an element or changes the one that is there.
    #[default]
    Any,
    /// `BPF_NOEXIST`: it adds one; EEXIST if there is one.
    NoExist,
    /// `BPF_EXIST`: it changes one; ENOENT if there is none.
    Exist,
}

impl UpdateMode {
    pub(super) fn flags(self) -> u64 {
        match self {
            UpdateMode::Any => 0,
            UpdateMode::NoExist => 1,
            UpdateMode::Exist => 2,
        }
    }
}

impl Map {
    /// The map at a place of an instance.
    pub(super) fn new(instance: Instance, place: usize) -> Map {
        Map {
            instance,
            named: Named::Object(place),
        }
    }

    /// A map that is made for a map of maps of an instance.
    pub(super) fn inner(instance: Instance, map: ObjectMap) -> Map {
        Map {
            instance,
            named: Named::Inner(Arc::new(map)),
        }
    }

    pub(super) fn object_map(&self) -> &ObjectMap {
        match &self.named {
            Named::Object(place) => {
                let map = self.instance.0.loaded.map_at(*place);
                map.expect("a handle of a map names one")
            }
            Named::Inner(map) => map,
        }
    }

    /// The instance that it belongs to.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Its name in the object.
    pub fn name(&self) -> &str {
        &self.object_map().def.name
    }

    /// Its kind.
    pub fn kind(&self) -> MapKind {
        self.object_map().map.kind()
    }

    /// Bytes of a key.
    pub fn key_size(&self) -> usize {
        self.object_map().def.params.key_size as usize
    }

    /// Bytes of a value, of one CPU in per-CPU maps.
    pub fn value_size(&self) -> usize {
        self.object_map().def.params.value_size as usize
    }

    /// Maximum number of entries; bytes of a ring buffer.
    pub fn max_entries(&self) -> u32 {
        self.object_map().def.params.max_entries
    }

    /// The map with the operations of bpf(2), their flags and error numbers.
    #[doc(hidden)]
    pub fn system_calls(&self) -> &::kernel::maps::Map {
        &self.object_map().map
    }

    /// The flags of its creation.
    #[doc(hidden)]
    pub fn flags(&self) -> MapFlags {
        self.object_map().def.params.flags
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If a type has another size, or the map has a value for each CPU.
    pub fn lookup<K: Pod, V: Pod>(&self, key: &K) -> Result<Option<V>, Error> {
        self.check_key::<K>()?;
        self.check_single::<V>()?;
        let value = self.lookup_bytes(&pod::bytes(key))?;
        Ok(value.map(|value| V::from_bytes(&value)))
    }

    /// The values of a key by CPU, of a per-CPU map.
    ///
    /// # Errors
    /// If a type has another size, or the map has one value for all CPUs.
    pub fn lookup_percpu<K: Pod, V: Pod>(&self, key: &K) -> Result<Option<Vec<V>>, Error> {
        self.check_key::<K>()?;
        self.check_percpu::<V>()?;
        let values = self.lookup_bytes(&pod::bytes(key))?;
        Ok(values.map(|values| self.split(&values)))
    }

    /// Adds or changes an element.
    ///
    /// # Errors
    /// If a type has another size, or the map has a value for each CPU; E2BIG if the map is full
    /// or the key is beyond an array, EPERM if it is frozen.
    pub fn update<K: Pod, V: Pod>(&self, key: &K, value: &V) -> Result<(), Error> {
        self.update_with(key, value, UpdateMode::Any)
    }

    /// Adds or changes an element, as the mode allows.
    ///
    /// # Errors
    /// As [`Map::update`]; EEXIST and ENOENT by the mode.
    pub fn update_with<K: Pod, V: Pod>(
        &self,
        key: &K,
        value: &V,
        mode: UpdateMode,
    ) -> Result<(), Error> {
        self.check_key::<K>()?;
        self.check_single::<V>()?;
        self.update_bytes(&pod::bytes(key), &pod::bytes(value), mode)
    }

    /// Adds or changes an element of a per-CPU map: a value for each CPU.
    ///
    /// # Errors
    /// As [`Map::update`]; EINVAL for another number of values than CPUs.
    pub fn update_percpu<K: Pod, V: Pod>(&self, key: &K, values: &[V]) -> Result<(), Error> {
        self.check_key::<K>()?;
        self.check_percpu::<V>()?;
        let mut bytes = Vec::new();
        for value in values {
            value.put(&mut bytes);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        self.update_bytes(&pod::bytes(key), &bytes, UpdateMode::Any)
    }

    /// Removes an element; false if there was none.
    ///
    /// # Errors
    /// If the key's type has another size, EINVAL if the map keeps its elements.
    pub fn delete<K: Pod>(&self, key: &K) -> Result<bool, Error> {
        self.check_key::<K>()?;
        self.delete_bytes(&pod::bytes(key))
    }

    /// The value of a key, which is removed. Of queues and stacks, whose key is `()`, the next one.
    ///
    /// # Errors
    /// If a type has another size, EOPNOTSUPP for kinds without this operation.
    pub fn lookup_and_delete<K: Pod, V: Pod>(&self, key: &K) -> Result<Option<V>, Error> {
        self.check_key::<K>()?;
        self.check_single::<V>()?;
        let taken = self.take_bytes(&pod::bytes(key))?;
        Ok(taken.map(|value| V::from_bytes(&value)))
    }

    /// All keys, in the order of iteration.
    ///
    /// # Errors
    /// If the key's type has another size, EOPNOTSUPP for kinds without keys.
    pub fn keys<K: Pod>(&self) -> Result<Vec<K>, Error> {
        self.check_key::<K>()?;
        let entries = self.entries_bytes()?;
        Ok(entries.iter().map(|(key, _)| K::from_bytes(key)).collect())
    }

    /// All elements, in the order of iteration.
    ///
    /// # Errors
    /// As [`Map::lookup`] and [`Map::keys`].
    pub fn entries<K: Pod, V: Pod>(&self) -> Result<Vec<(K, V)>, Error> {
        self.check_key::<K>()?;
        self.check_single::<V>()?;
        let entries = self.entries_bytes()?;
        let typed = |(key, value): &(Vec<u8>, Vec<u8>)| (K::from_bytes(key), V::from_bytes(value));
        Ok(entries.iter().map(typed).collect())
    }

    /// All elements of a per-CPU map, with the values of all CPUs.
    ///
    /// # Errors
    /// As [`Map::lookup_percpu`] and [`Map::keys`].
    pub fn entries_percpu<K: Pod, V: Pod>(&self) -> Result<Vec<(K, Vec<V>)>, Error> {
        self.check_key::<K>()?;
        self.check_percpu::<V>()?;
        let entries = self.entries_bytes()?;
        let typed = |(key, values): &(Vec<u8>, Vec<u8>)| (K::from_bytes(key), self.split(values));
        Ok(entries.iter().map(typed).collect())
    }

    /// The values of all CPUs.
    fn split<V: Pod>(&self, values: &[u8]) -> Vec<V> {
        let values = values.chunks(self.value_size().next_multiple_of(8));
        values
            .map(|value| V::from_bytes(&value[..V::SIZE]))
            .collect()
    }

    fn check_key<K: Pod>(&self) -> Result<(), Error> {
        let key_type = self.object_map().def.params.key_type;
        self.check_size("key", self.key_size(), K::SIZE, key_type)
    }

    fn check_value<V: Pod>(&self) -> Result<(), Error> {
        let value_type = self.object_map().def.params.value_type;
        self.check_size("value", self.value_size(), V::SIZE, value_type)
    }

    fn check_single<V: Pod>(&self) -> Result<(), Error> {
        self.check_cpus(false)?;
        self.check_value::<V>()
    }

    fn check_percpu<V: Pod>(&self) -> Result<(), Error> {
        self.check_cpus(true)?;
        self.check_value::<V>()
    }

    /// Refuses the functions for maps with, or without, a value for each CPU.
    fn check_cpus(&self, is_percpu: bool) -> Result<(), Error> {
        match self.kind().is_percpu() == is_percpu {
            true => Ok(()),
            false => Err(DataError::PerCpu {
                name: self.name().to_owned(),
                is_percpu: !is_percpu,
            }
            .into()),
        }
    }

    fn check_size(
        &self,
        part: &str,
        size: usize,
        given: usize,
        declared: btf::TypeId,
    ) -> Result<(), Error> {
        if size == given {
            return Ok(());
        }
        Err(DataError::Size {
            what: format!("the {part} of map {}", self.name()),
            size,
            given,
            fitting: self.instance.0.loaded.rust_type(declared),
        }
        .into())
    }

    /// The error of an operation.
    pub(super) fn failed(&self, errno: Errno) -> Error {
        DataError::Map {
            name: self.name().to_owned(),
            errno,
        }
        .into()
    }

    /// An operation's result, `None` for ENOENT.
    pub(super) fn found<T>(&self, result: Result<T, Errno>) -> Result<Option<T>, Error> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(self.failed(errno)),
        }
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map")
            .field("name", &self.name())
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}

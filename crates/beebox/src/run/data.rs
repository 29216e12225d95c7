//! Map elements and global variables as numbers and arrays.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;

use spec::Errno;

use super::{LoadedObject, ObjectMap};

/// A value without padding and pointers, in the byte order of the machine.
pub trait Plain: Sized {
    /// Bytes of a value.
    const SIZE: usize;

    /// Appends the bytes of a value.
    fn put(&self, bytes: &mut Vec<u8>);

    /// The value of [`Plain::SIZE`] bytes.
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($number:ty)*) => {$(
        impl Plain for $number {
            const SIZE: usize = size_of::<$number>();

            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_ne_bytes());
            }

            fn of(bytes: &[u8]) -> $number {
                let mut own = [0; size_of::<$number>()];
                own.copy_from_slice(bytes);
                <$number>::from_ne_bytes(own)
            }
        }
    )*};
}

plain! { u8 i8 u16 i16 u32 i32 u64 i64 }

impl<T: Plain, const N: usize> Plain for [T; N] {
    const SIZE: usize = T::SIZE * N;

    fn put(&self, bytes: &mut Vec<u8>) {
        for item in self {
            item.put(bytes);
        }
    }

    fn of(bytes: &[u8]) -> [T; N] {
        std::array::from_fn(|at| T::of(&bytes[at * T::SIZE..(at + 1) * T::SIZE]))
    }
}

/// Reason why an element or a variable cannot be read or written.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataError {
    /// No map has this name.
    NoMap {
        /// The name.
        name: String,
        /// The maps that loaded programs use.
        known: Vec<String>,
    },
    /// No variable of a loaded program's maps has this name.
    NoVariable {
        /// The name.
        name: String,
        /// The variables.
        known: Vec<String>,
    },
    /// The type has another size than what it stands for.
    Size {
        /// The object that it refers to, with its name.
        what: String,
        /// Its bytes.
        size: usize,
        /// Bytes of the type.
        given: usize,
    },
    /// The map refuses the operation.
    Map {
        /// Name of the map.
        name: String,
        /// Linux's error number.
        errno: Errno,
    },
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataError::NoMap { name, known } => write!(
                f,
                "no loaded program uses a map {name}; there are {}",
                known.join(", ")
            ),
            DataError::NoVariable { name, known } => write!(
                f,
                "no loaded program uses a variable {name}; there are {}",
                known.join(", ")
            ),
            DataError::Size { what, size, given } => {
                write!(f, "{what} has {size} bytes, its type {given}")
            }
            DataError::Map { name, errno } => write!(f, "map {name}: {errno}"),
        }
    }
}

impl Error for DataError {}

/// A map whose keys and values have types. Of per-CPU maps the value is an array, with an
/// element for each CPU whose size is a multiple of 8.
#[derive(Debug)]
pub struct TypedMap<'o, K, V> {
    map: &'o ObjectMap,
    types: PhantomData<(K, V)>,
}

impl<K: Plain, V: Plain> TypedMap<'_, K, V> {
    /// Adds or changes an element.
    pub fn insert(&self, key: &K, value: &V) -> Result<(), DataError> {
        let updated = self.map.map.update(&bytes(key), &bytes(value), 0);
        updated.map_err(|errno| self.failed(errno))
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Result<Option<V>, DataError> {
        let mut value = vec![0; V::SIZE];
        match self.map.map.lookup(&bytes(key), &mut value, 0) {
            Ok(()) => Ok(Some(V::of(&value))),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    /// Removes an element; false if there was none.
    pub fn remove(&self, key: &K) -> Result<bool, DataError> {
        match self.map.map.delete(&bytes(key)) {
            Ok(()) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    /// All elements, in the order of iteration.
    pub fn entries(&self) -> Result<Vec<(K, V)>, DataError> {
        let entries = self.map.entries().map_err(|errno| self.failed(errno))?;
        let entries = entries
            .iter()
            .map(|(key, value)| (K::of(key), V::of(value)));
        Ok(entries.collect())
    }

    fn failed(&self, errno: Errno) -> DataError {
        let name = self.map.def.name.clone();
        DataError::Map { name, errno }
    }
}

fn bytes<T: Plain>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(T::SIZE);
    value.put(&mut bytes);
    bytes
}

impl LoadedObject {
    /// The map of a name, with types of its keys and values.
    ///
    /// # Errors
    /// If there is no such map, or a type has another size.
    pub fn typed_map<K: Plain, V: Plain>(
        &self,
        name: &str,
    ) -> Result<TypedMap<'_, K, V>, DataError> {
        let Some(map) = self.maps().find(|map| map.def.name == name) else {
            return Err(DataError::NoMap {
                name: name.to_owned(),
                known: self.maps().map(|map| map.def.name.clone()).collect(),
            });
        };
        let sizes = [
            ("key", map.def.params.key_size as usize, K::SIZE),
            ("value", map.map.value_len(), V::SIZE),
        ];
        for (part, size, given) in sizes {
            if size != given {
                let what = format!("the {part} of map {name}");
                return Err(DataError::Size { what, size, given });
            }
        }
        Ok(TypedMap {
            map,
            types: PhantomData,
        })
    }

    /// Puts a record into a user ring buffer, for programs that read it
    /// (`bpf_user_ringbuf_drain`).
    ///
    /// # Errors
    /// If there is no such map, or with EINVAL if it is no user ring buffer, E2BIG if the
    /// record is larger than it, ENOSPC if there is no room now.
    pub fn write_user_record(&self, name: &str, record: &[u8]) -> Result<(), DataError> {
        let Some(map) = self.maps().find(|map| map.def.name == name) else {
            return Err(DataError::NoMap {
                name: name.to_owned(),
                known: self.maps().map(|map| map.def.name.clone()).collect(),
            });
        };
        let ring = map.map.operations().user_ring().ok_or(Errno::EINVAL);
        let written = ring.and_then(|ring| ring.write(record));
        written.map_err(|errno| DataError::Map {
            name: name.to_owned(),
            errno,
        })
    }

    /// The value of a global variable.
    pub fn global<T: Plain>(&self, name: &str) -> Result<T, DataError> {
        let bytes = self.global_bytes(name)?;
        check_size::<T>(name, bytes.len())?;
        Ok(T::of(&bytes))
    }

    /// Sets a global variable, which must not be a constant: those are set before loading
    /// ([`Object::write_global`](object::Object::write_global)).
    pub fn set_global<T: Plain>(&self, name: &str, value: &T) -> Result<(), DataError> {
        let (map, place) = self.variable(name)?;
        check_size::<T>(name, place.len())?;
        let failed = |errno| DataError::Map {
            name: map.def.name.clone(),
            errno,
        };
        if let Some((arena, start)) = map.arena_variables() {
            let written = arena.write_as_user(start + place.start as u64, &bytes(value));
            return written.map_err(failed);
        }
        let mut all = vec![0; map.map.value_len()];
        map.map.lookup(&[0; 4], &mut all, 0).map_err(failed)?;
        all[place].copy_from_slice(&bytes(value));
        map.map.update(&[0; 4], &all, 0).map_err(failed)
    }

    /// The bytes of a global variable.
    pub fn global_bytes(&self, name: &str) -> Result<Vec<u8>, DataError> {
        let (map, place) = self.variable(name)?;
        let failed = |errno| DataError::Map {
            name: map.def.name.clone(),
            errno,
        };
        if let Some((arena, start)) = map.arena_variables() {
            let mut bytes = vec![0; place.len()];
            let read = arena.read_as_user(start + place.start as u64, &mut bytes);
            return read.map(|()| bytes).map_err(failed);
        }
        let mut all = vec![0; map.map.value_len()];
        map.map.lookup(&[0; 4], &mut all, 0).map_err(failed)?;
        Ok(all[place].to_vec())
    }

    /// The map that holds a variable, and the variable's place in its value.
    fn variable(&self, name: &str) -> Result<(&ObjectMap, std::ops::Range<usize>), DataError> {
        let used = self.globals.iter().filter_map(|global| {
            let map = self.shared.maps.get(global.map.0 as usize)?.as_ref()?;
            Some((global, map))
        });
        // A global variable takes precedence over static ones.
        let found = used.clone().filter(|(global, _)| global.name == name);
        let found = found.min_by_key(|(global, _)| global.is_static);
        match found {
            Some((global, map)) => {
                let start = global.offset as usize;
                Ok((map, start..start + global.size as usize))
            }
            None => Err(DataError::NoVariable {
                name: name.to_owned(),
                known: used.map(|(global, _)| global.name.clone()).collect(),
            }),
        }
    }
}

fn check_size<T: Plain>(name: &str, size: usize) -> Result<(), DataError> {
    match size == T::SIZE {
        true => Ok(()),
        false => Err(DataError::Size {
            what: format!("variable {name}"),
            size,
            given: T::SIZE,
        }),
    }
}

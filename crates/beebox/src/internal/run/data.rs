//! Global variables of a loaded object, and the error of reading and writing data.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use ::kernel::maps::UserRing;
use object::maps::Global;
use spec::Errno;

use super::{LoadedObject, ObjectMap};
use crate::internal::pod::{Pod, bytes};

/// Reason why an element or a variable cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        /// The type of this size that `beebox gen rust` writes for it, if the object declares one.
        fitting: Option<String>,
    },
    /// The map has a value for each CPU, and the operation takes one; or the other way round.
    PerCpu {
        /// Name of the map.
        name: String,
        /// True if the map has a value for each CPU.
        is_percpu: bool,
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
            DataError::Size {
                what,
                size,
                given,
                fitting,
            } => {
                write!(f, "{what} has {size} bytes, the type in Rust {given}")?;
                match fitting {
                    Some(fitting) => write!(f, "; {fitting} (beebox gen rust) fits"),
                    None => write!(f, "; [u8; {size}] fits"),
                }
            }
            DataError::PerCpu { name, is_percpu } => match is_percpu {
                true => write!(
                    f,
                    "map {name} has a value for each CPU, which functions with percpu in their \
                     names take"
                ),
                false => write!(f, "map {name} has one value for all CPUs"),
            },
            DataError::Map { name, errno } => write!(f, "map {name}: {errno}"),
        }
    }
}

impl Error for DataError {}

impl LoadedObject {
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
        let ring = map.map.of_kind::<UserRing>().ok_or(Errno::EINVAL);
        let written = ring.and_then(|ring| ring.write(record));
        written.map_err(|errno| DataError::Map {
            name: name.to_owned(),
            errno,
        })
    }

    /// The value of a global variable.
    pub fn global<T: Pod>(&self, name: &str) -> Result<T, DataError> {
        let (_, global) = self.variable(name)?;
        self.check_size::<T>(global)?;
        Ok(T::from_bytes(&self.global_bytes(name)?))
    }

    /// Sets a global variable, which must not be a constant: those are set before loading
    /// ([`Object::write_global`](object::Object::write_global)).
    pub fn set_global<T: Pod>(&self, name: &str, value: &T) -> Result<(), DataError> {
        let (_, global) = self.variable(name)?;
        self.check_size::<T>(global)?;
        self.set_global_bytes(name, &bytes(value))
    }

    /// Sets the bytes of a global variable, as [`LoadedObject::set_global`].
    ///
    /// # Errors
    /// EINVAL for another number of bytes.
    pub fn set_global_bytes(&self, name: &str, value: &[u8]) -> Result<(), DataError> {
        let (map, global) = self.variable(name)?;
        let failed = |errno| DataError::Map {
            name: map.def.name.clone(),
            errno,
        };
        if value.len() != global.size as usize {
            return Err(failed(Errno::EINVAL));
        }
        if let Some((arena, start)) = map.arena_variables() {
            let written = arena.write_as_user(start + u64::from(global.offset), value);
            return written.map_err(failed);
        }
        if map.map.is_constant() {
            return Err(failed(Errno::EPERM));
        }
        let place = place(global);
        // Programs may write other variables meanwhile, so only this one is written.
        if let Some(all) = map.map.operations().direct_value()
            && !map.map.has_special_fields()
        {
            all.write(place.start, value);
            return Ok(());
        }
        let mut all = vec![0; map.map.value_len()];
        map.map.lookup(&[0; 4], &mut all, 0).map_err(failed)?;
        all[place].copy_from_slice(value);
        map.map.update(&[0; 4], &all, 0).map_err(failed)
    }

    /// The bytes of a global variable.
    pub fn global_bytes(&self, name: &str) -> Result<Vec<u8>, DataError> {
        let (map, global) = self.variable(name)?;
        let place = place(global);
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

    /// A variable, and the map that holds it.
    fn variable(&self, name: &str) -> Result<(&ObjectMap, &Global), DataError> {
        let used = self.globals.iter().filter_map(|global| {
            let map = self.shared.maps.get(global.map.0 as usize)?.as_ref()?;
            Some((global, map))
        });
        // A global variable takes precedence over static ones.
        let found = used.clone().filter(|(global, _)| global.name == name);
        let found = found.min_by_key(|(global, _)| global.is_static);
        match found {
            Some((global, map)) => Ok((map, global)),
            None => Err(DataError::NoVariable {
                name: name.to_owned(),
                known: used.map(|(global, _)| global.name.clone()).collect(),
            }),
        }
    }

    fn check_size<T: Pod>(&self, global: &Global) -> Result<(), DataError> {
        let size = global.size as usize;
        match size == T::SIZE {
            true => Ok(()),
            false => Err(DataError::Size {
                what: format!("variable {}", global.name),
                size,
                given: T::SIZE,
                fitting: self.rust_type(global.ty),
            }),
        }
    }
}

/// The place of a variable in the value of its map.
fn place(global: &Global) -> Range<usize> {
    let start = global.offset as usize;
    start..start + global.size as usize
}

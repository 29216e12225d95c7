//! Maps that hold objects, queues, and buffers of records.

use beebox::internal::run::ObjectMap;
use beebox::{MapKind, RunRecord};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::Map;
use crate::bytes::bytes_of;
use crate::errors::{Fault, raised};
use crate::program::Program;
use crate::records::Records;

impl Map {
    /// The map of the object; `None` for one that is made for a map of maps.
    fn object_map(&self) -> Option<&ObjectMap> {
        let mut maps = self.shared.instance.loaded().maps();
        maps.find(|map| map.def.name == self.map.name())
    }

    fn failed(&self, errno: i32, what: &str) -> PyErr {
        let fault = Fault::new("map", format!("map {}: {what}", self.map.name()));
        fault.with_errno(errno).into()
    }

    /// The value of a key, as Python sees it.
    pub(super) fn find<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let bytes = self.key_bytes(key)?;
        let py = key.py();
        if self.map.kind() == MapKind::ProgArray {
            let name = self.program_at(&bytes);
            return name.map(|name| name.into_bound_py_any(py)).transpose();
        }
        if let Some(map) = self.object_map().filter(|map| map.has_socket_values()) {
            let cookie = self.shared.instance.loaded().socket_at(map, &bytes);
            return cookie
                .map(|cookie| cookie.into_bound_py_any(py))
                .transpose();
        }
        let found = self.map.lookup_bytes(&bytes).map_err(raised)?;
        found.map(|value| self.value(py, &value)).transpose()
    }

    /// A value that was listed with its key, as Python sees it.
    pub(super) fn shown<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        value: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.map.kind() == MapKind::ProgArray {
            return self.program_at(key).into_bound_py_any(py);
        }
        if let Some(map) = self.object_map().filter(|map| map.has_socket_values()) {
            let cookie = self.shared.instance.loaded().socket_at(map, key);
            return cookie.into_bound_py_any(py);
        }
        self.value(py, value)
    }

    fn program_at(&self, key: &[u8]) -> Option<String> {
        let index = u32::from_le_bytes(key.try_into().ok()?);
        let map = self.object_map()?;
        let name = self.shared.instance.loaded().program_at(&map.map, index)?;
        Some(name.to_owned())
    }

    /// True if its values are programs, maps or sockets.
    pub(super) fn holds_objects(&self) -> bool {
        match self.map.kind() {
            MapKind::ProgArray | MapKind::ArrayOfMaps | MapKind::HashOfMaps => true,
            kind => kind.has_socket_values(),
        }
    }

    /// Puts a program, map or socket into a map that holds such; false for maps of values.
    pub(super) fn put_object(&self, key: &[u8], value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match self.map.kind() {
            MapKind::ProgArray => {
                let index = index_of(key);
                let program = match value.cast::<Program>() {
                    Ok(program) => program.get().program.clone(),
                    Err(_) => {
                        let name = value.extract::<String>().map_err(|_| {
                            self.failed(22, "a program of the instance or its name fits")
                        })?;
                        self.shared.instance.program(&name).map_err(raised)?
                    }
                };
                self.map
                    .set_program(index, Some(&program))
                    .map_err(raised)?;
            }
            MapKind::ArrayOfMaps | MapKind::HashOfMaps => {
                let inner = value
                    .cast::<Map>()
                    .map_err(|_| self.failed(22, "a map of create_inner() fits"))?;
                self.set_inner(key, &inner.get().map)?;
            }
            kind if kind.has_socket_values() => {
                let cookie: u64 = value.extract()?;
                let loaded = self.shared.instance.loaded();
                let set = loaded.set_socket(self.map.name(), key, cookie);
                set.map_err(|errno| self.failed(errno.0, &errno.to_string()))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_inner(&self, key: &[u8], inner: &beebox::Map) -> PyResult<()> {
        self.map.set_inner_bytes(key, inner).map_err(raised)
    }

    /// Empties a slot of a program array; false for other maps.
    pub(super) fn clear_program(&self, key: &[u8]) -> PyResult<bool> {
        if self.map.kind() != MapKind::ProgArray {
            return Ok(false);
        }
        self.map.set_program(index_of(key), None).map_err(raised)?;
        Ok(true)
    }
}

/// The index that the key of an array is.
fn index_of(key: &[u8]) -> u32 {
    key.try_into().map(u32::from_le_bytes).unwrap_or(u32::MAX)
}

#[pymethods]
impl Map {
    /// Puts a value into a queue, stack or bloom filter, or a record into a user ring buffer.
    ///
    /// Raises MapError: E2BIG if it is full, EINVAL for maps with keys.
    fn push(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.map.kind() == MapKind::UserRingbuf {
            let record = bytes_of(value)?;
            return self
                .map
                .write_user_record(record.as_slice())
                .map_err(raised);
        }
        let value = self.value_bytes(value)?;
        let pushed = self.map.update_bytes(&[], &value, beebox::UpdateMode::Any);
        pushed.map_err(raised)
    }

    /// Takes the next value of a queue or stack, or the value of a key; `default`, if it is given, where
    /// there is none.
    ///
    /// Raises NotFoundError if there is none, MapError for kinds without this operation.
    #[pyo3(signature = (key = None, *default))]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        key: Option<&Bound<'py, PyAny>>,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if default.len() > 1 {
            let what = format!(
                "pop takes a key and a default, got {} arguments",
                default.len() + 1
            );
            return Err(PyTypeError::new_err(what));
        }
        let bytes = match key {
            Some(key) => self.key_bytes(key)?,
            None => Vec::new(),
        };
        match self.map.take_bytes(&bytes).map_err(raised)? {
            Some(value) => self.value(py, &value),
            None if default.len() == 1 => default.get_item(0),
            None => match key {
                Some(key) => Err(self.absent(key)),
                None => Err(Fault::absent(format!("map {}: empty", self.map.name())).into()),
            },
        }
    }

    /// The next value of a queue or stack, which stays in it.
    ///
    /// Raises NotFoundError if there is none.
    fn peek<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.map.lookup_bytes(&[]).map_err(raised)? {
            Some(value) => self.value(py, &value),
            None => Err(Fault::absent(format!("map {}: empty", self.map.name())).into()),
        }
    }

    /// A map that fits this map of maps, with zeros in it: `outer[key] = outer.create_inner()`.
    ///
    /// Raises MapError for maps of other kinds.
    fn create_inner(&self) -> PyResult<Map> {
        let inner = self.map.create_inner().map_err(raised)?;
        Ok(Map::new(inner, self.shared.clone()))
    }

    /// An iterator that takes the records of a ring buffer, or of the perf buffers of a CPU, until
    /// none waits. `type` is the name of their type in the object; without it a record has the type
    /// of its size to which a variable of the object points, or is bytes.
    ///
    /// Raises NotFoundError if the object has no such type, MapError for maps of other kinds.
    #[pyo3(signature = (r#type = None, *, cpu = 0))]
    fn records(&self, py: Python<'_>, r#type: Option<&str>, cpu: u32) -> PyResult<Records> {
        let kind = self.map.kind();
        if !matches!(kind, MapKind::Ringbuf | MapKind::PerfEventArray) {
            let what = format!("{}: ring and perf buffers have records", kind.name());
            return Err(self.failed(22, &what));
        }
        let codec = r#type.map(|name| self.shared.types.named(py, name));
        let taken: Vec<RunRecord> = py.detach(|| self.map.take_records(cpu));
        Records::new(py, taken, codec.transpose()?, &self.shared.types)
    }
}

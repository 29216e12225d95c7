//! Maps as mappings from keys to values of their types.

mod kinds;
mod table;

use std::sync::Arc;

use beebox::UpdateMode;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::codec::Codec;
use crate::errors::{Fault, raised};
use crate::instance::Shared;
use crate::types::MapTypes;

/// Elements that become objects of Python before other threads get the interpreter.
const PORTION: usize = 1024;

/// A map of an instance: a mapping from keys to values, of the types that the object declares.
///
/// Structures are `Struct`s, which are dicts with attributes; they are given as dicts, dataclasses or
/// named tuples, whose absent members are zero. Arrays are lists, arrays of bytes `bytes`, of `char`
/// `str`; enumerations are `IntEnum`s, given by name or number. `bytes` of the right length stand for
/// any key or value. Values of per-CPU maps are lists with one for each CPU. Program arrays take
/// programs and give names, maps of maps take maps, maps of sockets cookies.
#[pyclass(frozen, mapping, module = "beebox")]
pub(crate) struct Map {
    pub(crate) map: beebox::Map,
    pub(crate) shared: Arc<Shared>,
    /// Types of a map without declared ones.
    untyped: MapTypes,
}

impl Map {
    pub(crate) fn new(map: beebox::Map, shared: Arc<Shared>) -> Map {
        let untyped = MapTypes {
            key: Codec::Bytes {
                size: map.key_size(),
            },
            value: Codec::Bytes {
                size: map.value_size(),
            },
        };
        Map {
            map,
            shared,
            untyped,
        }
    }

    fn types(&self) -> &MapTypes {
        let declared = self.shared.types.of_map(self.map.name());
        let fits = |types: &&MapTypes| {
            types.key.size() == self.map.key_size() && types.value.size() == self.map.value_size()
        };
        declared.filter(fits).unwrap_or(&self.untyped)
    }

    fn is_percpu(&self) -> bool {
        self.map.kind().is_percpu() && !self.map.kind().is_cgroup_storage()
    }

    /// Bytes from the value of a CPU to that of the next one.
    fn percpu_stride(&self) -> usize {
        self.map.value_size().next_multiple_of(8).max(8)
    }

    fn cpus(&self) -> usize {
        self.shared.instance.loaded().cpus() as usize
    }

    /// The key of an element that has a value.
    ///
    /// # Errors
    /// `DataTypeError` if the map holds objects, and for a key of another type; `MapError` if its kind
    /// has no keys.
    pub(crate) fn element_key(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        if self.holds_objects() {
            let (name, kind) = (self.map.name(), self.map.kind().name());
            let what = format!("map {name}: a {kind} holds objects; a map of values fits");
            return Err(Fault::of_type(what).into());
        }
        let key = self.key_bytes(key)?;
        self.map.lookup_bytes(&key).map_err(raised)?;
        Ok(key)
    }

    fn key_bytes(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let mut bytes = vec![0; self.map.key_size()];
        let codec = &self.types().key;
        let index = Codec::Int {
            size: 4,
            is_signed: false,
        };
        // Indexes of arrays are numbers, whatever the object says.
        let codec = match (codec, bytes.len()) {
            (Codec::Bytes { .. }, 4) if self.is_indexed() => &index,
            _ => codec,
        };
        codec.encode(key, &mut bytes, &format!("map {}: key", self.map.name()))?;
        Ok(bytes)
    }

    fn key<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match (&self.types().key, <[u8; 4]>::try_from(bytes)) {
            (Codec::Bytes { .. }, Ok(index)) if self.is_indexed() => {
                Ok(u32::from_le_bytes(index).into_pyobject(py)?.into_any())
            }
            (codec, _) => codec.decode(py, bytes),
        }
    }

    /// True if the keys of its kind are indexes.
    fn is_indexed(&self) -> bool {
        let name = self.map.kind().name();
        name.contains("array") || name.ends_with("map")
    }

    fn value<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let codec = &self.types().value;
        if !self.is_percpu() {
            return codec.decode(py, bytes);
        }
        let list = PyList::empty(py);
        for value in bytes.chunks(self.percpu_stride()) {
            list.append(codec.decode(py, value)?)?;
        }
        Ok(list.into_any())
    }

    fn value_bytes(&self, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let codec = &self.types().value;
        let place = format!("map {}: value", self.map.name());
        if !self.is_percpu() {
            let mut bytes = vec![0; self.map.value_size()];
            codec.encode(value, &mut bytes, &place)?;
            return Ok(bytes);
        }
        let Ok(values) = value.cast::<PyList>() else {
            let kind = value.get_type().name()?;
            let what = "a list with a value for each CPU";
            let what = format!(
                "{place}: {what}, each {}, fits, got {kind}",
                codec.expected()
            );
            return Err(Fault::of_type(what).into());
        };
        let cpus = self.cpus();
        if values.len() != cpus {
            let what = format!("a list with a value for each of {cpus} CPUs fits");
            let what = format!("{place}: {what}, got a list of {}", values.len());
            return Err(Fault::of_type(what).into());
        }
        let stride = self.percpu_stride();
        let mut bytes = vec![0; stride * values.len()];
        for (cpu, value) in values.iter().enumerate() {
            let into = &mut bytes[cpu * stride..];
            codec.encode(&value, into, &format!("{place} of CPU {cpu}"))?;
        }
        Ok(bytes)
    }

    fn absent(&self, key: &Bound<'_, PyAny>) -> PyErr {
        let key = key.repr().map(|key| key.to_string());
        let key = key.unwrap_or_default();
        Fault::absent(format!("map {}: no element {key}", self.map.name())).into()
    }

    fn entries(&self, py: Python<'_>) -> PyResult<Vec<(Vec<u8>, Vec<u8>)>> {
        py.detach(|| self.map.entries_bytes()).map_err(raised)
    }

    /// A list with an object for each element.
    fn list<'py>(
        &self,
        py: Python<'py>,
        object: impl Fn(&[u8], &[u8]) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (list, entries) = (PyList::empty(py), self.entries(py)?);
        for portion in entries.chunks(PORTION) {
            for (key, value) in portion {
                list.append(object(key, value)?)?;
            }
            // Threads that wait have their turn.
            py.detach(|| ());
        }
        py.detach(move || drop(entries));
        Ok(list)
    }

    /// Adds a pair to those that wait, and sets them if there are so many.
    fn add(
        &self,
        pair: PyResult<Bound<'_, PyAny>>,
        waiting: &mut Vec<(Vec<u8>, Vec<u8>)>,
        most: usize,
    ) -> PyResult<()> {
        let pair = pair?;
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        if self.holds_objects() {
            return self.put(&key, &value, "any");
        }
        waiting.push((self.key_bytes(&key)?, self.value_bytes(&value)?));
        match waiting.len() < most {
            true => Ok(()),
            false => self.set_all(pair.py(), waiting),
        }
    }

    /// Sets the elements that wait, up to the first that the map does not take.
    fn set_all(&self, py: Python<'_>, waiting: &mut Vec<(Vec<u8>, Vec<u8>)>) -> PyResult<()> {
        let set =
            |(key, value): (Vec<u8>, Vec<u8>)| self.map.update_bytes(&key, &value, UpdateMode::Any);
        py.detach(|| waiting.drain(..).try_for_each(set))
            .map_err(raised)
    }
}

#[pymethods]
impl Map {
    /// Its name in the object.
    #[getter]
    fn name(&self) -> &str {
        self.map.name()
    }

    /// Its kind, such as `"percpu_array"`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.map.kind().name()
    }

    /// Bytes of a key.
    #[getter]
    fn key_size(&self) -> usize {
        self.map.key_size()
    }

    /// Bytes of a value, of one CPU in per-CPU maps.
    #[getter]
    fn value_size(&self) -> usize {
        self.map.value_size()
    }

    /// Maximum number of entries; bytes of a ring buffer.
    #[getter]
    fn max_entries(&self) -> u32 {
        self.map.max_entries()
    }

    /// What fits as a key, in words.
    #[getter]
    fn key_type(&self) -> String {
        self.types().key.expected()
    }

    /// What fits as a value, in words.
    #[getter]
    fn value_type(&self) -> String {
        self.types().value.expected()
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let found = self.find(key)?;
        found.ok_or_else(|| self.absent(key))
    }

    /// The value of a key, or `default`.
    ///
    /// Raises DataTypeError for a key of another type.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(key)?.or(default))
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(key, value, "any")
    }

    /// Adds or changes an element; `mode` is `"any"`, `"noexist"` (only adds) or `"exist"` (only
    /// changes).
    ///
    /// Raises DataTypeError for keys and values of another type, MapError with `errno`: E2BIG if the
    /// map is full, EEXIST and ENOENT by the mode.
    #[pyo3(signature = (key, value, mode = "any"))]
    fn put(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, mode: &str) -> PyResult<()> {
        let mode = match mode {
            "any" => UpdateMode::Any,
            "noexist" => UpdateMode::NoExist,
            "exist" => UpdateMode::Exist,
            _ => {
                let what = format!("no mode {mode:?}; there are any, noexist and exist");
                return Err(Fault::absent(what).into());
            }
        };
        let key = self.key_bytes(key)?;
        if self.put_object(&key, value)? {
            return Ok(());
        }
        let value = self.value_bytes(value)?;
        self.map.update_bytes(&key, &value, mode).map_err(raised)
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = self.key_bytes(key)?;
        if self.clear_program(&bytes)? {
            return Ok(());
        }
        match self.map.delete_bytes(&bytes).map_err(raised)? {
            true => Ok(()),
            false => Err(self.absent(key)),
        }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.find(key)?.is_some())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let len = py.detach(|| Ok(self.map.entries_bytes()?.len()));
        len.map_err(|error: beebox::Error| raised(error))
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys(py)?.try_iter()?.into_any())
    }

    /// The keys, as they are now.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.list(py, |key, _| self.key(py, key))
    }

    /// The values, as they are now.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.list(py, |key, value| self.shown(py, key, value))
    }

    /// Pairs of keys and values, as they are now.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.list(py, |key, value| {
            let pair = (self.key(py, key)?, self.shown(py, key, value)?);
            Ok(pair.into_pyobject(py)?.into_any())
        })
    }

    /// Sets the elements of a mapping, or of pairs. Those in front of one that does not fit are set.
    fn update(&self, elements: &Bound<'_, PyAny>) -> PyResult<()> {
        // What makes its pairs one by one may look at the map.
        let most = elements.len().map_or(1, |_| PORTION);
        let pairs = match elements.hasattr("items")? {
            true => elements.call_method0("items")?,
            false => elements.clone(),
        };
        let mut waiting = Vec::new();
        let mut pairs = pairs.try_iter()?;
        let added = pairs.try_for_each(|pair| self.add(pair, &mut waiting, most));
        self.set_all(elements.py(), &mut waiting)?;
        added
    }

    /// The value of a key, which becomes `default` if there is none.
    ///
    /// Raises DataTypeError and MapError as `put` does.
    fn setdefault<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.find(key)? {
            Some(value) => Ok(value),
            None => {
                self.put(key, default, "noexist")?;
                self.__getitem__(key)
            }
        }
    }

    /// Takes an element out: its key and value.
    ///
    /// Raises NotFoundError if there is none, MapError for arrays, whose elements stay.
    fn popitem<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let entries = self.entries(py)?;
        let Some((key, value)) = entries.first() else {
            return Err(Fault::absent(format!("map {}: empty", self.map.name())).into());
        };
        let pair = (self.key(py, key)?, self.shown(py, key, value)?);
        self.__delitem__(&pair.0)?;
        Ok(pair)
    }

    /// Deletes all elements.
    ///
    /// Raises MapError for arrays, whose elements stay.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let entries = self.entries(py)?;
        py.detach(|| {
            for (key, _) in entries {
                if !self.clear_program(&key)? {
                    self.map.delete_bytes(&key).map_err(raised)?;
                }
            }
            Ok(())
        })
    }

    fn __repr__(&self) -> String {
        format!("<Map {} ({})>", self.map.name(), self.map.kind().name())
    }

    fn _repr_html_(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        crate::html(slf.as_any(), "map_html")
    }
}

//! Records of ring buffers and perf buffers.

use std::sync::Mutex;
use std::vec::IntoIter;

use beebox::RunRecord;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::codec::Codec;
use crate::types::Types;

/// A record that a program wrote.
#[pyclass(frozen, get_all, module = "beebox")]
pub(crate) struct Record {
    /// Name of the map.
    map: String,
    /// Its value by its type; its bytes if the type is unknown.
    value: Py<PyAny>,
    /// Its bytes.
    data: Py<PyBytes>,
}

impl Record {
    pub(crate) fn new(
        py: Python<'_>,
        record: &RunRecord,
        codec: Option<&Codec>,
        types: &Types,
    ) -> PyResult<Record> {
        let size = record.bytes.len();
        let codec = codec.filter(|codec| codec.size() <= size);
        let codec = codec.or_else(|| types.of_record(size));
        let data = PyBytes::new(py, &record.bytes);
        let value = match codec {
            Some(codec) => codec.decode(py, &record.bytes)?.unbind(),
            None => data.clone().into_any().unbind(),
        };
        Ok(Record {
            map: record.map.clone(),
            value,
            data: data.unbind(),
        })
    }
}

#[pymethods]
impl Record {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<Record of {}: {}>",
            self.map,
            self.value.bind(py).repr()?
        ))
    }
}

/// An iterator over records that were taken.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct Records(Mutex<IntoIter<Record>>);

impl Records {
    pub(crate) fn new(
        py: Python<'_>,
        taken: Vec<RunRecord>,
        codec: Option<Codec>,
        types: &Types,
    ) -> PyResult<Records> {
        let records = taken.iter();
        let records = records.map(|record| Record::new(py, record, codec.as_ref(), types));
        let records: Vec<Record> = records.collect::<PyResult<_>>()?;
        Ok(Records(Mutex::new(records.into_iter())))
    }
}

#[pymethods]
impl Records {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self) -> Option<Record> {
        self.0.lock().expect("nothing panics with it").next()
    }

    fn __len__(&self) -> usize {
        self.0.lock().expect("nothing panics with it").len()
    }
}

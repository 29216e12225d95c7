//! A map as an Arrow stream: its keys and values by type.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::Map;
use crate::codec::Codec;
use crate::codec::arrow::{item, list};
use crate::errors::Fault;
use crate::table::stream_capsule;

#[pymethods]
impl Map {
    /// The elements as they are now, as an Arrow stream with the columns `key` and `value`;
    /// values of per-CPU maps are lists.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let entries = self.entries(py)?;
        let batch = py.detach(|| self.batch(&entries));
        let batch = batch.map_err(|error| PyErr::from(Fault::new("other", error)))?;
        let schema = batch.schema();
        stream_capsule(py, RecordBatchIterator::new([Ok(batch)], schema))
    }
}

impl Map {
    /// Elements as columns.
    fn batch(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<RecordBatch, ArrowError> {
        let keys: Vec<&[u8]> = entries.iter().map(|(key, _)| &key[..]).collect();
        let values: Vec<&[u8]> = entries.iter().map(|(_, value)| &value[..]).collect();
        let index = Codec::Int {
            size: 4,
            is_signed: false,
        };
        let key = match &self.types().key {
            Codec::Bytes { size: 4 } if self.is_indexed() => &index,
            codec => codec,
        };
        let (value_type, values) = self.values_as_arrow(&values);
        let schema = Arc::new(Schema::new(vec![
            Field::new("key", key.arrow_type(), false),
            Field::new("value", value_type, false),
        ]));
        RecordBatch::try_new(schema, vec![key.arrow_array(&keys), values])
    }

    /// Values as Arrow, of per-CPU maps lists with one for each CPU.
    pub(crate) fn values_as_arrow(&self, rows: &[&[u8]]) -> (DataType, ArrayRef) {
        let value = &self.types().value;
        if !self.is_percpu() {
            return (value.arrow_type(), value.arrow_array(rows));
        }
        let (stride, cpus) = (self.percpu_stride(), self.cpus());
        let each: Vec<&[u8]> = rows.iter().flat_map(|row| row.chunks(stride)).collect();
        let values = list(value, value.arrow_array(&each), cpus, rows.len());
        (DataType::FixedSizeList(item(value), cpus as i32), values)
    }

    /// Bytes of what a lookup gives.
    pub(crate) fn all_values_size(&self) -> usize {
        match self.is_percpu() {
            false => self.map.value_size(),
            true => self.percpu_stride() * self.cpus(),
        }
    }
}

//! Many packets as one argument.

use std::ops::Range;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::bytes::{Payload, bytes_of};
use crate::errors::Fault;

/// Packets that an argument gives: several objects with bytes, or one buffer in parts.
pub(crate) enum Packets<'py> {
    /// Objects with bytes, which the tuple keeps.
    Objects(Bound<'py, PyTuple>),
    /// The bytes of an array, and where packets lie in them.
    Parts(Vec<u8>, Vec<Range<usize>>),
}

impl<'py> Packets<'py> {
    /// Packets of an iterable of bytes, of an array of bytes with a packet in each row, or of one
    /// buffer with `offsets`: those of the packets, and the end of the last one.
    ///
    /// # Errors
    /// `TypeError` for what has no bytes, `FormatError` for offsets beyond the buffer.
    pub(crate) fn read(
        packets: &Bound<'py, PyAny>,
        offsets: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Packets<'py>> {
        let py = packets.py();
        if let Some(offsets) = offsets {
            let bytes = bytes_of(packets)?.into_vec();
            let parts = between(&read_offsets(offsets)?, bytes.len())?;
            return Ok(Packets::Parts(bytes, parts));
        }
        if let Ok(buffer) = PyBuffer::<u8>::get(packets) {
            let &[rows, columns] = buffer.shape() else {
                let what = "an array of bytes has two dimensions, a packet in each row; one of one \
                            dimension needs offsets";
                return Err(PyTypeError::new_err(what));
            };
            let parts = (0..rows).map(|row| row * columns..(row + 1) * columns);
            return Ok(Packets::Parts(buffer.to_vec(py)?, parts.collect()));
        }
        // The tuple has references of its own: nobody else can take the objects away.
        let objects = match packets.cast::<PyTuple>() {
            Ok(tuple) => tuple.clone(),
            Err(_) => py.get_type::<PyTuple>().call1((packets,))?.cast_into()?,
        };
        Ok(Packets::Objects(objects))
    }

    /// Calls a function with the bytes of each packet.
    pub(crate) fn with<R>(&self, call: impl FnOnce(&[&[u8]]) -> R) -> PyResult<R> {
        let objects = match self {
            Packets::Parts(bytes, parts) => {
                let parts = parts.iter();
                let slices: Vec<_> = parts.map(|part| &bytes[part.clone()]).collect();
                return Ok(call(&slices));
            }
            Packets::Objects(objects) => objects,
        };
        let mut slices = Vec::with_capacity(objects.len());
        for object in objects.iter_borrowed() {
            let Ok(bytes) = object.extract::<&[u8]>() else {
                // Not all of them are `bytes`.
                let read = |(at, packet): (usize, Bound<'py, PyAny>)| {
                    let failed = |error: PyErr| {
                        let error = error.value(packet.py()).to_string();
                        PyTypeError::new_err(format!("packet {at}: {error}"))
                    };
                    bytes_of(&packet).map_err(failed)
                };
                let payloads = objects.iter().enumerate().map(read);
                let payloads: Vec<_> = payloads.collect::<PyResult<_>>()?;
                let slices: Vec<_> = payloads.iter().map(Payload::as_slice).collect();
                return Ok(call(&slices));
            };
            slices.push(bytes);
        }
        Ok(call(&slices))
    }
}

/// Numbers of any type of integer.
fn read_offsets(offsets: &Bound<'_, PyAny>) -> PyResult<Vec<i128>> {
    let py = offsets.py();
    if let Ok(buffer) = PyBuffer::<i64>::get(offsets) {
        return Ok(buffer.to_vec(py)?.into_iter().map(i128::from).collect());
    }
    if let Ok(buffer) = PyBuffer::<i32>::get(offsets) {
        return Ok(buffer.to_vec(py)?.into_iter().map(i128::from).collect());
    }
    if let Ok(buffer) = PyBuffer::<u64>::get(offsets) {
        return Ok(buffer.to_vec(py)?.into_iter().map(i128::from).collect());
    }
    if let Ok(buffer) = PyBuffer::<u32>::get(offsets) {
        return Ok(buffer.to_vec(py)?.into_iter().map(i128::from).collect());
    }
    offsets
        .try_iter()?
        .map(|offset| offset?.extract())
        .collect()
}

/// The parts between offsets.
fn between(offsets: &[i128], length: usize) -> PyResult<Vec<Range<usize>>> {
    let part = |(at, pair): (usize, &[i128])| {
        let (start, end) = (pair[0], pair[1]);
        match 0 <= start && start <= end && end <= length as i128 {
            true => Ok(start as usize..end as usize),
            false => {
                let what = format!("offsets: packet {at} lies from {start} to {end}");
                Err(Fault::of_format(format!("{what}, the buffer has {length} bytes")).into())
            }
        }
    };
    offsets.windows(2).enumerate().map(part).collect()
}

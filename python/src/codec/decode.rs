//! From bytes to Python values.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyType};

use super::{Codec, Member, Struct};

impl Codec {
    /// The value of bytes, of which there are [`Codec::size`].
    pub(crate) fn decode<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Codec::Int { size, is_signed } => {
                number(bytes, *size, *is_signed).into_bound_py_any(py)
            }
            Codec::Bool { size } => (number(bytes, *size, false) != 0).into_bound_py_any(py),
            Codec::Enum(it) => {
                let value = number(bytes, it.size, it.is_signed);
                match &it.class {
                    Some(class) if it.values.iter().any(|(_, known)| *known == value) => {
                        class.bind(py).call1((value,))
                    }
                    _ => value.into_bound_py_any(py),
                }
            }
            Codec::Float { size: 4 } => {
                let bytes = bytes[..4].try_into().expect("4 bytes");
                f32::from_le_bytes(bytes).into_bound_py_any(py)
            }
            Codec::Float { .. } => {
                let bytes = bytes[..8].try_into().expect("8 bytes");
                f64::from_le_bytes(bytes).into_bound_py_any(py)
            }
            Codec::Text { size } => Ok(text(py, &bytes[..*size])),
            Codec::Bytes { size } => Ok(PyBytes::new(py, &bytes[..*size]).into_any()),
            Codec::Array {
                element,
                size,
                count,
            } => {
                let list = PyList::empty(py);
                for at in 0..*count {
                    list.append(element.decode(py, &bytes[at * size..])?)?;
                }
                Ok(list.into_any())
            }
            Codec::Struct(it) => it.decode(py, bytes),
        }
    }
}

impl Struct {
    fn decode<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = CLASS.import(py, "beebox._struct", "Struct")?;
        let made = class.call0()?;
        let dict = made.cast::<PyDict>()?;
        for member in &self.members {
            let inside = &bytes[member.offset..];
            let value = match member.bits {
                None => member.codec.decode(py, inside)?,
                Some(_) => member.codec.decode(py, &member.bit_field(inside))?,
            };
            dict.set_item(member.name.bind(py), value)?;
        }
        Ok(made)
    }
}

impl Member {
    /// The value of a bit field in the bytes from its unit on, as the bytes of a number.
    pub(super) fn bit_field(&self, inside: &[u8]) -> [u8; 8] {
        let (from, width) = self.bits.unwrap_or((0, 64));
        let unit = number(inside, self.codec.size(), false) as u64;
        let field = unit >> from & (u64::MAX >> (64 - width));
        let is_negative = self.codec.is_signed() && field >> (width - 1) != 0;
        let field = match is_negative {
            true => field | u64::MAX << (width - 1),
            false => field,
        };
        field.to_le_bytes()
    }
}

impl Codec {
    pub(super) fn is_signed(&self) -> bool {
        match self {
            Codec::Int { is_signed, .. } => *is_signed,
            Codec::Enum(it) => it.is_signed,
            _ => false,
        }
    }
}

/// A little-endian number of 1 to 8 bytes.
pub(super) fn number(bytes: &[u8], size: usize, is_signed: bool) -> i128 {
    let mut all = [0; 8];
    all[..size].copy_from_slice(&bytes[..size]);
    let unsigned = u64::from_le_bytes(all);
    match is_signed {
        false => unsigned.into(),
        true => {
            let unused = 64 - 8 * size as u32;
            (((unsigned << unused) as i64) >> unused).into()
        }
    }
}

/// Text up to the first zero, if it is UTF-8 and zeros follow; otherwise the bytes.
fn text<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyAny> {
    let end = bytes.iter().position(|byte| *byte == 0);
    let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
    match std::str::from_utf8(text) {
        Ok(text) if rest.iter().all(|byte| *byte == 0) => PyString::new(py, text).into_any(),
        _ => PyBytes::new(py, bytes).into_any(),
    }
}

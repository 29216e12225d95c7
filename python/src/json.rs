//! Values of JSON as Python values.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde::Serialize;
use serde_json::Value;

use crate::errors::Fault;

/// What serialises as JSON, as Python values.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: &impl Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    let value =
        serde_json::to_value(value).map_err(|error| PyErr::from(Fault::of_format(error)))?;
    convert(py, &value)
}

fn convert<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_bound_py_any(py),
            (_, Some(number)) => number.into_bound_py_any(py),
            _ => number.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(convert(py, item)?)?;
            }
            Ok(list.into_any())
        }
        Value::Object(members) => {
            let dict = PyDict::new(py);
            for (name, value) in members {
                dict.set_item(name, convert(py, value)?)?;
            }
            Ok(dict.into_any())
        }
    }
}

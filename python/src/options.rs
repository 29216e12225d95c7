//! Keyword arguments that several functions take.

use beebox::ProgramType;
use beebox::Assignment;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PyMapping, PyString, PyTuple, PyType};

use crate::errors::{Fault, raised};

/// The error for a keyword argument that a function does not take.
pub(crate) fn unknown(name: &str, known: &[&str]) -> PyErr {
    let known = known.join(", ");
    PyTypeError::new_err(format!("no option {name:?}; there are {known}"))
}

/// The error of an option whose value has another type, with its name: a fault of ours has its place.
pub(crate) fn of_option(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    let is_plain = |kind: &Bound<'_, PyType>| error.get_type(py).is(kind);
    match is_plain(&py.get_type::<PyTypeError>()) || is_plain(&py.get_type::<PyOverflowError>()) {
        true => Fault::of_type(format!("{name}: {}", error.value(py))).into(),
        false => error,
    }
}

/// Pairs of a mapping by name.
pub(crate) fn pairs<'py, T>(value: &Bound<'py, PyAny>) -> PyResult<Vec<(String, T)>>
where
    T: FromPyObjectOwned<'py>,
{
    let mapping = value.cast::<PyMapping>()?;
    let mut pairs = Vec::new();
    for item in mapping.items()?.iter() {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        pairs.push((name, value.extract::<T>().map_err(Into::into)?));
    }
    Ok(pairs)
}

/// A program type by its name.
///
/// # Errors
/// `NotFoundError` with the names that there are.
pub(crate) fn program_type(name: &str) -> PyResult<ProgramType> {
    ProgramType::from_name(name).ok_or_else(|| {
        let known: Vec<_> = ProgramType::ALL.iter().map(|kind| kind.name()).collect();
        let known = known.join(", ");
        Fault::absent(format!("no program type {name:?}; there are {known}")).into()
    })
}

/// Program types by the names of programs.
pub(crate) fn program_types(value: &Bound<'_, PyAny>) -> PyResult<Vec<(String, ProgramType)>> {
    let named = pairs::<String>(value)?.into_iter();
    named
        .map(|(program, kind)| Ok((program, program_type(&kind)?)))
        .collect()
}

/// Global variables by path, `{"limit": 10, "config": {"ports": [80, 443]}}`: members of dicts and
/// items of lists are set one by one, texts are names of enumerators, bytes set arrays of bytes.
pub(crate) fn assignments(value: &Bound<'_, PyAny>) -> PyResult<Vec<Assignment>> {
    let mut assignments = Vec::new();
    for (path, value) in pairs::<Bound<'_, PyAny>>(value)? {
        assign(&path, &value, &mut assignments)?;
    }
    Ok(assignments)
}

fn assign(path: &str, value: &Bound<'_, PyAny>, into: &mut Vec<Assignment>) -> PyResult<()> {
    if let Ok(members) = value.cast::<PyDict>() {
        for (name, value) in members {
            assign(&format!("{path}.{}", name.str()?), &value, into)?;
        }
        return Ok(());
    }
    let is_list = value.cast::<PyList>().is_ok()
        || value.cast::<PyTuple>().is_ok()
        || value.cast::<PyBytes>().is_ok();
    if is_list {
        for (at, item) in value.try_iter()?.enumerate() {
            assign(&format!("{path}[{at}]"), &item?, into)?;
        }
        return Ok(());
    }
    let text = match (value.cast::<PyString>(), value.cast::<PyBool>()) {
        (Ok(name), _) => name.to_str()?.to_owned(),
        (_, Ok(value)) => u8::from(value.is_true()).to_string(),
        _ => value.call_method0("__index__")?.str()?.to_string(),
    };
    let parsed = Assignment::parse(&format!("{path} = {text}"));
    into.push(parsed.map_err(raised)?);
    Ok(())
}

//! Loaded objects.

use std::sync::Arc;

use beebox::Object;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Fault, raised};
use crate::map::Map;
use crate::program::Program;
use crate::types::Types;

/// What handles of an instance share.
pub(crate) struct Shared {
    pub(crate) instance: beebox::Instance,
    pub(crate) object: Object,
    pub(crate) types: Arc<Types>,
}

/// A loaded object: its programs and maps by name, and its global variables.
///
/// Threads may share it and its handles; the GIL is released while programs run.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct Instance(pub(crate) Arc<Shared>);

impl Instance {
    pub(crate) fn new(instance: beebox::Instance, object: Object, types: Arc<Types>) -> Instance {
        Instance(Arc::new(Shared {
            instance,
            object,
            types,
        }))
    }
}

#[pymethods]
impl Instance {
    /// A program by name.
    ///
    /// Raises NotFoundError with the names that there are.
    fn program(&self, name: &str) -> PyResult<Program> {
        let program = self.0.instance.program(name).map_err(raised)?;
        Ok(Program::new(program, self.0.clone()))
    }

    /// A map by name, if a loaded program uses it.
    ///
    /// Raises NotFoundError with the names that there are.
    fn map(&self, name: &str) -> PyResult<Map> {
        let map = self.0.instance.map(name).map_err(raised)?;
        Ok(Map::new(map, self.0.clone()))
    }

    /// The programs by name, in the order of the object.
    #[getter]
    fn programs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for program in self.0.instance.programs() {
            let name = program.name().to_owned();
            all.set_item(name, Py::new(py, Program::new(program, self.0.clone()))?)?;
        }
        Ok(all)
    }

    /// The maps that loaded programs use by name, in the order of the object.
    #[getter]
    fn maps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for map in self.0.instance.maps() {
            let name = map.name().to_owned();
            all.set_item(name, Py::new(py, Map::new(map, self.0.clone()))?)?;
        }
        Ok(all)
    }

    /// The global variables, as a mapping from names to values of their types.
    #[getter]
    fn globals(&self) -> Globals {
        Globals(self.0.clone())
    }

    /// Number of possible CPUs, on which programs run: per-CPU maps have a value for each.
    #[getter]
    fn cpus(&self) -> u32 {
        self.0.instance.loaded().cpus()
    }

    fn __repr__(&self) -> String {
        let programs = self.0.instance.programs();
        let programs: Vec<_> = programs.map(|program| program.name().to_owned()).collect();
        format!(
            "<Instance of {}: {}>",
            self.0.object.name(),
            programs.join(", ")
        )
    }
}

/// The global variables of an instance: `instance.globals["limit"] = 10`. Constants are set before
/// loading (`Object.load(globals=…)`).
#[pyclass(frozen, mapping, module = "beebox")]
pub(crate) struct Globals(Arc<Shared>);

impl Globals {
    fn names(&self) -> Vec<&str> {
        let loaded = self.0.instance.loaded();
        let names = self.0.types.global_names();
        names
            .filter(|name| loaded.global_bytes(name).is_ok())
            .collect()
    }
}

#[pymethods]
impl Globals {
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.0.instance.loaded().global_bytes(name);
        let bytes = bytes.map_err(|error| raised(beebox::Error::from(error)))?;
        let codec = self.0.types.of_global(name);
        let absent = || PyErr::from(Fault::absent(format!("no variable {name}")));
        codec.ok_or_else(absent)?.decode(py, &bytes)
    }

    fn __setitem__(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let loaded = self.0.instance.loaded();
        let failed = |error| raised(beebox::Error::from(error));
        let mut bytes = loaded.global_bytes(name).map_err(failed)?;
        if let Some(codec) = self.0.types.of_global(name) {
            codec.encode(value, &mut bytes, name)?;
        }
        loaded.set_global_bytes(name, &bytes).map_err(failed)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.names().contains(&name)
    }

    fn __len__(&self) -> usize {
        self.names().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let names = self.names().into_pyobject(py)?;
        Ok(names.try_iter()?.into_any())
    }

    /// The names.
    fn keys(&self) -> Vec<String> {
        self.names().into_iter().map(str::to_owned).collect()
    }

    /// Pairs of names and values.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let names = self.names().into_iter();
        names
            .map(|name| Ok((name.to_owned(), self.__getitem__(py, name)?)))
            .collect()
    }

    fn __repr__(&self) -> String {
        format!("<Globals: {}>", self.names().join(", "))
    }
}

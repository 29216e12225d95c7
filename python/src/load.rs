//! How an object is loaded.

use std::sync::Arc;
use std::time::Duration;

use beebox::Assignment;
use beebox::{Engine, ErrorKind, Kernel, Loader, Object, ProgramType, network};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::errors::{Fault, raised};
use crate::instance::Instance;
use crate::map::Map;
use crate::options::{assignments, of_option, pairs, program_types, unknown};
use crate::types::Types;
use crate::verify::{VerifyArgs, first_refused};

const KNOWN: &[&str] = &[
    "kernel",
    "engine",
    "unverified",
    "programs",
    "program_types",
    "globals",
    "define",
    "max_entries",
    "map_formats",
    "reuse_maps",
    "map_memory",
    "time_limit",
    "instruction_limit",
    "seed",
    "cpus",
    "perf_buffers",
    "system",
    "models",
];

/// Keyword arguments of `Object.load`.
#[derive(Default)]
pub(crate) struct LoadArgs {
    engine: Option<Engine>,
    unverified: bool,
    programs: Option<Vec<String>>,
    program_types: Vec<(String, ProgramType)>,
    globals: Vec<Assignment>,
    define: Vec<(String, u64)>,
    max_entries: Vec<(String, u32)>,
    map_formats: Vec<String>,
    reuse_maps: Vec<(String, Py<Map>)>,
    map_memory: Option<u64>,
    time_limit: Option<Option<Duration>>,
    instruction_limit: Option<u64>,
    seed: Option<u64>,
    cpus: Option<u32>,
    perf_buffers: Option<usize>,
    system: Option<String>,
    models: bool,
}

impl LoadArgs {
    pub(crate) fn read(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<LoadArgs> {
        let mut args = LoadArgs::default();
        for (name, value) in options.into_iter().flatten() {
            let name: String = name.extract()?;
            if !KNOWN.contains(&name.as_str()) {
                return Err(unknown(&name, KNOWN));
            }
            if value.is_none() && name != "time_limit" {
                continue;
            }
            let set = args.set(py, &name, &value);
            set.map_err(|error| of_option(py, &name, error))?;
        }
        Ok(args)
    }

    /// Sets an option by its name.
    fn set(&mut self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match name {
            "engine" => self.engine = Some(engine(&value.extract::<String>()?)?),
            "unverified" => self.unverified = value.extract()?,
            "programs" => self.programs = Some(value.extract()?),
            "program_types" => self.program_types = program_types(value)?,
            "globals" => self.globals = assignments(value)?,
            "define" => self.define = pairs(value)?,
            "max_entries" => self.max_entries = pairs(value)?,
            "map_formats" => self.map_formats = value.extract()?,
            "reuse_maps" => {
                for (name, map) in pairs::<Bound<'_, PyAny>>(value)? {
                    self.reuse_maps
                        .push((name, map.cast::<Map>()?.clone().unbind()));
                }
            }
            "map_memory" => self.map_memory = Some(value.extract()?),
            "time_limit" => self.time_limit = Some(limit(value)?),
            "instruction_limit" => self.instruction_limit = Some(value.extract()?),
            "seed" => self.seed = Some(value.extract()?),
            "cpus" => self.cpus = Some(value.extract()?),
            "perf_buffers" => self.perf_buffers = Some(value.extract()?),
            "system" => self.system = Some(json_text(py, value)?),
            "models" => self.models = value.extract()?,
            _ => return Err(unknown(name, KNOWN)),
        }
        Ok(())
    }

    /// Loads an object.
    pub(crate) fn load(
        &self,
        py: Python<'_>,
        object: &Object,
        kernel: &Kernel,
    ) -> PyResult<Instance> {
        let loader = self.loader(kernel)?;
        let loaded = py.detach(|| loader.load(object));
        let instance = loaded.map_err(|error| {
            let is_refused = error.kind() == ErrorKind::Refused;
            let fault = Fault::from(error);
            let Some(log) = is_refused.then(|| self.log(py, object, kernel)).flatten() else {
                return fault.into();
            };
            PyErr::from(fault.with_log(log))
        })?;
        let types = Types::new(py, object, &self.define)?;
        Ok(Instance::new(instance, object.clone(), Arc::new(types)))
    }

    /// The log of the program that is refused.
    fn log(&self, py: Python<'_>, object: &Object, kernel: &Kernel) -> Option<String> {
        let args = VerifyArgs::for_load(
            self.programs.clone().unwrap_or_default(),
            &self.define,
            &self.program_types,
            &self.globals,
        );
        first_refused(py, object, kernel, &args)
    }

    fn loader(&self, kernel: &Kernel) -> PyResult<Loader> {
        let mut loader = Loader::new(kernel)
            .assign(self.globals.iter().cloned())
            .models(self.models);
        if let Some(engine) = self.engine {
            loader = loader.engine(engine);
        }
        if self.unverified {
            loader = loader.unverified();
        }
        if let Some(programs) = &self.programs {
            loader = loader.programs(programs.iter().map(String::as_str));
        }
        for (program, kind) in &self.program_types {
            loader = loader.program_type(program, *kind);
        }
        for (symbol, value) in &self.define {
            loader = loader.define(symbol, *value);
        }
        for (map, entries) in &self.max_entries {
            loader = loader.max_entries(map, *entries);
        }
        for format in &self.map_formats {
            loader = loader.map_format(format);
        }
        for (name, map) in &self.reuse_maps {
            loader = loader.reuse_map(name, &map.get().map);
        }
        if let Some(bytes) = self.map_memory {
            loader = loader.map_memory(bytes);
        }
        if let Some(limit) = self.time_limit {
            loader = loader.time_limit(limit);
        }
        if let Some(instructions) = self.instruction_limit {
            loader = loader.instruction_limit(instructions);
        }
        if let Some(seed) = self.seed {
            loader = loader.seed(seed);
        }
        if let Some(cpus) = self.cpus {
            loader = loader.cpus(cpus);
        }
        if let Some(bytes) = self.perf_buffers {
            loader = loader.perf_buffers(bytes);
        }
        if let Some(text) = &self.system {
            loader = loader.system(network::read(text).map_err(raised)?);
        }
        Ok(loader)
    }
}

/// An engine by its name.
pub(crate) fn engine(name: &str) -> PyResult<Engine> {
    let mut all = Engine::ALL.iter();
    all.find(|engine| engine.name() == name)
        .copied()
        .ok_or_else(|| {
            let known: Vec<_> = Engine::ALL.iter().map(|engine| engine.name()).collect();
            let known = known.join(", ");
            Fault::absent(format!("no engine {name:?}; there are {known}")).into()
        })
}

/// A time limit in seconds, or none.
fn limit(value: &Bound<'_, PyAny>) -> PyResult<Option<Duration>> {
    let Some(seconds) = value.extract::<Option<f64>>()? else {
        return Ok(None);
    };
    let limit = Duration::try_from_secs_f64(seconds);
    limit
        .map(Some)
        .map_err(|error| Fault::of_format(format!("time_limit: {seconds} seconds: {error}")).into())
}

/// A text, or a value as JSON.
pub(crate) fn json_text(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.to_owned()),
        Err(_) => py
            .import("json")?
            .call_method1("dumps", (value,))?
            .extract(),
    }
}

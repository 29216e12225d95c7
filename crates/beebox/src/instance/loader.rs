//! How an object is loaded.

use std::sync::Arc;
use std::time::Duration;

use interp::checked::Limits;
use spec::Kernel;
use spec::programs::ProgramType;
use vm::network::Network;
use vm::{HostFunction, System};

use super::handle::Shared;
use super::{Instance, Map, Object};
use crate::engine::Engine;
use crate::failure::{Cause, Error, RunCause};
use crate::internal::loading::ObjectLoading;
use crate::internal::maps_json::FieldFormat;
use crate::internal::pod::{self, Pod};
use crate::internal::run::{LoadError, LoadOptions, LoadedObject, ReusedMaps};
use crate::internal::variables::Assignment;

/// Loads objects: links them for a kernel, verifies their programs, creates their maps and
/// compiles the programs to native code.
///
/// Setters take the loader and return it. It can load several objects, each as a new
/// [`Instance`].
#[derive(Clone, Debug)]
pub struct Loader {
    kernel: Kernel,
    options: LoadOptions,
    limits: Limits,
    system: System,
    functions: Vec<HostFunction>,
    globals: Vec<(String, Vec<u8>)>,
    assignments: Vec<Assignment>,
    max_entries: Vec<(String, u32)>,
    defines: Vec<(String, u64)>,
    kinds: Vec<(String, ProgramType)>,
    programs: Option<Vec<String>>,
    autoload: Vec<(String, bool)>,
    perf_buffers: Option<usize>,
    reused: Vec<(String, Map)>,
    formats: Vec<String>,
}

#[cfg(feature = "kernel-data")]
impl Default for Loader {
    /// A loader for Linux 6.18.
    fn default() -> Loader {
        Loader::new(&crate::internal::kernel::linux_6_18())
    }
}

impl Loader {
    /// A loader for a kernel: programs are verified and run as native code, a run takes at most
    /// 10 s, all maps together at most 1 GiB, and the seed is 0.
    pub fn new(kernel: &Kernel) -> Loader {
        Loader {
            kernel: kernel.clone(),
            options: LoadOptions {
                explains: true,
                ..LoadOptions::default()
            },
            limits: Limits::default(),
            system: System::DEFAULT,
            functions: Vec::new(),
            globals: Vec::new(),
            assignments: Vec::new(),
            max_entries: Vec::new(),
            defines: Vec::new(),
            kinds: Vec::new(),
            programs: None,
            autoload: Vec::new(),
            perf_buffers: None,
            reused: Vec::new(),
            formats: Vec::new(),
        }
    }

    /// Sets the engine of verified programs [default: the fastest of this machine]. A program that
    /// it does not run has another one ([`Program::fallback_reason`](super::Program::fallback_reason)).
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Loader {
        self.options.engine = engine;
        self
    }

    /// Has programs run without verification, in the checked engine: what the verifier would
    /// have refused ends a run with an error.
    #[must_use]
    pub fn unverified(mut self) -> Loader {
        self.options.unverified = true;
        self
    }

    /// Sets whether runs count what they execute, for
    /// [`Instance::coverage`](super::Instance::coverage). Increments of threads that run a program at the
    /// same time may get lost.
    #[cfg(feature = "coverage")]
    #[must_use]
    pub fn coverage(mut self, on: bool) -> Loader {
        self.options.counts = on;
        self
    }

    /// Sets whether programs of types that Linux does not test-run are loaded too, to run in a model of
    /// the kernel ([`Program::model_run`](super::Program::model_run), [`Instance::check`](super::Instance::check)).
    #[must_use]
    pub fn models(mut self, on: bool) -> Loader {
        self.options.models = on;
        self
    }

    /// Sets the most bytes that all maps take: arrays from the start, other maps by what they
    /// held at most, with the table that leads to it. Global variables and maps of other instances do not count. An operation that
    /// needs more answers ENOMEM, and its run ends with an error.
    #[must_use]
    pub fn map_memory(mut self, bytes: u64) -> Loader {
        self.options.memory = bytes;
        self
    }

    /// Sets the most time of a run of native code, or none.
    #[must_use]
    pub fn time_limit(mut self, limit: impl Into<Option<Duration>>) -> Loader {
        self.options.timeout = limit.into();
        self
    }

    /// Sets the most instructions of a run in the checked engine.
    #[must_use]
    pub fn instruction_limit(mut self, instructions: u64) -> Loader {
        self.limits.instructions = instructions;
        self
    }

    /// Sets the seed of random numbers, of hashes, and of the addresses that programs see in the
    /// checked engine: with the same seed the same runs have the same results.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Loader {
        self.options.seed = seed;
        self
    }

    /// Sets the least number of possible CPUs: per-CPU maps hold a value for each.
    #[must_use]
    pub fn cpus(mut self, cpus: u32) -> Loader {
        self.options.cpus = cpus;
        self
    }

    /// Sets the machine and the process that helpers report, with their network.
    #[must_use]
    pub fn system(mut self, system: System) -> Loader {
        self.system = system;
        self
    }

    /// Sets the network that helpers report.
    #[must_use]
    pub fn network(mut self, network: Network) -> Loader {
        self.system.network = network;
        self
    }

    /// Adds a function of the host, which programs call as a kfunc
    /// ([`kfunc!`](crate::kfunc)).
    #[must_use]
    pub fn host_function(mut self, function: HostFunction) -> Loader {
        self.functions.push(function);
        self
    }

    /// Sets the value of a global variable before loading, of a constant too.
    #[must_use]
    pub fn global<T: Pod>(mut self, name: &str, value: T) -> Loader {
        self.globals.push((name.to_owned(), pod::bytes(&value)));
        self
    }

    /// Sets global variables, or parts of them, before loading, after those of [`Loader::global`].
    #[must_use]
    pub fn assign(mut self, assignments: impl IntoIterator<Item = Assignment>) -> Loader {
        self.assignments.extend(assignments);
        self
    }

    /// Defines an undefined symbol, a kconfig value or the address of a variable of the kernel, as
    /// applications do.
    #[must_use]
    pub fn define(mut self, symbol: &str, value: u64) -> Loader {
        self.defines.push((symbol.to_owned(), value));
        self
    }

    /// Sets the type of a program, in place of what its section name implies.
    #[must_use]
    pub fn program_type(mut self, program: &str, kind: ProgramType) -> Loader {
        self.kinds.push((program.to_owned(), kind));
        self
    }

    /// Sets the maximum number of entries of a map.
    #[must_use]
    pub fn max_entries(mut self, map: &str, entries: u32) -> Loader {
        self.max_entries.push((map.to_owned(), entries));
        self
    }

    /// Sets the form of a field of a map in JSON, which [`Instance::maps_json`](super::Instance::maps_json) writes and
    /// [`Instance::fill_maps`](super::Instance::fill_maps) reads: `MAP.key[.FIELD…]=FORM` or `MAP.value[.FIELD…]=FORM`, where
    /// FORM is ipv4, ipv6, mac, port, hex, u8, u16, u32 or u64.
    #[must_use]
    pub fn map_format(mut self, format: &str) -> Loader {
        self.formats.push(format.to_owned());
        self
    }

    /// Loads these programs only, and not all that the object does not exclude.
    #[must_use]
    pub fn programs<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Loader {
        self.programs = Some(names.into_iter().map(str::to_owned).collect());
        self
    }

    /// Loads a program, or leaves it out, whatever the object says (`bpf_program__set_autoload`).
    #[doc(hidden)]
    #[must_use]
    pub fn autoload(mut self, program: &str, is_loaded: bool) -> Loader {
        self.autoload.push((program.to_owned(), is_loaded));
        self
    }

    /// Opens a perf buffer of so many bytes for each CPU in every `perf_event_array`, so that
    /// programs can write records. Without, `bpf_perf_event_output` returns `-ENOENT`, as in
    /// Linux.
    #[must_use]
    pub fn perf_buffers(mut self, bytes: usize) -> Loader {
        self.perf_buffers = Some(bytes);
        self
    }

    /// Uses a map of another instance in place of the object's map of this name, so that its
    /// entries outlive a reload. Kind, sizes, number of entries, flags and special fields must be
    /// equal, as for libbpf's maps that are pinned by name. Maps whose values have timers or own
    /// objects, program arrays, maps of maps and maps of sockets stay with their instance.
    #[must_use]
    pub fn reuse_map(mut self, name: &str, map: &Map) -> Loader {
        self.reused.push((name.to_owned(), map.clone()));
        self
    }

    /// Loads an object.
    ///
    /// # Errors
    /// For the first program, map or variable that is not there, is refused or is not supported.
    pub fn load(&self, object: &Object) -> Result<Instance, Error> {
        let changed = self.changed(object)?;
        let loaded = self.load_changed(object, &changed, &self.options)?;
        let limits = self.limits;
        Ok(Instance(Arc::new(Shared { loaded, limits })))
    }

    /// The object as it is loaded.
    #[cfg(feature = "fuzz")]
    pub(crate) fn opened<'o>(&self, object: &'o Object) -> Result<::object::Object<'o>, Error> {
        self.changed(object)
    }

    /// Loads an object that [`Loader::opened`] gave, for fuzzing.
    #[cfg(feature = "fuzz")]
    pub(crate) fn load_for_fuzzing(
        &self,
        object: &Object,
        changed: &::object::Object<'_>,
    ) -> Result<LoadedObject, Error> {
        let options = crate::internal::fuzz::Campaign::load_options(self.options);
        self.load_changed(object, changed, &options)
    }

    fn load_changed(
        &self,
        object: &Object,
        changed: &::object::Object<'_>,
        options: &LoadOptions,
    ) -> Result<LoadedObject, Error> {
        let mut reused = ReusedMaps::default();
        for (name, map) in &self.reused {
            check_map(object, name)?;
            reused.insert(name.clone(), map.object_map());
        }
        let mut loaded =
            LoadedObject::load_reusing(changed, &self.kernel, options, &self.functions, &reused)?;
        loaded.set_system(self.system.clone());
        let formats = self.formats.iter().map(|format| format.parse());
        let formats = formats.collect::<Result<Vec<FieldFormat>, _>>();
        let formats = formats.map_err(RunCause::MapFormat)?;
        let set = loaded.set_formats(changed, &formats);
        set.map_err(|fault| RunCause::MapFormat(fault.to_string()))?;
        if let Some(bytes) = self.perf_buffers {
            let opened = loaded.open_perf_buffers(bytes);
            opened.map_err(|errno| LoadError::PerfBuffers { bytes, errno })?;
        }
        Ok(loaded)
    }

    /// The object with what is changed before it is linked.
    fn changed<'o>(&self, object: &'o Object) -> Result<::object::Object<'o>, Error> {
        let failed = |error| Error::from(Cause::Object(Box::new(error)));
        let mut opened = object.opened_with(&self.defines)?;
        let loading = ObjectLoading {
            kinds: self.kinds.clone(),
            ..ObjectLoading::default()
        };
        let known = object.program_names();
        if let Some((name, _)) = self.kinds.iter().find(|(name, _)| !known.contains(name)) {
            return Err(RunCause::NoProgram(name.clone(), known.to_vec()).into());
        }
        loading.set_programs(&mut opened);
        for (name, bytes) in &self.globals {
            opened.write_global(name, bytes).map_err(failed)?;
        }
        for assignment in &self.assignments {
            assignment.apply(&mut opened)?;
        }
        for (name, entries) in &self.max_entries {
            check_map(object, name)?;
            let id = opened.maps().named(name);
            if let Some(map) = id.and_then(|id| opened.maps_mut().get_mut(id)) {
                map.set_max_entries(*entries);
            }
        }
        if let Some(chosen) = &self.programs {
            let known = object.program_names();
            if let Some(name) = chosen.iter().find(|name| !known.contains(name)) {
                return Err(RunCause::NoProgram(name.clone(), known.to_vec()).into());
            }
            opened.set_autoload(|program| {
                let name = program.name.to_string();
                chosen.contains(&name)
            });
        }
        opened.set_autoload(|program| {
            let of_program = program.name.to_string();
            let mut set = self.autoload.iter().rev();
            let set = set.find(|(name, _)| *name == of_program);
            set.map_or(program.autoload, |(_, is_loaded)| *is_loaded)
        });
        Ok(opened)
    }
}

/// Refuses names of maps that the object does not have.
fn check_map(object: &Object, name: &str) -> Result<(), Error> {
    let known = object.map_names();
    match known.iter().any(|known| known == name) {
        true => Ok(()),
        false => Err(RunCause::NoMap(name.to_owned(), known.to_vec()).into()),
    }
}

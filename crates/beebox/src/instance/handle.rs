//! A loaded object, which its handles share.

use std::fmt;
use std::sync::Arc;

use btf::Btf;
use interp::checked::Limits;
use vm::Addresses;

use super::{Map, Object, Program};
use crate::failure::{Error, RunCause};
use crate::internal::expect::{CheckReport, ExpectCheck, ExpectFile};
use crate::internal::maps_json::{LeftOut, MapsDump, MapsJson, RecordTypes};
use crate::internal::pod::Pod;
use crate::internal::run::{DataError, LoadedObject, UnwrittenRead};

/// A loaded object: its programs and maps by name, and its global variables. Clones are the same
/// instance, which lives as long as one of them, or a handle of a program or map, does.
#[derive(Clone)]
pub struct Instance(pub(super) Arc<Shared>);

/// What handles share.
pub(super) struct Shared {
    pub(super) loaded: LoadedObject,
    /// Limits of runs.
    pub(super) limits: Limits,
}

impl Instance {
    /// A program by name.
    ///
    /// # Errors
    /// If there is none of this name, with those that there are.
    pub fn program(&self, name: &str) -> Result<Program, Error> {
        match self.0.loaded.program_place(name) {
            Some(place) => Ok(Program::new(self.clone(), place)),
            None => {
                let known = self.0.loaded.program_names().map(str::to_owned).collect();
                Err(RunCause::NoProgram(name.to_owned(), known).into())
            }
        }
    }

    /// The programs, in the order of the object.
    pub fn programs(&self) -> impl Iterator<Item = Program> {
        let count = self.0.loaded.program_names().count();
        (0..count).map(|place| Program::new(self.clone(), place))
    }

    /// A map by name, if a loaded program uses it.
    ///
    /// # Errors
    /// If there is none of this name, with those that there are.
    pub fn map(&self, name: &str) -> Result<Map, Error> {
        let mut maps = self.maps();
        maps.find(|map| map.name() == name).ok_or_else(|| {
            DataError::NoMap {
                name: name.to_owned(),
                known: self.maps().map(|map| map.name().to_owned()).collect(),
            }
            .into()
        })
    }

    /// The maps that loaded programs use, in the order of the object, those of global variables
    /// among them.
    pub fn maps(&self) -> impl Iterator<Item = Map> {
        let places = self.0.loaded.map_places();
        places.map(|place| Map::new(self.clone(), place))
    }

    /// Number of possible CPUs: per-CPU maps hold a value for each.
    #[doc(hidden)]
    pub fn cpus(&self) -> u32 {
        self.0.loaded.cpus()
    }

    /// The types of its kernel and the places of memory, for a model.
    pub(crate) fn model_types(&self) -> (Option<Arc<Btf<'static>>>, Addresses) {
        let loaded = &self.0.loaded;
        (loaded.kernel_types(), loaded.addresses())
    }

    /// The value of a global variable.
    ///
    /// # Errors
    /// If there is no such variable, or its type has another size.
    pub fn global<T: Pod>(&self, name: &str) -> Result<T, Error> {
        Ok(self.0.loaded.global(name)?)
    }

    /// Sets a global variable. Constants are set before loading
    /// ([`Loader::global`](super::Loader::global)).
    ///
    /// # Errors
    /// If there is no such variable, or its type has another size; EPERM for constants.
    pub fn set_global<T: Pod>(&self, name: &str, value: T) -> Result<(), Error> {
        Ok(self.0.loaded.set_global(name, &value)?)
    }

    /// Fills maps from JSON, with the types of the object that was loaded. Returns the members that
    /// entries leave out, which are 0.
    ///
    /// # Errors
    /// For the first map or entry that does not fit; what is in front of it has been put.
    pub fn fill_maps(&self, object: &Object, maps: &MapsJson) -> Result<Vec<LeftOut>, Error> {
        Ok(maps.fill(&self.0.loaded, &object.opened()?)?)
    }

    /// The contents of the maps that have keys, and the pages of arenas, as JSON with the types of
    /// the object that was loaded; [`Instance::fill_maps`] takes it.
    ///
    /// # Errors
    /// If a map cannot be read.
    pub fn maps_json(&self, object: &Object) -> Result<String, Error> {
        let opened = object.opened()?;
        let dump = MapsDump::new(&self.0.loaded, opened.btf())?;
        let mut json = Vec::new();
        let written = report::json::write_pretty(&mut json, &dump);
        written.map_err(|error| RunCause::Json(error.to_string()))?;
        Ok(String::from_utf8_lossy(&json).into_owned())
    }

    /// Runs an expectation file over the maps of the instance, on CPU 0. Records need buffers
    /// ([`Loader::perf_buffers`](super::Loader::perf_buffers)).
    ///
    /// # Errors
    /// If a statement does not suit the object, an input cannot be read, or a program does not
    /// take it; differences are part of the report.
    pub fn check(&self, object: &Object, file: &ExpectFile) -> Result<CheckReport, Error> {
        let opened = object.opened()?;
        let check = ExpectCheck {
            file,
            object: &opened,
            loaded: &self.0.loaded,
            types: &RecordTypes::new(&opened),
            cpu: 0,
            set_up: &|program| program.set_limits(self.0.limits),
        };
        Ok(check.run()?)
    }

    /// The source lines, branches and functions that runs executed until now, of an object that was
    /// loaded with [`Loader::coverage`](super::Loader::coverage); otherwise none.
    #[cfg(feature = "coverage")]
    pub fn coverage(&self) -> crate::coverage::Coverage {
        self.0.loaded.coverage()
    }

    /// The object, loaded.
    #[doc(hidden)]
    pub fn loaded(&self) -> &LoadedObject {
        &self.0.loaded
    }

    /// Reads of stack memory that programs never wrote, one of a program at most: of programs that
    /// run in the checked engine those that runs made until now, of native code those that it may
    /// make. Results that depend on them are not comparable with Linux.
    #[doc(hidden)]
    pub fn unwritten_stack_reads(&self) -> Vec<UnwrittenRead> {
        self.0.loaded.unwritten_stack_reads()
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let programs: Vec<&str> = self.0.loaded.program_names().collect();
        let maps: Vec<String> = self.maps().map(|map| map.name().to_owned()).collect();
        f.debug_struct("Instance")
            .field("programs", &programs)
            .field("maps", &maps)
            .finish_non_exhaustive()
    }
}

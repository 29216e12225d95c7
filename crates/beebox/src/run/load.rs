//! Loading: an object's programs and maps, ready to run.

use ::kernel::maps::{Host, Map};
use ::kernel::programs::PacketProgram;
use object::Object;
use program::Program;
use spec::{Kernel, SplitMix};
use verifier::{Options, Verdict, verify};

use super::program::Prepared;
use super::{NotLoaded, ObjectMap, RunnableProgram};

/// How to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Run programs that nothing verified. What a verifier would have refused ends a run
    /// with a trap.
    pub unverified: bool,
    /// Possible CPUs, at least 1: per-CPU maps hold a value for each. Programs run on CPU 0.
    pub cpus: u32,
    /// Seed of random numbers and hashes.
    pub seed: u64,
}

impl Default for LoadOptions {
    /// Verified, one CPU, seed 0.
    fn default() -> LoadOptions {
        LoadOptions {
            unverified: false,
            cpus: 1,
            seed: 0,
        }
    }
}

/// The programs and maps of an object, ready to run. The maps last over all runs.
#[derive(Debug)]
pub struct LoadedObject {
    pub(super) maps: Vec<Option<ObjectMap>>,
    programs: Vec<Prepared>,
    random: SplitMix,
}

impl LoadedObject {
    /// Links an object for a kernel, verifies its programs that are to be loaded
    /// ([`Object::set_autoload`] chooses) and creates the maps that they use.
    ///
    /// # Errors
    /// For the first program or map that cannot be loaded.
    pub fn load(
        object: &Object<'_>,
        kernel: &Kernel,
        options: &LoadOptions,
    ) -> Result<LoadedObject, NotLoaded> {
        let linked = object.link(kernel);
        let mut linked = linked.map_err(|error| NotLoaded::Link(Box::new(error)))?;
        if !linked.unloadable.is_empty() {
            let error = linked.unloadable.swap_remove(0).error;
            return Err(NotLoaded::Link(Box::new(error)));
        }
        let host = Host {
            cpus: options.cpus.max(1),
            seed: options.seed,
        };
        let mut loaded = LoadedObject {
            maps: Vec::new(),
            programs: Vec::new(),
            random: SplitMix::new(options.seed),
        };
        for program in linked.programs {
            let program = program.program;
            if !options.unverified {
                check(&program, kernel)?;
            }
            loaded.add(program, &host)?;
        }
        Ok(loaded)
    }

    fn add(&mut self, program: Program, host: &Host) -> Result<(), NotLoaded> {
        let Some(packets) = PacketProgram::of(program.kind()) else {
            return Err(NotLoaded::Type {
                program: program.name().to_owned(),
                kind: program.kind(),
            });
        };
        for id in program.used_maps() {
            let index = id.0 as usize;
            if self.maps.len() <= index {
                self.maps.resize_with(index + 1, || None);
            }
            if let (None, Some(def)) = (&self.maps[index], program.map(id)) {
                self.maps[index] = Some(ObjectMap::create(def, host)?);
            }
        }
        self.programs.push(Prepared::new(program, packets));
        Ok(())
    }

    /// A program by its name.
    pub fn program(&mut self, name: &str) -> Option<RunnableProgram<'_>> {
        let mut programs = self.programs.iter();
        let prepared = programs.find(|prepared| prepared.program.name() == name)?;
        Some(RunnableProgram::new(prepared, &self.maps, &mut self.random))
    }

    /// The map of this name, if a program uses it.
    pub fn map(&self, name: &str) -> Option<&Map> {
        let mut maps = self.maps();
        maps.find(|map| map.def.name == name).map(|map| &map.map)
    }

    /// The maps that programs use, in the object's order.
    pub fn maps(&self) -> impl Iterator<Item = &ObjectMap> {
        self.maps.iter().flatten()
    }
}

/// Verifies a program.
fn check(program: &Program, kernel: &Kernel) -> Result<(), NotLoaded> {
    let registry = kernel.registry().ok_or(NotLoaded::NoRegistry)?;
    let name = program.name().to_owned();
    match verify(program, kernel, registry, &Options::default()).verdict {
        Verdict::Accepted => Ok(()),
        Verdict::Refused(refusal) => Err(NotLoaded::Refused {
            program: name,
            refusal,
        }),
        Verdict::Unsupported(why) => Err(NotLoaded::NotJudged { program: name, why }),
        Verdict::Bug(why) => Err(NotLoaded::NotJudged {
            program: name,
            why: format!("bug: {why}"),
        }),
    }
}

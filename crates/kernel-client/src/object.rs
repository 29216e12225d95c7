//! All programs of an object in the running kernel, with the same maps: program arrays hold
//! the programs that the object puts there.

use program::{MapEntry, Program};
use sys::bpf::{LoadedProgram, Map};

use super::load::{LoadRequest, Resources};

/// The programs of an object in the running kernel.
#[derive(Debug)]
pub struct ObjectInKernel {
    programs: Vec<(String, LoadedProgram)>,
    /// Names of the maps, by index.
    names: Vec<String>,
    resources: Resources,
}

impl ObjectInKernel {
    /// Loads the programs, which have one list of maps, and fills their program arrays.
    ///
    /// # Errors
    /// The kernel's error for the first program or map that it refuses.
    pub fn load<'p>(
        programs: impl IntoIterator<Item = &'p Program>,
    ) -> Result<ObjectInKernel, String> {
        let mut programs = programs.into_iter().peekable();
        let first = *programs.peek().ok_or("there is no program")?;
        let mut resources = Resources::of(first).map_err(|fault| format!("{fault:?}"))?;
        resources.share_owned();
        let request = LoadRequest {
            log_level: 1,
            log_size: 1 << 20,
        };
        let mut log = Vec::new();
        let load = |program: &Program| {
            let answer = resources.load(program, request, &mut log);
            let loaded = answer.map_err(|fault| format!("{fault:?}"))?.result;
            let said = String::from_utf8_lossy(&log);
            let loaded = loaded.map_err(|errno| format!("{}: {errno}\n{said}", program.name()))?;
            Ok((program.name().to_owned(), loaded))
        };
        let programs: Result<Vec<_>, String> = programs.map(load).collect();
        let object = ObjectInKernel {
            programs: programs?,
            names: first.maps().iter().map(|def| def.name.clone()).collect(),
            resources,
        };
        for def in first.maps() {
            for (index, entry) in def.contents.entries() {
                if let MapEntry::Program(program) = entry {
                    let set = object.set_tail_call(&def.name, *index, Some(&program.name));
                    set.map_err(|errno| format!("{}: errno {errno}", def.name))?;
                }
            }
        }
        Ok(object)
    }

    /// A program by its name.
    pub fn program(&self, name: &str) -> Option<&LoadedProgram> {
        let mut programs = self.programs.iter();
        programs
            .find(|(of, _)| of == name)
            .map(|(_, program)| program)
    }

    /// A map by its name, if a program uses it.
    pub fn map(&self, name: &str) -> Option<&Map> {
        let index = self.names.iter().position(|of| of == name)?;
        self.map_at(index)
    }

    /// A map by its index in the object, if a program uses it.
    pub fn map_at(&self, index: usize) -> Option<&Map> {
        self.resources.map(index)
    }

    /// Puts a program into a slot of a program array, or empties the slot; the error number.
    ///
    /// # Panics
    /// If there is no such program.
    pub fn set_tail_call(&self, array: &str, index: u32, program: Option<&str>) -> Result<(), i32> {
        // No program refers to it.
        let Some(array) = self.map(array) else {
            return Ok(());
        };
        let key = index.to_ne_bytes();
        let done = match program {
            Some(name) => {
                let program = self.program(name).expect(name);
                array.update(&key, &program.descriptor().to_ne_bytes())
            }
            None => array.delete(&key),
        };
        done.map_err(|errno| errno.0)
    }
}

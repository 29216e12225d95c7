//! How objects are opened and changed before their programs are linked: the loader whose conventions
//! count, and what a loader sets: types, attach targets, undefined symbols, global variables.

use std::fmt;
use std::slice;

use object::{Error, Object, OpenOptions, ProgramDef};
use spec::loader::LoaderKind;
use spec::programs::{ProgramType, SectionDef, SectionFlags};

use super::variables::{Assignment, VariableError};

pub use object::{Guess, GuessReason};

/// What a loader sets.
#[derive(Clone, Debug, Default)]
pub struct ObjectLoading {
    /// Loader whose conventions count; `None` to guess it where libbpf refuses the object.
    pub loader: Option<LoaderKind>,
    /// Values of undefined symbols and externs.
    pub defines: Vec<(String, u64)>,
    /// Type of programs whose section names imply none.
    pub kind: Option<ProgramType>,
    /// Types of programs by name.
    pub kinds: Vec<(String, ProgramType)>,
    /// Functions, hooks or tracepoints that programs attach to, by the programs' names.
    pub attach: Vec<(String, String)>,
    /// Global variables.
    pub globals: Vec<Assignment>,
}

/// What cannot be set.
#[derive(Debug)]
pub enum LoadingError {
    /// A global variable.
    Variable(VariableError),
    /// An undefined symbol or extern.
    Define(Error),
    /// No program has this name.
    NoProgram {
        /// The name.
        name: String,
        /// Names of the programs.
        known: Vec<String>,
    },
    /// A program attaches to no function.
    NoFunction {
        /// Its name.
        program: String,
        /// Its section.
        section: String,
    },
}

impl fmt::Display for LoadingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadingError::Variable(error) => error.fmt(f),
            LoadingError::Define(error) => error.fmt(f),
            LoadingError::NoProgram { name, .. } => write!(f, "no program is called {name:?}"),
            LoadingError::NoFunction { program, section } => write!(
                f,
                "program {program} in section {section:?} attaches to no function, hook or \
                 tracepoint that is known when it is loaded"
            ),
        }
    }
}

impl std::error::Error for LoadingError {}

impl LoadingError {
    /// True if both are about the same name, which two objects lack.
    pub fn is_about_same_name(&self, other: &LoadingError) -> bool {
        match (self, other) {
            (LoadingError::NoProgram { name, .. }, LoadingError::NoProgram { name: other, .. }) => {
                name == other
            }
            (LoadingError::Define(error), LoadingError::Define(other)) => {
                error.place().symbol == other.place().symbol
            }
            _ => false,
        }
    }
}

impl ObjectLoading {
    /// Opens an object, which is named by its path.
    ///
    /// # Errors
    /// If the loader refuses it; libbpf's if the loader is guessed and none takes it.
    pub fn open<'a>(&self, file: &'a [u8], name: &str) -> Result<Object<'a>, Error> {
        let options = OpenOptions {
            name: Some(name),
            loader: self.loader.unwrap_or_default(),
            defines: &self.defines,
            ..OpenOptions::default()
        };
        match self.loader {
            Some(_) => Object::open_with(file, &options),
            None => Object::open_guessing(file, &options),
        }
    }

    /// Sets types and attach targets.
    pub fn set_programs(&self, object: &mut Object<'_>) {
        for (name, kind) in &self.kinds {
            if let Some(code) = object.program_mut(name)
                && code.kind != Some(*kind)
            {
                code.attach = None;
                set_kind(code, *kind);
            }
        }
        if let Some(kind) = self.kind {
            let programs = object.programs();
            let untyped = programs.filter(|(_, code)| code.kind.is_none());
            let untyped: Vec<_> = untyped.map(|(id, _)| id).collect();
            for id in untyped {
                if let Some(code) = object.program_def_mut(id) {
                    set_kind(code, kind);
                }
            }
        }
        for (name, function) in &self.attach {
            if let Some(code) = object.program_mut(name) {
                code.attach_name = Some(function.clone());
            }
        }
    }

    /// Names of programs that types and attach targets are for.
    pub fn named_programs(&self) -> impl Iterator<Item = &str> {
        let kinds = self.kinds.iter().map(|(name, _)| name.as_str());
        kinds.chain(self.attach.iter().map(|(name, _)| name.as_str()))
    }

    /// Sets global variables.
    ///
    /// # Errors
    /// For the first that is not there, or not of this type.
    pub fn set_globals(&self, object: &mut Object<'_>) -> Result<(), VariableError> {
        let mut globals = self.globals.iter();
        globals.try_for_each(|assignment| assignment.apply(object))
    }

    /// Checks that programs with an attach target are of sections that have one when they are
    /// loaded.
    ///
    /// # Errors
    /// For the first that is not.
    pub fn check_attached(&self, object: &Object<'_>) -> Result<(), LoadingError> {
        let attached = self.attach.iter().map(|(name, _)| name);
        for code in attached.filter_map(|name| object.program(name)) {
            let is_sought = code
                .rule
                .is_some_and(|rule| rule.flags.has(SectionFlags::ATTACH_BTF));
            if !is_sought && code.kind != Some(ProgramType::Ext) {
                return Err(LoadingError::NoFunction {
                    program: code.name.to_string(),
                    section: code.section_name.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Errors for the names that an object lacks of those that types, attach targets and values are
    /// for.
    pub fn missing_from(&self, object: &Object<'_>) -> Vec<LoadingError> {
        let known: Vec<String> = object
            .programs()
            .map(|(_, code)| code.name.to_string())
            .collect();
        let absent = self.named_programs();
        let absent = absent.filter(|name| !known.iter().any(|known| known == name));
        let programs = absent.map(|name| LoadingError::NoProgram {
            name: name.to_owned(),
            known: known.clone(),
        });
        let defines = self.defines.iter();
        let defines = defines.filter_map(|one| object.check_defines(slice::from_ref(one)).err());
        programs.chain(defines.map(LoadingError::Define)).collect()
    }

    /// Sets everything that the object has.
    ///
    /// # Errors
    /// For attach targets of programs without one, for variables that are not there, and values of
    /// other types.
    pub fn apply(&self, object: &mut Object<'_>) -> Result<(), LoadingError> {
        self.set_programs(object);
        self.check_attached(object)?;
        self.set_globals(object).map_err(LoadingError::Variable)
    }

    /// Sets everything.
    ///
    /// # Errors
    /// For names that are not there, and those of [`ObjectLoading::apply`].
    pub fn change(&self, object: &mut Object<'_>) -> Result<(), LoadingError> {
        match self.missing_from(object).into_iter().next() {
            Some(error) => Err(error),
            None => self.apply(object),
        }
    }
}

/// Sets the type of a program. Those that attach to what is known when they are loaded do so as the
/// programs of the section of their type, tracing programs as those of `fentry`.
fn set_kind(code: &mut ProgramDef<'_>, kind: ProgramType) {
    code.set_kind(kind);
    let section = match kind {
        ProgramType::Tracing => "fentry",
        ProgramType::Lsm => "lsm",
        ProgramType::Ext => "freplace",
        _ => return,
    };
    code.rule = SectionDef::find(LoaderKind::Libbpf.rules().sections, section);
    code.attach = code.rule.and_then(|rule| rule.attach);
}

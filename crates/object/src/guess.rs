//! The loader that an object is written for, guessed from what libbpf refuses.
//!
//! libbpf's conventions count where they accept the object and know the type of every program.
//! Otherwise each other loader's are tried; the first of those that leave the fewest programs
//! without a type counts, if it does better than libbpf.

use std::fmt;

use spec::loader::LoaderKind;

use crate::error::{Error, Problem};
use crate::externs::ExternFault;
use crate::maps::MapFault;
use crate::object::{Object, OpenOptions};
use crate::programs::ProgramDefFault;
use crate::relocate::RelocationFault;
use crate::sections::SectionFault;

/// Why the conventions of another loader than libbpf count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guess {
    /// The loader.
    pub loader: LoaderKind,
    /// What libbpf refuses.
    pub reason: GuessReason,
    /// Undefined symbols that load 0, since the application defines them.
    pub zeros: Vec<String>,
}

/// What libbpf refuses of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuessReason {
    /// The object.
    Refused(Error),
    /// The name of a section implies no program type.
    NoType {
        /// Section name.
        section: String,
    },
}

impl fmt::Display for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "opened by the conventions of {}: libbpf refuses it, ",
            self.loader
        )?;
        match &self.reason {
            GuessReason::Refused(error) => {
                // The caller names the file.
                let place = error.place();
                if let Some(section) = &place.section {
                    write!(f, "section {section}, ")?;
                }
                if let Some(symbol) = &place.symbol {
                    write!(f, "{symbol}, ")?;
                }
                error.problem().fmt(f)
            }
            GuessReason::NoType { section } => {
                write!(f, "section name {section:?} implies no program type")
            }
        }?;
        match &self.zeros[..] {
            [] => Ok(()),
            [name] => write!(f, "; {name} is undefined and 0 (--define {name}=NUMBER)"),
            [name, ..] => write!(
                f,
                "; {} are undefined and 0 (--define {name}=NUMBER)",
                self.zeros.join(", ")
            ),
        }
    }
}

impl<'a> Object<'a> {
    /// Opens an object by the conventions of the loader that it seems to be written for:
    /// [`Object::guess`] says why. `options.loader` is ignored.
    ///
    /// # Errors
    /// libbpf's, if no loader takes the object.
    pub fn open_guessing(file: &'a [u8], options: &OpenOptions<'_>) -> Result<Object<'a>, Error> {
        let open = |loader| Object::open_with(file, &OpenOptions { loader, ..*options });
        let (least, reason) = match &open(LoaderKind::Libbpf) {
            Ok(object) => match untyped(object).next() {
                Some(section) => (untyped(object).count(), GuessReason::NoType { section }),
                None => return open(LoaderKind::Libbpf),
            },
            Err(error) if is_convention(error.problem()) => {
                (usize::MAX, GuessReason::Refused(error.clone()))
            }
            Err(_) => return open(LoaderKind::Libbpf),
        };
        let others = LoaderKind::ALL.into_iter().skip(1);
        // An undefined symbol that BTF describes may be that of another object.
        let is_whole = |object: &Object<'_>| {
            let has_all = !object.externs.has_undefined() && !object.patches.has_unlinked();
            // Without its types an object is not relocated.
            let knows_types = object.loader.rules().has_enum64 || object.btf.is_some();
            has_all
                && !object.maps.ignores_members()
                && (knows_types || object.sections.btf.is_none())
        };
        let taken = others
            .filter_map(|loader| open(loader).ok())
            .filter(is_whole);
        let best = taken.min_by_key(|object| untyped(object).count());
        match best.filter(|object| untyped(object).count() < least) {
            Some(mut object) => {
                let loader = object.loader;
                let zeros = object.externs.zeros().to_vec();
                object.guess = Some(Guess {
                    loader,
                    reason,
                    zeros,
                });
                Ok(object)
            }
            None => open(LoaderKind::Libbpf),
        }
    }
}

/// Sections of programs whose names imply no type.
fn untyped(object: &Object<'_>) -> impl Iterator<Item = String> {
    let programs = object.programs().filter(|(_, code)| code.kind.is_none());
    programs.map(|(_, code)| code.section_name.to_string())
}

/// True for what another loader may accept.
fn is_convention(problem: &Problem) -> bool {
    match problem {
        Problem::Section(fault) => *fault == SectionFault::LegacyMaps,
        Problem::ProgramDef(fault) => *fault == ProgramDefFault::StaticProgram,
        Problem::Relocation(fault) => matches!(
            fault,
            RelocationFault::OtherLoadersMap { .. } | RelocationFault::CallOutsideText { .. }
        ),
        Problem::Extern(fault) => *fault == ExternFault::NotDescribed,
        Problem::Map(fault) => matches!(
            fault,
            MapFault::UnknownPinning(_) | MapFault::UnknownAttribute(_)
        ),
        _ => false,
    }
}

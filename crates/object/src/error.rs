//! Errors of opening and linking.
//!
//! Each module has an enumeration of its faults; [`Problem`] has a variant for each. [`Place`] is
//! the place in the file, as far as it is known: section, symbol, program, instruction,
//! source line.

use std::fmt;

use spec::Errno;
use spec::loader::LoaderKind;

use crate::attach::AttachFault;
use crate::container::ContainerFault;
use crate::datasec::DatasecFault;
use crate::elf::ElfFault;
use crate::externs::ExternFault;
use crate::linked::ProgramFault;
use crate::linker::LinkFault;
use crate::maps::{MapFault, StructOpsFault};
use crate::programs::ProgramDefFault;
use crate::relocate::RelocationFault;
use crate::sections::SectionFault;
use crate::types::BtfFault;

/// LIBBPF_ERRNO__FORMAT: the file has a wrong format.
pub(crate) const FORMAT: Errno = Errno(4001);
/// LIBBPF_ERRNO__ENDIAN: the file has the other byte order.
pub(crate) const ENDIAN: Errno = Errno(4003);
/// LIBBPF_ERRNO__RELOC: a relocation failed.
pub(crate) const RELOC: Errno = Errno(4005);

/// Error with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Parts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    problem: Problem,
    place: Place,
}

/// Place of an error; unknown parts are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// File, as named by the caller.
    pub file: Option<String>,
    /// Section.
    pub section: Option<String>,
    /// Symbol: a function, map or variable.
    pub symbol: Option<String>,
    /// Program that was being linked.
    pub program: Option<String>,
    /// Index of the instruction slot in its section.
    pub instruction: Option<usize>,
    /// Source line.
    pub line: Option<SourceLine>,
    /// Loader whose conventions are broken.
    pub loader: LoaderKind,
}

/// Source line of `.BTF.ext`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// File name.
    pub file: String,
    /// Line number from 1.
    pub line: u32,
    /// Column from 1.
    pub column: u32,
    /// Text of the line.
    pub text: String,
}

/// Party that can fix an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The file is damaged, or the compiler emitted something unsupported.
    File,
    /// The source or the options are wrong.
    User,
    /// The kernel lacks something.
    Target,
    /// libbpf accepts it; Beebox does not support it.
    Beebox,
}

impl Error {
    /// Error without a place.
    pub fn new(problem: impl Into<Problem>) -> Error {
        Error(Box::new(Parts {
            problem: problem.into(),
            place: Place::default(),
        }))
    }

    /// Problem.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// Place.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Party that can fix the error.
    pub fn blame(&self) -> Blame {
        self.0.problem.blame()
    }

    /// Adds the file.
    #[must_use]
    pub fn in_file(self, name: impl fmt::Display) -> Error {
        self.with(|place| place.file = place.file.take().or_else(|| Some(name.to_string())))
    }

    /// Adds the section.
    #[must_use]
    pub fn in_section(self, name: impl fmt::Display) -> Error {
        self.with(|place| place.section = place.section.take().or_else(|| Some(name.to_string())))
    }

    /// Adds the symbol.
    #[must_use]
    pub fn about(self, symbol: impl fmt::Display) -> Error {
        self.with(|place| place.symbol = place.symbol.take().or_else(|| Some(symbol.to_string())))
    }

    /// Adds the program that was being linked.
    #[must_use]
    pub fn in_program(self, name: impl fmt::Display) -> Error {
        self.with(|place| place.program = place.program.take().or_else(|| Some(name.to_string())))
    }

    /// Adds the slot in the section.
    #[must_use]
    pub fn at(self, slot: usize) -> Error {
        self.with(|place| place.instruction = place.instruction.or(Some(slot)))
    }

    /// Adds the source line.
    #[must_use]
    pub fn on_line(self, line: Option<SourceLine>) -> Error {
        self.with(|place| place.line = place.line.take().or(line))
    }

    /// Sets the loader whose conventions count.
    #[must_use]
    pub(crate) fn by(self, loader: LoaderKind) -> Error {
        self.with(|place| place.loader = loader)
    }

    fn with(mut self, set: impl FnOnce(&mut Place)) -> Error {
        set(&mut self.0.place);
        self
    }
}

/// Defines [`Problem`] over the faults of the modules.
macro_rules! problems {
    ($($(#[$about:meta])* $variant:ident($fault:ty),)*) => {
        /// Problem of an error, by module.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Problem {
            $($(#[$about])* $variant($fault),)*
        }

        impl Problem {
            /// Party that can fix it.
            pub fn blame(&self) -> Blame {
                match self {
                    $(Problem::$variant(fault) => fault.blame(),)*
                }
            }

            /// Error number of libbpf 7.2: one of the system, or of `enum libbpf_errno` from
            /// 4000.
            pub fn errno(&self) -> Errno {
                match self {
                    $(Problem::$variant(fault) => fault.errno(),)*
                }
            }
        }

        impl fmt::Display for Problem {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Problem::$variant(fault) => fault.fmt(f),)*
                }
            }
        }

        impl std::error::Error for Problem {}

        $(impl From<$fault> for Problem {
            fn from(fault: $fault) -> Problem {
                Problem::$variant(fault)
            }
        })*
    };
}

problems! {
    /// ELF file.
    Elf(ElfFault),
    /// File of another kind.
    Container(ContainerFault),
    /// Contents of a section.
    Section(SectionFault),
    /// BTF or BTF.ext.
    Btf(BtfFault),
    /// Boundaries of a program in its section.
    ProgramDef(ProgramDefFault),
    /// DATASEC in BTF.
    Datasec(DatasecFault),
    /// Map.
    Map(MapFault),
    /// struct_ops.
    StructOps(StructOpsFault),
    /// Extern.
    Extern(ExternFault),
    /// Static linking.
    Linker(LinkFault),
    /// Relocation of an instruction.
    Relocation(RelocationFault),
    /// Attach target.
    Attach(AttachFault),
    /// Program as a whole.
    Program(ProgramFault),
}

impl Problem {
    /// True if the file is damaged or of another format, whatever the loader's conventions are.
    fn is_of_format(&self) -> bool {
        match self {
            Problem::Elf(_) | Problem::Container(_) => true,
            Problem::Btf(fault) => matches!(fault, BtfFault::Btf(_) | BtfFault::Ext(_)),
            Problem::Section(_)
            | Problem::ProgramDef(_)
            | Problem::Datasec(_)
            | Problem::Map(_)
            | Problem::StructOps(_)
            | Problem::Extern(_)
            | Problem::Linker(_)
            | Problem::Relocation(_)
            | Problem::Attach(_)
            | Problem::Program(_) => false,
        }
    }
}

impl<P: Into<Problem>> From<P> for Error {
    fn from(problem: P) -> Error {
        Error::new(problem)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut part = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            let result = write!(f, "{separator}{text}");
            separator = ", ";
            result
        };
        if let Some(file) = &self.file {
            part(f, format_args!("{file}"))?;
        }
        if let Some(section) = &self.section {
            part(f, format_args!("section {section}"))?;
        }
        if let Some(program) = &self.program {
            part(f, format_args!("program {program}"))?;
        }
        if let Some(symbol) = &self.symbol {
            part(f, format_args!("{symbol}"))?;
        }
        if let Some(instruction) = self.instruction {
            part(f, format_args!("instruction {instruction}"))?;
        }
        if let Some(line) = &self.line {
            part(
                f,
                format_args!("{}:{}:{}", line.file, line.line, line.column),
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.0.place.to_string();
        match place.is_empty() {
            true => self.0.problem.fmt(f)?,
            false => write!(f, "{place}: {}", self.0.problem)?,
        }
        match self.0.place.loader {
            LoaderKind::Libbpf => Ok(()),
            _ if self.0.problem.is_of_format() => Ok(()),
            loader => write!(f, " (conventions of {loader})"),
        }
    }
}

impl std::error::Error for Error {}

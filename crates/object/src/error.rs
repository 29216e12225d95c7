//! What can go wrong between a file and linked programs: what, where, whose fault.
//!
//! Each room has an enumeration of its own faults; [`Problem`] joins them, and
//! [`Place`] says where in the file it was, as far as is known: section, symbol,
//! program, instruction, source line.

use std::fmt;

use crate::attach::AttachFault;
use crate::container::ContainerFault;
use crate::datasec::DatasecFault;
use crate::elf::ElfFault;
use crate::externs::ExternFault;
use crate::linked::ProgramFault;
use crate::linker::LinkFault;
use crate::maps::{MapFault, StructOpsFault};
use crate::programs::CodeFault;
use crate::relocate::RelocationFault;
use crate::sections::SectionFault;
use crate::types::TypesFault;

/// libbpf's numbers: the file is not what it should be.
pub(crate) const FORMAT: i32 = 4001;
/// The file is of the other byte order.
pub(crate) const ENDIAN: i32 = 4003;
/// A relocation can't be done.
pub(crate) const RELOC: i32 = 4005;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Parts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    problem: Problem,
    place: Place,
}

/// Where it is; what is not known is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, as its opener calls it.
    pub file: Option<String>,
    /// The section.
    pub section: Option<String>,
    /// The symbol: a function, a map, a variable.
    pub symbol: Option<String>,
    /// The program that was being linked.
    pub program: Option<String>,
    /// The instruction, in slots from the start of the section.
    pub instruction: Option<usize>,
    /// The source line.
    pub line: Option<SourceLine>,
}

/// A line of the source, as `.BTF.ext` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The text.
    pub text: String,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The file is damaged, or its compiler made something that no loader takes.
    File,
    /// The program asks for what it can't have, or was given wrong options.
    User,
    /// The kernel that it is linked for lacks something.
    Target,
    /// Linux's loader takes it; Beebox does not.
    Beebox,
}

impl Error {
    /// Something is wrong, nobody knows where yet.
    pub fn new(problem: impl Into<Problem>) -> Error {
        Error(Box::new(Parts {
            problem: problem.into(),
            place: Place::default(),
        }))
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// Where.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        self.0.problem.blame()
    }

    /// The same, in this file.
    #[must_use]
    pub fn in_file(self, name: impl fmt::Display) -> Error {
        self.with(|place| place.file = place.file.take().or_else(|| Some(name.to_string())))
    }

    /// The same, in this section.
    #[must_use]
    pub fn in_section(self, name: impl fmt::Display) -> Error {
        self.with(|place| place.section = place.section.take().or_else(|| Some(name.to_string())))
    }

    /// The same, about this symbol.
    #[must_use]
    pub fn about(self, symbol: impl fmt::Display) -> Error {
        self.with(|place| place.symbol = place.symbol.take().or_else(|| Some(symbol.to_string())))
    }

    /// The same, while this program was linked.
    #[must_use]
    pub fn in_program(self, name: impl fmt::Display) -> Error {
        self.with(|place| place.program = place.program.take().or_else(|| Some(name.to_string())))
    }

    /// The same, at this slot of the section.
    #[must_use]
    pub fn at(self, slot: usize) -> Error {
        self.with(|place| place.instruction = place.instruction.or(Some(slot)))
    }

    /// The same, on this line of the source.
    #[must_use]
    pub fn on_line(self, line: Option<SourceLine>) -> Error {
        self.with(|place| place.line = place.line.take().or(line))
    }

    fn with(mut self, set: impl FnOnce(&mut Place)) -> Error {
        set(&mut self.0.place);
        self
    }
}

/// Each room's faults are problems, and know whose they are and what libbpf calls
/// them.
macro_rules! problems {
    ($($(#[$about:meta])* $variant:ident($fault:ty),)*) => {
        /// What is wrong.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Problem {
            $($(#[$about])* $variant($fault),)*
        }

        impl Problem {
            /// Whose fault it is.
            pub fn blame(&self) -> Blame {
                match self {
                    $(Problem::$variant(fault) => fault.blame(),)*
                }
            }

            /// The number of the error with which libbpf 7.2 ends: the system's, or
            /// from 4000 on its own (`enum libbpf_errno`).
            pub fn errno(&self) -> i32 {
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

        $(impl From<$fault> for Problem {
            fn from(fault: $fault) -> Problem {
                Problem::$variant(fault)
            }
        })*
    };
}

problems! {
    /// The file as a file.
    Elf(ElfFault),
    /// A file that is no object.
    Container(ContainerFault),
    /// What a section holds.
    Section(SectionFault),
    /// The types.
    Types(TypesFault),
    /// A program as a piece of its section.
    Code(CodeFault),
    /// The types of a section.
    Datasec(DatasecFault),
    /// A map.
    Map(MapFault),
    /// A table of functions for the kernel.
    StructOps(StructOpsFault),
    /// Something that is expected of the kernel.
    Extern(ExternFault),
    /// Files that are to be one.
    Linker(LinkFault),
    /// What an instruction refers to.
    Relocation(RelocationFault),
    /// What a program attaches to.
    Attach(AttachFault),
    /// A program as a whole.
    Program(ProgramFault),
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
            true => self.0.problem.fmt(f),
            false => write!(f, "{place}: {}", self.0.problem),
        }
    }
}

impl std::error::Error for Error {}

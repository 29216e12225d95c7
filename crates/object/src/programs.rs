//! Programs and functions: a section of instructions, cut where its symbols say.
//!
//! Each function symbol in a section of instructions is one [`Code`]: a program, or,
//! in `.text`, a function that programs call. They stand by section and place, as
//! libbpf keeps them, so that the one that a slot belongs to is found by halving.
//! Instructions stay in the file until somebody links them.

use std::fmt;

use btf::Name;
use isa::ebpf::RawInsn;
use program::AttachTarget;
pub use program::ProgramId;
use spec::programs::{AttachType, LoadFlags, ProgramType, SectionRule};

use crate::elf::{Binding, Elf, ElfFault, Section, SectionId, Symbol, SymbolKind};
use crate::error::{Blame, Error, FORMAT};
use crate::sections::{Role, Sections};

/// A program, or a function that programs call.
#[derive(Clone, Debug)]
pub struct Code<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// The section that it is in.
    pub section: SectionId,
    /// The name of the section, without a question mark before it.
    pub section_name: Name<'a>,
    /// Its first slot, from the start of the section.
    pub start: usize,
    /// Its instructions as they stand in the file.
    pub(crate) slots: &'a [[u8; 8]],
    /// Is it a function that programs call?
    pub is_function: bool,
    /// Can other files call it?
    pub is_global: bool,
    /// Is it global, but for its own module only? The kernel then gets to know it
    /// as a static function.
    pub is_hidden: bool,
    /// Is it to be loaded?
    pub autoload: bool,
    /// What the name of the section says; `None` if nobody knows it, or if the
    /// user gave the program another type.
    pub rule: Option<&'static SectionRule>,
    /// Its type.
    pub kind: Option<ProgramType>,
    /// Where it attaches, if that is to be said.
    pub attach: Option<AttachType>,
    /// What the user asks of the kernel; what the section says comes to it.
    pub flags: LoadFlags,
    /// What it attaches to, if the user says so.
    pub attach_target: Option<AttachTarget>,
}

/// What is wrong with a program as a piece of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeFault {
    /// It ends behind the end of its section.
    BeyondSection {
        /// Where it starts, in bytes.
        offset: u64,
        /// Bytes.
        size: u64,
    },
    /// It is static, and not in `.text`.
    StaticProgram,
    /// It is empty, or does not consist of whole instructions.
    Misshapen {
        /// Where it starts, in bytes.
        offset: u64,
        /// Bytes.
        size: u64,
    },
}

impl CodeFault {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            CodeFault::StaticProgram => Blame::User,
            _ => Blame::File,
        }
    }

    /// The number of the error with which libbpf ends.
    pub fn errno(&self) -> i32 {
        match self {
            CodeFault::BeyondSection { .. } => FORMAT,
            CodeFault::StaticProgram => 95,
            CodeFault::Misshapen { .. } => 22,
        }
    }
}

impl fmt::Display for CodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeFault::BeyondSection { offset, size } => write!(
                f,
                "it has {size} bytes from {offset} on and ends behind its section"
            ),
            CodeFault::StaticProgram => write!(
                f,
                "a static function outside .text: drop its SEC() or its `static`"
            ),
            CodeFault::Misshapen { offset, size } => write!(
                f,
                "{size} bytes from {offset} on are no whole number of instructions"
            ),
        }
    }
}

/// All programs and functions of an object, by section and place.
#[derive(Clone, Debug, Default)]
pub struct Codes<'a> {
    all: Vec<Code<'a>>,
}

impl<'a> Codes<'a> {
    /// Cuts the sections of instructions.
    pub fn of(elf: &Elf<'a>, sections: &Sections) -> Result<Codes<'a>, Error> {
        let mut functions: Vec<(&Symbol, SectionId)> = elf
            .symbols()
            .iter()
            .filter(|symbol| symbol.kind == SymbolKind::Function)
            .filter_map(|symbol| Some((symbol, symbol.section()?)))
            .filter(|(_, section)| sections.role(*section) == Role::Code)
            .collect();
        // The order decides which fault is found first.
        functions.sort_by_key(|(_, section)| *section);
        let mut all = Vec::with_capacity(functions.len());
        for (symbol, id) in functions {
            let Some(section) = elf.section(id) else {
                continue;
            };
            let is_function = sections.text == Some(id);
            let code = Code::cut(elf, symbol, section, is_function);
            all.push(code.map_err(|error| error.in_section(section.name))?);
        }
        all.sort_by_key(|code| (code.section, code.start));
        Ok(Codes { all })
    }

    /// Every program and function, by number.
    pub fn iter(&self) -> impl Iterator<Item = (ProgramId, &Code<'a>)> {
        self.all
            .iter()
            .zip(0..)
            .map(|(code, id)| (ProgramId(id), code))
    }

    /// The programs, without the functions that they call.
    pub fn programs(&self) -> impl Iterator<Item = (ProgramId, &Code<'a>)> {
        self.iter().filter(|(_, code)| !code.is_function)
    }

    /// How many there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The one of this number.
    pub fn get(&self, id: ProgramId) -> Option<&Code<'a>> {
        self.all.get(id.0 as usize)
    }

    /// The one of this number, to change.
    pub fn get_mut(&mut self, id: ProgramId) -> Option<&mut Code<'a>> {
        self.all.get_mut(id.0 as usize)
    }

    /// The program of this name; functions that programs call are no programs.
    pub fn program_named(&self, name: &[u8]) -> Option<ProgramId> {
        let named = |(_, code): &(ProgramId, &Code<'a>)| code.name.as_bytes() == name;
        self.programs().find(named).map(|(id, _)| id)
    }

    /// Up to where slots from its start on belong to this one, counted from the start
    /// of its section: where it ends, or another starts.
    pub(crate) fn own_end(&self, id: ProgramId) -> usize {
        let Some([code, rest @ ..]) = self.all.get(id.0 as usize..) else {
            return 0;
        };
        let next = rest.first().filter(|next| next.section == code.section);
        let end = code.start + code.len();
        next.map_or(end, |next| end.min(next.start))
    }

    /// The one that a slot of a section belongs to.
    pub fn at(&self, section: SectionId, slot: usize) -> Option<ProgramId> {
        let after = self
            .all
            .partition_point(|code| (code.section, code.start) <= (section, slot));
        let at = after.checked_sub(1)?;
        let code = &self.all[at];
        let is_inside = code.section == section && slot - code.start < code.slots.len();
        is_inside.then_some(ProgramId(at as u32))
    }
}

impl<'a> Code<'a> {
    fn cut(
        elf: &Elf<'a>,
        symbol: &Symbol,
        section: &Section<'a>,
        is_function: bool,
    ) -> Result<Code<'a>, Error> {
        let name = elf.symbol_name(symbol).ok_or(ElfFault::NoName)?;
        Code::cut_named(name, symbol, section, is_function)
            .map_err(|fault| Error::from(fault).about(name))
    }

    fn cut_named(
        name: Name<'a>,
        symbol: &Symbol,
        section: &Section<'a>,
        is_function: bool,
    ) -> Result<Code<'a>, CodeFault> {
        let (offset, size) = (symbol.value, symbol.size);
        let beyond = CodeFault::BeyondSection { offset, size };
        let data = section.data().map_err(|_| beyond)?;
        let end = offset.checked_add(size).ok_or(beyond)?;
        let bytes = data.get(offset as usize..end as usize).ok_or(beyond)?;
        let is_global = symbol.binding != Binding::Local;
        if !is_function && !is_global {
            return Err(CodeFault::StaticProgram);
        }
        let (slots, rest) = bytes.as_chunks::<8>();
        if slots.is_empty() || !rest.is_empty() || !offset.is_multiple_of(8) {
            return Err(CodeFault::Misshapen { offset, size });
        }
        let stated = section.name.as_bytes();
        let section_name = stated.strip_prefix(b"?");
        let autoload = section_name.is_none();
        let section_name = Name::new(section_name.unwrap_or(stated));
        let rule = section_name.to_str().and_then(SectionRule::find);
        Ok(Code {
            name,
            section: section.id,
            section_name,
            start: (offset / 8) as usize,
            slots,
            is_function,
            is_global,
            is_hidden: is_global && symbol.hidden,
            autoload,
            rule: rule.filter(|_| !is_function),
            kind: rule.filter(|_| !is_function).map(|rule| rule.kind),
            attach: rule.and_then(|rule| rule.attach),
            flags: LoadFlags::default(),
            attach_target: None,
        })
    }

    /// How many slots it has.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Its instructions as they stand in the file, nothing relocated.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = RawInsn> + '_ {
        self.slots
            .iter()
            .map(|bytes| RawInsn::from_le_bytes(*bytes))
    }

    /// What its section asks of the kernel.
    pub fn section_flags(&self) -> LoadFlags {
        self.rule
            .map_or_else(LoadFlags::default, |rule| rule.traits.load_flags())
    }

    /// Gives it another type. What its section says about attaching and flags
    /// counts no longer then.
    pub fn set_kind(&mut self, kind: ProgramType) {
        if self.kind != Some(kind) {
            self.kind = Some(kind);
            self.rule = None;
        }
    }
}

//! Programs and functions of an object: executable sections, cut at their function
//! symbols.
//!
//! Each function symbol in an executable section is a [`ProgramDef`]: a program, or in
//! `.text` a function that programs call. They are sorted by section and offset, as in
//! libbpf, so that a binary search finds the one that contains a slot. Instructions stay
//! in the file until linking.

use std::collections::HashSet;
use std::fmt;

use btf::Name;
use isa::ebpf::RawInsn;
use program::AttachTarget;
pub use program::ProgramId;
use spec::Errno;
use spec::loader::{LoaderKind, LoaderRules};
use spec::programs::{AttachType, LoadFlags, ProgramType, SectionDef};

use crate::elf::{Binding, Elf, ElfFault, Section, SectionId, Symbol, SymbolKind};
use crate::error::{Blame, Error, FORMAT};
use crate::sections::{Role, Sections};

/// A program, or a function that programs call (libbpf's `struct bpf_program`).
#[derive(Clone, Debug)]
pub struct ProgramDef<'a> {
    /// Name.
    pub name: Name<'a>,
    /// Section.
    pub section: SectionId,
    /// Name of the section, without a leading `?`.
    pub section_name: Name<'a>,
    /// Index of the first slot in the section.
    pub start: usize,
    /// Instructions in the file.
    pub(crate) slots: &'a [[u8; 8]],
    /// True for a function that programs call.
    pub is_function: bool,
    /// True for a program that another function calls, as some loaders allow.
    pub(crate) is_called: bool,
    /// True if the symbol is global.
    pub is_global: bool,
    /// True if the symbol is global with hidden visibility; the kernel gets it as a
    /// static function.
    pub is_hidden: bool,
    /// True if the program is loaded.
    pub autoload: bool,
    /// Section definition; `None` if the section name is unknown, or if the caller set
    /// the program type.
    pub rule: Option<&'static SectionDef>,
    /// Program type.
    pub kind: Option<ProgramType>,
    /// Expected attach type, if one is stated.
    pub attach: Option<AttachType>,
    /// Load flags set by the caller, in addition to those of the section.
    pub flags: LoadFlags,
    /// Attach target set by the caller.
    pub attach_target: Option<AttachTarget>,
    /// Function, hook or tracepoint that the caller names in place of the section.
    pub attach_name: Option<String>,
}

/// Fault of the boundaries of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramDefFault {
    /// The program ends beyond its section.
    BeyondSection {
        /// Offset of its start in bytes.
        offset: u64,
        /// Size in bytes.
        size: u64,
    },
    /// The function is static outside `.text`.
    StaticProgram,
    /// The loader refuses executable sections whose names imply no program type.
    UnknownSection,
    /// The loader refuses two functions of one name in a section.
    SameName,
    /// The loader refuses bytes that are in no function.
    Gap {
        /// Their offset.
        offset: u64,
    },
    /// The function is empty, or not a whole number of instructions.
    Misshapen {
        /// Offset of its start in bytes.
        offset: u64,
        /// Size in bytes.
        size: u64,
    },
}

impl ProgramDefFault {
    /// Party that can fix it.
    pub fn blame(&self) -> Blame {
        match self {
            ProgramDefFault::StaticProgram | ProgramDefFault::UnknownSection => Blame::User,
            _ => Blame::File,
        }
    }

    /// Error number of libbpf.
    pub fn errno(&self) -> Errno {
        match self {
            ProgramDefFault::BeyondSection { .. } => FORMAT,
            ProgramDefFault::StaticProgram => Errno::EOPNOTSUPP,
            ProgramDefFault::UnknownSection
            | ProgramDefFault::SameName
            | ProgramDefFault::Gap { .. }
            | ProgramDefFault::Misshapen { .. } => Errno::EINVAL,
        }
    }
}

impl fmt::Display for ProgramDefFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramDefFault::BeyondSection { offset, size } => write!(
                f,
                "{size} bytes at offset {offset} reach beyond the section"
            ),
            ProgramDefFault::StaticProgram => write!(
                f,
                "static function outside .text: remove its SEC() or its `static`"
            ),
            ProgramDefFault::UnknownSection => write!(
                f,
                "section name implies no program type, which this loader refuses"
            ),
            ProgramDefFault::SameName => write!(
                f,
                "two functions of the section have this name, which this loader refuses"
            ),
            ProgramDefFault::Gap { offset } => write!(
                f,
                "no function has the bytes at offset {offset}, which this loader refuses"
            ),
            ProgramDefFault::Misshapen { offset, size } => write!(
                f,
                "{size} bytes at offset {offset} are not a whole number of instructions"
            ),
        }
    }
}

impl std::error::Error for ProgramDefFault {}

/// Programs and functions of an object, by section and offset.
#[derive(Clone, Debug, Default)]
pub struct ProgramDefs<'a> {
    all: Vec<ProgramDef<'a>>,
}

impl<'a> ProgramDefs<'a> {
    /// Cuts the executable sections into programs, by the conventions of a loader.
    pub fn of(
        elf: &Elf<'a>,
        sections: &Sections,
        loader: LoaderKind,
    ) -> Result<ProgramDefs<'a>, Error> {
        let rules = loader.rules();
        let mut defs = ProgramDefs::cut(elf, sections, (rules, rules.calls_programs))?;
        if rules.has_tail_call_sections {
            defs.type_tail_calls();
        }
        if let [only] = &mut defs.all[..]
            && rules.has_text_program
        {
            only.is_function = false;
        }
        if rules.refuses_equal_names {
            defs.check_names(elf)?;
        }
        if rules.refuses_gaps {
            defs.check_gaps(elf, sections)?;
        }
        Ok(defs)
    }

    /// As [`ProgramDefs::of`], with static functions outside `.text` as programs.
    pub(crate) fn with_static(
        elf: &Elf<'a>,
        sections: &Sections,
    ) -> Result<ProgramDefs<'a>, Error> {
        ProgramDefs::cut(elf, sections, (LoaderKind::Libbpf.rules(), true))
    }

    /// Checks that functions of a section have different names.
    fn check_names(&self, elf: &Elf<'_>) -> Result<(), Error> {
        let mut names = HashSet::new();
        for code in &self.all {
            if !names.insert((code.section, code.name.as_bytes())) {
                let error = Error::from(ProgramDefFault::SameName).about(code.name);
                let section = elf.section(code.section).map(|section| section.name);
                return Err(error.in_section(section.unwrap_or_default()));
            }
        }
        Ok(())
    }

    /// Checks that functions cover their sections.
    fn check_gaps(&self, elf: &Elf<'_>, sections: &Sections) -> Result<(), Error> {
        let of_functions = |section: &&Section<'_>| sections.is_text(section.id);
        for section in elf.sections().iter().filter(of_functions) {
            let mut end = 0;
            let codes = self.all.iter().filter(|code| code.section == section.id);
            for code in codes {
                if code.start != end {
                    break;
                }
                end += code.len();
            }
            if end as u64 * 8 != section.size {
                let offset = end as u64 * 8;
                let error = Error::from(ProgramDefFault::Gap { offset });
                return Err(error.in_section(section.name));
            }
        }
        Ok(())
    }

    /// Programs in sections `ID/KEY` have the type of the program that jumps to them: the first
    /// whose section name implies one.
    fn type_tail_calls(&mut self) {
        let main = self.programs().find_map(|(_, code)| code.rule);
        for code in &mut self.all {
            if code.tail_call_key().is_some() && !code.is_function {
                code.rule = code.rule.or(main);
                code.kind = code.rule.map(|rule| rule.kind);
                code.attach = code.rule.and_then(|rule| rule.attach);
            }
        }
    }

    fn cut(
        elf: &Elf<'a>,
        sections: &Sections,
        rules: (&LoaderRules, bool),
    ) -> Result<ProgramDefs<'a>, Error> {
        let mut functions: Vec<(&Symbol, SectionId)> = elf
            .symbols()
            .iter()
            .filter(|symbol| symbol.kind == SymbolKind::Function)
            .filter_map(|symbol| Some((symbol, symbol.section()?)))
            .filter(|(_, section)| sections.role(*section) == Role::Code)
            .collect();
        // The order decides which fault is reported first, as in libbpf.
        functions.sort_by_key(|(_, section)| *section);
        let mut all = Vec::with_capacity(functions.len());
        for functions in functions.chunk_by(|one, next| one.1 == next.1) {
            let id = functions[0].1;
            let Some(section) = elf.section(id) else {
                continue;
            };
            let code = CodeSection::of(section, sections.is_text(id), rules);
            for (symbol, _) in functions {
                let fault = |error: Error| error.in_section(section.name);
                let name = elf.symbol_name(symbol).ok_or(ElfFault::NoName);
                let name = name.map_err(|error| fault(error.into()))?;
                let slots = code.slots_of(symbol);
                let slots = slots.map_err(|error| fault(Error::from(error).about(name)))?;
                all.push(code.cut(name, symbol, slots));
            }
        }
        all.sort_by_key(|code| (code.section, code.start));
        Ok(ProgramDefs { all })
    }

    /// Every program and function, by index.
    pub fn iter(&self) -> impl Iterator<Item = (ProgramId, &ProgramDef<'a>)> {
        self.all
            .iter()
            .zip(0..)
            .map(|(code, id)| (ProgramId(id), code))
    }

    /// Programs, without the functions that they call.
    pub fn programs(&self) -> impl Iterator<Item = (ProgramId, &ProgramDef<'a>)> {
        self.iter().filter(|(_, code)| !code.is_function)
    }

    /// Number of programs and functions.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Program or function with this index.
    pub fn get(&self, id: ProgramId) -> Option<&ProgramDef<'a>> {
        self.all.get(id.0 as usize)
    }

    /// Mutable program or function with this index.
    pub fn get_mut(&mut self, id: ProgramId) -> Option<&mut ProgramDef<'a>> {
        self.all.get_mut(id.0 as usize)
    }

    /// Program with this name, not a function.
    pub fn program_named(&self, name: &[u8]) -> Option<ProgramId> {
        let named = |(_, code): &(ProgramId, &ProgramDef<'a>)| code.name.as_bytes() == name;
        self.programs().find(named).map(|(id, _)| id)
    }

    /// Program or function that contains a slot of a section.
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

/// Executable section, with what its programs have in common.
struct CodeSection<'s, 'a> {
    section: &'s Section<'a>,
    /// Name, without a leading `?`.
    name: Name<'a>,
    /// True if its programs are loaded.
    autoload: bool,
    /// True if it has functions that programs call.
    is_function: bool,
    rule: Option<&'static SectionDef>,
    loader: &'s LoaderRules,
    keeps_static: bool,
}

impl<'s, 'a> CodeSection<'s, 'a> {
    fn of(
        section: &'s Section<'a>,
        is_function: bool,
        (loader, keeps_static): (&'s LoaderRules, bool),
    ) -> CodeSection<'s, 'a> {
        let stated = section.name.as_bytes();
        let optional = stated
            .strip_prefix(b"?")
            .filter(|_| loader.has_optional_programs);
        let name = Name::new(optional.unwrap_or(stated));
        let find = |name| SectionDef::find(loader.sections, name);
        CodeSection {
            section,
            name,
            autoload: optional.is_none(),
            is_function,
            rule: name.to_str().and_then(find).filter(|_| !is_function),
            loader,
            keeps_static,
        }
    }

    /// Instructions of a function.
    fn slots_of(&self, symbol: &Symbol) -> Result<&'a [[u8; 8]], ProgramDefFault> {
        let (offset, size) = (symbol.value, symbol.size);
        let beyond = ProgramDefFault::BeyondSection { offset, size };
        let data = self.section.data().map_err(|_| beyond)?;
        let end = offset.checked_add(size).ok_or(beyond)?;
        let bytes = data.get(offset as usize..end as usize).ok_or(beyond)?;
        let is_static = symbol.binding == Binding::Local;
        if !self.is_function && is_static && !self.keeps_static {
            return Err(ProgramDefFault::StaticProgram);
        }
        let (slots, rest) = bytes.as_chunks::<8>();
        if slots.is_empty() || !rest.is_empty() || !offset.is_multiple_of(8) {
            return Err(ProgramDefFault::Misshapen { offset, size });
        }
        if self.rule.is_none() && !self.is_function && self.loader.refuses_other_sections {
            return Err(ProgramDefFault::UnknownSection);
        }
        Ok(slots)
    }

    fn cut(&self, name: Name<'a>, symbol: &Symbol, slots: &'a [[u8; 8]]) -> ProgramDef<'a> {
        let is_global = symbol.binding != Binding::Local;
        ProgramDef {
            name,
            section: self.section.id,
            section_name: self.name,
            start: (symbol.value / 8) as usize,
            slots,
            is_function: self.is_function,
            is_called: false,
            is_global,
            is_hidden: is_global && symbol.hidden,
            autoload: self.autoload,
            rule: self.rule,
            kind: self.rule.map(|rule| rule.kind),
            attach: self.rule.and_then(|rule| rule.attach),
            flags: LoadFlags::default(),
            attach_target: None,
            attach_name: None,
        }
    }
}

impl<'a> ProgramDef<'a> {
    /// True if other functions call it.
    pub(crate) fn is_callee(&self) -> bool {
        self.is_function || self.is_called
    }

    /// Id of a program array and key of this program in it, of a section `ID/KEY`.
    pub(crate) fn tail_call_key(&self) -> Option<(u32, u32)> {
        let (id, key) = self.section_name.to_str()?.split_once('/')?;
        Some((section_number(id)?, section_number(key)?))
    }

    /// Number of slots.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Instructions in the file, not relocated.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = RawInsn> + '_ {
        self.slots
            .iter()
            .map(|bytes| RawInsn::from_le_bytes(*bytes))
    }

    /// Load flags of its section.
    pub fn section_flags(&self) -> LoadFlags {
        self.rule
            .map_or_else(LoadFlags::default, |rule| rule.flags.load_flags())
    }

    /// Sets the program type. Attach type and load flags of the section no longer apply.
    pub fn set_kind(&mut self, kind: ProgramType) {
        if self.kind != Some(kind) {
            self.kind = Some(kind);
            self.rule = None;
        }
    }
}

/// Number in a section name, as C reads it: decimal, `0x` or octal.
fn section_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u32::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}

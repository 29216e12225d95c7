//! References of slots, from ELF relocations.
//!
//! The symbol decides: an undefined one is an extern; one in `.text` a function; one in a
//! section of maps, data, an arena or jump tables an object there. Relocation types are
//! redundant and ignored, as in libbpf.

use program::{ExternId, MapId};

use crate::elf::{Binding, Elf, ElfFault, Section, SectionId, Symbol, SymbolId, SymbolKind};
use crate::error::Error;
use crate::externs::Externs;
use crate::maps::Maps;
use crate::programs::{ProgramDef, ProgramDefs, ProgramId};
use crate::relocate::RelocationFault;
use crate::sections::{Role, Sections};
use spec::loader::{LoaderRules, UndefinedRule};

/// A slot with a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    /// Slot index from the start of its program.
    pub(crate) slot: u32,
    /// Referenced object.
    pub(crate) goal: Goal,
}

/// Object that a slot refers to. The order is libbpf's, for several at one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Goal {
    /// Map.
    Map(MapId),
    /// Call of a function; offset in bytes from the start of its section, to which the call's
    /// immediate is added.
    Call { section: SectionId, offset: u32 },
    /// Global variable.
    Value { map: MapId, offset: u32 },
    /// Load of an extern.
    ExternLoad(ExternId),
    /// Call of a kfunc.
    ExternCall(ExternId),
    /// Address of a function; the immediate is added to the offset.
    Address { section: SectionId, offset: u32 },
    /// Jump table.
    JumpTable { offset: u32, size: u32 },
    /// Load of a constant that the loader defines.
    Constant(u64),
    /// Call of a function that the loader does not find: its program cannot be loaded.
    Unlinked(SymbolId),
}

/// Section and slot that slot `at` of a section with this immediate calls or takes the address
/// of; `None` if it does neither. Calls without a relocation are within `own`.
pub(crate) fn function_place(
    goal: Option<Goal>,
    own: Option<SectionId>,
    at: usize,
    imm: i32,
) -> Option<(Option<SectionId>, i64)> {
    match goal {
        // A call of a global function has the immediate -1; for a static one the symbol
        // is the section, and the immediate is relative to its start.
        Some(Goal::Call { section, offset }) => {
            Some((Some(section), i64::from(offset / 8) + i64::from(imm) + 1))
        }
        Some(Goal::Address { section, offset }) => {
            let slot = offset.wrapping_add(imm as u32) / 8;
            Some((Some(section), i64::from(slot)))
        }
        Some(_) => None,
        // Compilers resolve calls within a section.
        None => Some((own, at as i64 + i64::from(imm) + 1)),
    }
}

/// Program or function that a slot calls or takes the address of.
pub(crate) fn callee(
    (codes, sections): (&ProgramDefs<'_>, &Sections),
    code: &ProgramDef<'_>,
    slot: usize,
    (goal, imm): (Option<Goal>, i32),
) -> Option<ProgramId> {
    let own = sections.called_from(code.section);
    let (section, slot) = function_place(goal, own, code.start + slot, imm)?;
    codes.at(section?, usize::try_from(slot).ok()?)
}

/// References of all programs, sorted by program and slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patches {
    all: Vec<Patch>,
    /// Start of the references of each program, and the end of the last.
    starts: Vec<u32>,
}

impl Patches {
    /// References of a program, by slot.
    pub(crate) fn of(&self, program: ProgramId) -> &[Patch] {
        let at = program.0 as usize;
        match (self.starts.get(at), self.starts.get(at + 1)) {
            (Some(&from), Some(&to)) => &self.all[from as usize..to as usize],
            _ => &[],
        }
    }

    /// True if a function is called that the loader does not find.
    pub(crate) fn has_unlinked(&self) -> bool {
        let mut goals = self.all.iter().map(|patch| patch.goal);
        goals.any(|goal| matches!(goal, Goal::Unlinked(_)))
    }

    /// Sorts the collected references.
    pub(crate) fn new(mut collected: Vec<(ProgramId, Patch)>, programs: usize) -> Patches {
        collected.sort_by_key(|(program, patch)| (*program, patch.slot, patch.goal));
        let mut starts = Vec::with_capacity(programs + 1);
        for program in 0..=programs as u32 {
            let at = collected.partition_point(|(owner, _)| owner.0 < program);
            starts.push(at as u32);
        }
        let all = collected.into_iter().map(|(_, patch)| patch).collect();
        Patches { all, starts }
    }
}

/// Reader of relocations.
pub(crate) struct Reader<'o, 'a> {
    pub(crate) elf: &'o Elf<'a>,
    pub(crate) sections: &'o Sections,
    pub(crate) codes: &'o ProgramDefs<'a>,
    pub(crate) externs: &'o Externs,
    pub(crate) rules: &'static LoaderRules,
    pub(crate) maps: &'o Maps<'a>,
}

impl<'a> Reader<'_, 'a> {
    /// Reads the relocations of one executable section.
    pub(crate) fn read(
        &self,
        table: &Section<'a>,
        collected: &mut Vec<(ProgramId, Patch)>,
    ) -> Result<(), Error> {
        let target = self
            .elf
            .section(table.target)
            .ok_or(ElfFault::BadRelocations)?;
        let located = |error: Error| error.in_section(target.name);
        let bytes = target.data().map_err(|fault| located(fault.into()))?;
        let references = self
            .elf
            .references(table)
            .map_err(|fault| located(fault.into()))?;
        collected.reserve(references.len());
        for reference in references {
            let (relocation, symbol) = reference.map_err(|fault| located(fault.into()))?;
            let patch = self.read_one(target, bytes.len(), relocation.offset, symbol);
            collected.extend(patch.map_err(located)?);
        }
        Ok(())
    }

    fn read_one(
        &self,
        target: &Section<'_>,
        size: usize,
        offset: u64,
        symbol: &Symbol,
    ) -> Result<Option<(ProgramId, Patch)>, Error> {
        let section = symbol.section_number();
        if section as usize >= self.elf.sections().len() {
            return Err(ElfFault::NoSuchSection { section }.into());
        }
        if !offset.is_multiple_of(8) || offset >= size as u64 {
            return Err(ElfFault::RelocationOffset { offset }.into());
        }
        let slot = (offset / 8) as usize;
        // Between programs are overridden weak functions.
        let Some(program) = self.codes.at(target.id, slot) else {
            return Ok(None);
        };
        let Some(code) = self.codes.get(program) else {
            return Ok(None);
        };
        let local = slot - code.start;
        let goal = self.goal(code.slots[local], symbol).map_err(|fault| {
            let name = self.elf.display_name(symbol);
            Error::from(fault)
                .about(name)
                .in_program(code.name)
                .at(slot)
        })?;
        Ok(Some((
            program,
            Patch {
                slot: local as u32,
                goal,
            },
        )))
    }

    /// Object that an instruction with this symbol refers to.
    fn goal(&self, slot: [u8; 8], symbol: &Symbol) -> Result<Goal, RelocationFault> {
        let slot = isa::ebpf::RawInsn::from_le_bytes(slot);
        let is_call = slot.is_call();
        if !is_call && !slot.is_wide_load() {
            return Err(RelocationFault::NotRelocatable { code: slot.code });
        }
        let refuses_weak = !self.rules.has_weak_references;
        if let Some(value) = self.externs.constant(symbol.id).filter(|_| !is_call) {
            return match refuses_weak && self.externs.config_size().is_some() {
                true => Err(RelocationFault::UnknownExtern),
                false => Ok(Goal::Constant(value)),
            };
        }
        if symbol.is_extern() {
            return match self.externs.of_symbol(symbol.id) {
                Some((id, _)) if is_call => Ok(Goal::ExternCall(id)),
                Some((_, known)) if refuses_weak && known.weak && known.kind.is_config() => {
                    Err(RelocationFault::Weak)
                }
                Some((id, _)) => Ok(Goal::ExternLoad(id)),
                None if self.rules.undefined == UndefinedRule::Zero => {
                    Ok(Goal::Unlinked(symbol.id))
                }
                None => Err(RelocationFault::UnknownExtern),
            };
        }
        let section = symbol.section();
        if is_call {
            return self.call(slot.src(), symbol);
        }
        let section = section.ok_or(RelocationFault::Undefined)?;
        if self.is_function(section, symbol) {
            return match symbol.value.is_multiple_of(8) && slot.imm % 8 == 0 {
                true => Ok(Goal::Address {
                    section,
                    offset: symbol.value as u32,
                }),
                false => Err(RelocationFault::MisalignedFunction),
            };
        }
        self.variable(section, symbol)
    }

    fn call(&self, source: u8, symbol: &Symbol) -> Result<Goal, RelocationFault> {
        if source != isa::ebpf::PseudoCall::Local.number() {
            return Err(RelocationFault::NotALocalCall);
        }
        let called = symbol.section();
        let Some(section) = called.filter(|id| self.sections.has_functions(*id)) else {
            let section = self.section_name(called.unwrap_or_default());
            return Err(RelocationFault::CallOutsideText { section });
        };
        match symbol.value.is_multiple_of(8) {
            true => Ok(Goal::Call {
                section,
                offset: symbol.value as u32,
            }),
            false => Err(RelocationFault::MisalignedFunction),
        }
    }

    fn is_function(&self, section: SectionId, symbol: &Symbol) -> bool {
        self.sections.has_functions(section)
            && match symbol.binding {
                Binding::Local => symbol.kind == SymbolKind::Section,
                Binding::Global | Binding::Weak => symbol.kind == SymbolKind::Function,
                Binding::Other(_) => false,
            }
    }

    fn variable(&self, section: SectionId, symbol: &Symbol) -> Result<Goal, RelocationFault> {
        let offset = symbol.value as u32;
        if self.sections.arena == Some(section) {
            let map = self.maps.arena().ok_or(RelocationFault::NoArena)?;
            return Ok(Goal::Value { map, offset });
        }
        if self.sections.jump_tables == Some(section) {
            let size = symbol.size as u32;
            return Ok(Goal::JumpTable { offset, size });
        }
        if self.sections.maps == Some(section) || self.maps.has_legacy(section) {
            let map = self.maps.declared_at(section, symbol.value);
            let map = map.ok_or(RelocationFault::NoMap {
                offset: symbol.value,
            })?;
            if symbol.binding == Binding::Weak && !self.rules.has_weak_references {
                return Err(RelocationFault::Weak);
            }
            return Ok(Goal::Map(map));
        }
        let holds_variables = matches!(
            self.sections.role(section),
            Role::Data | Role::Constants | Role::Zeros
        );
        match self.maps.data_of(section).filter(|_| holds_variables) {
            Some(map) => Ok(Goal::Value { map, offset }),
            None => {
                let section = self.section_name(section);
                Err(match section.starts_with("maps/") {
                    true => RelocationFault::OtherLoadersMap { section },
                    false => RelocationFault::NotData { section },
                })
            }
        }
    }

    fn section_name(&self, id: SectionId) -> String {
        let section = self.elf.section(id);
        section
            .map(|section| section.name.to_string())
            .unwrap_or_default()
    }
}

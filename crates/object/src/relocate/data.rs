//! Relocation of maps, global variables and externs in assembled programs.

use std::collections::HashMap;

use btf::TypeId;
use isa::ebpf::{PseudoCall, PseudoLoad, RawInsn};
use program::{ExternId, ExternResolution, MapId};

use crate::elf::Elf;
use crate::error::Error;
use crate::externs::{ExternKind, Externs, ResolvedExterns};
use crate::maps::Maps;
use crate::programs::{ProgramDefs, ProgramId};
use crate::reference::{KFUNC_POISON, MAP_POISON, Reference, Referent};
use crate::relocate::RelocationFault;
use crate::relocate::assemble::{Assembly, Piece};
use crate::relocate::patches::{Goal, Patches};
use crate::sections::Sections;

/// Resolved maps and externs of an object.
pub(crate) struct Data<'o, 'a> {
    pub(crate) elf: &'o Elf<'a>,
    pub(crate) sections: &'o Sections,
    pub(crate) codes: &'o ProgramDefs<'a>,
    pub(crate) patches: &'o Patches,
    pub(crate) maps: &'o Maps<'a>,
    pub(crate) externs: &'o Externs,
    /// Resolution of each extern.
    pub(crate) resolved: &'o ResolvedExterns,
    /// Offset in bytes of the global variables in the arena.
    pub(crate) arena_offset: u32,
    /// Jump tables created so far.
    pub(crate) jump_tables: Vec<JumpTable>,
    /// Their indices, by program and offset.
    pub(crate) jump_table_at: HashMap<(ProgramId, u32), usize>,
}

/// A jump table: a map used by one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JumpTable {
    /// Target slots, from the start of the program.
    pub(crate) places: Vec<u32>,
}

impl Data<'_, '_> {
    /// Patches the slots of a program with references.
    pub(crate) fn patch(&mut self, main: ProgramId, made: &mut Assembly) -> Result<(), Error> {
        for index in 0..made.pieces.len() {
            let piece = made.pieces[index];
            let patches = self.patches;
            for patch in patches.of(piece.id) {
                let slot = piece.start + patch.slot;
                if let Goal::Unlinked(symbol) = patch.goal {
                    let name = self.elf.symbol(symbol).map(|it| self.elf.display_name(it));
                    let error = self.located(piece, patch.slot, RelocationFault::UnknownExtern);
                    let error = error.about(name.unwrap_or_default());
                    made.unlinked.get_or_insert(error);
                    continue;
                }
                let done = self.patch_one(main, piece, made, slot, patch.goal);
                done.map_err(|fault| self.located(piece, patch.slot, fault))?;
            }
        }
        // At one slot, CO-RE relocations are applied last.
        let is_core = |to| {
            matches!(
                to,
                Referent::Core(_) | Referent::MissingCore(_) | Referent::LeftOut(_)
            )
        };
        made.references
            .sort_by_key(|reference| (reference.slot, is_core(reference.to)));
        Ok(())
    }

    fn located(&self, piece: Piece, slot: u32, fault: RelocationFault) -> Error {
        let error = Error::from(fault);
        match self.codes.get(piece.id) {
            Some(code) => error.in_program(code.name).at(code.start + slot as usize),
            None => error,
        }
    }

    fn patch_one(
        &mut self,
        main: ProgramId,
        piece: Piece,
        made: &mut Assembly,
        slot: u32,
        goal: Goal,
    ) -> Result<(), RelocationFault> {
        let tail = &mut made.slots[slot as usize..];
        let to = match goal {
            // Already patched.
            Goal::Call { .. } | Goal::Address { .. } | Goal::Unlinked(_) => return Ok(()),
            Goal::ExternCall(id) => self.call(&mut tail[0], id),
            Goal::Map(map) => {
                let load = Load::of(tail)?;
                match self.is_created(map) {
                    true => load.map(map),
                    false => load.missing(map),
                }
            }
            Goal::Value { map, offset } => {
                let load = Load::of(tail)?;
                let base = match self.maps.arena() == Some(map) {
                    true => self.arena_offset,
                    false => 0,
                };
                let offset = (load.first.imm as u32)
                    .wrapping_add(offset)
                    .wrapping_add(base);
                match self.is_created(map) {
                    true => load.value(map, offset),
                    false => load.missing(map),
                }
            }
            Goal::ExternLoad(id) => self.load(Load::of(tail)?, id),
            Goal::Constant(value) => {
                Load::of(tail)?.number(value);
                return Ok(());
            }
            Goal::JumpTable { offset, size } => {
                let map = self.jump_table(main, piece, (offset, size))?;
                let load = Load::of(tail)?;
                load.first.off = 0;
                let offset = load.second.imm as u32;
                load.value(map, offset)
            }
        };
        made.references.push(Reference { slot, to });
        Ok(())
    }

    fn is_created(&self, map: MapId) -> bool {
        self.maps.get(map).is_some_and(|map| map.autocreate)
    }

    /// Patches an ld_imm64 of an extern.
    fn load(&self, load: Load<'_>, id: ExternId) -> Referent {
        let config = self.externs.get(id).and_then(|known| match known.kind {
            ExternKind::Config(value) => Some((self.maps.kconfig()?, value.offset)),
            _ => None,
        });
        if let Some((map, offset)) = config {
            return load.value(map, offset);
        }
        match self.resolved.get(id) {
            ExternResolution::Btf { id: ty, module } => {
                load.first.set_src(PseudoLoad::BtfId.number());
                load.first.imm = ty.0 as i32;
                load.second.imm = module.into();
                Referent::Typed {
                    object: id,
                    id: ty,
                    module,
                }
            }
            ExternResolution::Address(address) => {
                load.number(address);
                Referent::Address(id)
            }
            ExternResolution::Missing | ExternResolution::Unknown | ExternResolution::Kconfig => {
                load.number(0);
                Referent::Address(id)
            }
        }
    }

    /// Patches a kfunc call.
    fn call(&self, slot: &mut RawInsn, id: ExternId) -> Referent {
        match self.resolved.get(id) {
            ExternResolution::Btf {
                id: TypeId(ty),
                module,
            } => {
                slot.set_src(PseudoCall::Kfunc.number());
                slot.imm = ty as i32;
                slot.off = module as i16;
                Referent::Kfunc {
                    function: id,
                    id: TypeId(ty),
                    module,
                }
            }
            _ => {
                let imm = KFUNC_POISON.wrapping_add(id.0 as i32);
                *slot = RawInsn::call_helper(imm);
                Referent::MissingKfunc(id)
            }
        }
    }

    /// Map of a jump table; a program has one for each table start.
    fn jump_table(
        &mut self,
        program: ProgramId,
        piece: Piece,
        (offset, size): (u32, u32),
    ) -> Result<MapId, RelocationFault> {
        let first = self.maps.iter().len();
        if let Some(index) = self.jump_table_at.get(&(program, offset)) {
            return Ok(MapId((first + index) as u32));
        }
        let fault = RelocationFault::JumpTable { offset, size };
        let section = self
            .sections
            .jump_tables
            .and_then(|id| self.elf.section(id));
        let data = section
            .and_then(|section| section.data().ok())
            .unwrap_or_default();
        let end = offset.checked_add(size).ok_or(fault.clone())?;
        let bytes = data
            .get(offset as usize..end as usize)
            .ok_or(fault.clone())?;
        // The kernel refuses maps without entries.
        if !offset.is_multiple_of(8) || !size.is_multiple_of(8) || size == 0 {
            return Err(fault);
        }
        let start = self.codes.get(piece.id).map_or(0, |code| code.start as u64);
        let (entries, _) = bytes.as_chunks::<8>();
        let places = entries.iter().map(|entry| {
            let place = u64::from_le_bytes(*entry) / 8;
            let moved = place.wrapping_sub(start).wrapping_add(piece.start.into());
            u32::try_from(moved).map_err(|_| fault.clone())
        });
        let places = places.collect::<Result<_, _>>()?;
        let index = self.jump_tables.len();
        self.jump_table_at.insert((program, offset), index);
        self.jump_tables.push(JumpTable { places });
        Ok(MapId((first + index) as u32))
    }
}

/// The two slots of an ld_imm64.
struct Load<'s> {
    first: &'s mut RawInsn,
    second: &'s mut RawInsn,
}

impl<'s> Load<'s> {
    fn of(slots: &'s mut [RawInsn]) -> Result<Load<'s>, RelocationFault> {
        match slots {
            [first, second, ..] => Ok(Load { first, second }),
            _ => Err(RelocationFault::CutLoad),
        }
    }

    fn map(self, map: MapId) -> Referent {
        self.first.set_src(PseudoLoad::MapIdx.number());
        self.first.imm = map.0 as i32;
        Referent::Map(map)
    }

    fn value(self, map: MapId, offset: u32) -> Referent {
        self.first.set_src(PseudoLoad::MapIdxValue.number());
        self.first.imm = map.0 as i32;
        self.second.imm = offset as i32;
        Referent::Value { map, offset }
    }

    fn number(self, value: u64) {
        self.first.imm = value as i32;
        self.second.imm = (value >> 32) as i32;
    }

    /// Replaces the slots by calls of a non-existent helper.
    fn missing(self, map: MapId) -> Referent {
        let imm = MAP_POISON.wrapping_add(map.0 as i32);
        let call = RawInsn::call_helper(imm);
        *self.first = call;
        *self.second = call;
        Referent::MissingMap(map)
    }
}

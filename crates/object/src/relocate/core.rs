//! CO-RE relocations of instructions.
//!
//! [`btf::core`] resolves each relocation of `.BTF.ext`; this module patches the
//! instructions by libbpf's rules: the immediate of ALU instructions and ld_imm64, the
//! offset of loads and stores and, for pointers and unsigned fields, their size. An
//! instruction whose relocation fails becomes a call of a non-existent helper, so that
//! the program is refused only if it is reachable.

use btf::core::{Access, Resolution, Resolver};
use btf::ext::CoreSpec;
use btf::{Btf, BtfExt, Name};
use isa::ebpf::{PseudoLoad, RawInsn};

use crate::elf::Elf;
use crate::error::Error;
use crate::linked::Loaded;
use crate::programs::{ProgramDefs, ProgramId};
use crate::reference::{CORE_POISON, Reference, Referent};
use crate::relocate::patches::CALL;
use crate::relocate::{LARGEST, RelocationFault};
use spec::Kernel;

/// Maximum offset of a load or store.
const LARGEST_OFFSET: u64 = i16::MAX as u64;

/// Copies of the instructions of loaded programs and functions.
#[derive(Debug)]
pub(crate) struct Copies(Vec<Copied>);

/// Copy of a program or function; empty if it is not loaded.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    pub(crate) slots: Vec<RawInsn>,
    /// Applied relocations; slots are relative to its start.
    pub(crate) applied: Vec<Reference>,
}

impl Copies {
    /// Copies the instructions of loaded programs.
    pub(crate) fn of(codes: &ProgramDefs<'_>, loaded: &Loaded) -> Result<Copies, RelocationFault> {
        // Symbols may overlap, so the copies may be larger than the file.
        let total: usize = codes.iter().map(|(_, code)| code.len()).sum();
        if total > LARGEST {
            return Err(RelocationFault::TooLarge { limit: LARGEST });
        }
        let copied = codes.iter().map(|(id, code)| Copied {
            slots: match loaded.has(id) {
                true => code.slots().collect(),
                false => Vec::new(),
            },
            applied: Vec::new(),
        });
        Ok(Copies(copied.collect()))
    }

    /// Copy of a program.
    pub(crate) fn get(&self, id: ProgramId) -> &Copied {
        &self.0[id.0 as usize]
    }

    /// Mutable slots of a copy.
    pub(crate) fn slots_mut(&mut self, id: ProgramId) -> &mut [RawInsn] {
        &mut self.0[id.0 as usize].slots
    }

    /// Moves out the copy of a program, which becomes the start of the assembled program:
    /// it is part of no other.
    pub(crate) fn take(&mut self, id: ProgramId) -> Copied {
        std::mem::take(&mut self.0[id.0 as usize])
    }

    /// Applies the CO-RE relocations to loaded programs.
    pub(crate) fn relocate(
        &mut self,
        elf: &Elf<'_>,
        codes: &ProgramDefs<'_>,
        loaded: &Loaded,
        (btf, ext): (&Btf<'_>, &BtfExt<'_>),
        kernel: &Kernel,
    ) -> Result<(), Error> {
        if ext.relocations().next().is_none() {
            return Ok(());
        }
        let types = kernel.core_btf().or(kernel.btf());
        let types = types.ok_or(RelocationFault::NoKernelTypes)?;
        let mut resolver = Resolver::new(btf, types);
        if kernel.core_btf().is_none() {
            for module in kernel.modules() {
                resolver.add_module(&module.btf);
            }
        }
        // BTF for CO-RE alone is what libbpf goes by, whatever the kernel has.
        let is_reduced = kernel.core_btf().is_none() && kernel.is_btf_reduced();
        for group in ext.relocations() {
            let name = btf.string(group.section);
            if name.is_empty() {
                return Err(RelocationFault::CoreSection.into());
            }
            let section = elf.section_named(name.as_bytes());
            for (at, relo) in group.records().enumerate() {
                let slot = slot_of(relo.offset).map_err(|error| error.in_section(name))?;
                let program = section.and_then(|section| codes.at(section.id, slot));
                // An offset in no program was that of an overridden weak function.
                let Some(id) = program else {
                    continue;
                };
                let Some(code) = codes.get(id).filter(|_| loaded.has(id)) else {
                    continue;
                };
                let located = |fault: RelocationFault| {
                    let place = (code.name, name, slot);
                    describe(fault, &spec_text(btf, relo.spec), place)
                };
                let resolution = resolver.resolve(&relo.spec);
                let resolution =
                    resolution.map_err(|error| located(RelocationFault::Core(error)))?;
                let local = slot - code.start;
                let Copied { slots, applied } = &mut self.0[id.0 as usize];
                let is_missing = patch(&mut slots[local..], resolution).map_err(located)?;
                let to = match is_missing {
                    _ if is_reduced && !resolver.is_found(&relo.spec) => {
                        Referent::LeftOut(relo.spec)
                    }
                    true => Referent::MissingCore(relo.spec),
                    false => Referent::Core(relo.spec),
                };
                if applied.is_empty() {
                    // References are kept for the lifetime, so reserve no more than
                    // these. Unsorted records give no two programs the same count.
                    let code = code.start as u64 * 8..codes.own_end(id) as u64 * 8;
                    let rest = (at..).map_while(|at| group.get(at));
                    let own = rest.take_while(|relo| code.contains(&u64::from(relo.offset)));
                    applied.reserve_exact(own.count());
                }
                let slot = local as u32;
                applied.push(Reference { slot, to });
            }
        }
        Ok(())
    }
}

fn slot_of(offset: u32) -> Result<usize, Error> {
    match offset.is_multiple_of(8) {
        true => Ok(offset as usize / 8),
        false => Err(RelocationFault::CoreOffset { offset }.into()),
    }
}

/// Text of a relocation for messages.
fn spec_text(btf: &Btf<'_>, spec: CoreSpec) -> String {
    let ty = btf
        .get(spec.ty)
        .map(|ty| ty.name().to_string())
        .unwrap_or_default();
    format!("{ty}:{}", btf.string(spec.access))
}

fn describe(
    fault: RelocationFault,
    about: &str,
    (program, section, slot): (Name<'_>, Name<'_>, usize),
) -> Error {
    Error::from(fault)
        .about(about)
        .in_program(program)
        .in_section(section)
        .at(slot)
}

/// Patches one instruction: the first of these slots. Returns true if the relocation
/// failed.
fn patch(slots: &mut [RawInsn], resolution: Resolution) -> Result<bool, RelocationFault> {
    let slot = slots[0];
    match slot.code & 7 {
        4 | 7 if slot.code & 8 == 0 => patch_number(&mut slots[0], resolution),
        1..=3 => patch_access(&mut slots[0], resolution),
        0 => patch_wide(slots, resolution),
        _ => Err(RelocationFault::CoreInstruction { code: slot.code }),
    }
}

/// Patches an ALU instruction with an immediate.
fn patch_number(slot: &mut RawInsn, resolution: Resolution) -> Result<bool, RelocationFault> {
    let Resolution::Value {
        expected, value, ..
    } = resolution
    else {
        poison(slot);
        return Ok(true);
    };
    check(expected, slot.imm as u64)?;
    slot.imm = value as i32;
    Ok(false)
}

/// Patches a load or store.
fn patch_access(slot: &mut RawInsn, resolution: Resolution) -> Result<bool, RelocationFault> {
    let Resolution::Value {
        expected,
        value,
        access,
    } = resolution
    else {
        poison(slot);
        return Ok(true);
    };
    check(expected, slot.off as u64)?;
    if value > LARGEST_OFFSET {
        return Err(RelocationFault::CoreRange { value });
    }
    match access {
        Access::Refuse => {
            poison(slot);
            return Ok(true);
        }
        Access::AsIs => {}
        Access::Resize { from, to } => slot.code = resized(slot.code, from, to)?,
    }
    slot.off = value as i16;
    Ok(false)
}

/// Patches an ld_imm64.
fn patch_wide(slots: &mut [RawInsn], resolution: Resolution) -> Result<bool, RelocationFault> {
    let code = slots[0].code;
    let [first, second, ..] = slots else {
        return Err(match slots[0].is_wide_load() {
            true => RelocationFault::CutLoad,
            false => RelocationFault::CoreInstruction { code },
        });
    };
    let is_plain = first.pseudo_load() == Some(PseudoLoad::Plain) && first.off == 0;
    if !is_plain || second.code != 0 || second.regs != 0 || second.off != 0 {
        return Err(RelocationFault::CoreInstruction { code });
    }
    let Resolution::Value {
        expected, value, ..
    } = resolution
    else {
        poison(first);
        poison(second);
        return Ok(true);
    };
    let found = u64::from(first.imm as u32) | u64::from(second.imm as u32) << 32;
    check(expected, found)?;
    first.imm = value as i32;
    second.imm = (value >> 32) as i32;
    Ok(false)
}

fn check(expected: Option<u64>, found: u64) -> Result<(), RelocationFault> {
    match expected {
        Some(expected) if expected != found => {
            Err(RelocationFault::CoreExpected { expected, found })
        }
        _ => Ok(()),
    }
}

/// Opcode of the same access with another size.
fn resized(code: u8, from: u32, to: u32) -> Result<u8, RelocationFault> {
    let found = isa::ebpf::Size::from_code(code).bytes();
    let size = match to {
        8 => 0x18,
        4 => 0x00,
        2 => 0x08,
        1 => 0x10,
        _ => return Err(RelocationFault::CoreSize { found, from, to }),
    };
    match found == from {
        true => Ok(code & !0x18 | size),
        false => Err(RelocationFault::CoreSize { found, from, to }),
    }
}

fn poison(slot: &mut RawInsn) {
    *slot = RawInsn {
        code: CALL,
        regs: 0,
        off: 0,
        imm: CORE_POISON,
    };
}

//! Numbers that depend on the kernel's types, brought up to date.
//!
//! [`btf::core`] answers each relocation of `.BTF.ext`; this module puts the answers
//! into instructions, by the rules of libbpf: arithmetic and 64-bit loads change
//! their number, loads and stores their offset and, for pointers and unsigned
//! fields, their size. What fits nothing becomes a call of a helper that no kernel
//! has, so that only a program that gets there is refused.

use btf::core::{Access, Resolution, Resolver};
use btf::ext::CoreQuestion;
use btf::{Btf, BtfExt, Name};
use isa::ebpf::RawInsn;

use crate::elf::Elf;
use crate::error::Error;
use crate::linked::Loaded;
use crate::programs::{Codes, ProgramId};
use crate::reference::{CORE_POISON, Reference, Referent};
use crate::relocate::patches::CALL;
use crate::relocate::{LARGEST, RelocationFault};
use spec::Kernel;

/// The largest offset of a load or store.
const LARGEST_OFFSET: u64 = i16::MAX as u64;

/// The instructions that are loaded, each program and function in a copy of its own.
#[derive(Debug)]
pub(crate) struct Copies(Vec<Copied>);

/// A program or function; empty if it is not loaded.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    pub(crate) slots: Vec<RawInsn>,
    /// The relocations that were applied; slots are counted from its start.
    pub(crate) applied: Vec<Reference>,
}

impl Copies {
    /// Copies the instructions of what is loaded.
    pub(crate) fn of(codes: &Codes<'_>, loaded: &Loaded) -> Result<Copies, RelocationFault> {
        // Symbols may overlap, so this can be more than the file has.
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

    /// One of them.
    pub(crate) fn get(&self, id: ProgramId) -> &Copied {
        &self.0[id.0 as usize]
    }

    /// The slots of one, to change.
    pub(crate) fn slots_mut(&mut self, id: ProgramId) -> &mut [RawInsn] {
        &mut self.0[id.0 as usize].slots
    }

    /// A program, which becomes the start of what is made of it: no other program
    /// has it as a part.
    pub(crate) fn take(&mut self, id: ProgramId) -> Copied {
        std::mem::take(&mut self.0[id.0 as usize])
    }

    /// Applies the relocations of `.BTF.ext` to what is to be loaded.
    pub(crate) fn relocate(
        &mut self,
        elf: &Elf<'_>,
        codes: &Codes<'_>,
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
        for group in ext.relocations() {
            let name = btf.string(group.section);
            if name.is_empty() {
                return Err(RelocationFault::CoreSection.into());
            }
            let section = elf.section_named(name.as_bytes());
            for (at, relo) in group.records().enumerate() {
                let slot = slot_of(relo.offset).map_err(|error| error.in_section(name))?;
                let program = section.and_then(|section| codes.at(section.id, slot));
                // What is in no program was a weak function.
                let Some(id) = program else {
                    continue;
                };
                let Some(code) = codes.get(id).filter(|_| loaded.has(id)) else {
                    continue;
                };
                let located = |fault: RelocationFault| {
                    let place = (code.name, name, slot);
                    describe(fault, &question_text(btf, relo.question), place)
                };
                let resolution = resolver.resolve(&relo.question);
                let resolution =
                    resolution.map_err(|error| located(RelocationFault::Core(error)))?;
                let local = slot - code.start;
                let Copied { slots, applied } = &mut self.0[id.0 as usize];
                let is_missing = patch(&mut slots[local..], resolution).map_err(located)?;
                let to = match is_missing {
                    true => Referent::MissingCore(relo.question),
                    false => Referent::Core(relo.question),
                };
                if applied.is_empty() {
                    // There may be many, and they stay: room for no more than these. Of
                    // records in any order no two programs count the same.
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

/// What a relocation is about, for messages.
fn question_text(btf: &Btf<'_>, question: CoreQuestion) -> String {
    let ty = btf
        .get(question.ty)
        .map(|ty| ty.name().to_string())
        .unwrap_or_default();
    format!("{ty}:{}", btf.string(question.access))
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

/// Brings one instruction up to date: the first of these slots. Says whether
/// nothing fitted.
fn patch(slots: &mut [RawInsn], resolution: Resolution) -> Result<bool, RelocationFault> {
    let slot = slots[0];
    match slot.code & 7 {
        4 | 7 if slot.code & 8 == 0 => patch_number(&mut slots[0], resolution),
        1..=3 => patch_access(&mut slots[0], resolution),
        0 => patch_wide(slots, resolution),
        _ => Err(RelocationFault::CoreInstruction { code: slot.code }),
    }
}

/// Arithmetic with a number.
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

/// A load or store.
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

/// A load of 64 bits.
fn patch_wide(slots: &mut [RawInsn], resolution: Resolution) -> Result<bool, RelocationFault> {
    let code = slots[0].code;
    let [first, second, ..] = slots else {
        return Err(match slots[0].is_wide_load() {
            true => RelocationFault::CutLoad,
            false => RelocationFault::CoreInstruction { code },
        });
    };
    let is_plain = first.is_wide_load() && first.src() == 0 && first.off == 0;
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

/// The opcode of the same access with another size.
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

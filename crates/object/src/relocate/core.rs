//! CO-RE relocations of instructions.
//!
//! [`btf::core`] resolves each relocation of `.BTF.ext`; this module patches the
//! instructions by libbpf's rules: the immediate of ALU instructions and ld_imm64, the
//! offset of loads and stores and, for pointers and unsigned fields, their size. An
//! instruction whose relocation fails becomes a call of a non-existent helper, so that
//! the program is refused only if it is reachable.

use btf::core::{Access, Resolution, Resolver};
use btf::ext::{CoreRelo, CoreSpec};
use btf::{Btf, BtfExt, Name};
use isa::ebpf::{PseudoLoad, RawInsn, Size};

use crate::elf::Elf;
use crate::error::Error;
use crate::programs::{ProgramDef, ProgramDefs, ProgramId};
use crate::reference::{CORE_POISON, Reference, Referent};
use crate::relocate::patches::{Goal, Patches};
use crate::relocate::{LARGEST, RelocationFault};
use spec::Kernel;

/// Maximum offset of a load or store.
const LARGEST_OFFSET: u64 = i16::MAX as u64;

/// Copies of the instructions of loaded programs and functions.
#[derive(Debug)]
pub(crate) struct Copies(Vec<Copied>);

/// Copy of a program or function; empty if it is not loaded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copied {
    pub(crate) slots: Vec<RawInsn>,
    /// Applied relocations; slots are relative to its start.
    pub(crate) applied: Vec<Reference>,
}

impl Copies {
    /// Copies the instructions of the functions that programs call.
    pub(crate) fn of(codes: &ProgramDefs<'_>) -> Result<Copies, RelocationFault> {
        // Symbols may overlap, so the copies may be larger than the file.
        let total: usize = codes.iter().map(|(_, code)| code.len()).sum();
        if total > LARGEST {
            return Err(RelocationFault::TooLarge { limit: LARGEST });
        }
        let copied = codes.iter().map(|(_, code)| match code.is_callee() {
            true => Copied::of(code),
            false => Copied::default(),
        });
        Ok(Copies(copied.collect()))
    }

    /// Copies the instructions of a program or function, without relocations.
    pub(crate) fn load(&mut self, codes: &ProgramDefs<'_>, id: ProgramId) {
        if let Some(code) = codes.get(id) {
            self.0[id.0 as usize] = Copied::of(code);
        }
    }

    /// Copy of a program.
    pub(crate) fn get(&self, id: ProgramId) -> &Copied {
        &self.0[id.0 as usize]
    }

    /// Marks ld_imm64 instructions that load function addresses, so that the assembler
    /// recognises them without their relocations.
    pub(crate) fn mark_addresses(&mut self, id: ProgramId, patches: &Patches) {
        for patch in patches.of(id) {
            if let Goal::Address { .. } = patch.goal {
                let slot = &mut self.0[id.0 as usize].slots[patch.slot as usize];
                slot.set_src(PseudoLoad::Func.number());
            }
        }
    }

    /// Moves out the copy of a program, which becomes the start of the assembled program:
    /// it is part of no other, unless it is called.
    pub(crate) fn take(&mut self, id: ProgramId, is_called: bool) -> Copied {
        let copied = &mut self.0[id.0 as usize];
        match is_called {
            true => copied.clone(),
            false => std::mem::take(copied),
        }
    }

    /// Applies relocations to copies, in this order; the first that fails and its place
    /// among all of the object. What reduced types lack is left out rather than absent.
    fn apply(
        &mut self,
        records: &[&Record<'_>],
        codes: &ProgramDefs<'_>,
        btf: &Btf<'_>,
        resolver: &mut Resolver<'_>,
        is_reduced: bool,
    ) -> Result<(), Fault> {
        for record in records {
            let Some(code) = codes.get(record.program) else {
                continue;
            };
            let spec = &record.relo.spec;
            let slot = record.slot();
            let located = |fault: RelocationFault| Fault {
                place: record.place,
                error: Error::from(fault)
                    .about(spec_text(btf, *spec))
                    .in_program(code.name)
                    .in_section(record.section)
                    .at(slot),
            };
            let resolution = resolver.resolve(spec);
            let resolution = resolution.map_err(|error| located(RelocationFault::Core(error)))?;
            let local = slot - code.start;
            let Copied { slots, applied } = &mut self.0[record.program.0 as usize];
            let is_missing = patch(&mut slots[local..], resolution).map_err(located)?;
            applied.push(Reference {
                slot: local as u32,
                to: match is_missing {
                    _ if is_reduced && !resolver.is_found(spec) => Referent::LeftOut(*spec),
                    true => Referent::MissingCore(*spec),
                    false => Referent::Core(*spec),
                },
            });
        }
        Ok(())
    }
}

impl Copied {
    fn of(code: &ProgramDef<'_>) -> Copied {
        Copied {
            slots: code.slots().collect(),
            applied: Vec::new(),
        }
    }
}

/// A relocation in a program or function.
struct Record<'b> {
    program: ProgramId,
    /// Its place among all relocations of the object.
    place: usize,
    section: Name<'b>,
    relo: CoreRelo,
}

impl Record<'_> {
    /// Slot index from the start of its section.
    fn slot(&self) -> usize {
        self.relo.offset as usize / 8
    }
}

/// A relocation that cannot be applied.
#[derive(Clone, Debug)]
struct Fault {
    /// Its place among all relocations of the object.
    place: usize,
    error: Error,
}

/// CO-RE relocations of an object against the types of a kernel.
///
/// libbpf applies those of a program and of all functions in the order of the file, where
/// a relocation may remove candidates of later ones. As long as none does, the order has no
/// effect, and those of functions are applied once for all programs.
pub(crate) struct CoreRelocations<'o> {
    btf: &'o Btf<'o>,
    kernel: &'o Kernel,
    /// Relocations sorted by program, those of each in the order of the file.
    records: Vec<Record<'o>>,
    /// Functions with relocations.
    functions: Vec<ProgramId>,
    /// The first record that is in no section or at no instruction.
    damage: Option<Fault>,
    resolver: Resolver<'o>,
    /// The first fault of a relocation of a function, once those are applied.
    applied: Option<Result<(), Fault>>,
}

impl<'o> CoreRelocations<'o> {
    /// Collects the relocations; `None` if there are none.
    pub(crate) fn of(
        elf: &Elf<'_>,
        codes: &ProgramDefs<'_>,
        (btf, ext): (&'o Btf<'o>, &'o BtfExt<'_>),
        kernel: &'o Kernel,
    ) -> Result<Option<CoreRelocations<'o>>, Error> {
        if ext.relocations().next().is_none() {
            return Ok(None);
        }
        let mut records = Vec::new();
        let mut place = 0;
        let mut damage = None;
        'groups: for group in ext.relocations() {
            let name = btf.string(group.section);
            if name.is_empty() {
                let error = RelocationFault::CoreSection.into();
                damage = Some(Fault { place, error });
                break;
            }
            let section = elf.section_named(name.as_bytes());
            for relo in group.records() {
                if !relo.offset.is_multiple_of(8) {
                    let offset = relo.offset;
                    let error = Error::from(RelocationFault::CoreOffset { offset });
                    let error = error.in_section(name);
                    damage = Some(Fault { place, error });
                    break 'groups;
                }
                // An offset in no program was that of an overridden weak function.
                let slot = relo.offset as usize / 8;
                let program = section.and_then(|section| codes.at(section.id, slot));
                records.extend(program.map(|program| Record {
                    program,
                    place,
                    section: name,
                    relo,
                }));
                place += 1;
            }
        }
        records.sort_by_key(|record| record.program);
        let mut functions: Vec<ProgramId> = records.iter().map(|record| record.program).collect();
        functions.dedup();
        functions.retain(|id| codes.get(*id).is_some_and(|code| code.is_callee()));
        Ok(Some(CoreRelocations {
            btf,
            kernel,
            records,
            functions,
            damage,
            resolver: new_resolver(btf, kernel)?,
            applied: None,
        }))
    }

    /// Applies the relocations of programs, whose copies are new, and of all functions.
    /// Returns true if the copies of functions are new too.
    pub(crate) fn apply(
        &mut self,
        codes: &ProgramDefs<'_>,
        programs: &[ProgramId],
        copies: &mut Copies,
    ) -> Result<bool, Error> {
        let (btf, resolver) = (self.btf, &mut self.resolver);
        // BTF for CO-RE alone is what libbpf goes by, whatever the kernel has.
        let is_reduced = self.kernel.core_btf().is_none() && self.kernel.is_btf_reduced();
        if resolver.is_order_irrelevant() {
            if self.applied.is_none() {
                let records = in_order(&self.records, &self.functions, copies);
                self.applied = Some(copies.apply(&records, codes, btf, resolver, is_reduced));
            }
            let records = in_order(&self.records, programs, copies);
            let own = copies.apply(&records, codes, btf, resolver, is_reduced);
            if resolver.is_order_irrelevant() {
                let of_functions = self.applied.clone().and_then(Result::err);
                return first([own.err(), of_functions, self.damage.clone()]).map(|()| false);
            }
        }
        let all: Vec<ProgramId> = [programs, &self.functions].concat();
        for id in &all {
            copies.load(codes, *id);
        }
        let mut resolver = new_resolver(btf, self.kernel)?;
        let records = in_order(&self.records, &all, copies);
        let applied = copies.apply(&records, codes, btf, &mut resolver, is_reduced);
        first([applied.err(), None, self.damage.clone()]).map(|()| true)
    }
}

/// The error of the first of these faults in the object.
fn first(faults: [Option<Fault>; 3]) -> Result<(), Error> {
    let first = faults.into_iter().flatten().min_by_key(|fault| fault.place);
    first.map_or(Ok(()), |fault| Err(fault.error))
}

/// Records of programs in the order of the file, with memory for what they leave in the
/// copies.
fn in_order<'r, 'b>(
    records: &'r [Record<'b>],
    programs: &[ProgramId],
    copies: &mut Copies,
) -> Vec<&'r Record<'b>> {
    let mut found = Vec::new();
    for id in programs {
        let from = records.partition_point(|record| record.program < *id);
        let len = records[from..].partition_point(|record| record.program == *id);
        found.extend(&records[from..from + len]);
        copies.0[id.0 as usize].applied.reserve_exact(len);
    }
    found.sort_by_key(|record| record.place);
    found
}

fn new_resolver<'o>(btf: &'o Btf<'o>, kernel: &'o Kernel) -> Result<Resolver<'o>, Error> {
    let types = kernel.core_btf().or(kernel.btf());
    let types = types.ok_or(RelocationFault::NoKernelTypes)?;
    let mut resolver = Resolver::new(btf, types);
    if kernel.core_btf().is_none() {
        for module in kernel.modules() {
            resolver.add_module(&module.btf);
        }
    }
    Ok(resolver)
}

/// Text of a relocation for messages.
fn spec_text(btf: &Btf<'_>, spec: CoreSpec) -> String {
    let ty = btf
        .get(spec.ty)
        .map(|ty| ty.name().to_string())
        .unwrap_or_default();
    format!("{ty}:{}", btf.string(spec.access))
}

/// Patches one instruction: the first of these slots. Returns true if the relocation
/// failed.
fn patch(slots: &mut [RawInsn], resolution: Resolution) -> Result<bool, RelocationFault> {
    let slot = slots[0];
    if slot.is_immediate_arithmetic() {
        patch_number(&mut slots[0], resolution)
    } else if slot.is_of_memory_class() {
        patch_access(&mut slots[0], resolution)
    } else if slot.is_of_immediate_class() {
        patch_wide(slots, resolution)
    } else {
        Err(RelocationFault::CoreInstruction { code: slot.code })
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
        Access::Resize { from, to } => *slot = resized(*slot, from, to)?,
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
    if !is_plain || !second.is_second_slot() {
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

/// The same access with another size.
fn resized(slot: RawInsn, from: u32, to: u32) -> Result<RawInsn, RelocationFault> {
    let found = slot.size().bytes();
    let mut sizes = [Size::B, Size::H, Size::W, Size::DW].into_iter();
    match sizes.find(|size| size.bytes() == to && found == from) {
        Some(size) => Ok(slot.with_size(size)),
        None => Err(RelocationFault::CoreSize { found, from, to }),
    }
}

fn poison(slot: &mut RawInsn) {
    *slot = RawInsn::call_helper(CORE_POISON);
}

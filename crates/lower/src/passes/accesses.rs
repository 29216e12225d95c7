//! Operations on a map that is the same in every run, without the helper.

use std::sync::Arc;

use isa::ebpf::{AluOp, Callee, Cond, Insn, Operand, Reg, Size, Width};
use spec::helpers::HelperId;
use verifier::ProgramFacts;
use vm::{DirectAccess, Elements, MapFunction, MapHandle};

use super::{Pass, Passes, key_stores};
use crate::LoweredCall;
use crate::construct::{add, alu, branch, load, mov_imm, mov_imm64};

/// The operations of a program.
pub(super) struct Accesses<'m> {
    maps: &'m [Option<MapHandle>],
    passes: Passes,
    /// Map, helper and parted words of keys of those that are used.
    known: Vec<(u32, HelperId, u8)>,
    used: Vec<DirectAccess>,
}

impl Accesses<'_> {
    pub(super) fn new(maps: &[Option<MapHandle>], passes: Passes) -> Accesses<'_> {
        Accesses {
            maps,
            passes,
            known: Vec::new(),
            used: Vec::new(),
        }
    }

    /// Replacement of the instruction at a slot, if it is an operation on one map.
    pub(super) fn replace(
        &mut self,
        insns: &[Insn],
        slot: usize,
        facts: &ProgramFacts,
    ) -> Option<Vec<Insn>> {
        let Insn::Call(callee) = insns[slot] else {
            return None;
        };
        let helper = HelperId::of_call(callee)?;
        if !matches!(helper, HelperId::MapLookupElem | HelperId::RingbufOutput) {
            return None;
        }
        let fact = facts.insns[slot].call?;
        let map = fact.map?.0;
        if map as usize >= self.maps.len() {
            // A map that was looked up in another one.
            let is_inlined = self.passes.contains(Pass::ArrayLookups);
            return (is_inlined && helper == HelperId::MapLookupElem).then(inner_element);
        }
        let parted_words = match self.maps[map as usize].as_ref()?.kind.has_inline_hash() {
            true => key_stores::parted_words(insns, slot, facts),
            false => 0,
        };
        let index = self.position(map, helper, parted_words)?;
        Some(match &self.used[index] {
            access @ (DirectAccess::Elements(elements) | DirectAccess::Maps(elements)) => {
                let key = fact.key.filter(|_| fact.is_key_in_bounds);
                let index = key.and_then(|key| u32::try_from(key).ok());
                element(elements, index, matches!(access, DirectAccess::Maps(_)))?
            }
            DirectAccess::Hash(lookup) => {
                call(lookup.function(), LoweredCall::HashLookup(index as u32))
            }
            DirectAccess::Function(function) => {
                call(function, LoweredCall::MapFunction(index as u32))
            }
        })
    }

    /// The values of an array, if it has some at equal distances.
    pub(super) fn elements(&mut self, map: u32) -> Option<&Elements> {
        let index = self.position(map, HelperId::MapLookupElem, 0)?;
        match &self.used[index] {
            DirectAccess::Elements(elements) => Some(elements),
            DirectAccess::Maps(_) | DirectAccess::Hash(_) | DirectAccess::Function(_) => None,
        }
    }

    /// The index of an operation among those that are used, to which it is added.
    fn position(&mut self, map: u32, helper: HelperId, parted_words: u8) -> Option<usize> {
        let key = (map, helper, parted_words);
        if let Some(index) = self.known.iter().position(|known| *known == key) {
            return Some(index);
        }
        let access = match self.access(map, helper)? {
            DirectAccess::Hash(lookup) => {
                DirectAccess::Hash(lookup.with_parted_words(parted_words))
            }
            access => access,
        };
        self.known.push(key);
        self.used.push(access);
        Some(self.used.len() - 1)
    }

    /// Direct access to a map without a helper, if the passes include it.
    fn access(&self, map: u32, helper: HelperId) -> Option<DirectAccess> {
        let map = self.maps.get(map as usize)?.as_ref()?;
        let operations = Arc::clone(map.operations());
        let access = match helper {
            HelperId::MapLookupElem => operations.direct_lookup()?,
            HelperId::RingbufOutput => DirectAccess::Function(operations.direct_output()?),
            _ => return None,
        };
        let access = match access {
            DirectAccess::Hash(lookup) if !self.passes.contains(Pass::HashLookups) => {
                DirectAccess::Function(lookup.function().clone())
            }
            access => access,
        };
        let pass = match access {
            DirectAccess::Elements(_) | DirectAccess::Maps(_) => Pass::ArrayLookups,
            DirectAccess::Hash(_) => Pass::HashLookups,
            DirectAccess::Function(_) => Pass::MapFunctions,
        };
        self.passes.contains(pass).then_some(access)
    }

    /// Accesses that instructions refer to.
    pub(super) fn into_used(self) -> Vec<DirectAccess> {
        self.used
    }
}

/// A call of a function of the map, with its address.
fn call(function: &MapFunction, call: LoweredCall) -> Vec<Insn> {
    let mut insns = mov_imm64(Reg::R1, function.address()).to_vec();
    insns.push(call.insn());
    insns
}

/// The address of the value at an index, or at the one that `r2` points to, or that value if
/// values are maps; `None` for values that are too large for the immediates.
fn element(elements: &Elements, index: Option<u32>, is_map: bool) -> Option<Vec<Insn>> {
    let stride = elements.stride();
    i32::try_from(stride.max(elements.copy_stride())).ok()?;
    let is_percpu = elements.copies() > 1;
    // The number of the CPU comes in r0.
    let (value, base) = match is_percpu {
        true => (Reg::R1, Reg::R2),
        false => (Reg::R0, Reg::R1),
    };
    let mut insns = Vec::new();
    let is_checked = match index {
        Some(index) if index < elements.entries() => {
            let offset = u64::from(index) * stride;
            insns.extend(mov_imm64(value, elements.address() + offset));
            false
        }
        _ => {
            insns.push(load(value, Reg::R2, Size::W, 0));
            // Its distance is set below.
            insns.push(branch_beyond(value, elements.entries(), 0));
            insns.extend(multiply(value, stride));
            insns.extend(mov_imm64(base, elements.address()));
            insns.push(add(value, base));
            true
        }
    };
    if is_percpu {
        insns.push(LoweredCall::ProcessorId.insn());
        insns.extend(multiply(Reg::R0, elements.copy_stride()));
        insns.push(add(Reg::R0, value));
    }
    if is_map {
        insns.push(load(Reg::R0, Reg::R0, Size::DW, 0));
    }
    if is_checked {
        insns.push(Insn::Goto { off: 1 });
        insns[1] = branch_beyond(value, elements.entries(), insns.len() as i16 - 2);
        insns.push(mov_imm(Reg::R0, 0));
    }
    Some(insns)
}

/// A lookup in the map of the handle that `r1` points to: the address of the value if it is an
/// array with one value for each index, otherwise a call of the helper.
fn inner_element() -> Vec<Insn> {
    vec![
        load(Reg::R3, Reg::R1, Size::DW, MapHandle::ELEMENTS),
        branch(Cond::Eq, Reg::R3, Operand::Imm(0), 9),
        load(Reg::R0, Reg::R2, Size::W, 0),
        load(Reg::R4, Reg::R1, Size::W, MapHandle::ENTRIES),
        branch(Cond::Ge, Reg::R0, Operand::Reg(Reg::R4), 4),
        load(Reg::R4, Reg::R1, Size::W, MapHandle::STRIDE),
        alu(AluOp::Mul, Reg::R0, Operand::Reg(Reg::R4)),
        add(Reg::R0, Reg::R3),
        Insn::Goto { off: 3 },
        mov_imm(Reg::R0, 0),
        Insn::Goto { off: 1 },
        Insn::Call(Callee::Helper(HelperId::MapLookupElem.number())),
    ]
}

/// A jump if an index is not below the number of entries.
fn branch_beyond(index: Reg, entries: u32, off: i16) -> Insn {
    Insn::Jump {
        cond: Cond::Ge,
        width: Width::W32,
        dst: index,
        src: Operand::Imm(entries as i32),
        off,
    }
}

/// A multiplication by a number below 2^31.
fn multiply(dst: Reg, by: u64) -> Option<Insn> {
    match by.is_power_of_two() {
        true if by == 1 => None,
        true => Some(alu(AluOp::Lsh, dst, Operand::Imm(by.ilog2() as i32))),
        false => Some(alu(AluOp::Mul, dst, Operand::Imm(by as i32))),
    }
}

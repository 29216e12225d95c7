//! Lookups in a map that is the same in every run.

use isa::ebpf::{AluOp, Callee, Cond, Imm64, Insn, Operand, Reg, Size, Value64, Width};
use spec::calls::GET_SMP_PROCESSOR_ID;
use verifier::InsnFact;
use vm::{DirectLookup, Elements, MapHandle};

use super::{FIRST_LOOKUP, Pass, Passes};

const MAP_LOOKUP_ELEM: i32 = match spec::helpers::number("bpf_map_lookup_elem") {
    Some(number) => number,
    None => panic!("no helper has this name"),
};

/// The lookups of a program.
pub(super) struct Lookups {
    /// By map: how it is looked up, and the index among those that are used.
    maps: Vec<(Option<DirectLookup>, Option<usize>)>,
    used: Vec<DirectLookup>,
    /// Lookups in arrays are inlined.
    is_inlined: bool,
}

impl Lookups {
    pub(super) fn new(maps: &[Option<MapHandle>], passes: Passes) -> Lookups {
        let is_chosen = |lookup: &DirectLookup| {
            passes.contains(match lookup {
                DirectLookup::Elements(_) | DirectLookup::Maps(_) => Pass::ArrayLookups,
                DirectLookup::Function(_) => Pass::MapLookups,
            })
        };
        let lookup = |handle: &Option<MapHandle>| {
            let lookup = handle.as_ref()?.map().direct_lookup();
            lookup.filter(is_chosen)
        };
        Lookups {
            maps: maps.iter().map(|handle| (lookup(handle), None)).collect(),
            used: Vec::new(),
            is_inlined: passes.contains(Pass::ArrayLookups),
        }
    }

    /// What takes the place of an instruction, if it is a lookup in one map.
    pub(super) fn replace(&mut self, insn: Insn, fact: &InsnFact) -> Option<Vec<Insn>> {
        let Insn::Call(Callee::Helper(MAP_LOOKUP_ELEM)) = insn else {
            return None;
        };
        let fact = fact.call?;
        let map = fact.map?.0 as usize;
        if map >= self.maps.len() {
            // A map that was looked up in another one.
            return self.is_inlined.then(inner_element);
        }
        let (lookup, used) = self.maps.get_mut(map)?;
        let lookup = lookup.as_ref()?;
        let sequence = match lookup {
            DirectLookup::Elements(elements) | DirectLookup::Maps(elements) => {
                let index = fact.key.filter(|_| fact.is_key_in_bounds);
                let index = index.and_then(|key| u32::try_from(key).ok());
                element(elements, index, matches!(lookup, DirectLookup::Maps(_)))?
            }
            DirectLookup::Function(_) => Vec::new(),
        };
        let index = *used.get_or_insert(self.used.len());
        if index == self.used.len() {
            self.used.push(lookup.clone());
        }
        Some(match lookup {
            DirectLookup::Elements(_) | DirectLookup::Maps(_) => sequence,
            DirectLookup::Function(function) => {
                let mut call = load(Reg::R1, function.address()).to_vec();
                call.push(Insn::Call(Callee::Helper(FIRST_LOOKUP + index as i32)));
                call
            }
        })
    }

    /// The lookups that instructions refer to.
    pub(super) fn into_used(self) -> Vec<DirectLookup> {
        self.used
    }
}

/// The address of the value at an index, or at the one that `r2` points to, or that value if
/// values are maps; `None` for values that are too large for the immediates.
fn element(elements: &Elements, index: Option<u32>, is_map: bool) -> Option<Vec<Insn>> {
    let stride = elements.stride();
    i32::try_from(stride).ok()?;
    let mut insns = Vec::new();
    let is_checked = match index {
        Some(index) if index < elements.entries() => {
            let offset = u64::from(index) * stride;
            insns.extend(load(Reg::R1, elements.address() + offset));
            false
        }
        _ => {
            let index = Insn::Load {
                size: Size::W,
                signed: false,
                dst: Reg::R1,
                base: Reg::R2,
                off: 0,
            };
            // Its distance is set below.
            insns.extend([index, branch_beyond(elements.entries(), 0)]);
            insns.extend(multiply(Reg::R1, stride));
            insns.extend(load(Reg::R2, elements.address()));
            insns.push(alu(AluOp::Add, Reg::R1, Operand::Reg(Reg::R2)));
            true
        }
    };
    if elements.copies() > 1 {
        insns.push(Insn::Call(Callee::Helper(GET_SMP_PROCESSOR_ID)));
        insns.extend(multiply(Reg::R0, elements.copy_stride()));
        insns.push(alu(AluOp::Add, Reg::R0, Operand::Reg(Reg::R1)));
    } else {
        insns.push(alu(AluOp::Mov, Reg::R0, Operand::Reg(Reg::R1)));
    }
    if is_map {
        insns.push(field(Reg::R0, Reg::R0, Size::DW, 0));
    }
    if is_checked {
        insns.push(Insn::Goto { off: 1 });
        insns[1] = branch_beyond(elements.entries(), insns.len() as i16 - 2);
        insns.push(alu(AluOp::Mov, Reg::R0, Operand::Imm(0)));
    }
    Some(insns)
}

/// A lookup in the map of the handle that `r1` points to: the address of the value if it is an
/// array with one value for each index, otherwise a call of the helper.
fn inner_element() -> Vec<Insn> {
    let jump = |cond, dst, src, off| Insn::Jump {
        cond,
        width: Width::W64,
        dst,
        src,
        off,
    };
    vec![
        field(Reg::R3, Reg::R1, Size::DW, MapHandle::ELEMENTS),
        jump(Cond::Eq, Reg::R3, Operand::Imm(0), 9),
        field(Reg::R0, Reg::R2, Size::W, 0),
        field(Reg::R4, Reg::R1, Size::W, MapHandle::ENTRIES),
        jump(Cond::Ge, Reg::R0, Operand::Reg(Reg::R4), 4),
        field(Reg::R4, Reg::R1, Size::W, MapHandle::STRIDE),
        alu(AluOp::Mul, Reg::R0, Operand::Reg(Reg::R4)),
        alu(AluOp::Add, Reg::R0, Operand::Reg(Reg::R3)),
        Insn::Goto { off: 3 },
        alu(AluOp::Mov, Reg::R0, Operand::Imm(0)),
        Insn::Goto { off: 1 },
        Insn::Call(Callee::Helper(MAP_LOOKUP_ELEM)),
    ]
}

/// Loads a field of a structure.
fn field(dst: Reg, base: Reg, size: Size, offset: usize) -> Insn {
    Insn::Load {
        size,
        signed: false,
        dst,
        base,
        off: offset as i16,
    }
}

/// A jump if the index in `r1` is not below the number of entries.
fn branch_beyond(entries: u32, off: i16) -> Insn {
    Insn::Jump {
        cond: Cond::Ge,
        width: Width::W32,
        dst: Reg::R1,
        src: Operand::Imm(entries as i32),
        off,
    }
}

fn load(dst: Reg, value: u64) -> [Insn; 2] {
    let imm = Imm64::Value(Value64::new(value));
    [Insn::LoadImm64 { dst, imm }, Insn::Imm64High]
}

/// A multiplication by a number below 2^31.
fn multiply(dst: Reg, by: u64) -> Option<Insn> {
    match by.is_power_of_two() {
        true if by == 1 => None,
        true => Some(alu(AluOp::Lsh, dst, Operand::Imm(by.ilog2() as i32))),
        false => Some(alu(AluOp::Mul, dst, Operand::Imm(by as i32))),
    }
}

fn alu(op: AluOp, dst: Reg, src: Operand) -> Insn {
    Insn::Alu {
        op,
        width: Width::W64,
        dst,
        src,
    }
}

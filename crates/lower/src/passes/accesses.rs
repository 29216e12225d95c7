//! Operations on a map that is the same in every run, without the helper.

use isa::ebpf::{AluOp, Callee, Cond, Imm64, Insn, Operand, Reg, Size, Value64, Width};
use spec::calls::GET_SMP_PROCESSOR_ID;
use verifier::InsnFact;
use vm::{DirectAccess, Elements, MapHandle};

use super::{FIRST_FUNCTION, Pass, Passes};

const MAP_LOOKUP_ELEM: i32 = number("bpf_map_lookup_elem");
const RINGBUF_OUTPUT: i32 = number("bpf_ringbuf_output");

const fn number(helper: &str) -> i32 {
    match spec::helpers::number(helper) {
        Some(number) => number,
        None => panic!("no helper has this name"),
    }
}

/// The operations of a program.
pub(super) struct Accesses<'m> {
    maps: &'m [Option<MapHandle>],
    passes: Passes,
    /// Map and helper of those that are used.
    known: Vec<(u32, i32)>,
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

    /// What takes the place of an instruction, if it is an operation on one map.
    pub(super) fn replace(&mut self, insn: Insn, fact: &InsnFact) -> Option<Vec<Insn>> {
        let Insn::Call(Callee::Helper(helper)) = insn else {
            return None;
        };
        if !matches!(helper, MAP_LOOKUP_ELEM | RINGBUF_OUTPUT) {
            return None;
        }
        let fact = fact.call?;
        let map = fact.map?.0;
        if map as usize >= self.maps.len() {
            // A map that was looked up in another one.
            let is_inlined = self.passes.contains(Pass::ArrayLookups);
            return (is_inlined && helper == MAP_LOOKUP_ELEM).then(inner_element);
        }
        let known = self.known.iter().position(|known| *known == (map, helper));
        let access = match known {
            Some(index) => self.used[index].clone(),
            None => self.access(map, helper)?,
        };
        let index = known.unwrap_or(self.used.len());
        let sequence = match &access {
            DirectAccess::Elements(elements) | DirectAccess::Maps(elements) => {
                let key = fact.key.filter(|_| fact.is_key_in_bounds);
                let index = key.and_then(|key| u32::try_from(key).ok());
                element(elements, index, matches!(access, DirectAccess::Maps(_)))?
            }
            DirectAccess::Function(function) => {
                let mut call = load(Reg::R1, function.address()).to_vec();
                call.push(Insn::Call(Callee::Helper(FIRST_FUNCTION + index as i32)));
                call
            }
        };
        if known.is_none() {
            self.known.push((map, helper));
            self.used.push(access);
        }
        Some(sequence)
    }

    /// How a map does without a helper, if the passes say so.
    fn access(&self, map: u32, helper: i32) -> Option<DirectAccess> {
        let map = self.maps.get(map as usize)?.as_ref()?.map();
        let access = match helper {
            MAP_LOOKUP_ELEM => map.direct_lookup(),
            _ => map.direct_output().map(DirectAccess::Function),
        };
        access.filter(|access| {
            self.passes.contains(match access {
                DirectAccess::Elements(_) | DirectAccess::Maps(_) => Pass::ArrayLookups,
                DirectAccess::Function(_) => Pass::MapFunctions,
            })
        })
    }

    /// What instructions refer to.
    pub(super) fn into_used(self) -> Vec<DirectAccess> {
        self.used
    }
}

/// The address of the value at an index, or at the one that `r2` points to, or that value if
/// values are maps; `None` for values that are too large for the immediates.
fn element(elements: &Elements, index: Option<u32>, is_map: bool) -> Option<Vec<Insn>> {
    let stride = elements.stride();
    i32::try_from(stride).ok()?;
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
            insns.extend(load(value, elements.address() + offset));
            false
        }
        _ => {
            insns.push(field(value, Reg::R2, Size::W, 0));
            // Its distance is set below.
            insns.push(branch_beyond(value, elements.entries(), 0));
            insns.extend(multiply(value, stride));
            insns.extend(load(base, elements.address()));
            insns.push(alu(AluOp::Add, value, Operand::Reg(base)));
            true
        }
    };
    if is_percpu {
        insns.push(Insn::Call(Callee::Helper(GET_SMP_PROCESSOR_ID)));
        insns.extend(multiply(Reg::R0, elements.copy_stride()));
        insns.push(alu(AluOp::Add, Reg::R0, Operand::Reg(value)));
    }
    if is_map {
        insns.push(field(Reg::R0, Reg::R0, Size::DW, 0));
    }
    if is_checked {
        insns.push(Insn::Goto { off: 1 });
        insns[1] = branch_beyond(value, elements.entries(), insns.len() as i16 - 2);
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

//! Real programs with one instruction changed.

use std::fmt;

use isa::ebpf::{PseudoCall, PseudoLoad, RawInsn};
use program::Program;

use super::edit::{instructions, splice};
use crate::ebpf::Choices;

/// Mutation of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutation {
    /// Another opcode: that of another instruction, or with a bit flipped, or any.
    Opcode,
    /// Another destination or source register.
    Register,
    /// Another offset.
    Offset,
    /// Another immediate.
    Immediate,
    /// Exchanged with the next instruction.
    Swap,
    /// Taken out.
    Delete,
    /// There twice.
    Duplicate,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Mutation; 7] = [
        Mutation::Opcode,
        Mutation::Register,
        Mutation::Offset,
        Mutation::Immediate,
        Mutation::Swap,
        Mutation::Delete,
        Mutation::Duplicate,
    ];
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mutation::Opcode => "opcode",
            Mutation::Register => "register",
            Mutation::Offset => "offset",
            Mutation::Immediate => "immediate",
            Mutation::Swap => "swap",
            Mutation::Delete => "delete",
            Mutation::Duplicate => "duplicate",
        })
    }
}

/// A program with one instruction changed, with how and at which slot; `None` where the
/// choice changes nothing or leaves no program that can be asked about.
pub fn mutate(choices: &mut Choices<'_>, program: &Program) -> Option<(Mutation, usize, Program)> {
    let all = instructions(program);
    let index = choices.below(all.len() as u32) as usize;
    let range = all.get(index)?.clone();
    let slots = program.insns();
    let mutation = choices.pick(&Mutation::ALL);
    let mut new = slots[range.clone()].to_vec();
    let edited = match mutation {
        Mutation::Opcode => {
            let other = all[choices.below(all.len() as u32) as usize].start;
            let code = match choices.below(4) {
                0 | 1 => slots[other].code,
                2 => new[0].code ^ 1 << choices.below(8),
                _ => choices.bits() as u8,
            };
            let is_wide = |code| RawInsn { code, ..new[0] }.is_wide_load();
            if is_wide(code) != is_wide(new[0].code) {
                return None;
            }
            new[0].code = code;
            splice(program, range.clone(), &new)
        }
        Mutation::Register => {
            let number = choices.below(11) as u8;
            new[0].regs = match choices.one_in(2) {
                true => new[0].regs & 0xf0 | number,
                false => new[0].regs & 0x0f | number << 4,
            };
            splice(program, range.clone(), &new)
        }
        Mutation::Offset => {
            new[0].off = match choices.below(4) {
                0 => new[0].off.wrapping_add(choices.between(-8, 8) as i16),
                1 => new[0].off.wrapping_add(8 * choices.between(-8, 8) as i16),
                2 => new[0].off ^ 1 << choices.below(16),
                _ => choices.between(-64, 64) as i16,
            };
            splice(program, range.clone(), &new)
        }
        Mutation::Immediate => {
            new[0].imm = match choices.below(4) {
                0 => new[0].imm.wrapping_add(choices.between(-8, 8)),
                1 => new[0].imm ^ 1 << choices.below(32),
                2 => choices.immediate(),
                _ => choices.between(-64, 255),
            };
            splice(program, range.clone(), &new)
        }
        Mutation::Swap => {
            let next = all.get(index + 1)?.clone();
            let mut both = slots[next.clone()].to_vec();
            both.extend_from_slice(&new);
            splice(program, range.start..next.end, &both)
        }
        Mutation::Delete => splice(program, range.clone(), &[]),
        Mutation::Duplicate => splice(program, range.end..range.end, &new),
    }?;
    let is_new = edited.insns() != slots && names_no_descriptor(&edited);
    is_new.then_some((mutation, range.start, edited))
}

/// True if what the instructions say of maps and BTF means the same in every process:
/// maps by an index that there is, BTF of vmlinux only.
fn names_no_descriptor(program: &Program) -> bool {
    let slots = program.insns();
    instructions(program).into_iter().all(|range| {
        let insn = slots[range.start];
        let high = slots[range.end - 1].imm;
        let is_module_kfunc = insn.pseudo_call() == Some(PseudoCall::Kfunc) && insn.off != 0;
        !is_module_kfunc
            && match insn.pseudo_load() {
                Some(PseudoLoad::MapFd | PseudoLoad::MapValue) => false,
                Some(PseudoLoad::MapIdx | PseudoLoad::MapIdxValue) => {
                    (insn.imm as u32 as usize) < program.maps().len()
                }
                Some(PseudoLoad::BtfId) => high == 0,
                Some(PseudoLoad::Plain | PseudoLoad::Func) | None => true,
            }
    })
}

//! The program itself.

use std::sync::Arc;

use btf::{StrOffset, TypeId};
use isa::ebpf::{Insn, RawInsn, decode};
use spec::programs::{AttachType, LoadFlags, ProgramType};

use crate::reference::{MapId, PseudoLoad, Reference, Referent};

/// A program with everything that its load says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Its name: that of its function.
    pub name: String,
    /// The section that it was in, without a question mark before it.
    pub section: String,
    /// Its type; `None` if the section says none and nobody else did.
    pub kind: Option<ProgramType>,
    /// Where it attaches, if that is to be said.
    pub attach: Option<AttachType>,
    /// What is asked for.
    pub flags: LoadFlags,
    /// What it attaches to, if that is a type.
    pub attach_point: Option<AttachPoint>,
    /// The instructions: its own, then those of the functions that it calls.
    pub slots: Vec<RawInsn>,
    /// What the slots refer to, by slot.
    pub references: Vec<Reference>,
    /// The functions in the slots, by start; the first is the program itself.
    pub subprograms: Vec<Subprogram>,
    /// The types of its functions, by slot.
    pub functions: Vec<FunctionStart>,
    /// The source lines, by slot.
    pub lines: Vec<Line>,
    /// The licence that its object states.
    pub license: Arc<str>,
    /// The kernel version that its object states, as the kernel encodes it; 0 if
    /// it states none.
    pub kernel_version: u32,
}

/// A type to attach to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachPoint {
    /// Its number; 0 if only the module is to be known.
    pub id: TypeId,
    /// The number of the module that it is of, from 1; 0 is the kernel itself.
    pub module: u16,
    /// Of a structure of functions: the number of the member that the program is.
    pub member: Option<u32>,
}

/// A function in the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subprogram {
    /// Its name.
    pub name: String,
    /// The slot where it starts.
    pub start: u32,
}

/// The type of the function that starts at a slot (`struct bpf_func_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionStart {
    /// The slot.
    pub slot: u32,
    /// The function's type.
    pub ty: TypeId,
}

/// The source line of the slots from one on (`struct bpf_line_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The slot.
    pub slot: u32,
    /// The name of the file.
    pub file: StrOffset,
    /// The text of the line.
    pub text: StrOffset,
    /// Its number, from 1; 22 bits.
    pub line: u32,
    /// The column, from 1; 10 bits.
    pub column: u32,
}

impl Program {
    /// The instructions, one for each slot.
    pub fn insns(&self) -> Vec<Insn> {
        decode(&self.slots)
    }

    /// The slots with file descriptors in place of the numbers of maps: what
    /// `BPF_PROG_LOAD` takes without an array of descriptors. Only references are
    /// changed: a slot that says the same without being one stays as it was written.
    pub fn for_kernel(&self, mut descriptor: impl FnMut(MapId) -> i32) -> Vec<RawInsn> {
        let mut slots = self.slots.clone();
        for reference in &self.references {
            let (map, pseudo) = match reference.to {
                Referent::Map(map) => (map, PseudoLoad::MapFd),
                Referent::Value { map, .. } => (map, PseudoLoad::MapValue),
                _ => continue,
            };
            if let Some(slot) = slots.get_mut(reference.slot as usize) {
                slot.regs = slot.dst() | (pseudo as u8) << 4;
                slot.imm = descriptor(map);
            }
        }
        slots
    }

    /// What the load says as the expected type of attachment: a type's number, or
    /// for a member of a structure of functions the member's.
    pub fn expected_attach_type(&self) -> u32 {
        let member = self.attach_point.and_then(|point| point.member);
        member.unwrap_or_else(|| self.attach.map_or(0, AttachType::number))
    }

    /// What a slot refers to.
    pub fn reference_at(&self, slot: u32) -> Option<&Reference> {
        let at = self
            .references
            .partition_point(|reference| reference.slot < slot);
        self.references
            .get(at)
            .filter(|reference| reference.slot == slot)
    }

    /// The function that a slot is in.
    pub fn subprogram_at(&self, slot: u32) -> Option<&Subprogram> {
        let after = self
            .subprograms
            .partition_point(|function| function.start <= slot);
        self.subprograms.get(after.checked_sub(1)?)
    }

    /// The source line of a slot.
    pub fn line_at(&self, slot: u32) -> Option<&Line> {
        let after = self.lines.partition_point(|line| line.slot <= slot);
        self.lines.get(after.checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(code: u8, regs: u8, imm: i32) -> RawInsn {
        RawInsn {
            code,
            regs,
            off: 0,
            imm,
        }
    }

    #[test]
    fn only_references_get_descriptors() {
        let slots = vec![
            slot(0x18, 0x51, 2),
            slot(0, 0, 0),
            slot(0x18, 0x63, 1),
            slot(0, 0, 24),
            // The same bits, written by hand.
            slot(0x18, 0x51, 2),
            slot(0, 0, 0),
        ];
        let (map, value) = (MapId(2), MapId(1));
        let program = Program {
            slots: slots.clone(),
            references: vec![
                Reference {
                    slot: 0,
                    to: Referent::Map(map),
                },
                Reference {
                    slot: 2,
                    to: Referent::Value {
                        map: value,
                        offset: 24,
                    },
                },
            ],
            ..Program::default()
        };
        let loaded = program.for_kernel(|map| 100 + map.0 as i32);
        assert_eq!(loaded[0], slot(0x18, 0x11, 102));
        assert_eq!(loaded[2], slot(0x18, 0x23, 101));
        assert_eq!(loaded[3..], slots[3..]);
        assert_eq!(program.reference_at(2).map(|it| it.slot), Some(2));
        assert_eq!(program.reference_at(1), None);
    }

    #[test]
    fn a_slot_belongs_to_what_starts_before_it() {
        let function = |name: &str, start| Subprogram {
            name: name.to_owned(),
            start,
        };
        let line = |slot, line| Line {
            slot,
            file: StrOffset(0),
            text: StrOffset(0),
            line,
            column: 1,
        };
        let program = Program {
            subprograms: vec![function("main", 0), function("callee", 4)],
            lines: vec![line(1, 10), line(4, 20)],
            ..Program::default()
        };
        let name = |slot| program.subprogram_at(slot).map(|it| it.name.as_str());
        assert_eq!(
            [name(0), name(3), name(4)],
            [Some("main"), Some("main"), Some("callee")]
        );
        let number = |slot| program.line_at(slot).map(|it| it.line);
        assert_eq!(
            [number(0), number(3), number(9)],
            [None, Some(10), Some(20)]
        );
    }

    #[test]
    fn a_member_says_where_its_program_attaches() {
        let member = AttachPoint {
            id: TypeId(7),
            module: 0,
            member: Some(3),
        };
        let mut program = Program {
            attach: Some(AttachType::StructOps),
            ..Program::default()
        };
        assert_eq!(
            program.expected_attach_type(),
            AttachType::StructOps.number()
        );
        program.attach_point = Some(member);
        assert_eq!(program.expected_attach_type(), 3);
        assert_eq!(Program::default().expected_attach_type(), 0);
    }
}

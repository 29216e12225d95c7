//! Loops in place of `bpf_loop` and of `bpf_for_each_map_elem` over arrays: functions of the
//! program that call the callback, so that an iteration costs a local call.
//!
//! A function is made for each callback and each array, and shared by all calls. It keeps
//! its state in `r6` to `r9`, which it finds again behind local calls; the frame of the
//! caller stays as it is. Linux makes the same loop under the same conditions: the callback
//! and the flags are known.

use isa::ebpf::{AluOp, Callee, Cond, Insn, Operand, Reg, Size, Width};
use spec::Errno;
use spec::callback::CallbackKind;
use spec::helpers::HelperId;
use spec::limits;
use verifier::{InsnFact, ProgramFacts};
use vm::Elements;

use super::accesses::Accesses;
use super::{Pass, Passes};
use crate::LoweredCall;
use crate::callbacks;
use crate::code::FunctionStack;
use crate::construct::{add, alu, branch, mov, mov_imm, mov_imm64};

/// Maximum number of iterations of `bpf_loop` (`BPF_MAX_LOOPS`).
const MAX_ITERATIONS: i32 = limits::LOOPS as i32;

/// Bytes of stack of a visit of an array: the key.
const KEY_BYTES: u32 = 8;

/// A function that loops.
struct Loop {
    insns: Vec<Insn>,
    /// The slot of the call for which it was made.
    origin: u32,
    /// Bytes of stack that it uses.
    stack: u32,
}

/// Range of a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    /// The numbers below a count.
    Numbers,
    /// The array of this index.
    Array(u32),
}

/// The functions that loop, in the slots behind the program.
pub(super) struct Loops {
    is_enabled: bool,
    program_len: usize,
    functions: Vec<Loop>,
    /// Their ranges, their callees, and their first slots.
    known: Vec<(Over, usize, usize)>,
}

impl Loops {
    pub(super) fn new(program_len: usize, passes: Passes) -> Loops {
        Loops {
            is_enabled: passes.contains(Pass::Loops),
            program_len,
            functions: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Replacement of an instruction, if it calls a helper that a loop replaces: a
    /// call of a function behind the program, at the distance from the instruction.
    pub(super) fn replace(
        &mut self,
        insn: Insn,
        slot: usize,
        fact: &InsnFact,
        facts: &ProgramFacts,
        accesses: &mut Accesses<'_>,
    ) -> Option<Vec<Insn>> {
        let Insn::Call(callee) = insn else {
            return None;
        };
        let kind = HelperId::of_call(callee)?.callback()?;
        let is_known = |flags: &verifier::Value| flags.constant() == Some(0);
        if !self.is_enabled || !fact.operand(Reg::R4).is_some_and(is_known) {
            return None;
        }
        let callee = callbacks::reached_callee(fact.operand(kind.rules().register)?, facts)?;
        let over = match kind {
            CallbackKind::Loop => Over::Numbers,
            CallbackKind::MapElement => Over::Array(fact.call?.map?.0),
            CallbackKind::Timer
            | CallbackKind::FindVma
            | CallbackKind::UserRingbuf
            | CallbackKind::RbtreeAdd
            | CallbackKind::Workqueue
            | CallbackKind::TaskWork => return None,
        };
        let mut known = self.known.iter();
        let start = match known.find(|known| (known.0, known.1) == (over, callee)) {
            Some((_, _, start)) => *start,
            None => self.add(over, callee, slot, accesses)?,
        };
        let distance = start as i64 - slot as i64 - 1;
        Some(vec![Insn::Call(Callee::Local(distance as i32))])
    }

    /// Makes a function for the call at a slot; its first slot.
    fn add(
        &mut self,
        over: Over,
        callee: usize,
        slot: usize,
        accesses: &mut Accesses<'_>,
    ) -> Option<usize> {
        let start = self.program_len + self.insns().count();
        let call_at = |at: usize| {
            let distance = callee as i64 - (start + at) as i64 - 1;
            Insn::Call(Callee::Local(distance as i32))
        };
        let (insns, stack) = match over {
            Over::Numbers => (count(call_at), 0),
            Over::Array(map) => (visit(accesses.elements(map)?, call_at)?, KEY_BYTES),
        };
        self.functions.push(Loop {
            insns,
            origin: slot as u32,
            stack,
        });
        self.known.push((over, callee, start));
        Some(start)
    }

    /// The instructions behind the program.
    pub(super) fn insns(&self) -> impl Iterator<Item = Insn> {
        self.functions
            .iter()
            .flat_map(|function| function.insns.iter().copied())
    }

    /// For each of them the slot of the call that it comes from.
    pub(super) fn origins(&self) -> Vec<u32> {
        let functions = self.functions.iter();
        functions
            .flat_map(|function| vec![function.origin; function.insns.len()])
            .collect()
    }

    /// First slots of the functions, and the stack that they use.
    pub(super) fn stack(&self) -> impl Iterator<Item = (usize, FunctionStack)> {
        let starts = self.known.iter().map(|(_, _, start)| *start);
        let stacks = self.functions.iter().map(|function| FunctionStack {
            bytes: function.stack,
            address_slots: 0,
        });
        starts.zip(stacks)
    }
}

/// The function for `bpf_loop`: `r1` is the number of iterations, `r3` the context.
fn count(call_at: impl Fn(usize) -> Insn) -> Vec<Insn> {
    vec![
        branch(Cond::Gt, Reg::R1, Operand::Imm(MAX_ITERATIONS), 12),
        mov(Reg::R6, Reg::R1),
        mov(Reg::R7, Reg::R3),
        mov_imm(Reg::R8, 0),
        Insn::Goto { off: 5 },
        mov(Reg::R1, Reg::R8),
        mov(Reg::R2, Reg::R7),
        call_at(7),
        alu(AluOp::Add, Reg::R8, Operand::Imm(1)),
        branch(Cond::Ne, Reg::R0, Operand::Imm(0), 1),
        branch(Cond::Lt, Reg::R8, Operand::Reg(Reg::R6), -6),
        mov(Reg::R0, Reg::R8),
        // `-E2BIG` with an upper half of 0 as in Linux's loop.
        Insn::Exit,
        Insn::Alu {
            op: AluOp::Mov,
            width: Width::W32,
            dst: Reg::R0,
            src: Operand::Imm(Errno::E2BIG.negated() as i32),
        },
        Insn::Exit,
    ]
}

/// The function for `bpf_for_each_map_elem`: `r1` is the map, `r3` the context. `None` for
/// values that are too large for the immediates.
fn visit(elements: &Elements, call_at: impl Fn(usize) -> Insn) -> Option<Vec<Insn>> {
    let stride = i32::try_from(elements.stride()).ok()?;
    let copy_stride = i32::try_from(elements.copy_stride()).ok()?;
    let mut insns = vec![mov(Reg::R6, Reg::R3), mov(Reg::R7, Reg::R1)];
    insns.extend(mov_imm64(Reg::R9, elements.address()));
    if elements.copies() > 1 {
        insns.extend([
            LoweredCall::ProcessorId.insn(),
            alu(AluOp::Mul, Reg::R0, Operand::Imm(copy_stride)),
            add(Reg::R9, Reg::R0),
        ]);
    }
    insns.push(mov_imm(Reg::R8, 0));
    let head = insns.len();
    insns.extend([
        Insn::Store {
            size: Size::W,
            base: Reg::R10,
            off: -(KEY_BYTES as i16),
            src: Operand::Reg(Reg::R8),
        },
        mov(Reg::R1, Reg::R7),
        mov(Reg::R2, Reg::R10),
        alu(AluOp::Add, Reg::R2, Operand::Imm(-(KEY_BYTES as i32))),
        mov(Reg::R3, Reg::R9),
        mov(Reg::R4, Reg::R6),
        mov_imm(Reg::R5, 0),
    ]);
    insns.push(call_at(insns.len()));
    insns.extend([
        alu(AluOp::Add, Reg::R8, Operand::Imm(1)),
        alu(AluOp::Add, Reg::R9, Operand::Imm(stride)),
        branch(Cond::Ne, Reg::R0, Operand::Imm(0), 1),
    ]);
    let back = head as i16 - insns.len() as i16 - 1;
    insns.push(Insn::Jump {
        cond: Cond::Ne,
        width: Width::W32,
        dst: Reg::R8,
        src: Operand::Imm(elements.entries() as i32),
        off: back,
    });
    insns.extend([mov(Reg::R0, Reg::R8), Insn::Exit]);
    Some(insns)
}

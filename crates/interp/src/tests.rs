//! Every operation against `isa`'s `eval`, in every operand location.

mod chains;
mod compute;
mod flow;
mod frames;
mod memory;
mod random;

use isa::ebpf::{AluOp, Imm64, Insn, Operand, Reg, Value64, Width, assemble};
use lower::{Lowered, MemoryProgram};
use spec::SplitMix;
use vm::{Machine, Outcome, Unchecked};

use crate::ThreadedProgram;

const REGS: [Reg; 3] = [Reg::R0, Reg::R2, Reg::R9];
const VALUES: [u64; 9] = [
    0,
    1,
    u64::MAX,
    i64::MIN as u64,
    i64::MAX as u64,
    0x8000_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1234_5678_9abc_def0,
];
const IMMS: [i32; 6] = [0, 1, -1, i32::MIN, i32::MAX, 33];
const WIDTHS: [Width; 2] = [Width::W32, Width::W64];

/// Compiles a program whose safety the test asserts.
///
/// # Safety
/// As for `Unchecked::assume_safe`.
unsafe fn compile(insns: &[Insn]) -> ThreadedProgram<MemoryProgram> {
    // SAFETY: passed on to the caller.
    let trusted = unsafe { Unchecked::assume_safe(insns.to_vec()) };
    let lowered = Lowered::from_unchecked(trusted).expect("its form is in order");
    ThreadedProgram::compile(&lowered).expect("the interpreter performs it")
}

/// Runs a program on memory.
///
/// # Safety
/// As for `Unchecked::assume_safe`.
unsafe fn run_on(insns: &[Insn], memory: &mut [u8]) -> u64 {
    // SAFETY: passed on to the caller.
    let code = unsafe { compile(insns) };
    match code.run(&mut Machine::new(), memory, &mut SplitMix::new(1)) {
        Outcome::Returned(value) => value,
        Outcome::BudgetExhausted | Outcome::DeadlinePassed => panic!("there was no limit"),
    }
}

/// Runs a program that accesses nothing but its registers and stack.
fn run(insns: &[Insn]) -> u64 {
    // SAFETY: that is the case for every program of these tests.
    unsafe { run_on(insns, &mut []) }
}

/// Runs a program given as text.
fn run_text(text: &str) -> u64 {
    run(&assemble(text).expect(text))
}

fn set(dst: Reg, value: u64) -> [Insn; 2] {
    [
        Insn::LoadImm64 {
            dst,
            imm: Imm64::Value(Value64::new(value)),
        },
        Insn::Imm64High,
    ]
}

fn copy(dst: Reg, src: Reg) -> Insn {
    Insn::Alu {
        op: AluOp::Mov,
        width: Width::W64,
        dst,
        src: Operand::Reg(src),
    }
}

/// `dst` and `src` set, then the instruction, then `dst` returned.
fn result(dst: Reg, a: u64, src: Option<(Reg, u64)>, insn: Insn) -> u64 {
    let mut program = Vec::from(set(dst, a));
    if let Some((src, b)) = src {
        program.extend(set(src, b));
    }
    program.push(insn);
    program.extend([copy(Reg::R0, dst), Insn::Exit]);
    run(&program)
}

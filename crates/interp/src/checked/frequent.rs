//! The frequent rows of the instruction table, and their arms in the interpreter's match.
//!
//! In these arms operator, width and operand kinds are constants, so each compiles to a few
//! machine instructions.

use isa::ebpf::{Insn, Op};

/// Size of the register array: all values of a 4-bit register field.
pub(super) const REGISTERS: usize = 16;

/// An instruction as the loop reads it: its slot, with its frequent row instead of the
/// opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) row: Frequent,
    regs: u8,
    pub(super) off: i16,
    pub(super) imm: i32,
}

impl Step {
    /// A step of which the loop reads the instruction.
    pub(super) const RARE: Step = Step {
        row: Frequent::Not,
        regs: 0,
        off: 0,
        imm: 0,
    };

    pub(super) fn of(insn: Insn) -> Step {
        let (raw, _) = insn.encode().unwrap_or_default();
        Step {
            row: insn.row().map_or(Frequent::Not, |row| Frequent::of(row.op)),
            regs: raw.regs,
            off: raw.off,
            imm: raw.imm,
        }
    }

    #[inline(always)]
    pub(super) fn dst(self) -> usize {
        usize::from(self.regs) % REGISTERS
    }

    #[inline(always)]
    pub(super) fn src(self) -> usize {
        usize::from(self.regs) / REGISTERS
    }
}

/// Passes the frequent rows to a macro: by operator, width and second operand, and the
/// plain loads and stores by size.
macro_rules! frequent_rows {
    ($macro:ident!($($arguments:tt)*)) => {
        $macro! {
            ($($arguments)*)
            arithmetic:
                Add(AddImm64 AddReg64 AddImm32 AddReg32)
                Sub(SubImm64 SubReg64 SubImm32 SubReg32)
                Mul(MulImm64 MulReg64 MulImm32 MulReg32)
                Or(OrImm64 OrReg64 OrImm32 OrReg32)
                And(AndImm64 AndReg64 AndImm32 AndReg32)
                Xor(XorImm64 XorReg64 XorImm32 XorReg32)
                Lsh(LshImm64 LshReg64 LshImm32 LshReg32)
                Rsh(RshImm64 RshReg64 RshImm32 RshReg32)
                Arsh(ArshImm64 ArshReg64 ArshImm32 ArshReg32)
                Mov(MovImm64 MovReg64 MovImm32 MovReg32);
            branches:
                Eq(IfEqImm64 IfEqReg64 IfEqImm32 IfEqReg32)
                Ne(IfNeImm64 IfNeReg64 IfNeImm32 IfNeReg32)
                Set(IfSetImm64 IfSetReg64 IfSetImm32 IfSetReg32)
                Gt(IfGtImm64 IfGtReg64 IfGtImm32 IfGtReg32)
                Ge(IfGeImm64 IfGeReg64 IfGeImm32 IfGeReg32)
                Lt(IfLtImm64 IfLtReg64 IfLtImm32 IfLtReg32)
                Le(IfLeImm64 IfLeReg64 IfLeImm32 IfLeReg32)
                SGt(IfSGtImm64 IfSGtReg64 IfSGtImm32 IfSGtReg32)
                SLt(IfSLtImm64 IfSLtReg64 IfSLtImm32 IfSLtReg32);
            memory:
                B(Load8 StoreReg8)
                H(Load16 StoreReg16)
                W(Load32 StoreReg32)
                DW(Load64 StoreReg64)
        }
    };
}

macro_rules! define_frequent {
    (
        ()
        arithmetic: $($op:ident($($alu:ident)*))*;
        branches: $($cond:ident($($branch:ident)*))*;
        memory: $($size:ident($load:ident $store:ident))*
    ) => {
        /// The rows that have an arm in the loop.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Frequent {
            $($($alu,)*)*
            $($($branch,)*)*
            $($load, $store,)*
            Goto,
            /// Any other instruction.
            Not,
        }

        impl Frequent {
            fn of(op: Op) -> Frequent {
                match op {
                    $($(Op::$alu => Frequent::$alu,)*)*
                    $($(Op::$branch => Frequent::$branch,)*)*
                    $(Op::$load => Frequent::$load, Op::$store => Frequent::$store,)*
                    Op::Goto => Frequent::Goto,
                    _ => Frequent::Not,
                }
            }
        }
    };
}

frequent_rows!(define_frequent!());

/// The loop's match.
macro_rules! perform {
    (
        ($run:ident, $step:ident, $pc:ident, $attempt:ident, $other:expr)
        arithmetic: $($op:ident($imm64:ident $reg64:ident $imm32:ident $reg32:ident))*;
        branches: $($cond:ident($if_imm64:ident $if_reg64:ident $if_imm32:ident $if_reg32:ident))*;
        memory: $($size:ident($load:ident $store:ident))*
    ) => {{
        macro_rules! alu {
            ($what:ident, $width:ident, $second:expr) => {{
                let (dst, second) = ($step.dst(), $second);
                $run.regs[dst] = eval::alu(AluOp::$what, Width::$width, $run.regs[dst], second);
            }};
        }
        macro_rules! branch {
            ($what:ident, $width:ident, $second:expr) => {{
                let (first, second) = ($run.regs[$step.dst()], $second);
                if eval::compare(Cond::$what, Width::$width, first, second) {
                    $pc = after($pc, $step.off.into());
                }
            }};
        }
        match $step.row {
            $(
                Frequent::$imm64 => alu!($op, W64, eval::imm($step.imm)),
                Frequent::$reg64 => alu!($op, W64, $run.regs[$step.src()]),
                Frequent::$imm32 => alu!($op, W32, eval::imm($step.imm)),
                Frequent::$reg32 => alu!($op, W32, $run.regs[$step.src()]),
            )*
            $(
                Frequent::$if_imm64 => branch!($cond, W64, eval::imm($step.imm)),
                Frequent::$if_reg64 => branch!($cond, W64, $run.regs[$step.src()]),
                Frequent::$if_imm32 => branch!($cond, W32, eval::imm($step.imm)),
                Frequent::$if_reg32 => branch!($cond, W32, $run.regs[$step.src()]),
            )*
            $(
                Frequent::$load => {
                    let value = $attempt!($run.load(Size::$size, $step.src(), $step.off));
                    $run.regs[$step.dst()] = value;
                }
                Frequent::$store => {
                    let value = $run.regs[$step.src()];
                    $attempt!($run.store(Size::$size, $step.dst(), $step.off, value));
                }
            )*
            Frequent::Goto => $pc = after($pc, $step.off.into()),
            Frequent::Not => $other,
        }
    }};
}

pub(super) use {frequent_rows, perform};

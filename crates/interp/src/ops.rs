//! Handlers of the operations, by family, and macros that select them.
//!
//! Each family has one generic [`Operation`](crate::op::Operation). Operand locations,
//! width and operator are type parameters, so every combination is monomorphised to a
//! handler without tests at run time; its semantics come from `isa`'s `eval`. Infrequent
//! operations find their operands at run time.

pub(crate) mod alu;
pub(crate) mod atomic;
pub(crate) mod branch;
pub(crate) mod control;
pub(crate) mod linked;
pub(crate) mod memory;
mod operand;
pub(crate) mod packet;
pub(crate) mod pairs;

/// Binds a type name to the marker type of a value and evaluates the body; other values
/// return the `else` expression.
macro_rules! choose {
    ($value:expr, $name:ident in [$($pattern:pat => $marker:ty),* $(,)?], $body:expr) => {
        match $value { $( $pattern => { type $name = $marker; $body } )* }
    };
    ($value:expr, $name:ident in [
        $($pattern:pat => $marker:ty),* ; else $otherwise:expr
    ], $body:expr) => {
        match $value { $( $pattern => { type $name = $marker; $body } )* _ => return $otherwise }
    };
}
/// As `choose!` for the width of an operation.
macro_rules! choose_width {
    ($value:expr, $name:ident, $body:expr) => {
        crate::ops::choose!($value, $name in [
            isa::ebpf::Width::W32 => crate::ops::operand::W32,
            isa::ebpf::Width::W64 => crate::ops::operand::W64,
        ], $body)
    };
}
/// As `choose!` for the location of a register: `r0` or another one.
macro_rules! choose_reg {
    ($value:expr, $name:ident, $body:expr) => {
        crate::ops::choose!($value, $name in [
            isa::ebpf::Reg::R0 => crate::ops::operand::R0,
            _ => crate::ops::operand::Stored,
        ], $body)
    };
}
/// As `choose!` for a second operand.
macro_rules! choose_source {
    ($value:expr, $name:ident, $body:expr) => {
        crate::ops::choose!($value, $name in [
            isa::ebpf::Operand::Imm(_) => crate::ops::operand::Imm,
            isa::ebpf::Operand::Reg(isa::ebpf::Reg::R0) => crate::ops::operand::R0,
            isa::ebpf::Operand::Reg(_) => crate::ops::operand::Stored,
        ], $body)
    };
}
/// As `choose!` for a condition.
macro_rules! choose_cond {
    ($value:expr, $name:ident, $body:expr) => {
        crate::ops::choose!($value, $name in [
            isa::ebpf::Cond::Eq => crate::ops::operand::Eq,
            isa::ebpf::Cond::Ne => crate::ops::operand::Ne,
            isa::ebpf::Cond::Set => crate::ops::operand::Set,
            isa::ebpf::Cond::Gt => crate::ops::operand::Gt,
            isa::ebpf::Cond::Ge => crate::ops::operand::Ge,
            isa::ebpf::Cond::Lt => crate::ops::operand::Lt,
            isa::ebpf::Cond::Le => crate::ops::operand::Le,
            isa::ebpf::Cond::SGt => crate::ops::operand::SGt,
            isa::ebpf::Cond::SGe => crate::ops::operand::SGe,
            isa::ebpf::Cond::SLt => crate::ops::operand::SLt,
            isa::ebpf::Cond::SLe => crate::ops::operand::SLe,
        ], $body)
    };
}
pub(crate) use {choose, choose_cond, choose_reg, choose_source, choose_width};

use crate::op::Op;
use isa::ebpf::{Operand, Reg};

impl Op {
    pub(crate) const fn dst(self, reg: Reg) -> Op {
        Op {
            dst: reg.number(),
            ..self
        }
    }

    pub(crate) const fn src(self, reg: Reg) -> Op {
        Op {
            src: reg.number(),
            ..self
        }
    }

    pub(crate) const fn lhs(self, reg: Reg) -> Op {
        Op {
            lhs: reg.number(),
            ..self
        }
    }

    /// The second operand, register or immediate.
    pub(crate) const fn operand(self, operand: Operand) -> Op {
        match operand {
            Operand::Reg(reg) => self.src(reg),
            Operand::Imm(imm) => Op {
                a: imm as u32,
                ..self
            },
        }
    }
}

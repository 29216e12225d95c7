//! The rows of the instruction table by what a generator has to provide for them.
//!
//! Generators draw rows from here, so new rows of the table are generated without changes.

use super::Dialect;
use isa::ebpf::table::ROWS;
use isa::ebpf::{AluOp, Effect, Group, Insn, Operand, Row, Size, Width};

/// A row that accesses memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessRow {
    pub(super) row: &'static Row,
    pub(super) size: Size,
    /// True if the address must be a multiple of the size.
    pub(super) is_ordered: bool,
}

/// Constraint of a row's immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    Anything,
    /// A shift count, which Linux requires to be below the width.
    Count(Width),
    /// A divisor, which Linux requires not to be 0.
    Divisor,
    /// An address-space cast, of which few are known.
    Cast,
}

/// A row that works on registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComputeRow {
    pub(super) row: &'static Row,
    pub(super) demand: Demand,
}

/// The rows that a dialect has.
#[derive(Clone, Debug)]
pub(super) struct Palette {
    pub(super) compute: Vec<ComputeRow>,
    pub(super) load: Vec<AccessRow>,
    pub(super) store: Vec<AccessRow>,
    pub(super) atomic: Vec<AccessRow>,
    pub(super) branch: Vec<&'static Row>,
}

impl Palette {
    pub(super) fn new(dialect: Dialect) -> Palette {
        let with = |effect| {
            let rows = ROWS.iter().filter(move |row| dialect.has(row));
            rows.filter(move |row| row.effect == effect)
        };
        Palette {
            compute: with(Effect::Compute).map(ComputeRow::new).collect(),
            load: with(Effect::Load).map(AccessRow::new).collect(),
            store: with(Effect::Store).map(AccessRow::new).collect(),
            atomic: with(Effect::Atomic).map(AccessRow::new).collect(),
            branch: with(Effect::Branch)
                .filter(|row| matches!(sample(row), Insn::Jump { .. }))
                .collect(),
        }
    }
}

impl Dialect {
    /// True if the dialect has the row.
    pub fn has(self, row: &Row) -> bool {
        match sample(row) {
            // What is only known after linking.
            Insn::LoadImm64 { .. } => row.src.admits(0),
            Insn::Call(isa::ebpf::Callee::Kfunc { .. }) => false,
            // Linux has packet loads in socket filters only, and casts in programs with an
            // arena.
            Insn::PacketAbs { .. } | Insn::PacketInd { .. } | Insn::Cast { .. } => {
                self == Dialect::Engines
            }
            _ => row.group != Group::Later,
        }
    }
}

impl AccessRow {
    fn new(row: &'static Row) -> AccessRow {
        AccessRow {
            row,
            size: row.slot(0, 0, 0, 0).size(),
            is_ordered: matches!(
                sample(row),
                Insn::Atomic { .. } | Insn::LoadAcquire { .. } | Insn::StoreRelease { .. }
            ),
        }
    }
}

impl ComputeRow {
    fn new(row: &'static Row) -> ComputeRow {
        use AluOp::{Arsh, Div, Lsh, Mod, Rsh, SDiv, SMod};
        let demand = match sample(row) {
            Insn::Alu {
                op,
                width,
                src: Operand::Imm(_),
                ..
            } => match op {
                Lsh | Rsh | Arsh => Demand::Count(width),
                Div | Mod | SDiv | SMod => Demand::Divisor,
                _ => Demand::Anything,
            },
            Insn::Cast { .. } => Demand::Cast,
            _ => Demand::Anything,
        };
        ComputeRow { row, demand }
    }
}

/// An instruction of the row.
fn sample(row: &Row) -> Insn {
    Insn::decode_one(row.slot(1, 2, 0, 1), Some(Default::default()))
}

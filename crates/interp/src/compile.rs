//! Compilation of a lowered program to operations: one pass, linear in its length.

use std::fmt;
use std::sync::Arc;

use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Size, Width};
use lower::flow::{Cfg, jump_target};
use lower::trees::{Piece, Test, Tree, Trees};
use lower::{Evidence, LoweredCode, PacketRules};
use vm::FrameLayout;

use crate::fuse;
use crate::op::{Distance, Op};
use crate::ops::branch::Table;
use crate::ops::linked::{self, Equality, Kind};
use crate::ops::packet::PacketLoad;
use crate::ops::pairs::Half;
use crate::ops::{branch, control};
use crate::{Applied, Fusion, Fusions};

mod single;

/// An instruction that the interpreter does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Slot of the instruction in the program that was lowered.
    pub slot: usize,
    /// The instruction.
    pub insn: Insn,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "instruction {} ({}): the threaded interpreter does not support it",
            self.slot, self.insn
        )
    }
}

impl std::error::Error for Unsupported {}

/// The operations of a program.
pub(crate) struct Compiled {
    pub ops: Box<[Op]>,
    /// Lookup tables, whose addresses operations hold; shared, because moving a box would
    /// invalidate them.
    pub tables: Arc<[Table]>,
    /// Frames of the functions of a verified program, whose addresses operations hold.
    pub layouts: Arc<[FrameLayout]>,
    /// The fusions that were applied.
    pub applied: Applied,
}

pub(crate) fn compile(program: &LoweredCode, fusions: Fusions) -> Result<Compiled, Unsupported> {
    if let (Evidence::Verified(_), true) = (program.evidence(), cfg!(target_endian = "big")) {
        // Proofs rest on the bytes of numbers in memory, which are those of a little-endian machine.
        let (slot, insn) = (program.origin(0), program.insns()[0]);
        return Err(Unsupported { slot, insn });
    }
    let mut builder = Builder::new(program, fusions);
    let built = builder.build();
    built.map_err(|Unsupported { slot, insn }| Unsupported {
        slot: program.origin(slot),
        insn,
    })?;
    Ok(builder.finish())
}

/// The field of an operation or table that a target is written to.
enum Field {
    First,
    Second,
    Case { table: u32, position: u32 },
    Default { table: u32 },
}

struct Patch {
    op: u32,
    /// Slot of the target.
    target: u32,
    field: Field,
}

struct Builder<'a> {
    program: &'a LoweredCode,
    /// Frames of the functions, of verified programs.
    layouts: Arc<[FrameLayout]>,
    insns: &'a [Insn],
    cfg: &'a Cfg,
    trees: Trees,
    rules: PacketRules,
    ops: Vec<Op>,
    /// Kind of each operation.
    kinds: Vec<Kind>,
    /// Operations that may be linked with the next one.
    leads: Vec<u32>,
    tables: Vec<Table>,
    /// The operation that uses each table.
    lookups: Vec<usize>,
    patches: Vec<Patch>,
    /// Index of the operation of each slot.
    op_of: Vec<u32>,
    fusions: Fusions,
    applied: Applied,
}

impl<'a> Builder<'a> {
    fn new(program: &'a LoweredCode, fusions: Fusions) -> Builder<'a> {
        let (insns, cfg) = (program.insns(), program.def_use().cfg());
        assert!(
            insns.len() <= Distance::LONGEST_PROGRAM,
            "a program has fewer slots than a distance can span"
        );
        Builder {
            program,
            layouts: single::layouts(program),
            insns,
            trees: Trees::find(insns, cfg, None, |tree| {
                tree.is_chain() && fusions.contains(Fusion::Table)
            }),
            cfg,
            rules: program.packet_rules(),
            ops: Vec::with_capacity(insns.len()),
            kinds: Vec::with_capacity(insns.len()),
            leads: Vec::with_capacity(insns.len()),
            tables: Vec::new(),
            lookups: Vec::new(),
            patches: Vec::with_capacity(insns.len()),
            op_of: vec![0; insns.len()],
            fusions,
            applied: Applied::NONE,
        }
    }

    /// Applies a fusion and counts it, if it is enabled and matches.
    fn fuse<T>(&mut self, fusion: Fusion, fused: impl FnOnce(&Self) -> Option<T>) -> Option<T> {
        if !self.fusions.contains(fusion) {
            return None;
        }
        let fused = fused(self)?;
        self.applied.add(fusion);
        Some(fused)
    }

    fn build(&mut self) -> Result<(), Unsupported> {
        let mut slot = self.prologue();
        while slot < self.insns.len() {
            self.op_of[slot] = self.ops.len() as u32;
            slot += if self.trees.is_subsumed(slot) {
                1
            } else {
                self.operation(slot)?
            };
        }
        Ok(())
    }

    /// Skips a leading `r6 = r1`, which every run sets up.
    fn prologue(&self) -> usize {
        const KEEP_CONTEXT: Insn = Insn::Alu {
            op: AluOp::Mov,
            width: Width::W64,
            dst: Reg::R6,
            src: Operand::Reg(Reg::R1),
        };
        usize::from(self.insns[0] == KEEP_CONTEXT && !self.cfg.is_target(0))
    }

    /// Compiles the operation at `slot`; returns the number of slots.
    fn operation(&mut self, slot: usize) -> Result<usize, Unsupported> {
        let constant = |this: &Self| fuse::constant_return(this.insns, this.cfg, slot);
        if let Some(imm) = self.fuse(Fusion::ConstantReturn, constant) {
            self.push(control::exit_with(imm), Kind::Other);
            return Ok(2);
        }
        Ok(match self.insns[slot] {
            Insn::PacketAbs { size, imm } => self.load(slot, size, None, imm),
            Insn::PacketInd { size, src, imm } => self.load(slot, size, Some(src), imm),
            Insn::Jump { .. } => self.jump(slot),
            _ => return self.single_or_arithmetic(slot),
        })
    }

    fn load(&mut self, slot: usize, size: Size, index: Option<Reg>, imm: i32) -> usize {
        let load = PacketLoad {
            size,
            index,
            offset: imm,
            rules: self.rules,
        };
        if index == Some(Reg::R0) {
            self.push(load.alone(), Kind::Other);
            return 1;
        }
        let header_length = |this: &Self| {
            let is_byte = fuse::is_byte_load(this.insns[slot]);
            let length = || fuse::header_length(this.insns, this.cfg, slot);
            is_byte.then(length).flatten()
        };
        if let Some(dst) = self.fuse(Fusion::HeaderLength, header_length) {
            let kind = match index {
                None => Kind::HeaderLength,
                Some(_) => Kind::Other,
            };
            self.push(load.then_header_length(dst), kind);
            return 4;
        }
        let test = |this: &Self| {
            fuse::test_after(this.insns, this.cfg, slot, Reg::R0)
                .filter(|_| !this.trees.is_root(slot + 1))
        };
        if let Some(test) = self.fuse(Fusion::PacketTest, test) {
            self.patch_later(Field::First, test.target);
            let kind = match (Equality::of(test.cond), index) {
                (Some(cond), None) => Kind::LoadTest(size, cond),
                (Some(cond), Some(_)) => Kind::IndirectLoadTest(size, cond),
                (None, _) => Kind::Other,
            };
            self.push(load.then_jump(test.cond, test.imm), kind);
            return 2;
        }
        self.push(load.alone(), Kind::Other);
        1
    }

    fn jump(&mut self, slot: usize) -> usize {
        if self.trees.is_root(slot) {
            self.applied.add(Fusion::Table);
            self.switch(slot);
            return 1;
        }
        let alone = self.trees.is_shared(slot);
        let inverted =
            |this: &Self| fuse::inverted_branch(this.insns, this.cfg, slot).filter(|_| !alone);
        if let Some((cond, target)) = self.fuse(Fusion::BranchInversion, inverted) {
            self.branch(slot, cond, target);
            return 2;
        }
        let Some(test) = Test::at(self.insns, slot) else {
            if let Insn::Jump { cond, .. } = self.insns[slot] {
                self.branch(slot, cond, self.target(slot));
            }
            return 1;
        };
        // A chain that starts at the next test is looked up as a whole.
        let second = |this: &Self| {
            fuse::test_after(this.insns, this.cfg, slot, test.dst)
                .filter(|_| !alone && !this.trees.is_root(slot + 1))
        };
        let Some(second) = self.fuse(Fusion::TestPair, second) else {
            if test.dst != Reg::R0 {
                self.branch(slot, test.cond, test.target);
                return 1;
            }
            let kind = Equality::of(test.cond).map_or(Kind::Other, Kind::Test);
            let (width, imm) = (Width::W32, Operand::Imm(test.imm));
            self.patch_later(Field::First, test.target);
            let op = branch::conditional(test.cond, width, test.dst, imm, false);
            self.push(op, kind);
            return 1;
        };
        let kind = match (Equality::of(test.cond), Equality::of(second.cond)) {
            (Some(first), Some(second)) if test.dst == Reg::R0 => Kind::TestPair(first, second),
            _ => Kind::Other,
        };
        self.patch_later(Field::First, test.target);
        self.patch_later(Field::Second, second.target);
        let first = (test.cond, test.imm);
        let op = branch::pair(first, (second.cond, second.imm), test.dst);
        self.push(op, kind);
        2
    }

    #[inline(always)]
    fn push(&mut self, op: Op, kind: Kind) {
        if kind.may_lead() {
            self.leads.push(self.ops.len() as u32);
        }
        self.ops.push(op);
        self.kinds.push(kind);
    }

    /// Compiles the branch at `slot` with a condition and a target.
    fn branch(&mut self, slot: usize, cond: Cond, target: usize) {
        let Insn::Jump {
            width, dst, src, ..
        } = self.insns[slot]
        else {
            return;
        };
        let back = target <= slot;
        let half = Half::If {
            cond,
            width,
            dst,
            src: src.into(),
            back,
        };
        self.patch_later(Field::First, target);
        let op = branch::conditional(cond, width, dst, src, back);
        self.push(op, Kind::Half(half));
    }

    /// Compiles the comparison chain at `slot` to a table lookup.
    fn switch(&mut self, slot: usize) {
        let Some(tree) = self.trees.with_root(slot) else {
            return;
        };
        let Tree { dst, keys, .. } = tree;
        let cases = keys.to_vec();
        let default = tree.ranges[0].target as usize;
        let first = cases[0].from;
        let last = cases[cases.len() - 1].from - first;
        let table = self.tables.len() as u32;
        let dense = (last as usize) < 8 * cases.len() + 64;
        let len = if dense {
            last as usize + 1
        } else {
            cases.len()
        };
        for position in 0..if dense { len as u32 } else { 0 } {
            self.patch_later(Field::Case { table, position }, default);
        }
        for (index, &Piece { from, target }) in cases.iter().enumerate() {
            let position = if dense { from - first } else { index as u32 };
            self.patch_later(Field::Case { table, position }, target as usize);
        }
        self.patch_later(Field::Default { table }, default);
        self.lookups.push(self.ops.len());
        self.tables.push(Table {
            first,
            keys: if dense {
                Box::default()
            } else {
                cases.iter().map(|case| case.from).collect()
            },
            targets: vec![Distance::NONE; len].into_boxed_slice(),
            default: Distance::NONE,
        });
        self.push(branch::switch(dst, dense), Kind::Other);
    }

    /// Patches the next operation with the jump target of the instruction at `slot`; true
    /// if the jump is backward.
    fn patch_target(&mut self, slot: usize) -> bool {
        let target = self.target(slot);
        self.patch_later(Field::First, target);
        target <= slot
    }

    /// The target of the jump at `slot`.
    fn target(&self, slot: usize) -> usize {
        jump_target(&self.insns[slot], slot).unwrap_or(usize::MAX)
    }

    /// Records that the next operation has a target, which [`Builder::finish`] writes.
    fn patch_later(&mut self, field: Field, target: usize) {
        self.patches.push(Patch {
            op: self.ops.len() as u32,
            target: target as u32,
            field,
        });
    }

    /// Writes the targets, and links operations with the next one where a fusion applies.
    fn finish(mut self) -> Compiled {
        for &lead in &self.leads {
            let lead = lead as usize;
            if let Some((fusion, step)) = linked::link(&self.kinds[lead..])
                && self.fusions.contains(fusion)
            {
                self.applied.add(fusion);
                self.ops[lead].run = step;
            }
        }
        let tables = &mut self.tables;
        for patch in &self.patches {
            let op = &mut self.ops[patch.op as usize];
            let target = self.op_of[patch.target as usize];
            let distance = Distance::between(patch.op as usize, target as usize);
            match patch.field {
                Field::First => op.t = distance,
                Field::Second => op.u = distance,
                Field::Case { table, position } => {
                    tables[table as usize].targets[position as usize] = distance;
                }
                Field::Default { table } => tables[table as usize].default = distance,
            }
        }
        let tables: Arc<[Table]> = self.tables.into();
        for (&lookup, table) in self.lookups.iter().zip(&*tables) {
            self.ops[lookup] = branch::with_table(self.ops[lookup], table);
        }
        Compiled {
            ops: self.ops.into_boxed_slice(),
            tables,
            layouts: self.layouts,
            applied: self.applied,
        }
    }
}

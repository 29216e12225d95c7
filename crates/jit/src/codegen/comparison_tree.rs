//! Comparison trees as table lookups and binary searches.
//!
//! If the constants are close together, a table maps each value to its leaf: a byte that is
//! then compared (rule lists have many constants and few targets), or a distance to jump.
//! Otherwise the constants are searched by a balanced tree of comparisons.

use std::ops::Range;

use isa::ebpf::{Size, Width};
use lower::trees::Tree;

use super::generator::Generator;
use super::target::{Alu, Assembler, Cc, Label, Layout, Mem, Target};
use crate::Optimization;
use crate::analysis::Window;

/// Constants that are compared linearly at the leaves of a binary search.
const LEAVES: usize = 3;

/// A table of bytes after the code.
pub(crate) struct Table {
    label: Label,
    bytes: Vec<u8>,
}

impl<T: Target> Generator<'_, T> {
    /// Compiles the comparison tree whose root is a slot; returns the number of slots.
    pub(crate) fn write_comparison_tree(&mut self, slot: usize) -> usize {
        let analysis = self.analysis;
        let tree = analysis
            .trees
            .with_root(slot)
            .expect("the slot is the root of a tree");
        if tree.has_back_edge {
            self.check_at_new_label();
        }
        let mut next = slot + 1;
        while next < self.function.end && self.infos[next].is_subsumed() {
            next += 1;
        }
        let window = Window::of(&tree, self.known_bits(tree.dst));
        let gpr = self.gpr(tree.dst);
        let wanted = |target: u32| self.infos[target as usize].live_in().has(tree.dst);
        let is_free = !window.pieces.iter().any(|piece| wanted(piece.target));
        match self.frame.spare().or(is_free.then_some(gpr)) {
            _ if window.pieces.len() == 1 => self.jump_unless_next(window.pieces[0].target, next),
            Some(base) if window.is_dense(&tree) && self.may_have_table(&window) => {
                self.applies(Optimization::JumpTable);
                self.write_jump_table(&tree, base, &window, next)
            }
            _ => self.write_binary_search(gpr, &window, next),
        }
        next - slot
    }

    /// True if a table may be used: without a retpoline, which would write below the stack
    /// pointer, or for targets that are compared.
    fn may_have_table(&self, window: &Window) -> bool {
        let is_direct = !self.retpoline || window.compared().is_some();
        is_direct && self.uses(Optimization::JumpTable)
    }

    /// Jumps to a slot unless it is the next one.
    fn jump_unless_next(&mut self, target: u32, next: usize) {
        if target as usize != next {
            self.asm.jump(self.label(target as usize));
        }
    }

    fn write_jump_table(&mut self, tree: &Tree<'_>, base: T::Reg, window: &Window, next: usize) {
        let gpr = self.gpr(tree.dst);
        let first = window.first();
        let mut index = gpr;
        if first != 0 {
            index = T::SCRATCH;
            let mem = Mem::at(gpr, first.wrapping_neg() as i32);
            self.asm.lea(Width::W32, index, mem);
        }
        let outside = self.write_range_check(index, window);
        if index == gpr && (base == gpr || self.known_bits(tree.dst) > 32) {
            index = T::SCRATCH;
            self.asm.mov(Width::W32, index, gpr);
        }
        let label = self.asm.new_label();
        self.asm.lea_label(base, label);
        match window.compared() {
            Some((usual, others)) => {
                let bytes = window.entries(|target| {
                    let number = others.iter().position(|&other| other == target);
                    number.map_or(0, |number| number as u8 + 1)
                });
                self.tables.push(Table { label, bytes });
                self.compare_entry(Mem::indexed(base, index, 0), &others);
                match outside {
                    Some(_) => self.asm.jump(self.label(usual as usize)),
                    None => self.jump_unless_next(usual, next),
                }
            }
            None => {
                let targets = window.entries(|target| self.label(target as usize));
                let size = self.asm.add_table(label, targets);
                let (size, scale) = match size {
                    2 => (Size::H, 1),
                    _ => (Size::W, 2),
                };
                let entry = Mem {
                    base,
                    index: Some((index, scale)),
                    disp: 0,
                };
                self.asm.load(size, Some(Width::W64), T::SCRATCH, entry);
                self.asm.alu(Alu::Add, Width::W64, T::SCRATCH, base);
                T::jump_to_scratch(self);
            }
        }
        if let Some((label, [below, above])) = outside {
            self.asm.bind(label);
            self.asm.alu_imm(Alu::Cmp, Width::W32, gpr, first as i32);
            self.asm.jump_if(less(window), self.label(below as usize));
            self.jump_unless_next(above, next);
        }
    }

    /// Jumps to the target of values outside the window. If the targets below and above
    /// differ, jumps to a new label, which is returned with both.
    fn write_range_check(&mut self, index: T::Reg, window: &Window) -> Option<(Label, [u32; 2])> {
        let (target, both) = match window.outside() {
            [None, None] => return None,
            [Some(below), Some(above)] if below != above => {
                (self.asm.new_label(), Some([below, above]))
            }
            [below, above] => {
                let target = above.or(below)?;
                (self.label(target as usize), None)
            }
        };
        let last = window.len() as i32 - 1;
        self.asm.alu_imm(Alu::Cmp, Width::W32, index, last);
        self.asm.jump_if(Cc::Above, target);
        both.map(|both| (target, both))
    }

    /// Loads a leaf number and jumps to its target, numbered from 1; falls through for 0.
    fn compare_entry(&mut self, entry: Mem<T::Reg>, targets: &[u32]) {
        if let &[target] = targets {
            self.asm.alu_store_imm(Alu::Cmp, Size::B, entry, 0);
            self.asm.jump_if(Cc::NotEqual, self.label(target as usize));
            return;
        }
        self.asm.load(Size::B, None, T::SCRATCH, entry);
        for (number, &target) in (1..).zip(targets) {
            self.asm.alu_imm(Alu::Cmp, Width::W32, T::SCRATCH, number);
            self.asm.jump_if(Cc::Equal, self.label(target as usize));
        }
    }

    /// Writes a binary search.
    fn write_binary_search(&mut self, gpr: T::Reg, window: &Window, next: usize) {
        let pieces = &window.pieces;
        let mut open: Vec<(Option<Label>, Range<usize>)> = vec![(None, 0..pieces.len())];
        while let Some((label, range)) = open.pop() {
            if let Some(label) = label {
                self.asm.bind(label);
            }
            if let Some((keys, rest)) = few_keys(window, range.clone()) {
                for piece in keys {
                    let (key, _) = window.head(piece);
                    self.asm.alu_imm(Alu::Cmp, Width::W32, gpr, key as i32);
                    let target = pieces[piece].target;
                    self.asm.jump_if(Cc::Equal, self.label(target as usize));
                }
                match open.is_empty() {
                    true => self.jump_unless_next(rest, next),
                    false => self.asm.jump(self.label(rest as usize)),
                }
                continue;
            }
            let middle = range.start + range.len() / 2;
            let is_range = middle + 1 < range.end && !window.head(middle).1;
            let middle = if is_range { middle + 1 } else { middle };
            let (first, single) = window.head(middle);
            let below = self.asm.new_label();
            self.asm.alu_imm(Alu::Cmp, Width::W32, gpr, first as i32);
            self.asm.jump_if(less(window), below);
            let mut above = middle..range.end;
            if single && above.len() > 1 {
                let target = pieces[middle].target;
                self.asm.jump_if(Cc::Equal, self.label(target as usize));
                above.start += 1;
            }
            open.push((Some(below), range.start..middle));
            open.push((None, above));
        }
    }

    pub(crate) fn write_tables(&mut self) {
        self.asm.place_tables();
        for Table { label, bytes } in std::mem::take(&mut self.tables) {
            self.asm.bind(label);
            for chunk in bytes.chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                self.asm.data(u64::from_le_bytes(word), chunk.len());
            }
        }
    }
}

/// The pieces of a single value and the target of all other pieces, if that is one and the
/// single values are at most [`LEAVES`].
fn few_keys(window: &Window, range: Range<usize>) -> Option<(Vec<usize>, u32)> {
    if range.len() > 2 * LEAVES + 1 {
        return None;
    }
    let is_single = |&piece: &usize| window.head(piece).1;
    let rest = range.clone().find(|piece| !is_single(piece));
    let rest = window.pieces[rest.unwrap_or(range.end - 1)].target;
    let leads_elsewhere = |piece: &usize| window.pieces[*piece].target != rest;
    let keys: Vec<usize> = range.filter(leads_elsewhere).collect();
    (keys.len() <= LEAVES && keys.iter().all(is_single)).then_some((keys, rest))
}

/// The condition code for "less" in the order of the window.
fn less(window: &Window) -> Cc {
    match window.is_signed() {
        true => Cc::Less,
        false => Cc::Below,
    }
}

//! Comparison trees as lookups.
//!
//! If the constants are close together, a table maps each value to its leaf: a byte that is
//! then compared (rule lists have many constants and few targets), or a distance to jump.
//! Otherwise the constants are searched by a balanced tree of comparisons.

use std::ops::Range;

use isa::ebpf::{Size, Width};
use lower::trees::Tree;

use super::asm::Alu;
use super::buffer::Label;
use super::frame::SCRATCH;
use super::generator::Generator;
use super::reg::{Cc, Gpr, Mem};
use crate::Optimization;
use crate::analysis::Window;

/// Constants that are compared one after the other at the end of a search.
const LEAVES: usize = 3;

/// A table of bytes behind the code.
pub(super) struct Table {
    label: Label,
    bytes: Vec<u8>,
}

impl Generator<'_> {
    /// Writes the look-up of the tree that begins at a slot; how many slots that
    /// was.
    #[inline(never)]
    pub(super) fn look_up(&mut self, slot: usize) -> usize {
        let analysis = self.analysis;
        let tree = analysis.trees.starting_at(slot).expect("one begins here");
        if tree.goes_back {
            self.check_here();
        }
        let mut next = slot + 1;
        while next < self.function.end && self.facts[next].is_absorbed() {
            next += 1;
        }
        let window = Window::of(&tree, self.known(tree.dst));
        let gpr = self.gpr(tree.dst);
        let wanted = |target: u32| self.facts[target as usize].before().has(tree.dst);
        let is_free = !window.pieces.iter().any(|piece| wanted(piece.target));
        match self.frame.spare().or(is_free.then_some(gpr)) {
            _ if window.pieces.len() == 1 => self.go_on(window.pieces[0].target, next),
            Some(base) if window.is_dense(&tree) && self.uses(Optimization::JumpTable) => {
                self.applies(Optimization::JumpTable);
                self.look_up_in_table(&tree, base, &window, next)
            }
            _ => self.search(gpr, &window, next),
        }
        next - slot
    }

    /// Jumps to a slot, if it is not the next one.
    fn go_on(&mut self, target: u32, next: usize) {
        if target as usize != next {
            self.buf.jump(self.label(target as usize));
        }
    }

    fn look_up_in_table(&mut self, tree: &Tree<'_>, base: Gpr, window: &Window, next: usize) {
        let gpr = self.gpr(tree.dst);
        let first = window.first();
        let mut index = gpr;
        if first != 0 {
            index = SCRATCH;
            let mem = Mem::at(gpr, first.wrapping_neg() as i32);
            self.buf.lea(Width::W32, index, mem);
        }
        let outside = self.leave_window(index, window);
        if index == gpr && (base == gpr || self.known(tree.dst) > 32) {
            index = SCRATCH;
            self.buf.mov(Width::W32, index, gpr);
        }
        let label = self.buf.new_label();
        self.buf.lea_label(base, label);
        match window.compared() {
            Some((usual, others)) => {
                let bytes = window.entries(|target| {
                    let number = others.iter().position(|&other| other == target);
                    number.map_or(0, |number| number as u8 + 1)
                });
                self.tables.push(Table { label, bytes });
                self.compare_entry(Mem::indexed(base, index, 0), &others);
                match outside {
                    Some(_) => self.buf.jump(self.label(usual as usize)),
                    None => self.go_on(usual, next),
                }
            }
            None => {
                let targets = window.entries(|target| self.label(target as usize));
                let size = self.buf.add_table(label, targets);
                let (size, scale) = match size {
                    2 => (Size::H, 1),
                    _ => (Size::W, 2),
                };
                let entry = Mem {
                    base,
                    index: Some((index, scale)),
                    disp: 0,
                };
                self.buf.load(size, Some(Width::W64), SCRATCH, entry);
                self.buf.alu(Alu::Add, Width::W64, SCRATCH, base);
                self.buf.jump_to(SCRATCH);
            }
        }
        if let Some((label, [below, above])) = outside {
            self.buf.bind(label);
            self.buf.alu_imm(Alu::Cmp, Width::W32, gpr, first as i32);
            self.buf.jump_if(less(window), self.label(below as usize));
            self.go_on(above, next);
        }
    }

    /// Goes where values outside the window lead. If that is not the same for those
    /// below and those above, to a label for them.
    fn leave_window(&mut self, index: Gpr, window: &Window) -> Option<(Label, [u32; 2])> {
        let (target, both) = match window.outside() {
            [None, None] => return None,
            [Some(below), Some(above)] if below != above => {
                (self.buf.new_label(), Some([below, above]))
            }
            [below, above] => {
                let target = above.or(below)?;
                (self.label(target as usize), None)
            }
        };
        let last = window.len() as i32 - 1;
        self.buf.alu_imm(Alu::Cmp, Width::W32, index, last);
        self.buf.jump_if(Cc::A, target);
        both.map(|both| (target, both))
    }

    /// Jumps to the target whose number, counted from 1, the table says.
    fn compare_entry(&mut self, entry: Mem, targets: &[u32]) {
        if let &[target] = targets {
            self.buf.alu_store_imm(Alu::Cmp, Size::B, entry, 0);
            self.buf.jump_if(Cc::Ne, self.label(target as usize));
            return;
        }
        self.buf.load(Size::B, None, SCRATCH, entry);
        for (number, &target) in (1..).zip(targets) {
            self.buf.alu_imm(Alu::Cmp, Width::W32, SCRATCH, number);
            self.buf.jump_if(Cc::E, self.label(target as usize));
        }
    }

    /// By halves.
    fn search(&mut self, gpr: Gpr, window: &Window, next: usize) {
        let pieces = &window.pieces;
        let mut open: Vec<(Option<Label>, Range<usize>)> = vec![(None, 0..pieces.len())];
        while let Some((label, range)) = open.pop() {
            if let Some(label) = label {
                self.buf.bind(label);
            }
            if let Some((keys, rest)) = few_keys(window, range.clone()) {
                for piece in keys {
                    let (key, _) = window.head(piece);
                    self.buf.alu_imm(Alu::Cmp, Width::W32, gpr, key as i32);
                    let target = pieces[piece].target;
                    self.buf.jump_if(Cc::E, self.label(target as usize));
                }
                match open.is_empty() {
                    true => self.go_on(rest, next),
                    false => self.buf.jump(self.label(rest as usize)),
                }
                continue;
            }
            let middle = range.start + range.len() / 2;
            let after = middle + 1 < range.end && !window.head(middle).1;
            let middle = if after { middle + 1 } else { middle };
            let (first, single) = window.head(middle);
            let below = self.buf.new_label();
            self.buf.alu_imm(Alu::Cmp, Width::W32, gpr, first as i32);
            self.buf.jump_if(less(window), below);
            let mut above = middle..range.end;
            if single && above.len() > 1 {
                let target = pieces[middle].target;
                self.buf.jump_if(Cc::E, self.label(target as usize));
                above.start += 1;
            }
            open.push((Some(below), range.start..middle));
            open.push((None, above));
        }
    }

    pub(super) fn write_tables(&mut self) {
        self.buf.place_tables();
        for Table { label, bytes } in std::mem::take(&mut self.tables) {
            self.buf.bind(label);
            for chunk in bytes.chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                self.buf.data(u64::from_le_bytes(word), chunk.len());
            }
        }
    }
}

/// The single values among pieces, and where all others of them lead, if these lead
/// to one place and those are few.
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

/// After a comparison with the first value of a piece: the value comes before it.
fn less(window: &Window) -> Cc {
    match window.is_signed() {
        true => Cc::L,
        false => Cc::B,
    }
}

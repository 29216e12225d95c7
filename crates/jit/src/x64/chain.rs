//! Chains of comparisons of one register with constants, as a look-up.
//!
//! Where the constants lie close together, a table says for each of them which
//! target it leads to: a byte for each value, and a comparison for each target
//! (rule lists have many constants and few targets), or the target's address
//! where there are many. Elsewhere the constants are searched by halves. A chain
//! of 200 comparisons takes 2 ns by table and 4 by search, where one after the
//! other takes 30.

use std::ops::Range;

use isa::ebpf::{Size, Width};

use super::asm::Alu;
use super::buffer::Label;
use super::frame::SCRATCH;
use super::generator::Generator;
use super::reg::{Cc, Gpr, Mem};

/// A table may have this many values for each constant, and a few more.
const SPREAD: usize = 8;
/// Constants that are compared one after the other at the end of a search.
const LEAVES: usize = 3;
/// Targets that are told apart by comparing the table's byte.
const MOST_COMPARED: usize = 6;

/// Keys that lead to one target.
#[derive(Clone, Copy)]
struct Case {
    key: u32,
    target: Label,
}

/// A table behind the code.
pub(super) struct Table {
    label: Label,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    Addresses(Vec<Label>),
}

impl Generator<'_> {
    /// Writes the look-up of the chain that begins at a slot; how many slots that
    /// was.
    pub(super) fn look_up(&mut self, slot: usize) -> usize {
        let analysis = self.analysis;
        let chain = analysis.chains.starting_at(slot).expect("one begins here");
        let mut cases: Vec<Case> = chain
            .links
            .iter()
            .map(|link| Case {
                key: link.key,
                target: self.label(link.target as usize),
            })
            .collect();
        // The first of equal keys wins, so sort stably and drop the others.
        cases.sort_by_key(|case| case.key);
        cases.dedup_by_key(|case| case.key);
        let gpr = self.gpr(chain.dst);
        let default = self.label(chain.default);
        let range = (cases[cases.len() - 1].key - cases[0].key) as usize + 1;
        let dense = range <= SPREAD * cases.len() + 64;
        match self.frame.spare() {
            Some(base) if dense && cases.len() > LEAVES => {
                self.look_up_in_table(gpr, base, &cases, range, default);
            }
            _ => self.search(gpr, &cases, default),
        }
        let mut next = slot + 1;
        while next < self.function.end && analysis.facts[next].is_absorbed() {
            next += 1;
        }
        if next != chain.default {
            self.buf.jump(default);
        }
        next - slot
    }

    /// By a table; goes on behind where the value leads to the default.
    fn look_up_in_table(
        &mut self,
        gpr: Gpr,
        base: Gpr,
        cases: &[Case],
        range: usize,
        default: Label,
    ) {
        let first = cases[0].key;
        let mut targets: Vec<Label> = Vec::new();
        for case in cases {
            if targets.len() <= MOST_COMPARED && !targets.contains(&case.target) {
                targets.push(case.target);
            }
        }
        let compared = targets.len() <= MOST_COMPARED;
        let label = self.buf.new_label();
        let index = if first == 0 {
            gpr
        } else {
            self.buf.lea(
                Width::W32,
                SCRATCH,
                Mem::at(gpr, first.wrapping_neg() as i32),
            );
            SCRATCH
        };
        self.buf
            .alu_imm(Alu::Cmp, Width::W32, index, range as i32 - 1);
        self.buf.jump_if(Cc::A, default);
        if index == gpr {
            self.buf.mov(Width::W32, SCRATCH, gpr);
        }
        self.buf.lea_label(base, label);
        if compared {
            let mut bytes = vec![0; range];
            for case in cases {
                let number = targets.iter().position(|target| *target == case.target);
                bytes[(case.key - first) as usize] = number.map_or(0, |number| number as u8 + 1);
            }
            let mem = Mem::indexed(base, SCRATCH, 0);
            if let [target] = targets[..] {
                self.buf.alu_store_imm(Alu::Cmp, Size::B, mem, 0);
                self.buf.jump_if(Cc::Ne, target);
            } else {
                self.buf.load(Size::B, None, SCRATCH, mem);
                for (number, target) in targets.into_iter().enumerate() {
                    self.buf
                        .alu_imm(Alu::Cmp, Width::W32, SCRATCH, number as i32 + 1);
                    self.buf.jump_if(Cc::E, target);
                }
            }
            let content = Content::Bytes(bytes);
            self.tables.push(Table { label, content });
        } else {
            let mut addresses = vec![default; range];
            for case in cases {
                addresses[(case.key - first) as usize] = case.target;
            }
            self.buf.jump_through(Mem {
                base,
                index: Some((SCRATCH, 3)),
                disp: 0,
            });
            let content = Content::Addresses(addresses);
            self.tables.push(Table { label, content });
        }
    }

    /// By halves; goes on behind where the value is none of the keys.
    fn search(&mut self, gpr: Gpr, cases: &[Case], default: Label) {
        let mut open: Vec<(Option<Label>, Range<usize>)> = vec![(None, 0..cases.len())];
        while let Some((label, range)) = open.pop() {
            if let Some(label) = label {
                self.buf.bind(label);
            }
            let part = &cases[range.clone()];
            if part.len() > LEAVES {
                let middle = range.start + part.len() / 2;
                let Case { key, target } = cases[middle];
                let below = self.buf.new_label();
                self.buf.alu_imm(Alu::Cmp, Width::W32, gpr, key as i32);
                self.buf.jump_if(Cc::B, below);
                self.buf.jump_if(Cc::E, target);
                open.push((Some(below), range.start..middle));
                open.push((None, middle + 1..range.end));
                continue;
            }
            for case in part {
                self.buf.alu_imm(Alu::Cmp, Width::W32, gpr, case.key as i32);
                self.buf.jump_if(Cc::E, case.target);
            }
            if !open.is_empty() {
                self.buf.jump(default);
            }
        }
    }

    pub(super) fn write_tables(&mut self) {
        for Table { label, content } in std::mem::take(&mut self.tables) {
            match content {
                Content::Bytes(bytes) => {
                    self.buf.bind(label);
                    for chunk in bytes.chunks(8) {
                        let mut word = [0; 8];
                        word[..chunk.len()].copy_from_slice(chunk);
                        self.buf.data(u64::from_le_bytes(word), chunk.len());
                    }
                }
                Content::Addresses(targets) => {
                    self.buf.align(8);
                    self.buf.bind(label);
                    for target in targets {
                        self.buf.address(target);
                    }
                }
            }
        }
    }
}

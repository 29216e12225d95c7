//! Lookups in hash tables without a call.
//!
//! The layout of a table and the algorithm are those of [`HashLookup`]: the hash of the key
//! chooses a bucket, all tags of the bucket are compared at once, and the element in the
//! first slot that matches is compared with the key. Where that does not decide, the
//! function of the map is called; that code comes after the function of the program.
//!
//! Values follow from what is stored in the table by loads only, which the processor does
//! in their order: the number of an element is checked, what it holds is compared last.

use isa::ebpf::{Reg, Size, Width};
use lower::LoweredCall;
use vm::{HASH_MULTIPLIER, HashLookup};

use super::generator::Generator;
use super::target::{Alu, Assembler, Cc, Label, Layout, Mem, Shift, Target};

/// A lookup whose other paths are not written yet.
pub(crate) struct OpenLookup {
    index: u32,
    /// Branch target if no tag matches.
    no_tag: Label,
    /// Branch target if the function has to decide.
    unclear: Label,
    back: Label,
}

impl<T: Target> Generator<'_, T> {
    /// Compiles a lookup.
    pub(crate) fn hash_lookup(&mut self, index: u32) {
        let program = self.program;
        let lookup = program.hash_lookup(index).expect("a lookup");
        if !self.target.inlines_lookups() {
            self.asm
                .set_keeping_flags(T::LOOKUP.map, lookup.function().address());
            return self.call_helper(LoweredCall::HashLookup(index));
        }
        let open = OpenLookup {
            index,
            no_tag: self.asm.new_label(),
            unclear: self.asm.new_label(),
            back: self.asm.new_label(),
        };
        self.hash_key(lookup);
        self.find_slot(lookup, open.no_tag);
        self.compare_element(lookup, open.unclear);
        self.asm.bind(open.back);
        self.open_lookups.push(open);
        self.after_call();
    }

    /// Computes the hash of the key; keeps its first words in registers.
    fn hash_key(&mut self, lookup: &HashLookup) {
        let words = lookup.key_size().div_ceil(8);
        self.asm.set(T::LOOKUP.hash, lookup.hash_start());
        for first in (0..words).step_by(2) {
            let word = self.load_word(lookup, first);
            self.asm.alu(Alu::Xor, Width::W64, T::LOOKUP.hash, word);
            self.asm.set(T::LOOKUP.element, HASH_MULTIPLIER);
            if first + 1 < words {
                let word = self.load_word(lookup, first + 1);
                self.asm.alu(Alu::Xor, Width::W64, T::LOOKUP.element, word);
            }
            self.asm.multiply_hash(T::LOOKUP.element);
            self.asm
                .alu(Alu::Xor, Width::W64, T::LOOKUP.hash, T::LOOKUP.tags);
        }
    }

    /// Loads a word of the key, filled up with zeros; its register.
    fn load_word(&mut self, lookup: &HashLookup, word: usize) -> T::Reg {
        let to = T::LOOKUP
            .words
            .get(word)
            .copied()
            .unwrap_or(T::LOOKUP.operand);
        let offset = 8 * word as i32;
        let low = Mem::at(T::LOOKUP.key, offset);
        if lookup.key_size() - 8 * word < 8 {
            self.asm.load(Size::W, None, to, low);
        } else if lookup.is_parted(word) {
            self.asm.load(
                Size::W,
                None,
                T::SCRATCH,
                Mem::at(T::LOOKUP.key, offset + 4),
            );
            self.asm.load(Size::W, None, to, low);
            self.asm.shift(Shift::Shl, Width::W64, T::SCRATCH, 32);
            self.asm.alu(Alu::Or, Width::W64, to, T::SCRATCH);
        } else {
            self.asm.load(Size::DW, None, to, low);
        }
        to
    }

    /// Finds the first slot of the bucket with the tag of the hash.
    fn find_slot(&mut self, lookup: &HashLookup, no_tag: Label) {
        let tag_bits = HashLookup::TAG_BITS as u8;
        self.asm.mov(Width::W32, T::LOOKUP.tags, T::LOOKUP.hash);
        self.asm
            .shift(Shift::Shr, Width::W32, T::LOOKUP.tags, 32 - tag_bits);
        self.asm
            .alu_imm(Alu::Or, Width::W32, T::LOOKUP.tags, 1 << tag_bits);
        self.asm.alu_imm(
            Alu::And,
            Width::W32,
            T::LOOKUP.hash,
            lookup.bucket_mask() as i32,
        );
        let bucket_shift = HashLookup::BUCKET.ilog2() as u8;
        self.asm
            .shift(Shift::Shl, Width::W64, T::LOOKUP.hash, bucket_shift);
        self.asm.set(T::LOOKUP.operand, lookup.buckets());
        self.asm
            .alu(Alu::Add, Width::W64, T::LOOKUP.hash, T::LOOKUP.operand);
        // The bytes of the differences that are 0 are those of matching slots.
        self.asm.set(T::LOOKUP.element, HashLookup::LOW_BITS);
        self.asm
            .multiply(Width::W64, T::LOOKUP.tags, T::LOOKUP.element);
        let tags = Mem::at(T::LOOKUP.hash, HashLookup::TAGS as i32);
        self.asm
            .alu_load(Alu::Xor, Width::W64, T::LOOKUP.tags, tags);
        // The lowest byte that is 0 sets its highest bit, as no lower one borrows from it.
        self.asm.mov(Width::W64, T::LOOKUP.slot, T::LOOKUP.tags);
        self.asm
            .alu(Alu::Sub, Width::W64, T::LOOKUP.slot, T::LOOKUP.element);
        self.asm
            .and_not(Width::W64, T::LOOKUP.slot, T::LOOKUP.tags, T::LOOKUP.slot);
        self.asm.set(T::LOOKUP.element, HashLookup::OCCUPIED);
        self.asm
            .alu(Alu::And, Width::W64, T::LOOKUP.slot, T::LOOKUP.element);
        self.asm.jump_if(Cc::Equal, no_tag);
        self.asm.trailing_zeros(T::LOOKUP.slot, T::LOOKUP.slot);
        self.asm.shift(Shift::Shr, Width::W32, T::LOOKUP.slot, 3);
    }

    /// Compares the element in the slot with the key; the address of its value.
    fn compare_element(&mut self, lookup: &HashLookup, unclear: Label) {
        let slot = Mem {
            base: T::LOOKUP.hash,
            index: Some((T::LOOKUP.slot, 2)),
            disp: 0,
        };
        self.asm.load(Size::W, None, T::LOOKUP.element, slot);
        self.asm.alu_imm(
            Alu::Cmp,
            Width::W32,
            T::LOOKUP.element,
            lookup.count() as i32,
        );
        self.asm.jump_if(Cc::AboveEqual, unclear);
        if lookup.marks().is_some() {
            self.asm.mov(Width::W32, T::LOOKUP.slot, T::LOOKUP.element);
        }
        match lookup.stride() {
            stride if stride.is_power_of_two() => {
                let count = stride.ilog2() as u8;
                self.asm
                    .shift(Shift::Shl, Width::W64, T::LOOKUP.element, count);
            }
            stride => {
                self.asm.multiply_imm(
                    Width::W64,
                    T::LOOKUP.element,
                    T::LOOKUP.element,
                    stride as i32,
                );
            }
        }
        self.asm.set(T::LOOKUP.operand, lookup.elements());
        self.asm
            .alu(Alu::Add, Width::W64, T::LOOKUP.element, T::LOOKUP.operand);
        for word in 0..lookup.key_size().div_ceil(8) {
            let gpr = match T::LOOKUP.words.get(word) {
                Some(gpr) => *gpr,
                None => self.load_word(lookup, word),
            };
            let stored = Mem::at(T::LOOKUP.element, (HashLookup::KEY + 8 * word) as i32);
            self.asm.alu_load(Alu::Cmp, Width::W64, gpr, stored);
            self.asm.jump_if(Cc::NotEqual, unclear);
        }
        if let Some(marks) = lookup.marks() {
            self.mark_element(marks);
        }
        let value = Mem::at(T::LOOKUP.element, lookup.value() as i32);
        self.asm.lea(Width::W64, T::LOOKUP.hash, value);
    }

    /// Sets the mark of the element. A line that all processors have is not written again.
    fn mark_element(&mut self, marks: u64) {
        self.asm.set(T::LOOKUP.operand, marks);
        let mark = Mem {
            base: T::LOOKUP.operand,
            index: Some((T::LOOKUP.slot, 0)),
            disp: 0,
        };
        let is_marked = self.asm.new_label();
        self.asm.alu_store_imm(Alu::Cmp, Size::B, mark, 0);
        self.asm.jump_if(Cc::NotEqual, is_marked);
        self.asm.store_imm(Size::B, mark, 1);
        self.asm.bind(is_marked);
    }

    /// Writes the paths of lookups that end where no tag matches, or in a call.
    pub(crate) fn write_open_lookups(&mut self) {
        for open in std::mem::take(&mut self.open_lookups) {
            let lookup = self.program.hash_lookup(open.index);
            let map = lookup.expect("a lookup").function().address();
            self.asm.bind(open.no_tag);
            // Without elements elsewhere, the key is absent.
            self.asm.test(Width::W64, T::LOOKUP.tags, T::LOOKUP.tags);
            self.asm.jump_if(Cc::Negative, open.unclear);
            self.asm.set(self.gpr(Reg::R0), 0);
            self.asm.jump(open.back);
            self.asm.bind(open.unclear);
            self.asm.set(T::LOOKUP.map, map);
            self.call_helper(LoweredCall::HashLookup(open.index));
            self.asm.jump(open.back);
        }
    }
}

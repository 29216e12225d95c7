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

use super::asm::{Alu, Shift, Unary};
use super::buffer::Label;
use super::frame::SCRATCH;
use super::generator::Generator;
use super::reg::{Cc, Gpr, Mem};

// Registers, all of which a call does not keep. The key's address stays for the function.
const MAP: Gpr = Gpr::RDI;
const KEY: Gpr = Gpr::RSI;
/// The first words of the key.
const WORDS: [Gpr; 2] = [Gpr::RDI, Gpr::R8];
/// The hash, then the address of the bucket, then that of the value.
const HASH: Gpr = Gpr::RAX;
/// Upper half of a product, then the differences of the tags.
const TAGS: Gpr = Gpr::RDX;
/// Operands, then the address of the element.
const ELEMENT: Gpr = Gpr::RCX;
/// The slot, then the number of the element.
const SLOT: Gpr = Gpr::R10;
/// Constants, and words of the key behind the first ones.
const OPERAND: Gpr = Gpr::R9;

/// A lookup whose other paths are not written yet.
pub(super) struct OpenLookup {
    index: u32,
    /// Branch target if no tag matches.
    no_tag: Label,
    /// Branch target if the function has to decide.
    unclear: Label,
    back: Label,
}

impl Generator<'_> {
    /// Compiles a lookup.
    pub(super) fn hash_lookup(&mut self, index: u32) {
        let program = self.program;
        let lookup = program.hash_lookup(index).expect("a lookup");
        if !self.features.bmi1 {
            self.buf.set_keeping_flags(MAP, lookup.function().address());
            return self.call_helper(LoweredCall::HashLookup(index));
        }
        let open = OpenLookup {
            index,
            no_tag: self.buf.new_label(),
            unclear: self.buf.new_label(),
            back: self.buf.new_label(),
        };
        self.hash_key(lookup);
        self.find_slot(lookup, open.no_tag);
        self.compare_element(lookup, open.unclear);
        self.buf.bind(open.back);
        self.open_lookups.push(open);
        self.after_call();
    }

    /// Computes the hash of the key; keeps its first words in registers.
    fn hash_key(&mut self, lookup: &HashLookup) {
        let words = lookup.key_size().div_ceil(8);
        self.buf.set(HASH, lookup.hash_start());
        for first in (0..words).step_by(2) {
            let word = self.load_word(lookup, first);
            self.buf.alu(Alu::Xor, Width::W64, HASH, word);
            self.buf.set(ELEMENT, HASH_MULTIPLIER);
            if first + 1 < words {
                let word = self.load_word(lookup, first + 1);
                self.buf.alu(Alu::Xor, Width::W64, ELEMENT, word);
            }
            self.buf.unary(Unary::Mul, Width::W64, ELEMENT);
            self.buf.alu(Alu::Xor, Width::W64, HASH, TAGS);
        }
    }

    /// Loads a word of the key, filled up with zeros; its register.
    fn load_word(&mut self, lookup: &HashLookup, word: usize) -> Gpr {
        let to = WORDS.get(word).copied().unwrap_or(OPERAND);
        let offset = 8 * word as i32;
        let low = Mem::at(KEY, offset);
        if lookup.key_size() - 8 * word < 8 {
            self.buf.load(Size::W, None, to, low);
        } else if lookup.is_parted(word) {
            self.buf
                .load(Size::W, None, SCRATCH, Mem::at(KEY, offset + 4));
            self.buf.load(Size::W, None, to, low);
            self.buf.shift(Shift::Shl, Width::W64, SCRATCH, 32);
            self.buf.alu(Alu::Or, Width::W64, to, SCRATCH);
        } else {
            self.buf.load(Size::DW, None, to, low);
        }
        to
    }

    /// Finds the first slot of the bucket with the tag of the hash.
    fn find_slot(&mut self, lookup: &HashLookup, no_tag: Label) {
        let tag_bits = HashLookup::TAG_BITS as u8;
        self.buf.mov(Width::W32, TAGS, HASH);
        self.buf.shift(Shift::Shr, Width::W32, TAGS, 32 - tag_bits);
        self.buf.alu_imm(Alu::Or, Width::W32, TAGS, 1 << tag_bits);
        self.buf
            .alu_imm(Alu::And, Width::W32, HASH, lookup.bucket_mask() as i32);
        let bucket_shift = HashLookup::BUCKET.ilog2() as u8;
        self.buf.shift(Shift::Shl, Width::W64, HASH, bucket_shift);
        self.buf.set(OPERAND, lookup.buckets());
        self.buf.alu(Alu::Add, Width::W64, HASH, OPERAND);
        // The bytes of the differences that are 0 are those of matching slots.
        self.buf.set(ELEMENT, HashLookup::LOW_BITS);
        self.buf.multiply(Width::W64, TAGS, ELEMENT);
        let tags = Mem::at(HASH, HashLookup::TAGS as i32);
        self.buf.alu_load(Alu::Xor, Width::W64, TAGS, tags);
        // The lowest byte that is 0 sets its highest bit, as no lower one borrows from it.
        self.buf.mov(Width::W64, SLOT, TAGS);
        self.buf.alu(Alu::Sub, Width::W64, SLOT, ELEMENT);
        self.buf.and_not(Width::W64, SLOT, TAGS, SLOT);
        self.buf.set(ELEMENT, HashLookup::OCCUPIED);
        self.buf.alu(Alu::And, Width::W64, SLOT, ELEMENT);
        self.buf.jump_if(Cc::E, no_tag);
        self.buf.trailing_zeros(SLOT, SLOT);
        self.buf.shift(Shift::Shr, Width::W32, SLOT, 3);
    }

    /// Compares the element in the slot with the key; the address of its value.
    fn compare_element(&mut self, lookup: &HashLookup, unclear: Label) {
        let slot = Mem {
            base: HASH,
            index: Some((SLOT, 2)),
            disp: 0,
        };
        self.buf.load(Size::W, None, ELEMENT, slot);
        self.buf
            .alu_imm(Alu::Cmp, Width::W32, ELEMENT, lookup.count() as i32);
        self.buf.jump_if(Cc::Ae, unclear);
        if lookup.marks().is_some() {
            self.buf.mov(Width::W32, SLOT, ELEMENT);
        }
        match lookup.stride() {
            stride if stride.is_power_of_two() => {
                let count = stride.ilog2() as u8;
                self.buf.shift(Shift::Shl, Width::W64, ELEMENT, count);
            }
            stride => {
                self.buf
                    .multiply_imm(Width::W64, ELEMENT, ELEMENT, stride as i32);
            }
        }
        self.buf.set(OPERAND, lookup.elements());
        self.buf.alu(Alu::Add, Width::W64, ELEMENT, OPERAND);
        for word in 0..lookup.key_size().div_ceil(8) {
            let gpr = match WORDS.get(word) {
                Some(gpr) => *gpr,
                None => self.load_word(lookup, word),
            };
            let stored = Mem::at(ELEMENT, (HashLookup::KEY + 8 * word) as i32);
            self.buf.alu_load(Alu::Cmp, Width::W64, gpr, stored);
            self.buf.jump_if(Cc::Ne, unclear);
        }
        if let Some(marks) = lookup.marks() {
            self.mark_element(marks);
        }
        let value = Mem::at(ELEMENT, lookup.value() as i32);
        self.buf.lea(Width::W64, HASH, value);
    }

    /// Sets the mark of the element. A line that all processors have is not written again.
    fn mark_element(&mut self, marks: u64) {
        self.buf.set(OPERAND, marks);
        let mark = Mem {
            base: OPERAND,
            index: Some((SLOT, 0)),
            disp: 0,
        };
        let is_marked = self.buf.new_label();
        self.buf.alu_store_imm(Alu::Cmp, Size::B, mark, 0);
        self.buf.jump_if(Cc::Ne, is_marked);
        self.buf.store_imm(Size::B, mark, 1);
        self.buf.bind(is_marked);
    }

    /// Writes the paths of lookups that end where no tag matches, or in a call.
    pub(super) fn write_open_lookups(&mut self) {
        for open in std::mem::take(&mut self.open_lookups) {
            let lookup = self.program.hash_lookup(open.index);
            let map = lookup.expect("a lookup").function().address();
            self.buf.bind(open.no_tag);
            // Without elements elsewhere, the key is absent.
            self.buf.test(Width::W64, TAGS, TAGS);
            self.buf.jump_if(Cc::S, open.unclear);
            self.buf.set(self.gpr(Reg::R0), 0);
            self.buf.jump(open.back);
            self.buf.bind(open.unclear);
            self.buf.set(MAP, map);
            self.call_helper(LoweredCall::HashLookup(open.index));
            self.buf.jump(open.back);
        }
    }
}

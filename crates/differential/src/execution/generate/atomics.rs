//! Atomic operations that return what was there, loads and stores with an order, and loops
//! with `may_goto`.

use std::fmt::Write as _;

use super::super::maps::{DATA, VARIABLES};
use super::Writer;

impl Writer<'_, '_> {
    /// An atomic operation on a variable, a value of a map or the stack.
    pub(super) fn atomics(&mut self) {
        let label = self.label();
        match self.choices.below(4) {
            0 => {
                let offset = 8 * self.choices.below(DATA / 8);
                self.value(VARIABLES, offset);
            }
            1 => {
                let slot = 8 * (1 + self.choices.below(4));
                let _ = write!(self.text, "r2 = r10\nr2 += -{slot}\n");
            }
            _ => {
                self.map_and_key();
                let offset = self.choices.pick(&[0, 8]);
                let _ = write!(
                    self.text,
                    "call 1\nif r0 == 0 goto null{label}\nr2 = r0\nr2 += {offset}\n"
                );
            }
        }
        for _ in 0..1 + self.choices.below(3) {
            self.atomic();
        }
        let _ = writeln!(self.text, "null{label}:");
    }

    /// One at the address in `r2`.
    fn atomic(&mut self) {
        let imm = self.choices.between(-100, 100);
        let operand = match self.choices.one_in(2) {
            true => "r1 = r9\n".to_owned(),
            false => format!("r1 = {imm}\n"),
        };
        // A half at the upper half of the word, too.
        let (is_wide, upper) = (self.choices.one_in(2), self.choices.pick(&["0", "4"]));
        let (size, at, src) = match is_wide {
            true => ("u64", "0", "r1"),
            false => ("u32", upper, "w1"),
        };
        let operation = match self.choices.below(8) {
            0 | 1 => {
                let what = self.choices.pick(&["add", "or", "and", "xor"]);
                format!("{src} = atomic_fetch_{what}(({size} *)(r2 + {at}), {src})\nr9 += r1\n")
            }
            2 => {
                let name = if is_wide { "xchg_64" } else { "xchg32_32" };
                format!("{src} = {name}(r2 + {at}, {src})\nr9 ^= r1\n")
            }
            3 | 4 => {
                // The word as it is, or another one.
                let expected = match self.choices.one_in(3) {
                    true => format!("r0 = {imm}\n"),
                    false => format!("r0 = *({size} *)(r2 + {at})\n"),
                };
                let (name, r0) = match is_wide {
                    true => ("cmpxchg_64", "r0"),
                    false => ("cmpxchg32_32", "w0"),
                };
                format!("{expected}{r0} = {name}(r2 + {at}, {r0}, {src})\nr9 += r0\n")
            }
            5 => {
                let what = self.choices.pick(&["+", "|", "&", "^"]);
                format!("lock *({size} *)(r2 + {at}) {what}= {src}\n")
            }
            6 => {
                let size = self.choices.pick(&["u8", "u16", "u32", "u64"]);
                let dst = if size == "u64" { "r1" } else { "w1" };
                format!("{dst} = load_acquire(({size} *)(r2 + 0))\nr9 += r1\n")
            }
            _ => {
                let size = self.choices.pick(&["u8", "u16", "u32", "u64"]);
                let src = if size == "u64" { "r1" } else { "w1" };
                format!("store_release(({size} *)(r2 + 0), {src})\n")
            }
        };
        self.text += &operand;
        self.text += &operation;
    }

    /// A loop that ends by a number of the packet; the verifier knows only that `may_goto` ends
    /// it some time.
    pub(super) fn circles(&mut self) {
        let label = self.label();
        let byte = 22 + self.choices.below(18);
        let step = 1 + self.choices.below(9);
        let _ = write!(
            self.text,
            "r8 = *(u8 *)(r7 + {byte})\nround{label}:\nmay_goto end{label}\n\
             if r8 < {step} goto end{label}\nr8 -= {step}\nr9 *= 31\nr9 += r8\n\
             goto round{label}\nend{label}:\n"
        );
    }
}

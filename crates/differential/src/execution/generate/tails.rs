//! Tail calls of other programs and of the program itself.

use std::fmt::Write as _;

use super::super::maps::PROGRAMS;
use super::Writer;

impl Writer<'_, '_> {
    /// A tail call, which falls through if it does not happen: after so many, and for a slot
    /// without a program.
    pub(super) fn tail_call(&mut self) {
        self.has_tail_calls = true;
        let label = self.label();
        let (value, condition) = (self.choices.below(8), self.choices.pick(&["==", "!=", ">"]));
        self.number();
        // What was computed so far, as far as the next program can see it.
        let _ = write!(
            self.text,
            "if w1 {condition} {value} goto stay{label}\n*(u64 *)(r7 + 14) = r9\n"
        );
        match self.choices.below(3) {
            0 => {
                self.number();
                self.text += "r3 = r1\n";
            }
            1 => {
                self.number();
                self.text += "r1 &= 1\nr3 = r1\n";
            }
            _ => {
                let index = self.choices.pick(&[0, 1, 1, 2, 3, 4, -1]);
                let _ = writeln!(self.text, "r3 = {index}");
            }
        }
        self.text += "r1 = r6\n";
        let pointer = 0x5218u64 | u64::from(PROGRAMS) << 32;
        let _ = write!(
            self.text,
            ".8byte {pointer:#x}\n.8byte 0\ncall 12\nr9 *= 31\nr9 += 7\nstay{label}:\n"
        );
    }
}

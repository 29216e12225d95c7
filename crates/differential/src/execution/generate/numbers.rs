//! Arithmetic on the sum of all results.

use std::fmt::Write as _;

use super::Writer;

impl Writer<'_, '_> {
    /// Operations on the sum.
    pub(super) fn arithmetic(&mut self) {
        for _ in 0..1 + self.choices.below(5) {
            let imm = self.choices.between(-1000, 1000);
            let count = self.choices.below(31);
            let divisor = match imm {
                // The most negative number divided by it overflows.
                0 => -1,
                other => other,
            };
            let operation = match self.choices.below(30) {
                0 => format!("r9 += {imm}"),
                1 => format!("w9 -= {imm}"),
                2 => format!("r9 ^= {imm}"),
                3 => format!("r9 /= {}", imm.unsigned_abs() + 1),
                4 => format!("w9 %= {}", imm.unsigned_abs() + 2),
                5 => format!("r9 <<= {count}"),
                6 => format!("r9 >>= {count}"),
                7 => format!("w9 s>>= {count}"),
                8 => "r9 = be16 r9".to_owned(),
                9 => "r9 = be64 r9".to_owned(),
                10 => "r9 = -r9".to_owned(),
                11 => "r9 = (s8)r9".to_owned(),
                12 => format!("w1 = w9\nr9 |= {imm}\nr9 *= r1"),
                13 => self.masked(),
                14 => format!("r9 s/= {divisor}"),
                15 => format!("w9 s%= {divisor}"),
                16 => format!("r1 = {imm}\nw1 s/= w9\nr9 += r1"),
                17 => self.divided(),
                18 => format!("r9 = ({})r9", self.choices.pick(&["s8", "s16", "s32"])),
                19 => format!("w9 = ({})w9", self.choices.pick(&["s8", "s16"])),
                20 => format!("r9 = bswap{} r9", self.choices.pick(&[16, 32, 64])),
                21 => self.signed_load(),
                22 => format!("r1 = {count}\nw9 s>>= w1\nr9 = -r9"),
                23 => format!("r1 = *(u8 *)(r7 + 25)\nr9 {}= r1", self.shift()),
                _ => format!("r1 = {imm}\nr1 <<= {count}\nr9 += r1"),
            };
            self.text += &operation;
            self.text.push('\n');
        }
        if self.choices.one_in(2) {
            let label = self.label();
            let condition = self.choices.pick(&["==", "!=", ">", "s<", "&"]);
            let imm = self.choices.between(-5, 100);
            let _ = write!(
                self.text,
                "if w9 {condition} {imm} goto over{label}\nr9 += 77\nover{label}:\n"
            );
        }
    }

    /// A field of the packet, and operations that clear none of its bits or some.
    fn masked(&mut self) -> String {
        let load = self.choices.pick(&["u8", "u16", "u32"]);
        let mask = self.choices.pick(&[
            "w1 = w1",
            "r1 &= 255",
            "w1 &= 65535",
            "r1 <<= 32\nr1 >>= 32",
            "r1 <<= 56\nr1 >>= 56",
            "r1 &= -2",
        ]);
        format!("r1 = *({load} *)(r7 + 26)\n{mask}\nr9 += r1")
    }

    /// A division of the sum by a number of the packet, which may be 0 or -1.
    fn divided(&mut self) -> String {
        let load = self.choices.pick(&["u8", "s8", "s16", "s32"]);
        let byte = 22 + self.choices.below(12);
        let operation = self.choices.pick(&["/", "%", "s/", "s%"]);
        let registers = self.choices.pick(&[["r9", "r1"], ["w9", "w1"]]);
        let [dst, src] = registers;
        let shrink = self.choices.pick(&["", "r1 s>>= 7\n", "w1 s>>= 31\n"]);
        format!("r1 = *({load} *)(r7 + {byte})\n{shrink}{dst} {operation}= {src}")
    }

    fn signed_load(&mut self) -> String {
        let load = self.choices.pick(&["s8", "s16", "s32"]);
        let byte = 22 + self.choices.below(14);
        format!("r1 = *({load} *)(r7 + {byte})\nr9 += r1")
    }

    /// A shift by a register, of which the low bits count; the verifier takes any number.
    fn shift(&mut self) -> &'static str {
        self.choices.pick(&["<<", ">>", "s>>"])
    }
}

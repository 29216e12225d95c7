//! Headers of variable length: fields at offsets that the packet tells.

use std::fmt::Write as _;

use super::Writer;

impl Writer<'_, '_> {
    /// A field behind an IP header whose length is in its first byte.
    pub(super) fn headers(&mut self) {
        let (_, end) = self.bounds();
        let label = self.label();
        let (size, access) =
            self.choices
                .pick(&[(1, "u8"), (2, "u16"), (4, "u32"), (4, "s32"), (8, "u64")]);
        let field = 14 + self.choices.below(12);
        let byte = self.choices.pick(&[14, 14, 14, 23, 30]);
        let _ = write!(
            self.text,
            "r1 = *(u8 *)(r7 + {byte})\nr1 &= 15\nr1 <<= 2\nr2 = r7\nr2 += r1\nr3 = r2\n\
             r3 += {}\nr4 = *(u32 *)(r6 + {end})\nif r3 > r4 goto short{label}\n\
             r1 = *({access} *)(r2 + {field})\n",
            field + size
        );
        match self.choices.below(4) {
            0 => {
                let _ = writeln!(self.text, "r1 = be{} r1", 8 * size.max(2));
            }
            1 => {
                let store = access.replace('s', "u");
                let _ = writeln!(self.text, "*({store} *)(r2 + {field}) = r9");
            }
            _ => {}
        }
        let _ = write!(self.text, "r9 *= 31\nr9 += r1\nshort{label}:\n");
    }

    /// A walk over options, each of which has its length in its second byte.
    pub(super) fn options(&mut self) {
        let (_, end) = self.bounds();
        let label = self.label();
        let (start, most) = (14 + self.choices.below(24), 2 + self.choices.below(7));
        let (stop, mask) = (self.choices.below(256), self.choices.pick(&[3, 7, 15]));
        let _ = write!(
            self.text,
            "r8 = {start}\nr5 = 0\nr4 = *(u32 *)(r6 + {end})\noption{label}:\nr8 &= 127\n\
             r2 = r7\nr2 += r8\nr3 = r2\nr3 += 2\nif r3 > r4 goto over{label}\n\
             r1 = *(u8 *)(r2 + 0)\nr9 *= 31\nr9 += r1\nif w1 == {stop} goto over{label}\n\
             r3 = *(u8 *)(r2 + 1)\nr3 &= {mask}\nr3 += 1\nr8 += r3\nr5 += 1\n\
             if r5 < {most} goto option{label}\nover{label}:\n"
        );
    }
}

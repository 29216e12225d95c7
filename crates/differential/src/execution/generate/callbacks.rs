//! Helpers that call functions of the program while they run.

use std::fmt::Write as _;

use super::super::maps::{ALL, ARRAY, LPM};
use super::{MIX, Writer};

impl Writer<'_, '_> {
    /// A callback of a loop, which may stop it and loop itself; its name. Linux refuses
    /// programs with callbacks that no run reaches.
    fn round(&mut self, depth: u32) -> String {
        let name = format!("round{}", self.label());
        let (stop, factor) = (self.choices.below(40), 2 * self.choices.below(500) + 3);
        let inner = (depth < 2 && self.choices.one_in(3)).then(|| self.round(depth + 1));
        let inner = inner.map_or(String::new(), |inner| {
            let rounds = 1 + self.choices.below(4);
            format!(
                "r6 = r1\nr7 = r2\nr1 = {rounds}\nr3 = r2\nr2 = func({inner}) ll\nr4 = 0\n\
                 call 181\nr3 = *(u64 *)(r7 + 0)\nr3 += r0\n*(u64 *)(r7 + 0) = r3\nr1 = r6\n\
                 r2 = r7\n"
            )
        });
        let _ = write!(
            self.callbacks,
            "{name}:\n{inner}r3 = *(u64 *)(r2 + 0)\nr3 *= {factor}\nr3 += r1\n\
             *(u64 *)(r2 + 0) = r3\n*(u64 *)(r10 - 8) = r1\nr1 = *(u32 *)(r10 - 8)\nr0 = 0\n\
             if w1 != {stop} goto {name}_out\nr0 = 1\n{name}_out:\nexit\n"
        );
        name
    }

    /// `bpf_loop` over a word of the stack, with one or two callbacks; with two, Linux does
    /// not put a loop in place of the call, and too many rounds return another number. A byte of
    /// the packet chooses, of which the verifier knows nothing.
    pub(super) fn rounds(&mut self) {
        let (round, has_two) = (self.round(0), self.choices.one_in(4));
        match self.choices.one_in(2) && !has_two {
            true => {
                let rounds = self.choices.pick(&[1, 2, 9, 50, (1 << 23) + 1]);
                let _ = writeln!(self.text, "r1 = {rounds}");
            }
            false => self.number(),
        }
        let _ = writeln!(self.text, "r2 = func({round}) ll");
        if has_two {
            let (other, label) = (self.round(1), self.label());
            let _ = write!(
                self.text,
                "r5 = *(u8 *)(r7 + 23)\nif w5 & 1 goto same{label}\nr2 = func({other}) ll\nsame{label}:\n"
            );
        }
        let _ = write!(
            self.text,
            "r3 = r10\nr3 += -24\nr4 = {}\ncall 181\n{MIX}r1 = *(u64 *)(r10 - 24)\nr9 += r1\n",
            u32::from(self.choices.one_in(10))
        );
    }

    /// `bpf_for_each_map_elem` with a sum that does not depend on the order.
    pub(super) fn visits(&mut self) {
        let maps: Vec<u32> = ALL.iter().copied().filter(|map| *map != LPM).collect();
        let (map, label) = (self.choices.pick(&maps), self.label());
        let pointer = 0x5118u64 | u64::from(map) << 32;
        let number = self.choices.below(100);
        let stop = match map == ARRAY {
            true => self.choices.below(8),
            false => 1000,
        };
        let _ = write!(
            self.text,
            ".8byte {pointer:#x}\n.8byte 0\nr2 = func(visit{label}) ll\nr3 = r10\nr3 += -32\n\
             r4 = 0\ncall 164\n{MIX}r1 = *(u64 *)(r10 - 32)\nr9 += r1\n"
        );
        let change = match self.choices.below(4) {
            0 if map != ARRAY => "r2 = r7\ncall 3\nr6 += r0\n".to_owned(),
            1 => "r2 = r7\nr3 = r8\nr4 = 2\ncall 2\nr6 += r0\n".to_owned(),
            _ => format!("lock *(u64 *)(r8 + 8) += r6\n*(u16 *)(r8 + 2) = {number}\n"),
        };
        let _ = write!(
            self.callbacks,
            "visit{label}:\nr6 = *(u32 *)(r2 + 0)\nr7 = r2\nr8 = r3\nr9 = r4\nr2 = r6\nr6 *= 31\n\
             *(u64 *)(r10 - 8) = r2\nr5 = *(u64 *)(r3 + 8)\nr6 += r5\n{change}r5 = *(u64 *)(r9 + 0)\n\
             r5 += r6\n*(u64 *)(r9 + 0) = r5\nr1 = *(u64 *)(r10 - 8)\nr0 = 0\n\
             if w1 != {stop} goto visit{label}_out\nr0 = 1\nvisit{label}_out:\nexit\n"
        );
    }
}

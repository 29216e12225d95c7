//! Timers, which fire when the run has ended.

use std::fmt::Write as _;

use super::super::maps::{TIMED, VARIABLES};
use super::{MIX, Writer};

/// An hour, in which no comparison ends.
const HOUR: u64 = 3_600_000_000_000;

impl Writer<'_, '_> {
    /// A timer is made, set, started or cancelled, or its value is put or removed.
    pub(super) fn timer(&mut self) {
        if self.is_target {
            return self.locked();
        }
        self.number();
        self.text += "*(u32 *)(r10 - 8) = r1\n";
        match self.choices.below(8) {
            0 => {
                self.map(TIMED);
                let _ = write!(self.text, "r2 = r10\nr2 += -8\ncall 3\n{MIX}");
            }
            1..=3 => {
                self.map(TIMED);
                let flags = self.choices.pick(&[0, 1, 1, 1, 2]);
                let _ = write!(
                    self.text,
                    "r2 = r10\nr2 += -8\nr3 = r10\nr3 += -32\nr4 = {flags}\ncall 2\n{MIX}"
                );
            }
            _ => {}
        }
        let label = self.label();
        self.map(TIMED);
        let _ = write!(
            self.text,
            "r2 = r10\nr2 += -8\ncall 1\nif r0 == 0 goto untimed{label}\nr8 = r0\n"
        );
        for _ in 0..1 + self.choices.below(3) {
            if !self.choices.one_in(4) {
                self.init();
            }
            if !self.choices.one_in(4) {
                let name = self.tick();
                let _ = write!(
                    self.text,
                    "r1 = r8\nr1 += 8\nr2 = func({name}) ll\ncall 170\n{MIX}"
                );
            }
            match self.choices.below(6) {
                0 => {
                    let _ = write!(self.text, "r1 = r8\nr1 += 8\ncall 172\n{MIX}");
                }
                1 => {
                    let _ = write!(self.text, "r1 = *(u64 *)(r8 + 24)\nr9 += r1\n");
                }
                _ => self.start(),
            }
        }
        let _ = writeln!(self.text, "untimed{label}:");
    }

    /// A timer of the monotonic clock: those of others fire by turns.
    fn init(&mut self) {
        self.text += "r1 = r8\nr1 += 8\n";
        let pointer = 0x5218u64 | u64::from(TIMED) << 32;
        let clock = self.choices.pick(&[1, 1, 1, 1, 1, 2, 17]);
        let _ = write!(
            self.text,
            ".8byte {pointer:#x}\n.8byte 0\nr3 = {clock}\ncall 169\n{MIX}"
        );
    }

    /// A start for the end of the run, or for a time that never comes.
    fn start(&mut self) {
        let span = self.choices.pick(&[0, 0, 0, HOUR]);
        let flags = self.choices.pick(&[0, 0, 0, 2, 8]);
        let _ = write!(
            self.text,
            "r1 = r8\nr1 += 8\nr2 = {span:#x} ll\nr3 = {flags}\ncall 171\n{MIX}"
        );
    }

    /// Callback of a timer: it counts, and may start the timer again; its name.
    fn tick(&mut self) -> String {
        let name = format!("tick{}", self.label());
        let (factor, mask) = (
            3 + 2 * self.choices.below(50),
            self.choices.pick(&[0, 1, 3]),
        );
        let first = 0x6518u64 | u64::from(VARIABLES) << 32;
        let change = match self.choices.below(3) {
            // What is set for the value that the callback gets.
            0 => "r1 = *(u64 *)(r6 + 24)\nr1 += r8\n*(u64 *)(r6 + 24) = r1\n",
            1 => "lock *(u64 *)(r6 + 24) += r8\n",
            _ => "",
        };
        let _ = write!(
            self.callbacks,
            "{name}:\nr6 = r3\nr7 = *(u32 *)(r2 + 0)\nr8 = *(u64 *)(r3 + 0)\nr8 += 1\n\
             *(u64 *)(r3 + 0) = r8\n.8byte {first:#x}\n.8byte {:#x}\n\
             r0 = *(u64 *)(r5 + 0)\nr0 *= {factor}\nr0 += r7\n*(u64 *)(r5 + 0) = r0\n\
             {change}r8 &= {mask}\nif r8 == 0 goto {name}_out\nr1 = r6\nr1 += 8\nr2 = 0\nr3 = 0\n\
             call 171\n*(u32 *)(r6 + 28) = r0\n{name}_out:\nr0 = 0\nexit\n",
            24u64 << 32
        );
        name
    }
}

//! Queues, ring buffers, and maps in maps.

use std::fmt::Write as _;

use super::super::maps::{ARRAY_OF_MAPS, HASH_OF_MAPS, QUEUE, RING, STACK};
use super::{MIX, Writer};

impl Writer<'_, '_> {
    /// A reference to a map in `r1`.
    pub(super) fn map(&mut self, map: u32) {
        let pointer = 0x5118u64 | u64::from(map) << 32;
        let _ = write!(self.text, ".8byte {pointer:#x}\n.8byte 0\n");
    }

    /// A value is pushed, removed or read.
    pub(super) fn queue(&mut self) {
        let map = self.choices.pick(&[QUEUE, STACK]);
        match self.choices.below(4) {
            0 | 1 => {
                self.text += "*(u64 *)(r10 - 24) = r9\n";
                self.map(map);
                let flags = self.choices.pick(&[0, 0, 2, 1]);
                let _ = write!(
                    self.text,
                    "r2 = r10\nr2 += -24\nr3 = {flags}\ncall 87\n{MIX}"
                );
            }
            what => {
                let call = if what == 2 { 88 } else { 89 };
                self.map(map);
                let _ = write!(
                    self.text,
                    "r2 = r10\nr2 += -24\ncall {call}\n{MIX}r1 = *(u64 *)(r10 - 24)\nr9 += r1\n"
                );
            }
        }
    }

    /// A record of a ring buffer, copied, or reserved and then written.
    pub(super) fn record(&mut self) {
        self.map(RING);
        let flags = self.choices.pick(&[0, 1, 2]);
        if self.choices.one_in(2) {
            let len = self.choices.pick(&[1, 8, 13, 24]);
            let _ = write!(
                self.text,
                "r2 = r10\nr2 += -24\nr3 = {len}\nr4 = {flags}\ncall 130\n{MIX}"
            );
            return;
        }
        let (label, len) = (self.label(), self.choices.pick(&[8, 20, 1000]));
        // Submitted, or discarded.
        let end = self.choices.pick(&[132, 132, 133]);
        let _ = write!(
            self.text,
            "r2 = {len}\nr3 = 0\ncall 131\nif r0 == 0 goto full{label}\nr9 += 1\n\
             *(u64 *)(r0 + 0) = r9\n"
        );
        for at in (8..len).step_by(4) {
            let _ = writeln!(self.text, "*(u32 *)(r0 + {at}) = {at}");
        }
        let _ = write!(
            self.text,
            "r1 = r0\nr2 = {flags}\ncall {end}\nfull{label}:\n"
        );
    }

    /// A lookup or an update in a map that is looked up in another one.
    pub(super) fn inner_lookup(&mut self) {
        let map = self.choices.pick(&[ARRAY_OF_MAPS, HASH_OF_MAPS]);
        let label = self.label();
        self.number();
        self.text += "*(u32 *)(r10 - 8) = r1\n";
        self.map(map);
        let _ = write!(
            self.text,
            "r2 = r10\nr2 += -8\ncall 1\nif r0 == 0 goto none{label}\nr8 = r0\n"
        );
        self.number();
        self.text += "*(u32 *)(r10 - 8) = r1\nr1 = r8\nr2 = r10\nr2 += -8\n";
        if self.choices.one_in(3) {
            let flags = self.choices.below(3);
            let _ = write!(
                self.text,
                "*(u64 *)(r10 - 24) = r9\nr3 = r10\nr3 += -24\nr4 = {flags}\ncall 2\n{MIX}none{label}:\n"
            );
            return;
        }
        let _ = write!(
            self.text,
            "call 1\nif r0 == 0 goto none{label}\nr1 = *(u64 *)(r0 + 0)\nr9 += r1\n\
             *(u16 *)(r0 + 6) = r9\nnone{label}:\n"
        );
    }
}

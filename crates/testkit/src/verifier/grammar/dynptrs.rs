//! Dynptrs to values of maps, packets and records of the ring buffer.

use super::declarations::{ARRAY, RINGBUF, VALUE_SIZE};
use super::target::Family;
use super::{Grammar, Holds};

impl Grammar<'_, '_> {
    /// A dynptr that is made, used by a few operations and, if it is a record, released.
    pub(super) fn dynptr(&mut self) {
        let first = self.place(0);
        let done = self.label();
        let mut size = 8 * (1 + self.choices.below(VALUE_SIZE / 8));
        let source = self.choices.below(3);
        let is_packet = source == 0 && (self.target.has(Family::Skb) || self.target.name == "xdp");
        let is_writable = !is_packet || self.target.writes_packet || self.choices.one_in(60);
        match source {
            0 if is_packet => {
                let Some(context) = self.context() else {
                    return self.number();
                };
                self.line(&format!("r1 = {context}"));
                self.line("r2 = 0");
                self.address(3, first);
                match self.target.has(Family::Skb) {
                    true => self.kfunc("bpf_dynptr_from_skb"),
                    false => self.kfunc("bpf_dynptr_from_xdp"),
                }
                size = 64;
            }
            1 => {
                self.line(&format!("r1 = map_idx({RINGBUF}) ll"));
                self.line(&format!("r2 = {size}"));
                self.line("r3 = 0");
                self.address(4, first);
                self.line("call 198");
            }
            _ => {
                self.lookup(ARRAY);
                self.line(&format!("if r0 == 0 goto l{done}"));
                self.line("r1 = r0");
                self.size_argument(2, size);
                self.line("r3 = 0");
                self.address(4, first);
                self.line("call 197");
            }
        }
        self.clobber();
        for _ in 0..1 + self.choices.below(3) {
            self.dynptr_operation(size, is_writable);
        }
        if self.choices.one_in(60) {
            self.line(&format!("*(u64 *)(r10 - {}) = 0", first - 8));
        }
        if source == 1 && !self.choices.one_in(40) {
            self.address(1, first);
            self.line("r2 = 0");
            let release = self.choices.pick(&[199, 199, 200]);
            self.line(&format!("call {release}"));
            self.clobber();
        }
        self.line(&format!("l{done}:"));
        self.holds[0] = Holds::Nothing;
    }

    /// An operation on the dynptr of so many bytes, and rarely on another one.
    fn dynptr_operation(&mut self, size: u32, is_writable: bool) {
        let (first, second) = (self.place(0), self.place(16));
        let dynptr = match self.choices.one_in(60) {
            true => second,
            false => first,
        };
        self.holds[..6].fill(Holds::Nothing);
        let length = 8 * (1 + self.choices.below(size / 8));
        match self.choices.below(12) {
            0 => {
                // dynptr_read(to, length, dynptr, offset, flags)
                self.address(1, 64);
                self.size_argument(2, length.min(64));
                self.address(3, dynptr);
                self.offset_argument(4, size);
                self.line("r5 = 0");
                self.line("call 201");
                self.slots[1..=8].fill(Holds::Number);
            }
            1 if is_writable => {
                // dynptr_write(dynptr, offset, from, length, flags)
                self.line("*(u64 *)(r10 - 16) = 1");
                self.line("*(u64 *)(r10 - 8) = 1");
                self.slots[1..=2].fill(Holds::Number);
                self.address(1, dynptr);
                self.offset_argument(2, size);
                self.address(3, 16);
                self.size_argument(4, 16);
                self.line("r5 = 0");
                self.line("call 202");
            }
            2 => {
                self.address(1, dynptr);
                self.offset_argument(2, size);
                self.line(&format!("r3 = {length}"));
                self.line("call 203");
                return self.dynptr_memory(length, true);
            }
            3..6 => {
                self.address(1, dynptr);
                self.offset_argument(2, size);
                match self.choices.one_in(3) {
                    true => self.line("r3 = 0"),
                    false => {
                        self.line("*(u64 *)(r10 - 16) = 0");
                        self.line("*(u64 *)(r10 - 8) = 0");
                        self.slots[1..=2].fill(Holds::Number);
                        self.address(3, 16);
                    }
                }
                let length = length.min(16);
                self.line(&format!("r4 = {length}"));
                // Whatever the dynptr is to, the program has to be one that writes packets.
                let is_written = self.choices.one_in(2)
                    && (self.target.writes_packet || self.choices.one_in(30));
                match is_written {
                    true => self.kfunc("bpf_dynptr_slice_rdwr"),
                    false => self.kfunc("bpf_dynptr_slice"),
                }
                return self.dynptr_memory(length, is_written);
            }
            6 => {
                self.address(1, dynptr);
                self.offset_argument(2, size);
                self.offset_argument(3, size);
                self.kfunc("bpf_dynptr_adjust");
            }
            7 => {
                self.address(1, dynptr);
                let name = [
                    "bpf_dynptr_size",
                    "bpf_dynptr_is_null",
                    "bpf_dynptr_is_rdonly",
                ];
                let name = self.choices.pick(&name);
                self.kfunc(name);
            }
            8 => {
                self.address(1, dynptr);
                self.address(2, second);
                self.kfunc("bpf_dynptr_clone");
                self.address(1, second);
                self.kfunc("bpf_dynptr_size");
            }
            9 if is_writable => {
                self.address(1, dynptr);
                self.offset_argument(2, size);
                self.line("r3 = 8");
                self.line("r4 = 7");
                self.kfunc("bpf_dynptr_memset");
            }
            _ if self.depth < 3 => {
                self.depth += 1;
                self.guarded(|grammar| grammar.statements(1));
                self.depth -= 1;
                return;
            }
            _ => return,
        }
        self.clobber();
    }

    /// An access to the memory in `r0`, unless it is null.
    fn dynptr_memory(&mut self, length: u32, is_written: bool) {
        let out = self.label();
        self.clobber();
        if !self.choices.one_in(60) {
            self.line(&format!("if r0 == 0 goto l{out}"));
        }
        let last = length + 8 * u32::from(self.choices.one_in(60)) - 8;
        let at = self.choices.below(last + 1) & !7;
        match is_written && self.choices.one_in(2) || self.choices.one_in(60) {
            true => self.line(&format!("*(u64 *)(r0 + {at}) = 1")),
            false => {
                self.line(&format!("r8 = *(u64 *)(r0 + {at})"));
                self.holds[8] = Holds::Nothing;
            }
        }
        self.line(&format!("l{out}:"));
        self.holds[0] = Holds::Nothing;
    }

    /// An offset, mostly below `size`: a constant or a small number.
    fn offset_argument(&mut self, register: u32, size: u32) {
        let small: Vec<usize> = (6..10).filter(|&r| self.holds[r] == Holds::Small).collect();
        match small.is_empty() || self.choices.percent(60) {
            true => {
                let offset = self.choices.below(size + 2);
                self.line(&format!("r{register} = {offset}"));
            }
            false => {
                let from = self.choices.pick(&small);
                self.line(&format!("r{register} = r{from}"));
            }
        }
    }
}

//! Objects to release, lock or initialise: ring buffer records, sockets, locks,
//! timers, queues.

use super::declarations::{BLOOM, LOCKS, QUEUE, RINGBUF, SOCKMAP, STACK, TIMERS};
use super::target::Family;
use super::{Function, Grammar, HELD, Holds};

impl Grammar<'_, '_> {
    /// A record of the ring buffer: reserved, written, submitted or discarded.
    pub(super) fn ring_record(&mut self) {
        let size = 8 * (1 + self.choices.below(6));
        let done = self.label();
        self.line(&format!("r1 = map_idx({RINGBUF}) ll"));
        self.line(&format!("r2 = {size}"));
        self.line("r3 = 0");
        if self.choices.one_in(8) {
            // ringbuf_output(map, data, size, flags)
            self.line("r4 = 0");
            self.line("r3 = r2");
            self.line("r2 = r10");
            self.line(&format!("r2 += -{size}"));
            self.line("call 130");
            return self.clobber();
        }
        self.line("call 131");
        self.clobber();
        if !self.choices.one_in(60) {
            self.line(&format!("if r0 == 0 goto l{done}"));
        }
        self.held(|grammar| {
            let last = size + 8 * u32::from(grammar.choices.one_in(60)) - 8;
            let at = grammar.choices.below(last + 1) & !7;
            grammar.line(&format!("*(u64 *)(r0 + {at}) = 1"));
        });
        if !self.choices.one_in(60) {
            self.line("r1 = r0");
            self.line("r2 = 0");
            let release = self.choices.pick(&[132, 133]);
            self.line(&format!("call {release}"));
        }
        self.clobber();
        self.line(&format!("l{done}:"));
        self.holds[0] = Holds::Nothing;
    }

    /// Something held in r0 during `work`, and perhaps during other statements.
    pub(super) fn held(&mut self, work: impl FnOnce(&mut Self)) {
        self.holds[0] = Holds::Nothing;
        work(self);
        if self.depth < 3 && self.choices.one_in(4) {
            let place = HELD + 8 * self.depth;
            self.line(&format!("*(u64 *)(r10 - {place}) = r0"));
            self.depth += 1;
            self.guarded(|grammar| grammar.statements(1));
            self.depth -= 1;
            self.line(&format!("r0 = *(u64 *)(r10 - {place})"));
        }
    }

    /// A socket that is looked up by its addresses or in a map, read and released.
    pub(super) fn socket(&mut self) {
        let Some(context) = self.context().filter(|_| self.target.has(Family::Sockets)) else {
            return self.map_access();
        };
        let done = self.label();
        if self.choices.one_in(4) && self.takes_map(SOCKMAP) {
            self.key();
            self.line(&format!("r1 = map_idx({SOCKMAP}) ll"));
            self.line("call 1");
        } else {
            // sk_lookup_tcp, sk_lookup_udp, skc_lookup_tcp: (context, tuple, size,
            // netns, flags)
            let helper = self.choices.pick(&[84, 85, 99]);
            self.line("*(u64 *)(r10 - 16) = 0");
            self.line("*(u32 *)(r10 - 8) = 0");
            (self.slots[1], self.slots[2]) = (Holds::Number, Holds::Number);
            if context != "r1" {
                self.line(&format!("r1 = {context}"));
            }
            self.line("r2 = r10");
            self.line("r2 += -16");
            self.line("r3 = 12");
            self.line("r4 = -1");
            self.line("r5 = 0");
            self.line(&format!("call {helper}"));
        }
        self.clobber();
        if !self.choices.one_in(60) {
            self.line(&format!("if r0 == 0 goto l{done}"));
        }
        self.held(|grammar| {
            let field = match grammar.choices.one_in(40) {
                true => grammar.choices.below(84),
                false => grammar.choices.pick(&[4, 24, 44, 52, 72]),
            };
            grammar.line(&format!("r5 = *(u32 *)(r0 + {field})"));
        });
        if !self.choices.one_in(60) {
            self.line("r1 = r0");
            self.line("call 86");
        }
        self.clobber();
        self.line(&format!("l{done}:"));
        self.holds[0] = Holds::Nothing;
    }

    /// A write under a value's lock.
    pub(super) fn locked(&mut self) {
        if !self.target.has(Family::Locks) {
            return self.map_access();
        }
        self.lookup(LOCKS);
        let (done, kept) = (self.label(), 7 + self.choices.below(3));
        self.line(&format!("if r0 == 0 goto l{done}"));
        self.line(&format!("r{kept} = r0"));
        self.line("r1 = r0");
        self.line("call 93");
        if self.choices.one_in(60) {
            self.number();
        }
        let first = match self.choices.one_in(40) {
            true => 0,
            false => self.choices.pick(&[8, 16, 24, 40]),
        };
        match self.choices.one_in(2) {
            true => self.line(&format!("*(u64 *)(r{kept} + {first}) = 1")),
            false => self.line(&format!("r2 = *(u32 *)(r{kept} + {first})")),
        }
        if !self.choices.one_in(60) {
            self.line(&format!("r1 = r{kept}"));
            self.line("call 94");
        }
        self.clobber();
        self.line(&format!("l{done}:"));
        self.holds[0] = Holds::Nothing;
        self.holds[kept as usize] = Holds::Nothing;
    }

    /// A timer that is initialised, given a callback and started.
    pub(super) fn timer(&mut self) {
        if !self.is_typed || !self.target.has(Family::Timers) {
            return self.map_access();
        }
        let has_callback = self.choices.percent(80);
        let callback = match has_callback {
            true => self.function_of(Function::Element),
            false => None,
        };
        self.lookup(TIMERS);
        let (done, kept) = (self.label(), 7 + self.choices.below(3));
        self.line(&format!("if r0 == 0 goto l{done}"));
        self.line(&format!("r{kept} = r0"));
        if self.choices.one_in(40) {
            self.line("r0 += 8");
        }
        self.line("r1 = r0");
        self.line(&format!("r2 = map_idx({TIMERS}) ll"));
        self.line("r3 = 1");
        self.line("call 169");
        if let Some(callback) = callback {
            self.line(&format!("r1 = r{kept}"));
            self.line(&format!("r2 = func(f{callback}) ll"));
            self.line("call 170");
        }
        self.line(&format!("r1 = r{kept}"));
        self.line("r2 = 1000");
        self.line("r3 = 0");
        self.line("call 171");
        self.clobber();
        self.line(&format!("l{done}:"));
        self.holds[0] = Holds::Nothing;
        self.holds[kept as usize] = Holds::Nothing;
    }

    /// A value pushed on a queue or a stack, or taken from it; one of a set.
    pub(super) fn queue(&mut self) {
        let map = self.choices.pick(&[QUEUE, STACK, BLOOM]);
        let slot = 1 + self.choices.below(8);
        let helper = match map == BLOOM && !self.choices.one_in(20) {
            true => self.choices.pick(&[87, 89]),
            false => self.choices.pick(&[87, 88, 89]),
        };
        if helper == 87 || map == BLOOM {
            self.line(&format!("*(u64 *)(r10 - {}) = 1", 8 * slot));
            self.line("r3 = 0");
        }
        self.line("r2 = r10");
        self.line(&format!("r2 += -{}", 8 * slot));
        self.line(&format!("r1 = map_idx({map}) ll"));
        self.line(&format!("call {helper}"));
        self.clobber();
        self.slots[slot as usize] = Holds::Number;
    }
}

//! Helpers, callbacks and functions.

use std::fmt::Write as _;

use super::declarations::{
    self, ARRAY, ELEMENT, GLOBAL, HASH, LESS, LPM, LRU_HASH, MEMORY, NODE_TREE, ON_STACK,
    PERCPU_ARRAY, PERCPU_HASH, PROGRAMS, ROUND, STATIC,
};
use super::target::Family;
use super::{ARGUMENT, Function, Grammar, Holds, MOST_FUNCTIONS};

impl Grammar<'_, '_> {
    pub(super) fn helper(&mut self) {
        match self.choices.below(20) {
            12..20 => self.table_helper(),
            0 | 1 => self.load_bytes(),
            2 => self.checksum(),
            3 => self.move_packet(),
            4 | 5 => self.update_map(),
            6 => self.probe_read(),
            7 => self.convert_text(),
            8 => self.percpu_element(),
            _ => {
                // ktime_get_ns, get_smp_processor_id, jiffies64, get_numa_node_id, and
                // some that many programs do not have.
                let rare = self
                    .choices
                    .one_in(if self.target.is_run { 300 } else { 30 });
                let helper = match rare {
                    true => self.choices.below(212),
                    false => self.choices.pick(&[5, 8, 118, 42, 7]),
                };
                self.line(&format!("call {helper}"));
            }
        }
        self.clobber();
    }

    /// skb_load_bytes(context, offset, to, length)
    fn load_bytes(&mut self) {
        let Some(context) = self.context().filter(|_| self.target.has(Family::Skb)) else {
            return self.line("call 5");
        };
        let length = 4 + 4 * self.choices.below(8);
        let offset = self.register(Holds::NUMBERS);
        let (offset, context) = match offset == "r1" {
            true => ("0".to_owned(), context),
            false => (offset, context),
        };
        self.line(&format!("r1 = {context}"));
        self.line(&format!("r2 = {offset}"));
        self.line("r3 = r10");
        self.line(&format!("r3 += -{length}"));
        self.size_argument(4, length);
        self.line("call 26");
        let end = length.div_ceil(8) as usize;
        self.slots[1..=end].fill(Holds::Number);
    }

    /// A size that is a constant or a range up to `length`, in a register.
    pub(super) fn size_argument(&mut self, register: u32, length: u32) {
        let small: Vec<usize> = (6..10).filter(|&r| self.holds[r] == Holds::Small).collect();
        if small.is_empty() || self.choices.percent(60) {
            self.line(&format!("r{register} = {length}"));
            return;
        }
        let from = self.choices.pick(&small);
        self.line(&format!("r{register} = r{from}"));
        match self.choices.below(3) {
            0 => self.line(&format!("r{register} += 1")),
            1 => self.line(&format!("r{register} &= {}", length - 1)),
            _ => {}
        }
    }

    /// csum_diff(from, from_size, to, to_size, seed)
    fn checksum(&mut self) {
        self.line("*(u64 *)(r10 - 16) = 1");
        self.line("*(u64 *)(r10 - 8) = 1");
        (self.slots[1], self.slots[2]) = (Holds::Number, Holds::Number);
        self.line("r1 = r10");
        self.line("r1 += -16");
        let size = 4 * self.choices.below(5);
        self.line(&format!("r2 = {size}"));
        self.line("r3 = 0");
        self.line("r4 = 0");
        self.line("r5 = 0");
        match self.target.has(Family::Skb) && self.target.writes_packet {
            true => self.line("call 28"),
            false => self.line("call 8"),
        }
    }

    /// A helper after which pointers into the packet are gone.
    fn move_packet(&mut self) {
        let Some(context) = self
            .context()
            .filter(|_| self.target.has(Family::PacketMoves))
        else {
            return self.line("call 7");
        };
        self.line(&format!("r1 = {context}"));
        self.line("r2 = 4");
        self.line("r3 = 0");
        // skb_pull_data, xdp_adjust_head, xdp_adjust_tail
        let helper = match self.target.has(Family::Skb) {
            true => 39,
            false => self.choices.pick(&[44, 65]),
        };
        self.line(&format!("call {helper}"));
        if !self.choices.one_in(30) {
            self.forget(|held| matches!(held, Holds::Packet(_)));
        }
    }

    /// map_update_elem(map, key, value, flags), map_delete_elem(map, key)
    fn update_map(&mut self) {
        let map = self.map_of(&[HASH, ARRAY, PERCPU_ARRAY, PERCPU_HASH, LRU_HASH, LPM]);
        match map {
            LPM => self.prefix_key(),
            _ => self.key(),
        }
        let value = self.holds[6..]
            .iter()
            .position(|held| *held == Holds::Value);
        if self.choices.one_in(3) {
            self.line(&format!("r1 = map_idx({map}) ll"));
            return self.line("call 3");
        }
        match value {
            Some(value) => self.line(&format!("r3 = r{}", value + 6)),
            None => {
                self.line("r3 = r10");
                self.line("r3 += -56");
            }
        }
        self.line("r4 = 0");
        self.line(&format!("r1 = map_idx({map}) ll"));
        self.line("call 2");
    }

    /// probe_read_kernel(to, size, address)
    fn probe_read(&mut self) {
        if self.target.is_run {
            return self.line("call 5");
        }
        self.line("r1 = r10");
        self.line("r1 += -32");
        self.size_argument(2, 32);
        self.line("r3 = 0");
        self.line("call 113");
        self.slots[1..=4].fill(Holds::Number);
    }

    /// strtol(text, size, flags, result)
    fn convert_text(&mut self) {
        self.line("*(u64 *)(r10 - 16) = 49");
        self.line("r1 = r10");
        self.line("r1 += -16");
        self.size_argument(2, 8);
        self.line("r3 = 0");
        self.line("r4 = r10");
        self.line("r4 += -8");
        self.line("call 105");
        (self.slots[1], self.slots[2]) = (Holds::Number, Holds::Number);
    }

    /// map_lookup_percpu_elem(map, key, cpu)
    fn percpu_element(&mut self) {
        self.key();
        self.line(&format!("r1 = map_idx({PERCPU_ARRAY}) ll"));
        self.line("r3 = 0");
        self.line("call 195");
        let out = self.label();
        self.line(&format!("if r0 == 0 goto l{out}"));
        self.line("r0 = *(u64 *)(r0 + 8)");
        self.line(&format!("l{out}:"));
    }

    pub(super) fn tail_call(&mut self) {
        let is_allowed = self.target.has(Family::TailCall) && (self.is_typed || self.is_main);
        let Some(context) = self.context().filter(|_| is_allowed) else {
            return self.helper();
        };
        let index = self.register(Holds::NUMBERS);
        match index == "r1" {
            true => self.line("r3 = 1"),
            false => self.line(&format!("r3 = {index}")),
        }
        if context != "r1" {
            self.line(&format!("r1 = {}", context.replace("r3", "r6")));
        }
        self.line(&format!("r2 = map_idx({PROGRAMS}) ll"));
        self.line("call 12");
        self.clobber();
    }

    /// The number of a function of this kind that is still to be written, an old or a new
    /// one; `None` if there are enough.
    pub(super) fn function_of(&mut self, kind: Function) -> Option<usize> {
        let first = if self.is_main { 0 } else { self.written + 1 };
        let old: Vec<usize> = (first..self.functions.len())
            .filter(|&at| self.functions[at] == kind)
            .collect();
        if !old.is_empty() && self.choices.percent(60) {
            return Some(self.choices.pick(&old));
        }
        if self.functions.len() >= MOST_FUNCTIONS {
            return None;
        }
        self.functions.push(kind);
        Some(self.functions.len() - 1)
    }

    /// A call of a function.
    pub(super) fn call(&mut self) {
        if self.depth > 3 || !self.holds.contains(&Holds::Context) {
            return self.helper();
        }
        let kind = match self.choices.below(if self.is_typed { 8 } else { 4 }) {
            0..3 => Function::Static,
            3 => Function::OnStack,
            4..7 if self.target.context.is_empty() => Function::Static,
            4..7 => Function::Global,
            _ => Function::Memory,
        };
        let Some(function) = self.function_of(kind) else {
            return self.helper();
        };
        match kind {
            Function::Memory => self.memory_argument(),
            Function::OnStack => {
                self.line(&format!("*(u64 *)(r10 - {ARGUMENT}) = 0"));
                let number = self.register(Holds::NUMBERS);
                self.line(&format!("r2 = {number}"));
                self.line("r1 = r10");
                self.line(&format!("r1 += -{ARGUMENT}"));
            }
            _ => {
                let number = self.register(Holds::NUMBERS);
                let context = match self.context() {
                    Some(context) if context != "r2" => context,
                    _ => "r6".to_owned(),
                };
                self.line(&format!("r2 = {number}"));
                if context != "r1" {
                    self.line(&format!("r1 = {context}"));
                }
            }
        }
        self.line(&format!("call f{function}"));
        self.clobber();
        if self.choices.percent(90) {
            self.forget(|held| matches!(held, Holds::Packet(_)));
        }
    }

    /// Memory of 8 bytes, or null, in r1.
    fn memory_argument(&mut self) {
        let value = (6..10).find(|&r| self.holds[r] == Holds::Value);
        match (value, self.choices.below(8)) {
            (_, 0) => self.line("r1 = 0"),
            (Some(value), _) => self.line(&format!("r1 = r{value}")),
            (None, _) => {
                self.line("*(u64 *)(r10 - 8) = 1");
                self.slots[1] = Holds::Number;
                self.line("r1 = r10");
                self.line("r1 += -8");
            }
        }
    }

    /// bpf_loop(rounds, function, context, flags) or bpf_for_each_map_elem(map,
    /// function, context, flags).
    pub(super) fn callback(&mut self) {
        if !self.is_typed || self.depth > 2 {
            return self.helper();
        }
        let kind = self.choices.pick(&[Function::Round, Function::Element]);
        let Some(function) = self.function_of(kind) else {
            return self.helper();
        };
        match kind {
            Function::Round => {
                let rounds = self.register(Holds::NUMBERS);
                self.line(&format!("r1 = {rounds}"));
            }
            _ => {
                let map = self.map_of(&[ARRAY, HASH, PERCPU_ARRAY, LRU_HASH]);
                self.line(&format!("r1 = map_idx({map}) ll"));
            }
        }
        self.line(&format!("r2 = func(f{function}) ll"));
        match self.choices.one_in(3) {
            true => self.line("r3 = 0"),
            false => {
                self.line(&format!("*(u64 *)(r10 - {ARGUMENT}) = 0"));
                self.line("r3 = r10");
                self.line(&format!("r3 += -{ARGUMENT}"));
            }
        }
        self.line("r4 = 0");
        match kind {
            Function::Round => self.line("call 181"),
            _ => self.line("call 164"),
        }
        self.clobber();
    }

    /// Writes a function.
    pub(super) fn function(&mut self, number: usize, kind: Function) {
        (self.is_main, self.written) = (false, number);
        self.begin(match kind {
            Function::Static => STATIC,
            Function::Global => GLOBAL,
            Function::Memory => MEMORY,
            Function::OnStack => ON_STACK,
            Function::Round => ROUND,
            Function::Element => ELEMENT,
            Function::Less => LESS,
        });
        let _ = writeln!(self.text, "f{number}:");
        self.depth = 1;
        self.in_loop = false;
        let mut limit = 3;
        if kind == Function::Less {
            return self.less();
        }
        match kind {
            Function::Less => {}
            Function::Static | Function::Global => {
                self.line("r6 = r1");
                (self.holds[1], self.holds[6]) = (Holds::Context, Holds::Context);
                self.holds[2] = Holds::Number;
            }
            Function::Memory => {
                let out = self.label();
                if !self.choices.one_in(20) {
                    self.line(&format!("if r1 == 0 goto l{out}"));
                }
                match self.choices.one_in(2) {
                    true => self.line("*(u64 *)(r1 + 0) = 1"),
                    false => self.line("r2 = *(u32 *)(r1 + 4)"),
                }
                self.line(&format!("l{out}:"));
            }
            Function::OnStack => {
                self.holds[2] = Holds::Number;
                match self.choices.below(3) {
                    0 => self.line("*(u64 *)(r1 + 0) = r2"),
                    1 => self.line("*(u32 *)(r1 + 8) = r2"),
                    _ => self.line("r3 = *(u64 *)(r1 + 0)"),
                }
            }
            Function::Round => {
                limit = 2;
                self.holds[1] = Holds::Number;
                if self.choices.one_in(3) {
                    self.line("*(u64 *)(r2 + 0) = r1");
                }
            }
            Function::Element => {
                limit = 2;
                self.holds[3] = Holds::Value;
                if self.choices.one_in(2) {
                    self.line("r7 = *(u32 *)(r2 + 0)");
                    self.holds[7] = Holds::Number;
                }
                if self.choices.one_in(2) {
                    let at = 8 * self.choices.below(declarations::VALUE_SIZE / 8);
                    self.line(&format!("*(u64 *)(r3 + {at}) = 1"));
                }
            }
        }
        let statements = 1 + self.choices.below(5);
        self.statements(statements);
        self.finish(limit);
    }

    /// Writes a function that orders two nodes by their keys.
    fn less(&mut self) {
        for register in [1, 2] {
            self.line(&format!("r{register} -= {NODE_TREE}"));
        }
        if self.choices.one_in(40) {
            self.statement();
        }
        self.line("r3 = *(u64 *)(r1 + 0)");
        self.line("r4 = *(u64 *)(r2 + 0)");
        self.line("r0 = 0");
        let out = self.label();
        self.line(&format!("if r3 >= r4 goto l{out}"));
        self.line("r0 = 1");
        self.line(&format!("l{out}:"));
        self.line("exit");
    }
}

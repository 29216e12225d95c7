//! Deadline checks.
//!
//! A long run iterates a loop or calls functions. Each iteration (at the loop header,
//! whichever back edge is taken) and each local call uses a unit of fuel, which a run gets
//! in its native context. There no flags are live, and every value is in its register. When
//! the fuel is used up, a function of the host reads the clock and refuels, or leaves the
//! fuel negative: the run then ends from any call depth by restoring the stack pointer that
//! the entry saved. The functions in between restore nothing, so an entry that calls any
//! saves all callee-saved registers.
//!
//! A loop of a function without calls counts in a register if one is free, others count in
//! memory; a short function without calls and loops is not counted.

use isa::ebpf::{Size, Width};
use lower::{Function, Lowered};

use super::asm::Alu;
use super::buffer::Label;
use super::generator::Generator;
use super::reg::{Cc, Gpr, Mem};
use crate::analysis::Usage;
use crate::native::{NativeContext, check_deadline};

/// The longest function without loops and calls that takes no tick, in slots.
const SHORT: usize = 32;

/// The looks that a program's code takes.
pub(super) struct DeadlineChecks {
    wanted: bool,
    /// Of the function at hand: where to look, and where to try again after that.
    open: Vec<(Label, Label)>,
    /// Where the run ends when the time is up.
    end: Option<Label>,
}

impl DeadlineChecks {
    /// Programs that draw on a budget need none.
    pub(super) fn new(asked_for: bool, program: &Lowered) -> DeadlineChecks {
        DeadlineChecks {
            wanted: asked_for && program.evidence().proves_termination(),
            open: Vec::new(),
            end: None,
        }
    }
}

impl Generator<'_> {
    /// Whether the function takes fuel.
    pub(super) fn fuel(&self, function: Function, usage: &Usage) -> bool {
        self.deadline_checks.wanted && (usage.loops || self.checks_on_call(function, usage))
    }

    /// Whether a local call of the function takes a tick.
    fn checks_on_call(&self, function: Function, usage: &Usage) -> bool {
        let is_short = function.end - function.start <= SHORT;
        let ends_soon = is_short && !usage.loops && !usage.calls_functions;
        self.deadline_checks.wanted && function.start > 0 && !ends_soon
    }

    /// Whether the run may end in a function that this one calls.
    pub(super) fn may_be_left(&self, function: Function, usage: &Usage) -> bool {
        self.deadline_checks.wanted
            && function.start == 0
            && usage.calls_functions
            && self.deadline_checks.end.is_some()
    }

    /// At the end of the entry's prologue: notes where its stack is.
    pub(super) fn note_stack(&mut self) {
        let (function, usage) = (self.function, &self.usage);
        let may_end = self.fuel(function, usage) || self.may_be_left(function, usage);
        if function.start == 0 && may_end {
            let stack = self.context_word(NativeContext::STACK);
            self.buf.store(Size::DW, stack, Gpr::RSP);
        }
    }

    /// At the beginning of a function: a tick, if a local call leads here.
    pub(super) fn check_on_call(&mut self) {
        self.load_fuel();
        if self.checks_on_call(self.function, &self.usage) {
            self.check_here();
        }
    }

    /// A tick where nothing else shows that control comes round.
    pub(super) fn check_here(&mut self) {
        if self.deadline_checks.wanted {
            let here = self.buf.new_label();
            self.buf.bind(here);
            self.check(here);
        }
    }

    /// At a slot's label: a tick, if it is the head of a loop.
    #[inline(always)]
    pub(super) fn check_on_loop(&mut self, slot: usize) {
        if self.deadline_checks.wanted && self.facts[slot].is_loop() {
            self.check(self.label(slot));
        }
    }

    /// Takes a tick. `here` is the label of this place.
    #[inline(never)]
    fn check(&mut self, here: Label) {
        match self.frame.fuel {
            Some(fuel) => self.buf.alu_imm(Alu::Sub, Width::W64, fuel, 1),
            None => {
                let fuel = self.context_word(NativeContext::FUEL);
                self.buf.alu_store_imm(Alu::Sub, Size::DW, fuel, 1);
            }
        }
        let look = self.buf.new_label();
        self.buf.jump_if(Cc::L, look);
        self.deadline_checks.open.push((look, here));
    }

    /// Loads the fuel into the function's register for them.
    fn load_fuel(&mut self) {
        if let Some(gpr) = self.frame.fuel {
            let fuel = self.context_word(NativeContext::FUEL);
            self.buf.load(Size::DW, None, gpr, fuel);
        }
    }

    /// At the end of a function: gives back what it did not use. Nobody asks an
    /// entry.
    pub(super) fn return_fuel(&mut self) {
        if let Some(gpr) = self.frame.fuel
            && self.function.start > 0
        {
            let fuel = self.context_word(NativeContext::FUEL);
            self.buf.store(Size::DW, fuel, gpr);
        }
    }

    /// Behind a function: its looks, and behind the entry the end of the run.
    pub(super) fn write_deadline_checks(&mut self) {
        let open = std::mem::take(&mut self.deadline_checks.open);
        if !open.is_empty() {
            let stub = self.buf.new_label();
            for (look, back) in open {
                self.buf.bind(look);
                self.buf.call(stub);
                self.buf.jump(back);
            }
            self.buf.bind(stub);
            self.write_deadline_check();
        }
        if self.function.start == 0
            && let Some(end) = self.deadline_checks.end
        {
            self.buf.bind(end);
            self.write_end();
        }
    }

    /// Gets new fuel from [`look`] and returns, with all registers as they were,
    /// or ends the run.
    fn write_deadline_check(&mut self) {
        let mut kept: Vec<Gpr> = self.frame.live_caller_saved().collect();
        kept.push(Gpr::RAX);
        self.preserve(&kept, |generator| {
            let env = generator.context_word(0).base;
            generator.buf.mov(Width::W64, Gpr::RDI, env);
            generator.call_host(check_deadline as *const () as u64);
        });
        self.load_fuel();
        let fuel = self.context_word(NativeContext::FUEL);
        self.buf.alu_store_imm(Alu::Cmp, Size::DW, fuel, 0);
        let end = *self
            .deadline_checks
            .end
            .get_or_insert_with(|| self.buf.new_label());
        self.buf.jump_if(Cc::L, end);
        self.buf.ret();
    }

    /// Leaves the entry, wherever its stack is.
    fn write_end(&mut self) {
        let stack = self.context_word(NativeContext::STACK);
        self.buf.load(Size::DW, None, Gpr::RSP, stack);
        if self.frame.has_rbp() {
            let frame = Mem::at(Gpr::RSP, self.frame.below_rbp());
            self.buf.lea(Width::W64, Gpr::RBP, frame);
        }
        self.exit();
    }
}

//! Looks at the run's deadline, where a host asks for them.
//!
//! A run that goes on for long goes round a loop or calls functions. So each round
//! takes a tick from a number in the environment: at the head of a loop, whichever
//! jump leads back to it, and where a local call arrives. There no flags are
//! wanted, and every value is in its register. When no tick is left, a function of
//! the host looks at the clock and gives new ones, or says that the time is up:
//! the run then ends from whatever depth of calls, by the stack pointer that the
//! entry noted. The functions in between restore nothing, so an entry that calls
//! any saves all that a function keeps for its caller.

use isa::ebpf::{Size, Width};
use lower::{Evidence, Lowered};

use super::asm::Alu;
use super::buffer::Label;
use super::generator::Generator;
use super::reg::{Cc, Gpr, Mem};
use crate::native::{Env, look};

/// The looks that a program's code takes.
pub(super) struct Looks {
    wanted: bool,
    /// Of the function at hand: where to look, and where to try again after that.
    open: Vec<(Label, Label)>,
    /// Where the run ends when the time is up.
    end: Option<Label>,
}

impl Looks {
    /// Programs that draw on a budget need none.
    pub(super) fn new(asked_for: bool, program: &Lowered) -> Looks {
        Looks {
            wanted: asked_for && matches!(program.evidence(), Evidence::Trusted),
            open: Vec::new(),
            end: None,
        }
    }
}

impl Generator<'_> {
    /// Whether the function takes ticks.
    pub(super) fn ticks(&self, index: usize) -> bool {
        self.looks.wanted && (index > 0 || self.analysis.usage[index].loops)
    }

    /// Whether the run may end in a function that this one calls.
    pub(super) fn may_be_left(&self, index: usize) -> bool {
        self.looks.wanted && index == 0 && self.analysis.usage[index].calls_functions
    }

    /// At the end of the entry's prologue: notes where its stack is.
    pub(super) fn note_stack(&mut self) {
        let is_entry = self.function.start == 0;
        if is_entry && (self.ticks(0) || self.may_be_left(0)) {
            let stack = self.env_word(Env::STACK);
            self.buf.store(Size::DW, stack, Gpr::RSP);
        }
    }

    /// At the beginning of a function: a tick, if a local call leads here.
    pub(super) fn tick_on_call(&mut self) {
        if self.looks.wanted && self.function.start > 0 {
            let here = self.buf.new_label();
            self.buf.bind(here);
            self.tick(here);
        }
    }

    /// At a slot's label: a tick, if it is the head of a loop.
    pub(super) fn tick_on_loop(&mut self, slot: usize) {
        if self.looks.wanted && self.analysis.facts[slot].is_loop {
            self.tick(self.label(slot));
        }
    }

    /// Takes a tick. `here` is the label of this place.
    fn tick(&mut self, here: Label) {
        let ticks = self.env_word(Env::TICKS);
        self.buf.alu_store_imm(Alu::Sub, Size::DW, ticks, 1);
        let look = self.buf.new_label();
        self.buf.jump_if(Cc::S, look);
        self.looks.open.push((look, here));
    }

    /// Behind a function: its looks, and behind the entry the end of the run.
    pub(super) fn write_looks(&mut self) {
        let open = std::mem::take(&mut self.looks.open);
        if !open.is_empty() {
            let stub = self.buf.new_label();
            for (look, back) in open {
                self.buf.bind(look);
                self.buf.call(stub);
                self.buf.jump(back);
            }
            self.buf.bind(stub);
            self.write_look();
        }
        if self.function.start == 0
            && let Some(end) = self.looks.end
        {
            self.buf.bind(end);
            self.write_end();
        }
    }

    /// Gets new ticks from [`look`] and returns, with all registers as they were,
    /// or ends the run.
    fn write_look(&mut self) {
        let mut kept: Vec<Gpr> = self.frame.lost_by_calls().collect();
        kept.push(Gpr::RAX);
        self.preserve(&kept, |generator| {
            let env = generator.env_word(0).base;
            generator.buf.mov(Width::W64, Gpr::RDI, env);
            generator.call_host(look as *const () as u64);
        });
        let ticks = self.env_word(Env::TICKS);
        self.buf.alu_store_imm(Alu::Cmp, Size::DW, ticks, 0);
        let end = *self.looks.end.get_or_insert_with(|| self.buf.new_label());
        self.buf.jump_if(Cc::S, end);
        self.buf.ret();
    }

    /// Leaves the entry, wherever its stack is.
    fn write_end(&mut self) {
        let stack = self.env_word(Env::STACK);
        self.buf.load(Size::DW, None, Gpr::RSP, stack);
        if self.frame.has_rbp() {
            let frame = Mem::at(Gpr::RSP, self.frame.below_rbp());
            self.buf.lea(Width::W64, Gpr::RBP, frame);
        }
        self.exit();
    }
}

//! Deadline checks.
//!
//! A long run iterates loops or calls functions. Each iteration (at the loop header) and
//! each local call consumes a unit of fuel, which the native context holds. At these points
//! no flags are live, and every value is in its register. When the fuel is used up, a host
//! function reads the clock and refuels, or leaves the fuel negative: the run then ends at
//! any call depth by restoring the stack pointer that the entry saved. The functions in
//! between restore nothing, so an entry that calls any saves all callee-saved registers;
//! with tail calls see `tail_call.rs`.
//!
//! In a function without calls the fuel is kept in a register if one is free, otherwise in
//! memory. Calls of a short function without calls and loops consume none.

use isa::ebpf::{Size, Width};
use lower::{Function, LoweredCode};

use super::generator::Generator;
use super::target::{Alu, Assembler, Cc, Label, Layout, Mem, Target};
use crate::analysis::Usage;
use crate::native::{NativeContext, check_deadline};

/// Slots of the longest function without loops and calls whose calls consume no fuel.
const SHORT: usize = 32;

/// The deadline checks of a program.
pub(crate) struct DeadlineChecks {
    pub(crate) wanted: bool,
    /// Labels of the current function's checks: the slow path, and the fuel decrement to
    /// return to.
    open: Vec<(Label, Label)>,
    /// Label of the code that ends the run when the deadline has passed.
    end: Option<Label>,
}

impl DeadlineChecks {
    /// Programs with a budget need no deadline checks.
    pub(crate) fn new(asked_for: bool, program: &LoweredCode) -> DeadlineChecks {
        DeadlineChecks {
            wanted: asked_for && program.evidence().proves_termination(),
            open: Vec::new(),
            end: None,
        }
    }
}

impl<T: Target> Generator<'_, T> {
    /// True if the function consumes fuel.
    pub(crate) fn fuel(&self, function: Function, usage: &Usage) -> bool {
        self.deadline_checks.wanted && (usage.loops || self.checks_on_call(function, usage))
    }

    /// True if a local call of the function consumes fuel.
    fn checks_on_call(&self, function: Function, usage: &Usage) -> bool {
        let is_short = function.end - function.start <= SHORT;
        let ends_soon = is_short && !usage.loops && !usage.calls_functions;
        self.deadline_checks.wanted && function.start > 0 && !ends_soon
    }

    /// True if the run may end in a callee of this function.
    pub(crate) fn may_end_in_callee(&self, function: Function, usage: &Usage) -> bool {
        self.deadline_checks.wanted
            && function.start == 0
            && usage.calls_functions
            && !self.has_entry_frame()
            && self.deadline_checks.end.is_some()
    }

    /// At the end of the entry's prologue: saves the stack pointer in the native context.
    pub(crate) fn save_stack_pointer(&mut self) {
        let (function, usage) = (self.function, &self.usage);
        let may_end = self.fuel(function, usage) || self.may_end_in_callee(function, usage);
        if function.start == 0 && may_end && !self.has_entry_frame() {
            let stack = self.context_word(NativeContext::STACK);
            self.asm.store(Size::DW, stack, T::STACK_POINTER);
        }
    }

    /// At the start of a function: loads the fuel, and consumes it for a local call.
    pub(crate) fn check_on_call(&mut self) {
        self.load_fuel();
        if self.checks_on_call(self.function, &self.usage) {
            self.check_at_new_label();
        }
    }

    /// A deadline check at a loop without a loop header.
    pub(crate) fn check_at_new_label(&mut self) {
        if self.deadline_checks.wanted {
            let here = self.asm.new_label();
            self.asm.bind(here);
            self.check_deadline(here);
        }
    }

    /// A deadline check at a slot, if it is a loop header.
    pub(crate) fn check_on_loop(&mut self, slot: usize) {
        if self.deadline_checks.wanted && self.infos[slot].is_loop() {
            self.check_deadline(self.label(slot));
        }
    }

    /// Consumes a unit of fuel. `here` is the label of this place.
    fn check_deadline(&mut self, here: Label) {
        match self.frame.fuel {
            Some(fuel) => self.asm.alu_imm(Alu::Sub, Width::W64, fuel, 1),
            None => {
                let fuel = self.context_word(NativeContext::FUEL);
                self.asm.alu_store_imm(Alu::Sub, Size::DW, fuel, 1);
            }
        }
        let look = self.asm.new_label();
        self.asm.jump_if(Cc::Less, look);
        self.deadline_checks.open.push((look, here));
    }

    /// Loads the fuel into its register, if the function has one.
    fn load_fuel(&mut self) {
        if let Some(gpr) = self.frame.fuel {
            let fuel = self.context_word(NativeContext::FUEL);
            self.asm.load(Size::DW, None, gpr, fuel);
        }
    }

    /// At the end of a function: stores the remaining fuel, which is not needed after the
    /// entry function.
    pub(crate) fn return_fuel(&mut self) {
        if self.function.start > 0 {
            self.store_fuel();
        }
    }

    /// Stores the remaining fuel, if it is in a register.
    pub(crate) fn store_fuel(&mut self) {
        if let Some(gpr) = self.frame.fuel {
            let fuel = self.context_word(NativeContext::FUEL);
            self.asm.store(Size::DW, fuel, gpr);
        }
    }

    /// After a function: the slow paths of its checks, and after the entry function the
    /// code that ends the run.
    pub(crate) fn write_deadline_checks(&mut self) {
        let open = std::mem::take(&mut self.deadline_checks.open);
        if !open.is_empty() {
            let stub = self.asm.new_label();
            for (look, back) in open {
                self.asm.bind(look);
                self.asm.call(stub);
                self.asm.jump(back);
            }
            self.asm.bind(stub);
            self.write_deadline_check();
        }
        if self.function.start == 0
            && let Some(end) = self.deadline_checks.end
        {
            self.asm.bind(end);
            self.write_end();
        }
    }

    /// Calls [`check_deadline`] with all registers preserved, then returns or ends the run.
    fn write_deadline_check(&mut self) {
        let mut kept = self.frame.live_caller_saved();
        kept.push(T::RESULT);
        self.preserve(&kept, |generator| {
            let env = generator.context_word(0).base;
            generator.asm.mov(Width::W64, T::ARGUMENTS[0], env);
            generator.call_host(check_deadline as *const () as u64);
        });
        self.load_fuel();
        let fuel = self.context_word(NativeContext::FUEL);
        self.asm.alu_store_imm(Alu::Cmp, Size::DW, fuel, 0);
        let end = *self
            .deadline_checks
            .end
            .get_or_insert_with(|| self.asm.new_label());
        self.asm.jump_if(Cc::Less, end);
        self.asm.ret();
    }

    /// Returns from the entry function at any call depth.
    fn write_end(&mut self) {
        let stack = self.context_word(NativeContext::STACK);
        self.asm.load(Size::DW, None, T::STACK_POINTER, stack);
        if self.has_entry_frame() {
            return self.leave_entry_frame();
        }
        if self.frame.has_frame_pointer() {
            let frame = Mem::at(T::STACK_POINTER, self.frame.bytes_below_frame_pointer());
            self.asm.lea(Width::W64, T::FRAME_POINTER, frame);
        }
        self.exit();
    }
}

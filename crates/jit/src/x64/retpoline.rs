//! Indirect branches, plain or through a retpoline.
//!
//! A retpoline replaces an indirect jump by a return whose address it has written to the
//! stack: the processor predicts returns by the calls before them, so that it runs into a
//! loop that waits, and nowhere that an attacker has trained it to go.
//!
//! ```text
//! thunk:  call  over
//! wait:   pause; lfence
//!         jmp   wait
//! over:   mov   [rsp], r11
//!         ret
//! ```
//!
//! It writes below the stack pointer, so it is used where no red zone is: in functions that
//! make calls, and for tail calls, which come when the frame is freed.

use isa::ebpf::Size;

use super::Generator;
use super::reg::{Gpr, Mem, SCRATCH};
use crate::codegen::{Assembler, Label, Layout};

impl Generator<'_> {
    /// Jumps to the address in the scratch register.
    pub(super) fn jump_to_scratch(&mut self) {
        match self.thunk() {
            Some(thunk) => self.asm.jump(thunk),
            None => self.asm.jump_to(SCRATCH),
        }
    }

    /// Calls the address at a label.
    pub(super) fn call_through(&mut self, label: Label) {
        match self.thunk() {
            Some(thunk) => {
                self.asm.load_label(SCRATCH, label);
                self.asm.call(thunk);
            }
            None => self.asm.call_through(label),
        }
    }

    fn thunk(&mut self) -> Option<Label> {
        let thunk = self.thunk;
        let thunk = || thunk.unwrap_or_else(|| self.asm.new_label());
        self.thunk = self.retpoline.then(thunk);
        self.thunk
    }

    /// Writes the thunk, if it is used.
    pub(super) fn write_retpoline(&mut self) {
        let Some(thunk) = self.thunk else {
            return;
        };
        let (wait, over) = (self.asm.new_label(), self.asm.new_label());
        self.asm.bind(thunk);
        self.asm.call(over);
        self.asm.bind(wait);
        self.asm.wait_for_speculation();
        self.asm.jump(wait);
        self.asm.bind(over);
        self.asm.store(Size::DW, Mem::at(Gpr::RSP, 0), SCRATCH);
        self.asm.ret();
    }
}

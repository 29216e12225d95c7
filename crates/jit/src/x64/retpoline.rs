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

use super::buffer::Label;
use super::frame::SCRATCH;
use super::generator::Generator;
use super::reg::{Gpr, Mem};

/// Retpolines of a program.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Retpoline {
    /// The thunk, if it is used.
    thunk: Option<Label>,
}

impl Generator<'_> {
    /// Jumps to the address in the scratch register.
    pub(super) fn jump_to_scratch(&mut self) {
        match self.thunk() {
            Some(thunk) => self.buf.jump(thunk),
            None => self.buf.jump_to(SCRATCH),
        }
    }

    /// Calls the address at a label.
    pub(super) fn call_through(&mut self, label: Label) {
        match self.thunk() {
            Some(thunk) => {
                self.buf.load_label(SCRATCH, label);
                self.buf.call(thunk);
            }
            None => self.buf.call_through(label),
        }
    }

    fn thunk(&mut self) -> Option<Label> {
        let retpoline = self.retpoline.as_mut()?;
        Some(*(retpoline.thunk).get_or_insert_with(|| self.buf.new_label()))
    }

    /// Writes the thunk, if it is used.
    pub(super) fn write_retpoline(&mut self) {
        let Some(thunk) = self.retpoline.and_then(|retpoline| retpoline.thunk) else {
            return;
        };
        let (wait, over) = (self.buf.new_label(), self.buf.new_label());
        self.buf.bind(thunk);
        self.buf.call(over);
        self.buf.bind(wait);
        self.buf.wait_for_speculation();
        self.buf.jump(wait);
        self.buf.bind(over);
        self.buf.store(Size::DW, Mem::at(Gpr::RSP, 0), SCRATCH);
        self.buf.ret();
    }
}

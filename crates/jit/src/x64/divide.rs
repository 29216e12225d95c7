//! Division and remainder.
//!
//! The machine divides `rdx:rax` and traps on a zero divisor and on the most
//! negative number divided by -1; here the former gives 0 (the remainder: the
//! dividend), the latter wraps. Division by most constants needs no division (see [`constant`]).

mod constant;
mod reciprocal;

use isa::ebpf::{AluOp, Operand, Reg, Width};

use super::alu::Arithmetic;
use super::asm::{Alu, Unary};
use super::frame::SCRATCH;
use super::generator::Generator;
use super::reg::{Cc, Gpr, Mem};

/// A division by a register.
#[derive(Clone, Copy)]
struct Division {
    signed: bool,
    remainder: bool,
    width: Width,
    target: Gpr,
    divisor: Gpr,
}

impl Generator<'_> {
    /// `dst = dst op src`, a division or a remainder.
    pub(super) fn divide(&mut self, slot: usize, this: Arithmetic) {
        match this.src {
            Operand::Imm(imm) if self.shows(imm) => {
                return self.divide_by_constant(slot, this, this.dst, imm);
            }
            Operand::Imm(imm) => {
                self.divide_by_scratch(slot, this, imm);
            }
            Operand::Reg(Reg::R10) => {
                let top = self.frame.stack_top();
                self.buf.lea(Width::W64, SCRATCH, top);
                self.divide_unchecked(slot, self.division(this, SCRATCH));
            }
            Operand::Reg(src) => self.divide_by_register(slot, this, src),
        }
        let bits = if this.width == Width::W32 { 32 } else { 64 };
        self.know(this.dst, bits);
    }

    /// Loads a divisor that is neither 0 nor -1, and divides by it.
    fn divide_by_scratch(&mut self, slot: usize, this: Arithmetic, imm: i32) {
        let value = match this.width {
            Width::W32 => u64::from(imm as u32),
            Width::W64 => imm as i64 as u64,
        };
        self.set_constant(SCRATCH, value);
        self.divide_unchecked(slot, self.division(this, SCRATCH));
    }

    /// Saves what `rax` and `rdx` hold, if that is wanted after an operation that
    /// writes them and then `target`; which of them it saved.
    fn save_product(&mut self, slot: usize, target: Gpr) -> [Option<Gpr>; 2] {
        [Gpr::RAX, Gpr::RDX].map(|gpr| {
            let saves = gpr != target && self.is_held(slot, gpr);
            if saves {
                self.buf.push(gpr);
            }
            saves.then_some(gpr)
        })
    }

    /// Whether the register holds what is wanted after the slot.
    fn is_held(&self, slot: usize, gpr: Gpr) -> bool {
        let after = self.after(slot);
        let mut regs = (0..10).filter_map(Reg::new);
        let wanted = regs.any(|reg| self.frame.holds(reg, gpr) && after.has(reg));
        wanted || self.frame.is_special(gpr)
    }

    fn restore_product(&mut self, saved: [Option<Gpr>; 2]) {
        for gpr in saved.into_iter().rev().flatten() {
            self.buf.pop(gpr);
        }
    }

    fn division(&self, this: Arithmetic, divisor: Gpr) -> Division {
        Division {
            signed: matches!(this.op, AluOp::SDiv | AluOp::SMod),
            remainder: matches!(this.op, AluOp::Mod | AluOp::SMod),
            width: this.width,
            target: self.gpr(this.dst),
            divisor,
        }
    }

    /// The machine's division, with the divisor looked at if it may be one of the
    /// exceptions.
    fn divide_by_register(&mut self, slot: usize, this: Arithmetic, src: Reg) {
        let division = self.division(this, self.gpr(src));
        let Division {
            signed,
            remainder,
            width,
            target,
            divisor,
        } = division;
        let moves = divisor == Gpr::RAX || divisor == Gpr::RDX;
        if !signed && remainder {
            if width == Width::W32 && self.known(this.dst) > 32 {
                self.buf.mov(Width::W32, target, target);
            }
            let division = self.clear_divisor(division);
            self.divide_after_exception(slot, division);
        } else if target == Gpr::RAX || target == divisor || moves {
            self.divide_before_exception(slot, division);
        } else {
            self.divide_after_exception(slot, division);
        }
    }

    /// Without a look at the divisor.
    fn divide_unchecked(&mut self, slot: usize, this: Division) {
        let saved = self.save_product(slot, this.target);
        self.load_dividend(this);
        self.write_division(this);
        self.restore_product(saved);
    }

    /// What the exceptions give is there before the division replaces it.
    fn divide_after_exception(&mut self, slot: usize, this: Division) {
        let done = self.buf.new_label();
        let saved = self.save_product(slot, this.target);
        self.load_dividend(this);
        self.load_next(this);
        self.write_exception(this);
        let exceptional = self.check_divisor(this);
        self.buf.jump_if(exceptional, done);
        self.write_division(this);
        self.buf.bind(done);
        self.restore_product(saved);
    }

    /// What the exceptions give stands behind a jump over it.
    fn divide_before_exception(&mut self, slot: usize, this: Division) {
        let exception = self.buf.new_label();
        let done = self.buf.new_label();
        self.load_next(this);
        let exceptional = self.check_divisor(this);
        self.buf.jump_if(exceptional, exception);
        let cleared = self.clear_divisor(this);
        self.divide_unchecked(slot, cleared);
        self.buf.jump(done);
        self.buf.bind(exception);
        self.write_exception(this);
        self.buf.bind(done);
    }

    /// Has the divisor where the machine's division does not need the register.
    fn clear_divisor(&mut self, this: Division) -> Division {
        if this.divisor != Gpr::RAX && this.divisor != Gpr::RDX {
            return this;
        }
        self.buf.mov(this.width, SCRATCH, this.divisor);
        Division {
            divisor: SCRATCH,
            ..this
        }
    }

    fn load_dividend(&mut self, this: Division) {
        if this.target != Gpr::RAX {
            self.buf.mov(this.width, Gpr::RAX, this.target);
        }
    }

    /// `rax` by the divisor.
    fn write_division(&mut self, this: Division) {
        let width = this.width;
        if this.signed {
            self.buf.sign_into_rdx(width);
            self.buf.unary(Unary::Idiv, width, this.divisor);
        } else {
            self.buf.set(Gpr::RDX, 0);
            self.buf.unary(Unary::Div, width, this.divisor);
        }
        let result = match this.remainder {
            true => Gpr::RDX,
            false => Gpr::RAX,
        };
        if this.target != result {
            self.buf.mov(width, this.target, result);
        }
    }

    /// If there is a sign, has 1 more than the divisor in the scratch register: the
    /// exceptions are the two values that this makes at most 1.
    fn load_next(&mut self, this: Division) {
        if this.signed {
            self.buf.lea(this.width, SCRATCH, Mem::at(this.divisor, 1));
        }
    }

    /// Under which condition the divisor is an exception.
    fn check_divisor(&mut self, this: Division) -> Cc {
        if this.signed {
            self.buf.alu_imm(Alu::Cmp, this.width, SCRATCH, 1);
            Cc::Be
        } else {
            self.buf.test(this.width, this.divisor, this.divisor);
            Cc::E
        }
    }

    /// Makes of the dividend in its place what 0 and -1 give: that is a product, with
    /// the divisor or, for the remainder, with 1 more.
    fn write_exception(&mut self, this: Division) {
        match (this.signed, this.remainder) {
            (true, true) => self.buf.multiply(this.width, this.target, SCRATCH),
            (true, false) => self.buf.multiply(this.width, this.target, this.divisor),
            (false, true) => {}
            (false, false) => self.buf.set(this.target, 0),
        }
    }
}

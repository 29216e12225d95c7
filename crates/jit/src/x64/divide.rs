//! Division and remainder.
//!
//! `div` and `idiv` divide `rdx:rax` and trap on a zero divisor and on the most negative
//! number divided by -1. BPF defines a division by 0 as 0, its remainder as the dividend,
//! and lets the overflow wrap. Division by powers of two needs no division instruction
//! (see [`constant`]).

mod constant;

use isa::ebpf::{Operand, Reg, Width};

use super::Generator;
use super::asm::Unary;
use super::reg::{Gpr, Mem, SCRATCH};
use crate::codegen::{Alu, Arithmetic, Assembler, Cc, Layout};

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
            Operand::Imm(imm) => return self.divide_by_constant(slot, this, this.dst, imm),
            Operand::Reg(Reg::R10) => {
                let top = self.frame.stack_top();
                self.asm.lea(Width::W64, SCRATCH, top);
                self.divide_unchecked(slot, self.division(this, SCRATCH));
            }
            Operand::Reg(src) => self.divide_by_register(slot, this, src),
        }
        let bits = if this.width == Width::W32 { 32 } else { 64 };
        self.set_known_bits(this.dst, bits);
    }

    /// Divides by a constant other than 0 and -1, which is loaded into the scratch
    /// register.
    fn divide_by_scratch(&mut self, slot: usize, this: Arithmetic, imm: i32) {
        let value = match this.width {
            Width::W32 => u64::from(imm as u32),
            Width::W64 => imm as i64 as u64,
        };
        self.asm.set_keeping_flags(SCRATCH, value);
        self.divide_unchecked(slot, self.division(this, SCRATCH));
    }

    /// Saves `rax` and `rdx` if they are live after the division, `target` aside; returns
    /// the saved registers.
    fn save_product(&mut self, slot: usize, target: Gpr) -> [Option<Gpr>; 2] {
        [Gpr::RAX, Gpr::RDX].map(|gpr| {
            let saves = gpr != target && self.is_held(slot, gpr);
            if saves {
                self.asm.push(gpr);
            }
            saves.then_some(gpr)
        })
    }

    /// True if the register is live after the slot.
    fn is_held(&self, slot: usize, gpr: Gpr) -> bool {
        let live_out = self.live_out(slot);
        let mut regs = (0..10).filter_map(Reg::new);
        let wanted = regs.any(|reg| self.frame.holds(reg, gpr) && live_out.has(reg));
        wanted || self.frame.is_special(gpr)
    }

    fn restore_product(&mut self, saved: [Option<Gpr>; 2]) {
        for gpr in saved.into_iter().rev().flatten() {
            self.asm.pop(gpr);
        }
    }

    fn division(&self, this: Arithmetic, divisor: Gpr) -> Division {
        let (signed, remainder) = this.division();
        Division {
            signed,
            remainder,
            width: this.width,
            target: self.gpr(this.dst),
            divisor,
        }
    }

    /// A division by a register, with checks for the divisors that trap.
    fn divide_by_register(&mut self, slot: usize, this: Arithmetic, src: Reg) {
        let division = self.division(this, self.gpr(src));
        let Division {
            signed,
            remainder,
            width,
            target,
            divisor,
        } = division;
        let changes_address = divisor == Gpr::RAX || divisor == Gpr::RDX;
        if !signed && remainder {
            if width == Width::W32 && self.known_bits(this.dst) > 32 {
                self.asm.mov(Width::W32, target, target);
            }
            let division = self.move_divisor(division);
            self.divide_after_exception(slot, division);
        } else if target == Gpr::RAX || target == divisor || changes_address {
            self.divide_before_exception(slot, division);
        } else {
            self.divide_after_exception(slot, division);
        }
    }

    /// A division without checks of the divisor.
    fn divide_unchecked(&mut self, slot: usize, this: Division) {
        let saved = self.save_product(slot, this.target);
        self.load_dividend(this);
        self.write_division(this);
        self.restore_product(saved);
    }

    /// A division whose result for trapping divisors is computed first and then replaced.
    fn divide_after_exception(&mut self, slot: usize, this: Division) {
        let done = self.asm.new_label();
        let saved = self.save_product(slot, this.target);
        self.load_dividend(this);
        self.load_next(this);
        self.write_exception(this);
        let exceptional = self.check_divisor(this);
        self.asm.jump_if(exceptional, done);
        self.write_division(this);
        self.asm.bind(done);
        self.restore_product(saved);
    }

    /// A division whose result for trapping divisors is computed out of line.
    fn divide_before_exception(&mut self, slot: usize, this: Division) {
        let exception = self.asm.new_label();
        let done = self.asm.new_label();
        self.load_next(this);
        let exceptional = self.check_divisor(this);
        self.asm.jump_if(exceptional, exception);
        let cleared = self.move_divisor(this);
        self.divide_unchecked(slot, cleared);
        self.asm.jump(done);
        self.asm.bind(exception);
        self.write_exception(this);
        self.asm.bind(done);
    }

    /// Copies the divisor to the scratch register if it is in `rax` or `rdx`.
    fn move_divisor(&mut self, this: Division) -> Division {
        if this.divisor != Gpr::RAX && this.divisor != Gpr::RDX {
            return this;
        }
        self.asm.mov(this.width, SCRATCH, this.divisor);
        Division {
            divisor: SCRATCH,
            ..this
        }
    }

    fn load_dividend(&mut self, this: Division) {
        if this.target != Gpr::RAX {
            self.asm.mov(this.width, Gpr::RAX, this.target);
        }
    }

    /// Divides `rax` by the divisor and moves the result to the target.
    fn write_division(&mut self, this: Division) {
        let width = this.width;
        if this.signed {
            self.asm.sign_into_rdx(width);
            self.asm.unary(Unary::Idiv, width, this.divisor);
        } else {
            self.asm.set(Gpr::RDX, 0);
            self.asm.unary(Unary::Div, width, this.divisor);
        }
        let result = match this.remainder {
            true => Gpr::RDX,
            false => Gpr::RAX,
        };
        if this.target != result {
            self.asm.mov(width, this.target, result);
        }
    }

    /// For signed division, computes the divisor plus 1 in the scratch register: for the
    /// divisors -1 and 0 it is at most 1, unsigned.
    fn load_next(&mut self, this: Division) {
        if this.signed {
            self.asm.lea(this.width, SCRATCH, Mem::at(this.divisor, 1));
        }
    }

    /// Compares the divisor; returns the condition code that holds if it would trap.
    fn check_divisor(&mut self, this: Division) -> Cc {
        if this.signed {
            self.asm.alu_imm(Alu::Cmp, this.width, SCRATCH, 1);
            Cc::BelowEqual
        } else {
            self.asm.test(this.width, this.divisor, this.divisor);
            Cc::Equal
        }
    }

    /// Replaces the dividend by the result for the divisors 0 and -1: the product with the
    /// divisor or, for the remainder, with the divisor plus 1.
    fn write_exception(&mut self, this: Division) {
        match (this.signed, this.remainder) {
            (true, true) => self.asm.multiply(this.width, this.target, SCRATCH),
            (true, false) => self.asm.multiply(this.width, this.target, this.divisor),
            (false, true) => {}
            (false, false) => self.asm.set(this.target, 0),
        }
    }
}

//! Divisions and remainders against plain arithmetic: by small and large constants, in
//! every register and with a separate source, with and without known significant bits of
//! the dividend; and by registers.

#![cfg(target_arch = "x86_64")]

use beebox_jit::memory::Pool;
use beebox_jit::{Features, Native, Options};
use isa::ebpf::{AluOp, Insn, Operand, Reg, Size, Width};
use lower::Lowered;
use spec::{Random, SplitMix};
use vm::{Machine, Outcome, Unchecked};

const OPS: [AluOp; 4] = [AluOp::Div, AluOp::Mod, AluOp::SDiv, AluOp::SMod];
const WIDTHS: [Width; 2] = [Width::W32, Width::W64];
const SIZES: [Size; 4] = [Size::B, Size::H, Size::W, Size::DW];
/// Two operands, the result, and the registers.
const MEMORY: usize = 8 * 13;

fn reg(number: usize) -> Reg {
    Reg::new(number as u8).expect("there are eleven")
}

fn mov(width: Width, dst: Reg, src: Operand) -> Insn {
    alu(AluOp::Mov, width, dst, src)
}

fn alu(op: AluOp, width: Width, dst: Reg, src: Operand) -> Insn {
    Insn::Alu {
        op,
        width,
        dst,
        src,
    }
}

/// The result that the instruction set defines.
fn expected_result(op: AluOp, width: Width, a: u64, b: u64) -> u64 {
    let (a, b) = match (width, op) {
        (Width::W64, _) => (a, b),
        (Width::W32, AluOp::Div | AluOp::Mod) => (a & 0xffff_ffff, b & 0xffff_ffff),
        (Width::W32, _) => (a as i32 as u64, b as i32 as u64),
    };
    let value = match op {
        AluOp::Div => a.checked_div(b).unwrap_or(0),
        AluOp::Mod => a.checked_rem(b).unwrap_or(a),
        AluOp::SDiv if b == 0 => 0,
        AluOp::SDiv => (a as i64).wrapping_div(b as i64) as u64,
        _ if b == 0 => a,
        _ => (a as i64).wrapping_rem(b as i64) as u64,
    };
    match width {
        Width::W32 => value & 0xffff_ffff,
        Width::W64 => value,
    }
}

/// A division in a program.
#[derive(Clone, Debug)]
struct Case {
    op: AluOp,
    width: Width,
    dst: usize,
    /// Register of the dividend; may be `dst`.
    from: usize,
    /// Size of the load of the dividend.
    size: Size,
    divisor: Operand,
    /// Instructions between the loads of the operands and the division.
    before: Option<Insn>,
    /// All registers are live afterwards.
    shows: bool,
}

impl Case {
    /// The register of the memory's address; the others hold distinct numbers.
    fn base(&self) -> usize {
        let taken =
            |at: usize| at == self.dst || at == self.from || self.divisor == Operand::Reg(reg(at));
        (0..10).rev().find(|&at| !taken(at)).expect("some is free")
    }

    fn program(&self) -> Vec<Insn> {
        let base = reg(self.base());
        let mut insns = vec![mov(Width::W64, base, Operand::Reg(Reg::R1))];
        for at in (0..10).filter(|&at| at != self.base()) {
            insns.push(mov(Width::W64, reg(at), Operand::Imm(100 + at as i32)));
        }
        let load = |size, at: usize, off| Insn::Load {
            size,
            signed: false,
            dst: reg(at),
            base,
            off,
        };
        if let Operand::Reg(divisor) = self.divisor {
            insns.push(load(Size::DW, divisor.index(), 8));
        }
        insns.push(load(self.size, self.from, 0));
        insns.extend(self.before);
        let (dst, from) = (reg(self.dst), reg(self.from));
        if dst != from {
            insns.push(mov(Width::W64, dst, Operand::Reg(from)));
        }
        insns.push(alu(self.op, self.width, dst, self.divisor));
        let store = |src, off| Insn::Store {
            size: Size::DW,
            base,
            off,
            src: Operand::Reg(src),
        };
        insns.push(store(dst, 16));
        if self.shows {
            let others = (0..10).filter(|&at| at != self.base());
            insns.extend(others.map(|at| store(reg(at), 24 + 8 * at as i16)));
        }
        insns.push(mov(Width::W64, Reg::R0, Operand::Imm(0)));
        insns.push(Insn::Exit);
        insns
    }

    /// The memory after the run.
    fn expected(&self, dividend: u64, divisor: u64) -> [u64; MEMORY / 8] {
        let mut memory = [0; MEMORY / 8];
        (memory[0], memory[1]) = (dividend, divisor);
        let loaded = dividend & u64::MAX >> (64 - 8 * self.size.bytes());
        let mut regs: [u64; 10] = std::array::from_fn(|at| 100 + at as u64);
        let divisor = match self.divisor {
            Operand::Reg(divisor) if divisor.index() == self.from => loaded,
            Operand::Reg(_) => divisor,
            Operand::Imm(imm) => imm as i64 as u64,
        };
        let divisor = match self.before {
            Some(Insn::Alu {
                src: Operand::Imm(imm),
                ..
            }) => divisor | imm as i64 as u64,
            _ => divisor,
        };
        if let Operand::Reg(reg) = self.divisor {
            regs[reg.index()] = divisor;
        }
        let dividend = match self.divisor == Operand::Reg(reg(self.from)) {
            true => divisor,
            false => loaded,
        };
        regs[self.from] = dividend;
        let by = match self.divisor == Operand::Reg(reg(self.dst)) {
            true => dividend,
            false => divisor,
        };
        regs[self.dst] = expected_result(self.op, self.width, dividend, by);
        memory[2] = regs[self.dst];
        if self.shows {
            for at in (0..10).filter(|&at| at != self.base()) {
                memory[3 + at] = regs[at];
            }
        }
        memory
    }
}

/// Compiles cases and runs them.
struct Bench {
    pool: Pool,
    machine: Machine,
    random: SplitMix,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            pool: Pool::new(),
            machine: Machine::new(),
            random: SplitMix::new(1),
        }
    }

    fn check(&mut self, case: &Case, features: Features, numbers: &[(u64, u64)]) {
        // SAFETY: it accesses the memory that it is given by constant offsets.
        let trusted = unsafe { Unchecked::assume_safe(case.program()) };
        let lowered = Lowered::from_unchecked(trusted).unwrap();
        let options = Options {
            features,
            ..Options::default()
        };
        let native = Native::compile(&lowered, &options, &self.pool).unwrap();
        for &(dividend, divisor) in numbers {
            let mut memory = [0; MEMORY];
            memory[..8].copy_from_slice(&dividend.to_le_bytes());
            memory[8..16].copy_from_slice(&divisor.to_le_bytes());
            let outcome = native.run(&mut self.machine, &mut memory, &mut self.random);
            assert!(matches!(outcome, Outcome::Returned(0)), "{case:?}");
            let found: Vec<u64> = memory
                .chunks(8)
                .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
                .collect();
            let expected = case.expected(dividend, divisor);
            assert_eq!(found, expected, "{dividend:#x} by {divisor:#x}: {case:?}");
        }
    }
}

fn wide(random: &mut SplitMix) -> u64 {
    u64::from(random.next_u32()) << 32 | u64::from(random.next_u32())
}

/// Dividends at the limits of the types and around multiples of the divisor.
fn dividends(divisor: i32, random: &mut SplitMix) -> Vec<u64> {
    let divisor = divisor as i64 as u64;
    let mut around = vec![
        0,
        divisor,
        divisor.wrapping_neg(),
        1 << 31,
        1 << 32,
        1 << 63,
    ];
    around.extend([u64::MAX, 0xffff, 0xff]);
    let size = u64::from((divisor as i32).unsigned_abs()).max(1);
    let ends = [u64::MAX, 0xffff_ffff, i64::MAX as u64, 0x7fff_ffff];
    around.extend(ends.map(|end| end / size * size));
    around.push((i64::MIN / size as i64 * size as i64) as u64);
    around.extend([7, 33].map(|by| (wide(random) >> by) / size * size));
    let near = |at: u64| [at.wrapping_sub(1), at, at.wrapping_add(1)];
    let mut all: Vec<u64> = around.into_iter().flat_map(near).collect();
    all.extend([wide(random), wide(random) >> 32, wide(random) >> 31]);
    all
}

fn divisors(random: &mut SplitMix) -> Vec<i32> {
    let mut divisors: Vec<i32> = (-20..=300).collect();
    divisors.extend((8..31).flat_map(|log| [(1 << log) - 1, 1 << log, (1 << log) + 1]));
    divisors.extend((5..31).flat_map(|log| [1 - (1 << log), -1 << log, -1 - (1 << log)]));
    divisors.extend([641, 1000, 3600, 86_400, 100_000, 1_000_000, 6_700_417]);
    divisors.extend([
        1_000_000_000,
        1_000_000_007,
        i32::MAX,
        i32::MIN,
        i32::MIN + 1,
    ]);
    divisors.extend((0..40).map(|at| random.next_u32() as i32 >> (at % 20)));
    divisors
}

#[test]
fn divisions_by_constants() {
    let mut bench = Bench::new();
    let random = &mut SplitMix::new(3);
    let mut turn = 0;
    for divisor in divisors(random) {
        let numbers: Vec<(u64, u64)> = dividends(divisor, random)
            .into_iter()
            .map(|dividend| (dividend, 0))
            .collect();
        // A few divisors in all registers, the others in some registers in turn.
        let all = matches!(divisor, 3 | 7 | 10 | 1000 | -10 | 1_000_000_007);
        for (op, width) in OPS
            .into_iter()
            .flat_map(|op| WIDTHS.map(|width| (op, width)))
        {
            for size in SIZES {
                for at in 0..if all { 20 } else { 4 } {
                    turn += 1;
                    let dst = if all { at / 2 } else { turn / 4 % 10 };
                    let from = if at % 2 == 0 { dst } else { turn * 7 % 10 };
                    let case = Case {
                        op,
                        width,
                        dst,
                        from,
                        size,
                        divisor: Operand::Imm(divisor),
                        before: None,
                        shows: all || turn % 3 > 0,
                    };
                    bench.check(&case, Features::detect(), &numbers);
                    if size == Size::DW {
                        bench.check(&case, Features::PLAIN, &numbers);
                    }
                }
            }
        }
    }
}

#[test]
fn divisions_by_registers() {
    let mut bench = Bench::new();
    let edges = [
        0,
        1,
        2,
        10,
        u64::MAX,
        1 << 31,
        0xffff_ffff,
        1 << 32,
        1 << 63,
    ];
    let random = &mut SplitMix::new(4);
    let mut numbers: Vec<(u64, u64)> = edges
        .into_iter()
        .flat_map(|a| edges.map(|b| (a, b)))
        .collect();
    numbers.extend([5, 13, 31, 45].map(|by| (wide(random), wide(random) >> by)));
    for (op, width) in OPS
        .into_iter()
        .flat_map(|op| WIDTHS.map(|width| (op, width)))
    {
        for dst in 0..10 {
            for by in 0..10 {
                for size in [Size::W, Size::DW] {
                    for imm in [None, Some(0), Some(1), Some(i32::MIN)] {
                        let before =
                            imm.map(|imm| alu(AluOp::Or, Width::W64, reg(by), Operand::Imm(imm)));
                        for shows in [false, true] {
                            let case = Case {
                                op,
                                width,
                                dst,
                                from: dst,
                                size,
                                divisor: Operand::Reg(reg(by)),
                                before,
                                shows,
                            };
                            bench.check(&case, Features::detect(), &numbers);
                        }
                    }
                }
            }
        }
    }
}

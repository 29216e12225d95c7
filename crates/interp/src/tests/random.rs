//! Random programs against a reference interpreter.
//!
//! They consist of compiler idioms on few registers, so that adjacent instructions depend
//! on each other, and jumps target any of them: fusions must preserve all results.

use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Size, Width, eval};
use spec::SplitMix;

use super::run_on;

const SIZES: [Size; 4] = [Size::B, Size::H, Size::W, Size::DW];
/// Bytes of memory at `r1`; the final registers are stored after them.
const DATA: usize = 64;
const PROGRAMS: u32 = if cfg!(miri) { 20 } else { 20_000 };

struct Generator(SplitMix);

impl Generator {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn register(&mut self) -> Reg {
        self.pick(&[Reg::R0, Reg::R2, Reg::R3, Reg::R4, Reg::R5])
    }

    fn width(&mut self) -> Width {
        self.pick(&[Width::W32, Width::W64])
    }

    fn operand(&mut self) -> Operand {
        if self.below(2) == 0 {
            Operand::Reg(self.register())
        } else {
            let numbers = [0, 1, 2, 3, 8, 31, 63, -1, -8, 0xff, i32::MIN, i32::MAX];
            Operand::Imm(self.pick(&numbers))
        }
    }

    fn alu(&mut self) -> Insn {
        use AluOp::*;
        let common = [Mov, Mov, Mov, Add, Add, Sub, Xor, Or, And, Lsh, Rsh, Mul];
        let rare = [Arsh, Div, Mod, SDiv, SMod];
        let op = if self.below(20) == 0 {
            self.pick(&rare)
        } else {
            self.pick(&common)
        };
        Insn::Alu {
            op,
            width: self.width(),
            dst: self.register(),
            src: self.operand(),
        }
    }

    fn jump(&mut self, off: i16) -> Insn {
        use Cond::*;
        Insn::Jump {
            cond: self.pick(&[Eq, Ne, Set, Gt, Ge, Lt, Le, SGt, SGe, SLt, SLe]),
            width: self.width(),
            dst: self.register(),
            src: self.operand(),
            off,
        }
    }

    /// An address in the data, then a load through it, as compilers index.
    fn indexed(&mut self, program: &mut Vec<Insn>) {
        let (index, into) = (self.register(), self.register());
        let at = self.pick(&[Reg::R2, Reg::R3, Reg::R4, Reg::R5]);
        let alu = |op, dst, src| Insn::Alu {
            op,
            width: Width::W64,
            dst,
            src,
        };
        program.extend([
            alu(AluOp::And, index, Operand::Imm(31)),
            alu(AluOp::Mov, at, Operand::Reg(Reg::R1)),
            alu(AluOp::Add, at, Operand::Reg(index)),
        ]);
        if at == index {
            program.truncate(program.len() - 3);
            return;
        }
        program.push(Insn::Load {
            size: self.pick(&SIZES),
            signed: false,
            dst: into,
            base: at,
            off: self.below(24) as i16,
        });
    }

    /// Forward jumps around a loop that terminates.
    fn program(&mut self) -> Vec<Insn> {
        let len = 6 + self.below(40) as usize;
        let mut program = Vec::new();
        // Starts of sequences that must be entered at their first instruction.
        let mut whole = Vec::new();
        while program.len() < len {
            match self.below(16) {
                0..9 => program.push(self.alu()),
                9 | 10 => {
                    let load = Insn::Load {
                        size: self.pick(&SIZES),
                        signed: self.below(4) == 0,
                        dst: self.register(),
                        base: Reg::R1,
                        off: self.below(56) as i16,
                    };
                    program.push(match load {
                        Insn::Load {
                            size: Size::DW,
                            dst,
                            base,
                            off,
                            ..
                        } => Insn::Load {
                            size: Size::DW,
                            signed: false,
                            dst,
                            base,
                            off,
                        },
                        load => load,
                    });
                }
                11 => program.push(Insn::Store {
                    size: self.pick(&SIZES),
                    base: Reg::R1,
                    off: self.below(56) as i16,
                    src: self.operand(),
                }),
                12 => {
                    let start = program.len();
                    self.indexed(&mut program);
                    whole.push(start..program.len());
                }
                13 | 14 => {
                    let off = self.below(5) as i16;
                    program.push(self.jump(off));
                }
                _ => program.push(Insn::Goto {
                    off: self.below(3) as i16,
                }),
            }
        }
        let end = program.len();
        for (slot, insn) in program.iter_mut().enumerate() {
            let (Insn::Jump { off, .. } | Insn::Goto { off }) = insn else {
                continue;
            };
            let target = (slot + 1 + *off as usize).min(end);
            let inside = whole
                .iter()
                .find(|part| part.start < target && target < part.end);
            *off = (inside.map_or(target, |part| part.end) - slot - 1) as i16;
        }
        // Three iterations, ended in the form of either compiler.
        let count = |dst| Insn::Alu {
            op: AluOp::Add,
            width: Width::W64,
            dst,
            src: Operand::Imm(-1),
        };
        let again = |cond, off| Insn::Jump {
            cond,
            width: Width::W64,
            dst: Reg::R9,
            src: Operand::Imm(0),
            off,
        };
        program.push(count(Reg::R9));
        if self.below(2) == 0 {
            program.push(again(Cond::Ne, -(end as i16) - 2));
        } else {
            program.push(again(Cond::Eq, 1));
            program.push(Insn::Goto {
                off: -(end as i16) - 3,
            });
        }
        self.framed(program)
    }

    /// Initial values of the registers, the body, and stores of the final registers.
    fn framed(&mut self, body: Vec<Insn>) -> Vec<Insn> {
        let mut program = Vec::new();
        for number in [0, 2, 3, 4, 5, 9] {
            let value = if number == 9 {
                3
            } else {
                self.0.next_u64() as i32
            };
            program.push(Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst: Reg::new(number).expect("it is one"),
                src: Operand::Imm(value),
            });
        }
        program.extend(body);
        for number in 0..6 {
            program.push(Insn::Store {
                size: Size::DW,
                base: Reg::R1,
                off: DATA as i16 + 8 * number,
                src: Operand::Reg(Reg::new(number as u8).expect("it is one")),
            });
        }
        program.push(Insn::Exit);
        program
    }
}

/// Runs the program in a reference interpreter; addresses are offsets from `base`.
fn interpret(insns: &[Insn], memory: &mut [u8], base: u64) -> u64 {
    let mut regs = [0; Reg::COUNT];
    regs[1] = base;
    regs[2] = memory.len() as u64;
    let mut slot = 0;
    loop {
        let insn = insns[slot];
        slot += 1;
        let place = |reg: Reg, off| (eval::address(regs[reg.index()], off) - base) as usize;
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let src = eval::operand(src, &regs);
                regs[dst.index()] = eval::alu(op, width, regs[dst.index()], src);
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                off,
            } => {
                let at = place(base, off);
                let bytes = &memory[at..at + size.bytes() as usize];
                let value = bytes
                    .iter()
                    .rev()
                    .fold(0, |value, &byte| value << 8 | u64::from(byte));
                regs[dst.index()] = eval::loaded(size, signed, value);
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let at = place(base, off);
                let len = size.bytes() as usize;
                let bytes = eval::operand(src, &regs).to_le_bytes();
                memory[at..at + len].copy_from_slice(&bytes[..len]);
            }
            Insn::Jump {
                cond,
                width,
                dst,
                src,
                off,
            } => {
                let src = eval::operand(src, &regs);
                if eval::compare(cond, width, regs[dst.index()], src) {
                    slot = slot.wrapping_add_signed(off as isize);
                }
            }
            Insn::Goto { off } => slot = slot.wrapping_add_signed(off as isize),
            Insn::Exit => return regs[0],
            other => panic!("{other:?} is not generated"),
        }
    }
}

#[test]
fn fusions_preserve_results() {
    let mut generator = Generator(SplitMix::new(42));
    for _ in 0..PROGRAMS {
        let insns = generator.program();
        let fresh: [u8; DATA + 48] = std::array::from_fn(|_| generator.0.next_u64() as u8);
        let (mut found, mut expected) = (fresh, fresh);
        let base = found.as_ptr() as u64;
        let wanted = interpret(&insns, &mut expected, base);
        // SAFETY: the interpret has found every access inside the memory, and the end.
        let value = unsafe { run_on(&insns, &mut found) };
        let shown = || {
            let lines = insns.iter().map(|insn| format!("{insn}\n"));
            lines.collect::<String>()
        };
        assert_eq!(value, wanted, "{}", shown());
        assert!(found == expected, "{found:?}\n{expected:?}\n{}", shown());
    }
}

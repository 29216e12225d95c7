//! Programs as libpcap writes them: tests of a packet one after the other that share
//! where they lead, with what is seldom so between them.
//!
//! Chance alone seldom makes two tests in a row that lead to the same place, and
//! hardly ever a program that does nothing but look at bytes.

use isa::classic::{AluOp, Cond, Insn, Operand, Size, SockFilter};

use super::Generator;

/// Target of a test.
#[derive(Clone, Copy)]
enum Way {
    Next,
    /// To a return, of several.
    Return(usize),
    /// Over so many steps.
    Over(usize),
}

/// An instruction whose jumps are not drawn yet.
#[derive(Clone, Copy)]
enum Step {
    Plain(Insn),
    Test {
        cond: Cond,
        src: Operand,
        holds: Way,
        fails: Way,
    },
}

/// The word of scratch memory that is used.
const WORD: u32 = 3;

impl Generator {
    /// A valid program of tests.
    pub fn filter(&mut self) -> Vec<SockFilter> {
        let mut steps = Vec::new();
        let stores = self.one_in(4);
        if stores {
            steps.extend([Insn::LoadImm(self.below(9)), Insn::Store(WORD)].map(Step::Plain));
        }
        if self.one_in(4) {
            steps.push(Step::Plain(Insn::LoadXImm(self.small())));
        }
        // Where tests lead that fail, mostly.
        let mut fail = self.below(3) as usize;
        for _ in 0..2 + self.below(10) {
            if self.one_in(8) {
                fail = self.below(3) as usize;
            }
            for _ in 0..self.below(3) {
                let insn = self.look(stores);
                steps.push(Step::Plain(insn));
            }
            if self.one_in(3) {
                self.choice(fail, &mut steps);
            } else {
                let (holds, fails) = match self.below(8) {
                    0..3 => (Way::Return(fail), Way::Next),
                    3..6 => (Way::Next, Way::Return(fail)),
                    6 => (Way::Over(self.below(4) as usize), Way::Return(fail)),
                    _ => (Way::Next, Way::Over(self.below(4) as usize)),
                };
                let test = self.test(holds, fails);
                steps.push(test);
            }
        }
        let returns = [self.end(), self.end(), self.end()];
        encode(&steps, returns)
    }

    /// Tests of which one is enough, or nearly so.
    fn choice(&mut self, fail: usize, steps: &mut Vec<Step>) {
        let count = 1 + self.below(3) as usize;
        let loads = self.one_in(2);
        let end = match self.below(4) {
            0 => Way::Return(self.below(3) as usize),
            _ => Way::Next,
        };
        for left in (0..=count).rev() {
            let per_test = 1 + usize::from(loads);
            let holds = match end {
                Way::Next if left > 0 => Way::Over(left * per_test),
                _ => end,
            };
            let fails = if left == 0 {
                Way::Return(fail)
            } else {
                Way::Next
            };
            let test = self.test(holds, fails);
            steps.push(test);
            if loads && left > 0 {
                let insn = self.load();
                steps.push(Step::Plain(insn));
            }
        }
    }

    fn test(&mut self, holds: Way, fails: Way) -> Step {
        Step::Test {
            cond: self.pick(&[Cond::Eq, Cond::Eq, Cond::Gt, Cond::Ge, Cond::Set]),
            src: match self.below(8) {
                0 => Operand::X,
                1 => Operand::K(self.constant()),
                _ => Operand::K(self.small()),
            },
            holds,
            fails,
        }
    }

    /// A load or what is done with one.
    fn look(&mut self, stores: bool) -> Insn {
        match self.below(12) {
            0 => Insn::LoadXMsh(self.below(16)),
            1 => Insn::Tax,
            2 => Insn::Txa,
            3 => self.alu(false),
            4 => Insn::Alu {
                op: AluOp::And,
                src: Operand::K(self.pick(&[1, 3, 15, 0xf0, 0x1fff])),
            },
            5 if stores => self.pick(&[
                Insn::Store(WORD),
                Insn::StoreX(WORD),
                Insn::LoadMem(WORD),
                Insn::LoadXMem(WORD),
            ]),
            6 if self.one_in(8) => Insn::LoadLen,
            _ => self.load(),
        }
    }

    fn load(&mut self) -> Insn {
        let size = self.pick(&[Size::B, Size::B, Size::H, Size::W]);
        let k = match self.below(32) {
            0 => self.offset(),
            1..4 => self.below(80),
            _ => self.below(20),
        };
        if self.one_in(3) {
            Insn::LoadInd { size, k }
        } else {
            Insn::LoadAbs {
                size,
                k: k & 0xffff,
            }
        }
    }

    fn small(&mut self) -> u32 {
        match self.below(4) {
            0 => self.pick(&[0x16, 0x45, 0x0800, 0x0806, 0x11]),
            _ => self.below(9),
        }
    }

    fn end(&mut self) -> Insn {
        match self.below(4) {
            0 => Insn::RetA,
            1 => Insn::RetK(0),
            _ => Insn::RetK(self.return_value()),
        }
    }
}

/// Draws the jumps; the returns follow the steps.
fn encode(steps: &[Step], returns: [Insn; 3]) -> Vec<SockFilter> {
    let skip = |at: usize, way: Way| {
        let target = match way {
            Way::Next => at + 1,
            Way::Return(number) => steps.len() + number,
            Way::Over(count) => (at + 1 + count).min(steps.len()),
        };
        u8::try_from(target - at - 1).expect("filters are short")
    };
    let insns = steps.iter().enumerate().map(|(at, &step)| match step {
        Step::Plain(insn) => insn,
        Step::Test {
            cond,
            src,
            holds,
            fails,
        } => Insn::Jump {
            cond,
            src,
            jt: skip(at, holds),
            jf: skip(at, fails),
        },
    });
    insns.chain(returns).map(Insn::encode).collect()
}

//! Classic programs from a seed: valid by construction, and mutants of them.
//!
//! A generated program should reach what programs of people seldom reach: every
//! instruction, every extension, every area that a load can name, jumps of every
//! length. So constants come from small sets with meaning (offsets at borders,
//! masks, values that packets hold) more often than from all 32 bits, and most
//! programs are short, so that most of each is executed.
//!
//! Validity is kept as the instructions are drawn, by the walk that the checker
//! makes afterwards: a word of scratch memory is read only when it is written on
//! every way here. A program costs about a microsecond for 20 instructions.

mod filters;

use isa::classic::{
    AD_OFFSET, AluOp, Cond, Extension, Insn, LL_OFFSET, MAX_INSNS, MEMORY_WORDS, NET_OFFSET,
    OPCODES, Operand, Size, SockFilter,
};
use spec::SplitMix;

/// Purpose of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A socket, or a capture: everything.
    Socket,
    /// As above, without dependence on `#rand`, because both sides of a comparison draw
    /// different numbers.
    SocketWithoutChance,
    /// A system call's data.
    Seccomp,
}

/// A source of programs and packets that repeats when its seed does.
#[derive(Clone, Debug)]
pub struct Generator {
    random: SplitMix,
}

impl Generator {
    /// A source that starts at `seed`.
    pub fn new(seed: u64) -> Generator {
        Generator {
            random: SplitMix::new(seed),
        }
    }

    /// A number below `limit` (0 for an empty range).
    pub fn below(&mut self, limit: u32) -> u32 {
        ((u64::from(self.bits()) * u64::from(limit)) >> 32) as u32
    }

    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        (self.random.next_u64() >> 32) as u32
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    /// A length: mostly short, seldom as long as Linux takes.
    pub fn program_len(&mut self) -> usize {
        let len = match self.below(1000) {
            0..700 => 2 + self.below(24),
            700..930 => 20 + self.below(60),
            930..995 => 60 + self.below(400),
            _ => 400 + self.below(MAX_INSNS as u32 - 399),
        };
        len as usize
    }

    /// A valid program of about this length (it may end with a return more).
    pub fn program(&mut self, dialect: Dialect, len: usize) -> Vec<SockFilter> {
        let mut draft = Draft {
            insns: Vec::with_capacity(len),
            masks: vec![u16::MAX; len],
            written: 0,
        };
        while draft.insns.len() + 1 < len {
            let at = draft.insns.len();
            if len - at > 4 && self.one_in(16) {
                for insn in self.idiom(dialect) {
                    draft.push(insn);
                }
                continue;
            }
            draft.written &= draft.masks[at];
            let insn = self.insn(dialect, len - at - 1, draft.written);
            let is_chance = insn == extension(Extension::Random);
            if is_chance && dialect == Dialect::SocketWithoutChance {
                if len - at > 2 {
                    let forget = self.pick(&[AluOp::And, AluOp::Mul]);
                    draft.push(insn);
                    draft.push(Insn::Alu {
                        op: forget,
                        src: Operand::K(0),
                    });
                }
                continue;
            }
            draft.push(insn);
        }
        draft.push(match self.below(4) {
            0 => Insn::RetK(self.return_value()),
            _ => Insn::RetA,
        });
        draft.insns.into_iter().map(Insn::encode).collect()
    }

    /// A long program that is left by jumps of any length, one after the other.
    pub fn program_of_jumps(&mut self) -> Vec<SockFilter> {
        let len = 300 + self.below(MAX_INSNS as u32 - 300) as usize;
        let mut insns = Vec::with_capacity(len);
        for at in 0..len - 1 {
            let room = (len - at - 1) as u32;
            insns.push(match self.below(4) {
                0 => Insn::LoadAbs {
                    size: Size::B,
                    k: self.below(4),
                },
                1 => self.alu(true),
                2 if self.one_in(20) => {
                    let power = self.below(13);
                    Insn::Goto(self.below(1 << power).min(room - 1))
                }
                _ => Insn::Jump {
                    cond: self.pick(&[Cond::Eq, Cond::Gt, Cond::Ge, Cond::Set]),
                    src: Operand::K(self.constant()),
                    jt: self.below(room.min(256)) as u8,
                    jf: self.below(room.min(256)) as u8,
                },
            });
        }
        insns.push(Insn::RetA);
        insns.into_iter().map(Insn::encode).collect()
    }

    /// A program whose conversion in the kernel has jumps around the limit of 16 bits.
    pub fn program_at_the_border(&mut self) -> Vec<SockFilter> {
        let mut insns = Vec::new();
        let mut address: u32 = 7;
        let border = 32_700 + self.below(140);
        while address < border && insns.len() < MAX_INSNS - 300 {
            let (insn, len) = match self.below(3) {
                0 => (Insn::LoadXMsh(0x8000), 21),
                1 => (
                    Insn::LoadAbs {
                        size: Size::W,
                        k: 0x9000,
                    },
                    16,
                ),
                _ => (Insn::LoadXMsh(0), 18),
            };
            // Now and then a jump that has to reach across the border.
            if self.one_in(40) {
                insns.push(Insn::Goto(2000 + self.below(300)));
            }
            insns.push(insn);
            address += len;
        }
        let len = insns.len();
        for (at, insn) in insns.iter_mut().enumerate() {
            if let Insn::Goto(k) = insn {
                *k = (*k).min((len - at - 1) as u32);
            }
        }
        for _ in 0..self.below(100) {
            let room = 120;
            insns.push(match self.below(3) {
                0 => Insn::Goto(self.below(room)),
                1 => Insn::LoadImm(self.bits()),
                _ => self.jump(room as usize),
            });
        }
        insns.extend([Insn::LoadLen; 255]);
        insns.push(Insn::RetA);
        insns.into_iter().map(Insn::encode).collect()
    }

    /// A program with something wrong in it, most of the time.
    pub fn mutant(&mut self, dialect: Dialect) -> Vec<SockFilter> {
        let len = match self.below(400) {
            0 => MAX_INSNS - 1 + self.below(3) as usize,
            _ => 1 + self.below(30) as usize,
        };
        let mut program = self.program(dialect, len);
        for _ in 0..1 + self.below(2) {
            self.mutate(&mut program);
        }
        program
    }

    fn mutate(&mut self, program: &mut Vec<SockFilter>) {
        if program.is_empty() {
            return;
        }
        let at = self.below(program.len() as u32) as usize;
        match self.below(16) {
            0 => program[at].code = self.bits() as u16,
            1 => program[at].code ^= 1 << self.below(16),
            2 => {
                let insn = &mut program[at];
                insn.code = self.pick(OPCODES).0;
                insn.k = self.constant();
            }
            3 => program[at].k = self.constant(),
            4 => program[at].k = self.offset(),
            5 => program[at].jt = self.bits() as u8,
            6 => program[at].jf = self.bits() as u8,
            7 => {
                program.pop();
            }
            8 => program.truncate(at),
            9 => {
                let other = self.below(program.len() as u32) as usize;
                program.swap(at, other);
            }
            10 => {
                program.remove(at);
            }
            11 => program[at] = encode_alu(self.pick(&[AluOp::Div, AluOp::Mod]), 0),
            12 => {
                let by = self.pick(&[31, 32, 33, u32::MAX]);
                program[at] = encode_alu(self.pick(&[AluOp::Lsh, AluOp::Rsh]), by);
            }
            13 => {
                let k = self.pick(&[0, 15, 16, 17, u32::MAX]);
                let memory = [
                    Insn::LoadMem(k),
                    Insn::LoadXMem(k),
                    Insn::Store(k),
                    Insn::StoreX(k),
                ];
                program[at] = self.pick(&memory).encode();
            }
            14 => {
                let k = AD_OFFSET.wrapping_add(self.below(80)).wrapping_sub(8);
                let size = self.size();
                program[at] = Insn::LoadAbs { size, k }.encode();
            }
            _ => {
                let rest = (program.len() - at) as u32;
                let near = rest.wrapping_add(self.below(4)).wrapping_sub(3);
                program[at] = Insn::Goto(self.pick(&[near, u32::MAX, rest])).encode();
            }
        }
    }

    /// A valid instruction with `room` instructions after it.
    fn insn(&mut self, dialect: Dialect, room: usize, written: u16) -> Insn {
        let seccomp = dialect == Dialect::Seccomp;
        match self.below(128) {
            0..26 if seccomp => Insn::LoadAbs {
                size: Size::W,
                k: 4 * self.below(16),
            },
            0..18 => Insn::LoadAbs {
                size: self.size(),
                k: self.absolute_offset(),
            },
            18..27 if !seccomp => Insn::LoadInd {
                size: self.size(),
                k: self.offset(),
            },
            27..33 if !seccomp => Insn::LoadXMsh(self.offset()),
            33..42 if !seccomp => {
                let extension = self.pick(Extension::ALL);
                Insn::LoadAbs {
                    size: self.size(),
                    k: extension.offset(),
                }
            }
            18..46 => Insn::LoadLen,
            46..52 => Insn::LoadImm(self.constant()),
            52..58 => Insn::LoadXImm(self.constant()),
            58..60 => Insn::LoadXLen,
            60..66 => Insn::Store(self.below(MEMORY_WORDS)),
            66..70 => Insn::StoreX(self.below(MEMORY_WORDS)),
            70..78 if written != 0 => {
                let k = self.written_word(written);
                if self.one_in(3) {
                    Insn::LoadXMem(k)
                } else {
                    Insn::LoadMem(k)
                }
            }
            70..84 => Insn::Tax,
            84..87 => Insn::Txa,
            87..89 => Insn::Neg,
            89..110 => self.alu(seccomp),
            110..125 => self.jump(room),
            125..127 => Insn::Goto(self.skip(room, u32::MAX)),
            _ if room > 12 || self.one_in(4) => Insn::Tax,
            _ if self.one_in(2) => Insn::RetA,
            _ => Insn::RetK(self.return_value()),
        }
    }

    /// Instructions that mean something together, which chance seldom puts so.
    fn idiom(&mut self, dialect: Dialect) -> [Insn; 3] {
        let by_x = |op| Insn::Alu {
            op,
            src: Operand::X,
        };
        let kind = if dialect == Dialect::Seccomp {
            self.below(2)
        } else {
            self.below(6)
        };
        match kind {
            0 => [
                Insn::LoadImm(self.bits()),
                Insn::LoadXImm(self.pick(&[0, 1, 7, 31, 32, 33, 64, 255, 0x8000_0001])),
                by_x(self.pick(&[AluOp::Lsh, AluOp::Rsh])),
            ],
            1 => [
                Insn::LoadXImm(self.constant()),
                Insn::LoadImm(self.constant()),
                by_x(self.pick(&[AluOp::Div, AluOp::Mul, AluOp::Sub])),
            ],
            2 => {
                let x = self.offset();
                [
                    Insn::LoadXImm(x),
                    Insn::LoadLen,
                    Insn::LoadInd {
                        size: self.size(),
                        k: self.below(30).wrapping_sub(x),
                    },
                ]
            }
            3 => [
                Insn::LoadXMsh(self.below(20)),
                Insn::LoadInd {
                    size: self.size(),
                    k: self.below(20),
                },
                Insn::Tax,
            ],
            _ => {
                let flags = self.pick(&[0, 0, 0, 0, 0x4000, 0x8000, 0x1_0000]);
                [
                    Insn::LoadImm(4 * self.below(8) + u32::from(self.one_in(8))),
                    Insn::LoadXImm(self.below(9) | flags),
                    extension(self.pick(&[Extension::Nlattr, Extension::NlattrNest])),
                ]
            }
        }
    }

    fn alu(&mut self, seccomp: bool) -> Insn {
        const OPS: [AluOp; 10] = [
            AluOp::Add,
            AluOp::Sub,
            AluOp::Mul,
            AluOp::Div,
            AluOp::Or,
            AluOp::And,
            AluOp::Lsh,
            AluOp::Rsh,
            AluOp::Xor,
            AluOp::Mod,
        ];
        let op = self.pick(if seccomp { &OPS[..9] } else { &OPS });
        let src = if self.one_in(3) {
            Operand::X
        } else {
            Operand::K(match op {
                AluOp::Lsh | AluOp::Rsh => self.below(32),
                AluOp::Div | AluOp::Mod => self.constant().max(1),
                _ => self.constant(),
            })
        };
        Insn::Alu { op, src }
    }

    /// A conditional jump with `room` (at least one) instructions after it.
    fn jump(&mut self, room: usize) -> Insn {
        let cond = self.pick(&[Cond::Eq, Cond::Gt, Cond::Ge, Cond::Set]);
        let src = if self.one_in(4) {
            Operand::X
        } else {
            Operand::K(self.constant())
        };
        let (jt, jf) = match self.below(5) {
            0 => (self.skip(room, 255), self.skip(room, 255)),
            1 | 2 => (self.skip(room, 255), 0),
            _ => (0, self.skip(room, 255)),
        };
        Insn::Jump {
            cond,
            src,
            jt: jt as u8,
            jf: jf as u8,
        }
    }

    /// Number of skipped instructions of the `room` after it.
    fn skip(&mut self, room: usize, most: u32) -> u32 {
        let limit = (room as u32).min(most.saturating_add(1)).max(1);
        match self.below(8) {
            0 => self.below(limit),
            1 => limit - 1,
            _ => self.below(limit.min(5)),
        }
    }

    fn written_word(&mut self, written: u16) -> u32 {
        let mut skipped = self.below(written.count_ones());
        (0..MEMORY_WORDS)
            .filter(|k| written >> k & 1 == 1)
            .find(|_| {
                let found = skipped == 0;
                skipped = skipped.saturating_sub(1);
                found
            })
            .unwrap_or(0)
    }

    fn size(&mut self) -> Size {
        self.pick(&[Size::B, Size::H, Size::W])
    }

    /// An offset that an absolute load may have.
    fn absolute_offset(&mut self) -> u32 {
        let k = self.offset();
        if k < AD_OFFSET { k } else { k & 0xff }
    }

    /// An offset in any of the areas that loads tell apart, mostly the packet.
    fn offset(&mut self) -> u32 {
        match self.below(24) {
            0..12 => self.below(24),
            12..16 => self.below(80),
            16 => self.below(300),
            17 => self.below(2000),
            18 => (0x7ffcu32 + self.below(8)) & 0xffff,
            19 => NET_OFFSET.wrapping_add(self.below(40)),
            20 => LL_OFFSET.wrapping_add(self.below(40)),
            21 => self.pick(&[
                NET_OFFSET - 1,
                LL_OFFSET - 1,
                0x7fff_ffff,
                0x7fff_fffe,
                0x8000_0000,
                AD_OFFSET - 1,
                0x1_0000,
            ]),
            22 => 0u32.wrapping_sub(self.below(40)),
            _ => self.bits(),
        }
    }

    fn constant(&mut self) -> u32 {
        match self.below(12) {
            0..4 => self.below(9),
            4 | 5 => self.below(256),
            6 => 1 << self.below(32),
            7 => u32::MAX >> self.below(32),
            8 => self.pick(&[0x0800, 0x86dd, 0x8100, 0x4500, 0x0101, 0x1616]),
            9 => 0u32.wrapping_sub(self.below(50)),
            10 => self.pick(&[
                0x7fff_ffff,
                0x8000_0000,
                0x8000_0001,
                0xffff_0000,
                31,
                32,
                33,
            ]),
            _ => self.bits(),
        }
    }

    fn return_value(&mut self) -> u32 {
        match self.below(4) {
            0 => 0,
            1 => self.below(100),
            2 => u32::MAX,
            _ => self.constant(),
        }
    }

    /// The bytes of a packet of this length: ones that comparisons hit, netlink
    /// attributes, or anything.
    pub fn packet_bytes(&mut self, len: usize) -> Vec<u8> {
        match self.below(4) {
            0 => (0..len).map(|_| self.bits() as u8).collect(),
            1 => self.netlink_attributes(len),
            _ => (0..len).map(|_| self.likely_byte()).collect(),
        }
    }

    fn likely_byte(&mut self) -> u8 {
        match self.below(3) {
            0 => self.below(9) as u8,
            1 => self.pick(&[0x45, 0x08, 0x06, 0x11, 0x16, 0xff, 0x80, 0x7f, 0x40]),
            _ => self.bits() as u8,
        }
    }

    /// The bytes of a packet of netlink attributes, some inside others.
    pub fn netlink_attributes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 64);
        while bytes.len() < len {
            let room = (len - bytes.len()) as u32;
            let size = match self.below(16) {
                0 => self.below(0x1_0000),
                1 | 2 => self.below(5),
                _ => 4 + self.below(20.min(room)),
            };
            let flags = self.pick(&[0, 0, 0, 0, 0x8000, 0x4000, 0xc000]);
            bytes.extend((size as u16).to_le_bytes());
            bytes.extend((self.below(9) as u16 | flags).to_le_bytes());
            if self.one_in(3) {
                continue; // what follows lies inside
            }
            for _ in 4..size.min(64).next_multiple_of(4) {
                bytes.push(self.below(9) as u8);
            }
        }
        bytes.truncate(len);
        bytes
    }
}

/// A program under construction, and what the checker will know of scratch
/// memory there.
struct Draft {
    insns: Vec<Insn>,
    masks: Vec<u16>,
    written: u16,
}

impl Draft {
    fn push(&mut self, insn: Insn) {
        let at = self.insns.len();
        if let Some(&mask) = self.masks.get(at) {
            self.written &= mask;
        }
        let mut reach = |skipped: usize, written: u16| {
            if let Some(mask) = self.masks.get_mut(at + 1 + skipped) {
                *mask &= written;
            }
        };
        match insn {
            Insn::Store(k) | Insn::StoreX(k) => self.written |= 1 << k,
            Insn::Goto(k) => {
                reach(k as usize, self.written);
                self.written = u16::MAX;
            }
            Insn::Jump { jt, jf, .. } => {
                reach(usize::from(jt), self.written);
                reach(usize::from(jf), self.written);
                self.written = u16::MAX;
            }
            _ => {}
        }
        self.insns.push(insn);
    }
}

fn extension(extension: Extension) -> Insn {
    Insn::LoadAbs {
        size: Size::W,
        k: extension.offset(),
    }
}

fn encode_alu(op: AluOp, k: u32) -> SockFilter {
    let src = Operand::K(k);
    Insn::Alu { op, src }.encode()
}

#[cfg(test)]
mod tests {
    use super::*;
    use classic::{Rules, check};

    #[test]
    fn programs_are_valid_by_construction() {
        for seed in 0..3000 {
            let mut generator = Generator::new(seed);
            for dialect in [Dialect::Socket, Dialect::SocketWithoutChance] {
                let len = generator.program_len();
                let program = generator.program(dialect, len);
                assert_eq!(check(&program, Rules::Socket).err(), None, "seed {seed}");
            }
            let program = generator.filter();
            assert_eq!(check(&program, Rules::Socket).err(), None, "seed {seed}");
            let len = generator.program_len();
            let program = generator.program(Dialect::Seccomp, len);
            assert_eq!(check(&program, Rules::Seccomp).err(), None, "seed {seed}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_programs_again() {
        let programs = |seed| {
            let mut generator = Generator::new(seed);
            (0..20)
                .map(|_| generator.mutant(Dialect::Socket))
                .collect::<Vec<_>>()
        };
        assert_eq!(programs(7), programs(7));
        assert_ne!(programs(7), programs(8));
    }
}

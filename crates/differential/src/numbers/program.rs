//! Random programs of arithmetic and comparisons on scalars.

use isa::ebpf::RawInsn;

/// Operations between the calls that make values unknown again.
const LENGTH: usize = 40;
const GROUPS: usize = 8;
const REGS: u64 = 4;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A register, `r6` to `r9`.
    fn reg(&mut self) -> u8 {
        6 + self.below(REGS) as u8
    }

    /// An immediate near a place where ranges wrap, or any.
    fn imm(&mut self) -> i32 {
        let near = self.below(9) as i32 - 4;
        match self.below(8) {
            0 => self.next() as i32,
            1 => i32::MIN.wrapping_add(near),
            2 => i32::MAX.wrapping_add(near),
            3 => (1i32 << self.below(31)).wrapping_add(near),
            4 => (-1i32 << self.below(31)).wrapping_add(near),
            5 => self.below(1 << 16) as i32,
            _ => near,
        }
    }
}

const fn insn(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> RawInsn {
    RawInsn {
        code,
        regs: dst | src << 4,
        off,
        imm,
    }
}

/// The program of a seed: groups of operations on four registers that start out unknown;
/// for odd seeds with comparisons that leave for an exit of their own. A decided
/// comparison may end the program early, so half of the programs have none.
pub(super) fn generate(seed: u64) -> Vec<RawInsn> {
    let mut random = Random(seed.wrapping_mul(0xa076_1d64_78bd_642f));
    let mut insns = Vec::new();
    let mut jumps = Vec::new();
    for _ in 0..GROUPS {
        for reg in 6..6 + REGS as u8 {
            insns.push(insn(0x85, 0, 0, 0, 7));
            insns.push(insn(0xbf, reg, 0, 0, 0));
            // Without the identity that it shares with r0.
            insns.push(insn(0xb7, 0, 0, 0, 0));
            if random.below(2) == 0 {
                let code = if random.below(2) == 0 { 0x57 } else { 0x54 };
                insns.push(insn(code, reg, 0, 0, random.imm()));
            }
        }
        for _ in 0..LENGTH {
            let kinds = if seed.is_multiple_of(2) { 12 } else { 14 };
            push_operation(&mut random, kinds, &mut insns, &mut jumps);
        }
    }
    insns.push(insn(0xb7, 0, 0, 0, 0));
    insns.push(insn(0x95, 0, 0, 0, 0));
    for jump in jumps {
        insns[jump].off = (insns.len() - jump - 1) as i16;
        insns.push(insn(0xb7, 0, 0, 0, 0));
        insns.push(insn(0x95, 0, 0, 0, 0));
    }
    insns
}

fn push_operation(
    random: &mut Random,
    kinds: u64,
    insns: &mut Vec<RawInsn>,
    jumps: &mut Vec<usize>,
) {
    const ALU: [u8; 9] = [0x00, 0x10, 0x20, 0x40, 0x50, 0xa0, 0x60, 0x70, 0xc0];
    const JUMPS: [u8; 11] = [
        0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0, 0xd0,
    ];
    let (dst, src, imm) = (random.reg(), random.reg(), random.imm());
    let narrow = random.below(2) == 0;
    let class = if narrow { 4 } else { 7 };
    match random.below(kinds) {
        0..=6 => {
            let op = ALU[random.below(9) as usize];
            let is_shift = op >= 0x60 && op != 0xa0;
            if is_shift {
                let bits = if narrow { 32 } else { 64 };
                insns.push(insn(class | op, dst, 0, 0, random.below(bits) as i32));
            } else if random.below(2) == 0 {
                insns.push(insn(class | op, dst, 0, 0, imm));
            } else {
                insns.push(insn(class | op | 8, dst, src, 0, 0));
            }
        }
        7 => insns.push(insn(class | 0x80, dst, 0, 0, 0)),
        8 => {
            let size = [16, 32, 64][random.below(3) as usize];
            let code = [0xd4, 0xdc, 0xd7][random.below(3) as usize];
            insns.push(insn(code, dst, 0, 0, size));
        }
        9 => {
            let bits = [8, 16, 32][random.below(if narrow { 2 } else { 3 }) as usize];
            insns.push(insn(class | 0xb8, dst, src, bits, 0));
        }
        10 => insns.push(insn(class | 0xb8, dst, src, 0, 0)),
        11 => {
            // A range by two comparisons, or a constant.
            insns.push(insn(class | 0xb0, dst, 0, 0, imm));
            insns.push(insn(0x0f, dst, src, 0, 0));
        }
        _ => {
            let op = JUMPS[random.below(11) as usize];
            let class = if narrow { 6 } else { 5 };
            jumps.push(insns.len());
            insns.push(if random.below(2) == 0 {
                insn(class | op, dst, 0, 0, imm)
            } else {
                insn(class | op | 8, dst, src, 0, 0)
            });
        }
    }
}

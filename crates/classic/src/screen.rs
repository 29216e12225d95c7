//! A fast path of the checker: a table that accepts most instructions.
//!
//! The checker first compares the fields of an instruction with the ranges that its opcode
//! allows, without a match on the opcode; instructions that do not fit are checked rule by
//! rule.
//!
//! Invariant: the table accepts no instruction that the rules reject; a test compares every
//! opcode. It may reject instructions that the rules accept.

use isa::classic::{AD_OFFSET, AluOp, Insn, MEMORY_WORDS, Operand, Size, SockFilter};
use spec::context::SECCOMP_DATA_SIZE;

/// Ranges of the fields of an opcode.
#[derive(Clone, Copy)]
struct Limits {
    /// The constant lies between `least` and `least + span`.
    least: u32,
    span: u32,
    /// All ones if `jt` and `jf` are jumps, otherwise zero.
    branch: u32,
    /// All ones if the constant is a jump, otherwise zero.
    goto: u32,
    /// Distance of a jump with offset 0; 0 for opcodes that do not jump, and larger than
    /// any program for unknown opcodes.
    step: u64,
    memory: MemoryUse,
}

/// Effect of an opcode on the set of written words of scratch memory.
#[derive(Clone, Copy)]
pub(crate) struct MemoryUse {
    /// All ones if it reads the word `k`, otherwise zero.
    pub(crate) read: u16,
    /// All ones if it writes the word `k`, otherwise zero.
    pub(crate) write: u16,
    /// True if it jumps.
    pub(crate) jumps: bool,
}

impl Limits {
    const fn of(insn: Insn) -> Limits {
        let mut limits = Limits {
            least: 0,
            span: u32::MAX,
            branch: 0,
            goto: 0,
            step: 0,
            memory: MemoryUse {
                read: 0,
                write: 0,
                jumps: matches!(insn, Insn::Goto(_) | Insn::Jump { .. }),
            },
        };
        match insn {
            Insn::Invalid(_) => limits.step = 1 << 62,
            Insn::Alu {
                op: AluOp::Div | AluOp::Mod,
                src: Operand::K(_),
            } => (limits.least, limits.span) = (1, u32::MAX - 1),
            Insn::Alu {
                op: AluOp::Lsh | AluOp::Rsh,
                src: Operand::K(_),
            } => limits.span = 31,
            Insn::Store(_) | Insn::StoreX(_) => {
                limits.span = MEMORY_WORDS - 1;
                limits.memory.write = u16::MAX;
            }
            Insn::LoadMem(_) | Insn::LoadXMem(_) => {
                limits.span = MEMORY_WORDS - 1;
                limits.memory.read = u16::MAX;
            }
            Insn::LoadAbs { .. } => limits.span = AD_OFFSET - 1,
            Insn::Goto(_) => (limits.goto, limits.step) = (u32::MAX, 1),
            Insn::Jump { .. } => (limits.branch, limits.step) = (u32::MAX, 1),
            _ => {}
        }
        limits
    }

    /// The farthest jump target of an instruction at `at`; `at` if it does not jump.
    #[inline(always)]
    fn farthest(&self, raw: SockFilter, at: usize) -> u64 {
        let skipped = u32::from(raw.jt.max(raw.jf)) & self.branch | raw.k & self.goto;
        at as u64 + self.step + u64::from(skipped)
    }
}

/// The limits of every opcode.
macro_rules! of_every_opcode {
    ($limits:ident) => {{
        let mut table = [$limits::of(Insn::RetA); 256];
        let mut code = 0;
        while code < table.len() {
            table[code] = $limits::of(Insn::decode(SockFilter::new(code as u16, 0, 0, 0)));
            code += 1;
        }
        table
    }};
}

static TABLE: [Limits; 256] = of_every_opcode!(Limits);

#[inline(always)]
fn limits(raw: SockFilter) -> &'static Limits {
    &TABLE[usize::from(raw.code as u8)]
}

/// True if an instruction obeys the rules that do not depend on other instructions.
#[inline(always)]
pub(crate) fn passes(raw: SockFilter, at: usize, len: usize) -> bool {
    let limits = limits(raw);
    (raw.code <= 0xff)
        & (raw.k.wrapping_sub(limits.least) <= limits.span)
        & (limits.farthest(raw, at) < len as u64)
}

/// Effect of a valid instruction on scratch memory.
#[inline(always)]
pub(crate) fn memory_use(raw: SockFilter) -> MemoryUse {
    limits(raw).memory
}

/// Targets of a valid jump, the same twice if it has only one.
#[inline(always)]
pub(crate) fn targets(raw: SockFilter, at: usize) -> [usize; 2] {
    let limits = limits(raw);
    let goto = raw.k & limits.goto;
    [raw.jt, raw.jf].map(|skip| at + 1 + (u32::from(skip) & limits.branch | goto) as usize)
}

/// Ranges that seccomp accepts of an opcode.
#[derive(Clone, Copy)]
struct SeccompLimits {
    /// True if seccomp accepts the opcode.
    taken: bool,
    greatest: u32,
    /// Bits that must be 0 in the constant.
    unaligned: u32,
}

impl SeccompLimits {
    const fn of(insn: Insn) -> SeccompLimits {
        let mut limits = SeccompLimits {
            taken: true,
            greatest: u32::MAX,
            unaligned: 0,
        };
        match insn {
            Insn::LoadAbs { size: Size::W, .. } => {
                limits.greatest = SECCOMP_DATA_SIZE as u32 - 4;
                limits.unaligned = 3;
            }
            Insn::LoadAbs { .. }
            | Insn::LoadInd { .. }
            | Insn::LoadXMsh(_)
            | Insn::Alu { op: AluOp::Mod, .. } => limits.taken = false,
            _ => {}
        }
        limits
    }
}

static SECCOMP: [SeccompLimits; 256] = of_every_opcode!(SeccompLimits);

/// True if a valid instruction obeys seccomp's rules.
#[inline(always)]
pub(crate) fn passes_seccomp(raw: SockFilter) -> bool {
    let limits = &SECCOMP[usize::from(raw.code as u8)];
    limits.taken & (raw.k <= limits.greatest) & (raw.k & limits.unaligned == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;
    use crate::check::{check_insn, check_seccomp_insn};

    /// Constants at the limits of every rule.
    fn constants() -> impl Iterator<Item = u32> {
        let borders = [0, 1, 3, 4, 15, 16, 31, 32, 60, 63, 64, AD_OFFSET, u32::MAX];
        borders
            .into_iter()
            .flat_map(|k: u32| [k.wrapping_sub(1), k, k.wrapping_add(1)])
    }

    #[test]
    fn accepted_instructions_obey_the_rules() {
        for code in (0..=0x1ff).chain([0x1000, 0xffff]) {
            for k in constants() {
                for (jt, jf) in [(0, 0), (1, 0), (0, 1), (8, 9), (255, 255)] {
                    for at in [0, 1, 8, 9] {
                        let raw = SockFilter::new(code, jt, jf, k);
                        let insn = Insn::decode(raw);
                        for rules in [Rules::Socket, Rules::Seccomp, Rules::Capture] {
                            let obeys = check_insn(insn, at, 10, rules).is_ok();
                            assert!(obeys || !passes(raw, at, 10), "{raw:?} at {at}");
                        }
                        if !matches!(insn, Insn::Invalid(_)) {
                            assert_eq!(passes_seccomp(raw), check_seccomp_insn(insn).is_ok());
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn common_instructions_are_accepted() {
        for (code, jt, jf, k) in [
            (0x28, 0, 0, 12),
            (0x15, 1, 2, 0x800),
            (0x06, 0, 0, 0),
            (0xb1, 0, 0, 14),
        ] {
            assert!(passes(SockFilter::new(code, jt, jf, k), 0, 10));
        }
    }
}

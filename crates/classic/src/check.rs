//! The checker of classic programs.
//!
//! The rules and their order are those of Linux 6.18 (`bpf_check_classic` and, for seccomp,
//! `seccomp_check_filter`), because the first violation is reported:
//!
//! 1. the length;
//! 2. each instruction from first to last, its opcode before its operands;
//! 3. the last instruction;
//! 4. scratch memory: a forward must-analysis of the words written on every path to an
//!    instruction (jumps only lead forward, so one pass suffices);
//! 5. for seccomp, each instruction again: opcodes and offsets that seccomp rejects.
//!
//! O(n) time; two bytes for each instruction of space.

use isa::classic::{
    AD_OFFSET, AluOp, Extension, Insn, MAX_INSNS, MEMORY_WORDS, Operand, Size, SockFilter,
};
use spec::context::SECCOMP_DATA_SIZE;
use std::fmt;
use std::sync::OnceLock;

use crate::screen;

/// The rules of a kind of filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rules {
    /// `SO_ATTACH_FILTER`.
    Socket,
    /// seccomp(2).
    Seccomp,
    /// A capture filter in user space: as for sockets, but of any length, with backward
    /// `ja` (libpcap's `protochain` emits them), zeroed scratch memory, and loads at any
    /// offset.
    Capture,
}

/// A program that the checker accepted.
#[derive(Clone, Debug)]
pub struct Checked {
    program: Vec<SockFilter>,
    /// Decoded on first use; conversion decodes by itself.
    insns: OnceLock<Vec<Insn>>,
    rules: Rules,
}

impl Checked {
    /// The instructions.
    pub fn insns(&self) -> &[Insn] {
        self.insns
            .get_or_init(|| self.program.iter().map(|&raw| Insn::decode(raw)).collect())
    }

    /// The encoded instructions.
    pub fn program(&self) -> &[SockFilter] {
        &self.program
    }

    /// The rules by which it was checked.
    pub fn rules(&self) -> Rules {
        self.rules
    }
}

/// Part of the kernel that rejects the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The checker (EINVAL).
    Checker,
    /// The conversion to eBPF: a converted jump is beyond 16 bits (EINVAL).
    Conversion,
    /// Memory accounting (ENOMEM).
    Memory,
}

/// The table of rules: the name, and the sentence that documents it and is shown to users.
macro_rules! rules {
    ($( $variant:ident => $sentence:literal; )*) => {
        /// The violated rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Rule { $( #[doc = $sentence] $variant, )* }

        impl Rule {
            /// All rules, in the order in which they are checked.
            pub const ALL: &[Rule] = &[ $( Rule::$variant ),* ];

            /// The rule as a sentence.
            pub const fn sentence(self) -> &'static str {
                match self { $( Rule::$variant => $sentence, )* }
            }

            /// Name of the rule.
            pub const fn name(self) -> &'static str {
                match self { $( Rule::$variant => stringify!($variant), )* }
            }
        }
    };
}

rules! {
    Empty => "A program has at least one instruction.";
    TooLong => "A program has at most 4096 instructions.";
    UnknownOpcode => "The opcode must be one of the classic instructions.";
    DivisionByZero => "Division and modulo by the constant 0 are not allowed.";
    ShiftTooFar => "A shift by a constant must be by less than 32 bits.";
    MemoryOutOfRange => "Scratch memory has 16 words, numbered 0 to 15.";
    JumpOutOfRange => "A jump must land on an instruction of the program.";
    UnknownExtension => "An absolute load at or above offset 0xfffff000 must name one of Linux's extensions.";
    NoReturn => "The last instruction must be a return.";
    MemoryNotWritten => "A word of scratch memory must be written on every path to the instruction that reads it.";
    SeccompOffset => "A seccomp filter loads aligned words inside struct seccomp_data, offsets 0 to 60.";
    SeccompOpcode => "A seccomp filter has no use for this instruction: it may load only whole words at constant offsets, and may not take a remainder.";
    ConvertedJumpTooFar => "A jump of the program that the kernel converts to must fit 16 bits; the program is too large around it.";
    MemoryLimit => "The converted program must fit the memory that the kernel grants to filters.";
}

/// Error number "invalid argument".
pub const EINVAL: i32 = spec::Errno::EINVAL.0;
/// Error number "out of memory".
pub const ENOMEM: i32 = spec::Errno::ENOMEM.0;

/// The reason why a program is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Part of the kernel that rejects the program.
    pub stage: Stage,
    /// The violated rule.
    pub rule: Rule,
    /// Index of the instruction, if one violates it.
    pub at: Option<usize>,
    /// The error number that the kernel returns (22 EINVAL, 12 ENOMEM).
    pub errno: i32,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}

impl std::error::Error for Rule {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(
                f,
                "instruction {at} breaks a rule: {}",
                self.rule.sentence()
            ),
            None => write!(f, "the program breaks a rule: {}", self.rule.sentence()),
        }
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    const fn checker(rule: Rule, at: Option<usize>) -> Refusal {
        Refusal {
            stage: Stage::Checker,
            rule,
            at,
            errno: EINVAL,
        }
    }
}

/// Checks a program.
pub fn check(program: &[SockFilter], rules: Rules) -> Result<Checked, Refusal> {
    if program.is_empty() {
        return Err(Refusal::checker(Rule::Empty, None));
    }
    if program.len() > MAX_INSNS && rules != Rules::Capture {
        return Err(Refusal::checker(Rule::TooLong, None));
    }
    // Words of scratch memory that are read.
    let mut read = 0;
    for (at, &raw) in program.iter().enumerate() {
        if !screen::passes(raw, at, program.len()) {
            check_insn(Insn::decode(raw), at, program.len(), rules)
                .map_err(|rule| Refusal::checker(rule, Some(at)))?;
        }
        read |= screen::memory_use(raw).read & word(raw);
    }
    let last = program.len() - 1;
    if !matches!(Insn::decode(program[last]), Insn::RetK(_) | Insn::RetA) {
        return Err(Refusal::checker(Rule::NoReturn, Some(last)));
    }
    let checked = Checked {
        program: program.to_vec(),
        insns: OnceLock::new(),
        rules,
    };
    if rules != Rules::Capture && read != 0 {
        check_memory_written(program, read)?;
    }
    if rules == Rules::Seccomp {
        for (at, &raw) in program.iter().enumerate() {
            if !screen::passes_seccomp(raw) {
                check_seccomp_insn(Insn::decode(raw))
                    .map_err(|rule| Refusal::checker(rule, Some(at)))?;
            }
        }
    }
    Ok(checked)
}

/// Checks the rules of an instruction that do not depend on other instructions.
pub(crate) fn check_insn(insn: Insn, at: usize, len: usize, rules: Rules) -> Result<(), Rule> {
    let inside = |skipped: usize| at + 1 + skipped < len;
    let (holds, rule) = match insn {
        Insn::Invalid(_) => (false, Rule::UnknownOpcode),
        Insn::Alu {
            op: AluOp::Div | AluOp::Mod,
            src: Operand::K(k),
        } => (k != 0, Rule::DivisionByZero),
        Insn::Alu {
            op: AluOp::Lsh | AluOp::Rsh,
            src: Operand::K(k),
        } => (k < 32, Rule::ShiftTooFar),
        Insn::LoadMem(k) | Insn::LoadXMem(k) | Insn::Store(k) | Insn::StoreX(k) => {
            (k < MEMORY_WORDS, Rule::MemoryOutOfRange)
        }
        Insn::Goto(k) if rules == Rules::Capture => {
            let target = at as i64 + 1 + i64::from(k as i32);
            ((0..len as i64).contains(&target), Rule::JumpOutOfRange)
        }
        Insn::Goto(k) => (inside(k as usize), Rule::JumpOutOfRange),
        Insn::Jump { jt, jf, .. } => (
            inside(usize::from(jt)) && inside(usize::from(jf)),
            Rule::JumpOutOfRange,
        ),
        Insn::LoadAbs { k, .. } if rules != Rules::Capture => (
            k < AD_OFFSET || Extension::from_offset(k).is_some(),
            Rule::UnknownExtension,
        ),
        _ => return Ok(()),
    };
    if holds { Ok(()) } else { Err(rule) }
}

/// Rejects a read of a word of scratch memory that is not written on every path. Equals
/// Linux's analysis also in unreachable code: after a jump every word counts as written
/// until a mask is merged, after a return the words written before it do. The program obeys
/// the other rules and reads the words `read`.
fn check_memory_written(program: &[SockFilter], read: u16) -> Result<(), Refusal> {
    const ALL: u16 = u16::MAX;
    let mut masks = vec![ALL; program.len()];
    let mut written = ALL;
    let mut jumped = false;
    masks[0] = 0;
    for (at, &raw) in program.iter().enumerate() {
        written &= masks[at];
        let uses = screen::memory_use(raw);
        let word = word(raw);
        if word & uses.read & !written != 0 {
            return Err(Refusal::checker(Rule::MemoryNotWritten, Some(at)));
        }
        written |= word & uses.write;
        if uses.jumps {
            // Words written before the first jump stay written.
            if !jumped && read & !written == 0 {
                return Ok(());
            }
            jumped = true;
            // The mask of fall-through edges.
            let targets = screen::targets(raw, at);
            for target in targets {
                masks[if target == at + 1 { at } else { target }] &= written;
            }
            written = if targets.contains(&(at + 1)) {
                written
            } else {
                ALL
            };
        }
    }
    Ok(())
}

/// The word of scratch memory in an instruction's operand.
#[inline(always)]
fn word(raw: SockFilter) -> u16 {
    1 << (raw.k % MEMORY_WORDS)
}

pub(crate) fn check_seccomp_insn(insn: Insn) -> Result<(), Rule> {
    match insn {
        Insn::LoadAbs { size: Size::W, k } => {
            if k.is_multiple_of(4) && (k as usize) < SECCOMP_DATA_SIZE {
                Ok(())
            } else {
                Err(Rule::SeccompOffset)
            }
        }
        Insn::LoadAbs { .. }
        | Insn::LoadInd { .. }
        | Insn::LoadXMsh(_)
        | Insn::Alu { op: AluOp::Mod, .. } => Err(Rule::SeccompOpcode),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RET: SockFilter = SockFilter::new(0x06, 0, 0, 0);

    fn insn(code: u16, k: u32) -> SockFilter {
        SockFilter::new(code, 0, 0, k)
    }

    fn broken(program: &[SockFilter], rules: Rules) -> Option<(Rule, Option<usize>)> {
        check(program, rules)
            .err()
            .map(|refusal| (refusal.rule, refusal.at))
    }

    #[test]
    fn each_rule_is_named_with_the_instruction_that_breaks_it() {
        let cases = [
            (vec![], Rule::Empty, None),
            (vec![RET; 4097], Rule::TooLong, None),
            (vec![insn(0xffff, 0), RET], Rule::UnknownOpcode, Some(0)),
            (vec![RET, insn(0x34, 0), RET], Rule::DivisionByZero, Some(1)),
            (vec![insn(0x64, 32), RET], Rule::ShiftTooFar, Some(0)),
            (vec![insn(0x02, 16), RET], Rule::MemoryOutOfRange, Some(0)),
            (vec![insn(0x05, 1), RET], Rule::JumpOutOfRange, Some(0)),
            (
                vec![insn(0x30, 0xffff_f001), RET],
                Rule::UnknownExtension,
                Some(0),
            ),
            (vec![RET, insn(0x00, 1)], Rule::NoReturn, Some(1)),
            (vec![insn(0x60, 3), RET], Rule::MemoryNotWritten, Some(0)),
        ];
        for (program, rule, at) in cases {
            assert_eq!(broken(&program, Rules::Socket), Some((rule, at)));
        }
        let seccomp = [
            (0x20, 2, Rule::SeccompOffset),
            (0x20, 64, Rule::SeccompOffset),
            (0x28, 0, Rule::SeccompOpcode),
            (0xb1, 0, Rule::SeccompOpcode),
            (0x9c, 0, Rule::SeccompOpcode),
        ];
        for (code, k, rule) in seccomp {
            let program = [insn(code, k), RET];
            assert_eq!(broken(&program, Rules::Seccomp), Some((rule, Some(0))));
            assert_eq!(broken(&program, Rules::Socket), None);
        }
    }

    #[test]
    fn the_first_violation_in_the_order_of_the_kernel_is_reported() {
        // Operands are checked before the end, the end before memory, and seccomp's rules
        // last.
        let program = [insn(0x28, 0), insn(0x60, 0), insn(0x64, 32)];
        let first = |n: usize| broken(&program[..n], Rules::Seccomp);
        assert_eq!(first(3), Some((Rule::ShiftTooFar, Some(2))));
        assert_eq!(first(2), Some((Rule::NoReturn, Some(1))));
        let program = [insn(0x28, 0), insn(0x60, 0), RET];
        assert_eq!(
            broken(&program, Rules::Seccomp),
            Some((Rule::MemoryNotWritten, Some(1)))
        );
    }

    #[test]
    fn capture_rules_allow_long_programs_backward_jumps_and_unwritten_memory() {
        let program = [
            insn(0x60, 3),
            insn(0x05, (-2i32) as u32),
            insn(0x20, 0xffff_ffff),
            RET,
        ];
        assert_eq!(broken(&program, Rules::Capture), None);
        assert_eq!(broken(&vec![RET; 5000], Rules::Capture), None);
        let too_far = [insn(0x05, (-2i32) as u32), RET];
        assert_eq!(
            broken(&too_far, Rules::Capture),
            Some((Rule::JumpOutOfRange, Some(0)))
        );
    }
}

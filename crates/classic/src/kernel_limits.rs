//! The kernel's limits on checked programs: the length of its own conversion to eBPF, and
//! the memory of the result.
//!
//! Beebox converts differently (see [`convert`](crate::convert())), so this is a model of
//! Linux's conversion: the number of eBPF instructions that Linux 6.18 emits for each
//! classic one, and the positions of jumps among them. It decides two errors that the
//! checker does not report:
//!
//! - EINVAL if a converted jump exceeds 16 bits. Linux converts in two passes, and the
//!   first one assumes address 0 for every target; so a jump at an address above 32,767 is
//!   rejected, whatever its distance, and the model rejects it too.
//! - ENOMEM if the converted program exceeds the memory limit. A socket charges it against
//!   `net.core.optmem_max`; seccomp counts the instructions of all filters of a task.
//!
//! The lengths were measured by bisecting `optmem_max` against the running kernel (the test
//! `lengths_of_conversion` in the testkit repeats it). They hold with
//! `net.core.bpf_jit_harden` 0 only: hardening makes programs longer. Cost: linear.

use crate::check::{EINVAL, ENOMEM};
use crate::{Checked, Refusal, Rule, Rules, Stage};
use isa::classic::{AluOp, Cond, Extension, Insn, Operand, Size};

/// Length of a converted program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConvertedLen(u32);

impl ConvertedLen {
    /// Number of instructions.
    pub const fn insns(self) -> u32 {
        self.0
    }

    /// Bytes that the kernel charges for the program.
    pub const fn bytes(self) -> u32 {
        PROGRAM_HEADER_BYTES + 8 * self.0
    }
}

/// Bytes of the kernel's `struct bpf_prog` before its instructions.
const PROGRAM_HEADER_BYTES: u32 = 96;

/// Default of `net.core.optmem_max` in bytes.
pub const DEFAULT_OPTMEM_MAX: u32 = 131_072;

/// Largest total length of a process's seccomp filters; each filter but the newest counts
/// for four more instructions.
pub const SECCOMP_MAX_INSNS: u32 = 32_768;

const SECCOMP_FILTER_PENALTY: u32 = 4;

/// The length of the kernel's conversion, or the reason why it fails. A capture filter is
/// treated as a socket filter.
pub fn check_conversion(checked: &Checked) -> Result<ConvertedLen, Refusal> {
    let insns = checked.insns();
    let rules = checked.rules();
    let mut next = prologue_len(insns, rules);
    let addresses: Vec<i64> = insns
        .iter()
        .map(|&insn| {
            let address = next;
            next += converted_len(insn, rules);
            i64::from(address)
        })
        .collect();
    let refusal = |at| Refusal {
        stage: Stage::Conversion,
        rule: Rule::ConvertedJumpTooFar,
        at: Some(at),
        errno: EINVAL,
    };
    for targets_known in [false, true] {
        for (at, &insn) in insns.iter().enumerate() {
            let fits = |jump: &ConvertedJump| {
                let target = if targets_known {
                    addresses.get(at + 1 + jump.skipped).copied()
                } else {
                    Some(0)
                };
                let from = addresses[at] + jump.position + 1;
                target.is_some_and(|target| i16::try_from(target - from).is_ok())
            };
            if !converted_jumps(insn).iter().flatten().all(fits) {
                return Err(refusal(at));
            }
        }
    }
    Ok(ConvertedLen(next))
}

/// Checks the memory limit of a socket that already has a charge.
pub fn check_socket_memory(
    len: ConvertedLen,
    optmem_max: u32,
    already_charged: u32,
) -> Result<(), Refusal> {
    // The charge of the filter that is being replaced still counts.
    if u64::from(len.bytes()) + u64::from(already_charged) < u64::from(optmem_max) {
        Ok(())
    } else {
        Err(MEMORY)
    }
}

/// Checks the limit of a process with these filters for one more.
pub fn check_seccomp_memory(
    len: ConvertedLen,
    installed: impl IntoIterator<Item = ConvertedLen>,
) -> Result<(), Refusal> {
    let before: u64 = installed
        .into_iter()
        .map(|filter| u64::from(filter.0 + SECCOMP_FILTER_PENALTY))
        .sum();
    if before + u64::from(len.0) <= u64::from(SECCOMP_MAX_INSNS) {
        Ok(())
    } else {
        Err(MEMORY)
    }
}

const MEMORY: Refusal = Refusal {
    stage: Stage::Memory,
    rule: Rule::MemoryLimit,
    at: None,
    errno: ENOMEM,
};

/// Length of the prologue: clear A and X, save the context; programs with packet loads also
/// save the packet pointers.
fn prologue_len(insns: &[Insn], rules: Rules) -> u32 {
    let loads_packet = |insn: &Insn| match *insn {
        Insn::LoadAbs { k, .. } => rules != Rules::Seccomp && Extension::from_offset(k).is_none(),
        Insn::LoadInd { .. } | Insn::LoadXMsh(_) => true,
        _ => false,
    };
    if insns.iter().any(loads_packet) { 7 } else { 3 }
}

/// Number of instructions that an instruction is converted to.
fn converted_len(insn: Insn, rules: Rules) -> u32 {
    match insn {
        Insn::LoadAbs { .. } if rules == Rules::Seccomp => 1,
        Insn::LoadAbs { size, k } => match Extension::from_offset(k) {
            Some(extension) => extension_len(extension),
            None => load_len(size, k),
        },
        Insn::LoadInd { k, .. } => LOAD_CALL_LEN + u32::from(k != 0),
        Insn::LoadXMsh(k) => load_len(Size::B, k) + 6,
        Insn::Alu {
            op: AluOp::Div | AluOp::Mod,
            src: Operand::X,
        } => 5,
        Insn::Jump { src, .. } => {
            let jumps = converted_jumps(insn).iter().flatten().count() as u32;
            u32::from(needs_wide_constant(src)) + jumps
        }
        Insn::RetK(_) => 2,
        Insn::LoadLen
        | Insn::LoadImm(_)
        | Insn::LoadMem(_)
        | Insn::LoadXImm(_)
        | Insn::LoadXMem(_)
        | Insn::LoadXLen
        | Insn::Store(_)
        | Insn::StoreX(_)
        | Insn::Alu { .. }
        | Insn::Neg
        | Insn::Goto(_)
        | Insn::RetA
        | Insn::Tax
        | Insn::Txa
        | Insn::Invalid(_) => 1,
    }
}

/// A load by a call: four arguments, the call, and an exit on failure.
const LOAD_CALL_LEN: u32 = 8;

/// A load at a constant offset; for offsets from the start of the packet, a read of the
/// linear data precedes the call.
fn load_len(size: Size, k: u32) -> u32 {
    if (k as i32) < 0 {
        return LOAD_CALL_LEN;
    }
    let distance = 1 + u32::from(k != 0);
    let read = if k <= i16::MAX as u32 { 1 } else { 3 };
    let swap = u32::from(size != Size::B);
    distance + 1 + read + swap + 1 + LOAD_CALL_LEN
}

fn extension_len(extension: Extension) -> u32 {
    match extension {
        Extension::Protocol | Extension::PktType | Extension::VlanTpid => 2,
        Extension::Ifindex | Extension::Hatype => 4,
        Extension::Mark
        | Extension::Queue
        | Extension::Rxhash
        | Extension::VlanTci
        | Extension::AluXorX => 1,
        Extension::VlanPresent => 3,
        Extension::Nlattr
        | Extension::NlattrNest
        | Extension::PayOffset
        | Extension::Cpu
        | Extension::Random => 4,
    }
}

/// A jump of the converted program.
struct ConvertedJump {
    /// Index among the instructions of its origin.
    position: i64,
    /// Classic instructions between its origin and its target.
    skipped: usize,
}

/// The jumps of a converted instruction: one if the other successor is the next instruction
/// and the condition has an inverse, otherwise two.
fn converted_jumps(insn: Insn) -> [Option<ConvertedJump>; 2] {
    let jump = |position, skipped| Some(ConvertedJump { position, skipped });
    match insn {
        Insn::Goto(k) => [jump(0, k as usize), None],
        Insn::Jump { cond, src, jt, jf } => {
            let first = i64::from(needs_wide_constant(src));
            let (jt, jf) = (usize::from(jt), usize::from(jf));
            if jf == 0 {
                [jump(first, jt), None]
            } else if jt == 0 && cond != Cond::Set {
                [jump(first, jf), None]
            } else {
                [jump(first, jt), jump(first + 1, jf)]
            }
        }
        _ => [None, None],
    }
}

/// True if the constant exceeds a signed immediate and needs a register.
fn needs_wide_constant(src: Operand) -> bool {
    matches!(src, Operand::K(k) if (k as i32) < 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use isa::classic::SockFilter;

    fn converted(program: &[Insn], rules: Rules) -> Result<ConvertedLen, Refusal> {
        let program: Vec<SockFilter> = program.iter().map(|insn| insn.encode()).collect();
        check_conversion(&check(&program, rules).expect("the test's program is valid"))
    }

    #[test]
    fn bytes_are_those_that_linux_6_18_charges() {
        let bytes = |program: &[Insn]| {
            let len = converted(program, Rules::Socket).expect("short jumps");
            len.bytes()
        };
        assert_eq!(bytes(&[Insn::RetA]), 128);
        assert_eq!(bytes(&[Insn::Tax, Insn::RetA]), 136);
        assert_eq!(bytes(&[Insn::RetK(1)]), 136);
        let load = |extension: Extension| Insn::LoadAbs {
            size: Size::W,
            k: extension.offset(),
        };
        let by_extension = Extension::ALL.iter().map(|&extension| {
            let program = [load(extension), Insn::RetA];
            (bytes(&program) - 128) / 8
        });
        let measured = [2, 2, 4, 4, 4, 1, 1, 4, 1, 4, 1, 1, 3, 4, 4, 2];
        assert_eq!(by_extension.collect::<Vec<_>>(), measured);
    }

    #[test]
    fn a_short_jump_at_a_high_address_is_refused() {
        let jump_behind = |loads: usize| {
            let mut program = vec![Insn::LoadXMsh(0); loads];
            program.extend([Insn::Goto(0), Insn::RetA]);
            converted(&program, Rules::Socket)
        };
        // 18 instructions for each load, 7 before them.
        assert!(jump_behind(1820).is_ok(), "the jump is at 32,767");
        let refusal = jump_behind(1821).expect_err("the jump is at 32,785");
        assert_eq!((refusal.stage, refusal.errno), (Stage::Conversion, EINVAL));
        assert_eq!(refusal.at, Some(1821));
    }

    #[test]
    fn memory_limits_are_exact() {
        let len = converted(&[Insn::RetA], Rules::Socket).expect("no jumps");
        assert!(check_socket_memory(len, 129, 0).is_ok());
        let refusal = check_socket_memory(len, 128, 0).expect_err("one byte too many");
        assert_eq!((refusal.stage, refusal.errno), (Stage::Memory, ENOMEM));
        assert!(check_socket_memory(len, 129, 1).is_err());
        let seccomp = converted(&[Insn::RetA], Rules::Seccomp).expect("no jumps");
        // 4 instructions, and 8 for each filter before: 32,768 in all.
        let before = |filters: usize| vec![seccomp; filters];
        assert!(check_seccomp_memory(seccomp, before(4095)).is_ok());
        assert!(check_seccomp_memory(seccomp, before(4096)).is_err());
    }
}

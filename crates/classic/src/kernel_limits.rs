//! What stands between a checked program and a running one in the kernel: its
//! own conversion to eBPF, and the memory that the result may take.
//!
//! Beebox converts differently (see [`convert`](crate::convert())), so this is a
//! model of the other conversion, precise to the instruction: how many eBPF
//! instructions Linux 6.18 makes of each classic one, and where the jumps among
//! them stand. It answers two questions that the checker cannot:
//!
//! - Do the converted jumps fit 16 bits? If not, EINVAL. Linux converts twice,
//!   and in the first round it takes every target to be address 0, as it does not
//!   know it yet; so a jump that stands beyond address 32,767 is refused however
//!   short it is, and this model refuses it too.
//! - Does the converted program fit the memory granted? If not, ENOMEM. A socket
//!   charges it against `net.core.optmem_max`; seccomp counts the instructions of
//!   all filters on the path.
//!
//! The lengths were measured by bisecting `optmem_max` against the running kernel
//! (the test `lengths_of_conversion` in the testkit repeats it). They hold with
//! `net.core.bpf_jit_harden` 0 only: hardening makes programs longer. O(n).

use crate::check::{EINVAL, ENOMEM};
use crate::{Checked, Refusal, Rule, Rules, Stage};
use isa::classic::{AluOp, Cond, Extension, Insn, Operand, Size};

/// Instructions of a converted program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConvertedLen(u32);

impl ConvertedLen {
    /// How many.
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

/// Where `net.core.optmem_max` stands unless somebody changed it.
pub const DEFAULT_OPTMEM_MAX: u32 = 131_072;

/// Converted instructions that all seccomp filters of a process may have
/// together, where each one but the newest counts for four more.
pub const SECCOMP_MAX_INSNS: u32 = 32_768;

const SECCOMP_FILTER_PENALTY: u32 = 4;

/// Would the kernel's conversion succeed, and how long would its result be? A
/// capture filter is taken as one for a socket.
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

/// Does a socket with this limit, which has been charged that much already, take
/// the program?
pub fn check_socket_memory(
    len: ConvertedLen,
    optmem_max: u32,
    already_charged: u32,
) -> Result<(), Refusal> {
    // The charge for the filter that is being replaced still counts.
    if u64::from(len.bytes()) + u64::from(already_charged) < u64::from(optmem_max) {
        Ok(())
    } else {
        Err(MEMORY)
    }
}

/// Does a process with these filters take one more?
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

/// Instructions ahead of the first converted one: clear A and X, keep the
/// context; programs that load from the packet also keep where it is.
fn prologue_len(insns: &[Insn], rules: Rules) -> u32 {
    let loads_packet = |insn: &Insn| match *insn {
        Insn::LoadAbs { k, .. } => rules != Rules::Seccomp && Extension::from_offset(k).is_none(),
        Insn::LoadInd { .. } | Insn::LoadXMsh(_) => true,
        _ => false,
    };
    if insns.iter().any(loads_packet) { 7 } else { 3 }
}

/// Instructions that one is converted to.
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

/// A load at a constant offset: at one from the start of the packet, an attempt
/// to read the linear part comes before the call.
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
    /// Which of the instructions that its origin is converted to.
    position: i64,
    /// Classic instructions between its origin and its target.
    skipped: usize,
}

/// The jumps that an instruction is converted to: one where the other way is the
/// next instruction and the condition has an opposite, else two.
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

/// eBPF compares with a signed constant; others go through a register.
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
    fn a_jump_far_behind_is_refused_however_short() {
        let jump_behind = |loads: usize| {
            let mut program = vec![Insn::LoadXMsh(0); loads];
            program.extend([Insn::Goto(0), Insn::RetA]);
            converted(&program, Rules::Socket)
        };
        // 18 instructions for each load, 7 before them.
        assert!(jump_behind(1820).is_ok(), "the jump stands at 32,767");
        let refusal = jump_behind(1821).expect_err("the jump stands at 32,785");
        assert_eq!((refusal.stage, refusal.errno), (Stage::Conversion, EINVAL));
        assert_eq!(refusal.at, Some(1821));
    }

    #[test]
    fn memory_ends_where_the_limit_stands() {
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

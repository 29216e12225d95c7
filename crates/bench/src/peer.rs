//! rbpf and DPDK's librte_bpf, given the programs that our own engines run.
//!
//! rbpf reads packets in host order, where eBPF's packet loads are in network
//! order, so a byte swap follows each load of more than a byte (any user of rbpf
//! would need one). It knows no 32-bit `goto`, so those become 16-bit ones, and
//! it demands eight readable bytes wherever it loads, so packets are given to it
//! with seven bytes of slack. librte_bpf knows no 32-bit jumps. Nothing else differs. A mistake here shows: engines
//! that give other answers are not timed.

use std::panic::{self, AssertUnwindSafe};

use isa::ebpf::{self, ByteOrder, Insn, Operand, RawInsn, Size, Width};
use rbpf::EbpfVmMbuff;

use crate::race::NO_ANSWER;

/// Reason why a program can't be given to rbpf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsupportedConstruct {
    /// A jump is too long once the swaps are in.
    LongJump,
    /// rbpf refuses it, in its words.
    Refused(String),
}

/// The program as rbpf takes it.
pub(crate) fn translate(program: &[Insn]) -> Result<Vec<Insn>, UnsupportedConstruct> {
    // Where each instruction stands in the translation.
    let mut place = Vec::with_capacity(program.len() + 1);
    let mut length = 0;
    for &insn in program {
        place.push(length);
        length += 1 + i64::from(swap_after(insn).is_some());
    }
    place.push(length);
    let moved = |from: usize, off: i64| -> Result<i16, UnsupportedConstruct> {
        let target = place[(from as i64 + 1 + off) as usize];
        i16::try_from(target - place[from] - 1).map_err(|_| UnsupportedConstruct::LongJump)
    };
    let mut translated = Vec::with_capacity(length as usize);
    for (at, &insn) in program.iter().enumerate() {
        translated.push(match insn {
            Insn::GotoLong { off } => Insn::Goto {
                off: moved(at, off.into())?,
            },
            Insn::Goto { off } => Insn::Goto {
                off: moved(at, off.into())?,
            },
            Insn::Jump {
                cond,
                width,
                dst,
                src,
                off,
            } => {
                let off = moved(at, off.into())?;
                Insn::Jump {
                    cond,
                    width,
                    dst,
                    src,
                    off,
                }
            }
            other => other,
        });
        translated.extend(swap_after(insn));
    }
    Ok(translated)
}

/// The swap that a load in host order needs.
fn swap_after(insn: Insn) -> Option<Insn> {
    match insn {
        Insn::PacketAbs { size, .. } | Insn::PacketInd { size, .. } if size != Size::B => {
            Some(Insn::Endian {
                order: ByteOrder::Big,
                size,
                dst: ebpf::Reg::R0,
            })
        }
        _ => None,
    }
}

/// The translation as bytes.
pub(crate) fn bytes(program: &[Insn]) -> Result<Vec<u8>, UnsupportedConstruct> {
    let translated = translate(program)?;
    let slots = ebpf::encode(&translated).map_err(|_| UnsupportedConstruct::LongJump)?;
    Ok(ebpf::to_bytes(&slots))
}

/// A machine of rbpf's with the program in it.
pub(crate) fn machine(program: &[u8]) -> Result<EbpfVmMbuff<'_>, UnsupportedConstruct> {
    EbpfVmMbuff::new(Some(program))
        .map_err(|error| UnsupportedConstruct::Refused(error.to_string()))
}

/// A machine with the program compiled; `None` where rbpf's compiler can't: its
/// buffer holds 4,096 bytes of native code, and it panics beyond them.
pub(crate) fn compiled(program: &[u8]) -> Result<Option<EbpfVmMbuff<'_>>, UnsupportedConstruct> {
    let mut machine = machine(program)?;
    let quiet = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let compiled = panic::catch_unwind(AssertUnwindSafe(|| machine.jit_compile()));
    panic::set_hook(quiet);
    match compiled {
        Ok(Ok(())) => Ok(Some(machine)),
        Ok(Err(error)) => Err(UnsupportedConstruct::Refused(error.to_string())),
        Err(_) => Ok(None),
    }
}

/// A converted classic program as librte_bpf takes it: with comparisons of whole
/// registers, which are the same here, as converted code computes in 32 bits and
/// compares unsigned numbers.
///
/// # Panics
///
/// Constants with the highest bit set, whose sign extension differs.
pub(crate) fn with_whole_jumps(program: &[Insn]) -> Vec<RawInsn> {
    let whole = program.iter().map(|&insn| match insn {
        Insn::Jump {
            cond,
            dst,
            src,
            off,
            ..
        } => {
            let is_same = !matches!(src, Operand::Imm(imm) if imm < 0);
            assert!(is_same, "{insn} has no counterpart of 64 bits");
            Insn::Jump {
                cond,
                width: Width::W64,
                dst,
                src,
                off,
            }
        }
        other => other,
    });
    let whole: Vec<Insn> = whole.collect();
    ebpf::encode(&whole).expect("no jump has become longer")
}

/// The program's result for these bytes.
#[inline(always)]
pub(crate) fn answer(machine: &EbpfVmMbuff<'_>, bytes: &[u8]) -> u32 {
    machine
        .execute_program(bytes, &[])
        .map_or(NO_ANSWER, |value| value as u32)
}

//! The plain interpreter: a switch over classic instructions, without conversion.
//!
//! It is the reference for every other engine, so it stays close to the definition. A
//! program is prepared once, to eight bytes per instruction with resolved opcodes. The loop
//! is generic over the input: packets under either [`Semantics`], and seccomp data. A load
//! and the comparison after it are one case of the switch.
//!
//! Every load is bounds-checked. Runs terminate: jumps lead forward, except backward `ja`
//! in programs checked by [`Rules::Capture`](crate::Rules), which are limited to
//! [`BACKWARD_JUMPS`] per run.

mod input;
mod op;
mod trace;

pub use trace::{Next, Step};

use std::fmt;
use std::hint::cold_path;

use isa::classic::MEMORY_WORDS;
use packet::Packet;
use spec::Random;

use crate::ancillary::Ancillary;
use crate::{Checked, SeccompData, Semantics};
use input::{Call, Captured, InKernel, Input};
use op::{Op, OpKind};
use trace::{Observer, Tracer, Unobserved};

/// Largest number of backward jumps of a run. libpcap's loops (`protochain`) need one per
/// header of at least eight bytes.
pub const BACKWARD_JUMPS: u64 = 1 << 16;

/// The error of a run that exceeded [`BACKWARD_JUMPS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JumpLimitExceeded;

impl fmt::Display for JumpLimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the filter exceeded the limit of {BACKWARD_JUMPS} backward jumps"
        )
    }
}

impl std::error::Error for JumpLimitExceeded {}

/// A program prepared for the plain interpreter.
#[derive(Clone, Debug)]
pub struct PlainProgram {
    ops: Vec<Op>,
    semantics: Semantics,
}

impl PlainProgram {
    /// Prepares a program for packets with the given semantics, or for seccomp data, where
    /// the semantics do not differ.
    pub fn prepare(checked: &Checked, semantics: Semantics) -> PlainProgram {
        let ops = checked.insns().iter().enumerate();
        PlainProgram {
            ops: op::fuse(
                ops.map(|(at, &insn)| Op::new(insn, at, semantics))
                    .collect(),
            ),
            semantics,
        }
    }

    /// Runs on a packet; returns the filter's result.
    #[inline]
    pub fn run(
        &self,
        packet: &Packet<'_>,
        random: &mut dyn Random,
    ) -> Result<u32, JumpLimitExceeded> {
        self.run_observed(packet, random, &mut Unobserved)
    }

    /// Runs on a packet and reports every executed instruction.
    pub fn trace(
        &self,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        report: &mut dyn FnMut(Step),
    ) -> Result<u32, JumpLimitExceeded> {
        let mut tracer = Tracer::new(report);
        let outcome = self.run_observed(packet, random, &mut tracer);
        tracer.finish(outcome)
    }

    /// Runs on seccomp data; returns the filter's result.
    pub fn run_seccomp(&self, data: &SeccompData) -> Result<u32, JumpLimitExceeded> {
        run(&self.ops, Call(data), &mut Unobserved)
    }

    /// Runs on seccomp data and reports every executed instruction.
    pub fn trace_seccomp(
        &self,
        data: &SeccompData,
        report: &mut dyn FnMut(Step),
    ) -> Result<u32, JumpLimitExceeded> {
        let mut tracer = Tracer::new(report);
        let outcome = run(&self.ops, Call(data), &mut tracer);
        tracer.finish(outcome)
    }

    #[inline]
    fn run_observed<O: Observer>(
        &self,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        observer: &mut O,
    ) -> Result<u32, JumpLimitExceeded> {
        let data = packet.data();
        match self.semantics {
            Semantics::Capture => run(
                &self.ops,
                Captured {
                    data,
                    wire_len: packet.wire_len(),
                },
                observer,
            ),
            Semantics::Kernel => run(
                &self.ops,
                InKernel {
                    data,
                    packet,
                    random,
                },
                observer,
            ),
        }
    }
}

/// The interpreter loop. Registers and scratch memory are zeroed, as in libpcap; Linux
/// rejects programs that read unwritten words.
#[inline(never)]
fn run<I: Input, O: Observer>(
    ops: &[Op],
    mut input: I,
    observer: &mut O,
) -> Result<u32, JumpLimitExceeded> {
    /// The value of a load, or the end of the run.
    macro_rules! load {
        ($bytes:expr) => {
            match $bytes {
                Some(bytes) => bytes,
                None => return Ok(0),
            }
        };
    }
    let (mut a, mut x) = (0u32, 0u32);
    let mut memory = [0u32; MEMORY_WORDS as usize];
    let word = |k: u32| (k % MEMORY_WORDS) as usize;
    let shift = |value: u32, by: u32, shifted: fn(u32, u32) -> u32| {
        if I::WIDE_SHIFTS_GIVE_ZERO && by > 31 {
            0
        } else {
            shifted(value, by)
        }
    };
    let mut backward_jumps = 0;
    let mut pc = 0;
    loop {
        observer.before(pc, a, x);
        let op = &ops[pc];
        pc += 1;
        let k = op.k;
        /// A branch instead of a conditional move, so that the next instruction is
        /// predicted.
        macro_rules! skip {
            ($field:ident if $holds:expr) => { skip!(op.$field if $holds) };
            ($op:ident.$field:ident if $holds:expr) => {
                if $holds {
                    cold_path();
                    pc += usize::from($op.$field);
                }
            };
            ($holds:expr) => {
                pc += usize::from(if $holds { op.jt } else { op.jf })
            };
        }
        /// A load of a type, and the comparison at the next instruction.
        macro_rules! load_then {
            ($type:ty, $bytes:expr, $next:ident.$field:ident if $holds:expr) => {{
                a = <$type>::from_be_bytes(load!($bytes)).into();
                observer.before(pc, a, x);
                let $next = &ops[pc];
                pc += 1;
                skip!($next.$field if $holds);
            }};
        }
        match op.code {
            OpKind::LoadW => a = u32::from_be_bytes(load!(input.bytes(k))),
            OpKind::LoadH => a = u16::from_be_bytes(load!(input.bytes(k))).into(),
            OpKind::LoadB => a = u8::from_be_bytes(load!(input.bytes(k))).into(),
            OpKind::LoadIndW => a = u32::from_be_bytes(load!(input.indirect(x, k))),
            OpKind::LoadIndH => a = u16::from_be_bytes(load!(input.indirect(x, k))).into(),
            OpKind::LoadIndB => a = u8::from_be_bytes(load!(input.indirect(x, k))).into(),
            OpKind::LoadNegW => a = u32::from_be_bytes(load!(input.header(k))),
            OpKind::LoadNegH => a = u16::from_be_bytes(load!(input.header(k))).into(),
            OpKind::LoadNegB => a = u8::from_be_bytes(load!(input.header(k))).into(),
            OpKind::MshNeg => x = ip_header_len(load!(input.header(k))),
            OpKind::Ancillary => match input.ancillary(k, a, x) {
                Ancillary::Value(value) => a = value,
                Ancillary::NoDevice => return Ok(a),
            },
            OpKind::LoadLen => a = input.len(),
            OpKind::LoadImm => a = k,
            OpKind::LoadMem => a = memory[word(k)],
            OpKind::LoadXImm => x = k,
            OpKind::LoadXMem => x = memory[word(k)],
            OpKind::LoadXLen => x = input.len(),
            OpKind::LoadXMsh => x = ip_header_len(load!(input.bytes(k))),
            OpKind::Store => memory[word(k)] = a,
            OpKind::StoreX => memory[word(k)] = x,
            OpKind::AddK => a = a.wrapping_add(k),
            OpKind::SubK => a = a.wrapping_sub(k),
            OpKind::MulK => a = a.wrapping_mul(k),
            OpKind::DivK => a = load!(a.checked_div(k)),
            OpKind::OrK => a |= k,
            OpKind::AndK => a &= k,
            OpKind::LshK => a = a.wrapping_shl(k),
            OpKind::RshK => a = a.wrapping_shr(k),
            OpKind::ModK => a = load!(a.checked_rem(k)),
            OpKind::XorK => a ^= k,
            OpKind::AddX => a = a.wrapping_add(x),
            OpKind::SubX => a = a.wrapping_sub(x),
            OpKind::MulX => a = a.wrapping_mul(x),
            OpKind::DivX => a = load!(a.checked_div(x)),
            OpKind::OrX => a |= x,
            OpKind::AndX => a &= x,
            OpKind::LshX => a = shift(a, x, u32::wrapping_shl),
            OpKind::RshX => a = shift(a, x, u32::wrapping_shr),
            OpKind::ModX => a = load!(a.checked_rem(x)),
            OpKind::XorX => a ^= x,
            OpKind::Neg => a = a.wrapping_neg(),
            OpKind::Forward => pc = k as usize,
            OpKind::Back => {
                backward_jumps += 1;
                if backward_jumps > BACKWARD_JUMPS {
                    return Err(JumpLimitExceeded);
                }
                pc = k as usize;
            }
            OpKind::EqK => skip!(jt if a == k),
            OpKind::GtK => skip!(jt if a > k),
            OpKind::GeK => skip!(jt if a >= k),
            OpKind::SetK => skip!(jt if a & k != 0),
            OpKind::NeK => skip!(jf if a != k),
            OpKind::LeK => skip!(jf if a <= k),
            OpKind::LtK => skip!(jf if a < k),
            OpKind::ClearK => skip!(jf if a & k == 0),
            OpKind::EqKElse => skip!(a == k),
            OpKind::GtKElse => skip!(a > k),
            OpKind::GeKElse => skip!(a >= k),
            OpKind::SetKElse => skip!(a & k != 0),
            OpKind::EqX => skip!(jt if a == x),
            OpKind::GtX => skip!(jt if a > x),
            OpKind::GeX => skip!(jt if a >= x),
            OpKind::SetX => skip!(jt if a & x != 0),
            OpKind::NeX => skip!(jf if a != x),
            OpKind::LeX => skip!(jf if a <= x),
            OpKind::LtX => skip!(jf if a < x),
            OpKind::ClearX => skip!(jf if a & x == 0),
            OpKind::EqXElse => skip!(a == x),
            OpKind::GtXElse => skip!(a > x),
            OpKind::GeXElse => skip!(a >= x),
            OpKind::SetXElse => skip!(a & x != 0),
            OpKind::LoadWEqK => load_then!(u32, input.bytes(k), next.jt if a == next.k),
            OpKind::LoadWNeK => load_then!(u32, input.bytes(k), next.jf if a != next.k),
            OpKind::LoadHEqK => load_then!(u16, input.bytes(k), next.jt if a == next.k),
            OpKind::LoadHNeK => load_then!(u16, input.bytes(k), next.jf if a != next.k),
            OpKind::LoadHSetK => load_then!(u16, input.bytes(k), next.jt if a & next.k != 0),
            OpKind::LoadBEqK => load_then!(u8, input.bytes(k), next.jt if a == next.k),
            OpKind::LoadBNeK => load_then!(u8, input.bytes(k), next.jf if a != next.k),
            OpKind::LoadIndHEqK => load_then!(u16, input.indirect(x, k), next.jt if a == next.k),
            OpKind::LoadIndHNeK => load_then!(u16, input.indirect(x, k), next.jf if a != next.k),
            OpKind::RetK => return Ok(k),
            OpKind::RetA => return Ok(a),
            OpKind::Tax => x = a,
            OpKind::Txa => a = x,
        }
    }
}

#[inline(always)]
fn ip_header_len([first]: [u8; 1]) -> u32 {
    u32::from(first & 15) * 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rules, check};
    use isa::classic::{Extension, NET_OFFSET, SockFilter};
    use packet::Metadata;
    use spec::SplitMix;

    fn prepared(program: &[(u16, u8, u8, u32)], semantics: Semantics) -> PlainProgram {
        let program: Vec<_> = program
            .iter()
            .map(|&(code, jt, jf, k)| SockFilter::new(code, jt, jf, k))
            .collect();
        let checked = check(&program, Rules::Capture).expect("the test's program is valid");
        PlainProgram::prepare(&checked, semantics)
    }

    fn run_on(program: &[(u16, u8, u8, u32)], semantics: Semantics, data: &[u8]) -> u32 {
        let packet = Packet::captured(data, 100, &Metadata::UNKNOWN);
        prepared(program, semantics)
            .run(&packet, &mut SplitMix::new(1))
            .expect("the test's program ends")
    }

    const RET_A: (u16, u8, u8, u32) = (0x16, 0, 0, 0);

    #[test]
    fn the_two_semantics_differ_as_documented() {
        let both = |program: &[(u16, u8, u8, u32)]| {
            [Semantics::Capture, Semantics::Kernel].map(|s| run_on(program, s, &[1, 2, 3, 4, 5]))
        };
        assert_eq!(both(&[(0x80, 0, 0, 0), RET_A]), [100, 5], "length");
        // X = -1, load at X + 2.
        let wraps = [(0x01, 0, 0, u32::MAX), (0x50, 0, 0, 2), RET_A];
        assert_eq!(both(&wraps), [0, 2], "wrapped indirect load");
        let shift = [(0x00, 0, 0, 8), (0x01, 0, 0, 33), (0x6c, 0, 0, 0), RET_A];
        assert_eq!(both(&shift), [0, 16], "wide shift");
        let network = [(0x30, 0, 0, NET_OFFSET + 3), RET_A];
        assert_eq!(both(&network), [0, 4], "network header");
        let no_device = [
            (0x00, 0, 0, 7),
            (0x20, 0, 0, Extension::Ifindex.offset()),
            (0x06, 0, 0, 9),
        ];
        assert_eq!(both(&no_device), [0, 7], "no device");
    }

    #[test]
    fn an_endless_run_is_stopped() {
        let endless = prepared(
            &[(0x05, 0, 0, u32::MAX), (0x06, 0, 0, 1)],
            Semantics::Capture,
        );
        let packet = Packet::whole(&[], &Metadata::UNKNOWN);
        let outcome = endless.run(&packet, &mut SplitMix::new(1));
        assert_eq!(outcome, Err(JumpLimitExceeded));
    }

    #[test]
    fn a_trace_shows_the_registers_after_each_instruction() {
        let program = prepared(
            &[
                (0x30, 0, 0, 1),
                (0x15, 1, 0, 2),
                (0x06, 0, 0, 0),
                (0x06, 0, 0, 8),
            ],
            Semantics::Capture,
        );
        let packet = Packet::whole(&[1, 2], &Metadata::UNKNOWN);
        let mut steps = Vec::new();
        let outcome = program.trace(&packet, &mut SplitMix::new(1), &mut |step| steps.push(step));
        assert_eq!(outcome, Ok(8));
        let path: Vec<_> = steps.iter().map(|s| (s.at, s.a, s.next)).collect();
        let expected = [
            (0, 2, Next::Insn(1)),
            (1, 2, Next::Insn(3)),
            (3, 2, Next::End(8)),
        ];
        assert_eq!(path, expected);
    }
}

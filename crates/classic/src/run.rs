//! The plain interpreter: a switch over classic instructions, without conversion.
//!
//! It is the engine `classic` of the benchmarks and the oracle for every other
//! engine, so it stays close to the definition. A program is prepared once, into
//! eight bytes an instruction whose opcode already says where a load goes, and
//! run with one loop that exists once for each kind of input: [`Semantics`]'s two
//! readings of a packet, and seccomp's data. A load and the comparison behind it are
//! one case of the switch: most of what filters do.
//!
//! A run reads nothing outside the packet: every load is one checked slice. It
//! ends: jumps lead forward, except backward `ja` in programs checked by
//! [`Rules::Capture`](crate::Rules), of which a run may take [`BACKWARD_JUMPS`].

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
use op::{Code, Op};
use trace::{Observer, Tracer, Unobserved};

/// Backward jumps that a run may take. libpcap's loops (`protochain`) take one a
/// header, and no header is shorter than eight bytes, so this is enough for half
/// a megabyte of headers.
pub const BACKWARD_JUMPS: u64 = 1 << 16;

/// The run took more than [`BACKWARD_JUMPS`] backward jumps and was stopped.
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

/// A checked program, prepared for the plain interpreter.
#[derive(Clone, Debug)]
pub struct Program {
    ops: Vec<Op>,
    semantics: Semantics,
}

impl Program {
    /// Prepares a program to run on packets with the given semantics, or on
    /// seccomp's data (which are the same with both).
    pub fn prepare(checked: &Checked, semantics: Semantics) -> Program {
        let ops = checked.insns().iter().enumerate();
        Program {
            ops: op::join(
                ops.map(|(at, &insn)| Op::new(insn, at, semantics))
                    .collect(),
            ),
            semantics,
        }
    }

    /// Runs on a packet: the value returned.
    #[inline]
    pub fn run(
        &self,
        packet: &Packet<'_>,
        random: &mut dyn Random,
    ) -> Result<u32, JumpLimitExceeded> {
        self.observed(packet, random, &mut Unobserved)
    }

    /// Runs on a packet and reports every executed instruction.
    pub fn trace(
        &self,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        report: &mut dyn FnMut(Step),
    ) -> Result<u32, JumpLimitExceeded> {
        let mut tracer = Tracer::new(report);
        let outcome = self.observed(packet, random, &mut tracer);
        tracer.finish(outcome)
    }

    /// Runs on a system call's data: the value returned.
    pub fn run_seccomp(&self, data: &SeccompData) -> Result<u32, JumpLimitExceeded> {
        run(&self.ops, Call(data), &mut Unobserved)
    }

    /// Runs on a system call's data and reports every executed instruction.
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
    fn observed<O: Observer>(
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

/// The loop. Registers and scratch memory start as zero: Linux never lets a
/// program read a word before it is written, libpcap clears them.
// Not inlined: the loop wants all registers, its callers need few. Where it comes to
// lie decides much: the same instructions took 18 % longer in a build that put the 35
// bytes from its head to the indirect jump across two lines of 64 bytes (Zen 4). Hence
// the cases of two instructions: what goes through the head half as often depends on
// its place half as much.
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
        /// A branch and not a selection: the processor then predicts where the
        /// run goes on, and need not wait for the offset to be loaded.
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
        /// A load of that type, and the next instruction, which compares it.
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
            Code::LoadW => a = u32::from_be_bytes(load!(input.bytes(k))),
            Code::LoadH => a = u16::from_be_bytes(load!(input.bytes(k))).into(),
            Code::LoadB => a = u8::from_be_bytes(load!(input.bytes(k))).into(),
            Code::LoadIndW => a = u32::from_be_bytes(load!(input.indirect(x, k))),
            Code::LoadIndH => a = u16::from_be_bytes(load!(input.indirect(x, k))).into(),
            Code::LoadIndB => a = u8::from_be_bytes(load!(input.indirect(x, k))).into(),
            Code::LoadNegW => a = u32::from_be_bytes(load!(input.header(k))),
            Code::LoadNegH => a = u16::from_be_bytes(load!(input.header(k))).into(),
            Code::LoadNegB => a = u8::from_be_bytes(load!(input.header(k))).into(),
            Code::MshNeg => x = ip_header_len(load!(input.header(k))),
            Code::Ancillary => match input.ancillary(k, a, x) {
                Ancillary::Value(value) => a = value,
                Ancillary::NoDevice => return Ok(a),
            },
            Code::LoadLen => a = input.len(),
            Code::LoadImm => a = k,
            Code::LoadMem => a = memory[word(k)],
            Code::LoadXImm => x = k,
            Code::LoadXMem => x = memory[word(k)],
            Code::LoadXLen => x = input.len(),
            Code::LoadXMsh => x = ip_header_len(load!(input.bytes(k))),
            Code::Store => memory[word(k)] = a,
            Code::StoreX => memory[word(k)] = x,
            Code::AddK => a = a.wrapping_add(k),
            Code::SubK => a = a.wrapping_sub(k),
            Code::MulK => a = a.wrapping_mul(k),
            Code::DivK => a = load!(a.checked_div(k)),
            Code::OrK => a |= k,
            Code::AndK => a &= k,
            Code::LshK => a = a.wrapping_shl(k),
            Code::RshK => a = a.wrapping_shr(k),
            Code::ModK => a = load!(a.checked_rem(k)),
            Code::XorK => a ^= k,
            Code::AddX => a = a.wrapping_add(x),
            Code::SubX => a = a.wrapping_sub(x),
            Code::MulX => a = a.wrapping_mul(x),
            Code::DivX => a = load!(a.checked_div(x)),
            Code::OrX => a |= x,
            Code::AndX => a &= x,
            Code::LshX => a = shift(a, x, u32::wrapping_shl),
            Code::RshX => a = shift(a, x, u32::wrapping_shr),
            Code::ModX => a = load!(a.checked_rem(x)),
            Code::XorX => a ^= x,
            Code::Neg => a = a.wrapping_neg(),
            Code::Forward => pc = k as usize,
            Code::Back => {
                backward_jumps += 1;
                if backward_jumps > BACKWARD_JUMPS {
                    return Err(JumpLimitExceeded);
                }
                pc = k as usize;
            }
            Code::EqK => skip!(jt if a == k),
            Code::GtK => skip!(jt if a > k),
            Code::GeK => skip!(jt if a >= k),
            Code::SetK => skip!(jt if a & k != 0),
            Code::NeK => skip!(jf if a != k),
            Code::LeK => skip!(jf if a <= k),
            Code::LtK => skip!(jf if a < k),
            Code::ClearK => skip!(jf if a & k == 0),
            Code::EqKElse => skip!(a == k),
            Code::GtKElse => skip!(a > k),
            Code::GeKElse => skip!(a >= k),
            Code::SetKElse => skip!(a & k != 0),
            Code::EqX => skip!(jt if a == x),
            Code::GtX => skip!(jt if a > x),
            Code::GeX => skip!(jt if a >= x),
            Code::SetX => skip!(jt if a & x != 0),
            Code::NeX => skip!(jf if a != x),
            Code::LeX => skip!(jf if a <= x),
            Code::LtX => skip!(jf if a < x),
            Code::ClearX => skip!(jf if a & x == 0),
            Code::EqXElse => skip!(a == x),
            Code::GtXElse => skip!(a > x),
            Code::GeXElse => skip!(a >= x),
            Code::SetXElse => skip!(a & x != 0),
            Code::LoadWEqK => load_then!(u32, input.bytes(k), next.jt if a == next.k),
            Code::LoadWNeK => load_then!(u32, input.bytes(k), next.jf if a != next.k),
            Code::LoadHEqK => load_then!(u16, input.bytes(k), next.jt if a == next.k),
            Code::LoadHNeK => load_then!(u16, input.bytes(k), next.jf if a != next.k),
            Code::LoadHSetK => load_then!(u16, input.bytes(k), next.jt if a & next.k != 0),
            Code::LoadBEqK => load_then!(u8, input.bytes(k), next.jt if a == next.k),
            Code::LoadBNeK => load_then!(u8, input.bytes(k), next.jf if a != next.k),
            Code::LoadIndHEqK => load_then!(u16, input.indirect(x, k), next.jt if a == next.k),
            Code::LoadIndHNeK => load_then!(u16, input.indirect(x, k), next.jf if a != next.k),
            Code::RetK => return Ok(k),
            Code::RetA => return Ok(a),
            Code::Tax => x = a,
            Code::Txa => a = x,
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

    fn prepared(program: &[(u16, u8, u8, u32)], semantics: Semantics) -> Program {
        let program: Vec<_> = program
            .iter()
            .map(|&(code, jt, jf, k)| SockFilter::new(code, jt, jf, k))
            .collect();
        let checked = check(&program, Rules::Capture).expect("the test's program is valid");
        Program::prepare(&checked, semantics)
    }

    fn run_on(program: &[(u16, u8, u8, u32)], semantics: Semantics, data: &[u8]) -> u32 {
        let packet = Packet::captured(data, 100, &Metadata::UNKNOWN);
        prepared(program, semantics)
            .run(&packet, &mut SplitMix::new(1))
            .expect("the test's program ends")
    }

    const RET_A: (u16, u8, u8, u32) = (0x16, 0, 0, 0);

    #[test]
    fn the_two_semantics_differ_where_they_are_said_to() {
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
    fn a_run_that_never_ends_is_stopped() {
        let endless = prepared(
            &[(0x05, 0, 0, u32::MAX), (0x06, 0, 0, 1)],
            Semantics::Capture,
        );
        let packet = Packet::whole(&[], &Metadata::UNKNOWN);
        let outcome = endless.run(&packet, &mut SplitMix::new(1));
        assert_eq!(outcome, Err(JumpLimitExceeded));
    }

    #[test]
    fn a_trace_shows_each_instruction_with_what_it_left() {
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

//! The plain interpreter: a switch over classic instructions, without conversion.
//!
//! It is the engine `classic` of the benchmarks and the oracle for every other
//! engine, so it stays close to the definition. A program is prepared once, into
//! eight bytes an instruction whose opcode already says where a load goes, and
//! run with one loop that exists once for each kind of input: [`Semantics`]'s two
//! readings of a packet, and seccomp's data.
//!
//! A run reads nothing outside the packet: every load is one checked slice. It
//! ends: jumps lead forward, except backward `ja` in programs checked by
//! [`Rules::Capture`](crate::Rules), of which a run may take [`BACKWARD_JUMPS`].

use crate::ancillary::{self, Ancillary};
use crate::{Checked, SeccompData, Semantics};
use isa::classic::{AD_OFFSET, AluOp, Cond, Extension, Insn, MEMORY_WORDS, Operand, Size};
use packet::Packet;
use spec::Random;
use spec::context::SECCOMP_DATA_SIZE;
use std::hint::cold_path;

/// Backward jumps that a run may take. libpcap's loops (`protochain`) take one a
/// header, and no header is shorter than eight bytes, so this is enough for half
/// a megabyte of headers.
pub const BACKWARD_JUMPS: u64 = 1 << 16;

/// A run that was stopped, because it jumped backwards more than
/// [`BACKWARD_JUMPS`] times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endless;

/// What one executed instruction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which instruction of the checked program.
    pub at: usize,
    /// The accumulator after it.
    pub a: u32,
    /// The index register after it.
    pub x: u32,
    /// Where the run went from there.
    pub next: Next,
}

/// Where a run goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To this instruction.
    Insn(usize),
    /// It ended with this value. An instruction that is not a return ends a run
    /// when a load fails or the divisor is zero (with 0), or when there is no
    /// device to ask (with the accumulator).
    End(u32),
    /// It was stopped: too many backward jumps.
    Stopped,
}

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
            ops: ops
                .map(|(at, &insn)| Op::new(insn, at, semantics))
                .collect(),
            semantics,
        }
    }

    /// Runs on a packet: the value returned.
    #[inline(never)]
    pub fn run(&self, packet: &Packet<'_>, random: &mut dyn Random) -> Result<u32, Endless> {
        self.observed(packet, random, &mut Unobserved)
    }

    /// Runs on a packet and reports every executed instruction.
    pub fn trace(
        &self,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        report: &mut dyn FnMut(Step),
    ) -> Result<u32, Endless> {
        let mut tracer = Tracer::new(report);
        let outcome = self.observed(packet, random, &mut tracer);
        tracer.finish(outcome)
    }

    /// Runs on a system call's data: the value returned.
    pub fn run_seccomp(&self, data: &SeccompData) -> Result<u32, Endless> {
        run(&self.ops, Call(data), &mut Unobserved)
    }

    /// Runs on a system call's data and reports every executed instruction.
    pub fn trace_seccomp(
        &self,
        data: &SeccompData,
        report: &mut dyn FnMut(Step),
    ) -> Result<u32, Endless> {
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
    ) -> Result<u32, Endless> {
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

/// One prepared instruction.
#[derive(Clone, Copy, Debug)]
struct Op {
    code: Code,
    jt: u8,
    jf: u8,
    /// The operand; for `ja` the target.
    k: u32,
}

/// Every case of the interpreter's switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[rustfmt::skip]
enum Code {
    LoadW, LoadH, LoadB,
    LoadIndW, LoadIndH, LoadIndB,
    /// A load that Linux reads as something else than an offset from the start.
    LoadNegW, LoadNegH, LoadNegB, MshNeg, Ancillary,
    LoadLen, LoadImm, LoadMem,
    LoadXImm, LoadXMem, LoadXLen, LoadXMsh,
    Store, StoreX,
    AddK, SubK, MulK, DivK, OrK, AndK, LshK, RshK, ModK, XorK,
    AddX, SubX, MulX, DivX, OrX, AndX, LshX, RshX, ModX, XorX,
    Neg,
    Forward, Back,
    EqK, GtK, GeK, SetK,
    EqX, GtX, GeX, SetX,
    RetK, RetA, Tax, Txa,
}

impl Op {
    fn new(insn: Insn, at: usize, semantics: Semantics) -> Op {
        let plain = |code, k| Op {
            code,
            jt: 0,
            jf: 0,
            k,
        };
        let reads_header = |k: u32| semantics == Semantics::Kernel && (k as i32) < 0;
        match insn {
            Insn::LoadAbs { k, .. }
                if semantics == Semantics::Kernel && Extension::from_offset(k).is_some() =>
            {
                plain(Code::Ancillary, k - AD_OFFSET)
            }
            Insn::LoadAbs { size, k } => plain(
                match (size, reads_header(k)) {
                    (Size::W, false) => Code::LoadW,
                    (Size::H, false) => Code::LoadH,
                    (Size::B, false) => Code::LoadB,
                    (Size::W, true) => Code::LoadNegW,
                    (Size::H, true) => Code::LoadNegH,
                    (Size::B, true) => Code::LoadNegB,
                },
                k,
            ),
            Insn::LoadInd { size, k } => plain(
                match size {
                    Size::W => Code::LoadIndW,
                    Size::H => Code::LoadIndH,
                    Size::B => Code::LoadIndB,
                },
                k,
            ),
            Insn::LoadLen => plain(Code::LoadLen, 0),
            Insn::LoadImm(k) => plain(Code::LoadImm, k),
            Insn::LoadMem(k) => plain(Code::LoadMem, k),
            Insn::LoadXImm(k) => plain(Code::LoadXImm, k),
            Insn::LoadXMem(k) => plain(Code::LoadXMem, k),
            Insn::LoadXLen => plain(Code::LoadXLen, 0),
            Insn::LoadXMsh(k) if reads_header(k) => plain(Code::MshNeg, k),
            Insn::LoadXMsh(k) => plain(Code::LoadXMsh, k),
            Insn::Store(k) => plain(Code::Store, k),
            Insn::StoreX(k) => plain(Code::StoreX, k),
            Insn::Alu { op, src } => {
                let (by_k, by_x) = match op {
                    AluOp::Add => (Code::AddK, Code::AddX),
                    AluOp::Sub => (Code::SubK, Code::SubX),
                    AluOp::Mul => (Code::MulK, Code::MulX),
                    AluOp::Div => (Code::DivK, Code::DivX),
                    AluOp::Or => (Code::OrK, Code::OrX),
                    AluOp::And => (Code::AndK, Code::AndX),
                    AluOp::Lsh => (Code::LshK, Code::LshX),
                    AluOp::Rsh => (Code::RshK, Code::RshX),
                    AluOp::Mod => (Code::ModK, Code::ModX),
                    AluOp::Xor => (Code::XorK, Code::XorX),
                };
                match src {
                    Operand::K(k) => plain(by_k, k),
                    Operand::X => plain(by_x, 0),
                }
            }
            Insn::Neg => plain(Code::Neg, 0),
            Insn::Goto(k) => {
                let target = (at as u32).wrapping_add(1).wrapping_add(k);
                let back = target as usize <= at;
                plain(if back { Code::Back } else { Code::Forward }, target)
            }
            Insn::Jump { cond, src, jt, jf } => {
                let (by_k, by_x) = match cond {
                    Cond::Eq => (Code::EqK, Code::EqX),
                    Cond::Gt => (Code::GtK, Code::GtX),
                    Cond::Ge => (Code::GeK, Code::GeX),
                    Cond::Set => (Code::SetK, Code::SetX),
                };
                let (code, k) = match src {
                    Operand::K(k) => (by_k, k),
                    Operand::X => (by_x, 0),
                };
                Op { code, jt, jf, k }
            }
            Insn::RetK(k) => plain(Code::RetK, k),
            // No checked program holds an invalid instruction.
            Insn::Invalid(_) => plain(Code::RetK, 0),
            Insn::RetA => plain(Code::RetA, 0),
            Insn::Tax => plain(Code::Tax, 0),
            Insn::Txa => plain(Code::Txa, 0),
        }
    }
}

/// What a program runs on. `None` ends the run with 0.
trait Input {
    /// Whether shift counts above 31 give 0 (or are masked).
    const WIDE_SHIFTS_GIVE_ZERO: bool;
    fn len(&self) -> u32;
    fn bytes<const N: usize>(&self, offset: u32) -> Option<[u8; N]>;
    fn indirect<const N: usize>(&self, x: u32, k: u32) -> Option<[u8; N]>;
    /// At a negative offset.
    fn header<const N: usize>(&self, offset: u32) -> Option<[u8; N]>;
    fn ancillary(&mut self, code: u32, a: u32, x: u32) -> Ancillary;
}

struct Captured<'a> {
    data: &'a [u8],
    wire_len: u32,
}

impl Input for Captured<'_> {
    const WIDE_SHIFTS_GIVE_ZERO: bool = true;

    #[inline(always)]
    fn len(&self) -> u32 {
        self.wire_len
    }

    #[inline(always)]
    fn bytes<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        read(self.data, u64::from(offset))
    }

    #[inline(always)]
    fn indirect<const N: usize>(&self, x: u32, k: u32) -> Option<[u8; N]> {
        read(self.data, u64::from(x) + u64::from(k))
    }

    fn header<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        self.bytes(offset)
    }

    fn ancillary(&mut self, _: u32, a: u32, _: u32) -> Ancillary {
        Ancillary::Value(a)
    }
}

struct InKernel<'a, 'p> {
    data: &'a [u8],
    packet: &'a Packet<'p>,
    random: &'a mut dyn Random,
}

impl Input for InKernel<'_, '_> {
    const WIDE_SHIFTS_GIVE_ZERO: bool = false;

    #[inline(always)]
    fn len(&self) -> u32 {
        self.data.len() as u32
    }

    #[inline(always)]
    fn bytes<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        read(self.data, u64::from(offset))
    }

    #[inline(always)]
    fn indirect<const N: usize>(&self, x: u32, k: u32) -> Option<[u8; N]> {
        let offset = x.wrapping_add(k);
        if (offset as i32) < 0 {
            self.header(offset)
        } else {
            self.bytes(offset)
        }
    }

    #[cold]
    fn header<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        self.packet
            .bytes_at_offset(offset as i32, N)?
            .try_into()
            .ok()
    }

    #[inline(never)]
    fn ancillary(&mut self, code: u32, a: u32, x: u32) -> Ancillary {
        match Extension::from_offset(AD_OFFSET + code) {
            Some(extension) => ancillary::load(extension, a, x, self.packet, self.random),
            // Only extensions are prepared as ancillary loads.
            None => Ancillary::Value(a),
        }
    }
}

/// seccomp's data: words in the machine's own order, which the loop takes for
/// network order as it does a packet's.
struct Call<'a>(&'a SeccompData);

impl Input for Call<'_> {
    const WIDE_SHIFTS_GIVE_ZERO: bool = false;

    fn len(&self) -> u32 {
        SECCOMP_DATA_SIZE as u32
    }

    #[inline(always)]
    fn bytes<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        self.0.word(offset)?.to_be_bytes()[..].try_into().ok()
    }

    fn indirect<const N: usize>(&self, _: u32, _: u32) -> Option<[u8; N]> {
        None
    }

    fn header<const N: usize>(&self, _: u32) -> Option<[u8; N]> {
        None
    }

    fn ancillary(&mut self, _: u32, a: u32, _: u32) -> Ancillary {
        Ancillary::Value(a)
    }
}

#[inline(always)]
fn read<const N: usize>(data: &[u8], offset: u64) -> Option<[u8; N]> {
    let start = offset as usize;
    data.get(start..start + N)?.try_into().ok()
}

/// Watches a run.
trait Observer {
    /// Called before each instruction with the registers as they stand.
    fn before(&mut self, at: usize, a: u32, x: u32);
}

struct Unobserved;

impl Observer for Unobserved {
    #[inline(always)]
    fn before(&mut self, _: usize, _: u32, _: u32) {}
}

/// Holds the last instruction back until it is known what it did.
struct Tracer<'a> {
    report: &'a mut dyn FnMut(Step),
    current: Option<usize>,
    registers: (u32, u32),
}

impl<'a> Tracer<'a> {
    fn new(report: &'a mut dyn FnMut(Step)) -> Tracer<'a> {
        Tracer {
            report,
            current: None,
            registers: (0, 0),
        }
    }

    fn finish(self, outcome: Result<u32, Endless>) -> Result<u32, Endless> {
        if let Some(at) = self.current {
            let (a, x) = self.registers;
            let next = match outcome {
                Ok(value) => Next::End(value),
                Err(Endless) => Next::Stopped,
            };
            (self.report)(Step { at, a, x, next });
        }
        outcome
    }
}

impl Observer for Tracer<'_> {
    fn before(&mut self, next: usize, a: u32, x: u32) {
        if let Some(at) = self.current {
            let next = Next::Insn(next);
            (self.report)(Step { at, a, x, next });
        }
        self.current = Some(next);
        self.registers = (a, x);
    }
}

/// The loop. Registers and scratch memory start as zero: Linux never lets a
/// program read a word before it is written, libpcap clears them.
// Not inlined: the loop wants all registers, its callers need few.
#[inline(never)]
fn run<I: Input, O: Observer>(ops: &[Op], mut input: I, observer: &mut O) -> Result<u32, Endless> {
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
        // A branch and not a selection: the processor then predicts where the
        // run goes on, and need not wait for the offset to be loaded.
        let branch = |holds: bool| {
            if holds {
                cold_path();
                pc + usize::from(op.jt)
            } else if op.jf == 0 {
                pc
            } else {
                cold_path();
                pc + usize::from(op.jf)
            }
        };
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
                    return Err(Endless);
                }
                pc = k as usize;
            }
            Code::EqK => pc = branch(a == k),
            Code::GtK => pc = branch(a > k),
            Code::GeK => pc = branch(a >= k),
            Code::SetK => pc = branch(a & k != 0),
            Code::EqX => pc = branch(a == x),
            Code::GtX => pc = branch(a > x),
            Code::GeX => pc = branch(a >= x),
            Code::SetX => pc = branch(a & x != 0),
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
    use isa::classic::{NET_OFFSET, SockFilter};
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
        assert_eq!(outcome, Err(Endless));
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

//! A program evaluated as it is defined, one instruction after the other, with
//! everything checked that a safe program upholds.
//!
//! It is the judge of what the shrinker leaves, and the engine that all others
//! are compared with: slow, without a trick, and its registers and its stack know
//! whether they were written. What an operation computes is `isa`'s.
//!
//! Addresses are made up: the memory and the stack of every frame have places of
//! their own, far from one another.

use super::reach::Reach;
use isa::ebpf::{Callee, Imm64, Insn, Operand, Reg, Size, eval};
use spec::Random;
use spec::calls::{GET_PRANDOM_U32, GET_SMP_PROCESSOR_ID};

/// Bytes of a frame's stack.
const STACK: usize = 512;
/// Frames that there may be at once.
const FRAMES: usize = 8;
/// How often `may_goto` falls through in each activation of a function.
pub const TURNS: u32 = 8 * 1024 * 1024;

/// What makes a program unsafe, or no program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A register was read that was not written.
    RegisterNotWritten(Reg),
    /// A byte of the stack was read that was not written.
    StackNotWritten(u64),
    /// An access to what is neither memory nor stack.
    OutOfBounds(u64),
    /// An atomic access that is not aligned.
    Misaligned(u64),
    /// A jump or a call out of the program, or into a 64-bit immediate.
    NowhereToGo,
    /// An instruction that this evaluator does not have.
    NotHere,
    /// More than `FRAMES` frames.
    TooDeep,
    /// More instructions than allowed.
    TooLong,
}

/// What a run may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Instructions.
    pub steps: u64,
    /// Where memory and stack are said to be: a program must not depend on it.
    pub place: Addresses,
}

/// Where memory and stack are said to be.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// The memory's first byte.
    pub memory: u64,
    /// A step below the first frame.
    pub stack: u64,
}

impl Addresses {
    /// Where they are when nobody says otherwise, elsewhere up there with other low
    /// bits, and where the checked engine has them: below what a 32-bit constant takes
    /// away.
    pub const ALL: [Addresses; 3] = [
        Addresses {
            memory: 0x7000_0000_1000,
            stack: 0x7100_0000_0000,
        },
        Addresses {
            memory: 0x8234_5678_a3c8,
            stack: 0x8100_0012_3458,
        },
        Addresses {
            memory: 0x1000_0eb0,
            stack: 0x0100_0a30,
        },
    ];
}

const CONTEXT: u64 = 0x7200_0000_0000;
const STACK_STEP: u64 = 0x10_0000;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            steps: 200_000_000,
            place: Addresses::ALL[0],
        }
    }
}

struct Frame {
    bytes: [u8; STACK],
    written: [u64; STACK / 64],
    saved: [u64; 4],
    saved_written: u16,
    back: usize,
    turns: u32,
}

impl Frame {
    fn new(back: usize) -> Frame {
        Frame {
            bytes: [0; STACK],
            written: [0; STACK / 64],
            saved: [0; 4],
            saved_written: 0,
            back,
            turns: TURNS,
        }
    }
}

struct Run<'a> {
    insns: &'a [Insn],
    memory: &'a mut [u8],
    place: Addresses,
    regs: [u64; Reg::COUNT],
    /// Which registers were written; bit `n` is register `n`.
    written: u16,
    frames: Vec<Frame>,
    random: &'a mut dyn Random,
    reach: &'a mut Reach,
    /// Where the packet begins and ends, for a program that finds that in its
    /// context.
    packet_ends: Option<[u64; 2]>,
}

/// The value of `r0` at the end, with the memory as the program left it. What
/// was executed is counted.
pub fn run(
    insns: &[Insn],
    memory: &mut [u8],
    random: &mut dyn Random,
    limits: Limits,
    reach: &mut Reach,
) -> Result<u64, Fault> {
    let start = [limits.place.memory, memory.len() as u64];
    Run::new(insns, memory, start, random, limits, reach).outcome(limits)
}

/// The same for an XDP program: `r1` is the address of a `struct xdp_md`, and the
/// memory is the packet.
pub fn run_xdp(
    insns: &[Insn],
    packet: &mut [u8],
    random: &mut dyn Random,
    limits: Limits,
    reach: &mut Reach,
) -> Result<u64, Fault> {
    let start = limits.place.memory;
    let ends = [start, start + packet.len() as u64];
    let mut run = Run::new(insns, packet, [CONTEXT, 0], random, limits, reach);
    run.written &= !(1 << 2);
    run.packet_ends = Some(ends);
    run.outcome(limits)
}

impl<'a> Run<'a> {
    fn new(
        insns: &'a [Insn],
        memory: &'a mut [u8],
        start: [u64; 2],
        random: &'a mut dyn Random,
        limits: Limits,
        reach: &'a mut Reach,
    ) -> Run<'a> {
        let mut regs = [0; Reg::COUNT];
        (regs[1], regs[2]) = (start[0], start[1]);
        Run {
            insns,
            memory,
            place: limits.place,
            regs,
            written: 1 << 1 | 1 << 2 | 1 << 10,
            frames: vec![Frame::new(0)],
            random,
            reach,
            packet_ends: None,
        }
    }

    fn outcome(mut self, limits: Limits) -> Result<u64, Fault> {
        self.set_frame_pointer();
        self.reach.begin(self.insns.len());
        let outcome = self.go(limits.steps);
        self.reach.end(self.insns);
        outcome
    }

    fn go(&mut self, steps: u64) -> Result<u64, Fault> {
        let mut at = 0usize;
        for _ in 0..steps {
            let insn = *self.insns.get(at).ok_or(Fault::NowhereToGo)?;
            let next = self.step(insn, at)?;
            self.reach.step(at, next);
            match next {
                Some(next) => at = next,
                None => return Ok(self.regs[0]),
            }
        }
        Err(Fault::TooLong)
    }

    /// Performs one instruction; answers where it goes on, or `None` at the end.
    fn step(&mut self, insn: Insn, at: usize) -> Result<Option<usize>, Fault> {
        let mut next = at + 1;
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let b = self.operand(src)?;
                // A move does not look at what was there.
                let a = match op {
                    isa::ebpf::AluOp::Mov => 0,
                    _ => self.get(dst)?,
                };
                self.set(dst, eval::alu(op, width, a, b));
            }
            Insn::Neg { width, dst } => {
                let a = self.get(dst)?;
                self.set(dst, eval::neg(width, a));
            }
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => {
                let value = self.get(src)?;
                self.set(dst, eval::mov_sx(width, from, value));
            }
            Insn::Endian { order, size, dst } => {
                let value = self.get(dst)?;
                self.set(dst, eval::endian(order, size, value));
            }
            Insn::Cast { dst, src, .. } => {
                let value = self.get(src)?;
                self.set(dst, value & 0xffff_ffff);
            }
            Insn::LoadImm64 {
                dst,
                imm: Imm64::Value(value),
            } => {
                self.set(dst, value.get());
                next += 1;
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                off,
            } => {
                let address = eval::address(self.get(base)?, off);
                let value = self.read(address, size)?;
                // The kernel makes whole addresses of the fields of a context.
                let is_field = address >= CONTEXT && self.packet_ends.is_some();
                let size = if is_field { Size::DW } else { size };
                self.set(dst, eval::loaded(size, signed, value));
            }
            Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => {
                let address = aligned(eval::address(self.get(base)?, off), size)?;
                let value = self.read(address, size)?;
                self.set(dst, eval::loaded(size, false, value));
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let address = eval::address(self.get(base)?, off);
                let value = self.operand(src)?;
                self.write(address, size, value)?;
            }
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => {
                let address = aligned(eval::address(self.get(base)?, off), size)?;
                let value = self.get(src)?;
                self.write(address, size, value)?;
            }
            Insn::Atomic {
                op,
                size,
                base,
                off,
                src,
            } => {
                let address = aligned(eval::address(self.get(base)?, off), size)?;
                let operand = self.get(src)?;
                let expected = if op.fetches_into_r0() {
                    self.get(Reg::R0)?
                } else {
                    0
                };
                let old = self.read(address, size)?;
                let new = eval::atomic(op, size, old, operand, expected);
                self.write(address, size, new)?;
                if op.fetches_into_src() {
                    self.set(src, old);
                } else if op.fetches_into_r0() {
                    self.set(Reg::R0, old);
                }
            }
            Insn::Jump {
                cond,
                width,
                dst,
                src,
                off,
            } => {
                let (a, b) = (self.get(dst)?, self.operand(src)?);
                if eval::compare(cond, width, a, b) {
                    next = jump(at, off.into())?;
                }
            }
            Insn::Goto { off } => next = jump(at, off.into())?,
            Insn::GotoLong { off } => next = jump(at, off)?,
            Insn::MayGoto { off } => {
                let frame = self.frame();
                match frame.turns.checked_sub(1) {
                    Some(left) => frame.turns = left,
                    None => next = jump(at, off.into())?,
                }
            }
            Insn::Call(Callee::Local(off)) => {
                self.enter(next)?;
                next = jump(at, off)?;
            }
            Insn::Call(Callee::Helper(number)) => {
                let value = match number {
                    GET_PRANDOM_U32 => u64::from(self.random.next_u32()),
                    GET_SMP_PROCESSOR_ID => 0,
                    _ => return Err(Fault::NotHere),
                };
                self.written &= !0x3e;
                self.set(Reg::R0, value);
            }
            Insn::Exit => {
                self.get(Reg::R0)?;
                return Ok(self.leave());
            }
            _ => return Err(Fault::NotHere),
        }
        Ok(Some(next))
    }

    fn get(&self, reg: Reg) -> Result<u64, Fault> {
        if self.written & 1 << reg.number() == 0 {
            return Err(Fault::RegisterNotWritten(reg));
        }
        Ok(self.regs[reg.index()])
    }

    fn set(&mut self, reg: Reg, value: u64) {
        self.written |= 1 << reg.number();
        self.regs[reg.index()] = value;
    }

    fn operand(&self, operand: Operand) -> Result<u64, Fault> {
        match operand {
            Operand::Reg(reg) => self.get(reg),
            Operand::Imm(imm) => Ok(eval::imm(imm)),
        }
    }

    fn frame(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn set_frame_pointer(&mut self) {
        let depth = self.frames.len() as u64;
        self.regs[10] = self.place.stack + depth * STACK_STEP + STACK as u64;
    }

    fn enter(&mut self, back: usize) -> Result<(), Fault> {
        if self.frames.len() == FRAMES {
            return Err(Fault::TooDeep);
        }
        let mut frame = Frame::new(back);
        frame.saved.copy_from_slice(&self.regs[6..10]);
        frame.saved_written = self.written & 0x3c0;
        self.frames.push(frame);
        self.reach.depth(self.frames.len());
        self.written &= !(0x3c0 | 1);
        self.set_frame_pointer();
        Ok(())
    }

    fn leave(&mut self) -> Option<usize> {
        let frame = self.frames.pop()?;
        if self.frames.is_empty() {
            return None;
        }
        self.regs[6..10].copy_from_slice(&frame.saved);
        self.written = 1 | 1 << 10 | frame.saved_written;
        self.set_frame_pointer();
        Some(frame.back)
    }

    fn read(&mut self, address: u64, size: Size) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        let len = size.bytes() as usize;
        if let Some(ends) = self.packet_ends
            && size == Size::W
            && let Some(number) = [CONTEXT, CONTEXT + 4].iter().position(|&at| at == address)
        {
            return Ok(ends[number]);
        }
        match self.locate(address, len)? {
            Place::Memory(at) => bytes[..len].copy_from_slice(&self.memory[at..at + len]),
            Place::Stack(frame, at) => {
                let frame = &self.frames[frame];
                for byte in at..at + len {
                    if frame.written[byte / 64] & 1 << (byte % 64) == 0 {
                        return Err(Fault::StackNotWritten(address));
                    }
                }
                bytes[..len].copy_from_slice(&frame.bytes[at..at + len]);
            }
        }
        Ok(u64::from_le_bytes(bytes))
    }

    fn write(&mut self, address: u64, size: Size, value: u64) -> Result<(), Fault> {
        let bytes = value.to_le_bytes();
        let len = size.bytes() as usize;
        match self.locate(address, len)? {
            Place::Memory(at) => self.memory[at..at + len].copy_from_slice(&bytes[..len]),
            Place::Stack(frame, at) => {
                let frame = &mut self.frames[frame];
                for byte in at..at + len {
                    frame.written[byte / 64] |= 1 << (byte % 64);
                }
                frame.bytes[at..at + len].copy_from_slice(&bytes[..len]);
            }
        }
        Ok(())
    }

    fn locate(&self, address: u64, len: usize) -> Result<Place, Fault> {
        let inside = |base: u64, size: usize| {
            let at = address.checked_sub(base)?;
            let end = at.checked_add(len as u64)?;
            (end <= size as u64).then_some(at as usize)
        };
        if let Some(at) = inside(self.place.memory, self.memory.len()) {
            return Ok(Place::Memory(at));
        }
        let frame = address.wrapping_sub(self.place.stack) / STACK_STEP;
        let base = self
            .place
            .stack
            .wrapping_add(frame.wrapping_mul(STACK_STEP));
        match inside(base, STACK) {
            Some(at) if frame >= 1 && frame <= self.frames.len() as u64 => {
                Ok(Place::Stack(frame as usize - 1, at))
            }
            _ => Err(Fault::OutOfBounds(address)),
        }
    }
}

enum Place {
    Memory(usize),
    Stack(usize, usize),
}

fn aligned(address: u64, size: Size) -> Result<u64, Fault> {
    if address.is_multiple_of(size.bytes().into()) {
        Ok(address)
    } else {
        Err(Fault::Misaligned(address))
    }
}

fn jump(at: usize, off: i32) -> Result<usize, Fault> {
    usize::try_from(at as i64 + 1 + i64::from(off)).map_err(|_| Fault::NowhereToGo)
}

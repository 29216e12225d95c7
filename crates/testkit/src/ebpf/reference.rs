//! The reference evaluator: executes a program instruction by instruction and checks every
//! property of a safe program.
//!
//! All engines are compared with it, and the shrinker keeps only programs that it accepts.
//! It is slow and simple; registers and stack slots record whether they were written.
//! Operations are evaluated by `isa`.
//!
//! Addresses are synthetic: the memory and the stack frame of each function are separate
//! regions. The provenance of each value records whether it depends on an address; a
//! program whose result depends on one is not safe.

use super::coverage::Coverage;
use super::origin::{ByteOrigin, Origin, Region};
use isa::ebpf::{AluOp, AtomicOp, Callee, Cond, Imm64, Insn, Operand, Reg, Size, Width, eval};
use packet::{Metadata, Packet};
use spec::Random;
use spec::calls::{GET_PRANDOM_U32, GET_SMP_PROCESSOR_ID};

/// Bytes of a frame's stack.
const STACK: usize = 512;
/// Frames that there may be at once.
const FRAMES: usize = 8;
/// Bytes from the beginning of a region within which addresses compare alike wherever
/// it lies: engines have some so low.
const NEAR: u64 = 1 << 20;
/// Fall-throughs of `may_goto` in each activation of a function.
pub const TURNS: u32 = spec::limits::LOOPS;

/// Fault of an unsafe or invalid program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A register was read that was not written.
    RegisterNotWritten(Reg),
    /// A byte of the stack was read that was not written.
    StackNotWritten(u64),
    /// An access to what is neither memory nor stack, or by what is not an address of
    /// that place.
    OutOfBounds(u64),
    /// Control flow or a result depends on the address of memory or stack.
    AddressDependent,
    /// An atomic access that is not aligned.
    Misaligned(u64),
    /// A jump or a call out of the program, or into a 64-bit immediate.
    JumpOutOfRange,
    /// An instruction that this evaluator does not have.
    Unsupported,
    /// More than `FRAMES` frames.
    TooDeep,
    /// More instructions than allowed.
    TooLong,
}

/// Limits and inputs of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Instructions.
    pub steps: u64,
    /// Addresses of memory and stack, on which a program must not depend.
    pub place: Addresses,
}

/// Addresses of memory and stack.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// The memory's first byte.
    pub memory: u64,
    /// A step below the first frame.
    pub stack: u64,
}

impl Default for Addresses {
    fn default() -> Addresses {
        Addresses {
            memory: 0x7000_0000_1000,
            stack: 0x7100_0000_0000,
        }
    }
}

const CONTEXT: u64 = 0x7200_0000_0000;
const STACK_STEP: u64 = 0x10_0000;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            steps: 200_000_000,
            place: Addresses::default(),
        }
    }
}

/// Value of a register.
#[derive(Clone, Copy)]
struct Value {
    bits: u64,
    origin: Origin,
}

impl Value {
    fn number(bits: u64) -> Value {
        let origin = Origin::Number;
        Value { bits, origin }
    }

    fn address(bits: u64, region: Region) -> Value {
        let origin = Origin::Address(region);
        Value { bits, origin }
    }

    /// Result of an untracked operation.
    fn map(self, operation: impl FnOnce(u64) -> u64) -> Value {
        Value {
            bits: operation(self.bits),
            origin: self.origin.changed(),
        }
    }
}

/// One frame of the stack.
struct Frame {
    region: Region,
    bytes: [u8; STACK],
    written: [u64; STACK / 64],
    origins: [ByteOrigin; STACK],
    saved: [Option<Value>; 4],
    back: usize,
    turns: u32,
}

impl Frame {
    fn new(region: Region, back: usize) -> Frame {
        Frame {
            region,
            bytes: [0; STACK],
            written: [0; STACK / 64],
            origins: [ByteOrigin::Number; STACK],
            saved: [None; 4],
            back,
            turns: TURNS,
        }
    }
}

struct Run<'a> {
    insns: &'a [Insn],
    memory: &'a mut [u8],
    /// The packet of packet loads and helpers: the initial memory.
    packet: Vec<u8>,
    /// Of each byte of the memory.
    origins: Vec<ByteOrigin>,
    place: Addresses,
    /// Written registers.
    regs: [Option<Value>; Reg::COUNT],
    frames: Vec<Frame>,
    /// Frames that there have been.
    activations: u32,
    random: &'a mut dyn Random,
    coverage: &'a mut Coverage,
    /// Start and end of the packet, for programs with an XDP context.
    packet_ends: Option<[u64; 2]>,
}

/// The value of `r0` at the end, with the memory as the program left it. What
/// was executed is counted.
pub fn run(
    insns: &[Insn],
    memory: &mut [u8],
    random: &mut dyn Random,
    limits: Limits,
    coverage: &mut Coverage,
) -> Result<u64, Fault> {
    let start = Value::address(limits.place.memory, Region::MEMORY);
    let len = Value::number(memory.len() as u64);
    let mut run = Run::new(insns, memory, random, limits, coverage);
    (run.regs[1], run.regs[2]) = (Some(start), Some(len));
    run.outcome(limits)
}

/// Runs an XDP program: `r1` is the address of a `struct xdp_md`, and the memory is the
/// packet.
pub fn run_xdp(
    insns: &[Insn],
    packet: &mut [u8],
    random: &mut dyn Random,
    limits: Limits,
    coverage: &mut Coverage,
) -> Result<u64, Fault> {
    let start = limits.place.memory;
    let ends = [start, start + packet.len() as u64];
    let mut run = Run::new(insns, packet, random, limits, coverage);
    run.regs[1] = Some(Value::address(CONTEXT, Region::CONTEXT));
    run.packet_ends = Some(ends);
    run.outcome(limits)
}

impl<'a> Run<'a> {
    fn new(
        insns: &'a [Insn],
        memory: &'a mut [u8],
        random: &'a mut dyn Random,
        limits: Limits,
        coverage: &'a mut Coverage,
    ) -> Run<'a> {
        let mut run = Run {
            insns,
            origins: vec![ByteOrigin::Number; memory.len()],
            packet: memory.to_vec(),
            memory,
            place: limits.place,
            regs: [None; Reg::COUNT],
            frames: Vec::new(),
            activations: 0,
            random,
            coverage,
            packet_ends: None,
        };
        run.push_frame(0);
        run
    }

    fn outcome(mut self, limits: Limits) -> Result<u64, Fault> {
        self.coverage.begin(self.insns.len());
        let outcome = self.go(limits.steps);
        self.coverage.end(self.insns);
        outcome
    }

    fn go(&mut self, steps: u64) -> Result<u64, Fault> {
        let mut at = 0usize;
        for _ in 0..steps {
            let insn = *self.insns.get(at).ok_or(Fault::JumpOutOfRange)?;
            let next = self.step(insn, at)?;
            self.coverage.step(at, next);
            match next {
                Some(next) => at = next,
                None => return self.ended(),
            }
        }
        Err(Fault::TooLong)
    }

    /// The answer, if it says nothing of where things lay.
    fn ended(&self) -> Result<u64, Fault> {
        let r0 = self.get(Reg::R0)?;
        let mut memory = self.origins.iter();
        if r0.origin.is_number() && memory.all(|byte| *byte == ByteOrigin::Number) {
            Ok(r0.bits)
        } else {
            Err(Fault::AddressDependent)
        }
    }

    /// Executes one instruction; returns the next slot, or `None` at the end.
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
                    AluOp::Mov => Value::number(0),
                    _ => self.get(dst)?,
                };
                let value = Value {
                    bits: eval::alu(op, width, a.bits, b.bits),
                    origin: Origin::of_alu(op, width, a.origin, b.origin),
                };
                self.set(dst, value);
            }
            Insn::Neg { width, dst } => {
                let a = self.get(dst)?;
                self.set(dst, a.map(|a| eval::neg(width, a)));
            }
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => {
                let value = self.get(src)?;
                self.set(dst, value.map(|value| eval::mov_sx(width, from, value)));
            }
            Insn::Endian { order, size, dst } => {
                let value = self.get(dst)?;
                self.set(dst, value.map(|value| eval::endian(order, size, value)));
            }
            Insn::Cast { dst, src, .. } => {
                let value = self.get(src)?;
                self.set(dst, value.map(|value| value & 0xffff_ffff));
            }
            Insn::LoadImm64 {
                dst,
                imm: Imm64::Value(value),
            } => {
                self.set(dst, Value::number(value.get()));
                next += 1;
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                off,
            } => {
                let address = self.address(base, off)?;
                let value = self.read(address, size)?;
                // What is no number has eight bytes: it stays as it is.
                let value = match value.origin {
                    Origin::Address(_) => value,
                    _ => value.map(|value| eval::loaded(size, signed, value)),
                };
                self.set(dst, value);
            }
            Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => {
                let address = aligned(self.address(base, off)?, size)?;
                let value = self.read(address, size)?;
                self.set(dst, value);
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let address = self.address(base, off)?;
                let value = self.operand(src)?;
                self.write(address, size, value)?;
            }
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => {
                let address = aligned(self.address(base, off)?, size)?;
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
                let address = aligned(self.address(base, off)?, size)?;
                self.atomic(op, size, address, src)?;
            }
            Insn::Jump {
                cond,
                width,
                dst,
                src,
                off,
            } => {
                let (a, b) = (self.get(dst)?, self.operand(src)?);
                if self.compare(cond, width, a, b)? {
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
                    _ if super::PACKET_HELPERS.contains(&number) => {
                        let [from, kind] = [self.number(Reg::R2)?, self.number(Reg::R3)?];
                        let packet = Packet::whole(&self.packet, &Metadata::UNKNOWN);
                        super::packet_helper(number, &packet, from, kind)
                    }
                    _ => return Err(Fault::Unsupported),
                };
                self.regs[1..=5].fill(None);
                self.set(Reg::R0, Value::number(value));
            }
            Insn::PacketAbs { size, imm } => {
                if !self.load_packet(imm, size) {
                    return Ok(self.leave());
                }
            }
            Insn::PacketInd { size, src, imm } => {
                let index = self.number(src)? as i32;
                if !self.load_packet(index.wrapping_add(imm), size) {
                    return Ok(self.leave());
                }
            }
            Insn::Exit => {
                self.get(Reg::R0)?;
                return Ok(self.leave());
            }
            _ => return Err(Fault::Unsupported),
        }
        Ok(Some(next))
    }

    /// Loads from the packet into `r0`; false if the bytes are not there, and then `r0` is
    /// what the function returns.
    fn load_packet(&mut self, offset: i32, size: Size) -> bool {
        let packet = Packet::whole(&self.packet, &Metadata::UNKNOWN);
        let bytes = packet.bytes_at_offset(offset, size.bytes() as usize);
        let big_endian = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |value, &byte| value << 8 | u64::from(byte))
        };
        let value = bytes.map(big_endian);
        self.regs[1..=5].fill(None);
        self.set(Reg::R0, Value::number(value.unwrap_or(0)));
        value.is_some()
    }

    /// The value of a register that holds a number.
    fn number(&self, reg: Reg) -> Result<u64, Fault> {
        let value = self.get(reg)?;
        match value.origin.is_number() {
            true => Ok(value.bits),
            false => Err(Fault::AddressDependent),
        }
    }

    fn get(&self, reg: Reg) -> Result<Value, Fault> {
        self.regs[reg.index()].ok_or(Fault::RegisterNotWritten(reg))
    }

    fn set(&mut self, reg: Reg, value: Value) {
        self.regs[reg.index()] = Some(value);
    }

    fn operand(&self, operand: Operand) -> Result<Value, Fault> {
        match operand {
            Operand::Reg(reg) => self.get(reg),
            Operand::Imm(imm) => Ok(Value::number(eval::imm(imm))),
        }
    }

    fn compare(&self, cond: Cond, width: Width, a: Value, b: Value) -> Result<bool, Fault> {
        let decides = Origin::decides(cond, width, a.origin, b.origin);
        if decides && self.is_near(a) && self.is_near(b) {
            Ok(eval::compare(cond, width, a.bits, b.bits))
        } else {
            Err(Fault::AddressDependent)
        }
    }

    /// True if an address is near its region, so that comparisons with other addresses do
    /// not depend on the layout.
    fn is_near(&self, value: Value) -> bool {
        let Origin::Address(region) = value.origin else {
            return true;
        };
        let base = match region {
            Region::MEMORY => Some(self.place.memory),
            Region::CONTEXT => Some(CONTEXT),
            _ => self.stack_of(region).map(|frame| self.stack_base(frame)),
        };
        base.is_some_and(|base| (value.bits.wrapping_sub(base) as i64).unsigned_abs() < NEAR)
    }

    fn atomic(&mut self, op: AtomicOp, size: Size, address: Value, src: Reg) -> Result<(), Fault> {
        let operand = self.get(src)?;
        let expected = if op.fetches_into_r0() {
            self.get(Reg::R0)?
        } else {
            Value::number(0)
        };
        let old = self.read(address, size)?;
        let number = [old, operand, expected]
            .iter()
            .all(|value| value.origin.is_number());
        let origin = match op {
            _ if number => Origin::Number,
            AtomicOp::Xchg => operand.origin,
            // A store that depends on the comparison.
            AtomicOp::CmpXchg => return Err(Fault::AddressDependent),
            _ => Origin::Mixed,
        };
        let bits = eval::atomic(op, size, old.bits, operand.bits, expected.bits);
        self.write(address, size, Value { bits, origin })?;
        if op.fetches_into_src() {
            self.set(src, old);
        } else if op.fetches_into_r0() {
            self.set(Reg::R0, old);
        }
        Ok(())
    }

    fn frame(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// The address of the lowest byte of a frame.
    fn stack_base(&self, frame: usize) -> u64 {
        self.place.stack + (frame as u64 + 1) * STACK_STEP
    }

    /// The frame with that stack, if it has not ended.
    fn stack_of(&self, region: Region) -> Option<usize> {
        self.frames.iter().position(|frame| frame.region == region)
    }

    fn set_frame_pointer(&mut self) {
        let region = self.frame().region;
        let base = self.stack_base(self.frames.len() - 1);
        self.set(Reg::R10, Value::address(base + STACK as u64, region));
    }

    fn push_frame(&mut self, back: usize) {
        let region = Region(Region::STACK.0 + self.activations);
        self.activations += 1;
        self.frames.push(Frame::new(region, back));
        self.set_frame_pointer();
    }

    fn enter(&mut self, back: usize) -> Result<(), Fault> {
        if self.frames.len() == FRAMES {
            return Err(Fault::TooDeep);
        }
        self.push_frame(back);
        self.coverage.depth(self.frames.len());
        let mut saved = [None; 4];
        saved.copy_from_slice(&self.regs[6..10]);
        self.frame().saved = saved;
        self.regs[6..10].fill(None);
        self.regs[0] = None;
        Ok(())
    }

    fn leave(&mut self) -> Option<usize> {
        let frame = self.frames.pop()?;
        if self.frames.is_empty() {
            return None;
        }
        self.regs[1..=5].fill(None);
        self.regs[6..10].copy_from_slice(&frame.saved);
        self.set_frame_pointer();
        Some(frame.back)
    }

    /// An address of an access, with the region that it may reach.
    fn address(&self, base: Reg, off: i16) -> Result<Value, Fault> {
        let base = self.get(base)?;
        Ok(Value {
            bits: eval::address(base.bits, off),
            origin: base.origin,
        })
    }

    fn read(&mut self, address: Value, size: Size) -> Result<Value, Fault> {
        let mut bytes = [0; 8];
        let len = size.bytes() as usize;
        let origin = match self.locate(address, len)? {
            Place::Memory(at) => {
                bytes[..len].copy_from_slice(&self.memory[at..at + len]);
                ByteOrigin::loaded(&self.origins[at..at + len])
            }
            Place::Stack(frame, at) => {
                let frame = &self.frames[frame];
                for byte in at..at + len {
                    if frame.written[byte / 64] & 1 << (byte % 64) == 0 {
                        return Err(Fault::StackNotWritten(address.bits));
                    }
                }
                bytes[..len].copy_from_slice(&frame.bytes[at..at + len]);
                ByteOrigin::loaded(&frame.origins[at..at + len])
            }
            // The kernel makes whole addresses of the fields of a context.
            Place::Context(field) if size == Size::W => {
                let ends = self.packet_ends.ok_or(Fault::OutOfBounds(address.bits))?;
                return Ok(Value::address(ends[field], Region::MEMORY));
            }
            Place::Context(_) => return Err(Fault::OutOfBounds(address.bits)),
        };
        let bits = u64::from_le_bytes(bytes);
        Ok(Value { bits, origin })
    }

    fn write(&mut self, address: Value, size: Size, value: Value) -> Result<(), Fault> {
        let bytes = value.bits.to_le_bytes();
        let len = size.bytes() as usize;
        let (written, origins) = match self.locate(address, len)? {
            Place::Memory(at) => (
                &mut self.memory[at..at + len],
                &mut self.origins[at..at + len],
            ),
            Place::Stack(frame, at) => {
                let frame = &mut self.frames[frame];
                for byte in at..at + len {
                    frame.written[byte / 64] |= 1 << (byte % 64);
                }
                (
                    &mut frame.bytes[at..at + len],
                    &mut frame.origins[at..at + len],
                )
            }
            Place::Context(_) => return Err(Fault::OutOfBounds(address.bits)),
        };
        written.copy_from_slice(&bytes[..len]);
        for (number, origin) in origins.iter_mut().enumerate() {
            *origin = ByteOrigin::stored(value.origin, number, len);
        }
        Ok(())
    }

    fn locate(&self, address: Value, len: usize) -> Result<Place, Fault> {
        let out = Fault::OutOfBounds(address.bits);
        let inside = |base: u64, size: usize| {
            let at = address.bits.checked_sub(base)?;
            let end = at.checked_add(len as u64)?;
            (end <= size as u64).then_some(at as usize)
        };
        let Origin::Address(region) = address.origin else {
            return Err(out);
        };
        let place = match region {
            Region::MEMORY => inside(self.place.memory, self.memory.len()).map(Place::Memory),
            Region::CONTEXT => {
                let field = [CONTEXT, CONTEXT + 4]
                    .iter()
                    .position(|&at| at == address.bits);
                field.map(Place::Context)
            }
            _ => self.stack_of(region).and_then(|frame| {
                let at = inside(self.stack_base(frame), STACK)?;
                Some(Place::Stack(frame, at))
            }),
        };
        place.ok_or(out)
    }
}

enum Place {
    Memory(usize),
    /// Of the frame, the byte.
    Stack(usize, usize),
    /// The field of that number.
    Context(usize),
}

fn aligned(address: Value, size: Size) -> Result<Value, Fault> {
    if address.bits.is_multiple_of(size.bytes().into()) {
        Ok(address)
    } else {
        Err(Fault::Misaligned(address.bits))
    }
}

fn jump(at: usize, off: i32) -> Result<usize, Fault> {
    usize::try_from(at as i64 + 1 + i64::from(off)).map_err(|_| Fault::JumpOutOfRange)
}

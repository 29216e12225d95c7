//! The interpreter loop: one match on the row of the instruction.
//!
//! Fuel is taken from the budget in slices, and the deadline is checked once per slice.
//! Frequent rows have an arm each (`frequent.rs`); all others share one arm for each kind
//! of instruction.

mod arena;
mod call_stack;
mod demand;
mod watch;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use isa::ebpf::{
    AddrSpaceCast, AluOp, AtomicOp, Callee, Cond, Imm64, Insn, Reg, RegSet, Size, Width, eval,
};

use super::frequent::{Frequent, REGISTERS, frequent_rows, perform};
use super::memory::{Access, AccessError, BadAccess, Memory};
use super::observe::{Moment, Observer};
use super::tail::TAIL_CALL;
use super::trap::{Missing, Reason, Trap};
use super::{
    CheckedContext, CheckedProgram, DEADLINE_INTERVAL, Entry, Finish, Limits, MAY_GOTO_LOOPS,
};
use call_stack::Frames;

const R0: usize = Reg::R0.index();
const FP: usize = Reg::R10.index();

/// The registers `r0` to `r10`.
#[inline(always)]
fn named(regs: &[u64; REGISTERS]) -> &[u64; Reg::COUNT] {
    regs.first_chunk().expect("16 are more than 11")
}

#[inline(always)]
fn named_mut(regs: &mut [u64; REGISTERS]) -> &mut [u64; Reg::COUNT] {
    regs.first_chunk_mut().expect("16 are more than 11")
}

/// Reason for the end of the loop.
enum Stop {
    Returned(u64),
    /// The run goes on at this slot of another program, [`Run::current`].
    Switched(usize),
    Trapped(Box<Reason>),
}

impl<R: Into<Reason>> From<R> for Stop {
    #[cold]
    fn from(reason: R) -> Stop {
        Stop::Trapped(Box::new(reason.into()))
    }
}

/// State of a run.
struct Run<'r, 'w, 'm, 'c> {
    /// The program that the run began with.
    first: &'r CheckedProgram,
    /// The program that a tail call went on with, if it is not the one that the run began
    /// with.
    current: Option<Arc<CheckedProgram>>,
    limits: &'r Limits,
    cx: CheckedContext<'w, 'm, 'c>,
    regs: [u64; REGISTERS],
    /// Index of the region that each base register accessed last.
    hints: [usize; REGISTERS],
    /// The registers that hold pointers into the arena.
    pointers: RegSet,
    frames: Frames<'m>,
    /// Number of frames below the first one of the executing program.
    base: usize,
    /// Remaining fall-throughs of `may_goto` in this activation.
    may_goto: u64,
    /// Tail calls made.
    tail_calls: u32,
    /// Remaining instructions, without the loop's current slice.
    budget: u64,
    /// The last instruction, when the loop has ended.
    at: usize,
    /// See [`Finish::unwritten_reads`].
    unwritten_reads: BTreeMap<u32, usize>,
}

/// Runs a program from a slot on.
pub(super) fn execute_from<O: Observer>(
    program: &CheckedProgram,
    start: usize,
    cx: CheckedContext<'_, '_, '_>,
    entry: Entry,
    limits: &Limits,
    observer: &mut O,
) -> Finish {
    let mut regs = [0; REGISTERS];
    regs[1..=5].copy_from_slice(&entry.arguments);
    cx.memory.drop_frames();
    cx.memory.watch_new_frames(program.watches_stack);
    regs[FP] = cx.memory.push_frame(limits.stack_fill);
    let mut run = Run {
        hints: [cx.memory.newest(); REGISTERS],
        pointers: RegSet::EMPTY,
        current: None,
        first: program,
        limits,
        cx,
        regs,
        frames: Frames::new(limits),
        base: 0,
        may_goto: MAY_GOTO_LOOPS,
        tail_calls: 0,
        budget: limits.instructions,
        at: 0,
        unwritten_reads: BTreeMap::new(),
    };
    let mut pc = start;
    let outcome = loop {
        let current = run.current.clone();
        let program = current.as_deref().unwrap_or(program);
        run.cx.memory.program = program.number;
        run.cx.memory.watch_new_frames(program.watches_stack);
        match run.go(program, pc, observer) {
            Stop::Returned(value) => break Ok(value),
            Stop::Switched(next) => pc = next,
            Stop::Trapped(mut reason) => {
                if run.probe_found_nothing(program, &mut reason) {
                    pc = run.at + 1;
                    continue;
                }
                break Err(Trap {
                    at: run.at,
                    insn: program.insns.get(run.at).copied(),
                    reason: *reason,
                });
            }
        }
    };
    run.cx.memory.free_held_lock();
    run.cx.memory.end_model();
    Finish {
        outcome,
        executed: limits.instructions - run.budget,
        registers: *named(&run.regs),
        entered: run.current,
        unwritten_reads: run.unwritten_reads,
    }
}

impl<'m> Run<'_, '_, 'm, '_> {
    /// Performs instructions of a program from a slot on, until the run ends or goes on in
    /// another program.
    // By itself, so that the processor meets the same loop whatever sets runs up.
    #[inline(never)]
    fn go<O: Observer>(
        &mut self,
        program: &CheckedProgram,
        mut pc: usize,
        observer: &mut O,
    ) -> Stop {
        let steps = program.steps.as_slice();
        let mut at = 0;
        let mut fuel = 0;
        // The instruction before, for observers of leaps.
        const NOWHERE: usize = usize::MAX - 1;
        let mut last = NOWHERE;
        let stop = 'run: loop {
            /// The value of a result; an error ends the run.
            macro_rules! attempt {
                ($result:expr) => {
                    match $result {
                        Ok(value) => value,
                        Err(fault) => break 'run Stop::from(fault),
                    }
                };
            }
            let Some(step) = steps.get(pc) else {
                break Stop::from(Reason::LeftProgram(pc as i64));
            };
            at = pc;
            if fuel == 0 {
                fuel = attempt!(self.refill());
            }
            if O::SEES_EACH {
                observer.adjust(at, named_mut(&mut self.regs));
                let moment = Moment {
                    at,
                    program,
                    registers: named(&self.regs),
                    depth: self.frames.depth(),
                    memory: self.cx.memory,
                };
                if let ControlFlow::Break(()) = observer.before(&moment) {
                    break Stop::from(Reason::Stopped);
                }
            }
            if O::SEES_LEAPS {
                if at != last + 1 {
                    match last {
                        NOWHERE => observer.enter(program.number, at),
                        from => observer.leap(from, at),
                    }
                }
                last = at;
            }
            pc += 1;
            frequent_rows!(perform!(
                self,
                step,
                pc,
                attempt,
                match self.execute_insn(program, at) {
                    Ok(next) => pc = next,
                    Err(stop) => break stop,
                }
            ));
            fuel -= 1;
        };
        if O::SEES_LEAPS && last != NOWHERE {
            observer.leave(last);
        }
        self.at = at;
        // An exit or a tail call counts as executed, an instruction that trapped does not.
        self.budget += fuel - u64::from(!matches!(stop, Stop::Trapped(_)));
        stop
    }

    /// Has a load get 0 if its memory need not be there and is not, and one of given memory its bits if all
    /// that the program uses were given; false for any other instruction.
    #[cold]
    fn probe_found_nothing(&mut self, program: &CheckedProgram, reason: &mut Reason) -> bool {
        let probes = program.probing.binary_search(&self.at).is_ok();
        match (program.insns.get(self.at), &*reason) {
            (Some(Insn::Load { dst, .. }), Reason::Memory(access))
                if probes && access.error != AccessError::NotGiven =>
            {
                self.regs[dst.index()] = 0;
                true
            }
            (Some(Insn::Load { size, dst, .. }), Reason::Memory(access))
                if access.error == AccessError::NotGiven =>
            {
                let len = size.bytes();
                let bits = demand::demanded(&program.insns, self.at, len, &self.regs);
                match self
                    .cx
                    .memory
                    .load_given(access.address, len as usize, bits)
                {
                    Ok(value) => {
                        self.regs[dst.index()] = value;
                        true
                    }
                    // It names what is used.
                    Err(access) => {
                        *reason = Reason::Memory(access);
                        false
                    }
                }
            }
            _ => false,
        }
    }

    /// Executes an instruction of any kind; returns the slot of the next one.
    #[inline(never)]
    fn execute_insn(&mut self, program: &CheckedProgram, at: usize) -> Result<usize, Stop> {
        if program.watches_stack {
            self.note_access(program.insns[at]);
        }
        let next = match self.cx.memory.arena() {
            Some(arena) if program.has_casts => self.execute_with_arena(program, at, arena),
            _ => self.execute_plain(program, program.insns[at], at),
        };
        if program.watches_stack {
            self.note_unwritten_read(program, at);
        }
        next
    }

    /// Executes an instruction that uses no pointer into an arena.
    #[inline(always)]
    fn execute_plain(
        &mut self,
        program: &CheckedProgram,
        insn: Insn,
        at: usize,
    ) -> Result<usize, Stop> {
        let pc = at + 1;
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let src = eval::operand(src, named(&self.regs));
                self.regs[dst.index()] = eval::alu(op, width, self.regs[dst.index()], src);
            }
            Insn::Neg { width, dst } => {
                self.regs[dst.index()] = eval::neg(width, self.regs[dst.index()]);
            }
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => self.regs[dst.index()] = eval::mov_sx(width, from, self.regs[src.index()]),
            Insn::Endian { order, size, dst } => {
                self.regs[dst.index()] = eval::endian(order, size, self.regs[dst.index()]);
            }
            Insn::Cast { cast, dst, src } => {
                self.regs[dst.index()] = cast_address(cast, self.regs[src.index()])?;
            }
            Insn::LoadImm64 { dst, imm } => {
                self.regs[dst.index()] = wide(imm, at, self.cx.memory)?;
                return Ok(pc + 1);
            }
            Insn::Imm64High => return Err(Reason::SecondSlot.into()),
            Insn::Load {
                size,
                signed,
                dst,
                base,
                off,
            } => {
                let value = self.load(size, base.index(), off)?;
                self.regs[dst.index()] = match signed {
                    true => eval::loaded(size, signed, value),
                    false => value,
                };
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let value = eval::operand(src, named(&self.regs));
                self.store(size, base.index(), off, value)?;
            }
            Insn::Atomic {
                op,
                size,
                base,
                off,
                src,
            } => self.atomic(op, size, base, off, src)?,
            Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => {
                self.check_aligned(size, base, off, Access::Read)?;
                let value = self.load(size, base.index(), off)?;
                self.regs[dst.index()] = eval::loaded(size, false, value);
            }
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => {
                self.check_aligned(size, base, off, Access::Write)?;
                self.store(size, base.index(), off, self.regs[src.index()])?;
            }
            Insn::Jump {
                cond,
                width,
                dst,
                src,
                off,
            } => {
                let src = eval::operand(src, named(&self.regs));
                if eval::compare(cond, width, self.regs[dst.index()], src) {
                    return Ok(after(pc, off.into()));
                }
            }
            Insn::Goto { off } => return Ok(after(pc, off.into())),
            Insn::GotoLong { off } => return Ok(after(pc, off)),
            Insn::GotoReg { dst } => {
                if !self.limits.indirect_jumps {
                    return Err(Missing::IndirectJumps.into());
                }
                return self.function(program, self.regs[dst.index()]);
            }
            Insn::MayGoto { off } => {
                if self.may_goto == 0 {
                    return Ok(after(pc, off.into()));
                }
                self.may_goto -= 1;
            }
            Insn::PacketAbs { size, imm } => return self.load_packet(size, imm, pc),
            Insn::PacketInd { size, src, imm } => {
                let index = self.regs[src.index()] as i32;
                return self.load_packet(size, index.wrapping_add(imm), pc);
            }
            Insn::Call(Callee::Helper(TAIL_CALL)) if self.cx.calls.tail_targets.is_some() => {
                self.tail_call()?;
            }
            Insn::Call(Callee::Helper(number)) => return self.call(number, pc),
            Insn::Call(Callee::Local(off)) => return self.enter(after(pc, off), pc),
            Insn::Call(callee @ Callee::Kfunc { .. }) => {
                return Err(Missing::Function(callee).into());
            }
            Insn::CallReg { dst } => match i32::try_from(self.regs[dst.index()]) {
                Ok(number) => return self.call(number, pc),
                Err(_) => return self.enter(self.function(program, self.regs[dst.index()])?, pc),
            },
            Insn::Exit => return self.leave(),
            Insn::Invalid { fault, .. } => return Err(Reason::Invalid(fault).into()),
        }
        Ok(pc)
    }

    /// A number in memory, with zeros above it, or an address of the packet out of the context.
    #[inline(always)]
    fn load(&mut self, size: Size, base: usize, off: i16) -> Result<u64, BadAccess> {
        let address = eval::address(self.regs[base], off);
        let (memory, hint) = (&*self.cx.memory, &mut self.hints[base]);
        match size {
            Size::B => memory.load::<1>(hint, address),
            Size::H => memory.load::<2>(hint, address),
            Size::W => memory.load::<4>(hint, address),
            Size::DW => memory.load::<8>(hint, address),
        }
    }

    #[inline(always)]
    fn store(&mut self, size: Size, base: usize, off: i16, value: u64) -> Result<(), BadAccess> {
        let address = eval::address(self.regs[base], off);
        let (memory, hint) = (&mut *self.cx.memory, &mut self.hints[base]);
        match size {
            Size::B => memory.store::<1>(hint, address, value),
            Size::H => memory.store::<2>(hint, address, value),
            Size::W => memory.store::<4>(hint, address, value),
            Size::DW => memory.store::<8>(hint, address, value),
        }
    }

    fn atomic(
        &mut self,
        op: AtomicOp,
        size: Size,
        base: Reg,
        off: i16,
        src: Reg,
    ) -> Result<(), BadAccess> {
        let address = eval::address(self.regs[base.index()], off);
        let (value, expected) = (self.regs[src.index()], self.regs[R0]);
        let new = |old| eval::atomic(op, size, old, value, expected);
        let old = match size {
            Size::DW => self.cx.memory.update::<8>(address, new)?,
            // Atomics of one and two bytes have no encoding.
            Size::B | Size::H | Size::W => self.cx.memory.update::<4>(address, new)?,
        };
        if op.fetches_into_src() {
            self.regs[src.index()] = old;
        } else if op.fetches_into_r0() {
            self.regs[R0] = old;
        }
        Ok(())
    }

    /// Checks that an atomic access is aligned to its size.
    fn check_aligned(
        &self,
        size: Size,
        base: Reg,
        off: i16,
        access: Access,
    ) -> Result<(), BadAccess> {
        let address = eval::address(self.regs[base.index()], off);
        match address.is_multiple_of(size.bytes().into()) {
            true => Ok(()),
            false => Err(self.cx.memory.fault(address, size.bytes().into(), access)),
        }
    }

    /// The slot of the function at an address.
    fn function(&self, program: &CheckedProgram, address: u64) -> Result<usize, Stop> {
        let slot = self.cx.memory.slot_at(address);
        slot.filter(|slot| *slot < program.insns.len())
            .ok_or_else(|| Reason::NoFunction(address).into())
    }

    /// A legacy packet load into `r0`; returns the slot to go on at. One outside the packet
    /// returns 0 from its function.
    fn load_packet(&mut self, size: Size, offset: i32, next: usize) -> Result<usize, Stop> {
        let len = size.bytes() as usize;
        let bytes = match self.cx.packet {
            Some(packet) => packet.bytes_at_offset(offset, len),
            None => {
                let packet = self.cx.memory.packet_buffer().ok_or(Missing::Packet)?;
                packet.bytes_at_offset(offset, len)
            }
        };
        let append = |value, byte: &u8| value << 8 | u64::from(*byte);
        match bytes.map(|bytes| bytes.iter().fold(0, append)) {
            Some(value) => {
                self.regs[R0] = value;
                Ok(next)
            }
            None => {
                self.regs[R0] = 0;
                self.leave()
            }
        }
    }

    /// Takes the next slice of the budget and checks the deadline.
    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> Result<u64, Reason> {
        if self.budget == 0 {
            return Err(Reason::InstructionLimit(self.limits.instructions));
        }
        let slice = match self.limits.deadline {
            Some(deadline) if Instant::now() >= deadline => {
                return Err(Reason::Deadline(deadline));
            }
            Some(_) => DEADLINE_INTERVAL.min(self.budget),
            None => self.budget,
        };
        self.budget -= slice;
        Ok(slice)
    }
}

impl Memory<'_> {
    /// The slot of which an address of a function is: a slot has 8 of them, from
    /// [`Addresses::functions`](vm::Addresses) on.
    pub(super) fn slot_at(&self, address: u64) -> Option<usize> {
        let offset = address
            .checked_sub(self.addresses().functions)
            .filter(|offset| offset % 8 == 0);
        offset.map(|offset| (offset / 8) as usize)
    }
}

/// The slot at an offset from the next one; the fetch checks that it is in the program.
#[inline(always)]
fn after(pc: usize, off: i32) -> usize {
    pc.wrapping_add_signed(off as isize)
}

/// The value of a 64-bit immediate at slot `at`.
fn wide(imm: Imm64, at: usize, memory: &Memory<'_>) -> Result<u64, Reason> {
    let map = |index: i32| u32::try_from(index).ok();
    let address = match imm {
        Imm64::Value(value) => Some(value.get()),
        Imm64::Func { off, .. } => {
            let slot = after(at + 1, off) as u64;
            let functions = memory.addresses().functions;
            Some(functions.wrapping_add(slot.wrapping_mul(8)))
        }
        Imm64::MapIndex { index, high: 0 } => map(index).and_then(|map| memory.map_pointer(map)),
        Imm64::MapIndexValue { index, offset } => map(index)
            .and_then(|map| memory.direct_value(map))
            .map(|value| value.wrapping_add(offset as u32 as u64)),
        Imm64::MapIndex { .. }
        | Imm64::MapFd { .. }
        | Imm64::MapValue { .. }
        | Imm64::BtfId { .. } => None,
    };
    address.ok_or_else(|| Missing::Object(imm).into())
}

/// The result of an address-space cast.
fn cast_address(cast: AddrSpaceCast, address: u64) -> Result<u64, Reason> {
    match (cast.from, cast.to) {
        (0, 1) | (1, 0) => Ok(eval::zero_extend(Size::W, address)),
        _ => Err(Missing::AddressSpace(cast).into()),
    }
}

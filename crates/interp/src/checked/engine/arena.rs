//! Accesses to an arena.
//!
//! Linux decides by the verifier's types which instructions access the arena; the rest of the
//! memory has other addresses there. Here a run keeps track of the registers and the places
//! in stack frames that hold pointers into the arena, by the verifier's rules: a cast to
//! address space 0 makes one, copies are ones, what is computed from one is one, in 32 bits, a
//! spilled one is one again when it is loaded. Their values are those of Linux: the lower half
//! of the address in user space.

use vm::{ArenaObject, ModelPort as _, Stream, arena_address, arena_user_address};

use isa::ebpf::Operand;

use super::call_stack::CLOBBERED;
use super::*;
use AluOp::{Add, And, Arsh, Div, Lsh, Mod, Mov, Mul, Or, Rsh, SDiv, SMod, Sub, Xor};

/// The place of an access: `size` bytes at `base + off`.
#[derive(Clone, Copy)]
struct Place {
    size: Size,
    base: Reg,
    off: i16,
}

impl<'m> Run<'_, '_, 'm, '_> {
    /// Executes an instruction of a program with an arena; returns the slot of the next one.
    pub(super) fn execute_with_arena(
        &mut self,
        program: &CheckedProgram,
        at: usize,
        arena: &'m dyn ArenaObject,
    ) -> Result<usize, Stop> {
        let insn = program.insns[at];
        let next = at + 1;
        match insn {
            Insn::Cast { cast, dst, src } => {
                let address = self.regs[src.index()];
                self.regs[dst.index()] = match cast.to {
                    1 => arena_user_address(arena, cast_address(cast, address)?),
                    _ => cast_address(cast, address)?,
                };
                self.mark_pointer(dst, cast.to == 0);
                Ok(next)
            }
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let of_source = match src {
                    Operand::Reg(src) => self.pointers.contains(src),
                    Operand::Imm(_) => false,
                };
                let (width, is_pointer) = match op {
                    Mov => (width, of_source && width == Width::W64),
                    // The verifier has all other operations on pointers compute in 32 bits.
                    Add | Sub | Mul | Div | SDiv | Mod | SMod | Or | And | Xor | Lsh | Rsh
                    | Arsh => match of_source || self.pointers.contains(dst) {
                        true => (Width::W32, true),
                        false => (width, false),
                    },
                };
                let narrowed = Insn::Alu {
                    op,
                    width,
                    dst,
                    src,
                };
                let next = self.execute_plain(program, narrowed, at)?;
                self.mark_pointer(dst, is_pointer);
                Ok(next)
            }
            Insn::Neg { dst, .. }
            | Insn::MovSx { dst, .. }
            | Insn::Endian { dst, .. }
            | Insn::LoadImm64 { dst, .. } => {
                let next = self.execute_plain(program, insn, at)?;
                self.mark_pointer(dst, false);
                Ok(next)
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                off,
            } if self.pointers.contains(base) => {
                let place = Place { size, base, off };
                let value = self.load_from_arena(arena, place);
                if value.is_none() {
                    self.report(arena, "READ", place);
                }
                self.regs[dst.index()] = eval::loaded(size, signed, value.unwrap_or(0));
                self.mark_pointer(dst, false);
                Ok(next)
            }
            Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } if self.pointers.contains(base) => {
                self.check_aligned(size, base, off, Access::Read)?;
                let place = Place { size, base, off };
                // The handler of faults takes it for a store.
                match self.load_from_arena(arena, place) {
                    Some(value) => self.regs[dst.index()] = eval::loaded(size, false, value),
                    None => self.report(arena, "WRITE", place),
                }
                self.mark_pointer(dst, false);
                Ok(next)
            }
            Insn::Load {
                size,
                dst,
                base,
                off,
                ..
            }
            | Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => {
                let address = eval::address(self.regs[base.index()], off);
                let is_pointer = size == Size::DW && self.cx.memory.is_spilled(address);
                let next = self.execute_plain(program, insn, at)?;
                self.mark_pointer(dst, is_pointer);
                Ok(next)
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } if self.pointers.contains(base) => {
                let value = eval::operand(src, named(&self.regs));
                self.store_to_arena(arena, Place { size, base, off }, value);
                Ok(next)
            }
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } if self.pointers.contains(base) => {
                self.check_aligned(size, base, off, Access::Write)?;
                let value = self.regs[src.index()];
                self.store_to_arena(arena, Place { size, base, off }, value);
                Ok(next)
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let is_pointer = match src {
                    Operand::Reg(src) => size == Size::DW && self.pointers.contains(src),
                    Operand::Imm(_) => false,
                };
                self.execute_store(program, at, Place { size, base, off }, is_pointer)
            }
            Insn::Atomic {
                op,
                size,
                base,
                off,
                src,
            } => {
                let place = Place { size, base, off };
                let next = match self.pointers.contains(base) {
                    true => {
                        self.check_aligned(size, base, off, Access::Update)?;
                        self.update_in_arena(arena, op, place, src);
                        next
                    }
                    false => self.execute_store(program, at, place, false)?,
                };
                self.mark_fetched(op, src);
                Ok(next)
            }
            Insn::StoreRelease {
                size, base, off, ..
            } => self.execute_store(program, at, Place { size, base, off }, false),
            Insn::PacketAbs { .. } | Insn::PacketInd { .. } => {
                self.pointers = self.pointers.without(CLOBBERED);
                self.execute_plain(program, insn, at)
            }
            Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. }) => {
                self.pointers = self.pointers.without(CLOBBERED);
                self.execute_plain(program, insn, at)
            }
            // What functions get and return keeps its kind.
            Insn::Call(Callee::Local(_))
            | Insn::CallReg { .. }
            | Insn::Exit
            | Insn::Jump { .. }
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::Imm64High
            | Insn::Invalid { .. } => self.execute_plain(program, insn, at),
        }
    }

    /// Executes a store to other memory than the arena, which holds a pointer into the arena
    /// from now on, or none.
    fn execute_store(
        &mut self,
        program: &CheckedProgram,
        at: usize,
        place: Place,
        is_pointer: bool,
    ) -> Result<usize, Stop> {
        let address = eval::address(self.regs[place.base.index()], place.off);
        let next = self.execute_plain(program, program.insns[at], at)?;
        let len = place.size.bytes().into();
        self.cx.memory.mark_spilled(address, len, is_pointer);
        Ok(next)
    }

    /// Notes whether a register holds a pointer into the arena.
    pub(super) fn mark_pointer(&mut self, reg: Reg, is_pointer: bool) {
        let set = RegSet::of(reg);
        self.pointers = match is_pointer {
            true => self.pointers.union(set),
            false => self.pointers.without(set),
        };
    }

    /// Notes that a register holds the number that an atomic operation fetched.
    fn mark_fetched(&mut self, op: AtomicOp, src: Reg) {
        if op.fetches_into_src() {
            self.mark_pointer(src, false);
        } else if op.fetches_into_r0() {
            self.mark_pointer(Reg::R0, false);
        }
    }

    /// The address in the arena of a place; `None` if the arena does not reach so far.
    fn arena_address(&self, place: Place) -> Option<u32> {
        arena_address(self.regs[place.base.index()], place.off.into())
    }

    /// A number in the arena; `None` if its page is not there.
    fn load_from_arena(&self, arena: &dyn ArenaObject, place: Place) -> Option<u64> {
        let address = self.arena_address(place)?;
        let mut bytes = [0; 8];
        let len = place.size.bytes() as usize;
        let is_read = arena.read(address, &mut bytes[..len]);
        is_read.then(|| u64::from_le_bytes(bytes))
    }

    /// Writes into the program's standard error that a page is not there
    /// (`bpf_prog_report_arena_violation`). Linux adds the stack of the kernel.
    #[cold]
    fn report(&self, arena: &dyn ArenaObject, what: &str, place: Place) {
        let upper = arena.user_start() & !u64::from(u32::MAX);
        let address = eval::address(self.regs[place.base.index()], place.off);
        let address = address.wrapping_add(upper);
        let line = format!("ERROR: Arena {what} access at unmapped address {address:#x}\n");
        if let Ok(streams) = self.cx.memory.streams() {
            // A full stream loses reports, as in Linux.
            let _ = streams.push(Stream::Error, line.as_bytes());
        }
    }

    /// Writes a number to the arena, if its page is there.
    fn store_to_arena(&mut self, arena: &dyn ArenaObject, place: Place, value: u64) {
        let bytes = &value.to_le_bytes()[..place.size.bytes() as usize];
        let address = self.arena_address(place);
        if !address.is_some_and(|address| arena.write(address, bytes)) {
            self.report(arena, "WRITE", place);
        }
    }

    /// Changes a number in the arena in one step, if its page is there; without it registers
    /// stay as they are. So does all of `r0` where a compare-and-exchange of 32 bits succeeds:
    /// Linux clears its upper half outside of arenas only.
    fn update_in_arena(&mut self, arena: &dyn ArenaObject, op: AtomicOp, place: Place, src: Reg) {
        let size = place.size;
        let (value, expected) = (self.regs[src.index()], self.regs[R0]);
        let new = |old| eval::atomic(op, size, old, value, expected);
        let address = self.arena_address(place);
        let old = address.and_then(|address| arena.replace(address, size.bytes() as usize, &new));
        let Some(old) = old else {
            self.report(arena, "WRITE", place);
            return;
        };
        if op.fetches_into_src() {
            self.regs[src.index()] = old;
        } else if op.fetches_into_r0() && old != eval::zero_extend(size, expected) {
            self.regs[R0] = old;
        }
    }
}

//! Register assignment and the stack frame of a function.
//!
//! Arguments are in the registers of the platform's calling convention, so calls move
//! nothing. In a leaf function, `r6` to `r9` are assigned to caller-saved registers while there are
//! any, a small stack lies in the red zone, and the packet's address and length stay in the
//! registers in which the entry receives them.

use std::marker::PhantomData;
use std::ops::Deref;

use isa::ebpf::Reg;
use lower::FunctionStack;
use vm::{FRAME_BYTES, FrameRecord};

use super::target::{Mem, Register, Target};
use crate::analysis::Usage;

/// Size of the record of a frame in bytes.
const RECORD_BYTES: i32 = size_of::<FrameRecord>() as i32;
/// Requirements of a frame beside the function's usage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameRequirements {
    /// The function is the entry; in others the native context is in
    /// [`Target::CONTEXT`].
    pub(crate) is_entry: bool,
    /// The native context is used, in the entry also by a callee.
    pub(crate) env: bool,
    /// The code calls host functions without a call instruction (packet loads outside the
    /// data, deadline checks).
    pub(crate) hidden_calls: bool,
    /// The run may end in a callee, which then restores no registers.
    pub(crate) saves_all: bool,
    /// Loops consume fuel.
    pub(crate) counts: bool,
    /// The stack that the function accesses, if it is known.
    pub(crate) stack: Option<FunctionStack>,
    /// Frames with a stack have a [`FrameRecord`], because helpers of the run
    /// read any address.
    pub(crate) records: bool,
}

/// The register assignment and stack layout of a function.
#[derive(Clone, Debug)]
pub(crate) struct Frame<T: Target> {
    /// Machine register by BPF register number.
    map: [T::Reg; Reg::COUNT],
    /// Machine registers in use.
    used: RegSet<T::Reg>,
    /// Saved registers in the order of their pushes, without the frame pointer.
    pub(crate) saved: Saved<T::Reg>,
    /// Displacement of `r10` from the machine register that it maps to.
    top: i32,
    /// There is a frame pointer.
    has_frame_pointer: bool,
    /// Bytes subtracted from the stack pointer: after the pushes, or before them if there is a frame pointer.
    pub(crate) reserved: i32,
    /// Bytes of the program's stack below `r10`.
    pub(crate) stack_bytes: i32,
    /// Offset of the record of the frame from `r10`, if it has one.
    pub(crate) record: Option<i32>,
    /// Offset of the `may_goto` counter from `r10`.
    pub(crate) may_goto: Option<i32>,
    /// Registers of the packet's address and length, if they are in registers.
    pub(crate) packet: Option<(T::Reg, T::Reg)>,
    /// The register of the native context, if it is used.
    pub(crate) env: Option<T::Reg>,
    /// Register of the fuel; without one, it is in memory.
    pub(crate) fuel: Option<T::Reg>,
}

/// The registers that a function saves, in order.
#[derive(Clone, Debug)]
pub(crate) struct Saved<R> {
    regs: [R; 8],
    len: u8,
}

impl<R> Saved<R> {
    fn push(&mut self, reg: R) {
        self.regs[usize::from(self.len)] = reg;
        self.len += 1;
    }
}

impl<R> Deref for Saved<R> {
    type Target = [R];

    fn deref(&self) -> &[R] {
        &self.regs[..usize::from(self.len)]
    }
}

/// A set of machine registers.
#[derive(Clone, Copy, Debug)]
struct RegSet<R>(u32, PhantomData<R>);

impl<R: Register> RegSet<R> {
    fn of(regs: &[R]) -> RegSet<R> {
        let bits = regs.iter().map(|reg| 1 << reg.number());
        RegSet(bits.fold(0, |set, bit| set | bit), PhantomData)
    }

    fn contains(self, reg: R) -> bool {
        self.0 & 1 << reg.number() != 0
    }

    fn insert(&mut self, reg: R) {
        self.0 |= 1 << reg.number();
    }
}

impl<T: Target> Frame<T> {
    /// The frame before [`Frame::lay_out`].
    pub(crate) fn new() -> Frame<T> {
        Frame {
            map: [T::RESULT; Reg::COUNT],
            used: RegSet::of(&[T::RESULT, T::STACK_POINTER, T::SCRATCH]),
            saved: Saved {
                regs: [T::RESULT; 8],
                len: 0,
            },
            top: 0,
            has_frame_pointer: false,
            reserved: 0,
            stack_bytes: 0,
            record: None,
            may_goto: None,
            packet: None,
            env: None,
            fuel: None,
        }
    }

    /// Lays out the frame of a function.
    pub(crate) fn lay_out(&mut self, usage: &Usage, requirements: FrameRequirements) {
        let calls = usage.calls_helpers || usage.calls_functions;
        *self = Frame::new();
        for (number, gpr) in (1..).zip(T::ARGUMENTS) {
            let reg = Reg::new(number).expect("arguments are r1 to r5");
            self.map[reg.index()] = gpr;
            if usage.has(reg) || calls {
                self.used.insert(gpr);
            }
        }
        let mut stack_bytes = stack_depth(usage, requirements.stack);
        let has_record = requirements.records && calls && stack_bytes > 0;
        if has_record {
            stack_bytes = (stack_bytes as u32).next_multiple_of(8) as i32;
        }
        let record = if has_record { RECORD_BYTES } else { 0 };
        let counter = if usage.may_goto { 8 } else { 0 };
        let bytes = stack_bytes + record + counter;
        // Code with temporary pushes needs offsets that do not depend on the stack pointer.
        let has_frame_pointer =
            bytes > 0 && (usage.complex || usage.stack_accesses > 4 || bytes > T::RED_ZONE);
        if has_frame_pointer {
            self.used.insert(T::FRAME_POINTER);
        }
        self.assign_packet_registers(usage, calls, requirements);
        self.assign_context_register(usage, calls, requirements);
        self.assign_callee_saved(usage, calls);
        if requirements.counts && !calls {
            self.assign_fuel_register();
        }
        if requirements.saves_all {
            self.save_all_callee_saved(has_frame_pointer);
        }
        let keeps_stack_pointer = !calls && !requirements.hidden_calls && !usage.complex;
        self.lay_out_stack(bytes, has_frame_pointer, keeps_stack_pointer);
        self.stack_bytes = stack_bytes;
        self.record = has_record.then_some(-stack_bytes - record);
        if usage.may_goto {
            self.may_goto = Some(-bytes);
        }
    }

    fn assign_packet_registers(
        &mut self,
        usage: &Usage,
        calls: bool,
        requirements: FrameRequirements,
    ) {
        let free = !self.used.contains(T::ENTRY_DATA) && !self.used.contains(T::ENTRY_LEN);
        if usage.packet && !calls && requirements.is_entry && free {
            self.used.insert(T::ENTRY_DATA);
            self.used.insert(T::ENTRY_LEN);
            self.packet = Some((T::ENTRY_DATA, T::ENTRY_LEN));
        }
    }

    fn assign_context_register(
        &mut self,
        usage: &Usage,
        calls: bool,
        requirements: FrameRequirements,
    ) {
        let in_memory = usage.packet && self.packet.is_none();
        if !requirements.is_entry {
            self.env = Some(T::CONTEXT);
        } else if requirements.env || usage.calls_helpers || usage.tail_calls || in_memory {
            let stays = !calls && !self.used.contains(T::ENTRY_CONTEXT);
            self.env = Some(if stays { T::ENTRY_CONTEXT } else { T::CONTEXT });
            if !stays {
                self.saved.push(T::CONTEXT);
            }
        }
        self.used.insert(self.env.unwrap_or(T::SCRATCH));
    }

    fn assign_callee_saved(&mut self, usage: &Usage, calls: bool) {
        let kept = [Reg::R6, Reg::R7, Reg::R8, Reg::R9];
        for reg in kept.into_iter().filter(|&reg| usage.has(reg)) {
            let lost = if calls { None } else { self.spare() };
            let gpr = lost.unwrap_or_else(|| {
                let kept = T::CALLEE_SAVED
                    .iter()
                    .copied()
                    .find(|&gpr| !self.used.contains(gpr));
                let gpr =
                    kept.expect("r6 to r9, r10 and the context are no more than callee-saved ones");
                self.saved.push(gpr);
                gpr
            });
            self.used.insert(gpr);
            self.map[reg.index()] = gpr;
        }
    }

    /// Assigns a register that no instruction uses implicitly.
    fn assign_fuel_register(&mut self) {
        let mut unbound = T::UNBOUND.iter().copied();
        self.fuel = unbound.find(|&gpr| !self.used.contains(gpr));
        self.used.insert(self.fuel.unwrap_or(T::SCRATCH));
    }

    /// Saves all callee-saved registers.
    fn save_all_callee_saved(&mut self, has_frame_pointer: bool) {
        for &gpr in T::CALLEE_SAVED {
            let by_itself = has_frame_pointer && gpr == T::FRAME_POINTER;
            if !by_itself && !self.saved.contains(&gpr) {
                self.saved.push(gpr);
            }
        }
    }

    /// Lays out the stack; `keeps_stack_pointer` tells that the stack pointer does not change in the function's
    /// body.
    fn lay_out_stack(&mut self, bytes: i32, has_frame_pointer: bool, keeps_stack_pointer: bool) {
        // Before the call of this function, the stack pointer was a multiple of 16.
        let pushed = T::RETURN_BYTES + 8 * (self.saved.len() as i32 + i32::from(has_frame_pointer));
        let in_red_zone = bytes <= T::RED_ZONE && (!has_frame_pointer || self.saved.is_empty());
        self.reserved = if !keeps_stack_pointer {
            ((pushed + bytes) as u32).next_multiple_of(16) as i32 - pushed
        } else if in_red_zone {
            0
        } else {
            bytes
        };
        self.has_frame_pointer = has_frame_pointer;
        (self.map[Reg::R10.index()], self.top) = if has_frame_pointer {
            (T::FRAME_POINTER, 0)
        } else {
            (T::STACK_POINTER, self.reserved)
        };
    }

    /// The machine register of a BPF register; for `r10`, the base from which it has a
    /// constant displacement.
    pub(crate) fn gpr(&self, reg: Reg) -> T::Reg {
        self.map[reg.index()]
    }

    /// True if the BPF register is assigned to the machine register.
    pub(crate) fn holds(&self, reg: Reg, gpr: T::Reg) -> bool {
        self.map[reg.index()] == gpr
    }

    /// True if the machine register holds the packet's address or length, or the native
    /// context.
    pub(crate) fn is_special(&self, gpr: T::Reg) -> bool {
        self.env == Some(gpr)
            || self
                .packet
                .is_some_and(|(data, len)| data == gpr || len == gpr)
    }

    /// The memory operand at `r10`.
    pub(crate) fn stack_top(&self) -> Mem<T::Reg> {
        Mem::at(self.gpr(Reg::R10), self.top)
    }

    /// The address `base + off`.
    pub(crate) fn address(&self, base: Reg, off: i16) -> Mem<T::Reg> {
        let top = if base == Reg::R10 { self.top } else { 0 };
        Mem::at(self.gpr(base), top + i32::from(off))
    }

    /// Bytes between the stack pointer and the frame pointer, if there is a frame pointer.
    pub(crate) fn bytes_below_frame_pointer(&self) -> i32 {
        self.reserved + 8 * self.saved.len() as i32
    }

    /// True if there is a frame pointer.
    pub(crate) fn has_frame_pointer(&self) -> bool {
        self.has_frame_pointer
    }

    /// A caller-saved register that is not in use.
    pub(crate) fn spare(&self) -> Option<T::Reg> {
        let mut regs = T::CALLER_SAVED.iter().copied();
        regs.find(|&gpr| !self.used.contains(gpr))
    }

    /// The caller-saved registers in use, which a call of a host function clobbers.
    pub(crate) fn live_caller_saved(&self) -> Vec<T::Reg> {
        let others = RegSet::of(&[T::RESULT, T::STACK_POINTER, T::SCRATCH]);
        let kept = RegSet::of(T::CALLEE_SAVED);
        let is_lost = |gpr: &T::Reg| !kept.contains(*gpr) && !others.contains(*gpr);
        let used = T::Reg::ALL
            .iter()
            .copied()
            .filter(|&gpr| self.used.contains(gpr));
        used.filter(is_lost).collect()
    }
}

/// Bytes of stack below `r10` that a function may access.
fn stack_depth(usage: &Usage, known: Option<FunctionStack>) -> i32 {
    if usage.stack_escapes {
        let bytes = known.map_or(FRAME_BYTES, |stack| {
            stack.bytes.next_multiple_of(8) as usize
        });
        bytes.min(FRAME_BYTES) as i32
    } else {
        -i32::from(usage.lowest_stack)
    }
}

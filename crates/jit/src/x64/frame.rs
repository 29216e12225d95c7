//! Register assignment and the stack frame of a function.
//!
//! Arguments are in the registers of the platform's calling convention, so calls move
//! nothing:
//!
//! | program | machine | |
//! |---|---|---|
//! | `r0` | `rax` | the result |
//! | `r1` to `r5` | `rdi`, `rsi`, `rdx`, `rcx`, `r8` | arguments, caller-saved |
//! | `r6` to `r9` | `rbx`, `rbp`, `r13`, `r14`, `r15` | callee-saved, saved where used |
//! | | `r11` | scratch register of the generator |
//! | | `r12` | the [`NativeContext`](crate::native::NativeContext), where it is used |
//!
//! In a leaf function, `r6` to `r9` are assigned to caller-saved registers while there are
//! any, a stack of up to 128 bytes lies in the red zone, and the packet's address and length
//! stay in the registers in which the entry receives them.

use isa::ebpf::Reg;
use std::ops::Deref;

use lower::FunctionStack;
use vm::{FRAME_BYTES, FrameRecord};

use super::reg::{Gpr, GprSet, Mem};
use crate::analysis::Usage;

/// Scratch register of the generator, never assigned.
pub(super) const SCRATCH: Gpr = Gpr::R11;
/// Register of the native context in functions that make calls.
pub(super) const CONTEXT: Gpr = Gpr::R12;
/// Argument registers in which the entry function receives the packet's address, its length
/// and the native context.
pub(super) const ENTRY_DATA: Gpr = Gpr::RDX;
pub(super) const ENTRY_LEN: Gpr = Gpr::RCX;
pub(super) const ENTRY_CONTEXT: Gpr = Gpr::R8;

/// Register in which failures of merged tests are recorded, beside the scratch register. It
/// holds the context, which a program that can be restarted does not read; functions with
/// packet loads keep it free.
pub(super) const OUTCOME: Reg = Reg::R1;

const ARGUMENTS: [(Reg, Gpr); 5] = [
    (Reg::R1, Gpr::RDI),
    (Reg::R2, Gpr::RSI),
    (Reg::R3, Gpr::RDX),
    (Reg::R4, Gpr::RCX),
    (Reg::R5, Gpr::R8),
];
/// Callee-saved registers in the order of assignment: the first two need no prefix byte.
pub(super) const CALLEE_SAVED: [Gpr; 6] =
    [Gpr::RBX, Gpr::RBP, Gpr::R14, Gpr::R15, Gpr::R13, Gpr::R12];
/// Size of the record of a frame in bytes.
const RECORD_BYTES: i32 = size_of::<FrameRecord>() as i32;
/// Size of the red zone in bytes (System V ABI).
const RED_ZONE: i32 = 128;

/// Requirements of a frame beside the function's usage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameRequirements {
    /// The function is the entry; in others the native context is in [`CONTEXT`].
    pub(super) is_entry: bool,
    /// The native context is used, in the entry also by a callee.
    pub(super) env: bool,
    /// The code calls host functions without a call instruction (packet loads outside the
    /// data, deadline checks).
    pub(super) hidden_calls: bool,
    /// The run may end in a callee, which then restores no registers.
    pub(super) saves_all: bool,
    /// Loops consume fuel.
    pub(super) counts: bool,
    /// The stack that the function accesses, if it is known.
    pub(super) stack: Option<FunctionStack>,
    /// Frames with a stack have a [`FrameRecord`](vm::FrameRecord), because helpers of the run
    /// read any address.
    pub(super) records: bool,
}

/// The register assignment and stack layout of a function.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Machine register by BPF register number.
    map: [Gpr; Reg::COUNT],
    /// Machine registers in use.
    used: GprSet,
    /// Saved registers in the order of their pushes, without `rbp` as the frame pointer.
    pub(super) saved: Saved,
    /// Displacement of `r10` from the machine register that it maps to.
    top: i32,
    /// `rbp` is the frame pointer.
    has_frame_pointer: bool,
    /// Bytes subtracted from `rsp`: after the pushes, or before them if `rbp` is the frame
    /// pointer.
    pub(super) reserved: i32,
    /// Bytes of the program's stack below `r10`.
    pub(super) stack_bytes: i32,
    /// Offset of the record of the frame from `r10`, if it has one.
    pub(super) record: Option<i32>,
    /// Offset of the `may_goto` counter from `r10`.
    pub(super) may_goto: Option<i32>,
    /// Registers of the packet's address and length, if they are in registers.
    pub(super) packet: Option<(Gpr, Gpr)>,
    /// The register of the native context, if it is used.
    pub(super) env: Option<Gpr>,
    /// Register of the fuel; without one, it is in memory.
    pub(super) fuel: Option<Gpr>,
}

/// The registers that a function saves, in order.
#[derive(Clone, Debug)]
pub(super) struct Saved {
    gprs: [Gpr; 8],
    len: u8,
}

impl Saved {
    const NONE: Saved = Saved {
        gprs: [Gpr::RAX; 8],
        len: 0,
    };

    fn push(&mut self, gpr: Gpr) {
        self.gprs[usize::from(self.len)] = gpr;
        self.len += 1;
    }
}

impl Deref for Saved {
    type Target = [Gpr];

    fn deref(&self) -> &[Gpr] {
        &self.gprs[..usize::from(self.len)]
    }
}

impl Frame {
    /// The frame before [`Frame::lay_out`].
    pub(super) const NONE: Frame = Frame {
        map: [Gpr::RAX; Reg::COUNT],
        used: GprSet::of(&[Gpr::RAX, Gpr::RSP, SCRATCH]),
        saved: Saved::NONE,
        top: 0,
        has_frame_pointer: false,
        reserved: 0,
        stack_bytes: 0,
        record: None,
        may_goto: None,
        packet: None,
        env: None,
        fuel: None,
    };

    /// Lays out the frame of a function.
    pub(super) fn lay_out(&mut self, usage: &Usage, requirements: FrameRequirements) {
        let calls = usage.calls_helpers || usage.calls_functions;
        *self = Frame::NONE;
        for (reg, gpr) in ARGUMENTS {
            self.map[reg.index()] = gpr;
            // Merged tests of packets have their outcome in the register of the context.
            let holds_outcome = reg == OUTCOME && usage.packet;
            if usage.has(reg) || calls || holds_outcome {
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
        // Code with temporary pushes needs offsets that do not depend on `rsp`.
        let has_frame_pointer =
            bytes > 0 && (usage.complex || usage.stack_accesses > 4 || bytes > RED_ZONE);
        if has_frame_pointer {
            self.used.insert(Gpr::RBP);
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
        let keeps_rsp = !calls && !requirements.hidden_calls && !usage.complex;
        self.lay_out_stack(bytes, has_frame_pointer, keeps_rsp);
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
        let free = !self.used.contains(ENTRY_DATA) && !self.used.contains(ENTRY_LEN);
        if usage.packet && !calls && requirements.is_entry && free {
            self.used.insert(ENTRY_DATA);
            self.used.insert(ENTRY_LEN);
            self.packet = Some((ENTRY_DATA, ENTRY_LEN));
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
            self.env = Some(CONTEXT);
        } else if requirements.env || usage.calls_helpers || usage.tail_calls || in_memory {
            let stays = !calls && !self.used.contains(ENTRY_CONTEXT);
            self.env = Some(if stays { ENTRY_CONTEXT } else { CONTEXT });
            if !stays {
                self.saved.push(CONTEXT);
            }
        }
        self.used.insert(self.env.unwrap_or(SCRATCH));
    }

    fn assign_callee_saved(&mut self, usage: &Usage, calls: bool) {
        let kept = [Reg::R6, Reg::R7, Reg::R8, Reg::R9];
        for reg in kept.into_iter().filter(|&reg| usage.has(reg)) {
            let lost = if calls { None } else { self.spare() };
            let gpr = lost.unwrap_or_else(|| {
                let kept = CALLEE_SAVED
                    .into_iter()
                    .find(|&gpr| !self.used.contains(gpr));
                let gpr =
                    kept.expect("r6 to r9, r10 and the context are no more than CALLEE_SAVED");
                self.saved.push(gpr);
                gpr
            });
            self.used.insert(gpr);
            self.map[reg.index()] = gpr;
        }
    }

    /// Assigns a register that no instruction uses implicitly.
    fn assign_fuel_register(&mut self) {
        let mut unbound = [Gpr::R10, Gpr::R9].into_iter();
        self.fuel = unbound.find(|&gpr| !self.used.contains(gpr));
        self.used.insert(self.fuel.unwrap_or(SCRATCH));
    }

    /// Saves all callee-saved registers.
    fn save_all_callee_saved(&mut self, has_frame_pointer: bool) {
        for gpr in CALLEE_SAVED {
            let by_itself = has_frame_pointer && gpr == Gpr::RBP;
            if !by_itself && !self.saved.contains(&gpr) {
                self.saved.push(gpr);
            }
        }
    }

    /// Lays out the stack; `keeps_rsp` tells that `rsp` does not change in the function's
    /// body.
    fn lay_out_stack(&mut self, bytes: i32, has_frame_pointer: bool, keeps_rsp: bool) {
        // The call of this function left rsp 8 below a multiple of 16.
        let pushed = 8 + 8 * (self.saved.len() as i32 + i32::from(has_frame_pointer));
        let in_red_zone = bytes <= RED_ZONE && (!has_frame_pointer || self.saved.is_empty());
        self.reserved = if !keeps_rsp {
            ((pushed + bytes) as u32).next_multiple_of(16) as i32 - pushed
        } else if in_red_zone {
            0
        } else {
            bytes
        };
        self.has_frame_pointer = has_frame_pointer;
        (self.map[Reg::R10.index()], self.top) = if has_frame_pointer {
            (Gpr::RBP, 0)
        } else {
            (Gpr::RSP, self.reserved)
        };
    }

    /// The machine register of a BPF register; for `r10`, the base from which it has a
    /// constant displacement.
    pub(super) fn gpr(&self, reg: Reg) -> Gpr {
        self.map[reg.index()]
    }

    /// True if the BPF register is assigned to the machine register.
    pub(super) fn holds(&self, reg: Reg, gpr: Gpr) -> bool {
        self.map[reg.index()] == gpr
    }

    /// True if the machine register holds the packet's address or length, or the native
    /// context.
    pub(super) fn is_special(&self, gpr: Gpr) -> bool {
        self.env == Some(gpr)
            || self
                .packet
                .is_some_and(|(data, len)| data == gpr || len == gpr)
    }

    /// The memory operand at `r10`.
    pub(super) fn stack_top(&self) -> Mem {
        Mem::at(self.gpr(Reg::R10), self.top)
    }

    /// The address `base + off`.
    pub(super) fn address(&self, base: Reg, off: i16) -> Mem {
        let top = if base == Reg::R10 { self.top } else { 0 };
        Mem::at(self.gpr(base), top + i32::from(off))
    }

    /// Bytes between `rsp` and `rbp`, if `rbp` is the frame pointer.
    pub(super) fn bytes_below_frame_pointer(&self) -> i32 {
        self.reserved + 8 * self.saved.len() as i32
    }

    /// True if `rbp` is the frame pointer.
    pub(super) fn has_frame_pointer(&self) -> bool {
        self.has_frame_pointer
    }

    /// A caller-saved register that is not in use.
    pub(super) fn spare(&self) -> Option<Gpr> {
        const CALLER_SAVED: [Gpr; 7] = [
            Gpr::RCX,
            Gpr::RDX,
            Gpr::RSI,
            Gpr::RDI,
            Gpr::R8,
            Gpr::R9,
            Gpr::R10,
        ];
        CALLER_SAVED
            .into_iter()
            .find(|&gpr| !self.used.contains(gpr))
    }

    /// The caller-saved registers in use, which a call of a host function clobbers.
    pub(super) fn live_caller_saved(&self) -> impl DoubleEndedIterator<Item = Gpr> {
        const OTHERS: [Gpr; 3] = [Gpr::RAX, Gpr::RSP, SCRATCH];
        let kept = GprSet::of(&CALLEE_SAVED);
        self.used
            .iter()
            .filter(move |gpr| !kept.contains(*gpr) && !OTHERS.contains(gpr))
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

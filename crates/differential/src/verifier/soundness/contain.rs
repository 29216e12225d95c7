//! Containment: a concrete run at one instruction, and an abstract state of it.
//!
//! This shares no code with the verifier's comparison of states: values are compared with
//! ranges and known bits one by one, pointers with the addresses of the model address
//! space.

use interp::checked::{Memory, Moment};
use isa::ebpf::Reg;
use spec::behaviour::Behaviours;
use spec::registry::TypeFlags;
use verifier::RecordedState;
use verifier::domain::Scalar;
use verifier::state::{
    Frame, MapRef, PKT_AT_END, PKT_BEYOND_END, RegKind, RegState, SlotKind, StackSlot,
};
use vm::MemoryPort;

use super::setting::Places;

/// Claim of an abstract state about scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Every scalar of a live register or slot.
    AllScalars,
    /// Those that are marked precise.
    PreciseScalars,
}

/// A function that waits for the return of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    /// Index of its call instruction.
    pub(super) callsite: usize,
    /// Its registers at the call.
    pub(super) registers: [u64; Reg::COUNT],
}

/// A run before one of its instructions.
pub(super) struct View<'v, 'm> {
    pub(super) moment: &'v Moment<'v, 'm>,
    pub(super) callers: &'v [Caller],
    /// Number of the frame in which the main program began last: not 0 after a tail call
    /// of a function.
    pub(super) main_frame: usize,
    pub(super) places: Places<'v>,
}

/// Place where a run is outside of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outside(pub(super) String);

/// Registers that a caller keeps over a call.
const CALLEE_SAVED: u16 = 0b111_1100_0000;
/// Values of a map at most.
const MAX_VALUES: u32 = 4096;

impl Places<'_> {
    /// Pointers to the maps that a map of the verifier stands for.
    pub(super) fn map_pointers(
        self,
        memory: &Memory<'_>,
        map: MapRef,
    ) -> impl Iterator<Item = u64> {
        let maps = self.instances.of(map).iter();
        maps.filter_map(move |index| memory.map_pointer(*index))
    }

    /// Addresses of the values, keys, records and maps that were found in these maps.
    pub(super) fn map_values(self, memory: &Memory<'_>, map: MapRef) -> impl Iterator<Item = u64> {
        let values = self.instances.of(map).iter().flat_map(move |index| {
            (0..MAX_VALUES).map_while(move |number| memory.numbered_map_value(*index, number))
        });
        let inside = self.instances.inside(map).iter();
        values.chain(inside.filter_map(move |index| memory.map_pointer(*index)))
    }
}

impl View<'_, '_> {
    /// Checks that the state contains the run.
    pub(super) fn check(&self, recorded: &RecordedState, claim: Claim) -> Result<(), Outside> {
        let state = &recorded.state;
        // A global function is verified on its own: its frames are the last ones of the run.
        let Some(base) = self.callers.len().checked_sub(state.curframe) else {
            return Err(Outside("there are fewer frames".to_owned()));
        };
        if base != self.main_frame && state.frame(0).subprogno == 0 {
            return Err(Outside("there are other frames".to_owned()));
        }
        for number in 0..=state.curframe {
            let frame = state.frame(number);
            if number > 0 && frame.callsite != self.callers[base + number - 1].callsite as i32 {
                return Err(Outside("it was called elsewhere".to_owned()));
            }
            let is_precise_reg = |reg: usize| match (claim, &recorded.precise) {
                (Claim::AllScalars, _) => true,
                (Claim::PreciseScalars, Some(precise)) => precise.of(number).regs >> reg & 1 != 0,
                (Claim::PreciseScalars, None) => false,
            };
            let is_precise_slot = |spi: usize| match (claim, &recorded.precise) {
                (Claim::AllScalars, _) => true,
                (Claim::PreciseScalars, Some(precise)) => precise.of(number).slots >> spi & 1 != 0,
                (Claim::PreciseScalars, None) => false,
            };
            self.check_registers(recorded, base, number, is_precise_reg)?;
            for (spi, slot) in frame.stack.iter().enumerate() {
                if recorded.live_slots[number] >> spi & 1 != 0 {
                    self.check_slot(base, base + number, spi, slot, is_precise_slot(spi))?;
                }
            }
        }
        Ok(())
    }

    fn check_registers(
        &self,
        recorded: &RecordedState,
        base: usize,
        number: usize,
        is_precise: impl Fn(usize) -> bool,
    ) -> Result<(), Outside> {
        let frame: &Frame = recorded.state.frame(number);
        let (registers, mut live) = match self.callers.get(base + number) {
            None => (self.moment.registers, recorded.live_regs[number]),
            Some(caller) => (&caller.registers, recorded.live_regs[number] & CALLEE_SAVED),
        };
        while live != 0 {
            let reg = live.trailing_zeros() as usize;
            live &= live - 1;
            if !self.is_value_in(base, &frame.regs[reg], registers[reg], is_precise(reg)) {
                return Err(Outside(format!(
                    "r{reg} of frame {number} is {:#x}, outside of {}",
                    registers[reg],
                    described(&frame.regs[reg])
                )));
            }
        }
        Ok(())
    }

    fn check_slot(
        &self,
        base: usize,
        number: usize,
        spi: usize,
        slot: &StackSlot,
        is_precise: bool,
    ) -> Result<(), Outside> {
        let end = self.moment.memory.frame_end(number);
        let start = end.map(|end| end - 8 * (spi as u64 + 1));
        let bytes = start.and_then(|start| self.moment.memory.read(start, 8).ok());
        let Some(bytes) = bytes.and_then(|bytes| bytes.first_chunk::<8>()) else {
            return Err(Outside(format!("frame {number} has no slot {spi}")));
        };
        let is_in = if slot.is_spilled() {
            let value = u64::from_le_bytes(*bytes);
            let count = slot.kinds.iter().filter(|kind| **kind == SlotKind::Spill);
            self.is_spill_in(base, &slot.reg, value, count.count() as u32, is_precise)
        } else {
            // The byte at the lowest address is the last one.
            let kinds = slot.kinds.iter().rev().zip(bytes);
            kinds
                .into_iter()
                .all(|(kind, byte)| *kind != SlotKind::Zero || *byte == 0)
        };
        match is_in {
            true => Ok(()),
            false => Err(Outside(format!(
                "slot {spi} of frame {number} is {bytes:02x?}, outside of {:?} {}",
                slot.kinds,
                described(&slot.reg)
            ))),
        }
    }

    fn is_spill_in(
        &self,
        base: usize,
        reg: &RegState,
        value: u64,
        bytes: u32,
        is_precise: bool,
    ) -> bool {
        if bytes == 8 {
            return self.is_value_in(base, reg, value, is_precise);
        }
        if !is_precise {
            return true;
        }
        let mut num = reg.num;
        num.truncate(bytes, Behaviours::LINUX_6_18);
        is_number_in(&num, value & (u64::MAX >> (64 - 8 * bytes)))
    }

    /// True if a value is among those that an abstract value stands for.
    pub(super) fn is_value_in(
        &self,
        base: usize,
        reg: &RegState,
        value: u64,
        is_precise: bool,
    ) -> bool {
        if reg.is_scalar() {
            return !is_precise || is_number_in(&reg.num, value);
        }
        if reg.may_be_null() && value == 0 {
            return true;
        }
        let memory = self.moment.memory;
        let [meta, packet, end] = memory.packet_bounds().unwrap_or_default();
        // The variable part of the offset from an object's start.
        let variable = |start: u64| {
            value
                .wrapping_sub(start)
                .wrapping_sub(reg.off as i64 as u64)
        };
        let is_from = |start: u64| is_number_in(&reg.num, variable(start));
        match reg.kind {
            RegKind::Ctx => is_from(self.places.context),
            RegKind::FlowKeys => is_from(self.places.flow_keys),
            RegKind::MapPtr { map, .. } => self.places.map_pointers(memory, map).any(is_from),
            RegKind::MapValue { map, .. } | RegKind::MapKey { map, .. } => {
                self.places.map_values(memory, map).any(is_from)
            }
            // Loads of untrusted memory are probes, wherever it is.
            RegKind::Mem { .. } if reg.flags.has(TypeFlags::PTR_UNTRUSTED) => true,
            // Where it begins is known if the offset is.
            RegKind::Mem { size, .. } if reg.num.is_const() => {
                let start = value
                    .wrapping_sub(reg.off as i64 as u64)
                    .wrapping_sub(reg.num.umin);
                MemoryPort::read(memory, start, &mut vec![0; size as usize]).is_ok()
            }
            RegKind::Stack { frame } => {
                let end = self.moment.memory.frame_end(base + frame as usize);
                end.is_some_and(is_from)
            }
            RegKind::Packet { range } => {
                let is_proven = match range {
                    PKT_AT_END => value >= end,
                    PKT_BEYOND_END => value > end,
                    range => {
                        let reach = (variable(packet) as i64).saturating_add(range.into());
                        range == 0 || reach <= (end - packet) as i64
                    }
                };
                is_proven && is_from(packet)
            }
            RegKind::PacketMeta { .. } => is_from(meta),
            RegKind::PacketEnd => value == end,
            // Not written, or of a kind that runs here do not have.
            _ => true,
        }
    }
}

/// True if a number has the known bits and lies in every range.
pub(super) fn is_number_in(num: &Scalar, value: u64) -> bool {
    let (signed, low) = (value as i64, value as u32);
    value & !num.var_off.mask == num.var_off.value
        && (num.umin..=num.umax).contains(&value)
        && (num.smin..=num.smax).contains(&signed)
        && (num.u32_min..=num.u32_max).contains(&low)
        && (num.s32_min..=num.s32_max).contains(&(low as i32))
}

fn described(reg: &RegState) -> String {
    let num = &reg.num;
    format!(
        "{:?} off {} {} [{}, {}] [{}, {}] [{}, {}] [{}, {}]",
        reg.kind,
        reg.off,
        num.var_off,
        num.umin,
        num.umax,
        num.smin,
        num.smax,
        num.u32_min,
        num.u32_max,
        num.s32_min,
        num.s32_max
    )
}

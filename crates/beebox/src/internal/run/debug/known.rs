//! What the verifier knew of registers at an instruction: its states there, which the program is
//! verified again for once.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use isa::ebpf::Reg;
use program::Program;
use spec::Kernel;
use verifier::state::{RegKind, RegState};
use verifier::{MapRef, Options, verify_recorded};

/// Most states of a program that are kept.
const MOST_STATES: usize = 100_000;
/// Most different texts of a register that are shown.
const MOST_TEXTS: usize = 3;

/// Most different states of a register that are kept.
const MOST_KEPT: usize = 8;

/// By slot, for each register the states that it may have there, with their texts.
type Registers = Vec<[Vec<(RegState, String)>; Reg::COUNT]>;

/// The states of programs by number, as far as they were asked for.
#[derive(Clone, Default)]
pub(super) struct Known(Arc<Mutex<HashMap<u32, Registers>>>);

impl Known {
    /// What was known of each register in front of a slot; empty texts where nothing is.
    pub(super) fn at(
        &self,
        (number, program, slot): (u32, &Program, u32),
        kernel: &Kernel,
        registers: &[u64; Reg::COUNT],
    ) -> [String; Reg::COUNT] {
        let mut texts: [String; Reg::COUNT] = Default::default();
        let Ok(mut known) = self.0.lock() else {
            return texts;
        };
        let known = known
            .entry(number)
            .or_insert_with(|| registers_of(program, kernel).unwrap_or_default());
        let Some(states) = known.get(slot as usize) else {
            return texts;
        };
        for ((text, states), value) in texts.iter_mut().zip(states).zip(registers) {
            // A state of numbers that leaves the number out is that of another path.
            let found = states
                .iter()
                .filter(|(state, _)| !state.is_scalar() || state.num.has(*value));
            let mut found: Vec<&str> = found.map(|(_, text)| &**text).collect();
            let more = found.len().saturating_sub(MOST_TEXTS);
            found.truncate(MOST_TEXTS);
            *text = found.join(" or ");
            if more > 0 {
                let _ = write!(text, " or {more} more");
            }
        }
        texts
    }
}

/// Verifies a program; `None` if its walk has too many states.
fn registers_of(program: &Program, kernel: &Kernel) -> Option<Registers> {
    let registry = kernel.registry()?;
    let options = Options {
        assume_rules: true,
        ..Options::default()
    };
    let (_, states) = verify_recorded(program, kernel, registry, &options, MOST_STATES);
    let states = states?;
    let slots = (0..program.insns().len()).map(|slot| {
        let mut found: [Vec<(RegState, String)>; Reg::COUNT] = Default::default();
        for recorded in states.at(slot) {
            let frame = recorded.state.frame(recorded.state.curframe);
            for (kept, state) in found.iter_mut().zip(frame.regs.iter()) {
                if kept.len() < MOST_KEPT {
                    let text = text_of(program, state);
                    if kept.iter().all(|(_, other)| *other != text) {
                        kept.push((*state, text));
                    }
                }
            }
        }
        found
    });
    Some(slots.collect())
}

/// A register of a state in words.
fn text_of(program: &Program, reg: &RegState) -> String {
    let map = |map: &MapRef| {
        let found = program.maps().get(map.0 as usize);
        found.map_or_else(|| "inner map".to_owned(), |def| def.name.to_string())
    };
    let base = match &reg.kind {
        RegKind::NotInit => return "not written".to_owned(),
        RegKind::Scalar => return number_text(reg),
        RegKind::Ctx => "ctx".to_owned(),
        RegKind::MapPtr { map: of, .. } => format!("map {}", map(of)),
        RegKind::MapValue { map: of, .. } => format!("value of {}", map(of)),
        RegKind::MapKey { map: of, .. } => format!("key of {}", map(of)),
        RegKind::Stack { .. } => "fp".to_owned(),
        RegKind::PacketMeta { range } => format!("packet metadata ({range} bytes proven)"),
        RegKind::Packet { range } => format!("packet ({range} bytes proven)"),
        RegKind::PacketEnd => "packet end".to_owned(),
        RegKind::FlowKeys => "flow keys".to_owned(),
        RegKind::Socket => "socket".to_owned(),
        RegKind::SockCommon => "common part of a socket".to_owned(),
        RegKind::TcpSock => "TCP socket".to_owned(),
        RegKind::TpBuffer => "buffer of a tracepoint".to_owned(),
        RegKind::XdpSock => "XDP socket".to_owned(),
        RegKind::BtfId { .. } => "object of the kernel".to_owned(),
        RegKind::Mem { size, .. } => format!("memory of {size} bytes"),
        RegKind::Arena => "arena".to_owned(),
        RegKind::Buf => "buffer".to_owned(),
        RegKind::Func { subprog } => {
            let found = program.subprogs().get(*subprog as usize);
            found.map_or_else(
                || "function".to_owned(),
                |it| format!("function {}", it.name),
            )
        }
        RegKind::ConstDynptr { .. } => "dynptr".to_owned(),
    };
    let mut text = base;
    let (min, max) = (
        i64::from(reg.off).saturating_add(reg.num.smin),
        i64::from(reg.off).saturating_add(reg.num.smax),
    );
    match (reg.num.as_const(), min == max) {
        _ if reg.kind == RegKind::PacketEnd => {}
        (_, true) if min == 0 => {}
        (_, true) => {
            let _ = write!(text, " {min:+}");
        }
        _ => {
            let _ = write!(text, " {min:+} to {max:+}");
        }
    }
    if reg.may_be_null() {
        text.push_str(" or null");
    }
    text
}

fn number_text(reg: &RegState) -> String {
    let num = &reg.num;
    if let Some(constant) = num.as_const() {
        return (constant as i64).to_string();
    }
    let is_unknown =
        (num.umin, num.umax) == (0, u64::MAX) && (num.smin, num.smax) == (i64::MIN, i64::MAX);
    let mut text = match is_unknown {
        true => "any number".to_owned(),
        false => match num.umax.wrapping_sub(num.umin) <= num.smax.wrapping_sub(num.smin) as u64 {
            true => format!("{} to {}", num.umin, num.umax),
            false => format!("{} to {}", num.smin, num.smax),
        },
    };
    // Bits that are known below the highest one that may be set.
    let possible = num.var_off.value | num.var_off.mask;
    let highest = u64::MAX.checked_shr(possible.leading_zeros()).unwrap_or(0);
    if !is_unknown && num.var_off.mask != highest {
        let _ = write!(text, ", bits {:#x}", possible);
    }
    text
}

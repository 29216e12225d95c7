//! Facts of a verification, held to a run, and counted.

use interp::checked::{Moment, Observer};
use isa::ebpf::{Insn, Reg};
use std::ops::{AddAssign, ControlFlow};
use verifier::state::MapRef;
use verifier::{Branch, Pointer, PointerKind, ProgramFacts, Value};
use vm::MemoryPort;

use super::contain::is_number_in;
use super::setting::Places;

/// Facts of a program, by instruction where that is needed.
pub(super) struct Claims {
    pub(super) facts: ProgramFacts,
    /// The comparison that alone proves a packet access.
    check_of: Vec<Option<u32>>,
}

impl Claims {
    pub(super) fn new(facts: ProgramFacts) -> Claims {
        let mut check_of = vec![None; facts.insns.len()];
        for check in &facts.packet_checks {
            for &access in &check.accesses {
                check_of[access as usize] = Some(check.insn);
            }
        }
        Claims { facts, check_of }
    }
}

/// Holds a run to facts.
pub(super) struct FactWatch<'w> {
    claims: &'w Claims,
    places: Places<'w>,
    last: Option<usize>,
    executed: Vec<bool>,
}

impl<'w> FactWatch<'w> {
    pub(super) fn new(claims: &'w Claims, places: Places<'w>) -> FactWatch<'w> {
        FactWatch {
            claims,
            places,
            last: None,
            executed: vec![false; claims.facts.insns.len()],
        }
    }

    /// Forgets what was executed: a tail call begins the program again.
    pub(super) fn restart(&mut self) {
        self.last = None;
        self.executed.fill(false);
    }

    /// Checks the facts of the last instruction and of this one.
    pub(super) fn check(&mut self, moment: &Moment<'_, '_>) -> Result<(), String> {
        if let Some(last) = self.last.replace(moment.at) {
            self.executed[last] = true;
            self.check_outcome(moment, last)?;
        }
        let fact = &self.claims.facts.insns[moment.at];
        if !fact.is_reached {
            return Err("fact: it is never reached".to_owned());
        }
        for (reg, value) in &fact.operands {
            self.check_value(moment, *reg, value, "before")?;
        }
        if let Some(check) = self.claims.check_of[moment.at]
            && !self.executed[check as usize]
        {
            return Err(format!("fact: instruction {check} proves the access"));
        }
        if let (Some(call), Insn::Call(_)) = (fact.call, moment.insn()) {
            if let Some(map) = call.map
                && !self.is_map(moment, map)
            {
                return Err(format!("fact: r1 is map {}", map.0));
            }
            if let Some(key) = call.key {
                let mut bytes = [0; 4];
                let read = MemoryPort::read(moment.memory, moment.registers[2], &mut bytes);
                let found = u64::from(u32::from_le_bytes(bytes));
                // Keys of arrays have four bytes.
                if read.is_err() || key != found {
                    return Err(format!("fact: the key is {key}, not {found}"));
                }
            }
        }
        Ok(())
    }

    /// Checks what the last instruction left behind, and where it led.
    fn check_outcome(&self, moment: &Moment<'_, '_>, last: usize) -> Result<(), String> {
        let fact = &self.claims.facts.insns[last];
        if let Some((reg, value)) = &fact.result {
            self.check_value(moment, *reg, value, &format!("after {last}"))?;
            if let (Some(call), Value::Pointer(_)) = (fact.call, value)
                && call.is_key_in_bounds
                && moment.registers[0] == 0
            {
                return Err("fact: the key is one of the array's".to_owned());
            }
        }
        let has_jumped = moment.at != last + 1;
        match fact.branch {
            Some(Branch::Always) if !has_jumped && !is_jump_to_next(moment, last) => {
                Err(format!("fact: instruction {last} always jumps"))
            }
            Some(Branch::Never) if has_jumped => {
                Err(format!("fact: instruction {last} never jumps"))
            }
            _ => Ok(()),
        }
    }

    fn check_value(
        &self,
        moment: &Moment<'_, '_>,
        reg: Reg,
        value: &Value,
        when: &str,
    ) -> Result<(), String> {
        let found = moment.registers[reg.index()];
        let is_in = match value {
            Value::Mixed => true,
            Value::Scalar(scalar) => is_number_in(scalar, found),
            Value::Pointer(pointer) => self.is_pointer(moment, pointer, found),
        };
        match is_in {
            true => Ok(()),
            false => Err(format!(
                "fact {when}: {reg:?} is {found:#x}, outside of {value:?}"
            )),
        }
    }

    /// True if `r1` points to a map that the verifier's map stands for.
    fn is_map(&self, moment: &Moment<'_, '_>, map: MapRef) -> bool {
        let pointer = moment.registers[1];
        let mut pointers = self.places.map_pointers(moment.memory, map);
        pointers.any(|of| of == pointer)
    }

    fn is_pointer(&self, moment: &Moment<'_, '_>, pointer: &Pointer, value: u64) -> bool {
        if pointer.may_be_null && value == 0 {
            return true;
        }
        let memory = moment.memory;
        let [meta, packet, end] = memory.packet_bounds().unwrap_or_default();
        let is_from = |start: u64| {
            let offset = value.wrapping_sub(start) as i64;
            (pointer.offset.min..=pointer.offset.max).contains(&offset)
        };
        match pointer.kind {
            PointerKind::Context => is_from(self.places.context),
            PointerKind::Map(map) => self.places.map_pointers(memory, map).any(is_from),
            PointerKind::MapValue(map) | PointerKind::MapKey(map) => {
                self.places.map_values(memory, map).any(is_from)
            }
            PointerKind::Stack { frames_up } => {
                let number = moment.depth.checked_sub(frames_up as usize);
                let end = number.and_then(|number| memory.frame_end(number));
                end.is_some_and(is_from)
            }
            PointerKind::Packet => is_from(packet),
            PointerKind::PacketMeta => is_from(meta),
            PointerKind::PacketEnd => is_from(end),
            PointerKind::FlowKeys => is_from(self.places.flow_keys),
            // Where these begin is not known, or runs have none of them.
            PointerKind::Memory { .. }
            | PointerKind::Function { .. }
            | PointerKind::Other { .. } => true,
        }
    }
}

fn is_jump_to_next(moment: &Moment<'_, '_>, at: usize) -> bool {
    matches!(moment.program.insns()[at], Insn::Jump { off: 0, .. })
}

/// Fills upper halves that are said not to matter with garbage: the run must not notice.
pub(super) struct Garbage<'w> {
    pub(super) facts: &'w ProgramFacts,
    last: Option<usize>,
    /// Halves that were filled.
    pub(super) filled: u64,
}

impl<'w> Garbage<'w> {
    pub(super) fn new(facts: &'w ProgramFacts) -> Garbage<'w> {
        Garbage {
            facts,
            last: None,
            filled: 0,
        }
    }
}

impl Observer for Garbage<'_> {
    fn before(&mut self, _: &Moment<'_, '_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn adjust(&mut self, at: usize, registers: &mut [u64; Reg::COUNT]) {
        let Some(last) = self.last.replace(at) else {
            return;
        };
        let fact = &self.facts.insns[last];
        if let (Some(false), Some((reg, _))) = (fact.needs_zero_extension, &fact.result) {
            self.filled += 1;
            registers[reg.index()] ^= 0xdead_beef_0000_0000;
        }
    }
}

/// Counts of facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FactCounts {
    /// Instructions.
    pub insns: u64,
    /// Those that are never reached.
    pub dead: u64,
    /// Conditional jumps that are reached.
    pub branches: u64,
    /// Those with one outcome.
    pub decided: u64,
    /// Loads, stores and atomic operations.
    pub accesses: u64,
    /// Those through one kind of pointer.
    pub of_one_kind: u64,
    /// Those at one offset, too.
    pub at_one_offset: u64,
    /// Operands that are numbers.
    pub numbers: u64,
    /// Those with a range.
    pub ranges: u64,
    /// Those that are constants.
    pub constants: u64,
    /// Writes that clear an upper half.
    pub zero_extensions: u64,
    /// Those whose upper half matters.
    pub needed: u64,
    /// Packet accesses.
    pub packet_accesses: u64,
    /// Those that one comparison proves.
    pub grouped: u64,
    /// Comparisons that prove accesses alone.
    pub groups: u64,
    /// Calls of helpers on a map that is known.
    pub map_calls: u64,
    /// Those with a key that is known.
    pub keys: u64,
}

impl AddAssign for FactCounts {
    fn add_assign(&mut self, other: FactCounts) {
        let FactCounts {
            insns,
            dead,
            branches,
            decided,
            accesses,
            of_one_kind,
            at_one_offset,
            numbers,
            ranges,
            constants,
            zero_extensions,
            needed,
            packet_accesses,
            grouped,
            groups,
            map_calls,
            keys,
        } = other;
        self.insns += insns;
        self.dead += dead;
        self.branches += branches;
        self.decided += decided;
        self.accesses += accesses;
        self.of_one_kind += of_one_kind;
        self.at_one_offset += at_one_offset;
        self.numbers += numbers;
        self.ranges += ranges;
        self.constants += constants;
        self.zero_extensions += zero_extensions;
        self.needed += needed;
        self.packet_accesses += packet_accesses;
        self.grouped += grouped;
        self.groups += groups;
        self.map_calls += map_calls;
        self.keys += keys;
    }
}

impl FactCounts {
    /// Adds the facts of a program.
    pub(super) fn add(&mut self, insns: &[Insn], facts: &ProgramFacts) {
        let count = |counter: &mut u64, holds: bool| *counter += u64::from(holds);
        for (insn, fact) in insns.iter().zip(&facts.insns) {
            if *insn == Insn::Imm64High {
                continue;
            }
            self.insns += 1;
            count(&mut self.dead, !fact.is_reached);
            count(&mut self.branches, fact.branch.is_some());
            count(
                &mut self.decided,
                matches!(fact.branch, Some(Branch::Always | Branch::Never)),
            );
            if let Some(access) = &fact.access {
                let pointer = access.pointer();
                self.accesses += 1;
                count(&mut self.of_one_kind, pointer.is_some());
                let constant = pointer.and_then(|pointer| pointer.offset.constant());
                count(&mut self.at_one_offset, constant.is_some());
                count(
                    &mut self.packet_accesses,
                    pointer.is_some_and(|pointer| pointer.kind == PointerKind::Packet),
                );
            }
            for (_, value) in &fact.operands {
                if let Value::Scalar(scalar) = value {
                    self.numbers += 1;
                    count(&mut self.ranges, !scalar.is_unknown());
                    count(&mut self.constants, scalar.is_const());
                }
            }
            count(
                &mut self.zero_extensions,
                fact.needs_zero_extension.is_some(),
            );
            count(&mut self.needed, fact.needs_zero_extension == Some(true));
            let call = fact.call.unwrap_or_default();
            count(&mut self.map_calls, call.map.is_some());
            count(&mut self.keys, call.key.is_some());
        }
        self.groups += facts.packet_checks.len() as u64;
        let accesses = facts.packet_checks.iter().map(|check| check.accesses.len());
        self.grouped += accesses.sum::<usize>() as u64;
    }
}

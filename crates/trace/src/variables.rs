//! The variables of a frame: which have a value that they did not have before.

use std::collections::BTreeSet;
use std::rc::Rc;

use btf::{Btf, Linkage, TypeId};
use interp::checked::Memory;
use isa::ebpf::{Reg, RegSet};
use program::{Program, Subprog};

use crate::dwarf::{
    Debug, Describe, Found, FramePiece, FrameState, Function, UNWRITTEN, ValueBytes,
};
use crate::frame::frame_bytes;
use crate::run::{SeenVariable, UnseenVariable};
use crate::signature::{declared, parameters, type_name, typed_text, used};

/// Why an argument is not shown.
pub(crate) const UNREAD: &str = "the function does not use it, so that callers need not pass it";
pub(crate) const DROPPED: &str = "the compiler may drop arguments of static functions, and without debug \
                       information it is not known which";

/// What is known of a function.
pub(crate) struct Facts<'p> {
    pub(crate) debug: Option<(&'p Debug, &'p Function)>,
    /// First slot of the function, and its name.
    pub(crate) start: u32,
    pub(crate) name: Rc<str>,
    /// Names and types of its parameters by BTF.
    pub(crate) parameters: Vec<(String, TypeId)>,
    /// What it returns by BTF.
    pub(crate) returns: Option<(&'p Btf<'static>, TypeId)>,
    /// True if the compiler leaves its parameters as they are, since others call it.
    pub(crate) is_global: bool,
    /// The registers of arguments that its instructions read: callers leave out what it does not use.
    used: RegSet,
    /// Bytes of the frame from the place that locations count from, if they are known.
    pub(crate) frame: Option<u64>,
    /// The pieces of each variable that is in the frame all the time.
    places: Vec<Vec<FramePiece>>,
}

impl<'p> Facts<'p> {
    pub(crate) fn new(
        debug: Option<&'p Debug>,
        program: &'p Program,
        subprog: Option<&'p Subprog>,
    ) -> Facts<'p> {
        let start = subprog.map_or(0, |subprog| subprog.start);
        let section = match start {
            0 => program.section(),
            _ => ".text",
        };
        let debug = debug.zip(subprog).and_then(|(debug, subprog)| {
            let function = debug.function(&subprog.name, section)?;
            Some((debug, function))
        });
        let frame = debug.and_then(|(debug, function)| {
            let most_align = debug.most_align.clamp(8, 512) as i64;
            frame_bytes(program, start, &debug.in_frame(function), most_align)
        });
        let places = debug.map_or_else(Vec::new, |(debug, function)| {
            let variables = function.variables.iter();
            variables
                .map(|variable| debug.pieces(function, variable))
                .collect()
        });
        let declared = declared(program, start);
        let linkage = declared.map(|(function, _)| function.linkage);
        Facts {
            debug,
            start,
            name: subprog.map_or("", |subprog| &subprog.name).into(),
            parameters: parameters(program, start),
            returns: program
                .btf()
                .map(|types| &**types)
                .zip(declared.map(|(_, proto)| proto.returns)),
            is_global: start == 0 || linkage == Some(Linkage::GLOBAL),
            used: used(program, start),
            frame,
            places,
        }
    }

    /// True if callers pass the argument in a register: programs and callbacks have all of theirs.
    pub(crate) fn is_passed(&self, register: u8, is_callback: bool) -> bool {
        let is_argument = (1..=5).contains(&register);
        let has_all = self.start == 0 || is_callback;
        has_all || !is_argument || Reg::new(register).is_some_and(|reg| self.used.contains(reg))
    }

    /// True if the object has debug information of the function.
    pub(crate) fn has_debug(&self) -> bool {
        self.debug.is_some()
    }
}

/// The variables of a frame.
pub(crate) struct Watch<'p> {
    pub(crate) facts: Rc<Facts<'p>>,
    /// The registers when the function was entered.
    entry: [u64; Reg::COUNT],
    /// Numbers of the lines that were executed.
    lines: BTreeSet<u32>,
    /// The last value of each variable, and its text.
    shown: Vec<Option<(ValueBytes, String)>>,
    /// The bytes of variables in the frame that were written.
    written: Vec<Vec<bool>>,
    /// Why a variable in scope had none.
    missing: Vec<Option<&'static str>>,
    /// True if a helper called the function, so that it has all its parameters.
    is_callback: bool,
}

impl<'p> Watch<'p> {
    pub(crate) fn new(
        facts: Rc<Facts<'p>>,
        entry: [u64; Reg::COUNT],
        is_callback: bool,
    ) -> Watch<'p> {
        let count = facts.places.len();
        Watch {
            shown: vec![None; count],
            written: vec![Vec::new(); count],
            missing: vec![None; count],
            ..Watch::unwatched(facts, entry, is_callback)
        }
    }

    /// The registers at its begin.
    pub(crate) fn entry(&self) -> &[u64; Reg::COUNT] {
        &self.entry
    }

    /// A frame whose variables are not watched until [`Watch::begin`].
    pub(crate) fn unwatched(
        facts: Rc<Facts<'p>>,
        entry: [u64; Reg::COUNT],
        is_callback: bool,
    ) -> Watch<'p> {
        Watch {
            facts,
            entry,
            lines: BTreeSet::new(),
            shown: Vec::new(),
            written: Vec::new(),
            missing: Vec::new(),
            is_callback,
        }
    }

    /// Notes that a line is executed.
    pub(crate) fn note_line(&mut self, number: u32) {
        self.lines.insert(number);
    }

    /// Notes that bytes of the frame may be written at a line; memory that variables share holds
    /// what others left until then.
    pub(crate) fn note_written(&mut self, address: u64, len: u64, slot: u32, line: Option<u32>) {
        let (Some((_, function)), Some(base)) = (self.facts.debug, self.frame_base()) else {
            return;
        };
        let slot = slot.saturating_sub(self.facts.start);
        for (index, pieces) in self.facts.places.iter().enumerate() {
            for piece in pieces {
                let start = base.wrapping_add_signed(piece.offset);
                let from = address.max(start);
                let to = address.saturating_add(len).min(start + piece.len);
                let variable = &function.variables[index];
                let is_declared = |(line, declared)| line >= declared;
                if from >= to
                    || !function.is_in_scope(variable, slot)
                    || !line.zip(variable.line).is_none_or(is_declared)
                {
                    continue;
                }
                let bytes =
                    (piece.start + from - start) as usize..(piece.start + to - start) as usize;
                let written = &mut self.written[index];
                if written.len() < bytes.end {
                    written.resize(bytes.end, false);
                }
                written[bytes].fill(true);
            }
        }
    }

    /// Notes that a function may write what an address points to.
    pub(crate) fn note_passed(&mut self, address: u64, slot: u32, line: Option<u32>) {
        let Some(base) = self.frame_base() else {
            return;
        };
        let pieces = self.facts.places.iter().flatten();
        let end = pieces
            .map(|piece| (base.wrapping_add_signed(piece.offset), piece.len))
            .find(|(start, len)| (*start..start + len).contains(&address))
            .map(|(start, len)| start + len);
        if let Some(end) = end {
            self.note_written(address, end - address, slot, line);
        }
    }

    /// Begins to watch in the middle of a function: any variable of the frame may have been written.
    pub(crate) fn begin(&mut self) {
        let count = self.facts.places.len();
        self.shown.resize(count, None);
        self.missing.resize(count, None);
        let written = self.facts.places.iter().map(|pieces| {
            let ends = pieces.iter().map(|piece| piece.start + piece.len);
            vec![true; ends.max().unwrap_or(0) as usize]
        });
        self.written = written.collect();
    }

    /// The address that locations count from.
    fn frame_base(&self) -> Option<u64> {
        Some(self.entry[Reg::R10.index()].wrapping_sub(self.facts.frame?))
    }

    /// Names of the functions that a slot is inlined from.
    pub(crate) fn inlined_at(&self, slot: u32) -> Vec<String> {
        let (_, function) = self.facts.debug.unzip();
        function.map_or_else(Vec::new, |function| {
            let inlined = function.inlined_at(slot.saturating_sub(self.facts.start));
            inlined.map(|(name, _)| name.to_owned()).collect()
        })
    }

    /// The variables whose values are new in front of a slot.
    pub(crate) fn changed(
        &mut self,
        slot: u32,
        registers: &[u64; Reg::COUNT],
        memory: &Memory<'_>,
        describe: &Describe<'_>,
    ) -> Vec<SeenVariable> {
        let Some((debug, function)) = self.facts.debug else {
            return Vec::new();
        };
        let slot = slot.saturating_sub(self.facts.start);
        let state = FrameState {
            registers,
            entry: &self.entry,
            frame_base: self.frame_base(),
            read: &|address, into| memory.peek(address, into),
            unwritten: &|address, len| memory.unwritten(address, len),
        };
        let mut changed = Vec::new();
        for (index, variable) in function.variables.iter().enumerate() {
            if !function.is_in_scope(variable, slot) {
                continue;
            }
            let is_parameter = variable.is_parameter && variable.within.is_none();
            let mut value = match debug.find(function, variable, slot, &state) {
                Found::Bytes {
                    register: Some(register),
                    ..
                } if is_parameter && !self.is_passed(register) => {
                    self.missing[index] = Some(UNREAD);
                    continue;
                }
                Found::Bytes { value, .. } => value,
                Found::Missing(why) => {
                    self.missing[index] = Some(why);
                    continue;
                }
            };
            self.hide_unwritten(index, &mut value);
            if !value.known.is_empty() && !value.known.contains(&true) {
                self.missing[index] = Some(UNWRITTEN);
                continue;
            }
            if let Some((before, _)) = &self.shown[index]
                && *before == value
            {
                continue;
            }
            let text = debug.show(variable, &value, describe);
            let is_new = self.shown[index]
                .as_ref()
                .is_none_or(|(_, before)| *before != text);
            if is_new {
                let start = self.facts.start;
                let slots = function.scope_slots(variable).into_iter();
                changed.push(SeenVariable {
                    name: variable.name.clone(),
                    kind: debug.type_name(variable),
                    value: text.clone(),
                    within: variable.within.clone(),
                    scope: slots
                        .map(|(first, last)| (first + start, last + start))
                        .collect(),
                });
            }
            self.shown[index] = Some((value, text));
        }
        changed
    }

    /// Hides the bytes of a variable in the frame that nothing was written to.
    fn hide_unwritten(&self, index: usize, value: &mut ValueBytes) {
        let written = &self.written[index];
        for piece in &self.facts.places[index] {
            for at in piece.start as usize..(piece.start + piece.len) as usize {
                if !written.get(at).copied().unwrap_or(false) && at < value.bytes.len() {
                    let len = value.bytes.len();
                    value.known.resize(len, true);
                    value.known[at] = false;
                    value.bytes[at] = 0;
                }
            }
        }
    }

    /// The variable that a register is at a slot; true if it is a pointer.
    pub(crate) fn name_of(&self, register: Reg, slot: u32) -> Option<(Rc<str>, bool)> {
        let (debug, function) = self.facts.debug?;
        let slot = slot.saturating_sub(self.facts.start);
        let mut variables = function.variables.iter();
        let found = variables.rfind(|variable| {
            function.is_in_register(variable, register.number(), slot)
                && function.is_in_scope(variable, slot)
        });
        found.map(|variable| (variable.name.as_str().into(), debug.is_pointer(variable)))
    }

    /// The variables that never had a value, where the path came by.
    pub(crate) fn unseen(&self) -> Vec<UnseenVariable> {
        let Some((_, function)) = self.facts.debug else {
            return self.unsure();
        };
        let variables = function
            .variables
            .iter()
            .zip(&self.shown)
            .zip(&self.missing);
        let unseen = variables.filter_map(|((variable, shown), missing)| {
            if Function::is_static(variable) {
                return None;
            }
            // One whose line was not reached has no value yet.
            let is_reached = variable.line.is_none_or(|line| self.lines.contains(&line));
            let is_told = shown.is_none()
                && (is_reached || variable.is_parameter || Function::is_gone(variable));
            let why = (*missing).filter(|_| is_told)?;
            let function = variable.within.as_deref().unwrap_or(&self.facts.name);
            Some(UnseenVariable {
                function: function.to_owned(),
                name: variable.name.clone(),
                why: why.to_owned(),
            })
        });
        unseen.collect()
    }

    /// True if callers pass the argument in a register.
    fn is_passed(&self, register: u8) -> bool {
        self.facts.is_passed(register, self.is_callback)
    }

    /// True if the arguments are those that BTF names.
    pub(crate) fn has_all_parameters(&self) -> bool {
        self.facts.is_global || self.is_callback
    }

    /// The arguments that are not known: of a static function, of which the compiler drops those that
    /// it does not need, without debug information.
    fn unsure(&self) -> Vec<UnseenVariable> {
        let parameters = self.facts.parameters.iter().zip(1..);
        let unsure = parameters.filter_map(|((name, _), register)| {
            let why = match self.has_all_parameters() {
                true if self.is_passed(register) => return None,
                true => UNREAD,
                false => DROPPED,
            };
            Some(UnseenVariable {
                function: self.facts.name.to_string(),
                name: name.clone(),
                why: why.to_owned(),
            })
        });
        unsure.collect()
    }

    /// The arguments of the function by BTF, for objects without debug information.
    pub(crate) fn arguments(
        &self,
        program: &Program,
        describe: &dyn Fn(u64) -> Option<String>,
    ) -> Vec<SeenVariable> {
        let types = program
            .btf()
            .filter(|_| self.facts.debug.is_none() && self.has_all_parameters());
        let Some(types) = types else {
            return Vec::new();
        };
        let parameters = self.facts.parameters.iter().zip(&self.entry[1..=5]);
        let passed = parameters
            .zip(1..)
            .filter(|(_, register)| self.is_passed(*register));
        let arguments = passed.map(|(((name, ty), number), _)| SeenVariable {
            name: name.clone(),
            kind: type_name(types, *ty),
            value: describe(*number)
                .or_else(|| typed_text(types, *ty, *number))
                .unwrap_or_else(|| format!("{number:#x}")),
            within: None,
            scope: Vec::new(),
        });
        arguments.collect()
    }
}

//! What is there where a run is stopped: frames, variables, registers, maps, memory, instructions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use btf::Btf;
use interp::checked::{Memory, MemoryPlace, Moment};
use isa::ebpf::{Callee, Insn, Reg};
use packet::{FirstHeader, HeaderField};
use spec::Kernel;
use spec::helpers::HelperId;
use trace::dwarf::Debug;
use trace::{CallStack, FrameAt, FunctionFacts, StackFrame, TypeRef, VariableAt};

use super::super::prepared::Prepared;
use super::super::recording::{RunMap, run_maps, value_on};
use super::super::shared::Shared;
use super::breakpoint::{BreakOptions, Breakpoint, Breakpoints, Resolver};
use super::known::Known;
use super::plan::{Position, Step, StepFrom, StopReason};
use super::source::{SourcePlace, Sources};
use super::state::{DebugState, Debugging, FunctionNames};
use super::value::{Node, Place, Row, Value};
use super::watch::{Watch, WatchPlace};
use super::{BadBreakpoint, BreakKind};

/// Bytes of the packet whose fields have names.
const NAMED_BYTES: u64 = 2048;

/// What a run is on, and its frames.
pub(in crate::internal::run) struct Scene<'r> {
    programs: &'r [Prepared],
    debug: Option<&'r Debug>,
    kernel: &'r Kernel,
    maps: Vec<RunMap<'r>>,
    cpu: u32,
    /// Number of the program of the session.
    main: u32,
    /// The run is that of a timer's function.
    pub(super) is_timer: bool,
    first: FirstHeader,
    pub(super) sources: Arc<Sources>,
    functions: Arc<FunctionNames>,
    known: Known,
    facts: RefCell<HashMap<(u32, u32), FunctionFacts<'r>>>,
    pub(super) stack: CallStack,
    /// Maps and keys of values that were looked up, by address.
    keys: HashMap<u64, (u32, Vec<u8>)>,
    /// The map and key of a lookup that has not returned.
    lookup: Option<(u32, Vec<u8>)>,
}

impl<'r> Scene<'r> {
    /// The scene of a run of a program; of the function of a timer.
    pub(in crate::internal::run) fn new(
        debugging: &Debugging<'r>,
        shared: &'r Shared,
        main: &Prepared,
        (cpu, is_timer): (u32, bool),
    ) -> Scene<'r> {
        let state: &DebugState = &debugging.state;
        Scene {
            programs: &shared.programs,
            debug: debugging.debug,
            kernel: debugging.kernel,
            maps: run_maps(shared),
            cpu,
            main: main.checked.number(),
            is_timer,
            first: match main.rules.has_link_header() {
                true => FirstHeader::Link,
                false => FirstHeader::Network,
            },
            sources: state.sources.clone(),
            functions: state.functions.clone(),
            known: state.known.clone(),
            facts: RefCell::default(),
            stack: CallStack::new(is_timer),
            keys: HashMap::new(),
            lookup: None,
        }
    }

    /// The CPU of the run.
    pub(super) fn cpu(&self) -> u32 {
        self.cpu
    }

    /// The program of the session.
    pub(super) fn main(&self) -> &'r Prepared {
        &self.programs[self.main as usize]
    }

    /// Follows calls, and keys of values that are looked up.
    #[inline]
    pub(super) fn follow(&mut self, moment: &Moment<'_, '_>, number: u64) {
        if self.lookup.is_some() {
            self.note_lookup(moment);
        }
        self.stack.follow(moment, number);
        if let Insn::Call(Callee::Helper(helper)) = &moment.program.insns()[moment.at]
            && LOOKUPS.contains(helper)
        {
            self.begin_lookup(moment);
        }
    }

    #[cold]
    fn begin_lookup(&mut self, moment: &Moment<'_, '_>) {
        let map = moment.memory.map_at(moment.registers[1]);
        let size = |map: &u32| self.maps.get(*map as usize).map(RunMap::key_size);
        self.lookup = map.and_then(|map| {
            let mut key = vec![0; size(&map)?];
            let is_read = moment.memory.peek(moment.registers[2], &mut key);
            is_read.then_some((map, key))
        });
    }

    #[cold]
    fn note_lookup(&mut self, moment: &Moment<'_, '_>) {
        let value = moment.registers[0];
        if let Some(found) = self.lookup.take()
            && value != 0
        {
            self.keys.insert(value, found);
        }
    }

    /// The number of the line of a moment; 0 for none.
    pub(super) fn line_number(&self, moment: &Moment<'_, '_>) -> u64 {
        let program = moment.program.number();
        self.sources.line_number(program, moment.at as u32)
    }

    /// The key of the value of a map that begins at an address, if it is known.
    pub(super) fn key_of(&self, map: u32, start: u64, memory: &Memory<'_>) -> Option<Vec<u8>> {
        if let Some((of, key)) = self.keys.get(&start)
            && *of == map
        {
            return Some(key.clone());
        }
        (memory.direct_value(map) == Some(start)).then(|| vec![0; 4])
    }

    /// The value of a key of a map.
    pub(super) fn lookup(&self, map: u32, key: &[u8]) -> Option<Vec<u8>> {
        value_on(self.maps.get(map as usize)?.map(), key, self.cpu)
    }

    pub(super) fn map_name(&self, map: u32) -> String {
        let map = self.maps.get(map as usize);
        map.map_or_else(|| "map".to_owned(), |map| map.name.clone())
    }

    pub(super) fn step_from(
        &self,
        step: Step,
        moment: &Moment<'_, '_>,
        position: Position,
    ) -> StepFrom {
        StepFrom {
            step,
            position,
            depth: moment.depth,
            entered: self.stack.top().map_or(0, |frame| frame.entered),
            line: self.line_number(moment),
        }
    }

    pub(super) fn view<'v, 'm>(
        &'v self,
        moment: &'v Moment<'v, 'm>,
        position: Position,
    ) -> View<'v, 'r, 'm> {
        View {
            scene: self,
            moment,
            position,
        }
    }

    fn facts(&self, program: u32, slot: u32) -> Option<FunctionFacts<'r>> {
        let prepared = self.programs.get(program as usize)?;
        let subprog = prepared.program.subprog_at(slot);
        let start = subprog.map_or(0, |subprog| subprog.start);
        let mut facts = self.facts.borrow_mut();
        let known = facts
            .entry((program, start))
            .or_insert_with(|| FunctionFacts::new(self.debug, &prepared.program, subprog));
        Some(known.clone())
    }

    fn types(&self) -> Option<&'r Btf<'static>> {
        let mut programs = self.programs.iter();
        let types = programs.find_map(|prepared| prepared.program.btf());
        types.map(|types| &**types)
    }
}

/// Helpers that return values of maps.
const LOOKUPS: [i32; 2] = [
    HelperId::MapLookupElem.number(),
    HelperId::MapLookupPercpuElem.number(),
];

/// A run that is stopped, for a front end.
pub struct Pause<'v, 'r, 'm> {
    /// What is there.
    pub view: View<'v, 'r, 'm>,
    /// The breakpoints of the session.
    pub breakpoints: &'v mut Breakpoints,
    /// Why it is stopped.
    pub reason: StopReason,
    /// True if going on ends the session.
    pub is_at_end: bool,
    /// The first packet of the session.
    pub first_packet: u64,
}

/// What is there at an instruction.
#[derive(Clone, Copy)]
pub struct View<'v, 'r, 'm> {
    pub(super) scene: &'v Scene<'r>,
    pub(super) moment: &'v Moment<'v, 'm>,
    pub(super) position: Position,
}

/// A frame, the innermost one being number 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// Its function, and those that are inlined there.
    pub name: String,
    /// The program.
    pub program: String,
    /// Number of the program, and slot: of a frame that called, that of the call.
    pub place: (u32, u32),
    /// The source line.
    pub source: Option<SourcePlace>,
}

/// A register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterRow {
    /// Its name.
    pub name: &'static str,
    /// Its number in hexadecimals, and what it is.
    pub text: String,
    /// What the verifier knew of it here; empty if it knew nothing.
    pub known: String,
    /// Its number.
    pub value: u64,
}

impl<'v, 'r, 'm> View<'v, 'r, 'm> {
    /// Where the run is.
    pub fn position(&self) -> Position {
        self.position
    }

    /// True if the function of a timer is run.
    pub fn is_timer(&self) -> bool {
        self.scene.is_timer
    }

    /// Number of the program that executes, and its slot.
    pub fn place(&self) -> (u32, u32) {
        (self.moment.program.number(), self.moment.at as u32)
    }

    /// Number of frames.
    pub fn depth(&self) -> usize {
        self.scene.stack.frames().len()
    }

    /// The frame of a number, and its slot.
    pub(super) fn frame(&self, number: usize) -> Option<(&'v StackFrame, u32)> {
        let frames = self.scene.stack.frames();
        let frame = frames.get(frames.len().checked_sub(number + 1)?)?;
        let slot = match number {
            0 => self.moment.at as u32,
            _ => frame.call.as_ref()?.slot,
        };
        Some((frame, slot))
    }

    /// The registers of a frame: of one that called, those in front of the call.
    pub(super) fn registers_of(&self, number: usize) -> Option<&'v [u64; Reg::COUNT]> {
        match number {
            0 => Some(self.moment.registers),
            _ => Some(&self.frame(number)?.0.call.as_ref()?.registers),
        }
    }

    /// The frames, the innermost one first.
    pub fn frames(&self) -> Vec<FrameRow> {
        let rows = (0..self.depth()).filter_map(|number| {
            let (frame, slot) = self.frame(number)?;
            let facts = self.scene.facts(frame.program, slot)?;
            let mut names = vec![facts.name().to_owned()];
            names.extend(facts.inlined_at(slot));
            names.reverse();
            let prepared = &self.scene.programs[frame.program as usize];
            Some(FrameRow {
                name: names.join(" in "),
                program: prepared.program.name().to_owned(),
                place: (frame.program, slot),
                source: self.scene.sources.place(frame.program, slot),
            })
        });
        rows.collect()
    }

    /// The variables in scope of a frame.
    pub(super) fn variables_of(&self, number: usize) -> Vec<VariableAt<'r>> {
        let found = || {
            let (frame, slot) = self.frame(number)?;
            let facts = self.scene.facts(frame.program, slot)?;
            let at = FrameAt {
                slot,
                registers: self.registers_of(number)?,
                entry: &frame.entry,
                is_callback: frame.is_callback,
            };
            Some(facts.variables_at(at, self.moment.memory))
        };
        found().unwrap_or_default()
    }

    /// The variables of a frame as rows: those of inlined functions first.
    pub fn variables(&self, number: usize) -> Vec<Row<'r>> {
        let mut rows: Vec<(bool, Row<'r>)> = Vec::new();
        for variable in self.variables_of(number) {
            let is_inlined = variable.within.is_some();
            rows.push((!is_inlined, self.row_of(&variable, number)));
        }
        rows.sort_by_key(|(is_own, _)| *is_own);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    pub(super) fn row_of(&self, variable: &VariableAt<'r>, number: usize) -> Row<'r> {
        let name = match &variable.within {
            Some(within) => format!("{} ({within})", variable.name),
            None => variable.name.clone(),
        };
        let kind = variable.kind.name();
        let node = match &variable.found {
            Ok(found) => Node::Value(Value {
                kind: Some(variable.kind),
                bytes: found.value.clone(),
                place: match (found.address, found.register) {
                    (Some(address), _) => Place::Memory(address),
                    (None, Some(register)) => Place::Register {
                        frame: number,
                        register,
                    },
                    (None, None) => Place::None,
                },
            }),
            Err(why) => Node::Absent((*why).to_owned()),
        };
        Row { name, kind, node }
    }

    /// Global variables of the object.
    pub fn globals(&self) -> Vec<Row<'r>> {
        let mut rows = Vec::new();
        for (number, map) in (0..).zip(&self.scene.maps) {
            let ty = map.def.params.value_type;
            let is_section = map.def.initial_value().is_some() && ty != btf::TypeId::VOID;
            let (Some(types), true) = (self.scene.types(), is_section) else {
                continue;
            };
            let key = vec![0; 4];
            let Some(value) = self.scene.lookup(number, &key) else {
                continue;
            };
            let section = Value {
                kind: Some(TypeRef::Btf(types, ty)),
                bytes: trace::dwarf::ValueBytes::known(value),
                place: Place::MapValue {
                    map: number,
                    key,
                    offset: 0,
                },
            };
            rows.extend(self.children(&Node::Value(section)));
        }
        rows
    }

    /// The registers of a frame, with what the verifier knew of them there.
    pub fn registers(&self, number: usize) -> Vec<RegisterRow> {
        let (Some((frame, slot)), Some(registers)) =
            (self.frame(number), self.registers_of(number))
        else {
            return Vec::new();
        };
        let prepared = &self.scene.programs[frame.program as usize];
        let known = self.scene.known.at(
            (frame.program, &prepared.program, slot),
            self.scene.kernel,
            registers,
        );
        let names = REGISTERS.into_iter();
        let rows = names
            .zip(registers)
            .zip(known)
            .map(|((name, value), known)| {
                let text = match self.describe(*value) {
                    Some(what) => format!("{value:#x} = {what}"),
                    None => super::value::register_text(*value),
                };
                RegisterRow {
                    name,
                    text,
                    known,
                    value: *value,
                }
            });
        rows.collect()
    }

    /// What an address is of.
    pub fn describe(&self, address: u64) -> Option<String> {
        let offset = |name: &str, offset: i64| match offset {
            0 => name.to_owned(),
            offset => format!("{name} {offset:+}"),
        };
        let memory = self.moment.memory;
        Some(match memory.place(address)? {
            MemoryPlace::Packet(at) => match memory.packet_bounds() {
                Some([_, data, end]) if address == end => format!("packet end ({})", end - data),
                _ => format!("&packet[{at}]"),
            },
            MemoryPlace::Context(at) => offset("&ctx", at as i64),
            MemoryPlace::Stack { frame, below } => {
                let inner = self.depth().checked_sub(frame + 1)?;
                let base = offset("fp", -(below as i64));
                match inner {
                    0 => base,
                    number => format!("{base} of frame {number}"),
                }
            }
            MemoryPlace::Value {
                map,
                start,
                offset: at,
                is_key,
                ..
            } => {
                let name = self.scene.map_name(map);
                let place = match (is_key, self.scene.key_of(map, start, memory)) {
                    (true, _) => format!("key of {name}"),
                    (false, Some(key)) => format!("&{name}[{}]", self.key_text(map, &key)),
                    (false, None) => format!("value of {name}"),
                };
                offset(&place, at as i64)
            }
            MemoryPlace::Map(map) => format!("&{}", self.scene.map_name(map)),
            MemoryPlace::Function(slot) => {
                let program = &self.scene.programs[self.moment.program.number() as usize].program;
                let subprog = program.subprog_at(slot as u32);
                subprog
                    .filter(|subprog| subprog.start == slot as u32)?
                    .name
                    .clone()
            }
            MemoryPlace::Region { name, offset: at } => offset(&format!("&{name}"), at as i64),
        })
    }

    /// The maps of the run, by number.
    pub(super) fn maps(&self) -> &'v [RunMap<'r>] {
        &self.scene.maps
    }

    pub(super) fn types(&self) -> Option<&'r Btf<'static>> {
        self.scene.types()
    }

    /// Number and name of the programs.
    pub fn programs(&self) -> Vec<String> {
        let programs = self.scene.programs.iter();
        programs
            .map(|prepared| prepared.program.name().to_owned())
            .collect()
    }

    /// The source place of an instruction.
    pub fn source(&self, (program, slot): (u32, u32)) -> Option<SourcePlace> {
        self.scene.sources.place(program, slot)
    }

    pub(super) fn sources(&self) -> &'v Sources {
        &self.scene.sources
    }

    /// Instructions of a program from a slot on: slot, bytes and text.
    pub fn instructions(
        &self,
        program: u32,
        from: u32,
        count: usize,
    ) -> Vec<(u32, String, String)> {
        let Some(prepared) = self.scene.programs.get(program as usize) else {
            return Vec::new();
        };
        let insns = prepared.checked.insns().iter().zip(0..).skip(from as usize);
        let raw = prepared.program.insns();
        let rows = insns.take(count).map(|(insn, slot): (&Insn, u32)| {
            let bytes = raw.get(slot as usize);
            let bytes = bytes.map(|insn| super::value::bytes_text(&insn.to_le_bytes()));
            let text = match insn {
                Insn::Imm64High => String::new(),
                Insn::Call(Callee::Helper(number)) => match self.scene.functions.get(number) {
                    Some((name, _)) => format!("call {name}"),
                    None => insn.to_string(),
                },
                Insn::Call(Callee::Local(off)) => {
                    let to = slot.wrapping_add_signed(1 + *off);
                    match prepared.program.subprog_at(to) {
                        Some(subprog) => format!("call {}", subprog.name),
                        None => insn.to_string(),
                    }
                }
                insn => insn.to_string(),
            };
            (slot, bytes.unwrap_or_default(), text)
        });
        rows.collect()
    }

    /// The fields of the packet's headers with their values.
    pub(super) fn packet_fields(&self) -> Vec<(HeaderField, String, u64)> {
        let Some([_, data, end]) = self.moment.memory.packet_bounds() else {
            return Vec::new();
        };
        let mut bytes = vec![0; (end - data).min(NAMED_BYTES) as usize];
        self.moment.memory.peek(data, &mut bytes);
        let fields = packet::fields(&bytes, self.scene.first).into_iter();
        let fields = fields.map(|field| {
            let text = field.text(&bytes[field.range()]);
            (field, text, data + field.start as u64)
        });
        fields.collect()
    }

    /// The bytes of the packet.
    pub fn packet(&self) -> Option<Vec<u8>> {
        let [_, data, end] = self.moment.memory.packet_bounds()?;
        self.memory(data, (end - data) as usize)
    }

    /// The address of the first byte of the packet.
    pub(super) fn packet_start(&self) -> Option<u64> {
        self.moment.memory.packet_bounds().map(|[_, data, _]| data)
    }

    /// The program and the slots of the function of a frame, and the frame's slot.
    pub(super) fn function_of(&self, number: usize) -> Option<(u32, Range<u32>, u32)> {
        let (frame, slot) = self.frame(number)?;
        let program = &self.scene.programs[frame.program as usize].program;
        let start = program.subprog_at(slot).map_or(0, |subprog| subprog.start);
        let mut starts = program.subprogs().iter().map(|subprog| subprog.start);
        let end = starts.find(|other| *other > start);
        let end = end.unwrap_or(program.insns().len() as u32);
        Some((frame.program, start..end, slot))
    }

    /// Bytes at an address.
    pub fn memory(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len.min(1 << 20)];
        self.moment
            .memory
            .peek(address, &mut bytes)
            .then_some(bytes)
    }

    /// The bytes at an address, as a value without a type.
    pub(super) fn at(&self, address: u64, len: usize) -> Result<Value<'r>, String> {
        let bytes = self.memory(address, len);
        let bytes = bytes.ok_or_else(|| format!("no memory is at {address:#x}"))?;
        Ok(Value {
            kind: None,
            bytes: trace::dwarf::ValueBytes::known(bytes),
            place: Place::Memory(address),
        })
    }

    /// A watch of what an expression is of.
    ///
    /// # Errors
    /// In words, for what is not there or has no place.
    pub fn watch_of(&self, frame: usize, expression: &str) -> Result<Watch, String> {
        let value = match self.evaluate_node(frame, expression)? {
            Node::Text(_, Some((address, len))) => self.at(address, len)?,
            _ => self.evaluate(frame, expression)?,
        };
        self.watch(expression, &value)
    }

    /// A watch of a value.
    ///
    /// # Errors
    /// In words, for values without a place.
    pub(super) fn watch(&self, name: &str, value: &Value<'_>) -> Result<Watch, String> {
        let packet = self.position.packet;
        let len = value.bytes.bytes.len().max(1);
        let place = match &value.place {
            Place::None => {
                return Err(format!(
                    "{name} is computed or a constant: nothing writes it"
                ));
            }
            Place::Register { frame, register } => {
                let (of, _) = self.frame(*frame).ok_or("the frame is gone")?;
                WatchPlace::Register {
                    packet,
                    depth: self.depth() - 1 - frame,
                    entered: of.entered,
                    register: *register,
                }
            }
            Place::MapValue { map, key, offset } => WatchPlace::MapValue {
                map: *map,
                key: key.clone(),
                offset: *offset,
                len,
            },
            Place::Memory(address) => match self.moment.memory.place(*address) {
                None => return Err(format!("no memory is at {address:#x}")),
                Some(MemoryPlace::Packet(offset)) => WatchPlace::Packet {
                    packet,
                    offset,
                    len,
                },
                Some(MemoryPlace::Value {
                    map,
                    start,
                    offset,
                    is_key: false,
                    ..
                }) if self.scene.key_of(map, start, self.moment.memory).is_some() => {
                    let key = self.scene.key_of(map, start, self.moment.memory);
                    WatchPlace::MapValue {
                        map,
                        key: key.unwrap_or_default(),
                        offset: offset as usize,
                        len,
                    }
                }
                Some(MemoryPlace::Stack { frame, .. }) => {
                    let of = self.scene.stack.frames().get(frame);
                    WatchPlace::Memory {
                        packet,
                        address: *address,
                        len,
                        frame: of.map(|of| (frame, of.entered)),
                    }
                }
                Some(
                    MemoryPlace::Context(_)
                    | MemoryPlace::Value { .. }
                    | MemoryPlace::Map(_)
                    | MemoryPlace::Function(_)
                    | MemoryPlace::Region { .. },
                ) => WatchPlace::Memory {
                    packet,
                    address: *address,
                    len,
                    frame: None,
                },
            },
        };
        Ok(Watch {
            name: name.to_owned(),
            place,
        })
    }

    /// Sets a breakpoint.
    pub(super) fn set_breakpoint<'b>(
        &self,
        breakpoints: &'b mut Breakpoints,
        kind: BreakKind,
        options: BreakOptions,
    ) -> Result<&'b Breakpoint, BadBreakpoint> {
        self.resolved(|resolver| breakpoints.add(kind, options, resolver))
    }

    /// The kind of breakpoint that a word means.
    pub(super) fn break_kind(&self, word: &str) -> Result<BreakKind, String> {
        self.resolved(|resolver| resolver.kind_of(word))
    }

    fn resolved<T>(&self, with: impl FnOnce(Resolver<'_>) -> T) -> T {
        let scene = self.scene;
        let maps = || scene.maps.iter().map(|map| map.name.clone()).collect();
        let inlined = |name: &str| {
            let mut places = Vec::new();
            for (number, prepared) in (0..).zip(scene.programs) {
                for subprog in prepared.program.subprogs() {
                    let facts = scene.facts(number, subprog.start);
                    let starts = facts.map_or_else(Vec::new, |facts| facts.inlined_starts(name));
                    places.extend(starts.into_iter().map(|slot| (number, slot)));
                }
            }
            places
        };
        with(Resolver {
            programs: scene.programs,
            sources: &scene.sources,
            functions: &scene.functions,
            main: scene.main,
            maps: &maps,
            inlined: &inlined,
        })
    }

    /// The text of a message: expressions in braces are replaced by their values.
    pub(super) fn message(&self, message: &str) -> String {
        let (mut text, mut rest) = (String::new(), message);
        while let Some((before, behind)) = rest.split_once('{') {
            text.push_str(before);
            let Some((expression, behind)) = behind.split_once('}') else {
                text.push('{');
                rest = behind;
                continue;
            };
            match self.evaluate(0, expression) {
                Ok(value) => text.push_str(&self.text(&value)),
                Err(why) => text.push_str(&format!("<{why}>")),
            }
            rest = behind;
        }
        text.push_str(rest);
        text
    }
}

/// Names of the registers.
pub(super) const REGISTERS: [&str; Reg::COUNT] = [
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10",
];

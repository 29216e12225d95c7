//! What is there where a run is stopped: frames, variables, registers, maps, memory, instructions.

use btf::Btf;
use interp::checked::{MemoryPlace, Moment};
use isa::ebpf::Reg;
use packet::HeaderField;
use trace::dwarf::PieceAt;
use trace::{FrameAt, StackFrame, VariableAt, VariableType};

use super::super::recording::RunMap;
use super::breakpoint::{Breakpoints, MessagePart, parts};
use super::int_type::IntType;
use super::places::ValuePlace;
use super::plan::{Position, StopReason};
use super::scene::Scene;
use super::source::{SourcePlace, Sources};
use super::value::{DebugValue, TreeNode, TreeRow};

/// Bytes of the packet whose fields have names.
const NAMED_BYTES: u64 = 2048;

/// A run that is stopped, for a front end.
pub struct Pause<'v, 'r, 'm> {
    /// What is there.
    pub view: View<'v, 'r, 'm>,
    /// The breakpoints of the session.
    pub breakpoints: &'v mut Breakpoints,
    /// Why it is stopped.
    pub reason: StopReason,
    /// True at the end of the input.
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
    /// Its function.
    pub name: String,
    /// True if the function is inlined into that of the next frame.
    pub is_inlined: bool,
    /// The program.
    pub program: String,
    /// Number of the program, and slot: of a frame that called, that of the call.
    pub place: (u32, u32),
    /// The source line.
    pub source: Option<SourcePlace>,
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

    /// Number of frames, those of inlined functions among them.
    pub fn depth(&self) -> usize {
        self.rows().len()
    }

    /// The frames as people see them, the innermost one first: the number of the frame of the run, and
    /// of the functions that are inlined there down to it.
    fn rows(&self) -> Vec<(usize, usize)> {
        let frames = 0..self.scene.stack.frames().len();
        let rows = frames.flat_map(|number| {
            let inlined = self.inlined_into(number).len();
            (0..=inlined).rev().map(move |level| (number, level))
        });
        rows.collect()
    }

    /// The functions that are inlined where a frame of the run is, the outermost first, and the lines
    /// of their calls.
    fn inlined_into(&self, number: usize) -> Vec<(&'r str, Option<u32>)> {
        let found = || {
            let (frame, slot) = self.frame(number)?;
            Some(self.scene.facts(frame.program, slot)?.inlined_at(slot))
        };
        found().unwrap_or_default()
    }

    /// The number of the frame of a function at a depth.
    pub(super) fn row_at(&self, depth: usize) -> usize {
        let number = self.scene.stack.frames().len().checked_sub(depth + 1);
        let mut rows = self.rows().into_iter();
        let row = number.and_then(|number| rows.position(|row| row == (number, 0)));
        row.unwrap_or(0)
    }

    /// The frame of the run that a frame is of.
    pub(super) fn physical(&self, number: usize) -> usize {
        let rows = self.rows();
        rows.get(number).map_or(usize::MAX, |(number, _)| *number)
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
        let rows = self.rows().into_iter().filter_map(|(number, level)| {
            let (frame, slot) = self.frame(number)?;
            let facts = self.scene.facts(frame.program, slot)?;
            let inlined = facts.inlined_at(slot);
            let name = match level.checked_sub(1) {
                Some(last) => inlined[last].0.to_owned(),
                None => facts.name().to_owned(),
            };
            let place = self.scene.sources.place(frame.program, slot);
            // Of a function that another one is inlined into, the line of that call.
            let source = match inlined.get(level) {
                Some((_, line)) => line.zip(place).map(|(line, place)| SourcePlace {
                    text: self.scene.sources.line_text(&place.file, line),
                    column: 0,
                    line,
                    ..place
                }),
                None => place,
            };
            Some(FrameRow {
                name,
                is_inlined: level > 0,
                program: self.scene.programs[frame.program as usize]
                    .program
                    .name()
                    .to_owned(),
                place: (frame.program, slot),
                source,
            })
        });
        rows.collect()
    }

    /// The variables in scope of a frame.
    pub(super) fn variables_of(&self, number: usize) -> Vec<VariableAt<'r>> {
        let found = || {
            let (number, level) = *self.rows().get(number)?;
            let (frame, slot) = self.frame(number)?;
            let facts = self.scene.facts(frame.program, slot)?;
            let at = FrameAt {
                slot,
                registers: self.registers_of(number)?,
                entry: &frame.entry,
                is_callback: frame.is_callback,
            };
            let inlined = facts.inlined_at(slot);
            let within = level.checked_sub(1).map(|last| inlined[last].0);
            let mut variables = facts.variables_at(at, self.moment.memory);
            variables.retain(|variable| variable.within.as_deref() == within);
            Some(variables)
        };
        found().unwrap_or_default()
    }

    /// The variables of a frame as rows.
    pub fn variables(&self, number: usize) -> Vec<TreeRow<'r>> {
        let physical = self.physical(number);
        let variables = self.variables_of(number).into_iter();
        variables.map(|it| self.row_of(&it, physical)).collect()
    }

    /// A variable of a frame of the run as a row.
    pub(super) fn row_of(&self, variable: &VariableAt<'r>, number: usize) -> TreeRow<'r> {
        let in_register = |register| ValuePlace::Register {
            frame: number,
            register,
        };
        let node = match &variable.found {
            Ok(found) => TreeNode::Value(DebugValue {
                kind: Some(variable.kind),
                bytes: found.value.clone(),
                place: match (found.address, found.register, &found.pieces[..]) {
                    (Some(address), ..) => ValuePlace::Memory(address),
                    (None, Some(register), _) => in_register(register),
                    (None, None, []) => ValuePlace::None,
                    (None, None, pieces) => {
                        let pieces = pieces.iter().map(|piece| {
                            let place = match piece.at {
                                PieceAt::Register(register) => in_register(register),
                                PieceAt::Memory(address) => ValuePlace::Memory(address),
                            };
                            (piece.start, piece.len, place)
                        });
                        ValuePlace::Pieces(pieces.collect())
                    }
                },
                ..DebugValue::number(0, IntType::INT)
            }),
            Err(why) => TreeNode::Absent((*why).to_owned()),
        };
        TreeRow {
            name: variable.name.clone(),
            kind: variable.kind.name(),
            node,
        }
    }

    /// Global variables of the object.
    pub fn globals(&self) -> Vec<TreeRow<'r>> {
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
            let section = DebugValue {
                kind: Some(VariableType::Btf(types, ty)),
                bytes: trace::dwarf::ValueBytes::known(value),
                place: ValuePlace::MapValue {
                    map: number,
                    key,
                    offset: 0,
                },
                ..DebugValue::number(0, IntType::INT)
            };
            rows.extend(self.children(&TreeNode::Value(section)));
        }
        rows
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
                let inner = self.scene.stack.frames().len().checked_sub(frame + 1)?;
                let base = offset("fp", -(below as i64));
                let row = self.rows().iter().position(|row| *row == (inner, 0));
                match (inner, row) {
                    (0, _) | (_, None) => base,
                    (_, Some(number)) => format!("{base} of frame {number}"),
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

    /// The bytes at an address, as far as they go.
    pub(super) fn memory_up_to(&self, address: u64, len: usize) -> Vec<u8> {
        let (mut there, mut beyond) = (0, len + 1);
        while beyond - there > 1 {
            let middle = there + (beyond - there) / 2;
            match self.memory(address, middle) {
                Some(_) => there = middle,
                None => beyond = middle,
            }
        }
        self.memory(address, there).unwrap_or_default()
    }

    /// Bytes at an address.
    pub fn memory(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len.min(1 << 20)];
        self.moment
            .memory
            .peek(address, &mut bytes)
            .then_some(bytes)
    }

    /// The text of a message.
    pub(super) fn message(&self, message: &str) -> String {
        let texts = parts(message).into_iter().map(|part| match part {
            MessagePart::Text(text) => text.to_owned(),
            MessagePart::Expression(text) => match self.evaluate_node(0, text) {
                Ok(node) => self.node_text(&node),
                Err(why) => format!("<{why}>"),
            },
        });
        texts.collect()
    }
}

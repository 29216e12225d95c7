//! Values: what they are and where they come from.

use btf::{Shape, TypeId};
use interp::checked::{Memory, MemoryPlace, Moment};
use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Size, Width, eval};
use packet::fields;

use super::Recorder;
use crate::member::member_path;
use crate::origin::Origin;
use crate::run::{NamedValue, TraceEvent};
use crate::signature::typed_text;

/// Bytes of the packet whose fields have names.
const NAMED_BYTES: u64 = 2048;

/// The text of a pointer to nothing.
pub(super) const NULL: &str = "NULL";

/// The bytes that an instruction accesses.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) address: u64,
    pub(super) len: usize,
}

impl Recorder<'_> {
    /// Notes what an instruction is about to do.
    pub(super) fn note(&mut self, moment: &Moment<'_, '_>) {
        let insn = moment.insn();
        match insn {
            Insn::Jump {
                cond,
                width,
                dst,
                src,
                off,
            } => self.note_branch(moment, (cond, width), dst, src, off),
            Insn::Call(_) | Insn::CallReg { .. } => {
                for address in &moment.registers[1..=5] {
                    self.note_stack_write(*address, None, moment);
                }
                self.note_call(moment);
            }
            Insn::Exit => {
                let mut value = self.value_of(Reg::R0, Width::W64, moment);
                let frame = self.frames.last();
                let returns = frame.and_then(|frame| frame.watch.facts.returns);
                let typed = returns.and_then(|(types, ty)| typed_text(types, ty, value.number));
                if let Some(text) = typed {
                    value.text = text;
                }
                self.add(TraceEvent::Return { value });
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let access = access(moment, base, off, size);
                self.note_write(access, moment);
                self.spill(access, src, moment);
            }
            Insn::StoreRelease {
                size, base, off, ..
            }
            | Insn::Atomic {
                size, base, off, ..
            } => self.note_write(access(moment, base, off, size), moment),
            _ => {}
        }
        self.follow_value(moment, insn);
    }

    /// Notes that bytes of the stack are written; without their number a function may do so.
    pub(super) fn note_stack_write(
        &mut self,
        address: u64,
        len: Option<u64>,
        moment: &Moment<'_, '_>,
    ) {
        let has_places = self
            .frames
            .iter()
            .any(|frame| frame.watch.facts.has_debug());
        if !has_places
            || !matches!(
                moment.memory.place(address),
                Some(MemoryPlace::Stack { .. })
            )
        {
            return;
        }
        let slot = moment.at as u32;
        let traced = self.programs.get(moment.program.number() as usize);
        let line = traced.and_then(|traced| traced.program.line_at(slot));
        let line = line.map(|line| line.line);
        for frame in &mut self.frames {
            match len {
                Some(len) => frame.watch.note_written(address, len, slot, line),
                None => frame.watch.note_passed(address, slot, line),
            }
        }
    }

    fn note_branch(
        &mut self,
        moment: &Moment<'_, '_>,
        (cond, width): (Cond, Width),
        dst: Reg,
        src: Operand,
        off: i16,
    ) {
        let mut left = self.value_of(dst, width, moment);
        let mut right = match src {
            Operand::Reg(src) => self.value_of(src, width, moment),
            Operand::Imm(imm) => {
                let number = masked(imm as i64 as u64, width);
                let text = number_text(number, width);
                NamedValue {
                    number,
                    name: None,
                    text,
                }
            }
        };
        // Fields of the packet and the constants beside them are read in the order of the network.
        if let (Operand::Imm(imm), Some(field)) = (src, self.field_of(dst)) {
            let of = |number: u64| number.to_le_bytes()[..field.len.min(8)].to_vec();
            // What is larger depends on the order.
            let is_order = !matches!(cond, Cond::Eq | Cond::Ne | Cond::Set);
            match is_order && field.len > 1 {
                true => {
                    let (number, other) = (left.number, masked(imm as i64 as u64, width));
                    (left.text, right.text) =
                        (format!("{number:#x} as loaded"), format!("{other:#x}"));
                }
                false => {
                    left.text = field.text(&of(left.number));
                    right.text = field.text(&of(imm as i64 as u64));
                }
            }
        }
        let is_pointer =
            left.text == NULL || left.text.starts_with("value of ") || left.text.starts_with('&');
        if is_pointer && src == Operand::Imm(0) {
            right.text = NULL.to_owned();
        }
        let operand = eval::operand(src, moment.registers);
        let holds = eval::compare(cond, width, moment.registers[dst.index()], operand);
        let next = moment.at as u32 + 1;
        let to = if holds {
            next.wrapping_add_signed(off.into())
        } else {
            next
        };
        let insn = moment.at as u32;
        self.add(TraceEvent::Branch {
            insn,
            left,
            cond,
            width,
            right,
            holds,
            to,
        });
    }

    /// The field that a register is as it is in the packet.
    fn field_of(&self, register: Reg) -> Option<packet::HeaderField> {
        let frame = self.frames.last()?;
        frame.origins[register.index()].as_ref()?.field
    }

    /// A register, with the name of what it is.
    pub(super) fn value_of(
        &self,
        register: Reg,
        width: Width,
        moment: &Moment<'_, '_>,
    ) -> NamedValue {
        let number = masked(moment.registers[register.index()], width);
        let pointer = (width == Width::W64).then(|| self.pointer_text(number, moment.memory));
        let pointer = pointer.flatten();
        let is_address = pointer.is_some();
        let frame = self.frames.last();
        let slot = moment.at as u32;
        let variable = frame.and_then(|frame| frame.watch.name_of(register, slot));
        let origin = frame.and_then(|frame| frame.origins[register.index()].as_ref());
        // The place of a computed address says more than how it was computed.
        let named = origin.filter(|origin| !is_address || !origin.name.starts_with('('));
        let (name, is_pointer) = match (&variable, named) {
            (Some((name, is_pointer)), _) => (Some(name.to_string()), *is_pointer),
            (None, Some(origin)) => (Some(origin.name.to_string()), origin.is_pointer),
            (None, None) => (None, false),
        };
        let text = match pointer {
            None if number == 0 && is_pointer => NULL.to_owned(),
            None => number_text(number, width),
            Some(pointer) => pointer,
        };
        NamedValue { number, name, text }
    }

    /// What a number points to; `None` for one that is no address.
    pub(super) fn pointer_text(&self, number: u64, memory: &Memory<'_>) -> Option<String> {
        let map = |index| self.host.map(index).map_or("map", |map| map.name);
        let behind = |offset: u64| match offset {
            0 => String::new(),
            offset => format!(" + {offset}"),
        };
        Some(match memory.place(number)? {
            MemoryPlace::Packet(offset) => format!("packet[{offset}]"),
            MemoryPlace::Context(offset) => format!("&ctx{}", behind(offset)),
            MemoryPlace::Stack { below, .. } => format!("stack - {below}"),
            MemoryPlace::Value {
                map: index,
                offset,
                is_key,
                ..
            } => {
                let what = if is_key { "key" } else { "value" };
                format!("{what} of {}{}", map(index), behind(offset))
            }
            MemoryPlace::Map(index) => format!("&{}", map(index)),
            MemoryPlace::Function(slot) => {
                let line = self.line.as_ref()?;
                let traced = self.programs.get(line.program as usize)?;
                let mut functions = traced.program.subprogs().iter();
                let function = functions.find(|function| function.start as usize == slot)?;
                function.name.clone()
            }
            MemoryPlace::Region { name, offset } => match memory.given_member(number, 0) {
                Some(member) if offset > 0 => format!("&{member}"),
                _ => format!("{name}{}", behind(offset)),
            },
        })
    }

    /// Keeps track of where the registers come from that an instruction changes.
    fn follow_value(&mut self, moment: &Moment<'_, '_>, insn: Insn) {
        let loaded = match insn {
            Insn::Load {
                size, base, off, ..
            }
            | Insn::LoadAcquire {
                size, base, off, ..
            } => self.origin_of(access(moment, base, off, size), moment),
            _ => None,
        };
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let origins = &mut frame.origins;
        match insn {
            Insn::Load { dst, .. } | Insn::LoadAcquire { dst, .. } => origins[dst.index()] = loaded,
            Insn::Alu {
                op: AluOp::Mov,
                dst,
                src,
                ..
            } => {
                origins[dst.index()] = match src {
                    Operand::Reg(src) => origins[src.index()].clone(),
                    Operand::Imm(_) => None,
                };
            }
            Insn::Alu { op, dst, src, .. } => {
                let origin = origins[dst.index()].as_ref();
                origins[dst.index()] = match src {
                    Operand::Imm(imm) => origin.and_then(|origin| origin.after(op, imm.into())),
                    Operand::Reg(src) => match origins[src.index()].as_ref() {
                        Some(other) => origin.and_then(|origin| origin.with(op, other)),
                        None => {
                            let constant = moment.registers[src.index()] as i64;
                            origin.and_then(|origin| origin.after(op, constant))
                        }
                    },
                };
            }
            Insn::MovSx { dst, src, .. } => {
                origins[dst.index()] = origins[src.index()].clone();
            }
            // In the order of the host, it is the same number that people read.
            Insn::Endian { dst, .. } => {
                if let Some(origin) = &mut origins[dst.index()] {
                    origin.field = None;
                }
            }
            Insn::Neg { dst, .. } | Insn::Cast { dst, .. } | Insn::LoadImm64 { dst, .. } => {
                origins[dst.index()] = None;
            }
            Insn::PacketAbs { .. } | Insn::PacketInd { .. } | Insn::Atomic { .. } => {
                origins[0] = None;
            }
            Insn::Call(_) | Insn::CallReg { .. } => {
                origins[..=5].fill(None);
            }
            _ => {}
        }
    }

    /// Where bytes come from that are loaded.
    fn origin_of(&mut self, access: Access, moment: &Moment<'_, '_>) -> Option<Origin> {
        let memory = moment.memory;
        match memory.place(access.address)? {
            MemoryPlace::Packet(offset) => {
                let start = usize::try_from(offset).ok()?;
                let (name, field) = self.packet_name(start, access.len, memory);
                Some(Origin {
                    field,
                    ..Origin::named(name)
                })
            }
            MemoryPlace::Context(offset) => {
                let (name, _) = self.context_name(offset, access.len, moment)?;
                Some(Origin::named(name))
            }
            MemoryPlace::Value {
                map,
                offset,
                is_key: false,
                ..
            } => Some(Origin::named(self.value_name(map, offset, access.len).0)),
            MemoryPlace::Stack { .. } => {
                let (number, origin) = self.spilled.get(&access.address)?;
                let mut bytes = [0; 8];
                memory.peek(access.address, &mut bytes[..access.len]);
                let is_it = u64::from_le_bytes(bytes) == *number;
                is_it.then(|| origin.clone())
            }
            MemoryPlace::Region { .. } => match self.given_context_name(access, moment) {
                Some((name, _)) => Some(Origin::named(name)),
                None => Some(Origin::named(
                    memory.given_member(access.address, access.len)?,
                )),
            },
            MemoryPlace::Value { .. } | MemoryPlace::Map(_) | MemoryPlace::Function(_) => None,
        }
    }

    /// The name of bytes of the context by the type of the first parameter, and their type.
    pub(super) fn context_name(
        &self,
        offset: u64,
        len: usize,
        moment: &Moment<'_, '_>,
    ) -> Option<(String, TypeId)> {
        let frame = self.frames.first()?;
        let traced = self.programs.get(moment.program.number() as usize)?;
        let types = traced.program.btf()?;
        let (name, ty) = frame.watch.facts.parameters.first()?;
        let name = if name.is_empty() { "ctx" } else { name };
        let Shape::Ptr(target) = types.get(types.skip_modifiers(*ty)?)?.shape() else {
            return None;
        };
        let (path, ty) = member_path(types, target, offset, len as u64)?;
        Some((format!("{name}->{}", path.trim_start_matches('.')), ty))
    }

    /// The name of bytes of a context that a test gives, which is a structure, and their type.
    pub(super) fn given_context_name(
        &self,
        access: Access,
        moment: &Moment<'_, '_>,
    ) -> Option<(String, TypeId)> {
        let context = self.frames.first()?.watch.entry()[1];
        let member = moment.memory.given_member(access.address, access.len)?;
        // Arguments have names of their own.
        let offset = access.address.checked_sub(context)?;
        let is_structure = member.contains('.') && !member.starts_with('@');
        self.context_name(offset, access.len, moment)
            .filter(|_| is_structure)
    }

    /// The name of bytes of the packet, and the field that they are.
    pub(super) fn packet_name(
        &mut self,
        start: usize,
        len: usize,
        memory: &Memory<'_>,
    ) -> (String, Option<packet::HeaderField>) {
        let Some([_, data, end]) = memory.packet_bounds() else {
            return ("packet".to_owned(), None);
        };
        if self.fields.as_ref().is_none_or(|(of, _)| *of != data) {
            let mut bytes = vec![0; (end - data).min(NAMED_BYTES) as usize];
            memory.peek(data, &mut bytes);
            self.fields = Some((data, fields(&bytes, self.first)));
        }
        let fields = self.fields.iter().flat_map(|(_, fields)| fields);
        let mut holding =
            fields.filter(|field| field.start <= start && start < field.start + field.len);
        match holding.next() {
            Some(field) if (field.start, field.len) == (start, len) => (field.path(), Some(*field)),
            Some(field) if start + len <= field.start + field.len && !field.name.is_empty() => {
                (format!("{}[{}]", field.path(), start - field.start), None)
            }
            _ => (format!("packet[{start}..{}]", start + len), None),
        }
    }

    /// The name of bytes of a value of a map, and their type.
    pub(super) fn value_name(&self, map: u32, offset: u64, len: usize) -> (String, TypeId) {
        let Some(map) = self.host.map(map) else {
            return ("map".to_owned(), TypeId::VOID);
        };
        let found = map.value.and_then(|(types, ty)| {
            let path = member_path(types, ty, offset, len as u64)?;
            let is_section = matches!(types.get(ty)?.shape(), Shape::Datasec(_));
            Some((path, is_section))
        });
        match found {
            Some(((path, ty), true)) => (path, ty),
            Some(((path, ty), false)) => (format!("{}{path}", map.name), ty),
            None => (
                format!("{}[{offset}..{}]", map.name, offset + len as u64),
                TypeId::VOID,
            ),
        }
    }

    /// Notes where a value comes from that is spilled to the stack.
    fn spill(&mut self, access: Access, src: Operand, moment: &Moment<'_, '_>) {
        let Operand::Reg(src) = src else {
            return;
        };
        let origin = self
            .frames
            .last()
            .and_then(|frame| frame.origins[src.index()].clone());
        let is_stack = matches!(
            moment.memory.place(access.address),
            Some(MemoryPlace::Stack { .. })
        );
        if let (Some(origin), true) = (origin, is_stack) {
            let mut bytes = [0; 8];
            bytes[..access.len]
                .copy_from_slice(&moment.registers[src.index()].to_le_bytes()[..access.len]);
            self.spilled
                .insert(access.address, (u64::from_le_bytes(bytes), origin));
        }
    }
}

fn access(moment: &Moment<'_, '_>, base: Reg, off: i16, size: Size) -> Access {
    Access {
        address: eval::address(moment.registers[base.index()], off),
        len: size.bytes() as usize,
    }
}

fn masked(number: u64, width: Width) -> u64 {
    match width {
        Width::W32 => number & u64::from(u32::MAX),
        Width::W64 => number,
    }
}

/// A number as people read it: small ones in decimals with their sign, large ones in hexadecimals,
/// with what they are as signed numbers of 32 bits if that is a small one.
pub(super) fn number_text(number: u64, width: Width) -> String {
    let signed = match width {
        Width::W32 => i64::from(number as u32 as i32),
        Width::W64 => number as i64,
    };
    match (signed, u32::try_from(number)) {
        (-4096..=0xffff, _) => signed.to_string(),
        (_, Ok(low @ 0xffff_f000..)) => format!("{number:#x} ({})", low as i32),
        _ => format!("{number:#x}"),
    }
}

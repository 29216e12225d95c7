//! Writes: to parts of values by their names, to the packet by its fields, to the context.

use btf::{Shape, TypeId};
use interp::checked::{Memory, MemoryPlace, Moment};

use super::values::Access;
use super::{Open, Recorder, Unfinished};
use crate::member::{Part, parts};
use crate::run::{Target, TraceEvent};

impl Recorder<'_> {
    /// The parts of a value that are written, with the bytes before; none if they have no names.
    fn written_parts(
        &self,
        map: u32,
        (start, offset): (u64, u64),
        len: usize,
        memory: &Memory<'_>,
    ) -> Vec<(Part, u64, Vec<u8>)> {
        let value = self.host.map(map).and_then(|map| map.value);
        let Some((types, ty)) = value else {
            return Vec::new();
        };
        let found = parts(types, ty, offset, len as u64);
        // Elements of one array are written as a row.
        let array = |part: &Part| part.path.rfind('[').map(|end| part.path[..end].to_owned());
        let is_row = found.len() > 1
            && array(&found[0]).is_some()
            && found.iter().all(|part| array(part) == array(&found[0]));
        if is_row {
            return Vec::new();
        }
        let parts = found.into_iter().map(|part| {
            let mut before = vec![0; part.len as usize];
            let address = start + part.start;
            (memory.peek(address, &mut before)).then_some((part, address, before))
        });
        parts.collect::<Option<_>>().unwrap_or_default()
    }

    /// Notes a write to what is no stack, in front of it.
    pub(super) fn note_write(&mut self, access: Access, moment: &Moment<'_, '_>) {
        let memory = moment.memory;
        let Access { address, len } = access;
        self.note_stack_write(address, Some(len as u64), moment);
        let mut parts = Vec::new();
        let mut before = vec![0; len];
        let Some(place) = memory
            .place(address)
            .filter(|_| memory.peek(address, &mut before))
        else {
            return;
        };
        let (name, kind, target) = match place {
            MemoryPlace::Packet(offset) => {
                let Ok(start) = usize::try_from(offset) else {
                    return;
                };
                let (name, field) = self.packet_name(start, len, memory);
                (name, TypeId::VOID, Target::Packet(field))
            }
            MemoryPlace::Context(offset) => {
                let named = self.context_name(offset, len, moment);
                let (name, ty) = named.unwrap_or_else(|| (format!("ctx[{offset}]"), TypeId::VOID));
                (name, ty, Target::Context)
            }
            // A record is told when it is handed over.
            MemoryPlace::Value { start, .. } if self.records.contains_key(&start) => return,
            MemoryPlace::Value {
                map, start, offset, ..
            } => {
                let (name, kind) = self.value_name(map, offset, len);
                parts = self.written_parts(map, (start, offset), len, memory);
                let key = self.keys.get(&start).cloned();
                let target = Target::Value {
                    map,
                    key,
                    before: None,
                    after: None,
                };
                (name, kind, target)
            }
            MemoryPlace::Region { name, offset } if memory.is_given(address) => {
                let access = Access { address, len };
                let member = || memory.given_member(address, len);
                let name = || member().unwrap_or_else(|| format!("{name}[{offset}]"));
                let named = self.given_context_name(access, moment);
                let (name, ty) = named.unwrap_or_else(|| (name(), TypeId::VOID));
                (name, ty, Target::Context)
            }
            MemoryPlace::Stack { .. }
            | MemoryPlace::Map(_)
            | MemoryPlace::Function(_)
            | MemoryPlace::Region { .. } => return,
        };
        let insn = self.line.as_ref().map_or(0, |line| line.last());
        let after = Vec::new();
        let (line, event) = self.add(TraceEvent::Write {
            insn,
            target,
            name,
            kind,
            before,
            after,
        });
        let kind = Unfinished::Write {
            address,
            len,
            parts,
        };
        self.write = Some(Open { line, event, kind });
    }

    /// Completes the write of the last instruction.
    pub(super) fn close_write(&mut self, memory: &Memory<'_>) {
        if self.write.is_none() {
            return;
        }
        let Some(Open {
            line,
            event,
            kind:
                Unfinished::Write {
                    address,
                    len,
                    parts,
                },
        }) = self.write.take()
        else {
            return;
        };
        let mut bytes = vec![0; len];
        if !memory.peek(address, &mut bytes) {
            return;
        }
        self.fields = None;
        let place = event;
        let event = self
            .line_mut(line)
            .and_then(|line| line.events.get_mut(place));
        let Some(TraceEvent::Write {
            after,
            target,
            insn,
            ..
        }) = event
        else {
            return;
        };
        *after = bytes;
        let (target, insn) = (target.clone(), *insn);
        let named = self.named_writes(&target, insn, parts, memory);
        if let (Some(line), false) = (self.line_mut(line), named.is_empty()) {
            line.events.splice(place..=place, named);
        }
    }

    /// The writes to parts of a value: those that changed, or the first one.
    fn named_writes(
        &self,
        target: &Target,
        insn: u32,
        parts: Vec<(Part, u64, Vec<u8>)>,
        memory: &Memory<'_>,
    ) -> Vec<TraceEvent> {
        let Target::Value { map, .. } = target else {
            return Vec::new();
        };
        let Some((map, (types, ty))) = self.host.map(*map).and_then(|map| Some((map, map.value?)))
        else {
            return Vec::new();
        };
        let section = types.get(ty).map(|ty| ty.shape());
        let prefix = match section {
            Some(Shape::Datasec(_)) => "",
            _ => map.name,
        };
        let writes = parts.into_iter().filter_map(|(part, address, held)| {
            let mut holds = vec![0; held.len()];
            memory.peek(address, &mut holds).then(|| TraceEvent::Write {
                insn,
                target: target.clone(),
                name: format!("{prefix}{}", part.path),
                kind: part.ty,
                before: part.value(types, &held),
                after: part.value(types, &holds),
            })
        });
        let mut writes: Vec<TraceEvent> = writes.collect();
        let is_change = |write: &TraceEvent| match write {
            TraceEvent::Write { before, after, .. } => before != after,
            _ => false,
        };
        match writes.iter().any(is_change) {
            true => writes.retain(is_change),
            false => writes.truncate(1),
        }
        writes
    }
}

//! Calls of helpers and kfuncs: their arguments, what they point to, and results.

use interp::checked::{Memory, Moment};
use isa::ebpf::{Callee, Insn, Reg, Width};
use spec::calls::TAIL_CALL;
use spec::helpers::HelperId;

use super::values::{NULL, number_text};
use super::{Open, Recorder, Unfinished};
use crate::origin::Origin;
use crate::run::{CallArgument, NamedValue, Target, TraceEvent};

/// Most bytes of a record that are kept, and of text.
const MOST_BYTES: u64 = 4096;

impl Recorder<'_> {
    /// The helper that an instruction calls, and what it is called with.
    fn called(moment: &Moment<'_, '_>) -> Option<(i32, [u64; 5])> {
        let number = match moment.insn() {
            Insn::Call(Callee::Helper(number)) => number,
            Insn::CallReg { dst } => {
                let number = i32::try_from(moment.registers[dst.index()]);
                number.ok().filter(|number| *number < 1024)?
            }
            _ => return None,
        };
        let mut arguments = [0; 5];
        arguments.copy_from_slice(&moment.registers[1..=5]);
        Some((number, arguments))
    }

    /// Notes the call of a helper while lines are counted alone: keys of values are needed later.
    pub(super) fn note_counted(&mut self, moment: &Moment<'_, '_>) {
        if let (Some((number, arguments)), Some(frame)) =
            (Self::called(moment), self.frames.last_mut())
        {
            frame.calling = Some(Open {
                line: u64::MAX,
                event: 0,
                kind: Unfinished::Call { number, arguments },
            });
        }
    }

    /// Notes the call of a helper in front of it.
    pub(super) fn note_call(&mut self, moment: &Moment<'_, '_>) {
        let Some((number, arguments)) = Self::called(moment) else {
            return;
        };
        let (function, count) = self.host.function(number);
        let values = (1..=5).take(count).filter_map(Reg::new).enumerate();
        let values = values.map(|(index, register)| {
            let value = self.value_of(register, Width::W64, moment);
            let (target, bytes) = self.pointed(number, index, &arguments, moment.memory);
            CallArgument {
                value,
                bytes,
                target,
            }
        });
        let arguments_of_call = values.collect();
        let (line, event) = self.add(TraceEvent::Call {
            insn: moment.at as u32,
            function,
            arguments: arguments_of_call,
            result: None,
        });
        if let Some((map, bytes)) = self.record(number, &arguments, moment.memory) {
            self.add(TraceEvent::Record { map, bytes });
        }
        if let Some(frame) = self.frames.last_mut() {
            let kind = Unfinished::Call { number, arguments };
            frame.calling = Some(Open { line, event, kind });
        }
    }

    /// What an argument points to.
    fn pointed(
        &self,
        number: i32,
        index: usize,
        arguments: &[u64; 5],
        memory: &Memory<'_>,
    ) -> (Target, Vec<u8>) {
        let none = (Target::None, Vec::new());
        let Some(helper) = HelperId::from_number(number) else {
            return none;
        };
        let read = |len: usize| {
            let mut bytes = vec![0; len];
            memory.peek(arguments[index], &mut bytes).then_some(bytes)
        };
        let map = memory.map_at(arguments[0]);
        let map = map.and_then(|map| Some((map, self.host.map(map)?)));
        match (helper, index, map) {
            (
                HelperId::MapLookupElem
                | HelperId::MapUpdateElem
                | HelperId::MapDeleteElem
                | HelperId::MapLookupPercpuElem,
                1,
                Some((map, info)),
            ) => match read(info.key_size) {
                Some(key) => (Target::Key(map), key),
                None => none,
            },
            (HelperId::MapUpdateElem, 2, Some((map, info))) => {
                let mut key = vec![0; info.key_size];
                let key = memory.peek(arguments[1], &mut key).then_some(key);
                let before = key.as_ref().and_then(|key| self.host.lookup(map, key));
                let after = read(info.value_size);
                let bytes = after.clone().unwrap_or_default();
                (
                    Target::Value {
                        map,
                        key,
                        before,
                        after,
                    },
                    bytes,
                )
            }
            (HelperId::MapPushElem, 1, Some((map, info))) => {
                let after = read(info.value_size);
                let bytes = after.clone().unwrap_or_default();
                (
                    Target::Value {
                        map,
                        key: None,
                        before: None,
                        after,
                    },
                    bytes,
                )
            }
            (HelperId::TracePrintk, 0, _) => match read(arguments[1].min(MOST_BYTES) as usize) {
                Some(text) => (Target::Text, text),
                None => none,
            },
            _ => none,
        }
    }

    /// The record that a call hands over, with its map.
    fn record(
        &mut self,
        number: i32,
        arguments: &[u64; 5],
        memory: &Memory<'_>,
    ) -> Option<(u32, Vec<u8>)> {
        let read = |address: u64, len: u64| {
            let mut bytes = vec![0; len.min(MOST_BYTES) as usize];
            memory.peek(address, &mut bytes).then_some(bytes)
        };
        match HelperId::from_number(number)? {
            HelperId::RingbufOutput => Some((
                memory.map_at(arguments[0])?,
                read(arguments[1], arguments[2])?,
            )),
            HelperId::PerfEventOutput | HelperId::XdpOutput | HelperId::SkbOutput => Some((
                memory.map_at(arguments[1])?,
                read(arguments[3], arguments[4])?,
            )),
            HelperId::RingbufSubmit => {
                let (map, len) = self.records.remove(&arguments[0])?;
                Some((map, read(arguments[0], len as u64)?))
            }
            HelperId::RingbufDiscard => {
                self.records.remove(&arguments[0]);
                None
            }
            _ => None,
        }
    }

    /// Completes the call of a helper that returned.
    pub(super) fn close_call(&mut self, moment: &Moment<'_, '_>) {
        let frame = self.frames.last_mut();
        let Some(frame) = frame.filter(|frame| frame.calling.is_some()) else {
            return;
        };
        let Some(Open {
            line,
            event,
            kind: Unfinished::Call { number, arguments },
        }) = frame.calling.take()
        else {
            return;
        };
        if number == TAIL_CALL && self.last.is_some_and(|last| last.at + 1 != moment.at) {
            return;
        }
        let result = moment.registers[0];
        let memory = moment.memory;
        let map = memory.map_at(arguments[0]);
        let found = self.found(number, &arguments, result, memory);
        let Some(frame) = self.frames.last_mut().filter(|_| line != u64::MAX) else {
            return;
        };
        let (function, _) = self.host.function(number);
        let finds = matches!(
            HelperId::from_number(number),
            Some(
                HelperId::MapLookupElem | HelperId::MapLookupPercpuElem | HelperId::RingbufReserve
            )
        );
        let name = format!("{}()", function.trim_start_matches("bpf_"));
        frame.origins[0] = Some(Origin {
            is_pointer: finds,
            ..Origin::named(name)
        });
        self.fields = None;
        let text = match self.pointer_text(result, memory) {
            Some(text) => text,
            None if finds && result == 0 => NULL.to_owned(),
            None => number_text(result, Width::W64),
        };
        let value = NamedValue {
            number: result,
            name: None,
            text,
        };
        let event = self
            .line_mut(line)
            .and_then(|line| line.events.get_mut(event));
        if let Some(TraceEvent::Call {
            result, arguments, ..
        }) = event
        {
            if let (Some(value), Some(map), Some(argument)) = (found, map, arguments.get_mut(1)) {
                let key = Some(std::mem::take(&mut argument.bytes));
                argument.target = Target::Value {
                    map,
                    key,
                    before: None,
                    after: Some(value),
                };
            }
            *result = Some(value);
        }
    }

    /// The value that a call found, whose key is kept.
    fn found(
        &mut self,
        number: i32,
        arguments: &[u64; 5],
        result: u64,
        memory: &Memory<'_>,
    ) -> Option<Vec<u8>> {
        let map = memory.map_at(arguments[0]).filter(|_| result != 0)?;
        match HelperId::from_number(number)? {
            HelperId::MapLookupElem | HelperId::MapLookupPercpuElem => {
                let info = self.host.map(map)?;
                let mut key = vec![0; info.key_size];
                if info.holds_maps || !memory.peek(arguments[1], &mut key) {
                    return None;
                }
                self.keys.insert(result, key);
                let mut value = vec![0; info.value_size];
                memory.peek(result, &mut value).then_some(value)
            }
            HelperId::RingbufReserve => {
                self.records.insert(result, (map, arguments[1] as usize));
                None
            }
            _ => None,
        }
    }

    /// Keeps the key of the entry that a function is called back for.
    pub(super) fn note_callback(&mut self, moment: &Moment<'_, '_>) {
        let calling = self.frames.last().and_then(|frame| frame.calling.as_ref());
        let Some(Open {
            kind: Unfinished::Call { number, arguments },
            ..
        }) = calling
        else {
            return;
        };
        if HelperId::from_number(*number) != Some(HelperId::ForEachMapElem) {
            return;
        }
        let memory = moment.memory;
        let map = memory
            .map_at(arguments[0])
            .and_then(|map| self.host.map(map));
        let mut key = vec![0; map.map_or(0, |map| map.key_size)];
        let [key_at, value_at] = [moment.registers[2], moment.registers[3]];
        if memory.peek(key_at, &mut key) {
            self.keys.insert(value_at, key);
        }
    }
}

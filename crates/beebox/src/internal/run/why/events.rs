//! What happened at a line, told by the types of the object.

use btf::{Btf, TypeId};
use isa::ebpf::Cond;
use report::value::{Formats, Ordered, bytes_to_json_as, to_json_as};
use report::why::{Content, WhyEvent, WhyOperand};
use trace::{CallArgument, NamedValue, Target, Visit};

use super::super::recording::{RunMap, run_maps};
use super::super::shared::Shared;
use super::super::{PrintedText, RunRecord};
use crate::internal::maps_json::{RecordTypes, show_part};

/// Helpers that print a text.
const PRINTING: [&str; 2] = ["bpf_trace_printk", "bpf_trace_vprintk"];

/// The events of a run.
pub(super) struct Events<'e> {
    shared: &'e Shared,
    maps: Vec<RunMap<'e>>,
    types: Option<&'e Btf<'static>>,
    records: &'e RecordTypes<'e>,
    printed: std::slice::Iter<'e, String>,
}

impl<'e> Events<'e> {
    pub(super) fn new(
        shared: &'e Shared,
        records: &'e RecordTypes<'e>,
        printed: &'e PrintedText,
    ) -> Events<'e> {
        let mut programs = shared.programs.iter();
        Events {
            shared,
            maps: run_maps(shared),
            types: programs
                .find_map(|prepared| prepared.program.btf())
                .map(|types| &**types),
            records,
            printed: printed.texts.iter(),
        }
    }

    /// The events of a line.
    pub(super) fn of(&mut self, visit: &Visit, line: &dyn Fn(u32) -> Option<u32>) -> Vec<WhyEvent> {
        let mut told = Vec::new();
        for event in &visit.events {
            self.tell(event, line, &mut told);
        }
        told
    }

    fn tell(
        &mut self,
        event: &trace::TraceEvent,
        line: &dyn Fn(u32) -> Option<u32>,
        told: &mut Vec<WhyEvent>,
    ) {
        told.push(match event {
            trace::TraceEvent::Branch {
                insn,
                left,
                cond,
                right,
                holds,
                to,
                ..
            } => WhyEvent::Branch {
                insn: *insn,
                left_operand: operand(left),
                condition: condition(*cond),
                right_operand: operand(right),
                holds: *holds,
                next_line: line(*to).filter(|next| Some(*next) != line(*insn)),
            },
            trace::TraceEvent::Call {
                insn,
                function,
                arguments,
                result,
            } => {
                let call = self.call(*insn, function, arguments, result.as_ref());
                told.push(call);
                if PRINTING.contains(&&function[..]) && result.is_some() {
                    let text = self.printed.next().cloned();
                    told.extend(text.map(|text| WhyEvent::Printk { text }));
                }
                told.extend(
                    arguments
                        .iter()
                        .filter_map(|argument| self.update(argument)),
                );
                return;
            }
            trace::TraceEvent::Write {
                target,
                name,
                kind,
                before,
                after,
                ..
            } => self.write(target, name, *kind, before, after),
            trace::TraceEvent::Enter { caller } => WhyEvent::Enter {
                callback_of: caller.clone(),
            },
            trace::TraceEvent::Return { value } => WhyEvent::Return {
                result_operand: operand(value),
            },
            trace::TraceEvent::TailCall { program } => {
                let target = self.shared.programs.get(*program as usize);
                WhyEvent::TailCall {
                    target_prog: target
                        .map_or_else(String::new, |target| target.program.name().to_owned()),
                }
            }
            trace::TraceEvent::Record { map, bytes } => {
                let map = self.map_name(*map);
                let record = RunRecord {
                    map: map.clone(),
                    bytes: bytes.clone(),
                };
                let value = self.records.show(&record);
                WhyEvent::Record {
                    map,
                    record_content: Content { value },
                }
            }
            trace::TraceEvent::Variable(variable) => WhyEvent::Variable {
                name: variable.name.clone(),
                c_type: variable.kind.clone(),
                text: variable.value.clone(),
                inlined_name: variable.within.clone(),
                insn_ranges: variable.scope.clone(),
            },
        });
    }

    fn call(
        &self,
        insn: u32,
        function: &str,
        arguments: &[CallArgument],
        result: Option<&NamedValue>,
    ) -> WhyEvent {
        let mut found = None;
        let operands = arguments.iter().map(|argument| {
            let content = match &argument.target {
                Target::Key(map) => self.part(*map, &argument.bytes, true),
                Target::Value {
                    map,
                    key,
                    before: None,
                    after: Some(after),
                } if key.is_some() && argument.bytes.is_empty() => {
                    found = self.part(*map, after, false);
                    key.as_ref().and_then(|key| self.part(*map, key, true))
                }
                Target::Value { map, .. } => self.part(*map, &argument.bytes, false),
                Target::Text => {
                    let end = argument.bytes.iter().position(|byte| *byte == 0);
                    let text = &argument.bytes[..end.unwrap_or(argument.bytes.len())];
                    let text = serde_json::Value::from(String::from_utf8_lossy(text));
                    Some(Content {
                        value: Ordered::Scalar(text),
                    })
                }
                Target::None | Target::Packet(_) | Target::Context => None,
            };
            WhyOperand {
                content,
                ..operand(&argument.value)
            }
        });
        let operands: Vec<WhyOperand> = operands.collect();
        let result_operand = result.map(|result| WhyOperand {
            content: found.take(),
            ..operand(result)
        });
        let callee = function.to_owned();
        WhyEvent::Call {
            insn,
            callee,
            operands,
            result_operand,
        }
    }

    /// The change of an entry that a call makes.
    fn update(&self, argument: &CallArgument) -> Option<WhyEvent> {
        let Target::Value {
            map,
            key: Some(key),
            before,
            after: Some(after),
        } = &argument.target
        else {
            return None;
        };
        if argument.bytes.is_empty() {
            return None;
        }
        let name = self.map_name(*map);
        Some(WhyEvent::Write {
            target_name: name.clone(),
            map: Some(name),
            map_key: self.part(*map, key, true),
            before: before
                .as_ref()
                .and_then(|before| self.part(*map, before, false)),
            after: self.part(*map, after, false),
        })
    }

    fn write(
        &self,
        target: &Target,
        name: &str,
        kind: TypeId,
        before: &[u8],
        after: &[u8],
    ) -> WhyEvent {
        let types = self.types.filter(|_| kind != TypeId::VOID);
        let typed = |bytes: &[u8]| Content {
            value: match (target, types) {
                (Target::Packet(Some(field)), _) => Ordered::Scalar(field.text(bytes).into()),
                (_, Some(types)) => to_json_as(types, kind, bytes, Formats::NONE),
                (_, None) => bytes_to_json_as(bytes, Formats::NONE),
            },
        };
        let (map, map_key) = match target {
            Target::Value { map, key, .. } => {
                let key = key.as_ref().and_then(|key| self.part(*map, key, true));
                (Some(self.map_name(*map)), key)
            }
            Target::None | Target::Key(_) | Target::Packet(_) | Target::Context | Target::Text => {
                (None, None)
            }
        };
        WhyEvent::Write {
            target_name: name.to_owned(),
            map,
            map_key,
            before: Some(typed(before)),
            after: (!after.is_empty()).then(|| typed(after)),
        }
    }

    fn map_name(&self, map: u32) -> String {
        let map = self.maps.get(map as usize);
        map.map_or_else(|| "map".to_owned(), |map| map.name.clone())
    }

    /// A key or value of a map by its type.
    fn part(&self, map: u32, bytes: &[u8], is_key: bool) -> Option<Content> {
        let map = self.maps.get(map as usize)?;
        let params = &map.def.params;
        let ty = if is_key {
            params.key_type
        } else {
            params.value_type
        };
        let kind = params.kind();
        let is_index = is_key && kind.is_some_and(|kind| kind.is_array()) && bytes.len() == 4;
        let value = match (map.object, self.types) {
            (Some(object), types) if map.def.has_btf => show_part(object, types, bytes, is_key),
            (_, Some(types)) if ty != TypeId::VOID => to_json_as(types, ty, bytes, Formats::NONE),
            // The kernel keeps no types of arrays of maps and programs; their keys are indexes.
            _ if is_index => {
                let index = bytes.first_chunk().map(|index| u32::from_le_bytes(*index));
                Ordered::Scalar(index.into())
            }
            (Some(object), types) => show_part(object, types, bytes, is_key),
            _ => bytes_to_json_as(bytes, Formats::NONE),
        };
        Some(Content { value })
    }
}

fn operand(value: &NamedValue) -> WhyOperand {
    WhyOperand {
        name: value.name.clone(),
        text: value.text.clone(),
        content: None,
    }
}

/// A condition as C writes it; `s` marks those of signed numbers.
fn condition(cond: Cond) -> &'static str {
    match cond {
        Cond::Eq => "==",
        Cond::Ne => "!=",
        Cond::Set => "&",
        Cond::Gt => ">",
        Cond::Ge => ">=",
        Cond::Lt => "<",
        Cond::Le => "<=",
        Cond::SGt => "s>",
        Cond::SGe => "s>=",
        Cond::SLt => "s<",
        Cond::SLe => "s<=",
    }
}

//! The programs of an object that is not linked, with names of maps and functions.

use std::fmt::Write;
use std::rc::Rc;

use beebox::internal::ebpf::{Callee, Insn, decode, helper_name};
use beebox::internal::object::{ProgramDef, UnlinkedObject};
use report::object::unlinked_notes;
use serde_json::{Value, json};

use super::ebpf;
use super::object::write_slots;
use super::slot::{Slot, Source};
use crate::answer::Failure;
use crate::program_input::ClassicForm;
use crate::program_output::ProgramFormat;

/// The listing in a format; `None` if the format is for linked programs only.
pub(super) fn show(
    object: &UnlinkedObject<'_>,
    names: &[String],
    format: ProgramFormat,
    source: bool,
) -> Result<Option<Vec<u8>>, Failure> {
    let chosen = choose(object, names)?;
    let codes = chosen.iter().map(|code| (*code, slots(object, code)));
    Ok(match format {
        ProgramFormat::Json => {
            let programs: Vec<Value> = codes
                .map(|(code, slots)| record(object, code, &slots))
                .collect();
            Some(crate::stdout::json(&json!({
                "not_linked": unlinked_notes(object),
                "programs": programs,
            })))
        }
        ProgramFormat::Form(ClassicForm::D) | ProgramFormat::Log => {
            let mut text = String::new();
            for note in unlinked_notes(object) {
                let _ = writeln!(text, "; {note}");
            }
            for (at, (code, mut slots)) in codes.enumerate() {
                if at > 0 {
                    text.push('\n');
                }
                if !source {
                    slots.iter_mut().for_each(|slot| slot.source = None);
                }
                let _ = writeln!(text, "{}", heading(code));
                write_slots(&mut text, &[], &slots, format);
            }
            Some(text.into_bytes())
        }
        _ => None,
    })
}

fn heading(code: &ProgramDef<'_>) -> String {
    let kind = match code.is_function {
        true => "function",
        false => code.kind.map_or("no type", |kind| kind.name()),
    };
    format!(
        "{}: {kind}, section {}, {} instructions, not linked",
        code.name,
        code.section_name,
        code.len()
    )
}

fn choose<'o, 'a>(
    object: &'o UnlinkedObject<'a>,
    names: &[String],
) -> Result<Vec<&'o ProgramDef<'a>>, Failure> {
    let all: Vec<_> = object.program_defs().iter().map(|(_, code)| code).collect();
    let known: Vec<String> = all.iter().map(|code| code.name.to_string()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        return Err(
            Failure::new(format_args!("the object has no program {name}"))
                .hint(format_args!("it has {}", known.join(", "))),
        );
    }
    let is_chosen =
        |code: &&ProgramDef<'_>| names.is_empty() || names.contains(&code.name.to_string());
    Ok(all.into_iter().filter(is_chosen).collect())
}

fn slots(object: &UnlinkedObject<'_>, code: &ProgramDef<'_>) -> Vec<Slot> {
    let lines = object.line_info(code);
    let mut lines = lines.iter().peekable();
    let mut line: Option<Rc<Source>> = None;
    let mut slots = Vec::new();
    for (index, insn) in decode(&object.insns(code)).into_iter().enumerate() {
        while let Some(next) = lines.next_if(|line| line.insn as usize <= index) {
            line = object.btf().map(|types| Rc::new(Source::of(types, next)));
        }
        if matches!(insn, Insn::Imm64High) {
            continue;
        }
        let name = match insn {
            Insn::Call(Callee::Helper(number)) => helper_name(number).map(str::to_owned),
            _ => object.reference(code, index, insn),
        };
        slots.push(Slot {
            index,
            origin: None,
            insn,
            name,
            source: line.clone(),
        });
    }
    slots
}

fn record(object: &UnlinkedObject<'_>, code: &ProgramDef<'_>, slots: &[Slot]) -> Value {
    let raw = object.insns(code);
    let insns = slots.iter().map(|slot| json!(ebpf::Record::of(slot, &raw)));
    json!({
        "name": code.name.to_string(),
        "section": code.section_name.to_string(),
        "type": code.kind.map(|kind| kind.name()),
        "function": code.is_function,
        "insns": insns.collect::<Vec<_>>(),
    })
}

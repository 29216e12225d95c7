//! The programs of an object that is not linked, with names of maps and functions.

use std::fmt::Write;
use std::rc::Rc;

use crate::internal::ebpf::{Callee, Insn, decode, helper_name};
use crate::internal::object::{ProgramDef, UnlinkedObject};
use report::object::unlinked_notes;
use serde_json::{Value, json};

use super::UnknownProgram;
use super::linked::{LineForm, write_slots};
use super::plain::Record;
use super::slot::{Slot, Source};

/// The programs of these names, or all of them.
///
/// # Errors
/// If the object has no program of a name.
fn choose<'o, 'a>(
    object: &'o UnlinkedObject<'a>,
    names: &[String],
) -> Result<Vec<&'o ProgramDef<'a>>, UnknownProgram> {
    let all: Vec<_> = object.program_defs().iter().map(|(_, code)| code).collect();
    let known = all.iter().map(|code| code.name.to_string()).collect();
    UnknownProgram::check(names, known)?;
    let is_chosen =
        |code: &&ProgramDef<'_>| names.is_empty() || names.contains(&code.name.to_string());
    Ok(all.into_iter().filter(is_chosen).collect())
}

/// The programs of these names, or all of them, as text, with source lines if `source` says so.
///
/// # Errors
/// If the object has no program of a name.
pub fn unlinked_text(
    object: &UnlinkedObject<'_>,
    names: &[String],
    form: LineForm,
    source: bool,
) -> Result<String, UnknownProgram> {
    let mut text = String::new();
    for note in unlinked_notes(object) {
        let _ = writeln!(text, "; {note}");
    }
    for (at, code) in choose(object, names)?.into_iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        let mut slots = slots(object, code);
        if !source {
            slots.iter_mut().for_each(|slot| slot.source = None);
        }
        let _ = writeln!(text, "{}", heading(code));
        write_slots(&mut text, &[], &slots, form);
    }
    Ok(text)
}

/// The programs of these names, or all of them, as JSON.
///
/// # Errors
/// If the object has no program of a name.
pub fn unlinked_json(
    object: &UnlinkedObject<'_>,
    names: &[String],
) -> Result<Value, UnknownProgram> {
    let programs = choose(object, names)?.into_iter();
    let programs = programs.map(|code| record(object, code, &slots(object, code)));
    Ok(json!({
        "not_linked": unlinked_notes(object),
        "programs": programs.collect::<Vec<_>>(),
    }))
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
    let insns = slots.iter().map(|slot| json!(Record::of(slot, &raw)));
    json!({
        "name": code.name.to_string(),
        "section": code.section_name.to_string(),
        "type": code.kind.map(|kind| kind.name()),
        "function": code.is_function,
        "insns": insns.collect::<Vec<_>>(),
    })
}

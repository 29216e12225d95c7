//! Objects that are shown and not linked: those of the other byte order, and those with
//! legacy map definitions.

use std::fmt::Write;

use object::ProgramDef;
use object::elf::{Section, SectionKind};
use object::unlinked::{UnlinkedMap, UnlinkedObject};
use serde_json::{Value, json};
use spec::maps::MapKind;

use super::text::{count, heading, section};
use crate::table::{Side, Table};

/// Reasons why an object is not linked, with remedies: a sentence for each reason.
pub fn unlinked_notes(object: &UnlinkedObject<'_>) -> Vec<String> {
    let mut notes = Vec::<String>::new();
    if object.is_big_endian() {
        notes.push(
            "big-endian object: shown in its byte order, not linked; compile it with \
             -target bpfel to link it for this machine"
                .into(),
        );
    }
    if object.has_legacy_maps() {
        notes.push(
            "legacy map definitions in a section maps or maps/NAME: shown, not linked; libbpf \
             1.0 and later refuse them, define maps in SEC(\".maps\") with __uint and __type"
                .into(),
        );
    }
    if let Some(refusal) = object.refusal().filter(|_| notes.is_empty()) {
        notes.push(format!("shown, not linked: {refusal}"));
    }
    notes
}

/// An object that is not linked, as text.
pub fn unlinked_text(file: &str, object: &UnlinkedObject<'_>) -> String {
    let mut text = String::new();
    let license = match object.license() {
        "" => "no licence".to_owned(),
        license => format!("licence {license}"),
    };
    let programs = object.program_defs().programs().count();
    let _ = writeln!(
        text,
        "{file}: {}, {}, {license}",
        count(programs, "program"),
        count(object.maps().len(), "map")
    );
    for note in unlinked_notes(object) {
        let _ = writeln!(text, "  {note}");
    }
    programs_table(object, &mut text);
    maps_table(object, &mut text);
    let mut table = Table::new(&[
        ("name", Side::Left),
        ("kind", Side::Left),
        ("bytes", Side::Right),
    ]);
    for section in sections(object) {
        table.row([
            section.name.to_string(),
            section_kind(section),
            section.size.to_string(),
        ]);
    }
    heading(&mut text, "sections");
    table.write(&mut text, usize::MAX, "");
    text
}

fn programs_table(object: &UnlinkedObject<'_>, text: &mut String) {
    let mut table = Table::new(&[
        ("name", Side::Left),
        ("section", Side::Left),
        ("type", Side::Left),
        ("insns", Side::Right),
    ]);
    for (_, code) in object.program_defs().iter() {
        table.row([
            code.name.to_string(),
            section(code),
            program_kind(code).to_owned(),
            code.len().to_string(),
        ]);
    }
    if object.program_defs().len() > 0 {
        heading(text, "programs and functions");
        table.write(text, usize::MAX, "");
    }
}

fn program_kind(code: &ProgramDef<'_>) -> &'static str {
    match code.is_function {
        true => "function",
        false => code.kind.map_or("-", |kind| kind.name()),
    }
}

fn maps_table(object: &UnlinkedObject<'_>, text: &mut String) {
    let mut table = Table::new(&[
        ("name", Side::Left),
        ("section", Side::Left),
        ("type", Side::Left),
        ("key", Side::Left),
        ("value", Side::Left),
        ("max_entries", Side::Right),
        ("flags", Side::Right),
    ]);
    for map in object.maps() {
        let cell = |value: &dyn Fn() -> Option<String>| value().unwrap_or_else(|| "-".to_owned());
        let def = map.definition;
        table.row([
            map.name.clone(),
            section_name(object, map),
            cell(&|| def.map(|def| map_kind(def.map_type))),
            cell(&|| def.map(|def| format!("{}B", def.key_size))),
            cell(&|| def.map(|def| format!("{}B", def.value_size))),
            cell(&|| def.map(|def| def.max_entries.to_string())),
            cell(&|| def.map(|def| format!("{:#x}", def.flags))),
        ]);
    }
    if !object.maps().is_empty() {
        heading(text, "maps");
        table.write(text, usize::MAX, "");
    }
}

fn map_kind(number: u32) -> String {
    let kind = MapKind::from_number(number);
    kind.map_or_else(|| format!("type {number}"), |kind| kind.name().to_owned())
}

fn section_name(object: &UnlinkedObject<'_>, map: &UnlinkedMap) -> String {
    let section = object.elf().section(map.section);
    section.map_or_else(String::new, |section| section.name.to_string())
}

/// Sections without the first, which is none.
fn sections<'o, 'a>(object: &'o UnlinkedObject<'a>) -> impl Iterator<Item = &'o Section<'a>> {
    object.elf().sections().iter().skip(1)
}

/// Kind of a section as readelf prints it.
fn section_kind(section: &Section<'_>) -> String {
    match section.kind {
        SectionKind::Bytes => "PROGBITS".to_owned(),
        SectionKind::Zeros => "NOBITS".to_owned(),
        SectionKind::Relocations => "REL".to_owned(),
        SectionKind::Names => "STRTAB".to_owned(),
        SectionKind::Symbols => "SYMTAB".to_owned(),
        SectionKind::AddressSignificance => "LLVM_ADDRSIG".to_owned(),
        SectionKind::Other(number) => format!("{number:#x}"),
    }
}

/// An object that is not linked, as JSON.
pub fn unlinked_json(file: &str, object: &UnlinkedObject<'_>) -> Value {
    let programs = object.program_defs().iter().map(|(_, code)| {
        json!({
            "name": code.name.to_string(),
            "section": code.section_name.to_string(),
            "type": code.kind.map(|kind| kind.name()),
            "is_function": code.is_function,
            "insn_count": code.len(),
        })
    });
    let maps = object.maps().iter().map(|map| {
        let def = map.definition;
        json!({
            "name": map.name,
            "section": section_name(object, map),
            "type": def.map(|def| map_kind(def.map_type)),
            "bytes_key": def.map(|def| def.key_size),
            "bytes_value": def.map(|def| def.value_size),
            "max_entries": def.map(|def| def.max_entries),
            "flags": def.map(|def| def.flags),
        })
    });
    let sections = sections(object).map(|section| {
        json!({
            "name": section.name.to_string(),
            "kind": section_kind(section),
            "bytes": section.size,
        })
    });
    json!({
        "file": file,
        "license": object.license(),
        "byte_order": if object.is_big_endian() { "big" } else { "little" },
        "not_linked": unlinked_notes(object),
        "programs": programs.collect::<Vec<_>>(),
        "map_definitions": maps.collect::<Vec<_>>(),
        "sections": sections.collect::<Vec<_>>(),
    })
}

//! Static linking of `.BTF.ext`: each record follows its instruction to its new offset.

use std::collections::HashMap;

use btf::ext::ExtBuilder;
use btf::{Builder, StrOffset};

use super::LinkFault;
use super::input::Input;
use super::output::Output;
use super::types::Types;
use crate::Error;

/// Appends the records of file `file`.
pub(super) fn append(
    file: usize,
    input: &Input<'_>,
    types: &mut Types,
    output: &mut Output,
) -> Result<(), Error> {
    let (Some(btf), Some(ext)) = (&input.btf, &input.ext) else {
        return Ok(());
    };
    // Section of this name in the output.
    let place = |section| {
        let name = btf.string(section);
        let part = input.part_named(name.as_bytes());
        let part = part.ok_or_else(|| Error::from(LinkFault::InfoOfNoSection).in_section(name))?;
        let part = &input.parts[part];
        Ok::<_, Error>((part.to, part.at as u32))
    };
    // The instructions of a line share its text, which may be long.
    let mut copied: HashMap<StrOffset, StrOffset> = HashMap::new();
    for group in ext.functions() {
        let (section, start) = place(group.section)?;
        for mut function in group.records() {
            function.offset = function.offset.wrapping_add(start);
            function.func = types.number(file, function.func);
            output.sections[section].functions.push(function);
        }
    }
    for group in ext.lines() {
        let (section, start) = place(group.section)?;
        for mut line in group.records() {
            line.offset = line.offset.wrapping_add(start);
            for text in [&mut line.file, &mut line.text] {
                let copy = copied.entry(*text);
                *text = *copy.or_insert_with(|| types.string(btf.string(*text)));
            }
            output.sections[section].lines.push(line);
        }
    }
    for group in ext.relocations() {
        let (section, start) = place(group.section)?;
        for mut relocation in group.records() {
            relocation.offset = relocation.offset.wrapping_add(start);
            let spec = &mut relocation.spec;
            spec.ty = types.number(file, spec.ty);
            let copy = copied.entry(spec.access);
            spec.access = *copy.or_insert_with(|| types.string(btf.string(spec.access)));
            output.sections[section].relocations.push(relocation);
        }
    }
    Ok(())
}

/// Merged `.BTF.ext`; `None` without records.
pub(super) fn write(output: &Output, builder: &mut Builder) -> Option<Vec<u8>> {
    let mut ext = ExtBuilder::new();
    let mut is_empty = true;
    // The order of the three tables decides the order of the strings.
    for section in &output.sections[1..] {
        if !section.functions.is_empty() {
            let name = builder.string(&section.name);
            section
                .functions
                .iter()
                .for_each(|&info| ext.function(name, info));
            is_empty = false;
        }
    }
    for section in &output.sections[1..] {
        if !section.lines.is_empty() {
            let name = builder.string(&section.name);
            section.lines.iter().for_each(|&info| ext.line(name, info));
            is_empty = false;
        }
    }
    for section in &output.sections[1..] {
        if !section.relocations.is_empty() {
            let name = builder.string(&section.name);
            section
                .relocations
                .iter()
                .for_each(|&info| ext.relocation(name, info));
            is_empty = false;
        }
    }
    (!is_empty).then(|| ext.finish())
}

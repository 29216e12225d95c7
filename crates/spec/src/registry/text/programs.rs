//! Lines of program types and of iterators' targets.
//!
//! `program TYPE ATTACH helpers=SET layout=LAYOUT returns=LEAST..GREATEST refuses=FIELDS
//! sockmap=CHANGES prologue=INSTRUCTIONS asked`; `iterator TARGET helpers=SET
//! INDEX:VALUE:STRUCTURE…`.

use std::fmt::{self, Write as _};

use super::words::{Words, hex, kernel_type, read_value, write_value};
use crate::programs::{AttachType, ProgramType};
use crate::registry::{IteratorArg, IteratorTarget, ProgramRules, ReturnRange};

/// Program type, and attach type where that decides too.
pub(super) type ProgramKey = (ProgramType, Option<AttachType>);

/// Reads the rules of a program type.
pub(super) fn read_program(mut words: Words<'_>) -> Option<(ProgramKey, ProgramRules)> {
    let kind = ProgramType::from_name(words.next()?)?;
    let attach = match words.next()? {
        "*" => None,
        number => Some(AttachType::from_number(number.parse().ok()?)?),
    };
    let mut rules = ProgramRules {
        helpers: words.next()?.strip_prefix("helpers=")?.parse().ok()?,
        layout: None,
        returns: None,
        refused_fields: 0,
        updates_sockmap: false,
        deletes_sockmap: false,
        prologue: 0,
        is_confirmed: false,
    };
    for word in words {
        match word.split_once('=') {
            Some(("layout", number)) => rules.layout = Some(number.parse().ok()?),
            Some(("returns", range)) => {
                let (min, max) = range.split_once("..")?;
                rules.returns = Some(ReturnRange {
                    min: min.parse().ok()?,
                    max: max.parse().ok()?,
                });
            }
            Some(("refuses", bits)) => {
                rules.refused_fields = u32::try_from(hex(bits)?).ok()?;
            }
            Some(("sockmap", changes)) => {
                rules.updates_sockmap = changes.contains("update");
                rules.deletes_sockmap = changes.contains("delete");
            }
            Some(("prologue", insns)) => rules.prologue = insns.parse().ok()?,
            None if word == "asked" => rules.is_confirmed = true,
            _ => return None,
        }
    }
    Some(((kind, attach), rules))
}

/// Writes the rules of a program type.
pub(super) fn write_program(
    (kind, attach): &ProgramKey,
    rules: &ProgramRules,
    out: &mut String,
) -> fmt::Result {
    write!(out, "program {kind} ")?;
    match attach {
        Some(attach) => write!(out, "{}", attach.number())?,
        None => out.push('*'),
    }
    write!(out, " helpers={}", rules.helpers)?;
    if let Some(layout) = rules.layout {
        write!(out, " layout={layout}")?;
    }
    if let Some(range) = rules.returns {
        write!(out, " returns={}..{}", range.min, range.max)?;
    }
    if rules.refused_fields != 0 {
        write!(out, " refuses={:#x}", rules.refused_fields)?;
    }
    out.push_str(match (rules.updates_sockmap, rules.deletes_sockmap) {
        (false, false) => "",
        (true, false) => " sockmap=update",
        (false, true) => " sockmap=delete",
        (true, true) => " sockmap=update,delete",
    });
    if rules.prologue != 0 {
        write!(out, " prologue={}", rules.prologue)?;
    }
    out.push_str(if rules.is_confirmed { " asked\n" } else { "\n" });
    Ok(())
}

/// Reads the target of an iterator, its name aside.
pub(super) fn read_iterator(words: Words<'_>) -> Option<IteratorTarget> {
    let mut target = IteratorTarget::default();
    for word in words {
        if let Some(set) = word.strip_prefix("helpers=") {
            target.helpers = Some(set.parse().ok()?);
            continue;
        }
        let (index, value) = word.split_once(':')?;
        let (value, btf) = value.split_once(':').unwrap_or((value, ""));
        target.args.push(IteratorArg {
            index: index.parse().ok()?,
            value: read_value(value)?,
            btf: kernel_type(btf),
        });
    }
    Some(target)
}

/// Writes the target of an iterator.
pub(super) fn write_iterator(name: &str, target: &IteratorTarget, out: &mut String) -> fmt::Result {
    write!(out, "iterator {name}")?;
    if let Some(set) = target.helpers {
        write!(out, " helpers={set}")?;
    }
    for arg in &target.args {
        write!(out, " {}:", arg.index)?;
        write_value(arg.value, arg.btf.as_ref(), out);
    }
    out.push('\n');
    Ok(())
}

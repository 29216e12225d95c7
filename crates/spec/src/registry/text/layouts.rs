//! Lines of contexts and of sockets.
//!
//! `layout fields|btf|target`, below the first its `field FIRST-LAST/STEP READS SIGNED
//! WRITES VALUE:STRUCTURE SIZE ACCESS=INSTRUCTIONS…`, widths as digits; `socket TYPE` and
//! the same words.

use std::fmt::{self, Write as _};

use super::words::{Words, kernel_type, read_value, write_value};
use crate::registry::{AccessForm, FieldRule, Layout, RegBase, Rewritten, Widths};

/// Reads the head of a layout; its fields follow.
pub(super) fn read_layout(mut words: Words<'_>) -> Option<Layout> {
    Some(match words.next()? {
        "fields" => Layout::Fields(Vec::new()),
        "btf" => Layout::Btf,
        "target" => Layout::OfTarget,
        _ => return None,
    })
}

/// Writes a layout with its fields.
pub(super) fn write_layout(layout: &Layout, out: &mut String) -> fmt::Result {
    match layout {
        Layout::Btf => out.push_str("layout btf\n"),
        Layout::OfTarget => out.push_str("layout target\n"),
        Layout::Fields(rules) => {
            out.push_str("layout fields\n");
            for rule in rules {
                write_field(rule, out)?;
            }
        }
    }
    Ok(())
}

/// Reads a field of the layout above.
pub(super) fn read_field(mut words: Words<'_>) -> Option<FieldRule> {
    let (range, step) = words.next()?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let mut widths = || {
        let digits = words.next()?.chars().filter(|&digit| digit != '-');
        let sum = digits
            .map(|digit| digit.to_digit(10))
            .sum::<Option<u32>>()?;
        Some(Widths(u8::try_from(sum).ok()?))
    };
    let (reads, signed_reads, writes) = (widths()?, widths()?, widths()?);
    let (value, btf) = {
        let word = words.next()?;
        word.split_once(':').unwrap_or((word, ""))
    };
    Some(FieldRule {
        first: first.parse().ok()?,
        last: last.parse().ok()?,
        step: step.parse().ok().filter(|&step| step > 0)?,
        reads,
        signed_reads,
        writes,
        value: read_value(value)?,
        btf: kernel_type(btf),
        field_size: words.next()?.parse().ok()?,
        rewritten: words.map(read_rewritten).collect::<Option<_>>()?,
    })
}

fn write_field(rule: &FieldRule, out: &mut String) -> fmt::Result {
    out.push_str("field ");
    write_rule(rule, out)
}

fn write_rule(rule: &FieldRule, out: &mut String) -> fmt::Result {
    write!(out, "{}-{}/{}", rule.first, rule.last, rule.step)?;
    for widths in [rule.reads, rule.signed_reads, rule.writes] {
        out.push(' ');
        if widths == Widths::default() {
            out.push('-');
        }
        for width in [1, 2, 4, 8] {
            if widths.has(width) {
                write!(out, "{width}")?;
            }
        }
    }
    out.push(' ');
    write_value(rule.value, rule.btf.as_ref(), out);
    write!(out, " {}", rule.field_size)?;
    for entry in &rule.rewritten {
        let beside = if entry.beside_tstamp_type { "t" } else { "" };
        let (letter, bytes, insns) = (entry.form.letter(), entry.bytes, entry.insns);
        write!(out, " {letter}{bytes}{beside}={insns}")?;
    }
    out.push('\n');
    Ok(())
}

/// Reads how many instructions an access becomes, as `r4=3`; `t` behind the width marks
/// programs that access `tstamp_type`.
fn read_rewritten(word: &str) -> Option<Rewritten> {
    let (access, insns) = word.split_once('=')?;
    let mut letters = access.chars();
    let letter = letters.next()?;
    let form = AccessForm::ALL
        .into_iter()
        .find(|form| form.letter() == letter)?;
    let width = letters.as_str();
    Some(Rewritten {
        form,
        bytes: width.strip_suffix('t').unwrap_or(width).parse().ok()?,
        beside_tstamp_type: width.ends_with('t'),
        insns: insns.parse().ok()?,
    })
}

/// Reads a field of a kind of socket.
pub(super) fn read_socket(
    sockets: &mut Vec<(RegBase, Vec<FieldRule>)>,
    mut words: Words<'_>,
) -> Option<()> {
    let base = read_value(words.next()?)?.base;
    let rule = read_field(words)?;
    match sockets.iter_mut().find(|(other, _)| *other == base) {
        Some((_, rules)) => rules.push(rule),
        None => sockets.push((base, vec![rule])),
    }
    Some(())
}

/// Writes the fields of sockets.
pub(super) fn write_sockets(
    sockets: &[(RegBase, Vec<FieldRule>)],
    out: &mut String,
) -> fmt::Result {
    for (base, rules) in sockets {
        for rule in rules {
            write!(out, "socket {} ", base.name())?;
            write_rule(rule, out)?;
        }
    }
    Ok(())
}

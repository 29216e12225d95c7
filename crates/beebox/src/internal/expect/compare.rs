//! Differences of what runs gave and what maps hold from what is expected.

use std::fmt::Write;

use object::Object;
use packet::FirstHeader;
use report::run::hex_rows;
use serde_json::Value;

use super::ExpectDifference as Difference;
use super::resolve::global;
use super::runs::Ran;
use super::statement::{Expected, Output};
use crate::internal::maps_json::{Element, KeyNames, RecordTypes, find, left_out, read, show};
use crate::internal::run::{LoadedObject, RunRecord, TestRunOutput, redirect_json};

pub(super) fn printed(got: Option<String>, expected: Option<&str>) -> Option<Difference> {
    let quote = |text: Option<&str>| match text {
        Some(text) => format!("{text:?}"),
        None => "nothing".to_owned(),
    };
    // The line end that many programs print may be left out.
    let is_equal = match (&got, expected) {
        (Some(got), Some(expected)) => got == expected || got.strip_suffix('\n') == Some(expected),
        (got, expected) => got.is_none() && expected.is_none(),
    };
    let (got, expected) = (quote(got.as_deref()), quote(expected));
    (!is_equal).then(|| format!("expected {expected}, got {got}").into())
}

/// Compares what a run gave.
pub(super) fn compare_run(expected: &Expected, ran: &Ran) -> Option<Difference> {
    match (expected, ran) {
        (_, Ran::Stopped) => Some("there is no run that ended".to_owned().into()),
        (Expected::Verdict { name, count: None }, Ran::Packet { run, .. }) => {
            let (got, value) = (&run.verdict.name, run.retval as i32);
            (got != name).then(|| format!("expected {name}, got {got} ({value})").into())
        }
        (Expected::NotVerdict(name), Ran::Packet { run, .. }) => {
            let (got, value) = (&run.verdict.name, run.retval as i32);
            (got == name).then(|| format!("expected any but {name}, got {got} ({value})").into())
        }
        (Expected::NotVerdict(name), Ran::Capture(summary)) => {
            let mut verdicts = summary.verdicts();
            let (_, packets) = verdicts.find(|(got, _)| got == name)?;
            Some(format!("expected no packet with {name}, got {packets}").into())
        }
        (Expected::Verdict { name, count: None }, Ran::Capture(summary)) => {
            if summary.verdicts().next().is_none() {
                return Some(format!("expected {name}, the capture has no packets").into());
            }
            let others: Vec<String> = summary
                .verdicts()
                .filter(|(other, _)| other != name)
                .map(|(other, packets)| format!("{packets} {other}"))
                .collect();
            (!others.is_empty()).then(|| {
                format!("expected {name} for all packets, got {}", others.join(", ")).into()
            })
        }
        (
            Expected::Verdict {
                name,
                count: Some(count),
            },
            Ran::Capture(summary),
        ) => {
            let mut verdicts = summary.verdicts();
            let got = verdicts.find(|(other, _)| other == name);
            let got = got.map_or(0, |(_, packets)| packets);
            (got != *count).then(|| format!("expected {count} packets, got {got}").into())
        }
        (Expected::Retval(value), Ran::Packet { run, .. }) => (run.retval != *value).then(|| {
            let (value, got) = (*value as i32, run.retval as i32);
            format!("expected {value}, got {got} ({})", run.verdict.name).into()
        }),
        (
            Expected::Unchanged(output),
            Ran::Packet {
                packet,
                context,
                run,
                ..
            },
        ) => match output {
            Output::Data => of_bytes(packet, &run.data_out, 0),
            Output::Context => match context {
                Some(context) => of_bytes(context, &run.ctx_out, 0),
                None => Some(
                    "the last run was given no context (`ctx=`)"
                        .to_owned()
                        .into(),
                ),
            },
        },
        (Expected::Bytes(output, bytes), Ran::Packet { run, .. }) => {
            of_bytes(bytes, left(*output, run), 0)
        }
        (
            Expected::BytesAt {
                output,
                offset,
                bytes,
            },
            Ran::Packet { run, .. },
        ) => {
            let left = left(*output, run);
            if *offset >= left.len() {
                let name = match output {
                    Output::Data => "packet",
                    Output::Context => "context",
                };
                let what = format!(
                    "expected bytes from {offset} on, the {name} has {}",
                    left.len()
                );
                return Some(what.into());
            }
            let end = offset.saturating_add(bytes.len()).min(left.len());
            of_bytes(bytes, &left[*offset..end], *offset)
        }
        (Expected::Redirect(target), Ran::Packet { run, .. }) => of_redirect(target.as_ref(), run),
        (Expected::Checksums, Ran::Packet { run, .. }) => {
            let wrong = packet::wrong_checksums(&run.data_out);
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            (!wrong.is_empty()).then(|| wrong.join("; ").into())
        }
        (Expected::Field { name, text }, Ran::Packet { run, .. }) => {
            of_field(name, text, &run.data_out)
        }
        (Expected::Instructions { verdict, most }, Ran::Packet { run, executed, .. }) => {
            let executed = (*executed)?;
            let is_of = verdict
                .as_ref()
                .is_none_or(|name| *name == run.verdict.name);
            (is_of && executed > *most)
                .then(|| format!("expected at most {most} instructions, got {executed}").into())
        }
        (Expected::Instructions { verdict, most }, Ran::Capture(summary)) => {
            let (executed, packet) = summary.most(verdict.as_deref())?;
            (executed > *most).then(|| {
                let what = format!(
                    "expected at most {most} instructions, got {executed} on packet {packet}"
                );
                what.into()
            })
        }
        _ => Some("the last run was on no single packet".to_owned().into()),
    }
}

/// Compares a redirect with the members that are named.
fn of_redirect(
    target: Option<&serde_json::Map<String, Value>>,
    run: &TestRunOutput,
) -> Option<Difference> {
    let got = run.redirect.map(redirect_json);
    let is_met = match (target, &got) {
        (None, None) => true,
        (Some(target), Some(got)) => target
            .iter()
            .all(|(name, value)| got.get(name) == Some(value)),
        (None, Some(_)) | (Some(_), None) => false,
    };
    let show = |target: Option<&serde_json::Map<String, Value>>| match target {
        Some(members) => Value::Object(members.clone()).to_string(),
        None => "no redirect".to_owned(),
    };
    let (expected, got) = (show(target), show(got.as_ref()));
    (!is_met).then(|| format!("expected {expected}, got {got}").into())
}

/// Compares the text of a header field.
fn of_field(name: &str, text: &str, data: &[u8]) -> Option<Difference> {
    let fields = packet::fields(data, FirstHeader::Link);
    let Some(field) = fields.iter().find(|field| field.path() == name) else {
        let names: Vec<String> = fields.iter().map(|field| field.path()).collect();
        let names = names.join(", ");
        return Some(format!("the packet has no field {name}; it has {names}").into());
    };
    let got = field.text(&data[field.range()]);
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let is_equal = got == text || number(&got).is_some_and(|got| number(text) == Some(got));
    (!is_equal).then(|| format!("expected {text}, got {got}").into())
}

/// Bytes that a run leaves.
fn left(output: Output, run: &TestRunOutput) -> &[u8] {
    match output {
        Output::Data => &run.data_out,
        Output::Context => &run.ctx_out,
    }
}

/// Compares a record.
pub(super) fn record(
    types: &RecordTypes<'_>,
    got: Option<RunRecord>,
    expected: Option<&Value>,
) -> Result<Option<Difference>, String> {
    let show =
        |record: &RunRecord| serde_json::to_string(&types.show(record)).expect("keys are strings");
    match (expected, got) {
        (None, None) => Ok(None),
        (None, Some(record)) => Ok(Some(
            format!("expected no record, got {}", show(&record)).into(),
        )),
        (Some(value), None) => Ok(Some(format!("expected {value}, got no record").into())),
        (Some(value), Some(record)) => {
            let mut wanted = record.bytes.clone();
            types.read_into(&record, value, &mut wanted)?;
            Ok(of_value(value, &wanted, &record.bytes, &show(&record)))
        }
    }
}

/// Compares bytes that begin at an offset of the packet.
fn of_bytes(expected: &[u8], got: &[u8], offset: usize) -> Option<Difference> {
    if expected == got {
        return None;
    }
    let mut pairs = expected.iter().zip(got);
    let first = pairs.position(|(expected, got)| expected != got);
    let mut what = match first {
        Some(at) => format!(
            "byte {}: expected {:02x}, got {:02x}",
            offset + at,
            expected[at],
            got[at]
        ),
        None => String::new(),
    };
    if expected.len() != got.len() {
        let separator = if what.is_empty() { "" } else { "; " };
        let (expected, got) = (expected.len(), got.len());
        let plural = if expected == 1 { "" } else { "s" };
        let _ = write!(
            what,
            "{separator}expected {expected} byte{plural}, got {got}"
        );
    }
    // The row of the first difference.
    let row = first.unwrap_or(expected.len().min(got.len())) / 16 * 16;
    let mut excerpt = String::new();
    for (name, bytes) in [("expected", expected), ("got", got)] {
        let rest = &bytes[row.min(bytes.len())..];
        let _ = writeln!(excerpt, "  {name}:");
        hex_rows(
            &mut excerpt,
            (offset + row) as u64,
            &rest[..rest.len().min(16)],
        );
    }
    Some(Difference {
        what,
        excerpt,
        stopped: None,
        shown_by: None,
    })
}

/// Comparison of a map or variable.
#[derive(Default)]
pub(super) struct Compared {
    pub(super) difference: Option<Difference>,
    /// Members that the expected value leaves out.
    pub(super) left_out: Vec<String>,
    /// Members of the key that are left out, which are 0.
    pub(super) key_left_out: Vec<String>,
}

/// Compares maps and variables.
pub(super) fn compare_maps(
    expected: &Expected,
    object: &Object<'_>,
    loaded: &LoadedObject,
    names: KeyNames<'_>,
) -> Result<Compared, String> {
    let types = object.btf();
    match expected {
        Expected::Entries { map, count } => {
            let map = find(loaded, map).map_err(|fault| fault.to_string())?;
            let got = match map.map.kind().is_storage() {
                true => map.owned_values().len(),
                false => map.entries().map_err(|errno| errno.to_string())?.len(),
            };
            let difference = || format!("expected {count} entries, got {got}").into();
            Ok(Compared {
                difference: (got != *count).then(difference),
                ..Compared::default()
            })
        }
        Expected::Element { map, key, value } => {
            let element = Element::find(loaded, types, (map, key), names)?;
            let got = element.load()?;
            let difference = match (value, got) {
                (None, None) => None,
                (None, Some(bytes)) => {
                    let got = element.show(&bytes);
                    Some(format!("expected no element, got {got}").into())
                }
                (Some(value), None) => Some(format!("expected {value}, got no element").into()),
                (Some(value), Some(bytes)) => {
                    let mut wanted = bytes.clone();
                    element.read_into(value, &mut wanted)?;
                    of_value(value, &wanted, &bytes, &element.show(&bytes))
                }
            };
            let left_out = value.iter().flat_map(|value| element.left_out(value));
            Ok(Compared {
                difference,
                left_out: left_out.collect(),
                key_left_out: element.key_left_out().to_vec(),
            })
        }
        Expected::Global { name, value } => {
            let (ty, bytes) = global(object, loaded, name)?;
            let mut wanted = bytes.clone();
            let formats = loaded.formats_of_variable(object, name);
            read(types, ty, value, &mut wanted, &formats)?;
            let shown = show(types, ty, &bytes, &formats);
            Ok(Compared {
                difference: of_value(value, &wanted, &bytes, &shown),
                left_out: left_out(types, ty, value, bytes.len(), &formats),
                key_left_out: Vec::new(),
            })
        }
        _ => Ok(Compared::default()),
    }
}

/// Compares a value with what it is with the expected members.
fn of_value(expected: &Value, wanted: &[u8], got: &[u8], shown: &str) -> Option<Difference> {
    let mut pairs = wanted.iter().zip(got);
    let at = pairs.position(|(wanted, got)| wanted != got)?;
    Some(format!("expected {expected}, got {shown} (differs from byte {at} on)").into())
}

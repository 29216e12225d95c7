//! Reads statements.

use std::path::Path;

use ::kernel::model::number_of;
use seccomp::json::UniqueKeys;
use serde_json::Value;
use spec::Errno;

use super::fault::fault;
use super::packet::{packet_source, repeated, source};
use super::{ContextSource, Expected, Output, Statement};
use crate::internal::raw::parse_hex;

/// A statement of a line.
pub(in crate::internal::expect) fn statement(
    text: &str,
    directory: &Path,
) -> Result<Statement, String> {
    let (word, rest) = word(text);
    let needed = |what: &str| format!("{word} needs {what}");
    let (second, behind) = self::word(rest);
    Ok(match word {
        "test" => Statement::Test(given(rest).ok_or_else(|| needed("a name"))?),
        "object" => {
            let path = given(rest).ok_or_else(|| needed("the file of an object"))?;
            Statement::Object(directory.join(path))
        }
        "network" => {
            let path = given(rest).ok_or_else(|| needed("the file of a network"))?;
            Statement::Network(directory.join(path))
        }
        "maps" if rest == "shared" => Statement::SharedMaps,
        "maps" => return Err(format!("maps shared is expected, not {text:?}")),
        "delete" => {
            let (key, behind) = json(behind, "a key")?;
            if !behind.is_empty() {
                return Err(format!("{behind:?} follows the key"));
            }
            let map = given(second).ok_or_else(|| needed("a map and a key"))?;
            Statement::Delete { map, key }
        }
        "time" => {
            let (span, is_advance) = match rest.strip_prefix('+') {
                Some(span) => (span, true),
                None => (rest, false),
            };
            Statement::Time {
                nanoseconds: nanoseconds(span)
                    .ok_or("time needs a time as 5s, 250ms, 10us or 7ns, or +1s to advance")?,
                is_advance,
            }
        }
        "seed" => Statement::Seed(number(rest).ok_or_else(|| needed("a number"))?),
        "cpu" => Statement::Cpu(number(rest).ok_or_else(|| needed("a number"))?),
        "ifindex" => {
            let index = number(rest).filter(|index| *index > 0);
            Statement::Ifindex(index.ok_or_else(|| needed("a number from 1"))?)
        }
        "fault" => Statement::Fault(fault(rest)?),
        "set" => {
            let (key, behind) = json(behind, "a key")?;
            Statement::Set {
                map: given(second).ok_or_else(|| needed("a map, a key and a value"))?,
                key,
                value: assigned(behind)?,
            }
        }
        "run" => {
            let (input, repeat) = repeated(behind)?;
            let (packet, context) = match input.split_once("ctx=") {
                Some((packet, fields)) if fields.starts_with('{') => {
                    let (value, rest) = json(fields, "a context")?;
                    if !rest.is_empty() {
                        return Err(format!("{rest:?} follows the context"));
                    }
                    (packet.trim_end(), Some(ContextSource::Fields(value)))
                }
                Some((packet, context)) => {
                    let context = ContextSource::Bytes(source(context, directory)?);
                    (packet.trim_end(), Some(context))
                }
                None => (input, None),
            };
            Statement::Run {
                program: second.to_owned(),
                packet: match packet {
                    "" => return Err(needed("a program and a packet, none or {NAME: VALUE}")),
                    "none" => None,
                    packet => Some(packet_source(packet, (text, directory))?),
                },
                context,
                repeat,
            }
        }
        "capture" => Statement::Capture {
            path: directory
                .join(given(behind).ok_or_else(|| needed("a program and a capture file"))?),
            program: second.to_owned(),
        },
        _ => Statement::Expect(expected(word, rest)?),
    })
}

fn expected(word: &str, rest: &str) -> Result<Expected, String> {
    let needed = |what: &str| format!("{word} needs {what}");
    let (second, behind) = self::word(rest);
    Ok(match word {
        // Some names have blanks.
        "verdict" if second == "not" => {
            Expected::NotVerdict(given(behind).ok_or_else(|| needed("a name"))?)
        }
        "verdict" => {
            let (name, count) = match rest.rsplit_once(char::is_whitespace) {
                Some((name, count)) if number::<u64>(count).is_some() => (name, number(count)),
                _ => (rest, None),
            };
            let name = given(name.trim_end()).ok_or_else(|| needed("a name"))?;
            Expected::Verdict { name, count }
        }
        "retval" => {
            let value = number(rest).or_else(|| negated_error(rest));
            let value: i64 = value.ok_or_else(|| needed("a number or an error as -EPERM"))?;
            let fits = i64::from(i32::MIN)..=i64::from(u32::MAX);
            let value = Some(value).filter(|value| fits.contains(value));
            Expected::Retval(value.ok_or("a return value has 32 bits")? as u32)
        }
        "data" => bytes_of(Output::Data, rest)?,
        "ctx" => bytes_of(Output::Context, rest)?,
        "record" => {
            let map = given(second).ok_or_else(|| needed("a map"))?;
            let value = match behind {
                "none" => None,
                behind => Some(assigned(behind)?),
            };
            Expected::Record { map, value }
        }
        "printk" => match rest {
            "" => return Err(needed("a text or none")),
            "none" => Expected::NoPrintk,
            quoted if quoted.starts_with('"') => {
                let text = serde_json::from_str(quoted);
                Expected::Printk(text.map_err(|error| format!("{quoted}: {error}"))?)
            }
            text => Expected::Printk(text.to_owned()),
        },
        "map" => {
            let map = given(second).ok_or_else(|| needed("a map"))?;
            if let Some(count) = behind.strip_prefix("entries ") {
                let count = number(count.trim());
                let count = count.ok_or("entries needs a count")?;
                return Ok(Expected::Entries { map, count });
            }
            let (key, behind) = json(behind, "a key")?;
            let value = match behind {
                "absent" => None,
                behind => Some(assigned(behind)?),
            };
            Expected::Element { map, key, value }
        }
        "global" => Expected::Global {
            name: given(second).ok_or_else(|| needed("a name"))?,
            value: assigned(behind)?,
        },
        "redirect" => Expected::Redirect(match rest {
            "none" => None,
            rest => match json(rest, "a target")? {
                (Value::Object(members), "") => Some(members),
                _ => return Err(needed("none or a target as {\"ifindex\": 3}")),
            },
        }),
        "checksums" if rest == "valid" => Expected::Checksums,
        "checksums" => return Err(needed("the word valid")),
        "field" => {
            let value = behind.strip_prefix('=').map(str::trim);
            let value = value.filter(|value| !value.is_empty());
            Expected::Field {
                name: given(second).ok_or_else(|| needed("a name as ip.ttl"))?,
                text: value.ok_or("it has no `= VALUE`")?.to_owned(),
            }
        }
        "instructions" => {
            let form = "instructions needs a limit: instructions [VERDICT] <= NUMBER";
            let (verdict, most) = rest.split_once("<=").ok_or(form)?;
            Expected::Instructions {
                verdict: given(verdict.trim()),
                most: number(most.trim()).ok_or(form)?,
            }
        }
        _ => match word.strip_suffix(']').and_then(|word| word.split_once('[')) {
            Some((name @ ("data" | "ctx"), offset)) => Expected::BytesAt {
                output: match name {
                    "data" => Output::Data,
                    _ => Output::Context,
                },
                offset: number(offset).ok_or_else(|| format!("{offset:?} is no offset"))?,
                bytes: hex(rest)?,
            },
            _ => return Err(format!("there is no statement {word:?}")),
        },
    })
}

/// Nanoseconds of a number with a unit.
fn nanoseconds(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|each: char| each.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// `unchanged`, or all bytes.
fn bytes_of(output: Output, text: &str) -> Result<Expected, String> {
    Ok(match text {
        "unchanged" => Expected::Unchanged(output),
        text => Expected::Bytes(output, hex(text)?),
    })
}

/// A JSON value at the start of a text, and what follows it.
fn json<'t>(text: &'t str, what: &str) -> Result<(Value, &'t str), String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let value = match values.next() {
        Some(Ok(UniqueKeys(value))) => value,
        Some(Err(error)) if error.to_string().starts_with("key must be a string") => {
            return Err(format!(
                "{text:?} does not begin with {what}: names of members have quotes in JSON, as {{\"pid\": 7}}"
            ));
        }
        Some(Err(error)) => return Err(format!("{text:?} does not begin with {what}: {error}")),
        None => return Err(format!("it has no {}", what.trim_start_matches("a "))),
    };
    let rest = &text[values.byte_offset()..];
    Ok((value, rest.trim_start()))
}

/// `= VALUE`.
fn assigned(text: &str) -> Result<Value, String> {
    let value = text.strip_prefix('=').ok_or("it has no `= VALUE`")?;
    let (value, rest) = json(value.trim_start(), "a value")?;
    match rest {
        "" => Ok(value),
        rest => Err(format!("{rest:?} follows the value")),
    }
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    match text {
        "" => Err("it has no bytes".to_owned()),
        text => parse_hex(text).map_err(|error| format!("no hexadecimal: {error}")),
    }
}

/// The first word, and what follows it.
fn word(text: &str) -> (&str, &str) {
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim_start()),
        None => (text, ""),
    }
}

fn given(word: &str) -> Option<String> {
    (!word.is_empty()).then(|| word.to_owned())
}

/// A number in C's forms: decimal, `0x` and hexadecimal, `0` and octal.
pub(super) fn number<T: TryFrom<i128>>(text: &str) -> Option<T> {
    T::try_from(number_of(text)?).ok()
}

/// `-EPERM` and the like.
fn negated_error(text: &str) -> Option<i64> {
    let error = Errno::from_name(text.strip_prefix('-')?)?;
    Some(-i64::from(error.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Statement, String> {
        statement(text, Path::new(""))
    }

    #[test]
    fn statements_are_read() {
        for text in [
            "set m {\"a\": [1, 2]} = {\"b\": \"c = d\"}",
            "run p zero:60",
            "run p 0011 2233",
            "run p 00112233 x100",
            "capture p some file.pcap",
            "verdict XDP_PASS",
            "verdict XDP_PASS 217",
            "verdict not XDP_PASS",
            "retval -1",
            "data unchanged",
            "data 00 11",
            "data[26] c0000202",
            "run p none ctx=00 11 x2",
            "run p zero:60 ctx=zero:192",
            "ctx unchanged",
            "ctx 00",
            "ctx[4] 11",
            "record m = {\"a\": 1}",
            "record m none",
            "printk none",
            "printk a text",
            "printk \"a\\n\"",
            "map m 1 = 2",
            "map m [1] absent",
            "map m entries 0",
            "global g = 3",
        ] {
            if let Err(error) = of(text) {
                panic!("{text}: {error}");
            }
        }
    }

    #[test]
    fn errors_name_place_and_fact() {
        for (text, part) in [
            ("verdct XDP_PASS", "no statement \"verdct\""),
            ("set m", "no key"),
            ("set m {1} = 2", "does not begin with a key"),
            ("set m 1 2", "no `= VALUE`"),
            ("map m 1 = 2 3", "\"3\" follows"),
            ("run p", "needs a program and a packet"),
            ("run p zero:60 x0", "no number of runs"),
            ("run p 0x1", "no such file"),
            ("capture p", "a capture file"),
            ("verdict", "needs a name"),
            ("verdict not", "needs a name"),
            ("retval 4294967296", "32 bits"),
            ("data", "no bytes"),
            ("data 0", "hexadecimal"),
            ("data[x] 00", "no offset"),
            ("run p ctx=00", "a packet, none or {NAME: VALUE}"),
            ("run p none ctx=0", "no such file"),
            ("ctx", "no bytes"),
            ("record", "needs a map"),
            ("record m 3", "no `= VALUE`"),
            ("other[3] 00", "no statement \"other[3]\""),
            ("printk", "a text or none"),
            ("map", "needs a map"),
            ("global g 3", "no `= VALUE`"),
        ] {
            match of(text) {
                Err(error) => assert!(error.contains(part), "{text}: {error}"),
                Ok(_) => panic!("{text} is read"),
            }
        }
    }
}

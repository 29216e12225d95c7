//! Statements of expectation files.

use std::path::{Path, PathBuf};

use ::kernel::model::ModelValue;
use capture::Event;
use seccomp::json::UniqueKeys;
use serde_json::{Map, Value};
use spec::Errno;

use crate::internal::bytes::ByteSource;
use crate::internal::captures::Input;
use crate::internal::raw::parse_hex;
use crate::internal::run::ForcedResult;

/// A statement and its place.
#[derive(Clone)]
pub(crate) struct Line {
    /// From 1.
    pub(crate) number: usize,
    /// As written, without blanks around it, in one line.
    pub(crate) text: String,
    /// As written, in its lines.
    pub(crate) source: String,
    pub(crate) statement: Statement,
}

/// A statement.
#[derive(Clone)]
pub(crate) enum Statement {
    /// The name of the statements behind it, to the next one.
    Test(String),
    /// The object of the tests of the file.
    Object(PathBuf),
    /// Tests have the maps as the test before left them.
    SharedMaps,
    /// The file of the network that the programs see.
    Network(PathBuf),
    Delete {
        map: String,
        key: Value,
    },
    /// The clock of the next runs, in nanoseconds: set, or advanced.
    Time {
        nanoseconds: u64,
        is_advance: bool,
    },
    Seed(u64),
    Cpu(u32),
    /// The interface that the packets of the next runs come from.
    Ifindex(u32),
    Fault(ForcedResult),
    Set {
        map: String,
        key: Value,
        value: Value,
    },
    Run {
        program: String,
        packet: Option<ByteSource>,
        context: Option<ContextSource>,
        repeat: u32,
    },
    Capture {
        program: String,
        path: PathBuf,
    },
    /// An object of kernel memory, or more of one.
    Given {
        name: String,
        /// `TYPE {…}` of a new one.
        value: ModelValue,
        is_new: bool,
    },
    /// The process that the next runs are in.
    Process(ModelValue),
    /// What calls of a function return, and what they write through arguments.
    Result {
        function: String,
        at: Option<u64>,
        value: ModelValue,
        fills: Vec<(String, ModelValue)>,
    },
    /// A run by arguments or fields, in a model of the kernel.
    RunModel {
        program: String,
        value: ModelValue,
    },
    /// Runs of an iterator: one for each element, and the last without one.
    Iterate {
        program: String,
        elements: Vec<ModelValue>,
    },
    Expect(Expected),
}

impl Statement {
    /// The program that it runs.
    pub(super) fn program(&self) -> Option<&str> {
        match self {
            Statement::Run { program, .. }
            | Statement::Capture { program, .. }
            | Statement::RunModel { program, .. }
            | Statement::Iterate { program, .. } => Some(program),
            Statement::Test(_)
            | Statement::Object(_)
            | Statement::SharedMaps
            | Statement::Network(_)
            | Statement::Delete { .. }
            | Statement::Time { .. }
            | Statement::Seed(_)
            | Statement::Cpu(_)
            | Statement::Ifindex(_)
            | Statement::Fault(_)
            | Statement::Set { .. }
            | Statement::Given { .. }
            | Statement::Process(_)
            | Statement::Result { .. }
            | Statement::Expect(_) => None,
        }
    }

    /// True if it is about a model of the kernel.
    pub(super) fn is_of_model(&self) -> bool {
        matches!(
            self,
            Statement::Given { .. }
                | Statement::Process(_)
                | Statement::Result { .. }
                | Statement::RunModel { .. }
                | Statement::Iterate { .. }
        )
    }
}

/// A context.
#[derive(Clone)]
pub(crate) enum ContextSource {
    Bytes(ByteSource),
    /// By the names of its fields.
    Fields(Value),
}

/// Bytes that a run leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Data,
    Context,
}

/// An expected value.
#[derive(Clone)]
pub(crate) enum Expected {
    Verdict {
        name: String,
        count: Option<u64>,
    },
    /// Any verdict but this one.
    NotVerdict(String),
    Retval(u32),
    Unchanged(Output),
    Bytes(Output, Vec<u8>),
    BytesAt {
        output: Output,
        offset: usize,
        bytes: Vec<u8>,
    },
    Record {
        map: String,
        /// `None` if there is no further one.
        value: Option<Value>,
    },
    Printk(String),
    NoPrintk,
    Element {
        map: String,
        key: Value,
        /// `None` if it is absent.
        value: Option<Value>,
    },
    Entries {
        map: String,
        count: usize,
    },
    Global {
        name: String,
        value: Value,
    },
    /// Where the packet is redirected: members that are named; `None` for nowhere.
    Redirect(Option<Map<String, Value>>),
    /// All checksums of the packet are right.
    Checksums,
    /// The text of a header field of the packet.
    Field {
        name: String,
        text: String,
    },
    /// The next call of a function that is not modelled, or of any.
    Call {
        /// `None` for any function.
        function: Option<String>,
        /// `None` if there is no further one.
        arguments: Option<Vec<(String, ModelValue)>>,
    },
    /// The text that an iterator wrote; `None` for nothing.
    Seq(Option<String>),
    /// Fields of the context after the run.
    ContextFields(ModelValue),
    /// A member of an object after the run.
    Memory {
        name: String,
        path: Vec<String>,
        value: ModelValue,
    },
    /// Most instructions of a run, or of the runs with a verdict.
    Instructions {
        verdict: Option<String>,
        most: u64,
    },
}

/// A statement of a line.
pub(super) fn statement(text: &str, directory: &Path) -> Result<Statement, String> {
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

/// `HELPER [MAP] [at N] = RESULT`.
fn fault(text: &str) -> Result<ForcedResult, String> {
    let form = "fault HELPER [MAP] [at N] = RESULT is expected";
    let (call, result) = text.split_once('=').ok_or(form)?;
    let mut words = call.split_whitespace();
    let name = words.next().ok_or(form)?;
    let known = spec::helpers::number(name)
        .or_else(|| spec::helpers::number(&format!("bpf_{name}")))
        .ok_or_else(|| match spec::kfuncs::KernelFunction::of_linux(name) {
            Some(_) => format!("{name} is a kfunc: result {name} = VALUE says what it returns"),
            None => format!("there is no helper {name:?}"),
        })?;
    let mut rest: Vec<&str> = words.collect();
    let at = match rest[..] {
        [.., "at", at] => {
            let at = number(at).filter(|at| *at > 0);
            rest.truncate(rest.len() - 2);
            Some(at.ok_or_else(|| format!("{form}, with N from 1"))?)
        }
        _ => None,
    };
    let map = match rest[..] {
        [] => None,
        [map] => Some(map.to_owned()),
        _ => return Err(form.to_owned()),
    };
    let result = result.trim();
    Ok(ForcedResult {
        number: known,
        map,
        at,
        result: fault_result(result).ok_or_else(|| {
            format!(
                "{result:?} is no result: an error as ENOSPC, NULL, a number or a result of \
                 bpf_fib_lookup as NO_NEIGH"
            )
        })?,
    })
}

/// `-EPERM` and the like.
fn negated_error(text: &str) -> Option<i64> {
    let name = text.strip_prefix('-')?;
    let mut errors = (1..=LAST_ERRNO).map(Errno);
    let error = errors.find(|error| error.name() == Some(name))?;
    Some(-i64::from(error.0))
}

/// Largest error number with a name.
const LAST_ERRNO: i32 = Errno::ENOTSUPP.0;

/// Results of `bpf_fib_lookup` (`BPF_FIB_LKUP_RET_*`), from 0.
const FIB_RESULTS: [&str; 10] = [
    "SUCCESS",
    "BLACKHOLE",
    "UNREACHABLE",
    "PROHIBIT",
    "NOT_FWDED",
    "FWD_DISABLED",
    "UNSUPP_LWT",
    "NO_NEIGH",
    "FRAG_NEEDED",
    "NO_SRC_ADDR",
];

fn fault_result(text: &str) -> Option<u64> {
    if text == "NULL" {
        return Some(0);
    }
    if let Some(code) = FIB_RESULTS.iter().position(|name| *name == text) {
        return Some(code as u64);
    }
    let mut errors = (1..=LAST_ERRNO).map(Errno);
    if let Some(error) = errors.find(|error| error.name() == Some(text)) {
        return Some(error.negated());
    }
    number::<i64>(text).map(|value| value as u64)
}

/// A packet: words, a packet of a capture, or bytes.
fn packet_source(text: &str, (line, directory): (&str, &Path)) -> Result<ByteSource, String> {
    if packet::is_packet_text(text) {
        let start = text.as_ptr() as usize - line.as_ptr() as usize;
        let before = line[..start].chars().count();
        return match packet::compose(text) {
            Ok(bytes) => Ok(ByteSource::Bytes(bytes)),
            Err(mut error) => {
                error.column += before;
                Err(error.to_string())
            }
        };
    }
    let Some(of) = text.strip_prefix("packet ") else {
        return source(text, directory);
    };
    let form = "packet N of FILE is expected, with N from 1";
    let (packet, path) = of.split_once(" of ").ok_or(form)?;
    let packet = number::<u64>(packet.trim()).filter(|packet| *packet > 0);
    let packet = packet.ok_or(form)?;
    let path = directory.join(path.trim());
    captured(&path, packet).map(ByteSource::Bytes)
}

/// The bytes of a packet of a capture.
fn captured(path: &Path, number: u64) -> Result<Vec<u8>, String> {
    let name = crate::internal::name_of(path);
    let mut input = Input::open_path(path).map_err(|error| format!("{name}: {error}"))?;
    let mut packets = 0;
    while let Some(event) = input
        .next_event()
        .map_err(|error| format!("{name}: {error}"))?
    {
        if let Event::Packet(record) = event {
            packets += 1;
            if packets == number {
                return Ok(record.data().to_vec());
            }
        }
    }
    Err(format!("{name} has no packet {number}; it has {packets}"))
}

/// `unchanged`, or all bytes.
fn bytes_of(output: Output, text: &str) -> Result<Expected, String> {
    Ok(match text {
        "unchanged" => Expected::Unchanged(output),
        text => Expected::Bytes(output, hex(text)?),
    })
}

/// A packet and the number of runs on it, `xN` behind it.
fn repeated(text: &str) -> Result<(&str, u32), String> {
    let Some((packet, times)) = text.rsplit_once(char::is_whitespace) else {
        return Ok((text, 1));
    };
    let Some(digits) = times.strip_prefix('x') else {
        return Ok((text, 1));
    };
    let times = number(digits).filter(|times| *times > 0);
    let times = times.ok_or_else(|| format!("{digits:?} is no number of runs from 1 on"))?;
    Ok((packet.trim_end(), times))
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

fn number<T: TryFrom<i128>>(text: &str) -> Option<T> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => text.parse(),
    };
    T::try_from(number.ok()?).ok()
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

/// A packet; paths are relative to the file's directory.
fn source(text: &str, directory: &Path) -> Result<ByteSource, String> {
    let path = directory.join(text.strip_prefix("file:").unwrap_or(text));
    match text.starts_with("file:") || path.is_file() {
        true => Ok(ByteSource::File(path)),
        false if text == "-" => {
            Err("a packet is hexadecimal digits, zero:N or a file, not standard input".to_owned())
        }
        false => ByteSource::parse(text).map_err(|error| error.to_string()),
    }
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

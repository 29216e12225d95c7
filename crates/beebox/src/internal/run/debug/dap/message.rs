//! Messages: headers with a length, then JSON.

use std::io::{BufRead, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// Most bytes of a message.
const MOST_BYTES: usize = 16 << 20;
/// Most bytes of a line of a header, and most lines.
const LONGEST_LINE: u64 = 4096;
const MOST_LINES: usize = 32;

/// What an editor sends.
pub(super) enum Incoming {
    /// A request.
    Request(Request),
    /// Why a message of JSON is no request.
    Other(String),
    /// Why no further message can be read.
    Lost(String),
}

/// A request.
pub(super) struct Request {
    pub(super) seq: u64,
    pub(super) command: String,
    pub(super) arguments: Value,
}

/// The next message; `None` at the end.
///
/// # Errors
/// In words, if messages cannot be told apart any more.
pub(super) fn read_message(reader: &mut impl BufRead) -> Result<Option<Incoming>, String> {
    let mut length = None;
    let mut is_first = true;
    for _ in 0..MOST_LINES {
        let mut line = Vec::new();
        let read = reader
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line);
        read.map_err(|error| format!("messages cannot be read: {error}"))?;
        if line.is_empty() {
            return match is_first {
                true => Ok(None),
                false => Err("the input ends within the header of a message".to_owned()),
            };
        }
        is_first = false;
        if line.last() != Some(&b'\n') {
            return Err(format!(
                "a line of a header is longer than {LONGEST_LINE} bytes, or the input ends in it"
            ));
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(format!(
                "{line:?} is no header of a message (Content-Length: N)"
            ));
        };
        if name.eq_ignore_ascii_case("content-length") {
            let number = value.trim().parse::<usize>().ok();
            let number = number.filter(|number| *number <= MOST_BYTES);
            let number = number.ok_or_else(|| {
                format!("Content-Length:{value} is no number of bytes up to {MOST_BYTES}")
            })?;
            length = Some(number);
        }
    }
    let length = length.ok_or("a message has no Content-Length")?;
    let mut body = Vec::new();
    let read = reader.by_ref().take(length as u64).read_to_end(&mut body);
    match read {
        Ok(read) if read == length => {}
        Ok(read) => {
            return Err(format!(
                "the input ends within a message: {read} of {length} bytes"
            ));
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(None),
        Err(error) => return Err(format!("messages cannot be read: {error}")),
    }
    // Behind a wrong length nothing can be read.
    let message = serde_json::from_slice(&body);
    let message = message.map_err(|error| format!("a message is no JSON: {error}"))?;
    Ok(Some(parse(&message)))
}

fn parse(message: &Value) -> Incoming {
    let command = message.get("command").and_then(Value::as_str);
    let seq = message.get("seq").and_then(Value::as_u64);
    match (message.get("type").and_then(Value::as_str), command, seq) {
        (Some("request"), Some(command), Some(seq)) => Incoming::Request(Request {
            seq,
            command: command.to_owned(),
            arguments: message.get("arguments").cloned().unwrap_or(Value::Null),
        }),
        _ => Incoming::Other("a message is no request with seq and command".to_owned()),
    }
}

/// The way to the editor.
#[derive(Clone)]
pub(super) struct Outgoing(Arc<Mutex<Writer>>);

struct Writer {
    out: Box<dyn Write + Send>,
    seq: u64,
}

impl Outgoing {
    pub(super) fn new(out: impl Write + Send + 'static) -> Outgoing {
        Outgoing(Arc::new(Mutex::new(Writer {
            out: Box::new(out),
            seq: 0,
        })))
    }

    /// Sends a message; an editor that is gone is found out by its requests, which end.
    fn send(&self, mut message: Value) {
        let Ok(mut writer) = self.0.lock() else {
            return;
        };
        writer.seq += 1;
        message["seq"] = json!(writer.seq);
        let text = message.to_string();
        let _ = write!(writer.out, "Content-Length: {}\r\n\r\n{text}", text.len());
        let _ = writer.out.flush();
    }

    pub(super) fn event(&self, event: &str, body: Value) {
        self.send(json!({ "type": "event", "event": event, "body": body }));
    }

    pub(super) fn answer(&self, request: &Request, result: Result<Value, String>) {
        let mut response = json!({
            "type": "response",
            "request_seq": request.seq,
            "command": request.command,
            "success": result.is_ok(),
        });
        match result {
            Ok(body) => response["body"] = body,
            Err(why) => {
                response["message"] = json!(why);
                response["body"] = json!({ "error": { "id": 1, "format": why } });
            }
        }
        self.send(response);
    }

    /// Says what is wrong with a message.
    pub(super) fn complain(&self, why: &str) {
        let body = json!({ "category": "stderr", "output": format!("{why}\n") });
        self.event("output", body);
    }
}

//! An editor for tests: sends requests one after the other and writes down what it hears.

use std::io::{BufReader, Cursor, PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::super::{DebugError, DebugSetup, serve};

/// The editor.
pub(super) struct Client {
    reader: BufReader<PipeReader>,
    writer: PipeWriter,
    seq: u64,
    transcript: String,
}

/// Requests behind whose answer the run stops or ends.
const GOING_ON: [&str; 9] = [
    "configurationDone",
    "continue",
    "next",
    "stepIn",
    "stepOut",
    "stepBack",
    "reverseContinue",
    "beebox/whoWrote",
    "restart",
];

impl Client {
    /// Sends a request and writes down the answer, and what comes until the run stops.
    pub(super) fn request(&mut self, command: &str, arguments: Value) {
        self.seq += 1;
        self.transcript += &format!("> {command} {arguments}\n");
        let request = json!({
            "seq": self.seq, "type": "request", "command": command, "arguments": arguments,
        });
        let text = request.to_string();
        write!(self.writer, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        // The answer to a launch comes with the end of the configuration.
        if command == "launch" {
            return;
        }
        let mut waits_for_stop = GOING_ON.contains(&command);
        let mut waits_for_answer = true;
        while waits_for_answer || waits_for_stop {
            let Some(message) = self.read() else {
                self.transcript += "(the end)\n";
                return;
            };
            if message["type"] == "response" && message["request_seq"] == json!(self.seq) {
                waits_for_answer = false;
                waits_for_stop &= message["success"] == json!(true);
            }
            let event = message["event"].as_str().unwrap_or_default();
            waits_for_stop &= event != "stopped" && event != "exited";
        }
    }

    /// Reads a message and writes it down; `None` at the end.
    fn read(&mut self) -> Option<Value> {
        let mut header = Vec::new();
        while !header.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if self.reader.read(&mut byte).unwrap() == 0 {
                return None;
            }
            header.push(byte[0]);
        }
        let header = String::from_utf8(header).unwrap();
        let length = header.trim().strip_prefix("Content-Length: ").unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.reader.read_exact(&mut body).unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap();
        let (kind, name) = match message["type"].as_str() {
            Some("event") => ("event", &message["event"]),
            _ => ("<", &message["command"]),
        };
        let body = match message.get("message") {
            Some(why) => format!("fails: {why}"),
            None => lines(&message["body"]),
        };
        self.transcript += &format!("{kind} {} {body}\n", name.as_str().unwrap());
        Some(message)
    }
}

/// JSON, of which the elements of lists have lines of their own.
fn lines(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some(members) = value.as_object() {
        for list in members.values().filter_map(Value::as_array) {
            for element in list.iter().filter(|element| element.is_object()) {
                let element = element.to_string();
                text = text.replace(&element, &format!("\n    {element}"));
            }
        }
    }
    text
}

/// Holds a session with an editor; what it wrote down.
pub(super) fn hold(setup: &DebugSetup<'_>, requests: impl FnOnce(&mut Client) + Send) -> String {
    let (reader, out) = pipe().unwrap();
    let (input, writer) = pipe().unwrap();
    let mut client = Client {
        reader: BufReader::new(reader),
        writer,
        seq: 0,
        transcript: String::new(),
    };
    std::thread::scope(|scope| {
        let editor = scope.spawn(move || {
            requests(&mut client);
            while client.read().is_some() {}
            client.transcript
        });
        serve(setup, input, out).unwrap();
        editor.join().unwrap()
    })
}

/// What a session that gets these bytes sends.
pub(super) fn sent(setup: &DebugSetup<'_>, bytes: &[u8]) -> (String, Result<(), DebugError>) {
    let out = Shared::default();
    let done = serve(setup, Cursor::new(bytes.to_vec()), out.clone());
    (out.text(), done)
}

/// Output that is kept.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

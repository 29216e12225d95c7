//! The Debug Adapter Protocol: an editor controls a session by messages of JSON.
//!
//! A thread reads messages; while the program runs those that do not need a stopped run are answered at
//! intervals. References of variables hold as long as the run is stopped.

mod breakpoints;
mod message;
mod requests;
mod show;

use std::collections::{HashMap, VecDeque};
use std::io::{BufReader, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use super::plan::{Resume, StopReason};
use super::session::{DebugError, DebugSetup, debug};
use super::view::{Pause, View};
use super::watch::Watch;
use super::{Breakpoints, FrontEnd, Poll};
use message::{Incoming, Outgoing, Request, read_message};
use requests::Answer;

/// Serves a session to an editor, which the reader and the writer lead to.
///
/// # Errors
/// For a session that cannot begin or go on; the editor is told, too.
pub fn serve(
    setup: &DebugSetup<'_>,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
) -> Result<(), DebugError> {
    let out = Outgoing::new(writer);
    let server = Server {
        requests: listen(reader),
        waiting: VecDeque::new(),
        out: out.clone(),
        has_begun: false,
        stops_on_entry: false,
        first_line: 1,
        first_column: 1,
        launch: None,
        data: HashMap::new(),
        failure: None,
    };
    let done = debug(setup, Box::new(server));
    if let Err(error) = &done {
        out.event(
            "output",
            json!({ "category": "stderr", "output": format!("{error}\n") }),
        );
    }
    out.event("terminated", json!({}));
    out.event(
        "exited",
        json!({ "exitCode": if done.is_ok() { 0 } else { 2 } }),
    );
    done
}

/// Answers an editor whose session cannot begin: the launch fails with this text.
pub fn refuse_launch(
    why: &str,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
) {
    let out = Outgoing::new(writer);
    let mut reader = BufReader::new(reader);
    while let Ok(Some(incoming)) = read_message(&mut reader) {
        let Incoming::Request(request) = incoming else {
            continue;
        };
        match &*request.command {
            "initialize" => out.answer(&request, Ok(requests::capabilities())),
            "disconnect" | "terminate" => {
                out.answer(&request, Ok(json!({})));
                return;
            }
            _ => out.answer(&request, Err(why.to_owned())),
        }
    }
}

/// Reads messages in a thread of its own; the channel ends with the input.
fn listen(reader: impl Read + Send + 'static) -> Receiver<Incoming> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        loop {
            let incoming = match read_message(&mut reader) {
                Ok(Some(incoming)) => incoming,
                Ok(None) => return,
                Err(why) => {
                    let _ = sender.send(Incoming::Lost(why));
                    return;
                }
            };
            if sender.send(incoming).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The server of one session.
struct Server {
    requests: Receiver<Incoming>,
    /// What waits until the run stops.
    waiting: VecDeque<Incoming>,
    out: Outgoing,
    /// True when the editor has configured the session.
    has_begun: bool,
    stops_on_entry: bool,
    /// The numbers of the first line and column of the editor.
    first_line: u32,
    first_column: u32,
    /// The request that starts the session, which is answered when breakpoints are set.
    launch: Option<Request>,
    /// What data breakpoints are on, by their names.
    data: HashMap<String, Watch>,
    /// Why no further message can be read.
    failure: Option<String>,
}

impl Server {
    fn next(&mut self) -> Option<Incoming> {
        let waiting = self.waiting.pop_front();
        waiting.or_else(|| self.requests.recv().ok())
    }

    /// Tells the editor that the run is stopped.
    fn tell_stop(&self, pause: &Pause<'_, '_, '_>) {
        let (reason, text) = match &pause.reason {
            StopReason::Entry => ("entry", None),
            StopReason::Step | StopReason::Reached => ("step", None),
            StopReason::Breakpoint(ids) => {
                let list = pause.breakpoints.list().iter();
                let mut hit = list.filter(|breakpoint| ids.contains(&breakpoint.id));
                let is_function = hit.all(|breakpoint| breakpoint.owner == "functions");
                let reason = if is_function {
                    "function breakpoint"
                } else {
                    "breakpoint"
                };
                (reason, None)
            }
            StopReason::Watch(_, text) => ("data breakpoint", Some(text.clone())),
            StopReason::Write(text) => ("data breakpoint", Some(format!("writes {text}"))),
            StopReason::NotWritten(text) => ("step", Some(text.clone())),
            StopReason::Pause => ("pause", None),
            StopReason::Trap(text) => ("exception", Some(text.clone())),
            StopReason::End(text) => ("step", Some(format!("the end of the input: {text}"))),
            StopReason::Start => ("step", Some("the begin of the session".to_owned())),
        };
        let mut body = json!({ "reason": reason, "threadId": 1, "allThreadsStopped": true });
        if let Some(text) = text {
            body["description"] = json!(text);
            body["text"] = json!(text);
        }
        if let StopReason::Breakpoint(ids) = &pause.reason {
            body["hitBreakpointIds"] = json!(ids);
        }
        if let StopReason::Watch(id, _) = &pause.reason {
            body["hitBreakpointIds"] = json!([id]);
        }
        self.out.event("stopped", body);
    }
}

impl FrontEnd for Server {
    fn stopped(&mut self, pause: &mut Pause<'_, '_, '_>) -> Resume {
        if self.has_begun {
            self.tell_stop(pause);
        }
        let mut trees = show::Trees::default();
        loop {
            let Some(incoming) = self.next() else {
                return Resume::Quit;
            };
            let request = match incoming {
                Incoming::Request(request) => request,
                Incoming::Other(why) => {
                    self.out.complain(&why);
                    continue;
                }
                Incoming::Lost(why) => {
                    self.failure = Some(why);
                    return Resume::Quit;
                }
            };
            let was_begun = self.has_begun;
            let answer = self.answer(&request, pause, &mut trees);
            match answer {
                Answer::Done(result) => self.out.answer(&request, result),
                Answer::Later => {}
                Answer::Resume(body, resume) => {
                    self.out.answer(&request, Ok(body));
                    return resume;
                }
            }
            if !was_begun && self.has_begun {
                if let Some(launch) = self.launch.take() {
                    self.out.answer(&launch, Ok(json!({})));
                }
                if !self.stops_on_entry {
                    return Resume::Begin;
                }
                self.tell_stop(pause);
            }
        }
    }

    fn poll(&mut self, breakpoints: &mut Breakpoints, view: &View<'_, '_, '_>) -> Poll {
        while let Ok(incoming) = self.requests.try_recv() {
            let request = match &incoming {
                Incoming::Request(request) => request,
                Incoming::Lost(why) => {
                    self.failure = Some(why.clone());
                    return Poll::Quit;
                }
                Incoming::Other(_) => {
                    self.waiting.push_back(incoming);
                    continue;
                }
            };
            match &*request.command {
                "pause" => {
                    self.out.answer(request, Ok(json!({})));
                    return Poll::Stop;
                }
                "disconnect" | "terminate" => {
                    self.out.answer(request, Ok(json!({})));
                    return Poll::Quit;
                }
                "threads" => self.out.answer(request, Ok(requests::threads(view))),
                command if breakpoints::is_setting(command) => {
                    let result = self.set_breakpoints(request, breakpoints, view);
                    self.out.answer(request, result);
                }
                _ => self.waiting.push_back(incoming),
            }
        }
        Poll::GoOn
    }

    fn show(&mut self, line: &str) {
        let body = json!({ "category": "console", "output": format!("{line}\n") });
        self.out.event("output", body);
    }

    fn failure(&mut self) -> Option<String> {
        self.failure.take()
    }
}

/// A member of the arguments of a request.
fn argument<'a>(request: &'a Request, name: &str) -> &'a Value {
    request.arguments.get(name).unwrap_or(&Value::Null)
}

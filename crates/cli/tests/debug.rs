//! `beebox debug`: the protocol on standard streams and sockets, commands, and input that is wrong.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const EDGE: &str = "examples/why/edge.bpf.o";
const SAMPLE: &str = "examples/sample.pcap";

fn beebox(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beebox"));
    command
        .arg("debug")
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .stdin(Stdio::null());
    command
}

/// Exit code, standard output and standard error.
fn answer(words: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = beebox(words).output().expect("beebox starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code().expect("a code"), text(stdout), text(stderr))
}

fn send(out: &mut impl Write, seq: u64, command: &str, arguments: &Value) {
    let request =
        json!({ "seq": seq, "type": "request", "command": command, "arguments": arguments });
    let text = request.to_string();
    write!(out, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    out.flush().unwrap();
}

/// The next message; `None` at the end.
fn receive(input: &mut impl BufRead) -> Option<Value> {
    let mut header = String::new();
    input.read_line(&mut header).unwrap();
    let length = header.trim().strip_prefix("Content-Length: ")?;
    input.read_line(&mut String::new()).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    input.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).ok()
}

/// Reads messages up to one that is an event of this name, or an answer to a command.
fn up_to(input: &mut impl BufRead, name: &str) -> Value {
    loop {
        let message = receive(input).unwrap_or_else(|| panic!("the end in front of {name}"));
        if message["event"] == name || message["command"] == name {
            return message;
        }
    }
}

/// Holds a session: stops at the first verdict, goes back to the write of a variable, and ends.
fn hold(mut input: impl BufRead, mut out: impl Write) {
    send(&mut out, 1, "initialize", &json!({ "adapterID": "beebox" }));
    up_to(&mut input, "initialized");
    send(&mut out, 2, "launch", &json!({}));
    send(
        &mut out,
        3,
        "setExceptionBreakpoints",
        &json!({ "filters": ["verdict"] }),
    );
    send(&mut out, 4, "configurationDone", &json!({}));
    assert_eq!(up_to(&mut input, "launch")["success"], true);
    assert_eq!(up_to(&mut input, "stopped")["body"]["reason"], "breakpoint");
    send(
        &mut out,
        5,
        "beebox/whoWrote",
        &json!({ "expression": "$r0" }),
    );
    assert_eq!(
        up_to(&mut input, "stopped")["body"]["reason"],
        "data breakpoint"
    );
    send(&mut out, 6, "stackTrace", &json!({ "threadId": 1 }));
    let trace = up_to(&mut input, "stackTrace");
    let top = &trace["body"]["stackFrames"][0];
    assert_eq!((&top["name"], &top["line"]), (&json!("edge"), &json!(147)));
    send(&mut out, 7, "disconnect", &json!({}));
    assert_eq!(up_to(&mut input, "exited")["body"]["exitCode"], 0);
}

#[oracle::test]
fn an_editor_debugs_on_standard_streams() {
    let mut child = beebox(&[EDGE, "--pcap", SAMPLE, "--from", "59", "--dap"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (input, out) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    hold(BufReader::new(input), out);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[oracle::test]
fn an_editor_debugs_on_a_socket() {
    let words = [
        EDGE,
        "--pcap",
        SAMPLE,
        "--from",
        "59",
        "--listen",
        "127.0.0.1:0",
    ];
    let mut child = beebox(&words).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap();
    let socket = TcpStream::connect(address).unwrap();
    hold(BufReader::new(socket.try_clone().unwrap()), socket);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[oracle::test]
fn an_object_that_is_refused_fails_the_launch() {
    let object = "examples/verify/port.bpf.o";
    let mut child = beebox(&[object, "--packet", "zero:60", "--dap"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = child.stdin.take().unwrap();
    let mut input = BufReader::new(child.stdout.take().unwrap());
    send(&mut out, 1, "initialize", &json!({}));
    assert_eq!(up_to(&mut input, "initialize")["success"], true);
    send(&mut out, 2, "launch", &json!({}));
    let refused = up_to(&mut input, "launch");
    assert_eq!(refused["success"], false);
    assert!(
        refused["message"].as_str().unwrap().contains("is refused"),
        "{refused}"
    );
    send(&mut out, 3, "disconnect", &json!({}));
    up_to(&mut input, "disconnect");
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[oracle::test]
fn wrong_input_is_named_with_a_remedy() {
    for (words, said) in [
        (&[EDGE][..], "--packet HEX|FILE or --pcap IN"),
        (
            &[EDGE, "--pcap", SAMPLE, "--from", "999"],
            "packets 1 to 298 only",
        ),
        (&[EDGE, "--pcap", "README.md"], "README.md"),
        (&["README.md", "--packet", "zero:60"], "not a BPF object"),
        (
            &[EDGE, "--packet", "zero:60", "--listen", "nowhere"],
            "127.0.0.1:4711",
        ),
        (&[EDGE, "--packet", "zero:60", "--from", "2"], "--pcap"),
        (
            &[EDGE, "--packet", "zero:60", "--dap", "--execute", "c"],
            "cannot be used with",
        ),
        (
            &["examples/verify/port.bpf.o", "--packet", "zero:60"],
            "beebox verify",
        ),
        (&[EDGE, "--packet", "00"], "14"),
        (
            &[EDGE, "--packet", "zero:60", "--execute", "nonsense"],
            "nonsense",
        ),
    ] {
        let (code, out, error) = answer(words);
        assert_eq!(code, 2, "{words:?}: {out}{error}");
        assert!(error.contains(said), "{words:?}: {error}");
    }
}

#[oracle::test]
fn a_trap_is_where_a_session_ends() {
    let words = [
        EDGE,
        "--pcap",
        SAMPLE,
        "--budget",
        "30",
        "--execute",
        "c",
        "--execute",
        "rs",
        "--execute",
        "c",
        "--execute",
        "c",
    ];
    let (code, out, error) = answer(&words);
    assert_eq!((code, &error[..]), (0, ""), "{out}");
    let stops = out.matches("The program is stopped here").count();
    // Going on at the end stays there, so that the way back is open.
    assert_eq!(stops, 3, "{out}");
}

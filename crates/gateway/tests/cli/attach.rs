//! What `beebox-gateway` prints, and the data plane at a device of a network namespace.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use std::{fs, thread};

use sys::network::OwnNamespace;
use sys::socket::{PacketLayer, PacketSocket};

use super::{CAPTURE, GATEWAY, RULES, run, stderr_of, text};

#[oracle::test]
fn verdicts_of_packets_are_those_of_the_first_rule() {
    for hook in ["xdp", "tc"] {
        let words = ["run", RULES, "--pcap", CAPTURE, "--hook", hook];
        let output = run(&[&words[..], &["--per-packet", "--format", "json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        let rules = fs::read_to_string(format!("{root}{RULES}")).unwrap();
        let set = beebox_gateway::RuleSet::parse(&rules).unwrap();
        let mut input = beebox::captures::Input::open_path(format!("{root}{CAPTURE}")).unwrap();
        let lines = text(&output);
        let mut lines = lines.lines();
        let mut number = 0;
        while let Some(event) = input.next_event().unwrap() {
            let capture::Event::Packet(packet) = event else {
                continue;
            };
            number += 1;
            let found = set
                .first_match(&beebox_gateway::Header::of(packet.data()))
                .rule;
            let verdict = match set.action(found) {
                beebox_gateway::Action::Drop => "drop",
                _ => "pass",
            };
            let rule = if found as usize > set.rules.len() {
                0
            } else {
                found
            };
            let expected = format!(
                "{{\"schema\":1,\"packet\":{number},\"verdict\":\"{verdict}\",\"rule\":{rule}}}"
            );
            assert_eq!(lines.next(), Some(&*expected));
        }
        assert_eq!(lines.next(), None);
    }
}

#[oracle::test]
fn compiled_rules_run_as_rules_do() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("office.state");
    let state = state.to_str().unwrap();
    let compiled = run(&["compile", RULES, "-o", state, "--no-analysis"]);
    assert_eq!(compiled.status.code(), Some(0), "{compiled:?}");
    let of = |rules: &str| text(&run(&["run", rules, "--pcap", CAPTURE, "--format", "json"]));
    assert_eq!(of(state), of(RULES));
    assert!(!of(state).is_empty());
    let mut damaged = fs::read(state).unwrap();
    damaged[100] ^= 1;
    fs::write(state, damaged).unwrap();
    let output = run(&["run", state, "--pcap", CAPTURE]);
    assert_eq!(output.status.code(), Some(2));
}

#[oracle::test]
fn wrong_packets_are_named() {
    for (packet, what) in [
        ("", "a frame of 0 bytes: an Ethernet header has 14"),
        ("0102", "a frame of 2 bytes: an Ethernet header has 14"),
        ("nosuch", "there is no such file, and it is no hexadecimal"),
        ("proto tcp from nowhere", "column 16: `nowhere`"),
    ] {
        let output = run(&["explain", RULES, "--packet", packet]);
        let said = stderr_of(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.starts_with("beebox-gateway: --packet: ") && said.contains(what),
            "{said}"
        );
    }
}

/// A port that no rule names.
const LATER: u16 = 9;

/// A frame from 192.0.2.1 to 192.0.2.2 for a TCP port, from a port that tells frames apart.
fn frame(number: u16, port: u16) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..12].copy_from_slice(&[0xff; 12]);
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[17] = 46;
    frame[22..24].copy_from_slice(&[64, 6]);
    frame[26..34].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
    frame[34..36].copy_from_slice(&number.to_be_bytes());
    frame[36..38].copy_from_slice(&port.to_be_bytes());
    frame
}

/// True if a frame for a port arrives at the other end before one for [`LATER`] that is sent
/// after it, as both take one way. A device that was just changed loses frames for a moment:
/// then both are sent again.
fn arrives(from: &PacketSocket, to: &PacketSocket, port: u16) -> bool {
    static SENT: AtomicU16 = AtomicU16::new(0);
    let mut received = [0; 2048];
    for _ in 0..100 {
        let number = SENT.fetch_add(1, Ordering::Relaxed);
        let [wanted, later] = [port, LATER].map(|port| frame(number, port));
        from.send(&wanted).unwrap();
        from.send(&later).unwrap();
        let mut arrived = false;
        for _ in 0..100 {
            while let Some(len) = to.receive(&mut received).unwrap() {
                let is = |frame: &[u8]| received[..len].get(26..38) == frame.get(26..38);
                arrived |= is(&wanted);
                if is(&later) {
                    return arrived;
                }
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
    panic!("no frame arrives at the other end");
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
}

#[oracle::test]
fn packets_at_a_device_are_filtered_until_the_command_ends() {
    let thread = thread::spawn(|| {
        let Ok(namespace) = OwnNamespace::enter() else {
            oracle::skip("the gateway at a device", "no network namespace of our own");
            return;
        };
        let [near, far] = namespace.create_ethernet_pair().unwrap();
        let from = PacketSocket::open(far.ifindex, PacketLayer::Link).unwrap();
        let to = PacketSocket::open(near.ifindex, PacketLayer::Link).unwrap();
        assert!(arrives(&from, &to, 80));
        let directory = tempfile::tempdir().unwrap();
        let rules = directory.path().join("rules");
        for hook in ["xdp", "tc"] {
            fs::write(&rules, "drop proto tcp from any to any port 80\n").unwrap();
            let mut command = Command::new(GATEWAY.path);
            command.args(["attach", "bee0", "--hook", hook]);
            command.arg(&rules);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
            let mut next_line = || said.next().unwrap().unwrap();
            let line = next_line();
            assert!(line.starts_with("1 rule at bee0"), "{hook}: {line}");
            // A packet socket sees frames before tc does, and XDP before it.
            let is_xdp = hook == "xdp";
            assert_eq!(arrives(&from, &to, 80), !is_xdp);
            assert!(arrives(&from, &to, 81));
            fs::write(&rules, "drop proto tcp from any to any port 81\n").unwrap();
            signal(&child, "-HUP");
            assert!(next_line().starts_with("1 rule at bee0 (index "));
            assert_eq!(arrives(&from, &to, 81), !is_xdp);
            assert!(arrives(&from, &to, 80));
            // Other rules by the command.
            let other = directory.path().join("other");
            let update = |text: &str| {
                fs::write(&other, text).unwrap();
                run(&["update", "bee0", other.to_str().unwrap()])
            };
            let updated = update("drop proto tcp from any to any port 82\n");
            assert_eq!(updated.status.code(), Some(0), "{updated:?}");
            assert!(stderr_of(&updated).starts_with("1 rule at bee0 (index "));
            let hits = "rule 1: drop proto tcp to any port 81";
            assert!(text(&updated).contains(hits), "{hook}: {updated:?}");
            assert!(next_line().starts_with("1 rule at bee0 (index "));
            assert_eq!(arrives(&from, &to, 82), !is_xdp);
            assert!(arrives(&from, &to, 81));
            // Sets that are wrong or do not fit leave the rules as they are.
            for (rules, said) in [
                ("drop port 82\n".to_owned(), "line 1, column 6: `port`"),
                (
                    "drop\n".repeat(2_000),
                    "the set has 2000 rules, the loaded programs count hits of 1024",
                ),
                (String::new(), "no rules: every packet would pass"),
                ("# drop\n".to_owned(), "no rules: every packet would pass"),
                (
                    "drop proto tcp\ndrop proto ud".to_owned(),
                    "line 2, column 12: `ud`",
                ),
                (
                    "drop proto tcp from 10.0.0.0/8 port 8".to_owned(),
                    "line 1 has no newline",
                ),
            ] {
                let refused = update(&rules);
                assert_eq!(refused.status.code(), Some(2), "{refused:?}");
                assert!(stderr_of(&refused).contains(said), "{refused:?}");
            }
            fs::write(&other, "pass\n").unwrap();
            let second = run(&["attach", "bee0", other.to_str().unwrap()]);
            assert_eq!(second.status.code(), Some(2), "{second:?}");
            let said = "another `beebox-gateway attach` filters bee0";
            assert!(stderr_of(&second).contains(said), "{second:?}");
            assert_eq!(arrives(&from, &to, 82), !is_xdp);
            signal(&child, "-TERM");
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let hits = text(&output);
            for port in ["80", "81", "82"] {
                let rule = format!("rule 1: drop proto tcp to any port {port}");
                assert!(hits.contains(&rule), "{hook}: {hits}");
            }
            assert!([80, 81, 82].iter().all(|port| arrives(&from, &to, *port)));
            let late = update("pass\n");
            assert_eq!(late.status.code(), Some(2), "{late:?}");
            let said = "no `beebox-gateway attach` filters bee0";
            assert!(stderr_of(&late).contains(said), "{late:?}");
        }
    });
    thread.join().unwrap();
}

/// Runs `ip`, whose output is of no interest.
fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status();
    assert!(status.unwrap().success(), "ip {words}");
}

/// A running `attach` with its lines on standard error.
struct Attach {
    child: Child,
    said: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Attach {
    fn start(rules: &str, options: &[&str]) -> Attach {
        let mut command = Command::new(GATEWAY.path);
        command.args(["attach", "v0", rules]);
        command.args(options).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut attach = Attach { child, said };
        attach.says("rules at v0 (index ");
        attach
    }

    fn says(&mut self, text: &str) {
        let line = self.said.next().unwrap().unwrap();
        assert!(line.contains(text), "{line}; expected {text}");
    }
}

impl Drop for Attach {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[oracle::test]
fn changes_of_the_interface_are_noticed() {
    let what = "the gateway at an interface that changes";
    let thread = thread::spawn(move || {
        if OwnNamespace::enter().is_err() {
            return oracle::skip(what, "no network namespace of our own");
        }
        if Command::new("ip").arg("-V").output().is_err() {
            return oracle::skip(what, "there is no ip");
        }
        let make = || {
            ip("link add v0 type veth peer name v1");
            ip("link set v0 up");
        };
        let programs = || {
            let output = Command::new("ip").args(["-d", "link"]).output().unwrap();
            String::from_utf8_lossy(&output.stdout)
                .matches("prog/xdp")
                .count()
        };
        let refused = |words: &[&str], said: &str| {
            let start = std::time::Instant::now();
            let output = run(words);
            assert!(start.elapsed() < Duration::from_secs(10));
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            assert!(stderr_of(&output).contains(said), "{output:?}");
        };
        let directory = tempfile::tempdir().unwrap();
        let rules = directory.path().join("rules");
        fs::write(&rules, "drop proto tcp\npass\n").unwrap();
        let rules = rules.to_str().unwrap();
        make();

        // Renamed: the rules stay, and are replaced by the new name.
        let mut attach = Attach::start(rules, &[]);
        ip("link set v0 down");
        ip("link set v0 name w0");
        attach.says("v0 is called w0 (index ");
        refused(&["update", "v0", rules], "no interface is called v0");
        let updated = run(&["update", "w0", rules]);
        assert_eq!(updated.status.code(), Some(0), "{updated:?}");
        attach.says("2 rules at w0 (index ");
        // Stopped: what was asked for meanwhile does not happen later.
        signal(&attach.child, "-STOP");
        refused(&["update", "w0", rules], "does not answer: is it stopped?");
        refused(&["detach", "w0"], "does not answer: is it stopped?");
        signal(&attach.child, "-CONT");
        // Removed: the process ends with an error, and another device has no rules.
        ip("link del w0");
        attach.says("w0 (index ");
        assert_eq!(attach.child.wait().unwrap().code(), Some(2));
        make();
        refused(
            &["update", "v0", rules],
            "no `beebox-gateway attach` filters v0",
        );
        assert_eq!(programs(), 0);

        // Followed.
        let mut attach = Attach::start(rules, &["--follow"]);
        ip("link del v0");
        attach.says("is gone: no packet is filtered; waiting");
        make();
        attach.says("2 rules at v0 (index ");
        assert_eq!(programs(), 1);
        let updated = run(&["update", "v0", rules]);
        assert_eq!(updated.status.code(), Some(0), "{updated:?}");
        attach.says("2 rules at v0 (index ");
        // Killed: nothing is left, and the next one attaches.
        attach.child.kill().unwrap();
        attach.child.wait().unwrap();
        let left = run(&["detach", "v0"]);
        assert_eq!(left.status.code(), Some(1), "{left:?}");
        assert_eq!(programs(), 0);
        let mut attach = Attach::start(rules, &[]);
        let detached = run(&["detach", "v0"]);
        assert_eq!(detached.status.code(), Some(0), "{detached:?}");
        assert_eq!(programs(), 0);
        assert_eq!(attach.child.wait().unwrap().code(), Some(0));
    });
    thread.join().unwrap();
}

//! The debugger beside the instructions that the checked engine executes, sessions by the protocol with
//! their transcripts, and bad input.

mod client;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ::kernel::maps::RunGuard;
use capture::Event;
use expect_test::expect_file;
use object::Object;
use serde_json::{Value, json};
use spec::Kernel;
use trace::dwarf::Debug;

use super::super::capture::frame_time;
use super::super::{LoadOptions, LoadedObject, RunCaptureError, can_test_run, takes_packet};
use super::{
    Breakpoints, DebugError, DebugInput, DebugSetup, DebugStep, FrontEnd, Pause, Poll, Position,
    Resume, StepKind, StopReason, View, debug, interact,
};
use crate::internal::captures::Input;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An object with what it is debugged with.
struct Debugged {
    file: Vec<u8>,
    folder: PathBuf,
    kernel: Kernel,
}

impl Debugged {
    fn new(path: &Path) -> Debugged {
        Debugged {
            file: std::fs::read(path).unwrap(),
            folder: path.parent().unwrap().to_owned(),
            kernel: kernel_data::linux_6_18(),
        }
    }

    fn object(&self) -> Object<'_> {
        let mut object = Object::open(&self.file).unwrap();
        object.set_autoload(|program| program.kind.is_some_and(can_test_run));
        object
    }

    /// Holds a session on the sample capture.
    fn session(&self, program: &str, from: u64, hold: impl FnOnce(&DebugSetup<'_>)) {
        let object = self.object();
        let debug = Debug::read(&self.file);
        let load = || {
            let options = LoadOptions {
                watches_stack: true,
                ..LoadOptions::default()
            };
            let loaded = LoadedObject::load(&object, &self.kernel, &options);
            let mut loaded = loaded.map_err(|error| error.to_string())?;
            loaded.open_perf_buffers(1 << 20).unwrap();
            Ok(loaded)
        };
        let sample = || {
            let input = Input::try_open_path(root().join("examples/sample.pcap"));
            input.map_err(RunCaptureError::Capture)
        };
        hold(&DebugSetup {
            load: &load,
            set_up: &|program| program.collect_records(true),
            program,
            input: DebugInput::Capture(&sample),
            first_packet: from,
            kernel: &self.kernel,
            debug: debug.as_ref(),
            folder: &self.folder,
        });
    }
}

/// Program and slot of each instruction that the checked engine executes, by packet.
fn executed(debugged: &Debugged, program: &str) -> Vec<Vec<(u32, u32)>> {
    let object = debugged.object();
    let mut loaded =
        LoadedObject::load(&object, &debugged.kernel, &LoadOptions::default()).unwrap();
    loaded.open_perf_buffers(1 << 20).unwrap();
    let mut program = loaded.program_of(program).unwrap();
    program.collect_records(true);
    let mut input = Input::open_path(root().join("examples/sample.pcap")).unwrap();
    let mut all = Vec::new();
    while let Some(event) = input.next_event().unwrap() {
        let Event::Packet(record) = event else {
            continue;
        };
        let time = frame_time(&record).unwrap();
        program.record(&debugged.kernel, None);
        let run = program.run_captured(record.data(), time, &mut RunGuard::new());
        program.records();
        let recording = program.attached.watchers.recording.take().unwrap();
        all.push(recording.insns);
        if run.is_err() {
            break;
        }
    }
    all
}

/// A front end that steps through all instructions, then goes to some of the past, and a step back
/// from each.
struct Walker {
    expected: Arc<Vec<Vec<(u32, u32)>>>,
    next: Position,
    /// Where it goes back to, and whether a step back comes next.
    past: Vec<Position>,
    last: Option<Position>,
    checked: Arc<Mutex<(usize, usize)>>,
}

/// Instructions of a run whose variables are looked at.
const MOST_LOOKS: u64 = 300;
/// Instructions of a run that is stepped through.
const MOST_STEPS: usize = 50_000;

const INTO: DebugStep = DebugStep {
    kind: StepKind::Into,
    is_insn: true,
};

impl Walker {
    fn insn(&self, position: Position) -> (u32, u32) {
        self.expected[position.packet as usize - 1][position.insn as usize]
    }

    fn back(&mut self) -> Resume {
        match self.past.pop() {
            Some(position) => {
                self.last = Some(position);
                Resume::To(position)
            }
            None => Resume::Quit,
        }
    }
}

impl FrontEnd for Walker {
    fn stopped(&mut self, pause: &mut Pause<'_, '_, '_>) -> Resume {
        let position = pause.view.position();
        assert_eq!(pause.view.place(), self.insn(position), "{position:?}");
        match (&pause.reason, self.last) {
            (StopReason::Reached, Some(last)) => {
                self.checked.lock().unwrap().1 += 1;
                assert_eq!(position, last);
                if position.insn == 0 {
                    return self.back();
                }
                Resume::BackStep(INTO)
            }
            (StopReason::Step, Some(last)) => {
                assert_eq!(position.insn + 1, last.insn);
                self.back()
            }
            (StopReason::End(_), _) => {
                let packets = self.expected.len() as u64;
                assert_eq!(position.packet, packets);
                self.back()
            }
            (reason, _) => {
                assert!(
                    matches!(reason, StopReason::Entry | StopReason::Step),
                    "{reason:?}"
                );
                assert_eq!(position, self.next);
                self.checked.lock().unwrap().0 += 1;
                let length = self.expected[position.packet as usize - 1].len() as u64;
                self.next = match position.insn + 1 < length {
                    true => Position {
                        insn: position.insn + 1,
                        ..position
                    },
                    false => Position {
                        packet: position.packet + 1,
                        insn: 0,
                    },
                };
                // Each variable has a value, or a reason why not.
                let is_looked_at = position.insn < MOST_LOOKS;
                for row in pause.view.variables(0).iter().filter(|_| is_looked_at) {
                    assert!(!pause.view.node_text(&row.node).is_empty(), "{}", row.name);
                }
                Resume::Step(INTO)
            }
        }
    }

    fn poll(&mut self, _: &mut Breakpoints, _: &View<'_, '_, '_>) -> Poll {
        Poll::GoOn
    }

    fn show(&mut self, _: &str) {}
}

#[test]
fn steps_are_the_instructions_that_the_checked_engine_executes() {
    let mut all = (0, 0);
    for folder in ["packets", "why"] {
        let entries = std::fs::read_dir(root().join("examples").join(folder)).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "o"));
        paths.sort();
        for path in paths {
            let debugged = Debugged::new(&path);
            let object = debugged.object();
            let programs = object.programs();
            let takes = programs.filter(|(_, program)| {
                let kind = program.kind.filter(|kind| can_test_run(*kind));
                kind.is_some_and(takes_packet)
            });
            let names: Vec<String> = takes.map(|(_, it)| it.name.to_string()).collect();
            for name in names {
                let expected = Arc::new(executed(&debugged, &name));
                let mut random = 1_u64;
                let past = (0..6).map(|_| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let packet = (random >> 33) % expected.len() as u64;
                    let length = expected[packet as usize].len() as u64;
                    Position {
                        packet: packet + 1,
                        insn: (random >> 20) % length,
                    }
                });
                let checked = Arc::new(Mutex::new((0, 0)));
                let walker = Walker {
                    next: Position { packet: 1, insn: 0 },
                    past: past.collect(),
                    last: None,
                    checked: checked.clone(),
                    expected: expected.clone(),
                };
                debugged.session(&name, 1, |setup| debug(setup, Box::new(walker)).unwrap());
                let (steps, past) = *checked.lock().unwrap();
                let insns: usize = expected.iter().map(Vec::len).sum();
                assert_eq!((steps, past), (insns, 6), "{}: {name}", path.display());
                all = (all.0 + steps, all.1 + past);
            }
        }
    }
    assert!(all.0 > 100_000 && all.1 > 50, "{all:?}");
}

/// Steps through a program of the kernel's selftests that declares its result; the number of its
/// instructions, if it is loaded and returns.
fn step_through(object: &Object<'_>, file: &[u8], name: &str, kernel: &Kernel) -> Option<usize> {
    let load = || {
        let loaded = LoadedObject::load(object, kernel, &LoadOptions::default());
        loaded.map_err(|error| error.to_string())
    };
    let loaded = load().ok()?;
    let mut program = loaded.program_of(name)?;
    let packet = match takes_packet(program.kind()) {
        true => vec![0; 64],
        false => Vec::new(),
    };
    program.record(kernel, None);
    program.test_run(&packet).ok()?;
    let expected = Arc::new(vec![program.attached.watchers.recording.take()?.insns]);
    if expected[0].len() > MOST_STEPS {
        return None;
    }
    let debug_info = Debug::read(file);
    let checked = Arc::new(Mutex::new((0, 0)));
    let walker = Walker {
        next: Position { packet: 1, insn: 0 },
        past: Vec::new(),
        last: None,
        checked: checked.clone(),
        expected: expected.clone(),
    };
    let setup = DebugSetup {
        load: &load,
        set_up: &|_| {},
        program: name,
        input: DebugInput::TestRun {
            packet,
            context: None,
        },
        first_packet: 1,
        kernel,
        debug: debug_info.as_ref(),
        folder: Path::new(""),
    };
    debug(&setup, Box::new(walker)).unwrap();
    let steps = checked.lock().unwrap().0;
    assert_eq!(steps, expected[0].len(), "{name}");
    Some(steps)
}

#[test]
#[ignore = "asks the built selftests of the kernel"]
fn steps_of_selftests_are_the_instructions_that_the_checked_engine_executes() {
    let what = "steps of the debugger beside the kernel's selftests";
    let Some(objects) = oracle::found(what, oracle::selftest_set("7.2/obj-v3")) else {
        return;
    };
    let kernel = kernel_data::linux_6_18();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(objects)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "o"))
        .collect();
    paths.sort();
    let mut programs = 0;
    for path in paths {
        let file = std::fs::read(&path).unwrap();
        let Ok(mut object) = Object::open(&file) else {
            continue;
        };
        let all = object.programs();
        let runs = all.filter(|(_, it)| it.kind.is_some_and(can_test_run));
        let names: Vec<String> = runs.map(|(_, it)| it.name.to_string()).collect();
        for name in names {
            if !declares_result(&object, &name) {
                continue;
            }
            object.set_autoload(|program| program.name == *name);
            programs += usize::from(step_through(&object, &file, &name, &kernel).is_some());
        }
    }
    assert!(programs >= 300, "{programs} programs");
}

/// True if a program of the selftests declares what it returns.
fn declares_result(object: &Object<'_>, name: &str) -> bool {
    let declared = || {
        let types = object.btf()?;
        let function = types.find(btf::Kind::Func, name)?;
        let mut tags = types.decl_tags(function.id(), -1);
        tags.find(|tag| tag.to_string_lossy().contains("test_retval="))
    };
    declared().is_some()
}

/// The transcript of requests of an editor on the example of `run --why`.
fn transcript(requests: &[(&str, Value)]) -> String {
    let debugged = Debugged::new(&root().join("examples/why/edge.bpf.o"));
    let mut text = String::new();
    debugged.session("edge", 59, |setup| {
        text = client::hold(setup, |client| {
            for (command, arguments) in requests {
                client.request(command, arguments.clone());
            }
        });
    });
    let folder = debugged.folder.canonicalize().unwrap();
    text.replace(&folder.display().to_string(), "FOLDER")
}

/// Requests that begin a session with breakpoints of lines.
fn begin(lines: &[u64]) -> Vec<(&'static str, Value)> {
    let lines: Vec<Value> = lines.iter().map(|line| json!({ "line": line })).collect();
    vec![
        ("initialize", json!({ "adapterID": "beebox" })),
        ("launch", json!({})),
        (
            "setBreakpoints",
            json!({ "source": { "path": "/elsewhere/edge.bpf.c" }, "breakpoints": lines }),
        ),
        ("configurationDone", json!({})),
    ]
}

#[test]
fn an_editor_steps_and_goes_back() {
    let mut requests = begin(&[136]);
    requests.extend([
        ("threads", json!({})),
        ("stackTrace", json!({ "threadId": 1 })),
        ("scopes", json!({ "frameId": 0 })),
        ("variables", json!({ "variablesReference": 1 })),
        ("next", json!({ "threadId": 1 })),
        ("stepIn", json!({ "threadId": 1 })),
        ("stackTrace", json!({ "threadId": 1, "levels": 1 })),
        ("stepBack", json!({ "threadId": 1 })),
        (
            "stepIn",
            json!({ "threadId": 1, "granularity": "instruction" }),
        ),
        ("evaluate", json!({ "expression": "port", "frameId": 0 })),
        ("evaluate", json!({ "expression": "*ip", "frameId": 0 })),
        ("evaluate", json!({ "expression": "ip.ttl", "frameId": 0 })),
        (
            "evaluate",
            json!({ "expression": "ports[53].bytes", "frameId": 0 }),
        ),
        (
            "beebox/whoWrote",
            json!({ "expression": "ports[53]", "frameId": 0 }),
        ),
        ("stackTrace", json!({ "threadId": 1, "levels": 1 })),
        ("reverseContinue", json!({ "threadId": 1 })),
        ("continue", json!({ "threadId": 1 })),
        ("disconnect", json!({})),
    ]);
    expect_file!["tests/steps.txt"].assert_eq(&transcript(&requests));
}

#[test]
fn an_editor_sets_breakpoints_of_all_kinds() {
    let mut requests = begin(&[]);
    let functions = json!({ "breakpoints": [
        { "name": "announced" }, { "name": "map_update_elem" }, { "name": "map:ports" },
        { "name": "count", "condition": "bytes > 70" }, { "name": "nothing" },
    ] });
    requests.insert(3, ("setFunctionBreakpoints", functions));
    requests.extend([
        ("continue", json!({ "threadId": 1 })),
        ("continue", json!({ "threadId": 1 })),
        ("continue", json!({ "threadId": 1 })),
        ("setFunctionBreakpoints", json!({ "breakpoints": [] })),
        ("dataBreakpointInfo", json!({ "name": "ports[53].segments" })),
        (
            "setDataBreakpoints",
            json!({ "breakpoints": [{ "dataId": "ports[53].segments" }] }),
        ),
        ("continue", json!({ "threadId": 1 })),
        ("setDataBreakpoints", json!({ "breakpoints": [] })),
        (
            "setExceptionBreakpoints",
            json!({ "filters": [], "filterOptions": [{ "filterId": "verdict", "condition": "XDP_PASS" }] }),
        ),
        ("continue", json!({ "threadId": 1 })),
        ("evaluate", json!({ "expression": "$r0", "frameId": 0 })),
        ("setExceptionBreakpoints", json!({ "filters": [] })),
        (
            "disassemble",
            json!({ "memoryReference": "0x100000000", "instructionOffset": -1, "instructionCount": 4 }),
        ),
        ("readMemory", json!({ "memoryReference": "0", "count": 4 })),
        ("evaluate", json!({ "expression": "1 / 0", "frameId": 0 })),
        ("evaluate", json!({ "expression": "((((", "frameId": 0 })),
        ("variables", json!({ "variablesReference": 99 })),
        ("scopes", json!({ "frameId": 7 })),
        ("juggle", json!({})),
        ("terminate", json!({})),
    ]);
    expect_file!["tests/breakpoints.txt"].assert_eq(&transcript(&requests));
}

#[test]
fn messages_that_are_none_end_a_session_with_words() {
    for (bytes, said) in [
        (
            &b"Content-Length: 99999999999999\r\n\r\n"[..],
            "is no number of bytes",
        ),
        (b"Content-Length: 10\r\n\r\n{}", "ends within a message"),
        (b"Hello\r\n\r\n", "is no header"),
        (b"\r\n\r\n", "no Content-Length"),
        (b"Content-Length: 3\r\n\r\n{x}", "is no JSON"),
        (b"Content-Length: 2\r\n\r\n[]", "is no request"),
        (b"Content-Length: -1\r\n\r\n", "is no number of bytes"),
    ] {
        let debugged = Debugged::new(&root().join("examples/why/edge.bpf.o"));
        debugged.session("edge", 1, |setup| {
            let (sent, done) = client::sent(setup, bytes);
            assert!(sent.contains(said), "{said}: {sent}");
            assert_eq!(
                done.is_err(),
                *bytes != b"Content-Length: 2\r\n\r\n[]"[..],
                "{said}"
            );
        });
    }
}

/// What commands of the terminal print.
fn commands(from: u64, commands: &str) -> String {
    commands_on("examples/why/edge.bpf.o", "edge", from, commands)
}

fn commands_on(path: &str, program: &str, from: u64, commands: &str) -> String {
    let debugged = Debugged::new(&root().join(path));
    let mut printed = String::new();
    debugged.session(program, from, |setup| {
        let out = client::Shared::default();
        let given: Vec<String> = commands.lines().map(str::to_owned).collect();
        let ended = interact(setup, given, std::io::empty(), out.clone(), false);
        assert!(
            matches!(ended, Ok(()) | Err(DebugError::FrontEnd(_))),
            "{ended:?}"
        );
        printed = out.text();
    });
    let folder = debugged.folder.canonicalize().unwrap();
    printed.replace(&folder.display().to_string(), "FOLDER")
}

#[test]
fn a_person_debugs_by_line_commands() {
    let text = commands(
        59,
        "b announced\nc\nbt\ninfo locals\nup\np port\np/x port\np ports\ndown\nn\nn\nrn\nrfin\nwho port\n\
         log 138 size of {port}\nwatch ip.ttl\nc\nrc\ninfo registers\np *tcp\nx/8 ip\ninfo packet\n\
         info globals\nl\ndisas\nfin\nd\nc\nrs\nq",
    );
    expect_file!["tests/terminal.txt"].assert_eq(&text);
}

#[test]
fn the_last_write_in_ten_million_instructions_is_found() {
    let debugged = Debugged::new(&root().join("crates/cli/tests/data/spin.bpf.o"));
    let (object, debug) = (debugged.object(), Debug::read(&debugged.file));
    let load = || {
        let options = LoadOptions {
            watches_stack: true,
            ..LoadOptions::default()
        };
        let loaded = LoadedObject::load(&object, &debugged.kernel, &options);
        loaded.map_err(|error| error.to_string())
    };
    let setup = DebugSetup {
        load: &load,
        set_up: &|_| {},
        program: "spin",
        input: DebugInput::TestRun {
            packet: vec![0; 64],
            context: None,
        },
        first_packet: 1,
        kernel: &debugged.kernel,
        debug: debug.as_ref(),
        folder: &debugged.folder,
    };
    let commands = "b XDP_PASS\nc\ninfo frame\nwho state.first\nbt\nwho counts[1]\nc\nwho total";
    let commands = commands.lines().map(str::to_owned).collect();
    let out = client::Shared::default();
    interact(&setup, commands, std::io::empty(), out.clone(), false).unwrap();
    let folder = debugged.folder.canonicalize().unwrap();
    let text = out.text().replace(&folder.display().to_string(), "FOLDER");
    expect_file!["tests/spin.txt"].assert_eq(&text);
}

#[test]
fn commands_that_say_nothing_are_answered() {
    let deep = "(".repeat(2000);
    let text = commands(
        1,
        &format!(
            "fly\nb\nb 9999\nb other.c:3\nb insn:5000\nd 7\np\np nothing\np {deep}\np ctx->nothing\n\
             p 1 +\nx 0\nwho 3\nframe 9\nframe x\ns 3\nlist foo\nx\npacket 0\ninfo\nwatch 1+1\np $r77\np ports[99]\nlog x"
        ),
    );
    expect_file!["tests/errors.txt"].assert_eq(&text);
}

const TOUR: &str = "crates/cli/tests/data/tour.bpf.o";

/// What commands print on the object of all that a debugger meets.
fn tour(from: u64, text: &str) -> String {
    commands_on(TOUR, "tour", from, text)
}

#[test]
fn callbacks_inlined_functions_and_timers_are_gone_through_both_ways() {
    let text = tour(
        1,
        "b tick\nb touch\nb each\nc\nbt\ninfo locals\nrfin\nc\nbt\np *clock\nc\nbt\ninfo locals\nup\n\
         info locals\nfin\nbt\nd\nb add if *total == 3\nc\np index\nrfin\nbt\nrs\nb last\nc\nbt\nq",
    );
    expect_file!["tests/tour-calls.txt"].assert_eq(&text);
}

#[test]
fn maps_and_their_writers_are_those_that_the_program_means() {
    let text = tour(
        58,
        "b map:flows\nc\nc\nd\nb map:left\nc\np left\nc\nc\nwho left[0]\nd\nwatch flows[53]\nc\nc\nc\nd\n\
         who flows[53]\np flows[65536]\np flows[-1]\ninfo maps\np &sum\np *&sum\np &below == &wide\n\
         who below\nc\nc\nrc\npacket 60\nq",
    );
    expect_file!["tests/tour-maps.txt"].assert_eq(&text);
}

#[test]
fn numbers_are_those_of_c() {
    let text = tour(
        1,
        "p huge > 0\np huge > -1\np wide + 32\np wide * 2\np below / 2\np below < 0u\np 1 << 31\np 1u << 31\n\
         p -1 > 0u\np -1L > 0u\np huge / 2\np huge >> 60\np below >> 1\np ~0u\np 7 / 0\np 5 || 1 / 0\np $r1 == 0\n\
         p wide - 0xfffffff1\np 0x80000000\np 2147483648\np -2147483648\nq",
    );
    expect_file!["tests/tour-numbers.txt"].assert_eq(&text);
}

#[test]
fn stack_that_was_not_written_is_shown_as_such() {
    let text = tour(
        59,
        "info locals\np &popped\nwatch popped\nc\nd\npacket 59\nb map_pop_elem\nc\np popped\nn\np popped\nd\nb drain\nc\nbt\ninfo locals\nup\n\
         info locals\np flow->state\nwatch flow->drift\nc\nwatch flow->balance\nc\nrc\nrfin\nbt\nd\nb 190\nc\nwho visit\nq",
    );
    expect_file!["tests/tour-stack.txt"].assert_eq(&text);
}

#[test]
fn hits_choose_by_their_number_in_the_session_both_ways() {
    let chosen = |hits: &str| {
        let debugged = Debugged::new(&root().join(TOUR));
        let mut text = String::new();
        debugged.session("tour", 1, |setup| {
            text = client::hold(setup, |client| {
                let set = json!({ "breakpoints": [{ "name": "add", "hitCondition": hits }] });
                client.request("initialize", json!({}));
                client.request("launch", json!({}));
                client.request("setFunctionBreakpoints", set.clone());
                client.request("configurationDone", json!({}));
                for command in [
                    "continue",
                    "continue",
                    "restart",
                    "continue",
                    "reverseContinue",
                ] {
                    client.request(command, json!({ "threadId": 1 }));
                    client.request("evaluate", json!({ "expression": "index", "frameId": 0 }));
                    client.request("beebox/position", json!({}));
                }
                client.request("setFunctionBreakpoints", set.clone());
                client.request("continue", json!({ "threadId": 1 }));
                client.request("evaluate", json!({ "expression": "index", "frameId": 0 }));
                client.request("disconnect", json!({}));
            });
        });
        let lines = text
            .lines()
            .filter(|line| line.starts_with("< evaluate") || line.starts_with("< beebox/position"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let texts = ["3", ">5", "==3", "%2", "<3"].map(|hits| format!("{hits}\n{}\n", chosen(hits)));
    expect_file!["tests/tour-hits.txt"].assert_eq(&texts.concat());
    let bad = [
        "0x",
        "= =3",
        "-1",
        ">",
        "99999999999999999999",
        "==0",
        "%0",
        "<1",
    ];
    for hits in bad {
        assert!(super::HitChoice::parse(hits).is_err(), "{hits}");
    }
}

#[test]
fn an_editor_watches_values_of_all_frames_and_is_told_what_cannot_be() {
    let debugged = Debugged::new(&root().join(TOUR));
    let mut text = String::new();
    debugged.session("tour", 1, |setup| {
        text = client::hold(setup, |client| {
            let set = |name: &str, more: &str, value: &str| {
                json!({ "breakpoints": [{ "name": name, more: value }] })
            };
            client.request("initialize", json!({}));
            client.request("launch", json!({}));
            client.request("setFunctionBreakpoints", json!({ "breakpoints": [{ "name": "each" }] }));
            client.request("configurationDone", json!({}));
            client.request("stackTrace", json!({ "threadId": 1 }));
            client.request("scopes", json!({ "frameId": 1 }));
            client.request("dataBreakpointInfo", json!({ "name": "visit", "variablesReference": 1 }));
            client.request("dataBreakpointInfo", json!({ "name": "most", "variablesReference": 1 }));
            client.request("variables", json!({ "variablesReference": 1 }));
            client.request("dataBreakpointInfo", json!({ "name": "seen", "variablesReference": 6 }));
            client.request(
                "setDataBreakpoints",
                json!({ "breakpoints": [{ "dataId": "visit.seen of frame 1", "condition": "visit->seen > 20" }] }),
            );
            client.request("setFunctionBreakpoints", json!({ "breakpoints": [] }));
            client.request("continue", json!({ "threadId": 1 }));
            client.request("setDataBreakpoints", json!({ "breakpoints": [] }));
            client.request("setFunctionBreakpoints", set("each", "condition", "(("));
            client.request("setFunctionBreakpoints", set("each", "logMessage", "{1 +}"));
            client.request("setFunctionBreakpoints", set("each", "hitCondition", "= =3"));
            client.request("setFunctionBreakpoints", set("verdict:XDP_NOPE", "condition", ""));
            client.request("setExceptionBreakpoints", json!({ "filters": ["uncaught"] }));
            client.request(
                "setExceptionBreakpoints",
                json!({ "filters": [], "filterOptions": [{ "filterId": "verdict", "condition": "XDP_NOPE" }] }),
            );
            client.request("evaluate", json!({ "expression": "$packet" }));
            let packet = "0xffff88811035d100";
            client.request("readMemory", json!({ "memoryReference": packet, "count": 60 }));
            client.request("readMemory", json!({ "memoryReference": packet, "count": 100_000 }));
            client.request("attach", json!({}));
            client.request("disconnect", json!({}));
        });
    });
    let folder = debugged.folder.canonicalize().unwrap();
    let text = text.replace(&folder.display().to_string(), "FOLDER");
    expect_file!["tests/tour-editor.txt"].assert_eq(&text);
}

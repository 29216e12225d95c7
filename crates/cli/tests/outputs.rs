//! Outputs of commands: they destroy no input, and their errors name them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Runs the command in the root of the repository.
fn beebox(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beebox"));
    command.current_dir(ROOT).args(words).output().unwrap()
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[oracle::test]
fn answers_are_written_as_they_are_printed() {
    const OBJECT: &str = "examples/packets/firewall.bpf.o";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out").display().to_string();
    for (output, words) in [
        ("-o", &["dis", OBJECT][..]),
        ("-o", &["dis", OBJECT, "--format", "raw"]),
        ("-o", &["btf", "dump", OBJECT, "--format", "c"]),
        ("-o", &["btf", "dump", OBJECT, "-j"]),
        ("-o", &["show", OBJECT, "examples/verify/slot.bpf.o"]),
        ("-o", &["show", OBJECT, "-j"]),
        ("-o", &["kfuncs"]),
        ("-o", &["kfuncs", "--header"]),
        ("-o", &["seccomp", "table", "examples/sandbox.asm"]),
        ("-o", &["seccomp", "dis", "examples/sandbox.asm", "-j"]),
        (
            "--output",
            &["verify", "-e", "prog,verdict,insns", "-l2", OBJECT],
        ),
        (
            "--output",
            &["verify", "-e", "prog,verdict", "-o", "csv", OBJECT],
        ),
    ] {
        let printed = beebox(words);
        let written = beebox(&[words, &[output, &path]].concat());
        assert_eq!(written.status.code(), printed.status.code(), "{words:?}");
        assert!(written.stdout.is_empty(), "{words:?}");
        assert!(fs::read(&path).unwrap() == printed.stdout, "{words:?}");
        let to_stream = beebox(&[words, &[output, "-"]].concat());
        assert!(to_stream.stdout == printed.stdout, "{words:?}");
    }
}

#[oracle::test]
fn no_command_writes_over_its_input() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let copy = |from: &str, name: &str| {
        fs::copy(Path::new(ROOT).join(from), path(name)).unwrap();
        path(name)
    };
    let object = copy("examples/packets/firewall.bpf.o", "a.bpf.o");
    let capture = copy("examples/sample.pcap", "a.pcap");
    fs::write(path("a.asm"), "ret #1\n").unwrap();
    fs::write(path("a.s"), "r0 = 0\nexit\n").unwrap();
    fs::write(path("a.json"), "{\"defaultAction\": \"SCMP_ACT_ALLOW\"}").unwrap();
    let (classic, ebpf, profile) = (path("a.asm"), path("a.s"), path("a.json"));
    let other = path("link.bpf.o");
    std::os::unix::fs::symlink(&object, &other).unwrap();
    let all: &[(&str, &[&str])] = &[
        (&classic, &["asm", &classic, "-o", &classic]),
        (&ebpf, &["asm", "--ebpf", &ebpf, "-o", &ebpf]),
        (&profile, &["seccomp", "compile", &profile, "-o", &profile]),
        (&object, &["gen", "header", &object, "-o", &other]),
        (&object, &["gen", "rust", &object, "-o", &object]),
        (
            &object,
            &[
                "gen",
                "min-core-btf",
                "--btf",
                &object,
                "-o",
                &object,
                &object,
            ],
        ),
        (&object, &["link", "-o", &object, &object]),
        (&object, &["dis", &object, "-o", &object]),
        (&object, &["btf", "dump", &object, "-o", &other]),
        (&object, &["show", &object, "-o", &object]),
        (&object, &["verify", &object, "--output", &object]),
        (&object, &["kfuncs", "--btf", &object, "-o", &object]),
        (&profile, &["seccomp", "table", &profile, "-o", &profile]),
        (&profile, &["seccomp", "dis", &profile, "-o", &profile]),
        (
            &capture,
            &["run", &object, "--pcap", &capture, "-w", &capture],
        ),
        (
            &object,
            &["run", &object, "--pcap", &capture, "-w", &object],
        ),
        (&ebpf, &["exec", &ebpf, "--mem", "00", "-o", &ebpf]),
        (
            &capture,
            &["exec", &ebpf, "--mem", &capture, "-o", &capture],
        ),
        (
            &classic,
            &["filter", "-F", &classic, &capture, "-w", &classic],
        ),
        (
            &capture,
            &["filter", "-F", &classic, &capture, "-w", &capture],
        ),
    ];
    for (input, words) in all {
        let before = fs::read(input).unwrap();
        let output = beebox(words);
        let told = stderr_of(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
        let expected = format!("output is also an input (read as {input})\n");
        assert!(told.contains(&expected), "{words:?}: {told}");
        assert!(told.contains("\n  try: another name"), "{words:?}: {told}");
        assert_eq!(fs::read(input).unwrap(), before, "{words:?}");
    }
}

#[oracle::test]
fn standard_input_that_is_the_output_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.asm");
    fs::write(&path, "ret #1\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_beebox"));
    let command = command.args(["asm", "-", "-o"]).arg(&path);
    let output = command
        .stdin(fs::File::open(&path).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = stderr_of(&output);
    assert!(told.contains("(read as standard input)"), "{told}");
    assert_eq!(fs::read(&path).unwrap(), b"ret #1\n");
}

/// A directory with a file of old contents, and the names in it.
fn with_old(directory: &Path) -> std::path::PathBuf {
    let out = directory.join("out.pcap");
    fs::write(&out, "old").unwrap();
    out
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// The command with the signals that end it, which a job in the background has ignored.
fn with_default_signals() -> Command {
    let mut command = Command::new("env");
    command
        .arg("--default-signal=INT,TERM,HUP")
        .arg(env!("CARGO_BIN_EXE_beebox"));
    command
}

#[oracle::test]
fn signals_remove_what_was_begun_and_keep_what_was_there() {
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    let sample = fs::read(Path::new(ROOT).join("examples/sample.pcap")).unwrap();
    let firewall = "examples/packets/firewall.bpf.o";
    for (words, signal, number) in [
        (&["run", firewall, "--pcap", "-", "-w"][..], "TERM", 15),
        (&["run", firewall, "--pcap", "-", "-w"], "HUP", 1),
        (&["run", firewall, "--pcap", "-", "-w"], "INT", 2),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let out = with_old(directory.path());
        let mut child = with_default_signals()
            .current_dir(ROOT)
            .args(words)
            .arg(&out)
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // Its standard input stays open, so it waits for more packets.
        child.stdin.as_mut().unwrap().write_all(&sample).unwrap();
        let start = std::time::Instant::now();
        while names(directory.path()).len() < 2 {
            assert!(start.elapsed().as_secs() < 60, "{words:?} writes no file");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let id = child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.unwrap().success());
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(number), "{words:?}");
        assert_eq!(names(directory.path()), ["out.pcap"], "{words:?}");
        assert_eq!(fs::read(&out).unwrap(), b"old", "{words:?}");
    }
}

/// Waits until a process has a signal blocked.
fn wait_until_blocked(id: u32, signal: u32) {
    let start = std::time::Instant::now();
    loop {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        let blocked = u64::from_str_radix(blocked.unwrap().trim(), 16).unwrap();
        if blocked >> (signal - 1) & 1 != 0 {
            return;
        }
        assert!(
            start.elapsed().as_secs() < 60,
            "signal {signal} is not waited for"
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[oracle::test]
fn signals_end_the_reading_of_a_pipe_and_the_output_is_complete() {
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    let sample = fs::read(Path::new(ROOT).join("examples/sample.pcap")).unwrap();
    let input = tempfile::tempdir().unwrap();
    let all = input.path().join("all.asm");
    fs::write(&all, "ret #65535\n").unwrap();
    let all = all.to_str().unwrap();
    for (name, more, signal, number) in [
        ("out.pcap", &[] as &[&str], "TERM", 15),
        ("out.pcap", &[], "INT", 2),
        ("out.pcap", &[], "HUP", 1),
        ("out.pcap", &["--json"], "TERM", 15),
        ("out.pcapng.gz", &[], "INT", 2),
        ("out.pcap", &["examples/sample.pcap", "--merge"], "INT", 2),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join(name);
        fs::write(&out, "old").unwrap();
        let mut child = with_default_signals()
            .current_dir(ROOT)
            .args(["filter", "-F", all, "-", "-w"])
            .arg(&out)
            .args(more)
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&sample).unwrap();
        wait_until_blocked(child.id(), number as u32);
        // A part of a record, and its standard input stays open.
        stdin.write_all(&[0; 10]).unwrap();
        assert_eq!(fs::read(&out).unwrap(), b"old", "{name} {signal}");
        let id = child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(number), "{output:?}");
        drop(stdin);
        assert_eq!(names(directory.path()), [name], "{signal}");
        let whole = beebox(&["filter", "-F", all, out.to_str().unwrap(), "--count"]);
        assert!(whole.status.success(), "{whole:?}");
        let packets: usize = String::from_utf8_lossy(&whole.stdout)
            .trim()
            .parse()
            .unwrap();
        match more.contains(&"--merge") {
            // Those of the file that come before the last one of the pipe are among them.
            true => assert!((298..=2 * 298).contains(&packets), "{packets}"),
            false => assert_eq!(packets, 298),
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(&packets.to_string()), "{said}");
        assert!(!said.contains("truncated"), "{said}");
    }
}

#[oracle::test]
fn signals_that_are_ignored_end_no_reading() {
    let directory = tempfile::tempdir().unwrap();
    let all = directory.path().join("all.asm");
    fs::write(&all, "ret #65535\n").unwrap();
    let out = directory.path().join("out.pcap");
    // The signal comes while the second part of the capture is waited for.
    let script = "trap '' HUP; \
        (head -c 40000 examples/sample.pcap; sleep 0.5; tail -c +40001 examples/sample.pcap) | \
        \"$@\" & sleep 0.2; kill -s HUP $!; wait $!";
    let output = Command::new("bash")
        .current_dir(ROOT)
        .args(["-c", script, "bash"])
        .arg(env!("CARGO_BIN_EXE_beebox"))
        .args(["filter", "-F"])
        .arg(&all)
        .args(["-", "-w"])
        .arg(&out)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr_of(&output));
    let whole = beebox(&[
        "filter",
        "-F",
        all.to_str().unwrap(),
        out.to_str().unwrap(),
        "--count",
    ]);
    assert_eq!(String::from_utf8_lossy(&whole.stdout), "298\n");
}

#[oracle::test]
fn a_pipe_whose_packets_do_not_fit_leaves_the_old_file() {
    let input = tempfile::tempdir().unwrap();
    let all = input.path().join("all.asm");
    fs::write(&all, "ret #65535\n").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let out = with_old(directory.path());
    let output = Command::new("bash")
        .current_dir(ROOT)
        .args([
            "-c",
            "ulimit -f 1; cat examples/sample.pcap | exec \"$@\"",
            "bash",
        ])
        .arg(env!("CARGO_BIN_EXE_beebox"))
        .args(["filter", "-F"])
        .arg(&all)
        .args(["-", "-w"])
        .arg(&out)
        .output()
        .unwrap();
    let told = stderr_of(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("out.pcap: File too large"), "{told}");
    assert_eq!(names(directory.path()), ["out.pcap"]);
    assert_eq!(fs::read(&out).unwrap(), b"old");
}

#[oracle::test]
fn outputs_that_do_not_fit_leave_the_old_file() {
    let firewall = "examples/packets/firewall.bpf.o";
    let sample = "examples/sample.pcap";
    let input = tempfile::tempdir().unwrap();
    let all = input.path().join("all.asm");
    fs::write(&all, "ret #65535\n").unwrap();
    let all = all.to_str().unwrap();
    for words in [
        &["filter", "-F", all, sample, "-w"][..],
        &["run", firewall, "--pcap", sample, "-w"],
        &["link", firewall, "-o"],
        &["gen", "header", firewall, "-o"],
    ] {
        let directory = tempfile::tempdir().unwrap();
        let out = with_old(directory.path());
        // Files have up to 1,024 bytes.
        let output = Command::new("bash")
            .current_dir(ROOT)
            .args(["-c", "ulimit -f 1; exec \"$@\"", "bash"])
            .arg(env!("CARGO_BIN_EXE_beebox"))
            .args(words)
            .arg(&out)
            .output()
            .unwrap();
        let told = stderr_of(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
        assert!(
            told.contains("out.pcap: File too large"),
            "{words:?}: {told}"
        );
        assert_eq!(names(directory.path()), ["out.pcap"], "{words:?}");
        assert_eq!(fs::read(&out).unwrap(), b"old", "{words:?}");
    }
}

#[oracle::test]
fn a_full_standard_output_is_an_error() {
    let firewall = "examples/packets/firewall.bpf.o";
    let sandbox = "examples/sandbox.asm";
    for words in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["help", "seccomp", "table"],
        &["completions", "bash"],
        &["show", firewall],
        &["dis", firewall],
        &["btf", "dump", firewall],
        &["btf", "show", firewall, "-j"],
        &["verify", firewall],
        &["verify", firewall, "--format", "json"],
        &["run", firewall, "--packet", "zero:60", "--dump-maps"],
        &["run", firewall, "--packet", "zero:60", "-j"],
        &["link", firewall, "-o", "-"],
        &[
            "seccomp",
            "compile",
            "examples/seccomp/web-server.json",
            "--format",
            "raw",
        ],
        &["seccomp", "dis", sandbox],
        &["kfuncs"],
        &[
            "debug",
            firewall,
            "--packet",
            "zero:60",
            "--execute",
            "help",
        ],
    ] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_beebox"));
        let command = command.current_dir(ROOT).args(words).stdout(full);
        let output = command.output().unwrap();
        let told = stderr_of(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
        assert!(
            told.contains("standard output: No space left"),
            "{words:?}: {told}"
        );
    }
}

#[oracle::test]
fn control_characters_of_files_are_escaped() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let replace = |bytes: &mut Vec<u8>, from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let (from, to) = (from.as_bytes(), to.as_bytes());
        let mut found = 0;
        for at in 0..bytes.len() - from.len() {
            if bytes[at..].starts_with(from) {
                bytes[at..at + to.len()].copy_from_slice(to);
                found += 1;
            }
        }
        assert!(found > 0, "{from:?}");
    };
    let mut object = fs::read(Path::new(ROOT).join("examples/packets/firewall.bpf.o")).unwrap();
    // In source lines, in the name of a map and in that of a type.
    replace(&mut object, "return", "\u{1b}]0;x\u{7}");
    replace(&mut object, "open_ports\0", "op\u{1b}[2Jport\0");
    fs::write(path("a.bpf.o"), &object).unwrap();
    fs::write(
        path("a.case"),
        ".program \"a\u{1b}[2J\"\n.type xdp\nr0 = \u{1b}[2J\nexit\n",
    )
    .unwrap();
    let (object, case) = (path("a.bpf.o"), path("a.case"));
    let mut escaped = 0;
    for words in [
        &["dis", &object, "--source"][..],
        &["dis", &object, "--source", "-j"],
        &["dis", &object, "--xlated", "--source"],
        &["show", &object],
        &["show", &object, "--all"],
        &["btf", "dump", &object],
        &["btf", "dump", &object, "--format", "c"],
        &["btf", "show", &object],
        &["verify", &object, "--explain"],
        &["verify", &object, "--cost"],
        &["verify", &object, "--facts"],
        &["verify", &object, "-S", "5"],
        &["run", &object, "--packet", "zero:60", "--dump-maps"],
        &["run", &object, "--packet", "zero:60", "--dump-maps", "-j"],
        &["gen", "header", &object],
        &["verify", &case],
        &["dis", &case],
    ] {
        let output = beebox(words);
        for stream in [&output.stdout, &output.stderr] {
            let text = String::from_utf8(stream.clone()).expect("UTF-8");
            let raw = text
                .chars()
                .find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
            assert_eq!(raw, None, "{words:?}: {text}");
            escaped += text.matches("\\u001b").count();
        }
    }
    assert!(escaped > 5, "{escaped} escapes");
}

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

fn said_by(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn no_command_writes_over_its_input() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let copy = |from: &str, name: &str| {
        fs::copy(Path::new(ROOT).join(from), path(name)).unwrap();
        path(name)
    };
    let object = copy("examples/packets/firewall.bpf.o", "a.bpf.o");
    let rules = copy("examples/gateway/office.rules", "a.rules");
    let capture = copy("examples/sample.pcap", "a.pcap");
    fs::write(path("a.asm"), "ret #1\n").unwrap();
    fs::write(path("a.s"), "r0 = 0\nexit\n").unwrap();
    fs::write(path("a.json"), "{\"defaultAction\": \"SCMP_ACT_ALLOW\"}").unwrap();
    fs::write(path("a.save"), "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n").unwrap();
    let (classic, ebpf, profile) = (path("a.asm"), path("a.s"), path("a.json"));
    let saved = path("a.save");
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
        (&rules, &["gateway", "compile", &rules, "-o", &rules]),
        (
            &rules,
            &["gateway", "run", &rules, "--pcap", &capture, "-w", &rules],
        ),
        (
            &capture,
            &["gateway", "run", &rules, "--pcap", &capture, "-w", &capture],
        ),
        (
            &saved,
            &[
                "gateway",
                "import",
                "--from",
                "iptables-save",
                &saved,
                "-o",
                &saved,
            ],
        ),
        (
            &capture,
            &["run", &object, "--pcap", &capture, "-w", &capture],
        ),
        (
            &object,
            &["run", &object, "--pcap", &capture, "-w", &object],
        ),
        (&ebpf, &["run", "--ebpf", &ebpf, "--mem", "00", "-o", &ebpf]),
        (
            &capture,
            &["run", "--ebpf", &ebpf, "--mem", &capture, "-o", &capture],
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
        let told = said_by(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
        let expected = format!("output is also an input (read as {input})\n");
        assert!(told.contains(&expected), "{words:?}: {told}");
        assert!(told.contains("\n  try: another name"), "{words:?}: {told}");
        assert_eq!(fs::read(input).unwrap(), before, "{words:?}");
    }
}

#[test]
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
    let told = said_by(&output);
    assert!(told.contains("(read as standard input)"), "{told}");
    assert_eq!(fs::read(&path).unwrap(), b"ret #1\n");
}

#[test]
fn the_gateway_names_the_output_that_is_full() {
    let words = ["gateway", "run", "examples/gateway/office.rules"];
    let words = [
        &words[..],
        &["--pcap", "examples/sample.pcap", "-w", "/dev/full"],
    ]
    .concat();
    let output = beebox(&words);
    assert_eq!(output.status.code(), Some(2));
    let told = said_by(&output);
    assert!(
        told.starts_with("beebox: /dev/full: No space left"),
        "{told}"
    );
}

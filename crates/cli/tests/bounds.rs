//! Bombs of every format: each command ends within limits of time and memory, with an
//! answer or an error of ours.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sys::process::measure;

/// Most processor time of a command, in an unoptimised build and on a loaded machine.
const SLOW: Duration = Duration::from_secs(20);
/// Most bytes of memory of a command.
const LARGE: u64 = 500 << 20;

fn example(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../../examples").join(name)
}

/// A file that is large or deep in one respect: its name and its text, made of a size.
struct Bomb {
    name: &'static str,
    text: String,
    /// Commands that read it; `FILE` is its path, `EXAMPLES` the directory of examples.
    commands: &'static [&'static str],
}

fn repeated(count: usize, mut line: impl FnMut(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "{}", line(number));
        text
    })
}

fn listed(count: usize, item: impl FnMut(usize) -> String) -> String {
    let items: Vec<String> = (0..count).map(item).collect();
    items.join(",")
}

const COMPILE: &[&str] = &["seccomp compile FILE", "seccomp check FILE"];
const CLASSIC: &[&str] = &["asm FILE", "seccomp check FILE"];
const EBPF: &[&str] = &["asm --ebpf FILE"];
const VERIFY: &[&str] = &["verify FILE", "show FILE", "dis FILE"];

fn profile(syscalls: &str) -> String {
    format!(r#"{{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{syscalls}]}}"#)
}

fn bombs() -> Vec<Bomb> {
    let bomb = |name, commands, text| Bomb {
        name,
        text,
        commands,
    };
    let allow = |names: &str| format!(r#"{{"names":[{names}],"action":"SCMP_ACT_ALLOW"}}"#);
    let refuse = |names: &str| format!(r#"{{"names":[{names}],"action":"SCMP_ACT_ERRNO"}}"#);
    vec![
        bomb("deep.json", COMPILE, "[".repeat(200_000)),
        bomb("objects.json", COMPILE, "{\"a\":".repeat(100_000)),
        bomb(
            "names.json",
            COMPILE,
            profile(&allow(&listed(100_000, |_| "\"read\"".to_owned()))),
        ),
        bomb(
            "unknown.json",
            COMPILE,
            profile(&allow(&listed(100_000, |number| format!("\"x{number}\"")))),
        ),
        bomb(
            "defaults.json",
            COMPILE,
            profile(&listed(60_000, |number| match number % 2 {
                0 => refuse(&format!("\"r{number}\"")),
                _ => allow(&format!("\"w{number}\"")),
            })),
        ),
        bomb(
            "alternatives.json",
            COMPILE,
            profile(&listed(40_000, |number| {
                format!(
                    r#"{{"names":["read"],"action":"SCMP_ACT_ALLOW","args":[{{"index":{},"value":{number},"op":"SCMP_CMP_NE"}}]}}"#,
                    number % 6
                )
            })),
        ),
        bomb(
            "deep.yaml",
            COMPILE,
            format!("defaultAction: {}", "[".repeat(100_000)),
        ),
        bomb(
            "expectations",
            &["seccomp assert EXAMPLES/seccomp/web-server.json FILE --machine x86_64"],
            repeated(20_000, |number| format!("x86_64 {number} -> not ALLOW")),
        ),
        bomb(
            "labels.asm",
            CLASSIC,
            repeated(100_000, |number| format!("l{number}: ld #1")),
        ),
        bomb(
            "digits.asm",
            CLASSIC,
            format!("ld #{}\nret #0\n", "1".repeat(5_000_000)),
        ),
        bomb("comment.asm", CLASSIC, ";".repeat(10_000_000)),
        bomb(
            "labels.s",
            EBPF,
            repeated(60_000, |number| {
                format!("l{number}:\nif r1 == 0 goto l{}", (number + 1) % 60_000)
            }),
        ),
        bomb(
            "digits.s",
            EBPF,
            format!("r0 = {}\nexit\n", "1".repeat(5_000_000)),
        ),
        bomb(
            "maps.case",
            VERIFY,
            format!(
                ".program xdp\n{}",
                repeated(50_000, |number| format!(".map m{number} array"))
            ),
        ),
        bomb(
            "quotes.case",
            VERIFY,
            format!(".program \"{}", "\\x".repeat(1_000_000)),
        ),
        bomb(
            "rows.csv",
            &["verify -R FILE", "verify -C FILE FILE"],
            format!(
                "file_name,prog_name,verdict\n{}",
                repeated(30_000, |number| format!("f{number},p{number},success"))
            ),
        ),
        bomb(
            "cells.csv",
            &["verify -R FILE"],
            format!("file_name,prog_name,verdict\n{}", "a,".repeat(1_000_000)),
        ),
        bomb(
            "quotes.csv",
            &["verify -R FILE"],
            format!(
                "file_name,prog_name,verdict\n\"{}",
                "a\"\"".repeat(1_000_000)
            ),
        ),
        bomb(
            "globs",
            &["verify EXAMPLES/packets/firewall.bpf.o -f @FILE"],
            format!("{}b/p", "*a".repeat(5_000)),
        ),
        bomb(
            "chains.rules",
            &["gateway import --from iptables-save FILE"],
            format!(
                "*filter\n:INPUT ACCEPT [0:0]\n{}-A INPUT -j C0\n{}-A C63 -j DROP\nCOMMIT\n",
                repeated(64, |number| format!(":C{number} - [0:0]")),
                repeated(63, |number| {
                    let next = number + 1;
                    format!(
                        "-A C{number} -s 10.0.0.1 -j C{next}\n-A C{number} -d 10.0.0.2 -j C{next}"
                    )
                })
            ),
        ),
        bomb(
            "many.rules",
            &["gateway import --from iptables-save FILE"],
            format!(
                "*filter\n:INPUT ACCEPT [0:0]\n{}COMMIT\n",
                repeated(30_000, |number| {
                    format!("-A INPUT -s 10.{}.{}.1 -j DROP", number >> 8, number & 255)
                })
            ),
        ),
        bomb(
            "deep.nft",
            &["gateway import --from nft-json FILE"],
            format!("{{\"nftables\":{}", "[".repeat(100_000)),
        ),
        bomb(
            "deep.maps",
            &["run EXAMPLES/packets/firewall.bpf.o --packet zero:64 --maps FILE"],
            format!("{{\"m\":{}", "[".repeat(100_000)),
        ),
        bomb(
            "network",
            &["run EXAMPLES/packets/firewall.bpf.o --packet zero:64 --network FILE"],
            format!(
                "{{\"devices\":[{}]}}",
                listed(30_000, |number| format!(
                    "{{\"name\":\"d{number}\",\"index\":{}}}",
                    number + 1
                ))
            ),
        ),
        bomb(
            "config",
            &["verify EXAMPLES/packets/firewall.bpf.o --kconfig FILE"],
            "CONFIG_A=y\n".repeat(400_000),
        ),
    ]
}

/// Runs a command; its exit code is one of ours, and its resources are bounded.
fn check(command: &str, file: &Path) {
    let words = command.split(' ').map(|word| match word {
        "FILE" => file.display().to_string(),
        word => word
            .replace("FILE", &file.display().to_string())
            .replace("EXAMPLES", &example("").display().to_string()),
    });
    let mut shell = Command::new("sh");
    // A command that does not end is ended.
    shell.args([
        "-c",
        "ulimit -t 100; exec \"$0\" \"$@\"",
        env!("CARGO_BIN_EXE_beebox"),
    ]);
    let usage = measure(shell.args(words)).expect("beebox starts");
    let code = usage.status.code();
    let name = file.file_name().unwrap_or_default().display();
    assert!(
        matches!(code, Some(0..=2)),
        "{command} of {name}: {:?}",
        usage.status
    );
    assert!(usage.cpu < SLOW, "{command} of {name}: {:?}", usage.cpu);
    assert!(
        usage.peak_memory < LARGE,
        "{command} of {name}: {}",
        usage.peak_memory
    );
}

#[oracle::test]
fn bombs_end_within_limits() {
    let directory = tempfile::tempdir().unwrap();
    for bomb in bombs() {
        let file = directory.path().join(bomb.name);
        fs::write(&file, &bomb.text).unwrap();
        for command in bomb.commands {
            check(command, &file);
        }
    }
}

#[oracle::test]
fn endless_and_silent_files_end_with_a_limit() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let commands: &[&str] = &[
        "verify FILE",
        "verify FILE --type xdp",
        "verify EXAMPLES/packets/firewall.bpf.o --btf FILE",
        "verify EXAMPLES/packets/firewall.bpf.o --kconfig FILE",
        "verify EXAMPLES/packets/firewall.bpf.o -f @FILE",
        "verify -R FILE",
        "show FILE",
        "dis FILE",
        "asm FILE",
        "link -o /dev/null FILE",
        "btf dump FILE",
        "run FILE --packet zero:64",
        "run EXAMPLES/packets/firewall.bpf.o --packet FILE",
        "run EXAMPLES/packets/firewall.bpf.o --packet zero:64 --maps FILE",
        "run EXAMPLES/packets/firewall.bpf.o --packet zero:64 --network FILE",
        "seccomp check FILE",
        "seccomp compile FILE",
        "gateway compile FILE -o /dev/null",
        "gateway import --from nft-json FILE",
    ];
    for path in [Path::new("/dev/zero"), &fifo] {
        for command in commands {
            let words = command.split(' ').map(|word| {
                word.replace("FILE", &path.display().to_string())
                    .replace("EXAMPLES", &example("").display().to_string())
            });
            let mut beebox = Command::new("timeout");
            beebox.args(["60", env!("CARGO_BIN_EXE_beebox")]);
            let output = beebox.args(words).output().expect("beebox starts");
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                output.status.code(),
                Some(2),
                "{command} of {}: {text}",
                path.display()
            );
            let names_limit = text.contains("limit of") || text.contains("the limit for");
            assert!(names_limit, "{command} of {}: {text}", path.display());
        }
    }
}

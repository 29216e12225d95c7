//! Bombs of every format end within limits; an executable of its own, whose memory is small.

use command_tests::Executable;
use command_tests::bounds::{Bomb, bomb, check_bombs, check_endless, repeated};

const EXECUTABLE: Executable = Executable {
    name: "beebox",
    path: env!("CARGO_BIN_EXE_beebox"),
};

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

#[test]
fn bombs_end_within_limits() {
    check_bombs(EXECUTABLE, &bombs());
}

#[test]
fn endless_and_silent_files_end_with_a_limit() {
    let commands = [
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
    ];
    check_endless(EXECUTABLE, &commands);
}

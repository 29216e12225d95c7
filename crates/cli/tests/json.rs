//! Keys of the JSON of every command.

use command_tests::json::{Sample, check_keys};

use crate::support::BEEBOX;

/// Commands that print every key, by input that shows it.
const SAMPLES: &[(&str, &str)] = &[
    ("filter", "-F examples/port-22.ddd examples/sample.pcap"),
    (
        "filter",
        "-F examples/port-22.ddd examples/sample.pcap --why 3",
    ),
    ("filter", "-L"),
    ("asm", "examples/port-22.ddd"),
    ("asm", "--ebpf crates/cli/tests/data/json/sum.asm"),
    ("dis", "examples/port-22.ddd"),
    ("dis", "examples/port-22.ddd --converted"),
    ("dis", "--ebpf crates/cli/tests/data/json/sum.asm"),
    ("dis", "examples/packets/firewall.bpf.o"),
    ("dis", "examples/packets/firewall.bpf.o --source"),
    ("dis", "examples/packets/firewall.bpf.o --xlated"),
    ("exec", "crates/cli/tests/data/json/sum.asm --trace"),
    ("exec", "crates/cli/tests/data/json/trap.asm"),
    (
        "run",
        "examples/packets/firewall.bpf.o --packet zero:60 --dump-maps",
    ),
    (
        "run",
        "examples/packets/flows.bpf.o --pcap examples/sample.pcap",
    ),
    (
        "run",
        "examples/packets/router.bpf.o --network examples/packets/router.json --ifindex 2 --packet \
         '020000000002 020000000107 0800 45000014 00000000 400066e1 c0000207 08080808'",
    ),
    (
        "run",
        "examples/packets/router.bpf.o --network examples/packets/router.json --ifindex 2 --pcap \
         examples/sample.pcap",
    ),
    ("run", "examples/verify/port.bpf.o --packet zero:60"),
    (
        "run",
        "examples/packets/firewall.bpf.o --expect examples/packets/firewall.expect",
    ),
    (
        "verify",
        "examples/packets/firewall.bpf.o examples/verify/port.bpf.o --explain",
    ),
    (
        "verify",
        "examples/packets/firewall.bpf.o --cost --facts -v",
    ),
    (
        "verify",
        "examples/verify/record.bpf.o --explain --log 1 -S 3",
    ),
    (
        "show",
        "examples/packets/firewall.bpf.o examples/packets/flows.bpf.o",
    ),
    (
        "show",
        "examples/traffic/traffic.bpf.o crates/object/tests/objects/core.o --link",
    ),
    ("btf dump", "examples/packets/firewall.bpf.o"),
    ("btf show", "examples/packets/firewall.bpf.o"),
    (
        "btf show",
        "examples/packets/firewall.bpf.o 'struct network'",
    ),
    (
        "btf diff",
        "examples/packets/firewall.bpf.o examples/packets/rewrite.bpf.o",
    ),
    ("kfuncs", ""),
    ("seccomp table", "examples/seccomp/web-server.json"),
    (
        "seccomp table",
        "examples/seccomp/web-server.json --syscall clone",
    ),
    (
        "seccomp eval",
        "examples/seccomp/web-server.json --syscall read",
    ),
    (
        "seccomp diff",
        "examples/sandbox.asm examples/seccomp/unchecked.asm",
    ),
    ("seccomp check", "examples/seccomp/unchecked.asm"),
    ("seccomp check", "examples/port-22.ddd"),
    ("seccomp compile", "examples/seccomp/web-server.json"),
    ("seccomp dis", "examples/seccomp/web-server.json"),
    (
        "seccomp assert",
        "examples/seccomp/web-server.json examples/seccomp/web-server.expect",
    ),
];

/// Objects whose keys are names out of the input.
const BY_NAME: &[&str] = &[
    "run: maps",
    "exec: registers",
    "run: records[].value",
    "show: types",
    "show: linked.kernel.sources",
    "btf show: kinds",
];

#[oracle::test]
fn keys_are_those_of_the_page() {
    let samples = SAMPLES
        .iter()
        .map(|(command, words)| Sample { command, words });
    check_keys(BEEBOX, &samples.collect::<Vec<_>>(), BY_NAME);
}

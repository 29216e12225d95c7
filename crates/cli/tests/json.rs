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
    (
        "filter",
        "-F examples/port-22.ddd crates/cli/tests/data/json/cut.pcap",
    ),
    (
        "filter",
        "-F examples/port-22.ddd examples/sample.pcap examples/sample.pcap examples/sample.pcap \
         examples/sample.pcap",
    ),
    ("asm", "examples/port-22.ddd"),
    ("asm", "--ebpf crates/cli/tests/data/json/sum.asm"),
    ("dis", "examples/port-22.ddd"),
    ("dis", "examples/port-22.ddd --converted"),
    ("dis", "examples/port-22.ddd --jit"),
    ("dis", "--ebpf --jit crates/cli/tests/data/json/sum.asm"),
    ("dis", "--jit crates/object/tests/objects/calls.o"),
    ("dis", "--ebpf crates/cli/tests/data/json/sum.asm"),
    ("dis", "examples/packets/firewall.bpf.o"),
    ("dis", "examples/packets/firewall.bpf.o --source"),
    ("dis", "examples/packets/firewall.bpf.o --xlated"),
    ("test", "examples/tests"),
    ("test", "examples/tests --list"),
    ("test", "crates/cli/tests/data/json/failing.expect"),
    (
        "fuzz",
        "examples/packets/firewall.bpf.o --never XDP_DROP --vary open_ports --runs 20000",
    ),
    (
        "fuzz",
        "examples/packets/flows.bpf.o --assert 'map flows entries 0' --vary-ctx --runs 20000",
    ),
    (
        "mutate",
        "examples/packets/firewall.bpf.o --test examples/tests -c 60",
    ),
    ("exec", "crates/cli/tests/data/json/sum.asm --trace"),
    ("exec", "crates/cli/tests/data/json/trap.asm"),
    (
        "exec",
        "crates/cli/tests/data/json/sum.asm --mem 00 --dump-mem",
    ),
    ("exec", "crates/cli/tests/data/json/trap.asm --budget 1"),
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
    (
        "run",
        "examples/why/edge.bpf.o --set largest_segment=1400 --pcap examples/sample.pcap --why 60",
    ),
    (
        "run",
        "crates/cli/tests/data/why.bpf.o --prog rounds --packet zero:60 --why",
    ),
    (
        "run",
        "crates/cli/tests/data/why.bpf.o --prog callbacks --packet zero:60 --why",
    ),
    (
        "run",
        "examples/packets/dispatch.bpf.o --prog dispatch --pcap examples/sample.pcap --why 59",
    ),
    (
        "run",
        "examples/packets/firewall.bpf.o --pcap examples/sample.pcap --why 1",
    ),
    (
        "run",
        "examples/why/edge.bpf.o --pcap examples/sample.pcap --why 60",
    ),
    (
        "run",
        "examples/verify/port.bpf.o --unverified --packet zero:14 --why",
    ),
    (
        "run",
        "examples/packets/router.bpf.o --network examples/packets/router.json --ifindex 2 --pcap \
         examples/sample.pcap --verdicts --engine checked",
    ),
    (
        "run",
        "examples/why/edge.bpf.o --against crates/cli/tests/data/why.bpf.o --prog edge --pcap \
         examples/sample.pcap",
    ),
    (
        "run",
        "examples/packets/firewall.bpf.o --pcap examples/sample.pcap --expect \
         crates/cli/tests/data/json/verdict.expect",
    ),
    ("run", "examples/verify/port.bpf.o --packet zero:60"),
    (
        "run",
        "examples/verify/port.bpf.o --unverified --packet zero:14",
    ),
    (
        "run",
        "examples/verify/port.bpf.o --unverified --pcap examples/sample.pcap",
    ),
    (
        "run",
        "crates/cli/tests/data/outputs.bpf.o --prog print --packet zero:60",
    ),
    (
        "run",
        "crates/cli/tests/data/outputs.bpf.o --prog print --pcap examples/sample.pcap",
    ),
    (
        "run",
        "crates/cli/tests/data/outputs.bpf.o --prog record --packet zero:60",
    ),
    (
        "run",
        "crates/beebox/tests/run/unwritten.bpf.o --prog direct --packet zero:60 --engine checked",
    ),
    (
        "run",
        "examples/packets/firewall.bpf.o --expect crates/cli/tests/data/json/wrong.expect",
    ),
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
    ("verify", "crates/cli/tests/data/maps.bpf.o --explain"),
    (
        "verify",
        "examples/packets/firewall.bpf.o --privileges none --explain",
    ),
    ("verify", "examples/verify/missing-null-check.case"),
    (
        "verify",
        "crates/beebox/tests/data/kernel_types.bpf.o --explain",
    ),
    (
        "verify",
        "crates/testkit/cases/exceptions/called-directly.case",
    ),
    (
        "verify",
        "crates/cli/tests/data/lacking.bpf.o crates/cli/tests/data/xdp-socket.case --kernel 6.1,6.12,6.18 --explain",
    ),
    (
        "verify",
        "crates/cli/tests/data/xdp-socket.case --diff 6.12,6.18",
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
        "crates/cli/tests/data/bindings.bpf.o crates/object/tests/objects/externs.o",
    ),
    (
        "show",
        "crates/object/tests/objects/refused/old_maps.o --loader libbpf",
    ),
    ("show", "crates/object/tests/maps/everything.o --link"),
    (
        "show",
        "examples/traffic/traffic.bpf.o crates/object/tests/objects/core.o --link",
    ),
    ("btf dump", "examples/packets/firewall.bpf.o"),
    ("btf dump", "crates/object/tests/objects/core.o"),
    ("btf show", "examples/packets/firewall.bpf.o"),
    (
        "btf show",
        "crates/cli/tests/data/bindings.bpf.o 'enum state'",
    ),
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
    (
        "seccomp assert",
        "examples/seccomp/web-server.json crates/cli/tests/data/json/wrong.seccomp",
    ),
    ("seccomp compile", "examples/seccomp/web-server.json"),
    ("seccomp dump", "@crates/cli/tests/data/json/dump.json"),
    // `-l 1` on Linux 6.12.
    ("ask", "@crates/cli/tests/data/json/ask.json"),
    ("coverage", "crates/cli/tests/data/json/half.info"),
    ("seccomp dis", "examples/seccomp/web-server.json"),
    (
        "seccomp assert",
        "examples/seccomp/web-server.json examples/seccomp/web-server.expect",
    ),
];

/// Objects whose keys are names out of the input, and values whose type is that of a map or variable.
const BY_NAME: &[(&str, &str)] = &[
    ("run: maps", "object by name"),
    ("exec: registers", "object by name"),
    ("run: records[].value", "any"),
    ("run: steps[].events[].after.value", "any"),
    ("run: steps[].events[].before.value", "any"),
    ("run: steps[].events[].map_key.value", "any"),
    ("run: steps[].events[].operands[].content.value", "any"),
    ("run: steps[].events[].record_content.value", "any"),
    ("run: steps[].events[].result_operand.content.value", "any"),
    ("show: kinds", "object by name"),
    ("show: linked.kernel.sources", "object by name"),
    ("btf show: kinds", "object by name"),
];

#[oracle::test]
fn keys_are_those_of_the_page() {
    let samples = SAMPLES
        .iter()
        .map(|(command, words)| Sample { command, words });
    check_keys(BEEBOX, &samples.collect::<Vec<_>>(), BY_NAME);
}

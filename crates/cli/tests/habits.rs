//! Habits of people who know other tools: options and values that are accepted, or answered with
//! what to write instead.

use crate::support::beebox;

const PORT: &str = "../../examples/verify/port.bpf.o";
const FIREWALL: &str = "../../examples/packets/firewall.bpf.o";
const SAMPLE: &str = "../../examples/sample.pcap";

/// Exit code, standard output and standard error.
fn answer(words: &[&str]) -> (Option<i32>, String, String) {
    let output = beebox(words, "");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[oracle::test]
fn options_of_other_tools_are_answered() {
    for (words, told) in [
        (&["verify", PORT, "-v", "-o", "csv"][..], "or -o json"),
        (&["verify", PORT, "-l", "2", "-o", "veristat"], "or -o json"),
        (&["verify", "-j", "2", PORT], "-J 2, so many programs"),
        (
            &["verify", PORT, "-o", "out.csv"],
            "--output OUT names a file",
        ),
        (&["filter", "", SAMPLE, "-X"], "-w - | tcpdump -X -r -"),
        (&["filter", "", SAMPLE, "-A"], "-w - | tcpdump -X -r -"),
        (&["filter", "", SAMPLE, "-v"], "-w - | tcpdump -X -r -"),
        (&["filter", "", SAMPLE, "-D"], "try: tcpdump -D"),
        (&["filter", "", SAMPLE, "-W", "3"], "tcpdump -r - -W 3"),
        (
            &["filter", "", SAMPLE, "-y", "RAW"],
            "-d to print the filter",
        ),
    ] {
        let (code, _, error) = answer(words);
        assert_eq!(code, Some(2), "{words:?}: {error}");
        assert!(error.contains(told), "{words:?}: {error}");
    }
}

#[oracle::test]
fn options_of_tcpdump_are_accepted() {
    if sys::libpcap::Libpcap::load().is_err() {
        oracle::skip("options of tcpdump", "no libpcap");
        return;
    }
    let (code, _, error) = answer(&["filter", "-d", "-y", "NONE", "tcp"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("beebox filter -L"), "{error}");
    let (code, raw, _) = answer(&["filter", "-d", "-y", "RAW", "tcp"]);
    assert_eq!(code, Some(0));
    assert!(raw.contains("ldb      [0]"), "{raw}");
    let (code, ..) = answer(&["filter", "tcp", SAMPLE, "--count", "-s", "96"]);
    assert_eq!(code, Some(0));
    let (code, _, error) = answer(&["filter", "inbound", SAMPLE]);
    assert_eq!(code, Some(2));
    assert!(
        error.contains("a capture that states directions"),
        "{error}"
    );
}

#[oracle::test]
fn the_version_of_the_built_in_kernel_assumes_nothing() {
    for version in ["6.18", "6.18.44"] {
        let words = ["verify", FIREWALL, "--kernel-version", version];
        let (code, _, error) = answer(&words);
        assert_eq!((code, error.as_str()), (Some(0), ""), "{version}");
    }
    let (_, _, error) = answer(&["verify", FIREWALL, "--kernel-version", "6.18.7"]);
    assert!(error.contains("assumed as in Linux 6.18"), "{error}");
}

#[oracle::test]
fn sizes_have_units_in_both_cases() {
    for size in ["1T", "1t", "2G", "2g", "64m", "65536k"] {
        let words = ["run", FIREWALL, "--packet", "zero:60", "--memory", size];
        assert_eq!(answer(&words).0, Some(0), "{size}");
    }
    let words = ["run", FIREWALL, "--packet", "zero:60", "--memory", "2x"];
    let (code, _, error) = answer(&words);
    assert_eq!(code, Some(2));
    assert!(
        error.contains("write bytes, as 1073741824 or 64G"),
        "{error}"
    );
}

#[oracle::test]
fn every_command_has_the_format_text() {
    let same = |text: &[&str], other: &[&str]| {
        let (text, other) = (answer(text), answer(other));
        assert_eq!(text.0, Some(0), "{}", text.2);
        assert_eq!(text.1, other.1);
    };
    let filter = "../../examples/port-22.ddd";
    same(&["dis", filter, "--format", "text"], &["dis", filter]);
    same(
        &["asm", filter, "--format", "text"],
        &["asm", filter, "--format", "asm"],
    );
    let text = ["btf", "dump", FIREWALL, "--format", "text"];
    same(&text, &["btf", "dump", FIREWALL]);
    let profile = "../../examples/seccomp/web-server.json";
    let compile = ["seccomp", "compile", profile];
    same(&[&compile[..], &["--format", "text"]].concat(), &compile);
    let (_, json, _) = answer(&[&compile[..], &["-j"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["insns"].is_array());
}

//! `run --html`, `run --why --format html`, `verify --html`: the data of the pages, and what is refused.
//! `tools/html/check.py` tries them in a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const FIREWALL: &str = "examples/packets/firewall.bpf.o";
const SAMPLE: &str = "examples/sample.pcap";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Exit code, standard output and standard error.
fn answer(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .current_dir(root())
        .output()
        .expect("beebox starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let code = output.status.code().expect("a code");
    (code, text(output.stdout), text(output.stderr))
}

/// The data of a page, which ends at the first end of an element.
fn data(page: &str) -> Value {
    let (_, data) = page.split_once(" id=\"data\">").expect("data");
    let (data, _) = data.split_once("</script>").expect("its end");
    serde_json::from_str(data).expect("JSON")
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The numbers of the lines of `--why`, with loops as often as they are told.
fn lines(steps: &Value, out: &mut Vec<u64>) {
    for step in items(steps) {
        match step.get("source") {
            Some(source) => out.push(source["line"].as_u64().unwrap_or(0)),
            None => {
                lines(&step["first_steps"], out);
                lines(&step["last_steps"], out);
            }
        }
    }
}

#[oracle::test]
fn a_page_of_a_run_has_what_the_other_forms_have() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("run.html").display().to_string();
    let coverage = format!("lcov={}", directory.path().join("lcov").display());
    let run = ["run", FIREWALL, "--pcap", SAMPLE];
    let rest = [
        "--html",
        &page,
        "--verdicts",
        "--format",
        "csv",
        "--coverage",
        &coverage,
    ];
    let (code, rows, said) = answer(&[&run[..], &rest[..]].concat());
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("coverage: 32 of 34 lines, 16 of 20 branches"),
        "{said}"
    );
    let data = data(&fs::read_to_string(&page).expect("a page"));
    let text = |number: &Value| items(&data["strings"])[number.as_u64().unwrap() as usize].clone();
    let packets = items(&data["packets"]);
    let rows: Vec<&str> = rows.lines().skip(1).collect();
    assert_eq!(packets.len(), rows.len());
    for (packet, row) in packets.iter().zip(rows) {
        let row: Vec<&str> = row.split(',').collect();
        assert_eq!(packet[0].to_string(), row[0]);
        assert_eq!(packet[1], row[1]);
        assert_eq!(text(&packet[4]), row[4]);
    }
    // The path of a packet is that of --why.
    for number in [1, 59, 174] {
        let number_text = number.to_string();
        let (code, why, _) = answer(&[&run[..], &["--why", &number_text, "-j"][..]].concat());
        assert_eq!(code, 0);
        let why: Value = serde_json::from_str(&why).expect("JSON");
        let mut told = Vec::new();
        lines(&why["steps"], &mut told);
        let path = &items(&data["paths"])[packets[number - 1][9].as_u64().unwrap() as usize];
        let places = items(&data["places"]);
        let steps = items(&path["steps"]).iter();
        let shown: Vec<u64> = steps
            .map(|step| {
                places[step[0].as_u64().unwrap() as usize][1]
                    .as_u64()
                    .unwrap()
            })
            .collect();
        assert_eq!(shown, told, "packet {number}");
        assert_eq!(path["executed"], why["executed"]);
    }
    // Lines are counted as for lcov.
    let lcov = fs::read_to_string(directory.path().join("lcov")).expect("a tracefile");
    let counts = items(&items(&data["files"])[0]["counts"]).iter();
    let counted: Vec<String> = counts
        .filter(|line| !line[1].is_null())
        .map(|line| format!("DA:{},{}", line[0], line[1]))
        .collect();
    let expected: Vec<&str> = lcov
        .lines()
        .filter(|line| line.starts_with("DA:"))
        .collect();
    assert_eq!(counted, expected);
    // The file is the source of the object, so that it is there whole.
    let source = fs::read_to_string(root().join("examples/packets/firewall.bpf.c")).unwrap();
    let texts = &items(&data["files"])[0]["source"]["texts"];
    assert_eq!(items(texts).len(), source.lines().count());
}

/// Integers that scripts would round are texts of digits; variables say where they are in scope.
#[oracle::test]
fn a_page_tells_apart_what_has_one_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("page.html").display().to_string();
    let object = "crates/cli/tests/data/page.bpf.o";
    let (code, _, said) = answer(&["run", object, "--packet", "zero:60", "--html", &page]);
    assert_eq!(code, 0, "{said}");
    let data = data(&fs::read_to_string(&page).expect("a page"));
    let events = items(&data["events"]).iter();
    let written: Vec<&Value> = events
        .clone()
        .filter(|event| event["event"] == "write" && event["map"].is_string())
        .map(|event| &event["after"]["value"])
        .collect();
    let digits = [
        "18446744073709551615",
        "9007199254740993",
        "-9007199254740993",
    ];
    for digits in digits {
        let exact = serde_json::json!({ "#int": digits });
        assert!(written.contains(&&exact), "{written:?}");
    }
    // `value` of the program, and of both places of the function that is inlined.
    let mut scopes: Vec<(bool, String)> = events
        .filter(|event| event["event"] == "variable" && event["name"] == "value")
        .map(|event| {
            (
                event["inlined_name"] == "twice",
                event["insn_ranges"].to_string(),
            )
        })
        .collect();
    scopes.sort();
    scopes.dedup();
    let inlined = scopes.iter().filter(|(is_inlined, _)| *is_inlined).count();
    assert_eq!((scopes.len(), inlined), (3, 2), "{scopes:?}");
}

#[oracle::test]
fn a_page_of_one_packet_is_printed() {
    let words = [
        "run", FIREWALL, "--pcap", SAMPLE, "--why", "59", "--format", "html",
    ];
    let (code, page, _) = answer(&words);
    assert_eq!(code, 0);
    let data = data(&page);
    assert_eq!(items(&data["packets"]).len(), 1);
    assert_eq!(items(&data["paths"])[0]["verdict"], "XDP_DROP");
    // A program that is stopped has the way there, and the exit code of a no.
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("stopped.html").display().to_string();
    let words = [
        "run", FIREWALL, "--pcap", SAMPLE, "--engine", "checked", "--budget", "30",
    ];
    let (code, ..) = answer(&[&words[..], &["--html", &page][..]].concat());
    assert_eq!(code, 1);
    let text = fs::read_to_string(&page).expect("a page");
    let data = self::data(&text);
    assert!(
        data["summary"]["stopped"].is_string(),
        "{}",
        data["summary"]
    );
    let last = items(&data["paths"]).last().expect("a path");
    assert!(last["stopped"].is_string());
}

#[oracle::test]
fn a_page_of_a_verification_has_every_step() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("walk.html").display().to_string();
    let objects = [
        "examples/verify/port.bpf.o",
        "examples/verify/record.bpf.o",
        FIREWALL,
    ];
    let words = [&["verify"][..], &objects, &["--html", &page, "-j"]].concat();
    let (code, rows, _) = answer(&words);
    assert_eq!(code, 1);
    let data = data(&fs::read_to_string(&page).expect("a page"));
    let programs = items(&data["programs"]);
    for (program, row) in programs.iter().zip(rows.lines()) {
        let row: Value = serde_json::from_str(row).expect("JSON");
        assert_eq!(program["name"], row["prog_name"]);
        assert_eq!(items(&program["steps"]).len() as u64, row["total_insns"]);
        let is_refused = row["verifier_verdict"] == "failure";
        assert_eq!(program["explanation"].is_object(), is_refused);
        let last = items(&program["steps"]).last().expect("a step");
        assert_eq!(last[4] == 5, is_refused, "{last}");
        // The other output stays as it is without a page.
        assert!(row.get("explanation").is_none());
    }
    assert_eq!(programs.len(), 3);
}

#[oracle::test]
fn texts_of_objects_stay_texts() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("x<");
    fs::create_dir(&place).expect("a directory");
    let file = place.join("script><img src=x onerror=alert(1)>.bpf.o");
    fs::create_dir_all(file.parent().unwrap()).expect("a directory");
    let mut object = fs::read(root().join(FIREWALL)).expect("an object");
    let hostile = ["</script><b>x;", "</script>.bpf."];
    for (text, hostile) in ["return action;", "firewall.bpf.c"].iter().zip(hostile) {
        let mut places = object.windows(text.len());
        let at = places
            .position(|window| window == text.as_bytes())
            .expect("the text");
        object[at..at + text.len()].copy_from_slice(hostile.as_bytes());
    }
    fs::write(&file, object).expect("an object");
    let page = directory.path().join("page.html").display().to_string();
    let file = file.display().to_string();
    for words in [&["run", &file, "--pcap", SAMPLE][..], &["verify", &file]] {
        let (code, _, said) = answer(&[words, &["--html", &page]].concat());
        assert_eq!(code, 0, "{said}");
        let text = fs::read_to_string(&page).expect("a page");
        assert!(!text.contains("<img") && !text.contains("<b>"), "{words:?}");
        assert_eq!(text.matches("</script>").count(), 3, "{words:?}");
        // The file that is named is another one, and does not go into the page.
        let names = items(&data(&text)["files"]).len();
        assert_eq!(names, 1);
        assert!(data(&text).to_string().contains("</script><b>x;"));
    }
}

#[oracle::test]
fn a_page_is_no_input_and_has_a_file_of_its_own() {
    let run = ["run", FIREWALL, "--pcap", SAMPLE];
    let verify = ["verify", FIREWALL];
    let refused = |words: &[&str], more: &[&str], what: &str| {
        let (code, _, said) = answer(&[words, more].concat());
        assert_eq!(code, 2, "{more:?}: {said}");
        assert!(said.contains(what), "{more:?}: {said}");
    };
    refused(&run, &["--html", FIREWALL], "output is also an input");
    refused(&run, &["--html", SAMPLE], "output is also an input");
    refused(&verify, &["--html", FIREWALL], "output is also an input");
    refused(&run, &["--html", "-"], "standard output holds the results");
    refused(
        &verify,
        &["--html", "-"],
        "standard output holds the results",
    );
    let file = std::env::temp_dir().join("beebox-html-twice");
    let file = file.display().to_string();
    refused(
        &run,
        &["--html", &file, "-o", &file],
        "an -o writes this file",
    );
    refused(
        &verify,
        &["--html", &file, "--output", &file],
        "--output writes this file",
    );
    refused(&run, &["--format", "html"], "--format html shows --why");
    refused(
        &run,
        &["--html", &file, "--why", "1"],
        "cannot be used with",
    );
    refused(
        &verify,
        &["--html", &file, "--kernel", "6.12,6.18"],
        "--html is of one kernel",
    );
    refused(
        &run,
        &["--html", "/nowhere/page.html"],
        "/nowhere/page.html",
    );
}

/// The comments of a pcapng file in little-endian order, by the packets in front of which they stand.
fn comments(file: &Path) -> Vec<Vec<String>> {
    let bytes = fs::read(file).expect("a capture");
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let (kind, total) = (number(at), number(at + 4));
        assert_eq!(number(at + total - 4), total, "both lengths of a block");
        if kind == 6 {
            let mut option = at + 28 + number(at + 20).next_multiple_of(4);
            let mut texts = Vec::new();
            while option < at + total - 4 {
                let (code, len) = (number(option) & 0xffff, number(option) >> 16);
                let text = &bytes[option + 4..option + 4 + len];
                option += 4 + len.next_multiple_of(4);
                match code {
                    0 => break,
                    1 => texts.push(String::from_utf8(text.to_vec()).expect("text")),
                    _ => {}
                }
            }
            assert_eq!(option, at + total - 4, "the end of the options");
            found.push(texts);
        }
        at += total;
    }
    found
}

#[oracle::test]
fn packets_have_their_verdict_and_line_as_comment() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let path = |name: &str| file(name).display().to_string();
    let drops = format!("DROP={}", path("drops.pcapng"));
    let run = ["run", FIREWALL, "--pcap"];
    let outputs = ["-o", &path("passed.pcapng"), "-o", &drops, "--comments"];
    let (code, _, said) = answer(&[&run[..], &[SAMPLE], &outputs].concat());
    assert_eq!(code, 0, "{said}");
    let wanted = |verdict: &str| vec![format!("{verdict} at firewall.bpf.c:174")];
    assert_eq!(comments(&file("drops.pcapng")), vec![wanted("XDP_DROP"); 6]);
    assert_eq!(
        comments(&file("passed.pcapng")),
        vec![wanted("XDP_PASS"); 292]
    );
    // A packet that has a comment gets another one in front of it; the page goes beside it.
    let again = [
        "-o",
        &path("again.pcapng"),
        "--comments",
        "--html",
        &path("page.html"),
    ];
    let (code, _, said) = answer(&[&run[..], &[&path("passed.pcapng")], &again].concat());
    assert_eq!(code, 0, "{said}");
    let twice = [wanted("XDP_PASS"), wanted("XDP_PASS")].concat();
    assert_eq!(comments(&file("again.pcapng")), vec![twice; 292]);
    let pcap = path("passed.pcap");
    let (code, _, said) = answer(&[&run[..], &[SAMPLE, "-o", &pcap, "--comments"]].concat());
    assert_eq!(code, 2);
    assert!(said.contains("a capture in pcap has no comments"), "{said}");
    assert_eq!(answer(&[&run[..], &[SAMPLE, "--comments"]].concat()).0, 2);
}

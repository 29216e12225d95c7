//! `beebox filter` as a user meets it: what is printed where, exit codes, and
//! what becomes of damaged captures and wrong words.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use capture::{Event, Reader};
use tempfile::TempDir;
use testkit::captures::{self, Link, Mix};

/// A directory with a capture, and a filter that keeps TCP over IPv4.
struct TestDir {
    directory: TempDir,
}

const TCP: &str = "6\n40 0 0 12\n21 0 3 2048\n48 0 0 23\n21 0 1 6\n6 0 0 262144\n6 0 0 0\n";

/// Packets in `day.pcap`.
const PACKETS: usize = 800;

impl TestDir {
    fn new() -> TestDir {
        let desk = TestDir {
            directory: tempfile::tempdir().unwrap(),
        };
        let mut bytes = Vec::new();
        captures::write(Mix::Small, Link::Ethernet, 400_000, 1, &mut bytes).unwrap();
        let mut end = 24;
        for _ in 0..PACKETS {
            let captured = u32::from_le_bytes(bytes[end + 8..end + 12].try_into().unwrap());
            end += 16 + captured as usize;
        }
        bytes.truncate(end);
        desk.put("day.pcap", &bytes);
        desk.put("tcp.ddd", TCP.as_bytes());
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beebox"));
        command
            .current_dir(self.directory.path())
            .arg("filter")
            .args(words);
        command
    }

    /// Exit code, standard output, standard error.
    fn run(&self, words: &[&str]) -> (i32, Vec<u8>, String) {
        answer(self.command(words).output().unwrap())
    }

    fn run_with_input(&self, words: &[&str], input: &[u8]) -> (i32, Vec<u8>, String) {
        let mut command = self.command(words);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feeder = std::thread::spawn(move || {
            // It may stop reading early.
            let _ = stdin.write_all(&input);
        });
        let answer = answer(child.wait_with_output().unwrap());
        feeder.join().unwrap();
        answer
    }

    /// Number of packets of `day.pcap` that the filter keeps.
    fn matching(&self) -> usize {
        packets(&self.get("day.pcap"))
            .iter()
            .filter(|data| is_tcp(data))
            .count()
    }
}

fn answer(output: Output) -> (i32, Vec<u8>, String) {
    let code = output.status.code().expect("it is not killed");
    (
        code,
        output.stdout,
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// All packets of a capture, which must be whole.
fn packets(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(bytes).unwrap();
    let mut packets = Vec::new();
    while let Some(event) = reader.next().unwrap() {
        if let Event::Packet(record) = event {
            packets.push(record.data().to_vec());
        }
    }
    packets
}

fn is_tcp(data: &[u8]) -> bool {
    data.get(12..14) == Some(&[8, 0]) && data.get(23) == Some(&6)
}

#[oracle::test]
fn what_matches_is_written_and_summed_up() {
    let desk = TestDir::new();
    let (code, stdout, stderr) = desk.run(&["-F", "tcp.ddd", "day.pcap", "-w", "out.pcap"]);
    let expected: Vec<_> = packets(&desk.get("day.pcap"))
        .into_iter()
        .filter(|data| is_tcp(data))
        .collect();
    assert_eq!((code, stdout.len()), (0, 0));
    assert_eq!(packets(&desk.get("out.pcap")), expected);
    assert!(
        stderr.starts_with(&format!("{} of 800 packets matched (", expected.len())),
        "{stderr}"
    );
    assert!(
        !stderr.contains("ns per packet") && stderr.contains("engine native"),
        "{stderr}"
    );
    // With enough packets the time for each is printed.
    let (_, _, stderr) = desk.run(&["-F", "tcp.ddd", "day.pcap", "day.pcap"]);
    assert!(stderr.contains(" ns per packet, engine native"), "{stderr}");
    assert_eq!(&desk.get("out.pcap")[..24], &desk.get("day.pcap")[..24]);
}

#[oracle::test]
fn only_the_count_is_printed_and_it_sets_the_exit_code() {
    let desk = TestDir::new();
    let count = format!("{}\n", desk.matching()).into_bytes();
    let words = ["-F", "tcp.ddd", "day.pcap", "--count"];
    assert_eq!(desk.run(&words), (0, count, String::new()));
    desk.put("none.ddd", b"1\n6 0 0 0\n");
    let words = ["-F", "none.ddd", "day.pcap", "--count"];
    assert_eq!(desk.run(&words), (1, b"0\n".to_vec(), String::new()));
}

#[oracle::test]
fn engines_semantics_and_threads_agree() {
    let desk = TestDir::new();
    let expected = desk.run(&["-F", "tcp.ddd", "day.pcap", "-w", "-"]).1;
    for more in [
        ["--engine", "checked"],
        ["--semantics", "kernel"],
        ["-J", "1"],
        ["-J", "3"],
    ] {
        let words = [&["-F", "tcp.ddd", "day.pcap", "-w", "-"][..], &more].concat();
        assert!(desk.run(&words).1 == expected, "{more:?}");
    }
}

#[oracle::test]
fn a_limit_stops_after_so_many_matches_over_all_captures() {
    let desk = TestDir::new();
    let all = desk.run(&["-F", "tcp.ddd", "day.pcap", "-w", "-"]).1;
    let (code, some, _) = desk.run(&["-F", "tcp.ddd", "day.pcap", "-w", "-", "-c", "7"]);
    assert_eq!((code, packets(&some)), (0, packets(&all)[..7].to_vec()));
    let matching = desk.matching();
    let limit = (matching + 3).to_string();
    let words = [
        "-F", "tcp.ddd", "day.pcap", "day.pcap", "--count", "-c", &limit,
    ];
    assert_eq!(desk.run(&words).1, format!("{limit}\n").into_bytes());
    assert_eq!(desk.run(&["-F", "tcp.ddd", "day.pcap", "-c", "0"]).0, 2);
}

#[oracle::test]
fn captures_come_compressed_and_by_standard_input() {
    let desk = TestDir::new();
    let day = desk.get("day.pcap");
    let expected = desk.run(&["-F", "tcp.ddd", "day.pcap", "-w", "-"]).1;
    for tool in ["gzip", "zstd"] {
        let input = File::open(desk.path("day.pcap")).unwrap();
        let Ok(packed) = Command::new(tool).arg("-c").stdin(input).output() else {
            oracle::skip("compressed captures", format!("no {tool} is installed"));
            continue;
        };
        assert!(packed.status.success());
        // The name does not matter.
        desk.put("packed", &packed.stdout);
        assert!(
            desk.run(&["-F", "tcp.ddd", "packed", "-w", "-"]).1 == expected,
            "{tool}"
        );
        let words = ["-F", "tcp.ddd", "-", "-w", "-"];
        assert!(
            desk.run_with_input(&words, &packed.stdout).1 == expected,
            "{tool}"
        );
        // Cut short.
        desk.put("packed", &packed.stdout[..packed.stdout.len() - 10]);
        let (code, some, stderr) = desk.run(&["-F", "tcp.ddd", "packed", "-w", "-"]);
        assert!(code == 2 && stderr.contains("packed: at byte "), "{stderr}");
        assert!(expected.starts_with(&some), "{tool}: other packets");
        assert!(
            some.len() > 24,
            "{tool}: nothing of {} bytes: {stderr}",
            day.len()
        );
    }
    let day = desk.get("day.pcap");
    assert!(
        desk.run_with_input(&["-F", "tcp.ddd", "-", "-w", "-"], &day)
            .1
            == expected
    );
}

#[oracle::test]
fn a_truncated_capture_gives_what_it_has_and_then_the_place() {
    let desk = TestDir::new();
    let day = desk.get("day.pcap");
    desk.put("cut.pcap", &day[..day.len() - 5]);
    let all = desk.run(&["-F", "tcp.ddd", "day.pcap", "-w", "-"]).1;
    for jobs in ["1", "2"] {
        let (code, some, stderr) = desk.run(&["-F", "tcp.ddd", "cut.pcap", "-w", "-", "-J", jobs]);
        assert_eq!(code, 2);
        assert!(all.starts_with(&some) && some.len() + 2_000 > all.len());
        assert!(stderr.contains("of 799 packets matched"), "{stderr}");
        assert!(
            stderr.contains("beebox: cut.pcap: after packet 799, at byte "),
            "{stderr}"
        );
    }
    // The count of what was there is still given.
    let (code, count, stderr) = desk.run(&["-F", "tcp.ddd", "cut.pcap", "--count"]);
    assert!(
        code == 2 && count.ends_with(b"\n") && stderr.contains("truncated"),
        "{stderr}"
    );
}

#[oracle::test]
fn several_kinds_of_captures_share_a_pcapng_file() {
    let desk = TestDir::new();
    let mut raw = Vec::new();
    captures::write(Mix::Small, Link::Raw, 20_000, 1, &mut raw).unwrap();
    desk.put("raw.pcap", &raw);
    desk.put("all.ddd", b"1\n6 0 0 65535\n");
    let (code, out, _) = desk.run(&["-F", "all.ddd", "day.pcap", "raw.pcap", "-w", "-"]);
    let expected = [packets(&desk.get("day.pcap")), packets(&raw)].concat();
    assert_eq!((code, packets(&out)), (0, expected));
    assert_eq!(out[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    // And again, from there.
    desk.put("both.pcapng", &out);
    assert!(desk.run(&["-F", "all.ddd", "both.pcapng", "-w", "-"]).1 == out);
}

#[oracle::test]
fn snaplen_cuts_what_is_written_not_what_is_seen() {
    let desk = TestDir::new();
    let words = ["-F", "tcp.ddd", "day.pcap", "-w", "-", "--snaplen", "20"];
    let cut = packets(&desk.run(&words).1);
    assert_eq!(cut.len(), desk.matching());
    assert!(cut.iter().all(|data| data.len() == 20));
    // As in tcpdump, it may stand where nothing is written.
    // As in tcpdump, 0 is no limit.
    let all = desk.run(&["-F", "tcp.ddd", "day.pcap", "-w", "-"]);
    let zero = desk.run(&["-F", "tcp.ddd", "day.pcap", "-w", "-", "-p", "-s", "0"]);
    assert!(zero.1 == all.1 && !all.1.is_empty());
    let words = ["-F", "tcp.ddd", "day.pcap", "--snaplen", "20"];
    assert_eq!(desk.run(&words).0, 0);
}

#[oracle::test]
fn json_equals_the_text() {
    let desk = TestDir::new();
    let (code, stdout, stderr) = desk.run(&["-F", "tcp.ddd", "day.pcap", "--format", "json"]);
    let record: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_eq!(record["packets"], PACKETS);
    assert_eq!(record["matched"], desk.matching());
    assert_eq!(record["engine"], "native");
    assert!(record["error"].is_null());
    let words = ["-F", "tcp.ddd", "day.pcap", "--format", "json", "-w", "-"];
    assert_eq!(desk.run(&words).0, 2, "one standard output");
}

#[oracle::test]
fn why_shows_the_path_of_one_packet() {
    let desk = TestDir::new();
    let all = packets(&desk.get("day.pcap"));
    for wanted in [true, false] {
        let number = all.iter().position(|data| is_tcp(data) == wanted).unwrap() + 1;
        let words = ["-F", "tcp.ddd", "day.pcap", "--why", &number.to_string()];
        let (code, stdout, _) = desk.run(&words);
        let text = String::from_utf8(stdout).unwrap();
        assert_eq!(code, if wanted { 0 } else { 1 });
        assert!(
            text.contains(&format!("packet {number}: ")) && text.contains("(000) ldh      [12]"),
            "{text}"
        );
        let verdict = if wanted {
            "\nmatches: the filter returns 262144\n"
        } else {
            "\ndoes not match"
        };
        assert!(text.contains(verdict), "{text}");
    }
    let (code, _, stderr) = desk.run(&["-F", "tcp.ddd", "day.pcap", "--why", "801"]);
    assert!(
        code == 2 && stderr.contains("the captures have 800"),
        "{stderr}"
    );
}

#[oracle::test]
fn nothing_is_written_over_a_capture_that_is_read() {
    let desk = TestDir::new();
    let day = desk.get("day.pcap");
    for out in ["day.pcap", "./day.pcap"] {
        let (code, _, stderr) = desk.run(&["-F", "tcp.ddd", "day.pcap", "-w", out]);
        assert!(
            code == 2 && stderr.contains("output is also an input"),
            "{stderr}"
        );
        assert!(desk.get("day.pcap") == day);
    }
    // Nor is an output made for a filter that is wrong.
    desk.put("wrong.ddd", b"1\n6 0 0\n");
    assert_eq!(
        desk.run(&["-F", "wrong.ddd", "day.pcap", "-w", "new.pcap"])
            .0,
        2
    );
    assert!(!desk.path("new.pcap").exists());
}

#[oracle::test]
fn ancillary_loads_are_warned_of_or_answered() {
    let desk = TestDir::new();
    // ld #proto; jeq #0x806 → keep
    let program = "4\n32 0 0 4294963200\n21 0 1 2054\n6 0 0 65535\n6 0 0 0\n";
    desk.put("arp.ddd", program.as_bytes());
    let (code, stdout, stderr) = desk.run(&["-F", "arp.ddd", "day.pcap", "--count"]);
    assert_eq!((code, stdout), (1, b"0\n".to_vec()));
    assert!(
        stderr.contains("warning") && stderr.contains("#proto"),
        "{stderr}"
    );
    let words = [
        "-F",
        "arp.ddd",
        "day.pcap",
        "--count",
        "--semantics",
        "kernel",
    ];
    let arp = packets(&desk.get("day.pcap"))
        .iter()
        .filter(|data| data[12..14] == [8, 6])
        .count();
    assert!(arp > 0);
    assert_eq!(
        desk.run(&words),
        (0, format!("{arp}\n").into_bytes(), String::new())
    );
}

/// Words of the command; what standard error says.
const MISTAKES: &[(&[&str], &str)] = &[
    (&["day.pcap"], "no filter is given"),
    (&["tcp"], "no capture is given"),
    (
        &["port", "22"],
        "no capture is given: none of port, 22 is a file\n  try: beebox filter 'port 22' FILE",
    ),
    (
        &["-F", "tcp.ddd", "missing.pcap"],
        "missing.pcap: No such file",
    ),
    (
        &["-F", "missing.ddd", "day.pcap"],
        "missing.ddd: No such file",
    ),
    (&["-F", "tcp.ddd", "."], "directory"),
    (&["-F", "tcp.ddd", "tcp.ddd"], "neither pcap nor pcapng"),
    (&["-F", "tcp.ddd", "-", "-"], "only once"),
    (
        &["-F", "tcp.ddd", "day.pcap", "-w", "no/such/place"],
        "no/such/place: No such file",
    ),
    (&["-F", "tcp.ddd", "empty"], "the capture is empty"),
    (
        &["-F", "tcp.ddd", "day.pcap", "--count", "-w", "-"],
        "can't both go to standard output",
    ),
    (
        &["-F", "tcp.ddd", "day.pcap", "--engine", "steam"],
        "[possible values: native, interp, checked]",
    ),
];

#[oracle::test]
fn each_mistake_has_its_own_message() {
    let desk = TestDir::new();
    desk.put("empty", b"");
    for (words, message) in MISTAKES {
        let (code, stdout, stderr) = desk.run(words);
        assert_eq!((code, stdout.len()), (2, 0), "{words:?}");
        assert!(stderr.contains(message), "{words:?}: {stderr}");
    }
}

#[oracle::test]
fn captures_are_named_as_in_tcpdump() {
    let desk = TestDir::new();
    let expected = desk.run(&["-F", "tcp.ddd", "day.pcap", "-o", "-", "-s", "60"]);
    assert!(!expected.1.is_empty());
    let words = ["-F", "tcp.ddd", "-r", "day.pcap", "-w", "-", "-s60"];
    assert_eq!(desk.run(&words).1, expected.1);
    let (code, all, stderr) = desk.run(&["-r", "day.pcap", "ip", "proto", "6", "--count"]);
    if stderr.contains("libpcap, which can't be loaded") {
        oracle::skip("an expression of several words", "no libpcap");
        return;
    }
    assert_eq!(
        (code, all),
        (0, format!("{}\n", desk.matching()).into_bytes())
    );
    // The expression without quotes, or after the capture.
    for words in [
        &["ip", "proto", "6", "day.pcap"][..],
        &["day.pcap", "ip proto 6"],
    ] {
        let (code, _, stderr) = desk.run(words);
        assert!(
            code == 2 && stderr.ends_with("try: beebox filter 'ip proto 6' day.pcap\n"),
            "{stderr}"
        );
    }
}

#[oracle::test]
fn expressions_go_through_libpcap() {
    let desk = TestDir::new();
    let (code, stdout, stderr) = desk.run(&["ip proto 6", "day.pcap", "--count"]);
    if stderr.contains("libpcap, which can't be loaded") {
        oracle::skip("expressions on captures", "no libpcap");
        return;
    }
    assert_eq!(
        (code, stdout),
        (0, format!("{}\n", desk.matching()).into_bytes())
    );
    let (_, all, _) = desk.run(&["", "day.pcap", "--count"]);
    assert_eq!(all, b"800\n");
    let (code, _, stderr) = desk.run(&["port", "day.pcap", "-w", "new.pcap"]);
    assert!(code == 2 && stderr.contains("syntax error"), "{stderr}");
    assert!(!desk.path("new.pcap").exists());
    // The capture was meant as such, and the expression forgotten.
    let (code, _, stderr) = desk.run(&["day.pcap", "day.pcap"]);
    assert!(code == 2 && stderr.contains("is also a file"), "{stderr}");
    // Link types of a pcapng file get a program each.
    let mut raw = Vec::new();
    captures::write(Mix::Small, Link::Raw, 20_000, 1, &mut raw).unwrap();
    desk.put("raw.pcap", &raw);
    let both = desk.run(&["", "day.pcap", "raw.pcap", "-w", "both.pcapng"]);
    assert_eq!(both.0, 0);
    let count = |capture: &str| {
        let (_, stdout, _) = desk.run(&["udp", capture, "--count"]);
        String::from_utf8(stdout)
            .unwrap()
            .trim()
            .parse::<u64>()
            .unwrap()
    };
    assert_eq!(count("both.pcapng"), count("day.pcap") + count("raw.pcap"));
    assert!(count("raw.pcap") > 0);
}

#[oracle::test]
fn what_is_kept_of_a_live_capture_does_not_wait() {
    let desk = TestDir::new();
    let day = desk.get("day.pcap");
    let path = desk.path("live.pcap");
    let mut command = desk.command(&["-F", "tcp.ddd", "-", "-w", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(fs::File::create(&path).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&day).unwrap();
    stdin.flush().unwrap();
    // The pipe stays open, and the packets are there all the same.
    let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let expected = desk.run(&["-F", "tcp.ddd", "day.pcap", "-w", "-"]).1.len() as u64;
    for _ in 0..6000 {
        if size(&path) == expected {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(size(&path), expected);
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[oracle::test]
fn the_suffix_of_the_output_decides_its_compression() {
    let desk = TestDir::new();
    let (_, expected, _) = desk.run(&["-F", "tcp.ddd", "day.pcap", "-w", "-"]);
    let magics: [(&str, &[u8]); 2] = [
        ("out.pcap.gz", &[0x1f, 0x8b]),
        ("out.pcap.zst", &[0x28, 0xb5, 0x2f, 0xfd]),
    ];
    for (name, magic) in magics {
        let (code, _, stderr) = desk.run(&["-F", "tcp.ddd", "day.pcap", "-w", name]);
        assert_eq!(code, 0, "{stderr}");
        assert!(desk.get(name).starts_with(magic), "{name}");
        // Read again, all of it matches.
        let (_, again, _) = desk.run(&["-F", "tcp.ddd", name, "-w", "-"]);
        assert!(again == expected, "{name}");
    }
}

/// A capture of the generator with this link type.
fn capture_of(link: Link) -> Vec<u8> {
    let mut bytes = Vec::new();
    captures::write(Mix::Small, link, 20_000, 1, &mut bytes).unwrap();
    bytes
}

#[oracle::test]
fn a_compiled_filter_on_another_link_type_is_warned_about() {
    let desk = TestDir::new();
    desk.put("raw.pcap", &capture_of(Link::Raw));
    desk.put("ethernet.pcap", &capture_of(Link::Ethernet));
    let warnings = |words: &[&str]| {
        let (_, _, stderr) = desk.run(&[&["-F", "tcp.ddd", "--count"], words].concat());
        let warnings = stderr.lines().filter(|line| line.contains("warning"));
        warnings.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(warnings(&["ethernet.pcap"]), [""; 0]);
    let other = warnings(&["raw.pcap"]);
    assert_eq!(
        other,
        [
            "beebox: warning: the compiled filter was probably compiled for EN10MB, but the \
             packets are RAW"
        ]
    );
    let several = warnings(&["ethernet.pcap", "raw.pcap"]);
    assert_eq!(
        several,
        [
            "beebox: warning: the compiled filter ran on packets of several link types, but its \
             offsets fit one: EN10MB, RAW"
        ]
    );
}

#[oracle::test]
fn why_evaluates_comparisons_whose_targets_are_equal() {
    let desk = TestDir::new();
    let source = "\
        ldx #7\n\
        ld #6\n\
        jeq #6, n1, n1\nn1: jeq #7, n2, n2\n\
        n2: jgt #5, n3, n3\nn3: jgt #6, n4, n4\n\
        n4: jge #6, n5, n5\nn5: jge #7, n6, n6\n\
        n6: jset #2, n7, n7\nn7: jset #9, n8, n8\n\
        n8: jeq x, n9, n9\nn9: jgt x, n10, n10\nn10: jge x, n11, n11\nn11: jset x, n12, n12\n\
        n12: ret #1\n";
    std::fs::write(desk.path("same.asm"), source).unwrap();
    let (code, stdout, stderr) = desk.run(&["-F", "same.asm", "day.pcap", "--why", "1"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let text = String::from_utf8(stdout).unwrap();
    let answers = text.lines().filter_map(|line| {
        let (_, effect) = line.split_once(": ")?;
        effect
            .split_once(", to ")
            .map(|(answer, _)| answer.to_owned())
    });
    let expected = [
        "yes", "no", "yes", "no", "yes", "no", "yes", "no", "no", "no", "no", "yes",
    ];
    assert_eq!(answers.collect::<Vec<_>>(), expected, "{text}");
}

#[oracle::test]
fn why_names_the_number_in_the_file() {
    let desk = TestDir::new();
    let number = (PACKETS + 3).to_string();
    let words = ["-F", "tcp.ddd", "day.pcap", "day.pcap", "--why", &number];
    let (_, stdout, _) = desk.run(&words);
    let stdout = String::from_utf8(stdout).unwrap();
    let first = stdout.lines().next().unwrap();
    let expected = format!("day.pcap: packet 3 ({number} of all captures): ");
    assert!(first.starts_with(&expected), "{first}");
    // The packet is the third of the file.
    let (_, third, _) = desk.run(&["-F", "tcp.ddd", "day.pcap", "--why", "3"]);
    let third = String::from_utf8(third).unwrap();
    assert_eq!(
        third.lines().skip(1).collect::<Vec<_>>(),
        stdout.lines().skip(1).collect::<Vec<_>>()
    );
}

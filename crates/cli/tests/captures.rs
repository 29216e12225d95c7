//! `beebox filter`: filters from files, formats of the output, several captures, link
//! types.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use capture::{ByteOrder, Event, Interface, LinkType, PcapHeader, Reader, Resolution};
use tempfile::TempDir;

/// Keeps packets whose first byte is odd.
const ODD: &str = "4\n48 0 0 0\n69 0 1 1\n6 0 0 262144\n6 0 0 0\n";

/// A directory with captures in it.
struct TestDir(TempDir);

impl TestDir {
    fn new() -> TestDir {
        let desk = TestDir(tempfile::tempdir().unwrap());
        desk.put("odd.ddd", ODD.as_bytes());
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn run(&self, words: &[&str]) -> (i32, Vec<u8>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beebox"));
        let command = command.current_dir(self.0.path()).arg("filter").args(words);
        let output = command.output().unwrap();
        let code = output.status.code().expect("it is not killed");
        (
            code,
            output.stdout,
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    fn count(&self, words: &[&str]) -> String {
        let (_, stdout, stderr) = self.run(&[words, &["--count"]].concat());
        assert_eq!(stderr, "", "{words:?}");
        String::from_utf8(stdout).unwrap()
    }
}

/// A pcap file of one-byte packets, a second and a byte each.
fn pcap(order: ByteOrder, link_type: LinkType, packets: &[(u32, u8)]) -> Vec<u8> {
    let header = PcapHeader::new(Interface {
        link_type,
        snaplen: 4096,
        resolution: Resolution::MICROSECONDS,
        time_offset: 0,
        order,
    });
    let mut bytes = header.raw().to_vec();
    for &(second, byte) in packets {
        for word in [second, 17, 1, 1] {
            bytes.extend(order.put_u32(word));
        }
        bytes.push(byte);
    }
    bytes
}

/// Second and byte of each packet, with its interface.
fn packets(bytes: &[u8]) -> Vec<(i64, u8, u32)> {
    let mut reader = Reader::new(bytes).unwrap();
    let mut packets = Vec::new();
    while let Some(event) = reader.next().unwrap() {
        if let Event::Packet(record) = event {
            let time = record.timestamp().unwrap();
            assert_eq!(time.nanoseconds, 17_000);
            packets.push((time.seconds, record.data()[0], record.interface_id()));
        }
    }
    packets
}

const LITTLE: ByteOrder = ByteOrder::Little;

#[oracle::test]
fn captures_are_merged_by_time() {
    let desk = TestDir::new();
    desk.put(
        "a",
        &pcap(LITTLE, LinkType::RAW, &[(1, 1), (4, 3), (4, 2), (9, 5)]),
    );
    desk.put("b", &pcap(LITTLE, LinkType::RAW, &[(2, 7), (4, 9)]));
    let ethernet = pcap(
        ByteOrder::Big,
        LinkType::ETHERNET,
        &[(3, 11), (5, 12), (6, 13)],
    );
    desk.put("c", &ethernet);
    let (code, merged, _) = desk.run(&["-F", "odd.ddd", "a", "b", "--merge", "-w", "-"]);
    assert_eq!(code, 0);
    let expected = [(1, 1), (2, 7), (4, 3), (4, 9), (9, 5)];
    assert_eq!(merged, pcap(LITTLE, LinkType::RAW, &expected));
    // Several link types make one pcapng section.
    let words = ["-F", "odd.ddd", "a", "b", "c", "--merge", "-w", "out"];
    let (code, _, stderr) = desk.run(&words);
    assert_eq!(code, 0, "{stderr}");
    let expected = [
        (1, 1, 0),
        (2, 7, 1),
        (3, 11, 2),
        (4, 3, 0),
        (4, 9, 1),
        (6, 13, 2),
        (9, 5, 0),
    ];
    assert_eq!(packets(&desk.get("out")), expected);
    // Read again and merged with itself.
    let (_, again, _) = desk.run(&["-F", "odd.ddd", "out", "out", "--merge", "-w", "-"]);
    let both = |second: i64| {
        let of = |more: u32| {
            let here = expected.iter().filter(move |packet| packet.0 == second);
            here.map(move |&(second, byte, interface)| (second, byte, interface + more))
        };
        of(0).chain(of(3))
    };
    assert_eq!(packets(&again), (1..10).flat_map(both).collect::<Vec<_>>());
    let (_, limited, _) = desk.run(&[&words[..7], &["-", "-c", "3"]].concat());
    assert_eq!(packets(&limited), expected[..3]);
    assert_eq!(desk.count(&["-F", "odd.ddd", "a", "b", "--merge"]), "5\n");
}

#[oracle::test]
fn counts_are_printed_for_each_capture() {
    let desk = TestDir::new();
    desk.put("a", &pcap(LITTLE, LinkType::RAW, &[(1, 1), (2, 2), (3, 3)]));
    desk.put("b", &pcap(LITTLE, LinkType::RAW, &[(1, 2)]));
    for merge in [&[][..], &["--merge"]] {
        let words = [&["-F", "odd.ddd", "a", "b", "--per-file"][..], merge].concat();
        assert_eq!(desk.count(&words), "a: 2\nb: 0\n");
        let (_, _, stderr) = desk.run(&words);
        let lines: Vec<_> = stderr.lines().collect();
        assert_eq!(
            lines[..2],
            [
                "a: 2 of 3 packets matched (2 of 3 bytes)",
                "b: 0 of 1 packets matched (0 of 1 bytes)"
            ]
        );
        assert!(lines[2].starts_with("2 of 4 packets matched (2 of 4 bytes), engine"));
        let (_, json, _) = desk.run(&[&words[..], &["--json"]].concat());
        let answer: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(answer["files"][0]["file"], "a");
        assert_eq!(answer["files"][0]["matched"], 2);
        assert_eq!(answer["files"][1]["packets"], 1);
        assert_eq!(answer["matched"], 2);
    }
}

#[oracle::test]
fn name_or_option_decide_the_format_of_the_output() {
    let desk = TestDir::new();
    let order = ByteOrder::Big;
    let content = pcap(order, LinkType::RAW, &[(1, 1), (2, 2), (3, 3)]);
    let kept = pcap(order, LinkType::RAW, &[(1, 1), (3, 3)]);
    desk.put("a", &content);
    let write = |words: &[&str], out: &str| {
        let words = [&["-F", "odd.ddd"], words, &["-w", out]].concat();
        let (code, _, stderr) = desk.run(&words);
        assert_eq!(code, 0, "{words:?}: {stderr}");
        desk.get(out)
    };
    assert_eq!(write(&["a"], "plain"), kept);
    assert_eq!(write(&["a"], "same.pcap"), kept);
    let blocks = write(&["a"], "other.pcapng");
    assert_eq!(blocks[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert_eq!(packets(&blocks), [(1, 1, 0), (3, 3, 0)]);
    assert_eq!(
        write(&["a", "--capture-format", "pcapng"], "named.pcap"),
        blocks
    );
    // And back: the header has byte order, snapshot length and resolution.
    assert_eq!(write(&["other.pcapng"], "back.pcap"), kept);
    assert_eq!(
        write(&["other.pcapng", "--capture-format", "pcap"], "back"),
        kept
    );
    assert_eq!(write(&["other.pcapng"], "back.pcapng"), blocks);
    let zipped = write(&["other.pcapng"], "back.pcap.gz");
    assert_eq!(zipped[..2], [0x1f, 0x8b]);
    assert_eq!(write(&["back.pcap.gz"], "again.pcap"), kept);
    // A pcap file has one link type.
    desk.put("e", &pcap(order, LinkType::ETHERNET, &[(1, 1)]));
    let (code, _, stderr) = desk.run(&["-F", "odd.ddd", "a", "e", "-w", "both.pcap"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("link type EN10MB does not fit a pcap file of link type RAW")
            && stderr.contains("--capture-format pcapng"),
        "{stderr}"
    );
    assert!(!desk.path("both.pcap").exists());
    write(&["a", "e"], "both.pcapng");
    let (code, _, stderr) = desk.run(&["-F", "odd.ddd", "both.pcapng", "-w", "late.pcap"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("both.pcapng: packet 3: link type EN10MB"),
        "{stderr}"
    );
    // What is read but not written is refused, not written uncompressed.
    let (code, _, stderr) = desk.run(&["-F", "odd.ddd", "a", "-w", "out.pcap.xz"]);
    assert!(
        code == 2 && stderr.contains("read, but not written"),
        "{stderr}"
    );
    assert!(!desk.path("out.pcap.xz").exists());
}

#[oracle::test]
fn a_filter_file_holds_instructions_or_an_expression() {
    let desk = TestDir::new();
    desk.put("a", &pcap(LITTLE, LinkType::RAW, &[(1, 0x45), (2, 0x60)]));
    if sys::libpcap::Libpcap::load().is_err() {
        oracle::skip("expressions in files", "no libpcap");
        return;
    }
    let expression = "# only small ones\nless 1 # in bytes\n  and not greater 2\n";
    desk.put("expression", expression.as_bytes());
    assert_eq!(desk.count(&["-F", "expression", "a"]), "2\n");
    desk.put("none", b"(greater 100)");
    assert_eq!(desk.count(&["-F", "none", "a"]), "0\n");
    assert_eq!(desk.count(&["-F", "odd.ddd", "a"]), "1\n");
    desk.put("wrong", b"port or");
    let (code, _, stderr) = desk.run(&["-F", "wrong", "a", "--count"]);
    assert!(code == 2 && stderr.contains("syntax error"), "{stderr}");
    assert!(stderr.starts_with("beebox: wrong: "), "{stderr}");
    desk.put("binary", &[0xff, 0, 3]);
    assert_eq!(desk.run(&["-F", "binary", "a"]).0, 2);
}

#[oracle::test]
fn without_the_optimizer_the_same_packets_are_kept() {
    let desk = TestDir::new();
    if sys::libpcap::Libpcap::load().is_err() {
        oracle::skip("expressions without optimizer", "no libpcap");
        return;
    }
    let mut packet = vec![0u8; 40];
    packet[0] = 0x45;
    packet[9] = 17;
    let mut bytes = pcap(LITTLE, LinkType::RAW, &[]);
    for port in [10u16, 11, 60] {
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        for word in [1, 0, 40, 40] {
            bytes.extend(LITTLE.put_u32(word));
        }
        bytes.extend(&packet);
    }
    desk.put("udp", &bytes);
    let ports = (10..200).step_by(2).map(|port| format!("port {port}"));
    let ports = ports.collect::<Vec<_>>().join(" or ");
    assert_eq!(desk.count(&["-O", &ports, "udp"]), "2\n");
    assert!(length(&desk, &["-O"]) > length(&desk, &[]));
    for expression in ["udp src port 10 or 11", "not udp", ""] {
        assert_eq!(
            desk.count(&["-O", expression, "udp"]),
            desk.count(&[expression, "udp"])
        );
    }
}

/// Instructions that libpcap makes of an expression.
fn length(desk: &TestDir, options: &[&str]) -> usize {
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .current_dir(desk.0.path())
        .args(["dis", "-e", "ip and tcp port 22"])
        .args(options)
        .output()
        .unwrap();
    output.stdout.split(|&byte| byte == b'\n').count()
}

#[oracle::test]
fn a_file_that_is_no_expression_is_not_printed_whole() {
    if let Err(absent) = sys::libpcap::Libpcap::load() {
        oracle::skip("expressions that libpcap refuses", format!("{absent:?}"));
        return;
    }
    let desk = TestDir::new();
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample.pcap");
    let (code, _, said) = desk.run(&["-F", readme, capture]);
    assert_eq!(code, 2);
    assert!(said.contains("libpcap refuses \"Beebox is"), "{said}");
    assert!(said.len() < 600, "{} bytes", said.len());
}

#[oracle::test]
fn link_types_are_listed_and_named_as_in_libpcap() {
    let desk = TestDir::new();
    let (code, stdout, _) = desk.run(&["-L"]);
    let stdout = String::from_utf8(stdout).unwrap();
    assert_eq!(code, 0);
    assert!(stdout.lines().any(|line| line == "  1  EN10MB"));
    let Ok(libpcap) = sys::libpcap::Libpcap::load() else {
        oracle::skip("names of link types", "no libpcap");
        return;
    };
    let newest = LinkType::all().map(|(link_type, _)| link_type).max();
    let mut compared = 0;
    for number in 0..1024 {
        let link_type = LinkType(number);
        let header = PcapHeader::new(Interface {
            link_type,
            ..Interface::UNKNOWN
        });
        let Ok(Some(name)) = libpcap.link_type_name(header.raw()) else {
            continue;
        };
        // A newer libpcap may know more.
        if Some(link_type) <= newest {
            assert_eq!(link_type.name(), Some(name.as_str()), "{number}");
            compared += 1;
        }
    }
    assert!(compared > 140, "{compared}");
}

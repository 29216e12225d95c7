//! Captures in xz, LZ4 and bzip2: what the tools write is read back, in one piece and in
//! several, whole and truncated.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use beebox_capture::{Compression, decompress};

/// Twelve lines, compressed as two pieces one behind the other.
fn lines() -> Vec<u8> {
    let lines = (0..12).map(|at| format!("beebox {at}\n"));
    lines.collect::<String>().into_bytes()
}

/// The compression, and what the tool wrote for [`lines`].
const RECORDED: &[(&str, Compression, &str)] = &[
    (
        "xz",
        Compression::Xz,
        "fd377a585a000004e6d6b4460200210116000000742fe5a3e0003100175d0031196cc4722d4e6ebca4b222b6\
         98badeed15d0fe85e2000000d6cbbda2fc66e758000133329b813a1c1fb6f37d010000000004595afd377a58\
         5a000004e6d6b4460200210116000000742fe5a3e0003b001d5d003c0802a0a81fa2b991516ff4f452de5017\
         d3c30ce33d109ce3f5262bc000000000a85df2d7b6b92cbd0001393c16446d011fb6f37d010000000004595a",
    ),
    (
        "lz4",
        Compression::Lz4,
        "04224d186440a72000000093626565626f7820300a090014310900143209001433090070340a626565626f00\
         000000eafa19a604224d186440a729000000c47820350a626565626f78203609001437090014380900143909\
         00d031300a626565626f782031310a000000008c78be89",
    ),
    (
        "bzip2",
        Compression::Bzip2,
        "425a68393141592653594c018e570000085980001040007c0012008040200021251a60d4201a69a2a3d34d16\
         8b7c060982847c5dc914e142413006395c425a68393141592653591bbf7e2800001bd9800010400063e01200\
         8040200021249a68c9908068025e39d99c498a4a8560ac160ec1f1772453850901bbf7e280",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// What can be read of a compressed source, and whether it ended well.
fn read(source: &[u8]) -> (Vec<u8>, io::Result<()>) {
    let mut found = Vec::new();
    let result = match decompress(source) {
        Ok(mut reader) => reader.read_to_end(&mut found).map(|_| ()),
        Err(error) => Err(error),
    };
    (found, result)
}

#[oracle::test]
fn pieces_one_behind_the_other_are_read() {
    for &(tool, compression, hex) in RECORDED {
        let source = bytes(hex);
        assert_eq!(Compression::detect(&source), compression, "{tool}");
        let (found, result) = read(&source);
        assert!(result.is_ok(), "{tool}: {result:?}");
        assert_eq!(
            String::from_utf8_lossy(&found),
            String::from_utf8_lossy(&lines()),
            "{tool}"
        );
    }
}

#[oracle::test]
fn a_truncated_source_gives_its_start_and_an_error() {
    for &(tool, _, hex) in RECORDED {
        let source = bytes(hex);
        for end in Compression::MAGIC..source.len() {
            let (found, result) = read(&source[..end]);
            assert!(lines().starts_with(&found), "{tool} at {end}");
            // A cut between the pieces leaves a whole source, and LZ4's decoder takes one
            // inside a frame header or an end mark for the end.
            let is_whole = found.len() == 50 || found == lines();
            let is_whole = is_whole || tool == "lz4" && found.is_empty();
            assert!(result.is_err() || is_whole, "{tool} at {end}");
        }
    }
}

#[oracle::test]
fn output_of_installed_tools_is_read() {
    let mut random = 7u32;
    let content: Vec<u8> = (0..3_000_000)
        .map(|_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 28) as u8
        })
        .collect();
    for (tool, words) in [
        ("xz", &["-c"][..]),
        ("xz", &["-c", "-9", "--check=sha256", "--block-size=500000"]),
        ("lz4", &["-c", "-z"]),
        ("lz4", &["-c", "-z", "-9", "-BD", "-BX"]),
        ("lz4", &["-c", "-z", "-l"]),
        ("bzip2", &["-c"]),
    ] {
        let child = Command::new(tool)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            oracle::skip("compressed captures", format_args!("no {tool}"));
            continue;
        };
        let mut stdin = child.stdin.take().unwrap();
        let input = content.clone();
        let feeder = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap().unwrap();
        let (found, result) = read(&output.stdout);
        assert!(result.is_ok(), "{tool} {words:?}: {result:?}");
        assert!(found == content, "{tool} {words:?}");
    }
}

#[oracle::test]
fn zeros_behind_a_gzip_member_are_padding() {
    let member = |text: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let (first, second) = (member(b"first\n"), member(b"second\n"));
    for zeros in [0, 1, 512, 300_000] {
        let padding = vec![0; zeros];
        let padded = [&first[..], &padding].concat();
        assert_eq!(read(&padded).0, b"first\n", "{zeros}");
        assert!(read(&padded).1.is_ok(), "{zeros}");
        let two = [&first[..], &padding, &second, &padding].concat();
        let (found, result) = read(&two);
        assert_eq!(
            (&found[..], result.is_ok()),
            (&b"first\nsecond\n"[..], true)
        );
        let (found, result) = read(&[&padded[..], b"x"].concat());
        assert_eq!(
            (&found[..], result.is_ok()),
            (&b"first\n"[..], false),
            "{zeros}"
        );
    }
}

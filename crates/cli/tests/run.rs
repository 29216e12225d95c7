//! `beebox exec` as a user meets it.

use serde_json::Value;

use crate::support::beebox;

/// Sums the bytes at r1 (r2 of them) and clears them.
const SUM: &str = "
    w0 = 0
    r2 += r1
next:
    if r1 == r2 goto done
    r3 = *(u8 *)(r1 + 0)
    r0 += r3
    *(u8 *)(r1 + 0) = 0
    r1 += 1
    goto next
done:
    exit
";

/// The bytes of `r0 = 5; exit`.
const FIVE: [u8; 16] = [0xb7, 0, 0, 0, 5, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];

/// `beebox run --raw -`, with further words; its exit code and standard output.
fn run(words: &[&str], program: impl AsRef<[u8]>) -> (i32, String) {
    let output = beebox(&[&["exec", "-"], words].concat(), program);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.is_empty(), "{words:?}: {error}");
    let text = String::from_utf8(output.stdout).expect("text");
    (output.status.code().expect("a code"), text)
}

/// Standard error of a run that could not be.
fn failure(words: &[&str], program: impl AsRef<[u8]>) -> String {
    let output = beebox(&[&["exec", "-"], words].concat(), program);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    assert!(output.stdout.is_empty(), "{words:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[oracle::test]
fn every_form_of_a_program_runs() {
    let hex: String = FIVE.iter().map(|byte| format!("{byte:02x} ")).collect();
    let expected = (0, "r0 = 0x5 (5)\n2 instructions\n".to_owned());
    assert_eq!(run(&[], FIVE), expected);
    assert_eq!(run(&[], &hex), expected);
    assert_eq!(run(&[], "r0 = 5; exit"), expected);
    assert_eq!(run(&["--form", "hex"], hex.replace(' ', ", ")), expected);
}

#[oracle::test]
fn memory_goes_in_and_comes_out() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let name = out.to_str().unwrap();
    let (code, text) = run(&["--mem", "01 02 03", "--dump-mem", "-o", name], SUM);
    assert_eq!(code, 0);
    let expected = "r0 = 0x6 (6)\n22 instructions\nmemory (3 bytes)\n  ffff88811035d940  00 00 00";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(std::fs::read(&out).unwrap(), [0, 0, 0]);
    std::fs::write(&out, [7; 100]).unwrap();
    assert_eq!(
        run(&["--mem", name], SUM).1,
        "r0 = 0x2bc (700)\n604 instructions\n"
    );
    // Three regions, and what stands in which register.
    let program = "r0 = *(u8 *)(r1 + 0); r6 = *(u8 *)(r3 + 0); r0 += r6; r6 = *(u8 *)(r5 + 1)
        r0 += r6; r0 <<= 8; r0 |= r2; r0 <<= 8; r0 |= r4; exit";
    let three = ["--mem", "1e", "--mem", "a=0a 0b", "--mem", "zero:2"];
    assert_eq!(
        run(&three, program).1,
        "r0 = 0x280102 (2621698)\n10 instructions\n"
    );
    assert_eq!(
        run(&["--reg", "r5=-2"], "r0 = r5; exit").1,
        "r0 = 0xfffffffffffffffe (18446744073709551614)\n2 instructions\n"
    );
}

#[oracle::test]
fn a_trap_is_shown_where_it_is() {
    let (code, text) = run(&["--mem", "0102", "--reg", "r2=3"], SUM);
    assert_eq!(code, 1);
    let expected = "\
trap: it reads 1 byte at 0xffff88811035d942, where `memory` (0xffff88811035d940 to 0xffff88811035d942) ends
     1: r2 += r1
     2: if r1 == r2 goto +5
>    3: r3 = *(u8 *)(r1 + 0)
     4: r0 += r3
     5: *(u8 *)(r1 + 0) = 0
after 15 instructions
";
    assert_eq!(text, expected);
}

#[oracle::test]
fn json_has_every_field() {
    let read = |(_, text): (i32, String)| serde_json::from_str::<Value>(&text).expect("JSON");
    let json = ["--format", "json", "--mem", "ro:key=0102"];
    let trapped = read(run(&json, SUM));
    assert_eq!(trapped["trap"]["kind"], "memory");
    assert_eq!(trapped["trap"]["insn"], 5);
    assert_eq!(trapped["trap"]["access"]["violation"], "read-only");
    assert_eq!(trapped["trap"]["access"]["nearest"]["name"], "key");
    let returned = read(run(
        &["--format", "json", "--mem", "0102", "--dump-mem", "--trace"],
        SUM,
    ));
    assert_eq!(returned["r0"], 3);
    assert_eq!(returned["executed"], 16);
    assert_eq!(returned["memory"][0]["hex"], "0000");
    assert_eq!(returned["trace"].as_array().map(Vec::len), Some(16));
    assert_eq!(returned["registers"]["r3"], 2);
}

#[oracle::test]
fn a_trace_shows_what_changes() {
    let (_, text) = run(&["--trace"], "r6 = 7; call pc+1; exit; r0 = r6; exit");
    let changes: Vec<Vec<&str>> = text
        .lines()
        .map(|line| {
            line.split("  ")
                .filter(|part| !part.is_empty())
                .map(str::trim)
                .collect()
        })
        .collect();
    assert_eq!(changes[0], ["0: r6 = 7", "r6 = 0x7"]);
    assert_eq!(changes[1], ["1: call pc+1", "r10 = 0xffffc90013837c08"]);
    assert_eq!(changes[2], ["3: r0 = r6", "r0 = 0x7"]);
    assert_eq!(changes[3], ["4: exit", "r10 = 0xffffc90013847c08"]);
    assert_eq!(changes[4], ["2: exit"]);
}

#[oracle::test]
fn limits_end_a_run() {
    let (code, text) = run(&["--budget", "1000"], "goto -1");
    assert_eq!(code, 1);
    assert!(
        text.starts_with("trap: the limit of 1000 instructions"),
        "{text}"
    );
    let endless = ["--budget", "18446744073709551615", "--timeout", "0.05"];
    let (code, text) = run(&endless, "goto -1");
    assert_eq!(code, 1);
    assert!(
        text.starts_with("trap: the time limit of --timeout has passed"),
        "{text}"
    );
    assert_eq!(run(&["--frames", "1"], "call pc+1; exit; exit").0, 1);
    assert_eq!(
        run(
            &["--gotox"],
            "r1 = func(+3) ll; gotox r1; exit; r0 = 3; exit"
        )
        .0,
        0
    );
}

#[oracle::test]
fn trusted_programs_end_in_time() {
    for engine in ["interp", "native"] {
        let trusted = ["--trust", "--timeout", "0.05", "--engine", engine];
        let (code, text) = run(&trusted, "goto -1");
        assert_eq!(code, 1, "{engine}: {text}");
        assert_eq!(
            text, "trap: the time limit of --timeout has passed\n",
            "{engine}"
        );
        assert_eq!(run(&trusted, "r0 = 3; exit").0, 0);
    }
}

#[oracle::test]
fn helpers_and_packets_are_those_of_the_options() {
    let time = run(&["--time", "77"], "call 5; exit");
    assert_eq!(time.1, "r0 = 0x4d (77)\n2 instructions\n");
    for engine in ["interp", "native"] {
        let trusted = ["--trust", "--engine", engine, "--time", "77"];
        let time = run(&trusted, "call 5; exit");
        assert_eq!(time.1, "r0 = 0x4d (77)\n", "{engine}");
    }
    let random = |seed| run(&["--seed", seed], "call 7; exit");
    assert_eq!(random("1"), random("1"));
    assert_ne!(random("1"), random("2"));
    let packet = run(&["--packet", "0102"], "r0 = *(u16 *)skb[0]; exit");
    assert_eq!(packet.1, "r0 = 0x102 (258)\n2 instructions\n");
}

#[oracle::test]
fn other_engines_require_trust() {
    for engine in ["interp", "native"] {
        let said = failure(&["--engine", engine, "--mem", "0102"], SUM);
        assert!(said.contains("--trust"), "{said}");
        let trusted = ["--engine", engine, "--trust", "--mem", "0102"];
        assert_eq!(run(&trusted, SUM), (0, "r0 = 0x3 (3)\n".to_owned()));
        let traced = [&trusted[..], &["--trace"]].concat();
        assert!(failure(&traced, SUM).contains("--trace is for --engine checked only"));
        let said = failure(&trusted, "r0 = 1");
        assert!(said.contains("only --engine checked runs this"), "{said}");
    }
}

#[oracle::test]
fn each_wrong_input_has_its_own_message() {
    for (words, program, expected) in [
        (&[][..], "", "no instructions"),
        (
            &[],
            "r0 = 1; r1 = *(u9 *)(r0 + 1)",
            "line 1, column 16: expected `u8`",
        ),
        (
            &[],
            "95 00 00",
            "3 bytes are not a whole number of eight-byte instructions",
        ),
        (
            &["--form", "hex"],
            "exit",
            "character 1 is not a hexadecimal digit: 'x'",
        ),
        (
            &["--form", "elf"],
            "exit",
            "this file has no ELF magic number",
        ),
        (&["--mem", "012"], SUM, "a byte has two digits"),
        (
            &["--mem", "no-such-file"],
            SUM,
            "there is no such file, and it is no hexadecimal",
        ),
        (&["--mem", "0", "--mem", "1"], SUM, "a byte has two digits"),
        (
            &["--mem", "00", "--mem", "00", "--mem", "00", "--mem", "00"],
            SUM,
            "up to three regions",
        ),
        (&["--reg", "r6=1"], SUM, "not one of r1 to r5"),
        (&["--reg", "r1"], SUM, "is not rN=VALUE"),
        (&["--timeout", "-1"], SUM, "is no number of seconds"),
        (&["--frames", "0"], SUM, "0 is not in 1..=1024"),
        (&["-o", "x"], SUM, "--mem"),
    ] {
        let said = failure(words, program);
        assert!(said.contains(expected), "{words:?} {program:?}: {said}");
    }
}

#[oracle::test]
fn an_object_runs_by_its_code_section() {
    let directory = tempfile::tempdir().unwrap();
    let object = directory.path().join("object.o");
    let name = object.to_str().unwrap();
    std::fs::write(&object, elf("xdp", &FIVE)).unwrap();
    let words = ["exec", name];
    assert_eq!(beebox(&words, "").stdout, b"r0 = 0x5 (5)\n2 instructions\n");
    let wanted = [&words[..], &["--section", "xdp"]].concat();
    assert_eq!(beebox(&wanted, "").status.code(), Some(0));
    let missing = [&words[..], &["--section", "tc"]].concat();
    let said = String::from_utf8(beebox(&missing, "").stderr).unwrap();
    assert!(said.contains("has no section \"tc\""), "{said}");
    let whole = elf("xdp", &FIVE);
    for len in 4..whole.len() - 1 {
        std::fs::write(&object, &whole[..len]).unwrap();
        assert_eq!(
            beebox(&words, "").status.code(),
            Some(2),
            "{len} bytes of it"
        );
        // Every length would take a while.
        if len > 64 {
            break;
        }
    }
}

/// An object with one section of code: its header, the code, the names, the
/// table of sections.
fn elf(section: &str, code: &[u8]) -> Vec<u8> {
    let names = format!("\0{section}\0.shstrtab\0");
    let (code_at, names_at) = (64, 64 + code.len());
    let table_at = (names_at + names.len()).next_multiple_of(8);
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([1, 0, 247, 0, 1, 0, 0, 0]);
    file.resize(40, 0);
    file.extend((table_at as u64).to_le_bytes());
    file.resize(52, 0);
    file.extend([64, 0, 0, 0, 0, 0, 64, 0, 3, 0, 2, 0]);
    file.extend(code);
    file.extend(names.as_bytes());
    file.resize(table_at + 64, 0);
    for (name, kind, flags, at, len) in [
        (1, 1, 6, code_at, code.len()),
        (2 + section.len(), 3, 0, names_at, names.len()),
    ] {
        let start = file.len();
        file.extend((name as u32).to_le_bytes());
        file.extend((kind as u32).to_le_bytes());
        file.extend((flags as u64).to_le_bytes());
        file.extend([0; 8]);
        file.extend((at as u64).to_le_bytes());
        file.extend((len as u64).to_le_bytes());
        file.resize(start + 64, 0);
    }
    file
}

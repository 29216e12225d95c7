//! The plugin of the public conformance suite.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// r0 = 5; exit
const FIVE: [u8; 16] = [0xb7, 0, 0, 0, 5, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];

fn run(words: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_conformance-plugin"))
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the plugin starts");
    // It does not read its input with --program.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().expect("the plugin ends")
}

#[test]
fn the_plugin_follows_the_protocol() {
    let hex =
        |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}  ")).collect() };
    let plugin = |words: &[&str], input: &str| {
        let output = run(words, input);
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let five = hex(&FIVE);
    let expected = (Some(0), "5\n".to_owned(), String::new());
    assert_eq!(plugin(&[], &five), expected);
    assert_eq!(plugin(&["--program", &five], ""), expected);
    assert_eq!(plugin(&["--engine", "interp"], &five), expected);
    assert_eq!(plugin(&["--engine", "native"], &five), expected);
    // r0 = *(u16 *)(r1 + 1); exit
    let load = hex(&[0x69, 0x10, 1, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(plugin(&["aa bb cc "], &load).1, "ccbb\n");
    assert_eq!(plugin(&["aa bb cc ", "--debug"], &load).1, "ccbb\n");
    let (code, out, error) = plugin(&["aa bb"], &load);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(error.contains("of which only 1 is in `memory`"), "{error}");
    assert_eq!(plugin(&[], "zz").0, Some(2));
    let (code, _, error) = plugin(&[], "");
    assert_eq!(code, Some(2));
    assert!(error.contains("program: no instructions"), "{error}");
    let (code, _, error) = plugin(&["--elf"], &five);
    assert_eq!(code, Some(2));
    assert!(
        error.contains("this file has no ELF magic number"),
        "{error}"
    );
    assert_eq!(plugin(&["zz"], &five).0, Some(2));
}

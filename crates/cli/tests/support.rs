//! Shared parts of the tests of commands that read standard input.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use command_tests::Executable;

/// The command.
pub(crate) const BEEBOX: Executable = Executable {
    name: "beebox",
    path: env!("CARGO_BIN_EXE_beebox"),
};

/// Runs the command with these words and this standard input.
pub(crate) fn beebox(words: &[&str], input: impl AsRef<[u8]>) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("beebox starts");
    // A command that fails early does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_ref());
    child.wait_with_output().expect("beebox ends")
}

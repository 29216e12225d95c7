//! Any text is a list of expectations or an error with a position.

use seccomp::read_expectations;

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "seccomp-expectations",
    property: "a list of expectations is read, or its fault is found in a line of it",
    words: &[
        "x86_64 ",
        "any ",
        "other ",
        "i386, arm ",
        "* ",
        "unnamed ",
        "openat",
        "(arg0 & 0x10 != 0)",
        "arg5 >= 18446744073709551615",
        ", ",
        " -> ",
        "not ",
        "ALLOW\n",
        "ERRNO(EPERM)\n",
        "TRACE(7)\n",
        "KILL\n",
        "# ",
        "0x",
    ],
    run,
};

fn run(input: &[u8]) -> Signature {
    let text = String::from_utf8_lossy(input);
    match read_expectations(&text) {
        Ok(list) => {
            for expectation in &list {
                let line = text
                    .lines()
                    .nth(expectation.line - 1)
                    .expect("a line of the text");
                assert!(line.contains(&expectation.text));
            }
            Signature::of(list.len())
        }
        Err(error) => {
            let line = text
                .lines()
                .nth(error.line - 1)
                .expect("a line of the text");
            assert!(
                (1..=line.len() + 1).contains(&error.column),
                "{error} in {line:?}"
            );
            Signature::of(error.what.split(['"', '\'']).next())
        }
    }
}

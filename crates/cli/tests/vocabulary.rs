//! The options of `beebox` beside the vocabulary of both commands.

use command_tests::vocabulary::{OfTool, check_formats, check_letters};

use crate::support::BEEBOX;

/// Letters that stand for another option in a command, with the tool that has them.
const OF_TOOLS: &[OfTool] = &[
    (
        "verify",
        "veristat",
        &[
            "-o --format",
            "-d --debug",
            "-n --top-n",
            "-q --quiet",
            "-t --test-states",
            "-e --emit",
            "-r --test-reg-invariants",
            "-s --sort",
            "-C -C",
            "-R -R",
        ],
    ),
    (
        "filter",
        "tcpdump",
        &[
            "-d -d",
            "-e -e",
            "-n -n",
            "-q -q",
            "-r --read",
            "-s --snaplen",
            "-t -t",
            "-F --filter",
            "-C -C",
            "-G -G",
        ],
    ),
];

/// Commands whose --format has other values than text and json, with what they are.
const OTHER_FORMATS: &[(&str, &str)] = &[
    ("asm", "forms of programs"),
    ("btf dump", "those of bpftool"),
    ("dis", "forms of programs"),
    ("seccomp compile", "forms of programs"),
    ("seccomp dump", "forms of programs"),
];

#[oracle::test]
fn letters_stand_for_one_option() {
    check_letters(BEEBOX, OF_TOOLS);
}

#[oracle::test]
fn formats_are_text_and_json() {
    check_formats(BEEBOX, OTHER_FORMATS);
}

//! The options of `beebox` beside the vocabulary of both commands.

use command_tests::vocabulary::{
    OfTool, check_formats, check_letters, check_outputs, check_page, check_values,
};

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
            "-F --filter-file",
            "-C -C",
            "-G -G",
            "-D --list-interfaces",
            "-W -W",
            "-v -v",
            "-p --no-promiscuous-mode",
            "-Z -Z",
            "-U -U",
            "-T -T",
            "-I --monitor-mode",
            "-Q --direction",
            "-z -z",
            "-y --linktype",
        ],
    ),
];

#[oracle::test]
fn the_value_of_an_option_has_one_name() {
    check_values(BEEBOX);
}

#[oracle::test]
fn the_page_of_shared_options_names_their_commands() {
    check_page(BEEBOX);
}

#[oracle::test]
fn every_answer_can_go_to_a_file() {
    check_outputs(BEEBOX);
}

#[oracle::test]
fn letters_stand_for_one_option() {
    check_letters(BEEBOX, OF_TOOLS);
}

#[oracle::test]
fn formats_are_text_and_json() {
    check_formats(BEEBOX);
}

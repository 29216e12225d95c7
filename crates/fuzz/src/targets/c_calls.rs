//! Entry points of the C library: null pointers, sizes that do not fit and handles that are closed are
//! refused, and no call panics.

use capi::any_calls;

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "c-calls",
    property: "calls of the C library with any arguments return, and never by a fault of Beebox",
    words: &[
        "\0\u{1}\u{1}\u{1}",
        "\u{3}\u{40}\u{40}\u{8}\u{0}\u{1}\u{9}\u{1}\u{4}",
        "\u{5}\u{2}\u{5}\u{1}\u{2}\u{1}\u{0}",
        "\u{7}\u{1}\u{0}\u{2}\u{8}\u{1}\u{1}\u{1}\u{1}\u{0}",
        "\u{b}\u{1}\u{5}",
    ],
    run,
};

/// Error number of a panic that was caught (`ENOTRECOVERABLE`).
const FAULT: i32 = -131;

/// Objects of the examples: hash tables and a per-CPU array; a program array; a ring buffer.
const OBJECTS: [&[u8]; 3] = [
    include_bytes!("../../../../examples/packets/firewall.bpf.o"),
    include_bytes!("../../../../examples/packets/dispatch.bpf.o"),
    include_bytes!("../../../../examples/packets/flows.bpf.o"),
];

fn run(input: &[u8]) -> Signature {
    let (which, calls) = input.split_first().unwrap_or((&0, &[]));
    let returned = any_calls(OBJECTS[*which as usize % OBJECTS.len()], calls);
    assert!(
        !returned.contains(&FAULT),
        "a fault of Beebox: {returned:?}"
    );
    Signature::of(returned)
}

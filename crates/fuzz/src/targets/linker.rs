//! Any two files can be given to the linker, which links or refuses them.
//!
//! The input: the length of the first file in two bytes, the first file, the
//! second. What was linked is an object of no more bytes than alignment explains,
//! always the same. If it can be linked on, what comes of that can be, too. (It need
//! not be the same bytes: libbpf's linker puts sections of variables in order anew
//! each time.)

use object::elf::Elf;
use object::linker::Linker;

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "linker",
    property: "two files are linked or refused, the same way each time, in bounded memory",
    words: &[
        ".text\0",
        ".maps\0",
        ".extern\0",
        ".ksyms\0",
        ".kconfig\0",
        "license\0",
        ".BTF\0",
        ".rel",
        "\u{7}\0\0\0",
        "\0\0\0\u{e}",
        "\0\0\0\u{c}",
        "\0\0\0\u{f}",
        "\u{10}\0",
        "\u{12}\0",
    ],
    run,
};

/// Largest padding of a section of the result.
const PADDING: usize = 65 << 20;

fn run(input: &[u8]) -> Signature {
    let [low, high, rest @ ..] = input else {
        return Signature::of(());
    };
    let len = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let (first, second) = rest.split_at(len);
    let linked = match link(&[first, second]) {
        Ok(linked) => linked,
        Err(error) => return Signature::of((error.place().file.clone(), fault(&error))),
    };
    assert!(
        link(&[first, second]).as_ref() == Ok(&linked),
        "another result"
    );
    assert!(linked.len() < 16 * input.len() + 2 * PADDING, "too large");
    let elf = Elf::parse(&linked).expect("what was linked can be read");
    let counts = (elf.sections().len(), elf.symbols().len().min(16));
    let again = link(&[&linked]);
    if let Ok(again) = &again {
        assert!(link(&[again]).is_ok(), "it can be linked on once only");
    }
    Signature::of((counts, again.map_err(|error| fault(&error)).err()))
}

fn link(files: &[&[u8]]) -> Result<Vec<u8>, object::Error> {
    let mut linker = Linker::new();
    for (name, file) in ["first", "second"].into_iter().zip(files) {
        linker = linker.add(name, file)?;
    }
    linker.finish()
}

/// The refusal without its numbers and names.
fn fault(error: &object::Error) -> String {
    let text = format!("{:?}", error.problem());
    text.split(['{', '[', '"'])
        .next()
        .unwrap_or_default()
        .to_owned()
}

//! Expectation files: any text is a list of statements or an error with its line, and what is read
//! is checked without a fault of its own.

use std::path::Path;

use beebox::expect::ExpectFile;
use beebox::{Instance, Loader, Object};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "expectations",
    property: "expectations are read and checked, or the fault is found in a line",
    words: &[
        "set open_ports ",
        "set blocked {\"prefix_length\": 24, \"address\": [192, 0, 2, 0]} ",
        "= {\"name\": \"lab\", \"hits\": 0}",
        "= 1",
        "run firewall ",
        "zero:60",
        "none ",
        "ctx=zero:24",
        " x2",
        "0011 2233",
        "verdict XDP_PASS",
        "verdict XDP_DROP 1",
        "retval -1",
        "data unchanged",
        "data[26] c0000202",
        "ctx unchanged",
        "printk none",
        "printk \"a\\n\"",
        "record events = {\"a\": 1}",
        "map open_ports 80 absent",
        "map open_ports entries 0",
        "map actions 0 = 1",
        "global limit = 3",
        "# ",
        "\n",
    ],
    run,
};

/// Directory to which paths are relative: without files.
const NO_FILES: &str = "no-such-directory";

fn run(input: &[u8]) -> Signature {
    let text = String::from_utf8_lossy(input);
    let file = match ExpectFile::try_parse("a", &text, Path::new(NO_FILES)) {
        Ok(file) => file,
        Err(error) => {
            let line = error.line.map(|line| text.lines().nth(line - 1));
            assert!(line.is_none_or(|line| line.is_some()), "no such line");
            let message = error.to_string();
            let letters = message.split('"').next().unwrap_or_default();
            let letters = letters.chars().filter(|it| it.is_ascii_lowercase());
            return Signature::of(letters.take(30).collect::<String>());
        }
    };
    for (line, program) in file.programs() {
        let line = text.lines().nth(line - 1).expect("a line of the text");
        assert!(line.contains(program));
    }
    if !is_small(&text) {
        return Signature::of(file.programs().count());
    }
    let (object, instance) = firewall();
    match instance.check(&object, &file) {
        Ok(report) => {
            assert!(report.expectations.len() <= text.lines().count());
            assert!(report.junit().starts_with("<?xml"));
            assert!(report.to_string().ends_with('\n'));
            let differs = report.expectations.iter().map(|it| it.difference.is_some());
            Signature::of((report.runs, differs.take(4).collect::<Vec<_>>()))
        }
        Err(error) => Signature::of(error.kind()),
    }
}

/// True if a check reads no files and ends soon: absolute paths, long packets and many runs aside.
fn is_small(text: &str) -> bool {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_hexdigit).count();
    let mut zeros = text.split("zero:").skip(1);
    let mut repeats = text.split('x').skip(1);
    !text.contains('/')
        && zeros.all(|behind| digits(behind) < 6)
        && repeats.all(|behind| digits(behind) < 4)
}

fn firewall() -> (Object, Instance) {
    const FILE: &[u8] = include_bytes!("../../../../examples/packets/firewall.bpf.o");
    let object = Object::from_bytes(FILE).expect("an object");
    let instance = Loader::default().load(&object);
    (object, instance.expect("an object that is loaded"))
}

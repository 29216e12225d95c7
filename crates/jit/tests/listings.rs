//! Native code as text: the programs of `listings/*.txt`, each with the options of the compiler and
//! the code that it makes of it, as another disassembler reads it. `UPDATE_EXPECT=1 cargo test -p
//! beebox-jit --test it listings::` writes the code anew.
//!
//! A case begins with its title after `##`. Options are words before the program: optimizations to
//! leave out (`-MemoryUpdate`), `best` for a processor with all extensions, `filter` for a classic
//! filter of captures, `deadline`, `retpoline`. The code comes after `=>`.

use std::fmt::Write;
use std::path::Path;

use beebox_jit::{Draft, Features, Optimization, Optimizations, Options};
use classic::text::{self, Form};
use classic::{Rules, Semantics, check, convert};
use expect_test::expect_file;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter, MemorySizeOptions};
use isa::ebpf::assemble;
use lower::ClassicFilter;

const BEST: Features = Features {
    bmi2: true,
    movbe: true,
    bmi1: true,
    lzcnt: true,
    popcnt: true,
};

/// The code of a program, compiled with these options.
fn compile(words: &str, program: &str) -> Draft {
    let mut options = Options {
        features: Features::PLAIN,
        ..Options::default()
    };
    let mut is_filter = false;
    for word in words.split_whitespace() {
        match word {
            "best" => options.features = BEST,
            "filter" => is_filter = true,
            "deadline" => options.deadline = true,
            "retpoline" => options.retpoline = true,
            "none" => options.optimizations = Optimizations::NONE,
            _ => {
                let left_out = |one: &&Optimization| word == format!("-{one:?}");
                let one = Optimization::ALL.iter().find(left_out).expect(word);
                options.optimizations = options.optimizations.without(*one);
            }
        }
    }
    if !is_filter {
        return Draft::from_insns(assemble(program).expect(program), &options).expect(program);
    }
    let filter = text::read(program.as_bytes(), Some(Form::Asm)).expect(program);
    let checked = check(&filter, Rules::Capture).expect(program);
    let filter = ClassicFilter::from_converted(convert(&checked, Semantics::Capture));
    Draft::of(&filter.into_code(), &options)
}

/// The instructions, and the number of bytes of the tables behind them.
fn listing(code: &[u8]) -> String {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_show_branch_size(false);
    options.set_branch_leading_zeros(false);
    options.set_memory_size_options(MemorySizeOptions::Minimal);
    let (mut lines, mut end) = (String::new(), code.len());
    for insn in Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
        if insn.ip() as usize >= end {
            break;
        }
        if insn.is_ip_rel_memory_operand() {
            end = end.min(insn.ip_rel_memory_address() as usize);
        }
        let mut text = String::new();
        formatter.format(&insn, &mut text);
        let _ = writeln!(lines, "{:4x}: {text}", insn.ip());
    }
    if end < code.len() {
        let _ = writeln!(lines, "{end:4x}: {} bytes of tables", code.len() - end);
    }
    lines
}

/// The file as the compiler writes it.
fn written(file: &str) -> String {
    let mut cases = file.split("## ");
    let mut text = cases.next().unwrap_or_default().to_owned();
    for case in cases {
        let (before, _) = case.split_once("=>\n").expect("code after =>");
        let (title, rest) = before.split_once('\n').expect("a title");
        let (words, program) = match rest.strip_prefix("options: ") {
            Some(rest) => rest.split_once('\n').expect("a program"),
            None => ("", rest),
        };
        let draft = compile(words, program);
        let _ = writeln!(
            text,
            "## {title}\n{rest}=>\n{}",
            listing(draft.bytes()).trim_end()
        );
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}

#[test]
fn native_code_is_as_listed() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/listings");
    let mut count = 0;
    for entry in std::fs::read_dir(directory).expect("listings") {
        let path = entry.expect("a file").path();
        let file = std::fs::read_to_string(&path).expect("text");
        expect_file![path].assert_eq(&written(&file));
        count += 1;
    }
    assert!(count > 3, "{count} files");
}

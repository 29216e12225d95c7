//! `beebox gen header` and `beebox gen rust`: the output compiles, and memory that C writes
//! by the header is read by Rust with the bindings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const OBJECT: &str = "crates/cli/tests/data/bindings.bpf.o";

fn beebox(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("beebox starts")
}

fn generated(words: &[&str]) -> String {
    let output = beebox(&[&["gen"], words].concat());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).expect("text")
}

fn refusal(words: &[&str]) -> String {
    let output = beebox(&[&["gen"], words].concat());
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    assert!(output.stdout.is_empty(), "{words:?}");
    String::from_utf8(output.stderr).expect("text")
}

/// Compiles one file to a program with every warning an error.
fn compile(mut compiler: Command, directory: &TempDir, source: &str, options: &[&str]) -> PathBuf {
    let program = directory.path().join("program");
    let output = compiler
        .args(options)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .current_dir(directory.path())
        .output()
        .expect("the compiler starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert!(error.is_empty(), "{error}");
    program
}

/// Fills a value by the header and writes its bytes.
const C_PROGRAM: &str = r#"
#include <stdio.h>
#include "bindings.h"

int main(void)
{
	static bindings__map__flows__value flow;
	static struct header header;
	struct bindings__bss bss = { .last = 9, .total = 1 };

	flow.lock.val = 1;
	flow.version = 4;
	flow.length = 0xabc;
	flow.delta = -3;
	flow.flags = 0x2bcdef01;
	flow.state = FAILED;
	flow.active = 1;
	flow.kind = BUSY;
	flow.tail = 0x123456789;
	flow.path[1][2].y = 77;
	flow.either.low = 5;
	flow.name[1] = 'x';
	header.second = 0x1122334455667788;
	header.third = 6;
	header.fourth = 0x2a5;
	header.last = 99;
	fwrite(&flow, sizeof(flow), 1, stdout);
	fwrite(&header, sizeof(header), 1, stdout);
	fwrite(&bss, sizeof(bss), 1, stdout);
	return bindings__map__flows[0] != 'f' || bindings__prog__account[0] != 'a';
}
"#;

/// Reads the bytes by the bindings, then sets bit fields and reads them again.
const RUST_PROGRAM: &str = r#"
mod bindings;
use bindings::{globals, maps, programs, types};
use std::io::Read;

fn main() {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).unwrap();
    let read = |at: usize, size: usize| bytes[at..at + size].as_ptr();
    let mut flow: maps::flows::Value = unsafe { read(0, 128).cast::<types::flow>().read_unaligned() };
    let header = unsafe { read(128, 15).cast::<types::header>().read_unaligned() };
    let bss = unsafe { read(143, 40).cast::<globals::bss>().read_unaligned() };
    assert_eq!(bytes.len(), 183);
    assert_eq!(flow.lock.val, 1);
    assert_eq!((flow.version(), flow.length(), flow.delta()), (4, 0xabc, -3));
    assert_eq!((flow.flags(), flow.state, flow.active), (0x2bcdef01, types::FAILED, 1));
    assert_eq!((flow.kind(), flow.tail()), (types::BUSY, 0x123456789));
    assert_eq!((flow.path[1][2].y, flow.name[1]), (77, b'x' as i8));
    assert_eq!(unsafe { flow.either._bits0 }[0] & 7, 5);
    assert_eq!({ header.second }, 0x1122334455667788);
    assert_eq!((header.third(), header.fourth(), { header.last }), (6, 0x2a5, 99));
    assert_eq!((bss.last, bss.total), (9, 1));
    flow.set_delta(-16);
    flow.set_tail(1 << 32);
    assert_eq!((flow.delta(), flow.tail(), flow.length()), (-16, 1 << 32, 0xabc));
    assert_eq!(flow.kind(), types::BUSY);
    assert_eq!((maps::r#loop::NAME, programs::account), ("loop", "account"));
    assert_eq!(globals::bss::MAP, "bindings.bss");
    assert_eq!(globals::data::SIZE, 24);
}
"#;

#[oracle::test]
fn rust_reads_what_c_writes() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    fs::write(at("bindings.h"), generated(&["header", OBJECT])).expect("writable");
    fs::write(at("bindings.rs"), generated(&["rust", OBJECT, "--no-pod"])).expect("writable");
    fs::write(at("fill.c"), C_PROGRAM).expect("writable");
    fs::write(at("read.rs"), RUST_PROGRAM).expect("writable");
    let Some(rustc) = oracle::found("Rust bindings", oracle::program("rustc")) else {
        return;
    };
    let options = ["--edition", "2024", "-D", "warnings"];
    let reader = compile(rustc, &directory, "read.rs", &options);
    let moved = at("reader");
    fs::rename(reader, &moved).expect("renamed");
    for name in ["gcc", "clang-19"] {
        let Some(compiler) = oracle::found("C header", oracle::program(name)) else {
            continue;
        };
        let options = ["-std=c11", "-Wall", "-Wextra", "-Werror"];
        let filler = compile(compiler, &directory, "fill.c", &options);
        let filled = Command::new(filler).output().expect("it starts");
        assert!(filled.status.success());
        fs::write(at("memory"), &filled.stdout).expect("writable");
        let memory = fs::File::open(at("memory")).expect("readable");
        let read = Command::new(&moved).stdin(memory).output();
        let read = read.expect("it starts");
        let error = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success(), "{name}: {error}");
    }
}

#[oracle::test]
fn headers_stand_beside_those_of_linux() {
    let Some(compiler) = oracle::found("C header", oracle::program("gcc")) else {
        return;
    };
    if !Path::new("/usr/include/linux/bpf.h").exists() {
        return oracle::skip("C header beside Linux's", "no /usr/include/linux/bpf.h");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    fs::write(at("bindings.h"), generated(&["header", OBJECT])).expect("writable");
    let source = "#include <linux/bpf.h>\n#include \"bindings.h\"\n#include \"bindings.h\"\n\
                  int main(void) { return sizeof(bindings__map__flows__value) != 128; }\n";
    fs::write(at("both.c"), source).expect("writable");
    compile(
        compiler,
        &directory,
        "both.c",
        &["-Wall", "-Wextra", "-Werror"],
    );
}

#[oracle::test]
fn types_are_added_and_left_out() {
    let plain = generated(&["header", OBJECT]);
    assert!(!plain.contains("struct event {"));
    for kind in ["header", "rust"] {
        let with = generated(&[kind, OBJECT, "--type", "struct event"]);
        assert!(with.contains("struct event {"), "{with}");
    }
    let without = generated(&["header", OBJECT, "--omit-types", "--name", "acct"]);
    assert!(!without.contains("struct flow {"), "{without}");
    assert!(without.contains("typedef struct flow acct__map__flows__value;"));
}

#[oracle::test]
fn what_has_no_bindings_is_refused() {
    for kind in ["header", "rust"] {
        let missing = refusal(&[kind, "nosuch.bpf.o"]);
        assert!(missing.contains("nosuch.bpf.o: No such file"), "{missing}");
        let text = refusal(&[kind, "README.md"]);
        assert!(text.contains("README.md"), "{text}");
        let untyped = refusal(&[kind, "crates/object/tests/objects/jump_table.o"]);
        assert!(untyped.contains("no section .BTF"), "{untyped}");
        assert!(untyped.contains("try: clang -target bpf -g"), "{untyped}");
        let unnamed = refusal(&[kind, OBJECT, "--type", "nosuch"]);
        assert!(unnamed.contains("no type named nosuch"), "{unnamed}");
        let two = refusal(&[kind, OBJECT, OBJECT]);
        assert!(two.contains("unexpected argument"), "{two}");
        let directory = refusal(&[kind, OBJECT, "-o", "crates"]);
        assert!(directory.contains("crates: Is a directory"), "{directory}");
    }
    let both = refusal(&["header", OBJECT, "--omit-types", "--type", "key"]);
    assert!(both.contains("cannot be used with"), "{both}");
}

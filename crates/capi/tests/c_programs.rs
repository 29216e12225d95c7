//! Programs in C with the library: its tests, under AddressSanitizer and valgrind too, and the examples,
//! one of which also runs with libbpf in the kernel.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

const TEST: &str = "crates/capi/tests/c/library.c";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The static library that cargo built with this test: the newest one beside it.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let beside = fs::read_dir(test.parent().expect("a directory")).expect("its directory");
    let libraries = beside.filter_map(|entry| {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_str()?;
        let is_library = name.starts_with("libbeebox_capi-") && name.ends_with(".a");
        let built = fs::metadata(&path)
            .and_then(|about| about.modified())
            .ok()?;
        is_library.then_some((built, path))
    });
    let newest = libraries.max_by_key(|(built, _): &(SystemTime, PathBuf)| *built);
    newest.expect("the static library").1
}

/// True if there is a C compiler.
fn has_compiler() -> bool {
    oracle::found("programs in C", oracle::program("gcc")).is_some()
}

/// Compiles a program with flags; what the compiler says if it does not.
fn compile(source: &Path, flags: &[&OsStr], program: &Path) -> Result<(), String> {
    let output = Command::new("gcc")
        .args([
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O1",
            "-g",
            "-I",
        ])
        .arg(root().join("crates/capi/include"))
        .args([source.as_os_str(), "-o".as_ref(), program.as_os_str()])
        .args(flags)
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Compiles a program with the library, which fits if that does not.
fn compile_with_library(source: &Path, flags: &[&str], program: &Path) {
    let library = library();
    let mut all = vec![library.as_os_str()];
    all.extend(["-lpthread", "-ldl", "-lm"].map(OsStr::new));
    all.extend(flags.iter().map(OsStr::new));
    compile(source, &all, program).unwrap_or_else(|said| panic!("{}: {said}", source.display()));
}

/// Runs a program in the directory of the examples; its output, its status.
fn run(command: &mut Command) -> (String, Option<i32>) {
    let output = command.current_dir(root().join("examples")).output();
    let output = output.expect("a program that was compiled");
    let said = [output.stdout, output.stderr].concat();
    (
        String::from_utf8_lossy(&said).into_owned(),
        output.status.code(),
    )
}

/// Runs the tests in C.
fn hold(command: &mut Command) {
    let (said, status) = run(command);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.ends_with("0 failures\n"), "{said}");
}

#[oracle::test]
fn every_function_does_what_its_comment_says() {
    if !has_compiler() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("library");
    compile_with_library(&root().join(TEST), &[], &program);
    hold(&mut Command::new(&program));
    if let Some(mut command) = oracle::found("C under valgrind", oracle::program("valgrind")) {
        command.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
        hold(command.arg(&program));
    }
}

#[oracle::test]
fn no_function_leaves_its_memory() {
    if !has_compiler() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("library");
    let trial = directory.path().join("trial.c");
    fs::write(&trial, "int main(void) { return 0; }\n").expect("a file");
    let sanitized = compile(&trial, &["-fsanitize=address,undefined".as_ref()], &program);
    if oracle::found("C under AddressSanitizer", sanitized).is_some() {
        compile_with_library(
            &root().join(TEST),
            &["-fsanitize=address,undefined"],
            &program,
        );
        hold(&mut Command::new(&program));
    }
}

#[oracle::test]
fn cplusplus_takes_the_header() {
    let Some(mut compiler) = oracle::found("header in C++", oracle::program("g++")) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("header.cc");
    let text = "#include <beebox.h>\nint main() { return beebox_close(-1) == 0; }\n";
    fs::write(&source, text).expect("a file");
    compiler.args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]);
    compiler
        .arg(root().join("crates/capi/include"))
        .arg(&source);
    assert_eq!(run(&mut compiler), (String::new(), Some(0)));
}

#[oracle::test]
fn the_examples_say_what_the_book_shows() {
    if !has_compiler() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let page = fs::read_to_string(root().join("docs/c.md")).expect("docs/c.md");
    for (name, object) in [
        ("firewall_test", "packets/firewall.bpf.o"),
        ("verify", "verify/port.bpf.o"),
    ] {
        let source = root().join("examples/c").join(name).with_extension("c");
        let text = fs::read_to_string(&source).expect("an example");
        assert!(page.contains(&text), "docs/c.md shows another {name}.c");
        let program = directory.path().join(name);
        compile_with_library(&source, &[], &program);
        let (said, status) = run(Command::new(&program).arg(object));
        assert_eq!(status, Some(i32::from(name == "verify")), "{said}");
        assert!(
            page.contains(&said),
            "docs/c.md shows another output of {name}: {said}"
        );
        let (said, status) = run(Command::new(&program).arg("absent.bpf.o"));
        assert!(status > Some(0) && said.contains("No such file"), "{said}");
        let (said, status) = run(&mut Command::new(&program));
        assert!(status == Some(2) && said.starts_with("usage: "), "{said}");
    }
}

/// Renamed back, the ported test runs with libbpf in the kernel, with the same output.
#[oracle::test]
fn a_test_is_ported_by_renaming_calls() {
    let tools = oracle::selftest_path("7.2/tools");
    let (Some(tools), true) = (oracle::found("port from libbpf", tools), has_compiler()) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (ours, theirs) = (
        directory.path().join("ours"),
        directory.path().join("theirs"),
    );
    let source = root().join("examples/c/firewall_test.c");
    compile_with_library(&source, &[], &ours);
    let text = fs::read_to_string(&source).expect("an example");
    let text = text
        .replace(
            "#include <beebox.h>",
            "#include <bpf/libbpf.h>\n#include <bpf/bpf.h>",
        )
        .replace("beebox_", "bpf_")
        .replace("BEEBOX_OPTS", "LIBBPF_OPTS");
    let renamed = directory.path().join("renamed.c");
    fs::write(&renamed, text).expect("a file");
    let (include, libbpf) = (tools.join("include"), tools.join("libbpf.a"));
    let flags = [
        "-I".as_ref(),
        include.as_os_str(),
        libbpf.as_os_str(),
        "-lelf".as_ref(),
        "-lz".as_ref(),
    ];
    if oracle::found("port from libbpf", compile(&renamed, &flags, &theirs)).is_none() {
        return;
    }
    let of_kernel = run(Command::new(&theirs).arg("packets/firewall.bpf.o"));
    if of_kernel.0.contains("Operation not permitted") {
        return oracle::skip("port from libbpf", "only root can load programs");
    }
    let ported = run(Command::new(&ours).arg("packets/firewall.bpf.o"));
    assert_eq!(ported, of_kernel);
    // With libbpf's own structure.
    let include = include.display().to_string();
    compile_with_library(&source, &["-I", &include, "-include", "bpf/bpf.h"], &ours);
    let ported = run(Command::new(&ours).arg("packets/firewall.bpf.o"));
    assert_eq!(ported, of_kernel);
}

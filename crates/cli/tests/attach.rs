//! `beebox verify --target` and `--attach`: what programs attach to.

use std::path::Path;
use std::process::{Command, Output};

const REPLACED: &str = "crates/testkit/cases/attach/replaced.bpf.o";
const REPLACEMENTS: &str = "crates/testkit/cases/attach/replacements.bpf.o";
const HOOKS: &str = "crates/testkit/cases/attach/hooks.bpf.o";

fn verify(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("verify")
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("the command starts")
}

/// Exit code, standard output and standard error.
fn answer(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = verify(arguments);
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[oracle::test]
fn replacements_are_verified_by_the_rules_of_their_target() {
    let target = format!("{REPLACED}:main_program");
    let of = |program, target: &[&str]| {
        answer(&[&[REPLACEMENTS, "--prog", program, "-o", "csv"], target].concat())
    };
    let (code, text, _) = of("reads_packet", &["--target", &target]);
    assert_eq!(code, Some(0), "{text}");
    // An object with one program needs no name of it.
    let (code, text, _) = of("second", &["--target", REPLACED]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text, _) = of("changes_packet", &["--target", &target]);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("Extension program changes packet data"),
        "{text}"
    );
    let (code, text, _) = of("reads_packet", &[]);
    assert_eq!(code, Some(2));
    assert!(text.contains("--target FILE:PROGRAM"), "{text}");
}

#[oracle::test]
fn programs_attach_to_what_is_named() {
    let attach = ["--prog", "reads_half", "-o", "csv", "--attach"];
    let named = |name| answer(&[&[HOOKS], &attach[..], &[name]].concat());
    // It reads half of the first argument, which must be a number.
    let (code, text, _) = named("reads_half=do_exit");
    assert_eq!(code, Some(0), "{text}");
    let (code, text, _) = named("reads_half=vfs_write");
    assert_eq!(code, Some(1));
    assert!(
        text.contains("invalid bpf_context access off=0 size=4"),
        "{text}"
    );
    let (code, text, _) = named("reads_half=no_such_function");
    assert_eq!(code, Some(2));
    assert!(text.contains("has no no_such_function"), "{text}");
}

#[oracle::test]
fn wrong_targets_are_named() {
    for (words, told) in [
        (&[REPLACEMENTS, "--target", "no-such.o"][..], "no-such.o"),
        (
            &[
                REPLACEMENTS,
                "--target",
                "crates/testkit/cases/attach/replaced.bpf.o:other",
            ],
            "it has no program other",
        ),
        (
            &[REPLACEMENTS, "--target", HOOKS],
            "several programs, and none is named",
        ),
        (&[HOOKS, "--attach", "vfs_read"], "PROGRAM=FUNCTION"),
        (
            &[HOOKS, "--attach", "nothing=vfs_read"],
            "no program is called \"nothing\"",
        ),
    ] {
        let (code, _, error) = answer(words);
        assert_eq!(code, Some(2), "{words:?}: {error}");
        assert!(error.contains(told), "{words:?}: {error}");
    }
}

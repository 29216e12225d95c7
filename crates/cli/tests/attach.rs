//! `beebox verify --target`, `--attach` and `--module-btf`: what programs attach to, and the functions
//! of modules that they call.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const REPLACED: &str = "crates/testkit/cases/attach/replaced.bpf.o";
const REPLACEMENTS: &str = "crates/testkit/cases/attach/replacements.bpf.o";
const MODULES: &str = "crates/testkit/cases/attach/modules.bpf.o";
const CONGESTION: &str = "crates/testkit/cases/attach/congestion.bpf.o";
const PROTOTYPES: &str = "crates/testkit/cases/attach/prototypes.bpf.o";
const HOOKS: &str = "crates/testkit/cases/attach/hooks.bpf.o";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn beebox(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("the command starts")
}

/// Exit code, standard output and standard error of `beebox verify`.
fn answer(arguments: &[&str]) -> (Option<i32>, String, String) {
    texts(&beebox(&[&["verify"], arguments].concat()))
}

/// Exit code, standard output and standard error.
fn texts(output: &Output) -> (Option<i32>, String, String) {
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
    // It states no attach type.
    let (_, json, _) = answer(&[
        REPLACEMENTS,
        "--prog",
        "reads_packet",
        "--target",
        &target,
        "-j",
    ]);
    assert!(
        json.contains("\"ext\"") && !json.contains("attach_type"),
        "{json}"
    );
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
fn a_target_that_no_program_attaches_to_is_noted() {
    let told = "no program that is verified replaces or traces a function of it";
    let noted = |program, object: &str| {
        let (code, _, error) = answer(&[object, "--prog", program, "--target", REPLACED]);
        assert_eq!(code, Some(0), "{error}");
        error.contains(told)
    };
    assert!(noted("main_program", REPLACED));
    assert!(!noted("reads_packet", REPLACEMENTS));
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
    let (code, text, error) = named("reads_half=no_such_function");
    assert_eq!(code, Some(2));
    assert!(text.contains("has no no_such_function"), "{text}");
    // The name of the option is wrong, whatever the kernel is.
    assert!(!error.contains("the built-in Linux"), "{error}");
    // A program of another type becomes one of fentry.
    let (code, text, error) = answer(&[
        REPLACED,
        "--prog",
        "main_program",
        "--type",
        "main_program=tracing",
        "--attach",
        "main_program=vfs_read",
        "-j",
    ]);
    assert_eq!(code, Some(1), "{text}{error}");
    assert!(
        text.contains("\"prog_type\":\"tracing\"")
            && text.contains("\"attach_type\":\"trace_fentry\""),
        "{text}"
    );
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
        (
            &[REPLACEMENTS, "--target", ""],
            "a file and the name of a program are expected",
        ),
        (
            &[
                REPLACEMENTS,
                "--target",
                "crates/testkit/cases/attach/replaced.bpf.o:",
            ],
            "a file and the name of a program are expected",
        ),
        (
            &[
                REPLACEMENTS,
                "--target",
                "crates/testkit/cases/attach/replacements.bpf.o:reads_packet",
            ],
            "program reads_packet is a replacement (freplace), which cannot be a target",
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

/// The types of a module in a file that is called like it.
fn module(directory: &Path, name: &str) -> String {
    let packed = root().join(format!("crates/testkit/cases/attach/{name}.btf.gz"));
    let unpacked = Command::new("gzip").arg("-dc").arg(packed).output();
    let path = directory.join(name);
    fs::write(&path, unpacked.expect("gzip").stdout).expect("a file of ours");
    path.display().to_string()
}

#[oracle::test]
fn functions_of_modules_need_the_types_of_their_module() {
    let directory = tempfile::tempdir().expect("a directory of ours");
    let directory = directory.path();
    let (fou, flow_table) = (module(directory, "fou"), module(directory, "nf_flow_table"));
    let csv =
        |words: &[&str]| answer(&[words, &["-e", "prog,verdict,reason", "-o", "csv"]].concat());
    let row = |text: &str, name: &str| {
        let start = format!("{name},");
        let found = text.lines().find(|line| line.starts_with(&start));
        found.unwrap_or_default().to_owned()
    };
    let not_given = "of module fou, whose BTF is not given: --module-btf /sys/kernel/btf/fou";
    // Those of another module are the wrong ones.
    for given in [&[][..], &["--module-btf", &flow_table]] {
        let (code, text, _) = csv(&[&[MODULES], given].concat());
        for name in ["sets_ports", "sets_nothing"] {
            let row = row(&text, name);
            assert!(
                row.contains("unsupported") && row.contains(not_given),
                "{given:?}: {text}"
            );
        }
        assert_eq!(code, Some(if given.is_empty() { 2 } else { 1 }), "{text}");
    }
    let (_, text, _) = csv(&[PROTOTYPES]);
    let absent =
        "the kernel has no struct bpf_fou_encap; kfunc bpf_skb_set_fou_encap of module fou";
    assert!(row(&text, "sets_port").contains(absent), "{text}");
    let (code, text, _) = csv(&[PROTOTYPES, "--module-btf", &fou]);
    assert_eq!(code, Some(2), "{text}");
    assert!(row(&text, "sets_port").contains("success"), "{text}");
    for name in ["gets_number", "gets_nothing"] {
        let told = "the given BTF of module fou has it with another prototype";
        assert!(row(&text, name).contains(told), "{text}");
    }
    // A type of the module that the kernel has, too, is another one.
    let bbr = module(directory, "tcp_bbr");
    let (code, text, _) = answer(&[CONGESTION, "--module-btf", &bbr, "--explain"]);
    assert_eq!(code, Some(1), "{text}");
    let told = "argument 1 of `bbr_ssthresh` must be the `struct sock` of module tcp_bbr, which is another type";
    assert!(text.contains(told), "{text}");
    let (_, list, _) = texts(&beebox(&["kfuncs", "--module-btf", &fou]));
    assert!(
        list.contains("int bpf_skb_get_fou_encap(struct __sk_buff *"),
        "{list}"
    );
    let vmlinux = directory.join("vmlinux");
    // A header, a type `int` and its name.
    let mut whole = vec![0x9f, 0xeb, 1, 0];
    let words = [24_u32, 0, 16, 16, 5, 1, 1 << 24, 4, 32];
    whole.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    whole.extend(b"\0int\0");
    fs::write(&vmlinux, whole).expect("a file of ours");
    let vmlinux = vmlinux.display().to_string();
    let damaged = directory.join("damaged");
    fs::write(&damaged, [0x9f, 0xeb, 1]).expect("a file of ours");
    let damaged = damaged.display().to_string();
    for (words, told, remedy) in [
        (
            &[MODULES, "--module-btf", &fou, "--kernel", "6.18-minimal"][..],
            "BTF of a module of another build than Linux 6.18 (minimal configuration)",
            "/sys/kernel/btf/fou and",
        ),
        (
            &[MODULES, "--module-btf", &vmlinux],
            "BTF of a whole kernel or program, and none of a module",
            "--module-btf /sys/kernel/btf/MODULE",
        ),
        (
            &[MODULES, "--module-btf", &damaged],
            "too short for a BTF header",
            "/sys/kernel/btf/damaged and",
        ),
    ] {
        let (code, _, error) = answer(words);
        assert_eq!(code, Some(2), "{words:?}: {error}");
        assert!(error.contains(told), "{words:?}: {error}");
        let try_line = error.lines().find(|line| line.starts_with("  try: "));
        assert!(
            try_line.is_some_and(|line| line.contains(remedy)),
            "{words:?}: {error}"
        );
    }
}

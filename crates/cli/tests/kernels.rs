//! The options that name a kernel, and what commands print about it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A socket filter that the kernel accepts.
const SHAPES: &str = "crates/cli/tests/data/shapes.bpf.o";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn beebox(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .current_dir(root())
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The first line of the section of `show` about the kernel.
fn linked_for(words: &[&str]) -> String {
    let shown = text(&beebox(&[&["show", SHAPES], words].concat()));
    let line = shown.lines().find(|line| line.starts_with("linked for "));
    line.unwrap_or_default().to_owned()
}

#[oracle::test]
fn a_kernel_of_which_single_facts_are_given_is_not_linux_6_18() {
    let output = beebox(&["verify", SHAPES, "--kernel-version", "5.15"]);
    let expected = "verified for Linux 5.15, assumed as in Linux 6.18: BTF, modules, ";
    assert!(error(&output).contains(expected), "{}", error(&output));
    assert_eq!(
        linked_for(&["--kernel-version", "5.15"]),
        "linked for Linux 5.15"
    );
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config");
    fs::write(&config, "CONFIG_HZ=250\n").unwrap();
    let config = config.to_str().unwrap();
    assert_eq!(
        linked_for(&["--kconfig", config, "--kernel-version", "5.15.3"]),
        format!("linked for {config} with version 5.15.3")
    );
    let output = beebox(&["verify", SHAPES, "--kconfig", config]);
    let words = [
        "verify",
        SHAPES,
        "--kernel-version",
        "5.15",
        "--feature",
        "cookies=off",
    ];
    let declared = error(&beebox(&words));
    assert!(
        declared.contains("Linux 5.15 with cookies=off, "),
        "{declared}"
    );
    assert!(declared.contains(", features, "), "{declared}");
    let expected = format!("verified for {config}, assumed as in Linux 6.18: version, BTF, ");
    assert!(error(&output).contains(&expected), "{}", error(&output));
    assert!(
        !error(&output).contains("configuration"),
        "{}",
        error(&output)
    );
}

#[oracle::test]
fn facts_that_replace_those_of_a_kernel_are_named() {
    let of_6_18 = |words: &[&str]| linked_for(&[&["--kernel", "6.18"], words].concat());
    assert_eq!(of_6_18(&[]), "linked for Linux 6.18");
    assert_eq!(
        linked_for(&["--kernel", "6.18-minimal"]),
        "linked for Linux 6.18 (minimal configuration)"
    );
    assert_eq!(
        of_6_18(&["--kernel-version", "5.15", "--feature", "cookies=off"]),
        "linked for Linux 6.18 with version 5.15, cookies=off"
    );
    assert_eq!(
        of_6_18(&["--btf", SHAPES]),
        format!("linked for Linux 6.18 with BTF of {SHAPES}")
    );
}

/// What a command prints on standard error for a kernel of which the version is given.
fn noted(words: &[&str]) -> String {
    let words = [words, &["--kernel-version", "5.15"]].concat();
    error(&beebox(&words))
}

#[oracle::test]
fn every_command_names_what_it_assumes_of_the_kernel() {
    let traffic = "examples/traffic/traffic.bpf.o";
    let program = "examples/packets/guard.bpf.o";
    let linked = "beebox: linked for Linux 5.15, assumed as in Linux 6.18: BTF, modules, ";
    let verified = "beebox: verified for Linux 5.15, assumed as in Linux 6.18: BTF, modules, ";
    for (words, expected) in [
        (&["dis", SHAPES, "--json"][..], linked),
        (&["dis", SHAPES, "--format", "case"], linked),
        (&["dis", SHAPES, "--xlated", "--json"], verified),
        (&["show", traffic, "--needs-at-most", "6.0"], linked),
        (&["verify", SHAPES, "--format", "csv"], verified),
        (&["run", program, "--packet", "hex:00"], verified),
        (
            &["kfuncs"],
            "beebox: listed for Linux 5.15, assumed as in Linux 6.18: BTF, modules, ",
        ),
    ] {
        let noted = noted(words);
        let count = noted.lines().filter(|line| line.contains(expected)).count();
        assert_eq!(count, 1, "{words:?}: {noted}");
    }
    for words in [&["dis", SHAPES][..], &["dis", SHAPES, "--xlated"]] {
        let words = [words, &["--kernel-version", "5.15"]].concat();
        let output = beebox(&words);
        assert_eq!(error(&output), "");
        let first = text(&output).lines().next().unwrap_or_default().to_owned();
        assert!(
            first.contains(" for Linux 5.15, assumed as in Linux 6.18: "),
            "{first}"
        );
    }
}

#[oracle::test]
fn configurations_are_read_from_files_that_have_options() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let output = beebox(&["verify", SHAPES, "--kconfig", "README.md"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        error(&output).contains("no line CONFIG_NAME=value"),
        "{}",
        error(&output)
    );
    let text = "#\n# Linux/x86 5.15.7 Kernel Configuration\n#\nCONFIG_HZ=250\n";
    let path = write("config", text.as_bytes());
    let version = |words: &[&str]| {
        let output = beebox(&[&["show", SHAPES, "--format", "json"], words].concat());
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        shown["linked"]["kernel"]["version"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(version(&["--kconfig", &path]), "5.15.7");
    assert_eq!(
        version(&["--kconfig", &path, "--kernel-version", "5.16"]),
        "5.16.0"
    );
    assert_eq!(
        version(&["--kconfig", &path, "--kernel", "6.18"]),
        "6.18.44"
    );
    assert_eq!(version(&["--kernel", "6.18.44"]), "6.18.44");
}

#[oracle::test]
fn sources_of_facts_are_those_that_stated_them() {
    let directory = tempfile::tempdir().unwrap();
    let kernel = directory.path();
    fs::create_dir(kernel.join("modules")).unwrap();
    fs::copy(root().join(SHAPES), kernel.join("vmlinux.btf")).unwrap();
    // A header of BTF without types and with the empty string alone.
    let mut module = vec![0x9f, 0xeb, 1, 0, 24, 0, 0, 0];
    module.extend([0_u32, 0, 0, 1].iter().flat_map(|word| word.to_le_bytes()));
    module.push(0);
    fs::write(kernel.join("empty"), &module).unwrap();
    let sources = |words: &[&str]| {
        let output = beebox(&[&["show", SHAPES, "--format", "json"], words].concat());
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        shown["linked"]["kernel"]["sources"].clone()
    };
    let found = sources(&["--kernel", "6.18", "--btf", SHAPES]);
    assert_eq!(found["modules"], "assumed");
    assert_eq!(found["symbols"], "built in (Linux 6.18)");
    assert_eq!(found["BTF"], SHAPES);
    assert_eq!(found["mitigations"], "built in (Linux 6.18)");
    let directory = kernel.to_str().unwrap();
    assert_eq!(sources(&["--kernel", directory])["modules"], "assumed");
    let module = kernel.join("empty");
    let found = sources(&["--kernel", "6.18", "--module-btf", module.to_str().unwrap()]);
    assert_eq!(found["modules"], module.to_str().unwrap());
    fs::rename(&module, kernel.join("modules/empty")).unwrap();
    assert_eq!(sources(&["--kernel", directory])["modules"], directory);
}

#[oracle::test]
fn a_part_that_the_built_in_kernel_lacks_is_named_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("receiver.s");
    fs::write(&path, "r0 = *(u32 *)(r1 + 0)\nexit\n").unwrap();
    let path = path.to_str().unwrap();
    let hint = "the built-in Linux 6.18 is 6.18.44 as Debian configures it, by ";
    let hints = |words: &[&str]| {
        let output = error(&beebox(words));
        output.lines().filter(|line| line.contains(hint)).count()
    };
    assert_eq!(hints(&["verify", "--type", "lirc_mode2", path, path]), 1);
    assert_eq!(hints(&["verify", "--type", "xdp", path]), 0);
    // Its externs are no kernel functions of Linux.
    let object = "crates/object/tests/objects/externs.o";
    for words in [
        &["show", object, "--link"][..],
        &["verify", object],
        &["dis", object],
    ] {
        assert_eq!(hints(words), 1, "{words:?}");
    }
    assert_eq!(hints(&["show", object]), 0);
    let minimal = error(&beebox(&["verify", object, "--kernel", "6.18-minimal"]));
    for words in [
        "the built-in Linux 6.18 (minimal configuration) is 6.18.44 by ",
        "configured without modules, kprobes, ",
        "--kernel 6.18 has them",
    ] {
        assert!(minimal.contains(words), "{minimal}");
    }
    // A weak kernel function that the kernel has not may be one of a module.
    let bits = error(&beebox(&["verify", "examples/bits/bits.bpf.o"]));
    assert!(
        bits.contains("--module-btf FILE adds what a module has"),
        "{bits}"
    );
    assert!(
        bits.contains("the kernel has no kernel function ") && bits.contains("--module-btf FILE;"),
        "{bits}"
    );
}

#[oracle::test]
fn functions_have_private_stacks_if_the_kernel_gives_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep.s");
    let deep = "r1 = 0\n*(u64 *)(r10 - 400) = r1\ncall pc+1\nexit\n\
                r1 = 0\n*(u64 *)(r10 - 400) = r1\nr0 = 0\nexit\n";
    fs::write(&path, deep).unwrap();
    let words = ["verify", "--type", "kprobe", path.to_str().unwrap()];
    assert_eq!(beebox(&words).status.code(), Some(0));
    let output = beebox(&[&words[..], &["--feature", "private-stack=off"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output).contains("combined stack size of 2 calls"),
        "{}",
        text(&output)
    );
}

#[oracle::test]
fn minimal_btf_is_that_of_any_kernel() {
    let words = [
        "gen",
        "min-core-btf",
        "-o",
        "-",
        "crates/object/tests/core/questions.o",
    ];
    let target = "crates/object/tests/core/targets/moved.o";
    let of = |option| beebox(&[&words[..], &[option, target]].concat());
    assert!(of("--kernel").status.success());
    assert_eq!(of("--kernel").stdout, of("--btf").stdout);
    assert_eq!(of("--core-btf").stdout, of("--btf").stdout);
    let output = beebox(&words);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("--btf FILE"), "{}", error(&output));
}

#[oracle::test]
fn profiles_are_compiled_for_versions_as_objects_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("profile.json");
    let profile = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
        {"names": ["ptrace"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "6.1"}},
        {"names": ["read"], "action": "SCMP_ACT_ALLOW"}]}"#;
    fs::write(&path, profile).unwrap();
    let compiled = |words: &[&str]| {
        let path = path.to_str().unwrap();
        let output = beebox(&[&["seccomp", "compile", path], words].concat());
        (output.status.code(), output.stdout)
    };
    let newest = compiled(&[]);
    assert_eq!(newest.0, Some(0));
    assert_eq!(compiled(&["--kernel", "6.18"]), newest);
    assert_eq!(compiled(&["--kernel-version", "6.18.44-arch1"]), newest);
    assert_eq!(compiled(&["--kernel-version", "6.1"]), newest);
    assert_ne!(compiled(&["--kernel-version", "6.0.9"]), newest);
    assert_eq!(compiled(&["--kernel", "running"]).0, Some(0));
    for words in [["--kernel-version", "6"], ["--kernel", "9.9"]] {
        assert_eq!(compiled(&words).0, Some(2));
    }
    // A directory of a kernel states its version, BTF of no kernel does not.
    let kernel = directory.path().join("kernel");
    fs::create_dir(&kernel).unwrap();
    fs::copy(root().join(SHAPES), kernel.join("vmlinux.btf")).unwrap();
    let kernel = kernel.to_str().unwrap();
    let words = [
        "seccomp",
        "compile",
        path.to_str().unwrap(),
        "--kernel",
        kernel,
    ];
    let told = error(&beebox(&words));
    let missing = format!("beebox: --kernel {kernel}: nothing there states the kernel's version");
    assert!(told.starts_with(&missing), "{told}");
    fs::write(Path::new(kernel).join("kernel.release"), "6.0.9\n").unwrap();
    let of_release = compiled(&["--kernel-version", "6.0.9"]);
    assert_eq!(compiled(&["--kernel", kernel]), of_release);
    let verified = beebox(&["verify", SHAPES, "--kernel-version", "6"]);
    assert_eq!(verified.status.code(), Some(2));
}

#[oracle::test]
fn several_kernels_answer_beside_each_other() {
    let words = ["verify", SHAPES, "--kernel", "6.18,6.18-minimal"];
    let output = beebox(&words);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let shown = text(&output);
    let mut lines = shown.lines();
    let heading: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(heading, ["program", "6.18", "6.18-minimal", "taken", "by"]);
    let first: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(first[1..], ["accepted", "accepted", "all"], "{shown}");
    assert!(
        shown.ends_with("6.18 is Linux 6.18.44; 6.18-minimal is Linux 6.18.44\n"),
        "{shown}"
    );
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program.s");
    fs::write(&program, "r0 = *(u8 *)(r0 + 0)\nexit\n").unwrap();
    let program = program.to_str().unwrap();
    let verify = |kernels: &str, format: &str| {
        let words = [
            "verify", "--type", "xdp", program, "--kernel", kernels, "--format", format,
        ];
        beebox(&words)
    };
    let output = verify("6.18,6.18-minimal", "csv");
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    let shown = text(&output);
    assert!(
        shown.contains(",6.18,6.18.44,failure,1,0,R0 !read_ok,,\n"),
        "{shown}"
    );
    let shown = text(&verify("6.18,6.18-minimal", "text"));
    assert!(
        shown.contains("\n  6.18, 6.18-minimal: R0 !read_ok\n"),
        "{shown}"
    );
    let shown = text(&verify("6.18,6.18-minimal", "markdown"));
    assert!(
        shown.starts_with("| program | 6.18 | 6.18-minimal | taken by |\n|---|---|---|---|\n"),
        "{shown}"
    );
    let shown = text(&verify("6.18,6.18-minimal", "json"));
    assert!(
        shown.contains("\"verifier_verdict\":\"failure\",\"version\":\"6.18.44\""),
        "{shown}"
    );
    // One kernel is of one table, several are of another.
    assert!(error(&verify("6.18", "markdown")).contains("the table of several kernels"));
    let output = beebox(&["show", SHAPES, "--kernel", "6.18,6.18-minimal"]);
    assert!(
        error(&output).contains("one kernel is answered for"),
        "{}",
        error(&output)
    );
    let output = beebox(&["verify", SHAPES, "--kernel", "6.18,6.13"]);
    assert!(
        error(&output).contains("no kernel 6.13"),
        "{}",
        error(&output)
    );
}

//! Kernels of other releases, of which parts are known, and what programs find missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use beebox::internal::btf::{Builder, Enumerator, Func, Kind, Linkage, TypeId};
use beebox::internal::kernel::newest_in;

/// Programs that depend on what a kernel has.
const LACKING: &str = "crates/cli/tests/data/lacking.bpf.o";
const SHAPES: &str = "crates/cli/tests/data/shapes.bpf.o";
/// A program for each special field of values.
const FIELDS: &str = "crates/cli/tests/data/special-fields.bpf.o";

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

/// Exit code and results of a verification: `PROGRAM VERDICT REASON` by line.
fn verified(words: &[&str]) -> (Option<i32>, Vec<String>) {
    let output = beebox(&[&["verify", "--format", "json"], words].concat());
    let records = text(&output);
    let records = records.lines().map(|line| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let word = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
        format!(
            "{} {} {}",
            word("prog_name"),
            word("verifier_verdict"),
            word("reason")
        )
    });
    (output.status.code(), records.collect())
}

/// A file with instructions.
fn instructions(directory: &tempfile::TempDir, text: &str) -> String {
    let path = directory.path().join("program.s");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[oracle::test]
fn there_is_no_verdict_for_a_release_without_rules() {
    let directory = tempfile::tempdir().unwrap();
    let verdict = |program: &str, version: &str| {
        let path = instructions(&directory, program);
        let (code, rows) = verified(&["--type", "xdp", &path, "--kernel-version", version]);
        let (_, rest) = rows[0].split_once(' ').unwrap();
        (code, rest.to_owned())
    };
    let pass = "r0 = 2\nexit\n";
    for version in ["4.14", "5.15", "6.1.192", "6.17", "6.19", "7.2"] {
        let release = version.strip_suffix(".192").unwrap_or(version);
        let expected = format!("unsupported rules of Linux {release}");
        assert_eq!(verdict(pass, version), (Some(2), expected));
    }
    for version in ["6.18", "6.18.3"] {
        assert_eq!(verdict(pass, version), (Some(0), "success ".to_owned()));
    }
    let lacks = |program: &str, version: &str| {
        let (code, verdict) = verdict(program, version);
        assert_eq!(code, Some(1), "{program} on {version}: {verdict}");
        verdict.strip_prefix("failure ").unwrap().to_owned()
    };
    for (program, version, release, what) in [
        ("gotol +0\nr0 = 2\nexit\n", "5.15", "6.6", "gotol"),
        ("may_goto +0\nr0 = 2\nexit\n", "6.6", "6.9", "may_goto"),
        (
            "r0 = 2\nr0 = (s8)r0\nexit\n",
            "6.1",
            "6.6",
            "sign-extending moves",
        ),
        (
            "call 208\nr0 = 2\nexit\n",
            "6.0",
            "6.1",
            "bpf_ktime_get_tai_ns",
        ),
        (
            "w0 = 2\nif w0 == 2 goto +0\nexit\n",
            "5.0",
            "5.1",
            "32-bit jumps",
        ),
        (
            "r1 = 5\nagain: r1 += -1\nif r1 != 0 goto again\nr0 = 2\nexit\n",
            "4.19",
            "5.3",
            "bounded loops",
        ),
        // An opcode is refused also where no path reaches it.
        (
            "r0 = 2\nr1 = 1\nif r1 == 1 goto +1\ngotol +0\nexit\n",
            "5.15",
            "6.6",
            "gotol",
        ),
    ] {
        let expected = format!("{what} needs Linux {release}; the kernel is Linux {version}");
        assert_eq!(lacks(program, version), expected);
        assert_eq!(verdict(program, release).0, Some(2), "{program}");
    }
    // Stable versions of 6.1 got it.
    assert_eq!(verdict("gotol +0\nr0 = 2\nexit\n", "6.1.192").0, Some(2));
    // What no path reaches is not needed.
    let dead = "r0 = 2\nr1 = 1\nif r1 == 1 goto +1\ncall 208\nexit\n";
    assert_eq!(verdict(dead, "6.0").0, Some(2));
    // Refused by the rules of 6.18 is no verdict either.
    assert_eq!(verdict("exit\n", "6.12").0, Some(2));
    assert!(lacks(pass, "4.7").starts_with("program type xdp needs Linux 4.8"));
}

/// To a release that does not know them, special fields are bytes of the value.
#[oracle::test]
fn special_fields_of_values_that_a_release_lacks_are_no_reason() {
    let (code, rows) = verified(&[FIELDS]);
    assert_eq!(code, Some(0), "{rows:#?}");
    for (program, before) in [
        ("use_spin_lock", "5.0"),
        ("use_timer", "5.14"),
        ("use_kptr", "5.18"),
        ("use_list", "6.1"),
        ("use_uptr", "6.12"),
        ("use_task_work", "6.17"),
        ("use_inner", "5.14"),
    ] {
        let (code, rows) = verified(&[FIELDS, "--prog", program, "--kernel-version", before]);
        let expected = format!("{program} unsupported rules of Linux {before}");
        assert_eq!((code, rows), (Some(2), vec![expected]));
    }
}

#[oracle::test]
fn programs_run_by_the_rules_of_6_18_unless_the_release_lacks_something() {
    let run = |program: &str, version: &str| {
        beebox(&[
            "run",
            LACKING,
            "--prog",
            program,
            "--packet",
            "zero:64",
            "--kernel-version",
            version,
        ])
    };
    let output = run("passes", "5.15");
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let note = "Linux 5.15: verified and run by the rules of Linux 6.18; --kernel 5.15 has those of \
         Linux 5.15";
    assert!(error(&output).contains(note), "{}", error(&output));
    assert!(!error(&run("passes", "6.18")).contains("by the rules"));
    let output = run("loops", "5.15");
    assert_ne!(output.status.code(), Some(0));
    assert!(
        error(&output).contains("bpf_loop needs Linux 5.17; the kernel is Linux 5.15"),
        "{}",
        error(&output)
    );
}

#[oracle::test]
fn what_the_built_in_kernel_has_is_found() {
    let (code, rows) = verified(&[LACKING]);
    assert_eq!(code, Some(1));
    let verdict = |program: &str| {
        let mut rows = rows.iter();
        let row = rows.find(|row| row.split(' ').next() == Some(program));
        row.unwrap().split(' ').nth(1).unwrap().to_owned()
    };
    for program in [
        "rarely_used",
        "checked",
        "symbol",
        "known_symbol",
        "newer",
        "loops",
        "passes",
    ] {
        assert_eq!(verdict(program), "success", "{program}");
    }
    // The check of a type that exists opens a read without bounds.
    for program in [
        "type_exists",
        "no_type",
        "no_member",
        "other_type",
        "enumeration",
    ] {
        assert_eq!(verdict(program), "failure", "{program}");
    }
}

#[oracle::test]
fn failed_relocations_name_field_type_and_what_the_kernel_has() {
    for (program, expected) in [
        (
            "no_type",
            "`beebox_no_such_struct.first`: the kernel has no struct beebox_no_such_struct",
        ),
        (
            "no_member",
            "`task_struct___absent.beebox_no_such_member`: the kernel's struct task_struct has no \
             member beebox_no_such_member",
        ),
        (
            "other_type",
            "`task_struct___pointer.exit_signal`: task_struct.exit_signal is int in the kernel, \
             int * in the object",
        ),
        (
            "enumeration",
            "`tty_driver___old.type`: tty_driver.type is enum tty_driver_type in the kernel, short \
             in the object",
        ),
    ] {
        let output = beebox(&["verify", LACKING, "--prog", program, "--explain"]);
        let explained = text(&output);
        assert!(explained.contains(expected), "{program}: {explained}");
        let shown = text(&beebox(&["show", "--link", "--all", LACKING]));
        let (_, absence) = expected.split_once("`: ").unwrap();
        assert!(shown.contains(absence), "{program}: {shown}");
    }
}

#[oracle::test]
fn an_extern_that_the_kernel_lacks_leaves_programs_as_verify_loads_them() {
    let output = beebox(&["show", "--link", "--all", LACKING]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output);
    let said = "  beebox_no_such_symbol: kernel lacks it\n  libbpf loads no program of the object; \
                linked with externs that the kernel lacks as weak ones\n";
    assert_eq!(shown.matches(said).count(), 1, "{shown}");
    // All but the four with failed relocations that runs reach.
    assert!(shown.contains("  9 of 13 programs linked"), "{shown}");
    let output = beebox(&["dis", LACKING, "--prog", "passes"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("exit"), "{}", text(&output));
    assert!(error(&output).contains("beebox_no_such_symbol: kernel lacks it"));
}

#[oracle::test]
fn accesses_behind_checks_are_linked_and_their_releases_are_no_need() {
    let shown = text(&beebox(&["show", "--link", "--all", LACKING]));
    assert!(!shown.contains("checked, instruction"), "{shown}");
    assert!(!shown.contains("newer, instruction"), "{shown}");
    assert!(shown.contains("needs Linux 5.17"), "{shown}");
    assert!(
        shown.contains("kfunc __scx_bpf_dsq_insert_vtime, behind a check"),
        "{shown}"
    );
    let output = beebox(&["show", LACKING, "--needs-at-most", "5.17"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let output = beebox(&["show", LACKING, "--needs-at-most", "5.16"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!text(&output).contains("6.19"), "{}", text(&output));
    let output = beebox(&["show", LACKING, "-j"]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let needs = shown["needs"].as_array().unwrap();
    let guarded = needs.iter().filter(|need| need["guarded"] == true);
    let names: Vec<_> = guarded.map(|need| need["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"__scx_bpf_dsq_insert_vtime"), "{names:?}");
    assert!(!names.contains(&"bpf_loop"), "{names:?}");
}

#[oracle::test]
fn what_reduced_types_leave_out_is_unsupported() {
    let directory = tempfile::tempdir().unwrap();
    let reduced = directory.path().join("reduced.btf");
    let reduced = reduced.to_str().unwrap();
    let object = "crates/object/tests/core/questions.o";
    let made = beebox(&[
        "gen",
        "min-core-btf",
        "-o",
        reduced,
        object,
        "--kernel",
        "6.18",
    ]);
    assert_eq!(made.status.code(), Some(0), "{}", error(&made));
    let (code, rows) = verified(&[LACKING, "--kernel", reduced, "--prog", "rarely_used"]);
    assert_eq!(code, Some(2));
    let expected = "the types given leave out struct linux_dirent64";
    assert!(
        rows[0].contains("rarely_used unsupported ") && rows[0].contains(expected),
        "{rows:?}"
    );
    // Existence is not decided either, and other programs are verified.
    let (code, rows) = verified(&[
        LACKING,
        "--btf",
        reduced,
        "--prog",
        "type_exists",
        "--prog",
        "passes",
    ]);
    assert_eq!(code, Some(2));
    assert!(
        rows[0].contains("type_exists unsupported ") && rows[0].contains(expected),
        "{rows:?}"
    );
    assert!(rows[1].starts_with("passes success"), "{rows:?}");
    // libbpf goes by BTF for CO-RE alone, whatever the kernel has.
    let (_, rows) = verified(&[LACKING, "--core-btf", reduced, "--prog", "type_exists"]);
    assert!(rows[0].starts_with("type_exists success"), "{rows:?}");
    let (code, rows) = verified(&[LACKING, "--reduced-btf", "--prog", "no_type"]);
    assert_eq!(code, Some(2));
    assert!(
        rows[0].contains("leave out struct beebox_no_such_struct"),
        "{rows:?}"
    );
}

#[oracle::test]
fn a_symbol_that_data_leave_out_concerns_the_programs_that_use_it() {
    // Symbols belong to one kernel, so those of BTF alone are unknown.
    let directory = tempfile::tempdir().unwrap();
    let types = directory.path().join("types.btf");
    let dumped = beebox(&["btf", "dump", SHAPES, "--format", "raw"]);
    assert_eq!(dumped.status.code(), Some(0), "{}", error(&dumped));
    fs::copy(root().join(SHAPES), &types).unwrap();
    let types = types.to_str().unwrap();
    let (code, rows) = verified(&[
        LACKING, "--kernel", types, "--prog", "symbol", "--prog", "passes",
    ]);
    assert_eq!(code, Some(2));
    let expected = "beebox_no_such_symbol: the data of the kernel leave out its symbols";
    let of = |program: &str| rows.iter().find(|row| row.starts_with(program)).unwrap();
    assert!(of("symbol ").contains(expected), "{rows:?}");
    assert!(of("passes ").starts_with("passes success"), "{rows:?}");
}

/// A gzip member of stored blocks.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let blocks = bytes.chunks(0xffff);
    let last = blocks.len() - 1;
    for (at, block) in blocks.enumerate() {
        let len = block.len() as u16;
        member.push(u8::from(at == last));
        member.extend(len.to_le_bytes());
        member.extend((!len).to_le_bytes());
        member.extend(block);
    }
    let crc = bytes.iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| match crc & 1 {
            1 => crc >> 1 ^ 0xedb8_8320,
            _ => crc >> 1,
        })
    });
    member.extend((!crc).to_le_bytes());
    member.extend((bytes.len() as u32).to_le_bytes());
    member
}

#[oracle::test]
fn an_image_of_a_distribution_has_types_and_version() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("vmlinuz-5.15.7");
    let payload = gzip(&fs::read(root().join(SHAPES)).unwrap());
    let mut image = vec![0; 5 * 512];
    image[0x1f1] = 4;
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
    image[0x20e..0x210].copy_from_slice(&0x180_u16.to_le_bytes());
    image[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    let release = b"5.15.7-test (builder@host) #1\0";
    image[0x380..0x380 + release.len()].copy_from_slice(release);
    image.extend(&payload);
    fs::write(&path, &image).unwrap();
    let image = path.to_str().unwrap();
    let output = beebox(&["show", SHAPES, "-j", "--kernel", image]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let kernel = &shown["linked"]["kernel"];
    assert_eq!(kernel["version"], "5.15.7");
    assert_eq!(kernel["sources"]["BTF"], image);
    let plain = text(&beebox(&["btf", "dump", SHAPES]));
    assert_eq!(text(&beebox(&["btf", "dump", image])), plain);
    // An image that cannot be read leads to no other kernel.
    fs::write(&path, &payload[..20]).unwrap();
    let output = beebox(&["verify", SHAPES, "--kernel", image]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        error(&output).contains("kernel in the image is damaged"),
        "{}",
        error(&output)
    );
}

#[oracle::test]
fn objects_that_the_loader_refuses_for_declarations_are_listed() {
    for (name, reason) in [
        ("static_program", "static function outside .text"),
        ("pinned_otherwise", "pinning"),
        ("extern_map", "extern"),
    ] {
        let object = format!("crates/object/tests/objects/refused/{name}.o");
        // A listing of what is not linked answers no.
        for (command, code) in [("show", 0), ("dis", 1)] {
            let output = beebox(&[command, &object, "--loader", "libbpf"]);
            let shown = text(&output);
            assert_eq!(output.status.code(), Some(code), "{command} {name}");
            assert!(
                shown.contains("program") && shown.contains("socket"),
                "{shown}"
            );
            assert!(
                shown.contains("shown, not linked: ") && shown.contains(reason),
                "{shown}"
            );
        }
        assert_eq!(
            beebox(&["verify", &object, "--loader", "libbpf"])
                .status
                .code(),
            Some(2),
            "{name}"
        );
    }
}

#[oracle::test]
fn an_attach_type_that_the_kernel_lacks_is_named() {
    let kernel = kernel_data::linux_6_18();
    let function = kernel.btf().unwrap().find(Kind::Func, "schedule").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session.case");
    let case = format!(
        ".type tracing\n.attach_type trace_fsession\n.attach btf_id={}\n.license \"GPL\"\n    r0 = \
         0\n    exit\n",
        function.id()
    );
    fs::write(&path, case).unwrap();
    let (code, rows) = verified(&[path.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    let expected =
        "the kernel has no attach type trace_fsession for such programs: it needs Linux 7.0";
    assert!(rows[0].ends_with(expected), "{rows:?}");
}

/// BTF of a kernel with the first so many map types and these functions.
fn types(maps: u64, functions: &[&str]) -> Vec<u8> {
    let mut builder = Builder::new();
    let name = builder.string("bpf_map_type");
    let mut values: Vec<_> = (0..maps)
        .map(|value| Enumerator {
            name: builder.string(format!("BPF_MAP_TYPE_{value}")),
            value,
        })
        .collect();
    values.push(Enumerator {
        name: builder.string("__MAX_BPF_MAP_TYPE"),
        value: maps,
    });
    builder.enumeration(name, 4, false, &values);
    let proto = builder.proto(TypeId::VOID, &[]);
    for function in functions {
        let name = builder.string(function);
        let linkage = Linkage::STATIC;
        builder.func(name, Func { proto, linkage });
    }
    builder.finish()
}

#[oracle::test]
fn types_alone_tell_the_release() {
    let newest = |btf: &beebox::internal::btf::Btf<'_>| {
        newest_in(btf).map(|(release, _)| release.to_string())
    };
    assert_eq!(
        newest(kernel_data::linux_6_18().btf().unwrap()).as_deref(),
        Some("6.18")
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("vmlinux.btf");
    let of = |maps, functions: &[&str]| {
        fs::write(&path, types(maps, functions)).unwrap();
        verified(&[
            "--kernel",
            path.to_str().unwrap(),
            LACKING,
            "--prog",
            "passes",
        ])
    };
    for (maps, functions, release) in [
        (28, &["schedule"][..], "5.8"),
        // Functions of congestion control are older than their use as kfuncs.
        (28, &["schedule", "tcp_slow_start"], "5.8"),
        (28, &["schedule", "bpf_task_acquire"], "6.2"),
        (35, &["schedule"], "6.19"),
    ] {
        let (code, rows) = of(maps, functions);
        assert_eq!(code, Some(2));
        assert_eq!(
            rows,
            [format!("passes unsupported rules of Linux {release}")]
        );
    }
    // The newest thing is of 6.18, and BTF of programs tells nothing.
    assert_eq!(of(34, &["schedule", "bpf_dynptr_from_skb_meta"]).0, Some(0));
    assert_eq!(
        verified(&["--kernel", SHAPES, LACKING, "--prog", "passes"]).0,
        Some(0)
    );
}

#[oracle::test]
fn whether_system_calls_have_wrappers_is_named_where_types_do_not_tell() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("vmlinux.btf");
    let noted = |functions: &[&str], more: &[&str]| {
        fs::write(&path, types(34, functions)).unwrap();
        let words = ["verify", LACKING, "--prog", "passes", "--btf"];
        error(&beebox(
            &[&words[..], &[path.to_str().unwrap()], more].concat(),
        ))
    };
    let wrappers = "features, whether system calls have wrappers, ";
    let none: [&[&str]; 2] = [&["schedule"], &["__do_sys_bpf"]];
    for functions in none {
        let note = noted(functions, &[]);
        assert!(note.contains(wrappers), "{note}");
        let declared = noted(functions, &["--feature", "syscall-wrapper=off"]);
        assert!(
            declared.contains("features, ") && !declared.contains(wrappers),
            "{declared}"
        );
    }
    for function in ["__x64_sys_bpf", "__arm64_sys_bpf", "__sys_bpf"] {
        let note = noted(&["schedule", function], &[]);
        assert!(
            note.contains("features, ") && !note.contains(wrappers),
            "{note}"
        );
    }
}

#[oracle::test]
fn checks_of_types_decide_nothing_where_the_types_are_assumed() {
    // Types of 6.18 stand for those of 5.15, so that the check answers yes.
    let words = [
        "--kernel-version",
        "5.15",
        "--prog",
        "loops",
        "--prog",
        "loops_if",
    ];
    let (code, rows) = verified(&[&[LACKING], &words[..]].concat());
    assert_eq!(code, Some(1));
    let expected = [
        "loops failure bpf_loop needs Linux 5.17; the kernel is Linux 5.15",
        "loops_if unsupported rules of Linux 5.15",
    ];
    assert_eq!(rows, expected);
}

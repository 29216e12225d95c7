//! Lists of kernels, what differs between them, and kernels that are booted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program for each thing that some kernels lack.
const LACKING: &str = "crates/cli/tests/data/lacking.bpf.o";
const SHAPES: &str = "crates/cli/tests/data/shapes.bpf.o";
/// Programs that some releases take, as they are and guarded.
const SINCE: &str = "crates/cli/tests/data/matrix.bpf.o";
/// Programs that use maps of newer kinds, as they are and guarded.
const MAP_KINDS: &str = "crates/cli/tests/data/map_kinds.bpf.o";
/// Programs that access stack of which 7.2 forgets the contents.
const POISON: &str = "crates/cli/tests/data/poison.bpf.o";
/// A negated number has a range from 6.17 on.
const NEGATED: &str = "call 7\nr6 = r0\nr6 &= 7\nr6 = -r6\nr6 += 7\nr1 = r10\nr1 += -8\nr1 += r6\nr2 = 0\n\
                       *(u8 *)(r1 + 0) = r2\nr0 = 2\nexit\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A cache with a description of 6.15, which is not built in, that has types alone.
struct Cache(tempfile::TempDir);

impl Cache {
    fn new() -> Cache {
        let directory = tempfile::tempdir().unwrap();
        let described = directory.path().join("kernels/6.15/described");
        fs::create_dir_all(&described).unwrap();
        fs::copy(root().join(SHAPES), described.join("vmlinux.btf")).unwrap();
        fs::write(described.join("kernel.release"), "6.15.4\n").unwrap();
        Cache(directory)
    }

    fn beebox(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_beebox"))
            .args(words)
            .current_dir(root())
            .env("BEEBOX_CACHE", self.0.path())
            .output()
            .unwrap()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[oracle::test]
fn lists_name_the_known_kernels_oldest_first() {
    let cache = Cache::new();
    let columns = |kernels: &str| {
        let output = cache.beebox(&["verify", SHAPES, "-q", "--kernel", kernels]);
        let shown = text(&output);
        let heading = shown.lines().next().unwrap_or_default().to_owned();
        let heading = heading.trim_end_matches("taken by").trim().to_owned();
        (heading, error(&output))
    };
    for (kernels, expected) in [
        ("all", "5.10 5.15 6.1 6.6 6.12 6.15 6.18 7.0 7.2 7.3"),
        ("6.12-", "6.12 6.15 6.18 7.0 7.2 7.3"),
        ("6.1-6.12", "6.1 6.6 6.12"),
        ("-5.15", "5.10 5.15"),
        ("lts", "5.10 5.15 6.1 6.6 6.12 6.18"),
        ("6.15.4-6.15.4", "6.15"),
        ("6.13-6.18", "6.15 6.18"),
        ("6.18,6.12", "6.12 6.18"),
        (
            "6.12-,6.18-minimal,6.12",
            "6.12 6.15 6.18 6.18-minimal 7.0 7.2 7.3",
        ),
        ("debian-13,6.18", "debian-13 6.18"),
        ("Trixie,6.18", "6.12 6.18"),
        ("6.18.44,6.18,6.12.117,6.12", "6.12.117 6.18.44"),
    ] {
        let (heading, error) = columns(kernels);
        let words: Vec<&str> = heading.split_whitespace().skip(1).collect();
        assert_eq!(words.join(" "), expected, "{kernels}: {error}");
    }
    let known = "6.12 (6.12.117), 6.15 (6.15.4), 6.18 (6.18.44)";
    for (kernels, expected) in [
        ("9.9", "--kernel 9.9: no kernel 9.9 is known, only "),
        (
            "8.0-",
            "--kernel 8.0-: none of the known kernels is in this range: ",
        ),
        ("6.12.118-6.14", "--kernel 6.12.118-6.14: none of the known"),
        (
            "debian-10,6.18",
            "--kernel debian-10: it has Linux 4.19, which is not among the known kernels: ",
        ),
    ] {
        let (_, error) = columns(kernels);
        assert!(
            error.contains(expected) && error.contains(known),
            "{kernels}: {error}"
        );
        assert!(error.contains("tools/kernels/vm describe"), "{error}");
    }
    let (_, error) = columns("6.18-6.12");
    assert!(error.contains("the range ends before it begins"), "{error}");
    let (_, error) = columns("6.12-,--explain");
    assert!(error.contains("no kernel and no file"), "{error}");
    // One kernel is answered for elsewhere.
    let output = cache.beebox(&["dis", SHAPES, "--kernel", "6.12-"]);
    assert_eq!(output.status.code(), Some(2));
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(failed.contains("one kernel is answered for"), "{failed}");
}

#[oracle::test]
fn a_program_that_changes_is_named_with_what_decides_it() {
    let cache = Cache::new();
    let program = cache.file("negated.s", NEGATED.as_bytes());
    let verify = |words: &[&str]| {
        let all = [&["verify", "--type", "xdp", &program, "-q"], words].concat();
        cache.beebox(&all)
    };
    // The same data with another version, in a directory that has helpers and contexts of its own.
    let same = verify(&["--diff", "6.18,6.18-minimal"]);
    assert_eq!(same.status.code(), Some(0), "{}", error(&same));
    assert!(text(&same).starts_with("no program changes its verdict or cost\n"));
    for (words, expected) in [
        (
            &["--diff", "6.18"][..],
            "two kernels are compared, and it names 1",
        ),
        (
            &["--diff", "6.12,6.18,running"],
            "two kernels are compared, and it names 3",
        ),
        (&["--diff", "6.18,9.9"], "no kernel 9.9 is known"),
        (
            &["--diff", "6.12,6.18", "--kernel", "6.18"],
            "cannot be used with",
        ),
        (
            &["--kernel", "all", "--cost"],
            "--cost is of one kernel, and --kernel names several",
        ),
        (
            &["--kernel", "all", "-s", "insns", "-e", "prog"],
            "--emit is of one kernel",
        ),
        (
            &["--diff", "6.12,6.12.117"],
            "two kernels are compared, and it names 1",
        ),
        (
            &["--kernel", "all", "--format", "sarif"],
            "--format sarif is of one kernel",
        ),
    ] {
        let output = verify(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(
            error(&output).contains(expected),
            "{words:?}: {}",
            error(&output)
        );
    }
}

/// What the booted kernels answer; 6.6, which no kernel was compared with, enters a callback once and
/// follows precision back through it.
#[oracle::test]
fn rules_are_those_of_the_kernels() {
    let cache = Cache::new();
    for (case, verdicts) in [
        (
            "callback-once",
            "6.1 success 6.6 success 6.12 success 6.18 success",
        ),
        (
            "half-pointer",
            "6.1 failure 6.12 failure 6.18 success 7.3 failure",
        ),
        (
            "xdp-socket",
            "6.1 failure 6.12 success 6.18 failure 7.3 success",
        ),
    ] {
        let words: Vec<&str> = verdicts.split(' ').collect();
        let kernels: Vec<&str> = words.chunks(2).map(|pair| pair[0]).collect();
        let path = format!("crates/cli/tests/data/{case}.case");
        let list = kernels.join(",");
        let output = cache.beebox(&["verify", &path, "-q", "-o", "csv", "--kernel", &list]);
        let answers = text(&output);
        let lines = answers.lines().skip(1);
        let found = lines.flat_map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            [cells[2], cells[4]]
        });
        assert_eq!(
            found.collect::<Vec<_>>(),
            words,
            "{case}: {}",
            error(&output)
        );
    }
}

/// A kernel creates no map of a kind that it lacks, so that nothing that uses one is loaded; what checks
/// first does not use it. The booted kernels answer the same (`beebox ask`); to 7.2, a lookup in a Bloom
/// filter writes its argument, so that nothing reads what was stored there before a jump.
#[oracle::test]
fn a_map_of_a_kind_that_a_kernel_lacks_refuses_the_programs_that_use_it() {
    let cache = Cache::new();
    let words = ["verify", MAP_KINDS, "-q", "--kernel", "5.10,6.18,7.2"];
    let output = cache.beebox(&[&words[..], &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    let mut found = Vec::new();
    for line in text(&output).lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let mut row = record["prog_name"].as_str().unwrap().to_owned();
        for kernel in record["kernels"].as_array().unwrap() {
            let verdict = kernel["verifier_verdict"].as_str().unwrap();
            let name = kernel["kernel_name"].as_str().unwrap();
            row += &format!(", {name} {verdict} {}", kernel["total_insns"]);
        }
        found.push(row);
    }
    assert_eq!(
        found,
        [
            "filtered, 5.10 failure 0, 6.18 success 12, 7.2 success 12",
            "filtered_if, 5.10 success 6, 6.18 success 15, 7.2 failure 9",
            "unknown, 5.10 failure 0, 6.18 failure 0, 7.2 failure 0",
            "plain, 5.10 success 2, 6.18 success 2, 7.2 success 2",
        ]
    );
    let shown = text(&cache.beebox(&words));
    for said in [
        "  5.10: map 'seen' is not created: the kernel has no maps of type bloom_filter (EINVAL)\n\
         \x20     decided by map bloom_filter (map seen), Linux 5.16 (6.18 has it)\n",
        "  7.2: reading from stack R2 off -8+0 size 8, slot poisoned by dead code elimination\n",
        "  5.10, 6.18, 7.2: map 'strange' is not created: the kernel has no maps of type 99 (EINVAL)\n",
    ] {
        assert!(shown.contains(said), "{shown}");
    }
    let words = ["verify", MAP_KINDS, "--kernel", "7.2", "--explain"];
    let shown = text(&cache.beebox(&words));
    for said in [
        "`bpf_map_peek_elem` reads stack at fp-8, whose contents this kernel dropped at a jump before",
        "the prototype of the callee says that it writes them",
        "another kind of map: no release that is known has this one",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
}

/// Verdicts and processed instructions as the booted 6.18.15, 7.2.12 and 7.3.4 answered (`beebox ask`).
#[oracle::test]
fn what_is_read_of_stack_that_a_kernel_forgot_is_as_that_kernel_has_it() {
    let cache = Cache::new();
    let words = ["verify", POISON, "-q", "-j", "--kernel", "6.18,7.2,7.3"];
    let output = cache.beebox(&words);
    let mut found = Vec::new();
    for line in text(&output).lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let of = |kernel: &serde_json::Value| {
            let verdict = &kernel["verifier_verdict"].as_str().unwrap()[..1];
            format!("{verdict}{}", kernel["total_insns"])
        };
        let kernels: Vec<String> = record["kernels"]
            .as_array()
            .unwrap()
            .iter()
            .map(of)
            .collect();
        assert_eq!(kernels[1], kernels[2], "{record}");
        let name = record["prog_name"].as_str().unwrap();
        found.push(format!("{name} {} {}", kernels[0], kernels[1]));
    }
    assert_eq!(
        found,
        [
            "peek_dead s11 f7",
            "peek_number_low s12 s12",
            "peek_number_high s12 f8",
            "peek_zero_low s11 s11",
            "peek_zero_high s11 s11",
            "peek_seven_low s11 s11",
            "peek_seven_high s11 f7",
            "peek_pointer_low f10 f10",
            "peek_pointer_high f10 f10",
            "peek_spilled_half s12 s12",
            "lookup_dead s11 s11",
            "write_zero f11 f11",
            "write_seven f11 f11",
            "write_number f13 f13",
            "probe_zero f14 f14",
            "probe_seven f14 f14",
            "probe_whole f13 f13",
            "exchanged s11 s11",
            "passed_on s21 s21",
        ]
    );
    let shown = text(&cache.beebox(&["verify", POISON, "-q", "--kernel", "6.18,7.2"]));
    assert!(
        shown.contains("decided by behaviour DeadForgotten, Linux 7.2"),
        "{shown}"
    );
}

/// What the booted kernels answered about `r0 = 1; exit` (`beebox ask`), a letter for each of 5.10, 6.1, 6.12,
/// 6.18, 7.0, 7.2 and 7.3.
#[oracle::test]
fn types_attach_types_and_flags_are_those_of_each_kernel() {
    let cache = Cache::new();
    let rows = [
        ("netfilter", 45, 0, "nnyyyyy"),
        ("netfilter", 0, 0, "nnnnnnn"),
        ("cgroup_sock_addr", 49, 0, "nnyyyyy"),
        ("cgroup_sock_addr", 10, 0, "yyyyyyy"),
        ("cgroup_sock_addr", 37, 0, "nnnnnnn"),
        ("cgroup_sock", 0, 0, "yyyyyyy"),
        ("cgroup_sock", 5, 0, "nnnnnnn"),
        ("cgroup_skb", 1, 0, "yyyyyyy"),
        ("cgroup_skb", 2, 0, "nnnnnnn"),
        ("sk_lookup", 36, 0, "yyyyyyy"),
        ("sk_lookup", 0, 0, "nnnnnnn"),
        ("sk_reuseport", 40, 0, "yyyyyyy"),
        ("sk_reuseport", 5, 0, "ynnnnnn"),
        ("syscall", 0, 0x10, "nyyyyyy"),
        ("syscall", 1, 0x10, "nnnnnnn"),
        ("lirc_mode2", 16, 0, "nnnnnnn"),
        ("kprobe", 42, 0, "yyyyyyy"),
        ("xdp", 59, 0, "yyyyynn"),
        ("xdp", 0, 0x20, "nyyyyyy"),
        ("xdp", 0, 0x40, "nnyyyyy"),
        ("xdp", 0, 0x80, "nnyyyyy"),
        ("xdp", 0, 0x100, "nnnnnnn"),
        ("xdp", 0, 0x10000, "nnnnnnn"),
    ];
    let cases = rows.map(|(kind, attach, flags, _)| {
        let text = format!(
            ".program \"p\"\n.type {kind}\n.expected_attach_type {attach}\n.flags {flags:#x}\n\
             .license \"GPL\"\n    r0 = 1\n    exit\n"
        );
        cache.file(&format!("{kind}-{attach}-{flags}.case"), text.as_bytes())
    });
    let mut words = vec![
        "verify",
        "-q",
        "-o",
        "csv",
        "--kernel",
        "5.10,6.1,6.12,6.18,7.0,7.2,7.3",
    ];
    words.extend(cases.iter().map(String::as_str));
    let output = cache.beebox(&words);
    let answers = text(&output);
    let answers: Vec<&str> = answers.lines().skip(1).collect();
    assert_eq!(answers.len(), 7 * rows.len(), "{}", error(&output));
    for (row, answers) in rows.iter().zip(answers.chunks(7)) {
        let letter = |line: &&str| match line.split(',').nth(4) {
            Some("success") => 'y',
            Some("failure") => 'n',
            _ => '?',
        };
        let letters: String = answers.iter().map(letter).collect();
        assert_eq!(letters, row.3, "{row:?}: {answers:#?}");
    }
}

#[oracle::test]
fn edits_keep_away_what_a_kernel_lacks() {
    let cache = Cache::new();
    let words = [
        "verify",
        SINCE,
        "-q",
        "--explain",
        "--format",
        "json",
        "--kernel",
    ];
    let output = cache.beebox(&[&words[..], &["5.10,5.15,6.1"]].concat());
    let records = text(&output);
    let records = records.lines().map(|line| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        record
    });
    let records: Vec<_> = records.collect();
    let kernel = |program: &str, at: usize| {
        let is_it = |record: &&serde_json::Value| record["prog_name"] == program;
        records.iter().find(is_it).unwrap()["kernels"][at].clone()
    };
    for (program, verdicts) in [
        // A pointer to a character is a number in 5.10, too.
        ("text_argument", "success success success"),
        ("later_argument", "failure success success"),
        ("fragments", "failure failure success"),
        // 5.15 has the types of 6.1 without the names of what is newer.
        ("guarded_helper", "success success success"),
        ("later_field", "failure failure success"),
        ("guarded_field", "success success success"),
    ] {
        let found = [0, 1, 2].map(|at| {
            let verdict = kernel(program, at)["verifier_verdict"].clone();
            verdict.as_str().unwrap_or_default().to_owned()
        });
        assert_eq!(found.join(" "), verdicts, "{program}: {}", error(&output));
    }
    for (program, kind, edit) in [
        (
            "later_argument",
            "context",
            "access argument 4 of sched_switch inside `if (LINUX_KERNEL_VERSION >= KERNEL_VERSION(6, 1, 0))`",
        ),
        (
            "fragments",
            "load flag",
            "load it without BPF_F_XDP_HAS_FRAGS there",
        ),
        (
            "later_field",
            "type",
            "read __sk_buff.hwtstamp inside `if (bpf_core_field_exists(…))`",
        ),
    ] {
        let answer = kernel(program, 0);
        assert_eq!(answer["decision"]["deciders"][0]["kind"], kind, "{answer}");
        let text = answer["edit"]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with(edit), "{program}: {text}");
        assert_eq!(answer["edit"]["outcome"], "accepted", "{answer}");
    }
    let types = [0, 1, 2].map(|at| kernel("fragments", at)["types_of"].clone());
    assert_eq!(types[1], "Linux 6.1.192");
    assert!(types[0].is_null() && types[2].is_null());
    let shown = text(&cache.beebox(&["verify", SINCE, "-q", "--kernel", "5.15,6.1"]));
    let title =
        "5.15 is Linux 5.15.0 with the types of Linux 6.1.192, not compared with a kernel; 6.1 is";
    assert!(shown.contains(title), "{shown}");
    // Attach types and program types are named with their release, and grouped.
    let case = cache.file(
        "n.case",
        b".program \"n\"\n.type netfilter\n.attach_type netfilter\n    r0 = 1\n    exit\n",
    );
    let shown = text(&cache.beebox(&["verify", &case, "-q", "--explain", "--kernel", "5.10-6.6"]));
    for line in [
        "  5.10, 5.15, 6.1: program type netfilter needs Linux 6.4\n",
        "      edit: leave the program out on kernels before Linux 6.4 (bpf_program__set_autoload)",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[oracle::test]
fn what_other_kernels_lack_is_found_by_verifying_again() {
    let cache = Cache::new();
    let verify = |words: &[&str]| cache.beebox(&[&["verify", LACKING, "-q"], words].concat());
    let output = verify(&[
        "--kernel",
        "6.18-minimal,6.18",
        "--format",
        "json",
        "--explain",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    let records = text(&output);
    let mut causes = 0;
    for line in records.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let kernels = record["kernels"].as_array().unwrap();
        let taken = kernels
            .iter()
            .any(|kernel| kernel["verifier_verdict"] == "success");
        for kernel in kernels.iter().filter(|_| taken) {
            let is_refused = kernel["verifier_verdict"] == "failure";
            assert_eq!(!kernel["decision"].is_null(), is_refused, "{record}");
            causes += usize::from(is_refused);
        }
    }
    let shown = text(&verify(&["--kernel", "6.18-minimal,6.18"]));
    assert_eq!(
        shown.matches("decided by").count() + shown.matches("differs in").count(),
        causes
    );
}

#[oracle::test]
fn a_kernel_that_cannot_be_booted_says_why() {
    let cache = Cache::new();
    // The header of an image: signature of the protocol, offset of the text of the version.
    let mut image = vec![0; 0x400];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
    image[0x300..0x30f].copy_from_slice(b"6.18.44 (me) #1");
    let image = cache.file("bzImage", &image);
    let text_file = cache.file("note.txt", b"no image");
    let ask = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beebox"));
        command
            .args(["ask", SHAPES])
            .args(words)
            .current_dir(root());
        command.env("BEEBOX_CACHE", cache.0.path()).env("PATH", "");
        command.output().unwrap()
    };
    for (words, expected) in [
        (
            &["--image", &image][..],
            "qemu-system-x86_64 is not installed",
        ),
        (&[], "there is no image of the kernel to boot"),
        (
            &["--kernel", "6.12"],
            "there is no image of the kernel to boot",
        ),
        (&["--kernel", "running"], "the running kernel is not booted"),
        (&["--image", &text_file], "the file is no kernel that boots"),
        (&["--image", "absent"], "absent: "),
        (
            &["--image", &image, "--prog", "absent"],
            "no program is called \"absent\"",
        ),
        (&["--kernel", "all"], "one kernel is answered for"),
    ] {
        let output = ask(words);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{words:?}: {}",
            text(&output)
        );
        assert!(
            error(&output).contains(expected),
            "{words:?}: {}",
            error(&output)
        );
    }
}

/// A jump through a table forks off a path for each target but the last: counts of the kernels, by
/// `beebox ask`.
#[oracle::test]
fn a_jump_through_a_table_reaches_each_target() {
    let object = "crates/cli/tests/data/indirect_jump.bpf.o";
    for (kernel, row) in [
        ("6.18", "failure,0,0"),
        ("7.0", "success,18,1"),
        ("7.2", "success,18,1"),
        ("7.3", "success,18,1"),
    ] {
        let emit = "verdict,total_insns,total_states";
        let out = Cache::new().beebox(&[
            "verify", "--kernel", kernel, "-o", "csv", "-e", emit, object,
        ]);
        assert_eq!(text(&out).lines().nth(1), Some(row), "Linux {kernel}");
    }
}

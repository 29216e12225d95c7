//! `beebox seccomp`: what `check` and `eval` answer about filters and profiles.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Exit code, standard output and standard error.
fn run(directory: &Path, words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("seccomp")
        .args(words)
        .current_dir(directory)
        .output()
        .expect("beebox starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let code = output.status.code().expect("an exit code");
    (code, text(output.stdout), text(output.stderr))
}

/// A directory with one file in it.
fn with_file(name: &str, text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join(name), text).expect("a file of ours");
    directory
}

/// A denylist as libseccomp compiles it: numbers from 0x40000000 on are refused,
/// ptrace is refused, everything else is allowed.
const DENYLIST: &str = "\
        ld [4]
        jeq #0xc000003e, x86_64
        jeq #0x40000003, i386
        ret #0x80000000
x86_64: ld [0]
        jge #0x40000000, kill
        jeq #101, kill
        ret #0x7fff0000
i386:   ld [0]
        jeq #26, kill
        ret #0x7fff0000
kill:   ret #0x80000000
";

#[oracle::test]
fn a_default_that_allows_is_found_beside_the_x32_test() {
    let directory = with_file("deny.asm", DENYLIST);
    let (code, stdout, _) = run(directory.path(), &["check", "deny.asm"]);
    assert_eq!(code, 0);
    let line = |arch: &str| {
        let start = format!("default-allow: on {arch}, ");
        stdout.lines().find(|line| line.starts_with(&start))
    };
    let x86_64 = line("x86_64").unwrap_or_else(|| panic!("{stdout}"));
    assert!(x86_64.contains("<= nr <= 0x3fffffff"), "{x86_64}");
    let i386 = line("i386").unwrap_or_else(|| panic!("{stdout}"));
    assert!(i386.ends_with("every number without a name"), "{i386}");
    // The example is a call that the filter allows.
    let words = ["eval", "deny.asm", "--arch", "x86_64", "--syscall", "500"];
    assert_eq!(run(directory.path(), &words).1, "ALLOW\n");
    let refusing = DENYLIST.replace("#0x7fff0000", "#0x00050001");
    let directory = with_file("refuse.asm", &refusing);
    let (_, stdout, _) = run(directory.path(), &["check", "refuse.asm"]);
    assert!(!stdout.contains("default-allow"), "{stdout}");
}

const PROFILE: &str = r#"{
    "defaultAction": "SCMP_ACT_ERRNO",
    "architectures": ["SCMP_ARCH_X86_64"],
    "syscalls": [
        {"names": ["read"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
        {"names": ["reboot"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_BOOT"]}}
    ]
}"#;

#[oracle::test]
fn capabilities_are_known_names_lists_and_sets() {
    let directory = with_file("profile.json", PROFILE);
    let eval = |caps: &[&str]| {
        let mut words = vec!["eval", "profile.json", "--machine", "x86_64"];
        words.extend(["--syscall", "mount"]);
        words.extend(caps.iter().flat_map(|caps| ["--cap", caps]));
        run(directory.path(), &words)
    };
    for caps in ["CAP_SYS_ADMIN", "sys_admin", "ALL", "kill,SYS_ADMIN"] {
        let answer = (0, "ALLOW\n".to_owned(), String::new());
        assert_eq!(eval(&[caps]), answer, "{caps}");
    }
    let refused = "ERRNO(1 EPERM)\n";
    for caps in ["none", "docker", "podman", "CAP_KILL"] {
        assert_eq!(eval(&[caps]), (0, refused.to_owned(), String::new()));
    }
    let (code, stdout, stderr) = eval(&["CAP_SYS_ADMN"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("\"CAP_SYS_ADMN\""), "{stderr}");
    assert!(stderr.contains("CAP_SYS_ADMIN\n"), "{stderr}");
    let (code, stdout, stderr) = eval(&[]);
    assert_eq!((code, stdout.as_str()), (0, refused));
    assert!(
        stderr.contains(
            "no capabilities are assumed (--cap names them); rules skipped that need some: 2"
        ),
        "{stderr}"
    );
}

#[oracle::test]
fn options_of_profiles_are_refused_for_compiled_filters() {
    let directory = with_file("deny.asm", DENYLIST);
    let put = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    put("profile.json", r#"{"defaultAction": "SCMP_ACT_ALLOW"}"#);
    put("list", "x86_64 read -> ALLOW\n");
    for option in [
        ["--cap", "CAP_SYS_ADMIN"],
        ["--kernel", "6.18"],
        ["--kernel-version", "4.19"],
        ["--runtime", "runc"],
    ] {
        for (words, profile) in [
            (&["eval", "deny.asm", "--syscall", "read"][..], None),
            (&["table", "deny.asm"], None),
            (&["check", "deny.asm"], None),
            (&["dis", "deny.asm"], None),
            (
                &["diff", "deny.asm", "deny.asm"],
                Some(&["diff", "deny.asm", "profile.json"][..]),
            ),
            (
                &["assert", "deny.asm", "list"],
                Some(&["assert", "profile.json", "list"]),
            ),
        ] {
            let (code, _, stderr) = run(directory.path(), &[words, &option].concat());
            assert_eq!(code, 2, "{words:?} {option:?}: {stderr}");
            let expected = format!("{} does nothing with compiled filters", option[0]);
            assert!(stderr.contains(&expected), "{words:?}: {stderr}");
            if let Some(words) = profile {
                let (code, _, stderr) = run(directory.path(), &[words, &option].concat());
                assert!(matches!(code, 0 | 1), "{words:?} {option:?}: {stderr}");
            }
        }
    }
    // A compiled filter beside a profile is no mistake.
    let words = [
        "eval",
        "deny.asm",
        "profile.json",
        "--syscall",
        "read",
        "--cap",
        "all",
    ];
    assert_eq!(run(directory.path(), &words).0, 0);
}

#[oracle::test]
fn the_architecture_of_a_call_follows_the_machine() {
    let profile = PROFILE.replace("SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64");
    let directory = with_file("profile.json", &profile);
    let words = [
        "eval",
        "profile.json",
        "--cap",
        "none",
        "--machine",
        "aarch64",
    ];
    // The number of read differs: 63 on aarch64.
    let named = run(
        directory.path(),
        &[&words[..], &["--syscall", "read"]].concat(),
    );
    assert_eq!(named, (0, "ALLOW\n".to_owned(), String::new()));
    let options = ["--syscall", "63", "--format", "json"];
    let (_, json, _) = run(directory.path(), &[&words[..], &options].concat());
    assert!(json.contains("\"audit_arch\": 3221225655"), "{json}");
    assert!(json.contains("\"action\": \"ALLOW\""), "{json}");
}

#[oracle::test]
fn a_misspelt_key_of_a_profile_is_refused() {
    let profile = PROFILE.replace("\"syscalls\"", "\"sycalls\"");
    let directory = with_file("profile.json", &profile);
    let (code, stdout, stderr) = run(directory.path(), &["check", "profile.json"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("unknown key \"sycalls\""), "{stderr}");
}

#[oracle::test]
fn a_filter_beyond_the_budget_names_an_instruction() {
    // More products than an analysis names, each of the last one.
    let products = "mul x\n".repeat(1600);
    let code = format!(
        "ld [16]\ntax\nld [24]\n{products}jgt #5, yes\nret #0x50001\nyes: ret #0x7fff0000\n"
    );
    let directory = with_file("products.asm", &code);
    let (code, stdout, stderr) = run(directory.path(), &["table", "products.asm"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("too complex, at instruction "), "{stderr}");
}

/// Refuses ptrace on x86_64 and allows everything else: two findings at least.
const PTRACE: &str = "\
       ld [4]
       jne #0xc000003e, kill
       ld [0]
       jeq #101, refuse
       ret #0x7fff0000
refuse: ret #0x00050001
kill:  ret #0x80000000
";

#[oracle::test]
fn findings_are_denied_on_request_and_read_by_programs() {
    let directory = with_file("ptrace.asm", PTRACE);
    fs::write(directory.path().join("kill.asm"), "ret #0x80000000\n").expect("a file of ours");
    let code = |words: &[&str]| run(directory.path(), words).0;
    assert_eq!(code(&["check", "ptrace.asm"]), 0);
    assert_eq!(code(&["check", "ptrace.asm", "--deny-findings"]), 1);
    assert_eq!(code(&["check", "kill.asm", "--deny-findings"]), 0);
    let (code, stdout, _) = run(
        directory.path(),
        &["check", "ptrace.asm", "--format", "json"],
    );
    let answer: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(code, 0);
    assert_eq!(answer["filters"][0]["accepted"], true);
    let names = answer["findings"].as_array().expect("a list").iter();
    let names: Vec<_> = names.filter_map(|one| one["name"].as_str()).collect();
    assert!(names.contains(&"default-allow"), "{names:?}");
}

#[oracle::test]
fn stacks_are_compared_and_asserted() {
    let directory = with_file("ptrace.asm", PTRACE);
    let mount = PTRACE.replace("#101", "#165");
    fs::write(directory.path().join("mount.asm"), mount).expect("a file of ours");
    let both = PTRACE.replace("jeq #101, refuse", "jeq #101, refuse\njeq #165, refuse");
    fs::write(directory.path().join("both.asm"), both).expect("a file of ours");
    let list = "x86_64 ptrace -> ERRNO(EPERM)\nx86_64 mount -> ERRNO(EPERM)\n";
    fs::write(directory.path().join("list"), list).expect("a file of ours");
    let code = |words: &[&str]| run(directory.path(), words);
    let stack = ["diff", "ptrace.asm", "mount.asm", "--against", "both.asm"];
    assert_eq!(code(&stack).0, 0, "{:?}", code(&stack));
    assert_eq!(code(&["diff", "ptrace.asm", "both.asm"]).0, 1);
    let (exit, _, stderr) = code(&["diff", "ptrace.asm", "mount.asm", "both.asm"]);
    assert!(exit == 2 && stderr.contains("--against"), "{stderr}");
    assert_eq!(code(&["assert", "ptrace.asm", "mount.asm", "list"]).0, 0);
    assert_eq!(code(&["assert", "ptrace.asm", "list"]).0, 1);
    let (exit, _, stderr) = code(&["assert", "list"]);
    assert!(exit == 2 && stderr.contains("EXPECTATIONS"), "{stderr}");
}

#[oracle::test]
fn a_table_shows_conditions_first_and_the_default_last() {
    let directory = with_file("profile.json", PROFILE);
    let conditional = PROFILE.replace(
        "{\"names\": [\"read\"]",
        "{\"names\": [\"socket\"], \"action\": \"SCMP_ACT_ALLOW\", \"args\": [
            {\"index\": 0, \"op\": \"SCMP_CMP_EQ\", \"value\": 2}]},
        {\"names\": [\"read\"]",
    );
    fs::write(directory.path().join("profile.json"), conditional).expect("a file of ours");
    let table = |words: &[&str]| {
        let words = [
            &[
                "table",
                "profile.json",
                "--machine",
                "x86_64",
                "--cap",
                "none",
            ],
            words,
        ];
        run(directory.path(), &words.concat())
    };
    let (_, stdout, _) = table(&["--arch", "x86_64"]);
    let place = |text: &str| {
        let found = stdout.find(text);
        found.unwrap_or_else(|| panic!("{text:?} is not in {stdout}"))
    };
    assert!(place("by argument") < place("ALLOW  1 call"), "{stdout}");
    assert!(place("ALLOW  1 call") < place("by default"), "{stdout}");
    assert!(
        !stdout.contains("ptrace") && !stdout.contains('*'),
        "{stdout}"
    );
    let (_, stdout, _) = table(&["--arch", "x86_64", "--all"]);
    assert!(stdout.contains("ptrace"), "{stdout}");
    let (_, stdout, _) = table(&["--syscall", "socket", "--syscall", "-1"]);
    assert_eq!(
        stdout,
        "x86_64 socket\n  ALLOW           arg0 == 2\n  ERRNO(1 EPERM)  otherwise\n\
         x86_64 0xffffffff\n  ERRNO(1 EPERM)  always\n"
    );
    let (code, _, stderr) = table(&["--syscall", "sockte"]);
    assert!(code == 2 && stderr.contains("--syscall socket"), "{stderr}");
}

#[oracle::test]
fn negative_numbers_need_no_equals_sign() {
    let directory = with_file("ptrace.asm", PTRACE);
    let words = ["eval", "ptrace.asm", "--arch", "x86_64", "--syscall", "-1"];
    assert_eq!(run(directory.path(), &words).1, "ALLOW\n");
}

/// Installs the filter in the file that its argument names, and waits until its standard
/// input ends.
pub(crate) const SANDBOXED: &str = "
import ctypes, sys
code = open(sys.argv[1], 'rb').read()
class Program(ctypes.Structure):
    _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.c_char_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
for _ in range(2):
    assert libc.prctl(22, 2, ctypes.byref(Program(len(code) // 8, code)), 0, 0) == 0
print('ready', flush=True)
sys.stdin.read()
";

#[oracle::test]
fn the_filters_of_a_process_are_dumped_compared_and_asserted() {
    use std::io::Read;
    let directory = with_file("ptrace.asm", PTRACE);
    let in_directory = |name: &str| directory.path().join(name);
    fs::write(in_directory("list"), "x86_64 ptrace -> ERRNO(EPERM)\n").expect("a file of ours");
    let assembled = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(["asm", "ptrace.asm", "-o", "ptrace.bpf"])
        .current_dir(directory.path())
        .status();
    assert!(assembled.is_ok_and(|status| status.success()));
    let child = Command::new("python3")
        .args(["-c", SANDBOXED, "ptrace.bpf"])
        .current_dir(directory.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        oracle::skip("filters of a process", "no python3");
        return;
    };
    let mut ready = [0; 5];
    let started = child
        .stdout
        .as_mut()
        .expect("a pipe")
        .read_exact(&mut ready);
    let pid = child.id().to_string();
    let (code, stdout, stderr) = run(directory.path(), &["dump", "--pid", &pid]);
    let answers = || {
        let answer = |words: &[&str]| run(directory.path(), words);
        let dump = answer(&["dump", "--pid", &pid, "-o", "of-process"]);
        let one = answer(&["dump", "--pid", &pid, "--index", "2"]);
        let diff = answer(&["diff", "--pid", &pid, "ptrace.asm"]);
        let list = answer(&["assert", "--pid", &pid, "list"]);
        [dump, one, diff, list].map(|(code, ..)| code)
    };
    let (_, record, _) = run(
        directory.path(),
        &["dump", "--pid", &pid, "--index", "0", "-j"],
    );
    let codes = (code == 0).then(answers);
    child.kill().expect("a child of ours");
    child.wait().expect("a child of ours");
    let Some(codes) = codes.filter(|_| started.is_ok()) else {
        oracle::skip("filters of a process", stderr.trim());
        return;
    };
    assert_eq!(stdout.matches("ld       [4]").count(), 2, "{stdout}");
    assert_eq!(codes, [0, 2, 0, 0]);
    let recorded = include_str!("data/json/dump.json");
    let keys = |text: &str| {
        let record: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let insn = record["insns"][0].as_object().expect("an instruction");
        insn.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(keys(&record), keys(recorded));
    let code = fs::read(in_directory("ptrace.bpf")).expect("assembled");
    for name in ["of-process.0", "of-process.1"] {
        assert_eq!(
            fs::read(in_directory(name)).expect("dumped"),
            code,
            "{name}"
        );
    }
}

/// Profiles written by hand with every key, action and comparison of the OCI
/// specification.
const EVERY_KEY: &str = include_str!("data/seccomp/every-key.json");
const EVERY_KEY_IN_YAML: &str = include_str!("data/seccomp/every-key.yaml");

#[oracle::test]
fn every_key_of_the_specification_has_its_effect() {
    let directory = with_file("profile.json", EVERY_KEY);
    fs::write(directory.path().join("profile.yaml"), EVERY_KEY_IN_YAML).expect("a file of ours");
    let list = "\
        x86_64, i386 read -> ALLOW\nx86_64 ptrace -> KILL_THREAD\n\
        x86_64 kexec_load -> KILL_PROCESS\nx86_64 reboot -> KILL_THREAD\n\
        x86_64 swapon -> TRAP\ni386 chroot -> ERRNO(EACCES)\nx86_64 mount -> USER_NOTIF\n\
        x86_64 unshare -> TRACE(5)\ni386 syslog -> LOG\n\
        x86_64 socket(arg0 = 16) -> ERRNO(ENOSYS)\nx86_64 socket(arg0 != 16) -> ALLOW\n\
        x86_64 dup(arg0 < 3) -> ALLOW\nx86_64 dup(arg0 >= 3) -> ERRNO(ENOSYS)\n\
        x86_64 fsync(arg0 <= 3) -> ALLOW\nx86_64 fsync(arg0 > 3) -> ERRNO(ENOSYS)\n\
        i386 personality(arg0 = 8) -> ALLOW\ni386 personality(arg0 != 8) -> ERRNO(ENOSYS)\n\
        x86_64 fchdir(arg0 >= 3) -> ALLOW\nx86_64 fchdir(arg0 < 3) -> ERRNO(ENOSYS)\n\
        x86_64 fdatasync(arg0 > 3) -> ALLOW\nx86_64 fdatasync(arg0 <= 3) -> ERRNO(ENOSYS)\n\
        x86_64 clone(arg0 & 0x10000000 = 0) -> ALLOW\n\
        x86_64 clone(arg0 & 0x10000000 != 0) -> ERRNO(ENOSYS)\n\
        x86_64 getpid -> ERRNO(ENOSYS)\nother * -> KILL_THREAD\n";
    fs::write(directory.path().join("list"), list).expect("a file of ours");
    for profile in ["profile.json", "profile.yaml"] {
        let words = ["assert", profile, "list", "--machine", "x86_64"];
        let (code, stdout, stderr) = run(directory.path(), &words);
        assert_eq!(
            (code, stdout.as_str()),
            (0, "25 of 25 expectations hold\n"),
            "{stderr}"
        );
    }
    let words = [
        "diff",
        "profile.json",
        "profile.yaml",
        "--machine",
        "x86_64",
    ];
    assert_eq!(run(directory.path(), &words).0, 0);
    let faulty = EVERY_KEY_IN_YAML.replace("syscalls:", "sycalls:");
    fs::write(directory.path().join("profile.yaml"), faulty).expect("a file of ours");
    let (code, _, stderr) = run(directory.path(), &["check", "profile.yaml"]);
    assert!(
        code == 2 && stderr.contains("spec: unknown key \"sycalls\""),
        "{stderr}"
    );
}

#[oracle::test]
fn rules_without_effect_are_findings() {
    let rules = |second: &str| {
        format!(
            r#"{{"defaultAction": "SCMP_ACT_KILL", "syscalls": [
                {{"names": ["socket"], "action": "SCMP_ACT_ALLOW"}}, {second}]}}"#
        )
    };
    let conditional = r#"{"names": ["socket", "bind"], "action": "SCMP_ACT_ERRNO",
        "args": [{"index": 0, "op": "SCMP_CMP_EQ", "value": 16}]}"#;
    let directory = with_file("profile.json", &rules(conditional));
    let check = || {
        let words = [
            "check",
            "profile.json",
            "--machine",
            "x86_64",
            "--deny-findings",
        ];
        run(directory.path(), &words)
    };
    let expected = "rule-without-effect: profile.json: syscalls[1] has no effect on socket: \
                    syscalls[0] decides it (ALLOW)";
    let (code, stdout, _) = check();
    assert_eq!(code, 1);
    let found = stdout
        .lines()
        .filter(|line| line.starts_with("rule-without-effect"));
    assert_eq!(found.collect::<Vec<_>>(), [expected], "{stdout}");
    // A rule with the default action, too.
    let killed = conditional.replace("SCMP_ACT_ERRNO", "SCMP_ACT_KILL");
    fs::write(directory.path().join("profile.json"), rules(&killed)).expect("a file of ours");
    assert!(check().1.contains(expected));
    let other = conditional.replace("\"socket\", ", "");
    fs::write(directory.path().join("profile.json"), rules(&other)).expect("a file of ours");
    assert!(!check().1.contains("rule-without-effect"));
}

#[oracle::test]
fn arguments_have_the_names_of_constants() {
    let profile = PROFILE.replace(
        "{\"names\": [\"read\"]",
        "{\"names\": [\"unshare\"], \"action\": \"SCMP_ACT_ALLOW\", \"args\": [
            {\"index\": 0, \"op\": \"SCMP_CMP_EQ\", \"value\": 268566528}]},
        {\"names\": [\"read\"]",
    );
    let directory = with_file("profile.json", &profile);
    let eval = |argument: &str| {
        let words = [
            "eval",
            "profile.json",
            "--machine",
            "x86_64",
            "--cap",
            "none",
        ];
        let call = ["--syscall", "unshare", "--arg", argument];
        run(directory.path(), &[&words[..], &call].concat())
    };
    assert_eq!(eval("0=CLONE_NEWUSER|CLONE_NEWNS").1, "ALLOW\n");
    assert_eq!(eval("0=CLONE_NEWUSER").1, "ERRNO(1 EPERM)\n");
    let (code, _, stderr) = eval("0=CLONE_NEWUSR");
    assert!(code == 2 && stderr.contains("CLONE_NEWUSER"), "{stderr}");
}

#[oracle::test]
fn big_endian_machines_have_the_halves_of_arguments_exchanged() {
    let profile = PROFILE
        .replace("SCMP_ARCH_X86_64", "SCMP_ARCH_S390X")
        .replace(
            "{\"names\": [\"read\"]",
            "{\"names\": [\"ioctl\"], \"action\": \"SCMP_ACT_ALLOW\", \"args\": [
            {\"index\": 1, \"op\": \"SCMP_CMP_EQ\", \"value\": 4294967298}]},
        {\"names\": [\"read\"]",
        );
    let directory = with_file("profile.json", &profile);
    for machine in ["s390x", "mips64", "ppc64le", "mipsel64", "loongarch64"] {
        let options = ["--machine", machine, "--cap", "none"];
        let answer = |words: &[&str]| run(directory.path(), &[words, &options].concat()).1;
        let call = ["eval", "profile.json", "--syscall", "ioctl", "--arg"];
        assert_eq!(answer(&[&call[..], &["1=0x100000002"]].concat()), "ALLOW\n");
        let swapped = answer(&[&call[..], &["1=0x200000001"]].concat());
        assert_eq!(swapped, "ERRNO(1 EPERM)\n", "{machine}");
        let table = answer(&[
            "table",
            "profile.json",
            "--arch",
            machine,
            "--syscall",
            "ioctl",
        ]);
        assert!(
            table.contains("ALLOW           arg1 == 0x1_0000_0002"),
            "{table}"
        );
        let words = ["compile", "profile.json", "-o", "code"];
        run(directory.path(), &[&words[..], &options].concat());
        let code = fs::read(directory.path().join("code")).expect("compiled");
        // The first instruction loads the architecture: ld [4].
        let is_big = matches!(machine, "s390x" | "mips64");
        assert_eq!(code[..2] == [0, 0x20], is_big, "{machine}");
        let words = [&["eval", "code"], &call[2..], &["1=0x100000002"]].concat();
        let compiled = [&words[..], &["--machine", machine]].concat();
        assert_eq!(run(directory.path(), &compiled).1, "ALLOW\n");
    }
}

#[oracle::test]
fn a_listing_names_calls_architectures_and_actions() {
    let directory = with_file("ptrace.asm", PTRACE);
    let (code, stdout, _) = run(directory.path(), &["dis", "ptrace.asm"]);
    let comments: Vec<&str> = stdout
        .lines()
        .map(|line| line.get(49..).unwrap_or(""))
        .collect();
    assert_eq!(code, 0);
    let expected = [
        "arch",
        "x86_64",
        "nr",
        "ptrace",
        "ALLOW",
        "ERRNO(1 EPERM)",
        "KILL_PROCESS",
    ];
    assert_eq!(comments, expected, "{stdout}");
}

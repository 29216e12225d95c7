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

#[test]
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

#[test]
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

#[test]
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
    assert!(json.contains("\"arch\": 3221225655"), "{json}");
    assert!(json.contains("\"action\": \"ALLOW\""), "{json}");
}

#[test]
fn a_misspelt_key_of_a_profile_is_refused() {
    let profile = PROFILE.replace("\"syscalls\"", "\"sycalls\"");
    let directory = with_file("profile.json", &profile);
    let (code, stdout, stderr) = run(directory.path(), &["check", "profile.json"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("unknown key \"sycalls\""), "{stderr}");
}

#[test]
fn a_filter_beyond_the_budget_names_an_instruction() {
    // Sums of pairs of words, compared with each other.
    let mut code = String::new();
    for round in 0..300 {
        let (first, second) = (round % 12 * 4 + 16, (round * 5 + 3) % 12 * 4 + 16);
        code += &format!("ld [{first}]\ntax\nld [{second}]\nadd x\n");
        code += &format!(
            "jgt x, next{round}\nret #{}\nnext{round}: ",
            0x5_0000 + round
        );
    }
    code += "ret #0x7fff0000\n";
    let directory = with_file("sums.asm", &code);
    let (code, stdout, stderr) = run(directory.path(), &["table", "sums.asm"]);
    if code == 2 {
        assert!(stderr.contains("too complex, at instruction "), "{stderr}");
    } else {
        assert!(code == 0 && !stdout.is_empty(), "{stderr}");
    }
}

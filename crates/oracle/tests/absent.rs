//! A test without its oracle is reported as ignored and counted, or fails where the oracle is
//! required. Both depend on the environment, so each case runs this executable again.

extern crate beebox_oracle as oracle;

use std::process::{Command, ExitCode, Output};
use std::{env, fs, process};

fn main() -> ExitCode {
    oracle::main()
}

/// Runs the ignored test below with these variables.
fn run(variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env::current_exe().expect("this test"));
    command.args(["--ignored", "--exact", "one_absent_oracle"]);
    for name in ["CI", "BEEBOX_ORACLE", "BEEBOX_SKIPPED"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    command.output().expect("this test runs")
}

#[oracle::test]
#[ignore = "run by the tests below"]
fn one_absent_oracle() {
    let oracle = oracle::selftest_path("no/such/file");
    assert_eq!(oracle::found("nothing", oracle), None);
}

#[oracle::test]
fn an_absent_oracle_is_ignored_and_counted() {
    let name = format!("beebox-oracle-{}", process::id());
    let counted = env::temp_dir().join(name);
    let path = counted.to_str().expect("a name in UTF-8");
    for count in 1..=2 {
        let output = run(&[("BEEBOX_SKIPPED", path), ("BEEBOX_ORACLE", "required")]);
        assert!(output.status.success());
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains("0 passed; 0 failed; 1 ignored"), "{stdout}");
        assert!(stdout.contains("no/such/file"), "{stdout}");
        let lines = fs::read_to_string(&counted).expect("the file of skips");
        assert_eq!(lines.matches("skipped: nothing: ").count(), count);
    }
    fs::remove_file(counted).expect("the file is ours");
}

#[oracle::test]
fn an_absent_oracle_fails_where_it_is_required() {
    let output = run(&[("CI", "true"), ("BEEBOX_ORACLE", "required")]);
    assert!(!output.status.success());
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("1 failed"), "{stdout}");
}

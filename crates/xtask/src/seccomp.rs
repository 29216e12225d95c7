//! Measures the analysis of seccomp filters and writes the table into its page.
//! The test that checks the budget knows how to measure, so it is run.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Outcome;

const BEGIN: &str = "<!-- measured by `cargo xtask seccomp` -->\n";
const END: &str = "<!-- end -->\n";

/// Measures generated programs and writes the table in docs/seccomp.md.
pub(crate) fn measure() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args([
            "test",
            "--locked",
            "--release",
            "--package",
            "beebox-seccomp",
        ])
        .args([
            "--test",
            "budget",
            "--",
            "--ignored",
            "--nocapture",
            "measure",
        ])
        .current_dir(&root)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    if !output.status.success() {
        return Err(format!("the budget was exceeded:\n{text}").into());
    }
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let rows: String = rows.map(|row| format!("{row}\n")).collect();
    if rows.is_empty() {
        return Err("the memory of a process is not measured here".into());
    }
    let page = root.join("docs/seccomp.md");
    let text = fs::read_to_string(&page)?;
    let parts = text.split_once(BEGIN);
    let parts = parts.and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or("docs/seccomp.md lacks the marks of the table")?;
    fs::write(&page, format!("{before}{BEGIN}{rows}{END}{after}"))?;
    print!("{rows}");
    Ok(())
}

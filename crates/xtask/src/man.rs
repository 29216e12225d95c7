//! What packages install beside the command: man pages and completion scripts, written
//! by the command itself.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Outcome;

/// The shells, with the names under which they look for a script.
const SHELLS: &[(&str, &str)] = &[
    ("bash", "beebox"),
    ("fish", "beebox.fish"),
    ("zsh", "_beebox"),
];

/// Writes man pages and completion scripts below the build directory.
pub(crate) fn write() -> Outcome {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let (pages, scripts) = (target.join("man"), target.join("completions"));
    run(&["man", &pages.display().to_string()])?;
    fs::create_dir_all(&scripts)?;
    for (shell, name) in SHELLS {
        fs::write(scripts.join(name), run(&["completions", shell])?)?;
    }
    println!("{} man pages in target/man", fs::read_dir(&pages)?.count());
    println!("{} scripts in target/completions", SHELLS.len());
    Ok(())
}

/// What the command prints.
fn run(words: &[&str]) -> Outcome<Vec<u8>> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--package", "beebox-cli", "--"]);
    let output = command.args(words).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("beebox {}: {said}", words.join(" ")).into());
    }
    Ok(output.stdout)
}

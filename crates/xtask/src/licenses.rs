//! `cargo xtask licenses`: the licences of what the commands are linked with.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;

/// Writes docs/licenses.md.
pub(crate) fn write() -> Outcome {
    fs::write(path(), page()?)?;
    Ok(())
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/licenses.md")
}

/// The page: packages of the commands for Linux on x86-64, in order of their names.
fn page() -> Outcome<String> {
    let output = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["tree", "--locked", "--offline", "--package", "beebox-cli"])
        .args(["--package", "beebox-gateway"])
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .args([
            "--edges", "normal", "--prefix", "none", "--format", "{p}|{l}",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut rows = BTreeSet::new();
    // The trees of two packages have an empty line between them.
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (package, license) = line.split_once('|').ok_or("cargo tree prints no licence")?;
        let mut words = package.split(' ');
        let (name, version) = (words.next().unwrap_or_default(), words.next());
        let version = version.and_then(|version| version.strip_prefix('v'));
        if !name.starts_with("beebox") {
            let license = license.trim_end_matches(" (*)").replace('/', " OR ");
            let version = version.ok_or("cargo tree prints no version")?;
            rows.insert(format!("| {name} | {version} | {license} |"));
        }
    }
    let mut page = String::from(
        "# Licences\n\n\
         Beebox is licensed under [MIT](https://opensource.org/license/mit) or\n\
         [Apache-2.0](https://www.apache.org/licenses/LICENSE-2.0), as you choose. The commands\n\
         for Linux on x86-64 are linked with these packages; who passes it on keeps their notices.\n\
         `cargo xtask licenses` writes this page, and a test compares it.\n\n\
         | package | version | licence |\n|---|---|---|\n",
    );
    for row in rows {
        let _ = writeln!(page, "{row}");
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_what_the_command_is_linked_with() {
        let written = fs::read_to_string(path()).unwrap();
        assert!(written == page().unwrap(), "run `cargo xtask licenses`");
    }
}

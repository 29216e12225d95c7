//! `cargo xtask kernels`: a page of docs/ for each kernel that is compared, with its score and its
//! behaviours.
//!
//! The score is the row of docs/kernels.md, which `cargo differential compare kernels` writes; the
//! behaviours are those of the table in `crates/spec/src/behaviour.rs`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use differential::page::part;
use spec::behaviour::{Behaviour, Behaviours};
use spec::kernel::{KernelVersion, Release};

use crate::Outcome;

/// The page with the scores.
const SCORES: &str = "docs/kernels.md";

/// Writes the pages.
pub(crate) fn write() -> Outcome {
    for (path, page) in pages()? {
        fs::write(root().join(&path), page)?;
        println!("{}", path.display());
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Each page with its path.
fn pages() -> Outcome<Vec<(PathBuf, String)>> {
    let scores = fs::read_to_string(root().join(SCORES))?;
    let table = part(&scores, "kernels").ok_or("docs/kernels.md has no table of kernels")?;
    let mut lines = table.lines();
    let heading: Vec<&str> = lines.by_ref().take(2).collect();
    let rows = lines.filter_map(|row| {
        let version: KernelVersion = row.split('|').nth(1)?.trim().parse().ok()?;
        let release = Release::from(version);
        let path = PathBuf::from(format!("docs/linux-{release}.md"));
        Some((path, page(version, &heading, row)))
    });
    Ok(rows.collect())
}

fn page(version: KernelVersion, heading: &[&str], row: &str) -> String {
    let own = Behaviours::of(version);
    let release = Release::from(version);
    let mut text = format!("# Linux {release}\n\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "`beebox verify --kernel {release}` answers as Linux {version} does, Debian's kernel for clouds. \
         Written by `cargo xtask kernels`.\n\n\
         ## Score\n\n\
         Of the kernel's own tests that this kernel judges ([how](kernels.md#other-kernels)):\n"
    );
    for line in heading {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{row}\n");
    let here = |behaviour: &&Behaviour| own.has(**behaviour);
    let later = |behaviour: &&Behaviour| behaviour.since() > release;
    let missing: Vec<&Behaviour> = Behaviour::ALL.iter().filter(|it| !here(it)).collect();
    let back: Vec<&Behaviour> = Behaviour::ALL
        .iter()
        .filter(|it| here(it) && later(it))
        .collect();
    let first: Vec<&Behaviour> = Behaviour::ALL
        .iter()
        .filter(|behaviour| behaviour.since() == release)
        .collect();
    for (title, behaviours, none) in [
        ("Came with it", first, "None that is known."),
        (
            "Brought back from later releases",
            back,
            "None that is known.",
        ),
        ("Not there yet", missing, "It has all that are known."),
    ] {
        let _ = writeln!(text, "## {title}\n");
        if behaviours.is_empty() {
            let _ = writeln!(text, "{none}\n");
            continue;
        }
        text.push_str("| behaviour | area | Linux | where a kernel has it |\n|---|---|---|---|\n");
        for behaviour in behaviours {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                behaviour.name(),
                behaviour.area().name(),
                behaviour.since(),
                behaviour.title()
            );
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_the_tables() {
        let pages = pages().unwrap();
        assert!(!pages.is_empty());
        let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
        for (path, page) in pages {
            let written = fs::read_to_string(root().join(&path)).unwrap_or_default();
            assert!(written == page, "{}: cargo xtask kernels", path.display());
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(
                summary.contains(&format!("({name})")),
                "{name} in docs/SUMMARY.md"
            );
        }
    }
}

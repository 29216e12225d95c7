//! The README and the pages of docs/ show what the command prints: every console
//! block is run and compared.
//!
//! A fenced block `LANGUAGE NAME`, as `asm NAME`, is a file of that name; `examples/` and `crates/` are
//! the repository's. In a block `console`, a line that starts with `$ ` is a command
//! of the shell, and the lines up to the next one are what it prints; of a line that
//! ends with ` …` only the part before counts, and figures that move from run to run
//! (nanoseconds, threads) do not.
//!
//! `trycmd` is the usual tool for such blocks. It starts one program without a shell; more than a third of the
//! commands here are pipes (`beebox … | jq`), redirections or exit codes of bash, and the blocks of a page share
//! a directory.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Executable, root};

/// Panics unless the pages whose commands are those of the executable show what it prints. Every
/// page is of one executable: that of its first command that has the name of one.
pub fn check_pages(executable: Executable) {
    let (mut all, mut skipped) = (0, 0);
    for page in pages().filter(|page| is_of(page, executable)) {
        let text = std::fs::read_to_string(&page).expect("the page");
        let directory = tempfile::tempdir().expect("a directory of ours");
        let directory = directory.path();
        for of_ours in ["examples", "crates"] {
            symlink(repository().join(of_ours), directory.join(of_ours)).expect("a link of ours");
        }
        let mut commands = 0;
        for (info, block) in fenced_blocks(&text) {
            if let Some((_, file)) = info.split_once(' ') {
                std::fs::write(directory.join(file), block).expect("a file of ours");
            } else if info == "console" {
                for (command, expected) in prompts(&block) {
                    commands += 1;
                    skipped += usize::from(!check(executable, directory, command, &expected));
                }
            }
        }
        let shown = text.lines().map(str::trim_start);
        let shown = shown.filter(|line| line.starts_with("$ ")).count();
        assert_eq!(commands, shown, "commands of {}", page.display());
        let is_page_of_commands = text.contains("```console");
        assert_eq!(commands > 0, is_page_of_commands, "{}", page.display());
        all += commands;
    }
    assert!(skipped < all, "{skipped} of {all} commands are skipped");
}

/// The pages of docs/ and the README.
fn pages() -> impl Iterator<Item = PathBuf> {
    let pages = std::fs::read_dir(repository().join("docs")).expect("the pages");
    let pages = pages.map(|entry| entry.expect("a page").path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    pages
        .filter(is_page)
        .chain([repository().join("README.md")])
}

/// True if the commands of a page are those of the executable.
fn is_of(page: &Path, executable: Executable) -> bool {
    let text = std::fs::read_to_string(page).expect("the page");
    let has = |name: &str| {
        text.lines()
            .any(|line| line.contains(&format!("{name} ")) && line.starts_with("$ "))
    };
    has(executable.name) || (executable.name == "beebox" && !has("beebox-gateway"))
}

fn repository() -> PathBuf {
    root().canonicalize().expect("the repository")
}

/// The info string of each fence, and the lines of its block.
fn fenced_blocks(text: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let block = lines.by_ref().take_while(|line| *line != "```");
            blocks.push((info, block.map(|line| format!("{line}\n")).collect()));
        }
    }
    blocks
}

/// The commands of a console block and what each prints.
fn prompts(block: &str) -> Vec<(&str, String)> {
    let mut prompts: Vec<(&str, String)> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            prompts.push((command, String::new()));
        } else if let Some((_, printed)) = prompts.last_mut() {
            printed.push_str(line);
            printed.push('\n');
        }
    }
    prompts
}

/// Runs a command in `directory`; false if it needs a libpcap that is not there.
fn check(executable: Executable, directory: &Path, command: &str, expected: &str) -> bool {
    let path = Path::new(executable.path);
    let old = std::env::var_os("PATH").unwrap_or_default();
    let places = [path.parent().unwrap().to_owned()];
    let path = std::env::join_paths(places.into_iter().chain(std::env::split_paths(&old))).unwrap();
    let output = Command::new("bash")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(directory)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .output()
        .expect("bash runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    if printed.contains("libpcap, which can't be loaded") {
        oracle::skip(&format!("documented command {command}"), "no libpcap");
        return false;
    }
    let shown: Vec<String> = expected.lines().map(without_figures).collect();
    let mut printed: Vec<String> = printed.lines().map(without_figures).collect();
    for (printed, shown) in printed.iter_mut().zip(&shown) {
        if let Some(start) = shown.strip_suffix('…')
            && printed.starts_with(start)
        {
            printed.clone_from(shown);
        }
    }
    assert_eq!(printed, shown, "{command}");
    true
}

/// A line without the numbers before words that count what moves.
fn without_figures(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let moves = |at: usize| match words.get(at + 1) {
        Some(&"ns") => true,
        Some(unit) => unit.starts_with("thread"),
        None => false,
    };
    let kept = words
        .iter()
        .enumerate()
        .map(|(at, word)| if moves(at) { "N" } else { word });
    let line = kept.collect::<Vec<&str>>().join(" ");
    line.replace("N threads", "N thread")
}

//! The README and the pages of docs/ show what the command prints: every console
//! block is run and compared.
//!
//! A fenced block `LANGUAGE NAME`, as `asm NAME`, is a file of that name; `examples/` and `crates/` are
//! the repository's. In a block `console`, a line that starts with `$ ` is a command
//! of the shell, and the lines up to the next one are what it prints; of a line that
//! ends with ` …` only the part before counts, and figures that move from run to run
//! (nanoseconds, threads) do not.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn pages_show_what_the_command_prints() {
    let (mut all, mut skipped) = (0, 0);
    for page in pages() {
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
                    skipped += usize::from(!check(directory, command, &expected));
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

fn pages() -> Vec<PathBuf> {
    let pages = std::fs::read_dir(repository().join("docs")).expect("the pages");
    let mut pages: Vec<PathBuf> = pages.map(|entry| entry.expect("a page").path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.push(repository().join("README.md"));
    pages
}

fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository")
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
fn check(directory: &Path, command: &str, expected: &str) -> bool {
    let beebox = Path::new(env!("CARGO_BIN_EXE_beebox"));
    let old = std::env::var_os("PATH").unwrap_or_default();
    let places = [beebox.parent().unwrap().to_owned()];
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

//! Bombs: files that are large or deep in one respect. Each command that reads one ends within
//! limits of time and memory, with an answer or an error of its own.
//!
//! Linux counts what the parent had resident as memory of the child, so these tests have an
//! executable of their own.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sys::process::measure;

use crate::{Executable, root};

/// Most processor time of a command, in an unoptimised build and on a loaded machine.
const SLOW: Duration = Duration::from_secs(20);
/// Most bytes of memory of a command.
const LARGE: u64 = 500 << 20;

/// A bomb.
pub struct Bomb {
    name: &'static str,
    text: String,
    commands: &'static [&'static str],
}

/// A file of this name and text, and the commands that read it; `FILE` is its path, `EXAMPLES` the
/// directory of examples.
pub fn bomb(name: &'static str, commands: &'static [&'static str], text: String) -> Bomb {
    Bomb {
        name,
        text,
        commands,
    }
}

/// Lines, each made of its number.
pub fn repeated(count: usize, mut line: impl FnMut(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "{}", line(number));
        text
    })
}

/// The words of a command that reads a file.
fn words(command: &str, file: &Path) -> Vec<String> {
    let examples = root().join("examples").display().to_string();
    let place = |word: &str| {
        word.replace("FILE", &file.display().to_string())
            .replace("EXAMPLES", &examples)
    };
    command.split(' ').map(place).collect()
}

/// Panics unless each command ends within the limits.
pub fn check_bombs(executable: Executable, bombs: &[Bomb]) {
    let directory = tempfile::tempdir().unwrap();
    for bomb in bombs {
        let file = directory.path().join(bomb.name);
        fs::write(&file, &bomb.text).unwrap();
        for command in bomb.commands {
            check(executable, command, &file);
        }
    }
}

fn check(executable: Executable, command: &str, file: &Path) {
    let mut shell = Command::new("sh");
    // A command that does not end is ended.
    shell.args(["-c", "ulimit -t 100; exec \"$0\" \"$@\"", executable.path]);
    let usage = measure(shell.args(words(command, file))).expect("the command starts");
    let name = file.file_name().unwrap_or_default().display();
    let is_answer = matches!(usage.status.code(), Some(0..=2));
    assert!(is_answer, "{command} of {name}: {:?}", usage.status);
    assert!(usage.cpu < SLOW, "{command} of {name}: {:?}", usage.cpu);
    let memory = usage.peak_memory;
    assert!(memory < LARGE, "{command} of {name}: {memory}");
}

/// Panics unless commands that read a file without end, and one to which nothing is written, end
/// with a limit that they name.
pub fn check_endless(executable: Executable, commands: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    for path in [Path::new("/dev/zero"), &fifo] {
        for command in commands {
            let mut limited = Command::new("timeout");
            limited.args(["60", executable.path]);
            let output = limited.args(words(command, path)).output();
            let output = output.expect("the command starts");
            let text = String::from_utf8_lossy(&output.stderr);
            let about = format!("{command} of {}: {text}", path.display());
            assert_eq!(output.status.code(), Some(2), "{about}");
            let names_limit = text.contains("limit of") || text.contains("the limit for");
            assert!(names_limit, "{about}");
        }
    }
}

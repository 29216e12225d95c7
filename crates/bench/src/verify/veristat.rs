//! The kernel's verification times, as veristat reports them: the tool of the
//! kernel's tree loads each program with log level 4 and prints the time that the
//! kernel states.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// The kernel's result for a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// True if the kernel accepts it.
    pub(super) accepted: bool,
    /// Least verification time of all rounds, in microseconds.
    pub(super) micros: f64,
}

/// Answers by file name and program name.
pub(super) type Answers = HashMap<(String, String), Answer>;

/// veristat as the selftests build it.
pub(super) fn find() -> Result<PathBuf, String> {
    oracle::selftest_path("7.2/tools/veristat")
}

/// Loads every program of the objects, `rounds` times.
pub(super) fn ask(veristat: &Path, objects: &[PathBuf], rounds: u32) -> Result<Answers, Failure> {
    const PURPOSE: &str = "asking the kernel through veristat";
    let mut answers = Answers::new();
    for _ in 0..rounds {
        let output = Command::new(veristat)
            .args(["-o", "csv", "-q", "-e"])
            .arg("file,prog,verdict,duration")
            .args(objects)
            .output()
            .map_err(|error| Failure::System(PURPOSE, error))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text
            .lines()
            .skip_while(|line| !line.starts_with("file_name"));
        if lines.next().is_none() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::Process {
                purpose: PURPOSE,
                said: said.lines().last().unwrap_or("no table").to_owned(),
            });
        }
        for line in lines {
            if let Some((program, answer)) = read(line) {
                let least = answers.entry(program).or_insert(answer);
                least.micros = least.micros.min(answer.micros);
            }
        }
    }
    Ok(answers)
}

fn read(line: &str) -> Option<((String, String), Answer)> {
    let mut cells = line.split(',');
    let program = (cells.next()?.to_owned(), cells.next()?.to_owned());
    let accepted = cells.next()? == "success";
    let micros = cells.next()?.parse().ok()?;
    Some((program, Answer { accepted, micros }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_program() {
        let (program, answer) = read("a.bpf.o,count,success,37").expect("a program");
        assert_eq!(program, ("a.bpf.o".to_owned(), "count".to_owned()));
        assert!(answer.accepted);
        assert_eq!(answer.micros, 37.0);
        assert!(read("").is_none());
    }
}

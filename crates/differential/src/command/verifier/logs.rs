//! `cargo differential compare log`: whole logs of the kernel's selftests beside those that the
//! running kernel writes, line by line.
//!
//! Each program is given to the running kernel as it is to Beebox, by callers with and without
//! capabilities: at log level 2, and at level 1 where it is refused. Addresses count as equal, and nothing else: times are
//! not part of these levels. Cost: linear in the length of the logs, most of it in the kernel,
//! so that every processor has a thread.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use beebox::internal::verify::StandaloneProgram;
use beebox_differential::verifier::VerifierPair;
use clap::Args;
use spec::kernel::{Privileges, Source};

use super::PAGE;
use super::selftests::{Options, Selection, Target, for_each_program};
use crate::command::Outcome;
use beebox_differential::page::write_part;

/// Log levels: the path to a refusal, and every instruction.
const PATH: u32 = 1;
const EVERY_INSN: u32 = 2;

/// Callers by name.
const CALLERS: [(&str, &str); 3] = [
    ("all capabilities", "all"),
    ("no capability", "none"),
    ("CAP_BPF and CAP_NET_ADMIN", "bpf,net_admin"),
];

/// What the kernel says of an arena without address: loaders map it, and nothing is
/// mapped here.
const NO_ARENA: &str = "arena's user address must be set via map_extra or mmap()";

/// Instructions above which the logs of callers without some capabilities are not asked for:
/// speculative paths make them longer than the kernel's buffer.
const MOST_INSNS: u32 = 100_000;

/// A comparison of logs.
#[derive(Args)]
pub(crate) struct LogSelection {
    #[command(flatten)]
    selection: Selection,
    /// Ask as the caller with all capabilities only
    #[arg(long)]
    privileged: bool,
    /// Leave out programs of which the kernel walks more instructions
    #[arg(long, value_name = "N")]
    most_insns: Option<u32>,
}

/// Bytes of a line that a table shows.
const SHOWN: usize = 100;

/// Compares the logs of sets of the kernel's selftests and writes the table.
pub(crate) fn compare(logs: LogSelection) -> Outcome {
    let options = Options::from_selection(logs.selection, &["7.2/v3"])?;
    let target = Target::running()?;
    let callers = match logs.privileged {
        true => &CALLERS[..1],
        false => &CALLERS,
    };
    let mut table = String::from(
        "| set | caller | programs | whole log equal, level 2 | refused programs | whole log equal, level 1 |\n\
         |---|---|---:|---:|---:|---:|\n",
    );
    let mut differing = String::new();
    for set in &options.sets {
        for (caller, privileges) in callers {
            let privileges: Privileges = privileges.parse()?;
            let limit = match privileges == Privileges::ALL {
                true => logs.most_insns,
                false => Some(logs.most_insns.unwrap_or(MOST_INSNS)),
            };
            let kernel = (target.kernel.clone()).with_privileges(privileges, Source::Given);
            let verifiers = VerifierPair::new(&kernel, &target.registry);
            let verifiers = verifiers.ok_or("this kernel lets no such caller load programs")?;
            let mut counts = Counts::default();
            let compared =
                for_each_program(&options, set, &target, &verifiers, |loaded, verifiers| {
                    compare_program(loaded, verifiers, limit)
                })?;
            for (name, compared) in compared {
                let name = format!("{name}, {caller}");
                counts.add(&name, compared, options.list, &mut differing);
            }
            let title = format!("{} | {caller}", options.title(set));
            counts.write(&title, &mut table);
            println!("{title}: not compared: {:?}", counts.left_out);
        }
    }
    if !differing.is_empty() {
        table.push_str(
            "\n| program | level | equal up to line | of | the kernel's next line | ours |\n\
             |---|---:|---:|---:|---|---|\n",
        );
        table.push_str(&differing);
    }
    print!("{table}");
    match options.is_whole() && logs.most_insns.is_none() && !logs.privileged {
        true => write_part(PAGE, "logs", &table),
        false => Ok(()),
    }
}

/// Logs of one program at the levels that were compared, or why they were not.
type Compared = Result<Vec<(u32, Option<VerdictDifference>)>, String>;

/// The first line in which two logs differ.
pub(super) struct VerdictDifference {
    /// Lines that are equal before it.
    pub(super) equal: usize,
    /// Lines of the kernel's log.
    lines: usize,
    pub(super) kernel: String,
    pub(super) ours: String,
}

#[derive(Default)]
struct Counts {
    programs: usize,
    refused: usize,
    equal: [usize; 2],
    /// Programs that were not compared, by reason.
    left_out: BTreeMap<String, usize>,
}

impl Counts {
    fn add(&mut self, name: &str, compared: Compared, list: bool, differing: &mut String) {
        let logs = match compared {
            Ok(logs) => logs,
            Err(why) => {
                if list {
                    println!("{name}: {why}");
                }
                *self.left_out.entry(why).or_default() += 1;
                return;
            }
        };
        self.programs += 1;
        for (level, difference) in logs {
            self.refused += usize::from(level == PATH);
            let Some(difference) = difference else {
                self.equal[usize::from(level == PATH)] += 1;
                continue;
            };
            let _ = writeln!(
                differing,
                "| {name} | {level} | {} | {} | {} | {} |",
                difference.equal,
                difference.lines,
                code(&difference.kernel),
                code(&difference.ours)
            );
        }
    }

    fn write(&self, title: &str, table: &mut String) {
        let share = |part: usize, whole: usize| {
            let percent = 100.0 * part as f64 / whole.max(1) as f64;
            format!("{part} ({percent:.2} %)")
        };
        let _ = writeln!(
            table,
            "| {title} | {} | {} | {} | {} |",
            self.programs,
            share(self.equal[0], self.programs),
            self.refused,
            share(self.equal[1], self.refused)
        );
    }
}

/// A line as a table shows it.
fn code(line: &str) -> String {
    let mut end = line.len().min(SHOWN);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    match line[..end].trim() {
        "" => "(none)".to_owned(),
        line => format!("`{}`", line.replace('|', "\\|")),
    }
}

fn compare_program(
    loaded: &StandaloneProgram,
    verifiers: &mut VerifierPair<'_>,
    most_insns: Option<u32>,
) -> Compared {
    let program = loaded.program.as_ref();
    let program = program.map_err(|_| "not linked".to_owned())?;
    if let Some(most) = most_insns {
        let counts = verifiers.kernel(program)?.counts;
        if counts.is_some_and(|counts| counts.insns > most) {
            return Err(format!("more than {most} instructions"));
        }
    }
    let mut logs = Vec::new();
    for log_level in [EVERY_INSN, PATH] {
        let kernel = verifiers.kernel_log(program, log_level)?;
        if kernel.text.contains(NO_ARENA) {
            return Err("arenas are not mapped".to_owned());
        }
        let ours = verifiers.our_log(program, log_level)?;
        logs.push((log_level, difference(&kernel.text, &ours)));
        if kernel.errno == 0 {
            break;
        }
    }
    Ok(logs)
}

/// The first line that differs; addresses are equal to each other.
pub(super) fn difference(kernel: &str, ours: &str) -> Option<VerdictDifference> {
    let mut pairs = kernel.lines().zip(ours.lines());
    let is_equal = |(kernel, ours): (&str, &str)| {
        kernel == ours || without_addresses(kernel) == without_addresses(ours)
    };
    let equal = pairs.position(|pair| !is_equal(pair));
    let lines = kernel.lines().count();
    let equal = match equal {
        Some(equal) => equal,
        None if lines == ours.lines().count() => return None,
        None => lines.min(ours.lines().count()),
    };
    let line = |log: &str| log.lines().nth(equal).unwrap_or_default().to_owned();
    Some(VerdictDifference {
        equal,
        lines,
        kernel: line(kernel),
        ours: line(ours),
    })
}

/// The line with addresses of the kernel's memory replaced.
fn without_addresses(line: &str) -> String {
    // With five levels of page tables addresses begin with 0xff.
    const START: &str = "0xff";
    const DIGITS: usize = 16;
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(START) {
        let digits = &rest[at + 2..];
        let end = digits.find(|letter: char| !letter.is_ascii_hexdigit());
        let end = end.unwrap_or(digits.len());
        text.push_str(&rest[..at]);
        text.push_str(match end {
            DIGITS => "ADDRESS",
            _ => &rest[at..at + 2 + end],
        });
        rest = &digits[end..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_differ_by_their_first_line_that_is_no_address() {
        let kernel = "0: (18) r1 = 0xffff888107b3d000\n2: (b7) r0 = 0\n3: (95) exit\n";
        let ours = "0: (18) r1 = 0xffff888000000000\n2: (b7) r0 = 0\n3: (95) exit\n";
        assert!(difference(kernel, ours).is_none());
        let other = difference(kernel, &ours.replace("r0 = 0", "r0 = 1")).unwrap();
        assert_eq!((other.equal, other.lines), (1, 3));
        assert_eq!(other.kernel, "2: (b7) r0 = 0");
        let short = difference(kernel, "0: (18) r1 = 0xffff888000000000\n").unwrap();
        assert_eq!((short.equal, &*short.ours), (1, ""));
    }

    #[test]
    fn short_numbers_are_no_addresses() {
        assert_eq!(without_addresses("r1 = 0xffff"), "r1 = 0xffff");
        let range = "umax=0xffffffff00000000 0xffff";
        assert_eq!(without_addresses(range), "umax=ADDRESS 0xffff");
    }
}

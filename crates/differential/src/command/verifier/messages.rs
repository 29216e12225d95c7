//! `cargo differential compare messages`: the messages that the kernel's selftests expect in the log,
//! in the running kernel's and in ours.
//!
//! A case is a program with messages for one caller whose verdict by the running kernel is the
//! expected one. Tests of a newer release expect messages that this kernel has not: the score is about
//! those that it has.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use beebox::internal::verify::StandaloneProgram;
use beebox_differential::page::write_part;
use beebox_differential::verifier::{Expectation, Expectations, VerifierPair};
use spec::kernel::{Privileges, Source};

use super::PAGE;
use super::selftests::{Options, Selection, Target, for_each_program};
use crate::command::Outcome;

/// Callers by name.
const CALLERS: [(&str, Privileges); 2] = [
    ("all capabilities", Privileges::ALL),
    ("no capability", Privileges::NONE),
];

/// One case.
enum Case {
    /// The kernel's log has not what is expected.
    OtherKernel(String),
    Equal,
    /// The kernel's log has it, ours has not.
    Missed(String),
}

/// Counts of cases.
#[derive(Default)]
struct Counts {
    other_kernel: usize,
    equal: usize,
    missed: usize,
    /// Programs with messages that are no case, by reason.
    left_out: BTreeMap<String, usize>,
}

/// Looks for the messages of sets of the kernel's selftests and writes the table.
pub(crate) fn compare(selection: Selection) -> Outcome {
    let options = Options::from_selection(selection, &["7.2/v3"])?;
    let target = Target::running()?;
    let mut table = String::from(
        "| set | caller | cases | the kernel's log has the messages | and ours |\n|---|---|---:|---:|---:|\n",
    );
    for set in &options.sets {
        for (caller, privileges) in CALLERS {
            let kernel = (target.kernel.clone()).with_privileges(privileges, Source::Given);
            let verifiers = VerifierPair::new(&kernel, &target.registry);
            let verifiers = verifiers.ok_or("this kernel lets no such caller load programs")?;
            let cases = for_each_program(&options, set, &target, &verifiers, check)?;
            let mut counts = Counts::default();
            for (name, case) in cases {
                let case = case.transpose();
                counts.add(&format!("{name}, {caller}"), case, options.list);
            }
            let title = format!("{} | {caller}", options.title(set));
            let kernels = counts.equal + counts.missed;
            let share = 100.0 * counts.equal as f64 / kernels.max(1) as f64;
            let _ = writeln!(
                table,
                "| {title} | {} | {kernels} | {} ({share:.2} %) |",
                kernels + counts.other_kernel,
                counts.equal
            );
            println!("{title}: not compared: {:?}", counts.left_out);
        }
    }
    print!("{table}");
    match options.is_whole() {
        true => write_part(PAGE, "messages", &table),
        false => Ok(()),
    }
}

impl Counts {
    fn add(&mut self, name: &str, case: Option<Result<Case, String>>, list: bool) {
        match case {
            None => {}
            Some(Ok(Case::Equal)) => self.equal += 1,
            Some(Ok(Case::OtherKernel(failure))) => {
                self.other_kernel += 1;
                if list {
                    println!("{name}: the kernel's log: {failure}");
                }
            }
            Some(Ok(Case::Missed(failure))) => {
                self.missed += 1;
                println!("{name}: our log: {failure}");
            }
            Some(Err(why)) => *self.left_out.entry(why).or_default() += 1,
        }
    }
}

/// Looks for the messages of a program in both logs; `None` if the test has none for the caller.
fn check(
    loaded: &StandaloneProgram,
    verifiers: &mut VerifierPair<'_>,
) -> Result<Option<Case>, String> {
    let Ok(program) = &loaded.program else {
        return Ok(None);
    };
    let expectations = Expectations::of(program);
    let expected = match verifiers.has_all() {
        true => expectations.privileged,
        false => expectations.unprivileged,
    };
    let Some(expected) = expected.filter(Expectation::has_messages) else {
        return Ok(None);
    };
    let log_level = match expected.log_level {
        0 if expected.is_refused => 1,
        0 => return Err("messages in a log that is not asked for".to_owned()),
        level => level,
    };
    let kernel = verifiers.kernel_log(program, log_level)?;
    if (kernel.errno != 0) != expected.is_refused {
        return Err("the kernel has another verdict".to_owned());
    }
    if let Some(failure) = expected.first_failure(&kernel.text)? {
        return Ok(Some(Case::OtherKernel(failure)));
    }
    let ours = verifiers.our_log(program, log_level)?;
    Ok(Some(match expected.first_failure(&ours)? {
        None => Case::Equal,
        Some(failure) => Case::Missed(failure),
    }))
}

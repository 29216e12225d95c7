//! `cargo differential compare runs`: runs of the kernel's selftests here and in the running kernel.
//!
//! Every program that the kernel accepts and test-runs is run on the same inputs on both
//! sides: result, data, context, error number and all maps are compared. Where something
//! differs, the kernel loads and runs the program again, in other threads and on another CPU;
//! what its own runs leave different (times, addresses, random numbers) is not compared. Here it
//! runs as native code and in the checked engine, there also on another stack; what these runs
//! leave different (addresses, random numbers, memory that the program has not written) is not
//! compared either,
//! nor what the kernel's own stack decides. Programs that the verifier here does not support run
//! unverified.

mod compare;
mod in_kernel;
mod inputs;
mod ours;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use beebox::internal::ebpf::{Callee, Insn};
use beebox::internal::program::Program;
use beebox::internal::run::can_test_run;
use beebox::internal::verify::StandaloneProgram;
use sys::network::{OwnNamespace, pin_to_cpu};

use crate::command::Outcome;
use crate::command::verifier::selftests::{Options, Selection, Target, name_of};
use beebox::Engine;
use compare::{Left, Others, differences};
use ours::Setting;

/// Results of runs, input by input.
type Runs = Vec<Left>;

/// Counts of a set.
#[derive(Default)]
struct Counts {
    /// Programs that the kernel runs.
    programs: usize,
    /// Those that run here, by engine.
    by_engine: BTreeMap<Setting, usize>,
    equal: usize,
    /// Those of which something depends on addresses, on memory that the program has not
    /// written, or on the kernel's own stack.
    incomparable: usize,
    /// Those of which the kernel's two runs differ in something that is left out.
    varying: usize,
    /// Those that do not run here, by reason.
    not_run: BTreeMap<String, usize>,
    /// First difference of those that are not equal, by name.
    different: BTreeMap<String, String>,
    /// Programs with a declared return value: all, and those that return it here.
    declared: usize,
    as_declared: usize,
}

/// Runs sets of the kernel's selftests and writes the table.
pub(crate) fn compare(selection: Selection) -> Outcome {
    let options = Options::from_selection(selection, &["7.2/v3"])?;
    let whole = options.is_whole() && options.core_is_all();
    let compared = thread::spawn(move || compare_sets(&options).map_err(|error| error.to_string()));
    let table = match compared.join() {
        Ok(table) => table?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    print!("{table}");
    match whole {
        true => beebox_differential::page::write_part("docs/helpers.md", "runs", &table),
        false => Ok(()),
    }
}

/// Compares all programs, in a network namespace and on a CPU of its own.
fn compare_sets(options: &Options) -> Outcome<String> {
    let _namespace = OwnNamespace::enter().map_err(|errno| format!("a namespace: {errno}"))?;
    pin_to_cpu(0).map_err(|errno| format!("CPU 0: {errno}"))?;
    let target = Target::running()?;
    let mut table = String::from(
        "| set | run by the kernel | run here | as native code | checked | unverified | equal | \
         not comparable | kernel's runs vary | declared value returned |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let (mut not_run, mut different) = (String::new(), String::new());
    for set in &options.sets {
        let mut counts = Counts::default();
        for path in options.objects(set)? {
            let file = name_of(&path);
            target.load_each(&path, &mut |loaded| {
                let name = format!("{file}/{}", loaded.name);
                if options.includes(&name) {
                    counts.add(&name, &loaded, &target, options.lists());
                }
            })?;
        }
        let title = options.title(set);
        let run: usize = counts.by_engine.values().sum();
        let of = |engine| counts.by_engine.get(&engine).copied().unwrap_or(0);
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "| {title} | {} | {run} | {} | {} | {} | {} | {} | {} | {} of {} |",
            counts.programs,
            of(Setting::Verified(Engine::Native)),
            of(Setting::Verified(Engine::Checked)),
            of(Setting::Unverified),
            counts.equal - counts.incomparable,
            counts.incomparable,
            counts.varying,
            counts.as_declared,
            counts.declared,
        );
        for (name, what) in &counts.different {
            let _ = writeln!(different, "| {title} | {name} | {what} |");
        }
        let mut reasons: Vec<_> = counts.not_run.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (why, count) in reasons {
            let _ = writeln!(
                not_run,
                "| {title} | {count} | {} |",
                why.replace('|', "\\|")
            );
        }
    }
    Ok(format!(
        "{table}\nPrograms that differ:\n\n| set | program | what |\n|---|---|---|\n{different}\n\
         Programs that do not run here:\n\n| set | programs | why |\n|---|---:|---|\n{not_run}"
    ))
}

impl Counts {
    fn add(&mut self, name: &str, loaded: &StandaloneProgram, target: &Target, lists: bool) {
        let Ok(program) = &loaded.program else {
            return;
        };
        // A kernel that accepts by mistake what a test expects it to refuse must not run it.
        if loaded.is_refused || !can_test_run(program.kind()) || reaches_the_process(program) {
            return;
        }
        let program = &ours::without_programs_in_maps(program);
        let inputs = inputs::of(program.kind());
        let Some(theirs) = in_kernel::run(program, &inputs) else {
            return;
        };
        self.programs += 1;
        self.declared += usize::from(loaded.retval.is_some());
        let run = || ours::run_all(program, target, &inputs);
        let ran = catch_unwind(AssertUnwindSafe(run));
        let ran = ran.unwrap_or_else(|_| Err("a panic".to_owned()));
        let (engine, runs) = match ran {
            Ok(ran) => ran,
            Err(why) => {
                if lists {
                    println!("{name}: not run: {why}");
                }
                *self.not_run.entry(class_of(&why)).or_default() += 1;
                return;
            }
        };
        *self.by_engine.entry(engine).or_default() += 1;
        let first = |runs: &Runs| runs.first()?.result.as_ref().ok().map(|it| it.retval);
        let returns = |runs: &Runs| loaded.retval.is_some() && first(runs) == loaded.retval;
        self.as_declared += usize::from(runs.iter().all(|(_, runs)| returns(runs)));
        // Where something differs, both sides are asked again whether they always say so.
        let mut others = Others::default();
        let compare = |others: &Others| -> Vec<(Setting, String)> {
            let of_engine = |(engine, ours): &(Setting, Runs)| {
                let found = differences(ours, &theirs, others).into_iter();
                found.map(|what| (*engine, what)).collect::<Vec<_>>()
            };
            runs.iter().flat_map(of_engine).collect()
        };
        let mut found = compare(&others);
        if !found.is_empty() {
            others.theirs = in_kernel::run_elsewhere(program, &inputs);
            self.varying += usize::from(others.theirs.iter().any(|other| *other != theirs));
            found = compare(&others);
        }
        if !found.is_empty() {
            others.ours = runs.iter().map(|(_, runs)| runs.clone()).collect();
            (others.ours).extend(ours::run_elsewhere(program, target, &inputs));
            let rest = compare(&others);
            if rest.is_empty() || calls_any(program, OF_OWN_STACK) {
                self.incomparable += 1;
                found.clear();
            } else {
                found = rest;
            }
        }
        let differs = !found.is_empty();
        for (engine, difference) in found {
            println!("{name}: {engine:?}: {difference}");
            self.different.entry(name.to_owned()).or_insert(difference);
        }
        self.equal += usize::from(!differs);
    }
}

/// Helpers whose results are about the stack of the kernel itself.
const OF_OWN_STACK: &[&str] = &["bpf_get_stack", "bpf_get_stackid", "bpf_get_task_stack"];

/// True if a program reaches this process when the kernel runs it: it sends signals, writes
/// memory or closes files.
fn reaches_the_process(program: &Program) -> bool {
    const NAMES: &[&str] = &[
        "bpf_send_signal",
        "bpf_send_signal_thread",
        "bpf_probe_write_user",
        "bpf_sys_close",
    ];
    calls_any(program, NAMES)
}

/// True if a program calls one of some helpers.
fn calls_any(program: &Program, names: &[&str]) -> bool {
    program.decode().iter().any(|insn| match insn {
        Insn::Call(Callee::Helper(number)) => {
            let helper = spec::helpers::helper(*number);
            helper.is_some_and(|helper| names.contains(&helper.name))
        }
        _ => false,
    })
}

/// A reason without what differs from program to program: numbers and names in quotes.
fn class_of(why: &str) -> String {
    let mut class = String::new();
    for word in why.split(' ') {
        let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
        let word = if has_digit { "N" } else { word };
        if !(word == "N" && class.ends_with("N ")) {
            class.push_str(word);
            class.push(' ');
        }
    }
    class.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::class_of;

    #[test]
    fn reasons_are_classed_without_their_numbers() {
        let class = "instruction N calls bpf_x";
        assert_eq!(class_of("instruction 17 calls bpf_x"), class);
        assert_eq!(class_of("instruction 0x17 18 calls bpf_x"), class);
    }
}

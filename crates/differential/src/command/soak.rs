//! Long comparisons with the verifiers of the running kernel and of booted ones.

mod cases;
mod kernels;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use beebox_differential::verifier::{
    Agreement, Tally, VerifierPair, compare_generated, compare_mutations, registry_of,
};
use spec::kernel::Source;
use testkit::ebpf::Choices;

use crate::command::verifier::selftests;
use crate::command::{Limits, Outcome};

pub(crate) use cases::record as record_cases;
pub(crate) use kernels::{KernelSoak, compare as compare_kernels};

/// Programs if neither a number nor a time is given.
const PROGRAMS: u64 = 200_000;
/// Mutations of one program before the next one is taken.
const AT_ONCE: u32 = 12;
/// Reason why programs of other callers cannot be compared.
const NOT_ALLOWED: &str = "this kernel lets no caller without CAP_BPF load programs";
/// Our own objects, from the repository.
pub(super) const OWN: [&str; 6] = [
    "examples/traffic/traffic.bpf.o",
    "crates/bench/objects/verify/backtracking.bpf.o",
    "crates/testkit/cases/attach/hooks.bpf.o",
    "crates/testkit/cases/attach/scheduler.bpf.o",
    TARGET,
    REPLACEMENTS,
];
/// The object whose programs replace functions of another one's program.
const REPLACEMENTS: &str = "crates/testkit/cases/attach/replacements.bpf.o";
const TARGET: &str = "crates/testkit/cases/attach/replaced.bpf.o";
const TARGET_PROGRAM: &str = "main_program";

/// Where a comparison ends.
struct Goal {
    programs: u64,
    end: Option<Instant>,
}

impl Goal {
    fn of(limits: &Limits) -> Goal {
        let default = limits.seconds.map_or(PROGRAMS, |_| u64::MAX / 2);
        let end = |seconds| Instant::now() + Duration::from_secs(seconds);
        Goal {
            programs: limits.programs.unwrap_or(default),
            end: limits.seconds.map(end),
        }
    }

    fn is_reached(&self, tally: &Tally) -> bool {
        tally.compared() >= self.programs || self.end.is_some_and(|end| Instant::now() >= end)
    }
}

/// Compares generated programs.
pub(crate) fn compare_verifiers(limits: &Limits) -> Outcome {
    let goal = Goal::of(limits);
    let kernel = sys::kernel::running()?.with_privileges(limits.privileges, Source::Given);
    let types = kernel.btf().ok_or("the running kernel has no BTF")?;
    let registry = registry_of(types);
    let mut verifiers = VerifierPair::new(&kernel, &registry).ok_or(NOT_ALLOWED)?;
    let seeds = limits.seed..u64::MAX;
    let mut last = 0;
    let tally = compare_generated(&mut verifiers, seeds, |seed, tally| {
        last = seed;
        report_progress(tally);
        goal.is_reached(tally)
    })?;
    println!("seeds {} to {last}", limits.seed);
    conclude(&tally)
}

/// Compares calls of every kfunc in programs of every type.
pub(crate) fn compare_kfunc_calls(rounds: u64, seed: u64) -> Outcome {
    let kernel = sys::kernel::running()?;
    let types = kernel.btf().ok_or("the running kernel has no BTF")?;
    let registry = registry_of(types);
    let mut verifiers = VerifierPair::new(&kernel, &registry).ok_or(NOT_ALLOWED)?;
    let seeds = seed..seed + rounds;
    let tally = beebox_differential::verifier::compare_kfunc_calls(
        &mut verifiers,
        &registry,
        types,
        seeds,
    )?;
    conclude(&tally)
}

/// Compares mutations of the programs in a directory, or of the selftests' and of our own.
pub(crate) fn compare_mutated(
    limits: &Limits,
    directory: Option<&Path>,
    selection: selftests::Selection,
) -> Outcome {
    let goal = Goal::of(limits);
    let selected = selftests::Options::from_selection(selection, &["7.2/v3"])?;
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let replacements = repository.join(REPLACEMENTS);
    let mut objects = Vec::new();
    if let Some(directory) = directory {
        objects = selftests::objects_in(directory)?;
    } else if let Err(why) = oracle::selftest_path("7.2/obj-v3") {
        oracle::skip("mutations of the kernel's selftests", why);
        return Ok(());
    } else {
        objects.extend(OWN.map(|path| repository.join(path)));
        for set in &selected.sets {
            objects.extend(selected.objects(set)?);
        }
    }
    if objects.is_empty() {
        return Err("no *.bpf.o in the directory of --objects".into());
    }
    let target = selftests::Target::running()?;
    let kernel = (target.kernel.clone()).with_privileges(limits.privileges, Source::Given);
    let mut verifiers = VerifierPair::new(&kernel, &target.registry).ok_or(NOT_ALLOWED)?;
    let mut replaced = None;
    target.load_each(&repository.join(TARGET), &mut |loaded| {
        if loaded.name == TARGET_PROGRAM {
            replaced = loaded.program.ok().map(Arc::new);
        }
    })?;
    let mut choices = Choices::from_seed(limits.seed);
    let mut tally = Tally::default();
    let mut programs = 0;
    while !goal.is_reached(&tally) {
        let path = &objects[choices.below(objects.len() as u32) as usize];
        let replaced = replaced.as_ref().filter(|_| *path == replacements);
        target.load_each_for(path, replaced, &mut |loaded| {
            let Ok(program) = &loaded.program else {
                return;
            };
            if !selected.includes_type(loaded.kind) {
                return;
            }
            if goal.is_reached(&tally) {
                return;
            }
            let name = format!("{}/{}", selftests::name_of(path), loaded.name);
            let made = compare_mutations(
                &mut verifiers,
                &mut tally,
                &mut choices,
                &name,
                program,
                AT_ONCE,
            );
            programs += u64::from(made != 0);
            report_progress(&tally);
        })?;
    }
    println!("mutations of {programs} programs, each mutated up to {AT_ONCE} times");
    conclude(&tally)
}

fn report_progress(tally: &Tally) {
    if tally.compared() % 10_000 == 9_999 {
        eprintln!("{} compared: {:?}", tally.compared(), tally.agreements);
    }
}

/// Prints the differences and the counts; fails if there are differences.
fn conclude(tally: &Tally) -> Outcome {
    for difference in &tally.differences {
        let comparison = &difference.comparison;
        println!(
            "{:?}, {}\n{}\n  kernel  {}",
            comparison.agreement, difference.origin, difference.case, comparison.kernel
        );
        match &comparison.ours {
            Ok(ours) => println!("  beebox  {ours}\n"),
            Err(unsupported) => println!("  beebox  unsupported: {unsupported}\n"),
        }
    }
    for counts in [&tally.reasons, &tally.unsupported, &tally.unanswered] {
        let mut counts: Vec<_> = counts.iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (what, count) in counts.iter().take(60) {
            println!("{count:8}  {what}");
        }
        println!();
    }
    for (kind, counts) in &tally.kinds {
        println!(
            "{:8}  {kind}: {} accepted, {} unsupported",
            counts.compared, counts.accepted, counts.unsupported
        );
    }
    println!(
        "{} programs, {} accepted by the kernel, {} unsupported, {} without an answer: {:?}",
        tally.compared(),
        tally.accepted(),
        tally.count(Agreement::Unsupported),
        tally.unanswered.values().sum::<u64>(),
        tally.agreements
    );
    match tally.differing() {
        0 => Ok(()),
        differ => Err(format!("{differ} answers differ").into()),
    }
}

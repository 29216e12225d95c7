//! Long comparisons with the running kernel's verifier.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use spec::kernel::{Privileges, Source};
use testkit::ebpf::Choices;
use testkit::verifier::{
    Agreement, Tally, VerifierPair, compare_generated, compare_mutations, generated_case,
};

use crate::Outcome;
use crate::verifier::selftests;

/// Programs if neither a number nor a time is given.
const PROGRAMS: u64 = 200_000;
/// Mutations of one program before the next one is taken.
const AT_ONCE: u32 = 12;
/// Reason why programs of other callers cannot be compared.
const NOT_ALLOWED: &str = "this kernel lets no caller without CAP_BPF load programs";
/// Our own objects, from the repository.
const OWN: [&str; 2] = [
    "examples/traffic/traffic.bpf.o",
    "crates/bench/objects/verify/backtracking.bpf.o",
];

/// Limits of a comparison.
struct Limits {
    privileges: Privileges,
    programs: u64,
    seed: u64,
    end: Option<Instant>,
}

impl Limits {
    /// `[PROGRAMS [SEED]] [--seconds N] [--privileges none|bpf]`
    fn read(words: &[&str]) -> Outcome<Limits> {
        let read = |text: &str| {
            let number = text.parse::<u64>();
            number.map_err(|_| format!("{text:?} is no number"))
        };
        let (mut numbers, mut seconds) = (Vec::new(), None);
        let mut privileges = Privileges::ALL;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--seconds" => seconds = Some(read(words.next().ok_or("--seconds wants N")?)?),
                "--privileges" => {
                    let text = words.next().ok_or("--privileges wants a list")?;
                    privileges = text.parse()?;
                }
                word => numbers.push(read(word)?),
            }
        }
        if numbers.len() > 2 {
            return Err("a soak takes PROGRAMS and SEED".into());
        }
        let most = seconds.map_or(PROGRAMS, |_| u64::MAX / 2);
        Ok(Limits {
            privileges,
            programs: numbers.first().copied().unwrap_or(most),
            seed: numbers.get(1).copied().unwrap_or(0),
            end: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
        })
    }

    fn are_reached(&self, tally: &Tally) -> bool {
        tally.compared() >= self.programs || self.end.is_some_and(|end| Instant::now() >= end)
    }
}

/// Prints the program that is generated from a seed.
pub(crate) fn print_generated(seed: &str) -> Outcome {
    let number = seed.parse().map_err(|_| format!("{seed:?} is no seed"))?;
    print!("{}", generated_case(number).1);
    Ok(())
}

/// Compares generated programs: `[PROGRAMS [SEED]] [--seconds N]`.
pub(crate) fn compare_verifiers(words: &[&str]) -> Outcome {
    let limits = Limits::read(words)?;
    let kernel = sys::kernel::running()?.with_privileges(limits.privileges, Source::Given);
    let types = kernel.btf().ok_or("the running kernel has no BTF")?;
    let registry = kernel_data::linux_6_18_registry(types);
    let mut verifiers = VerifierPair::new(&kernel, &registry).ok_or(NOT_ALLOWED)?;
    let seeds = limits.seed..u64::MAX;
    let mut last = 0;
    let tally = compare_generated(&mut verifiers, seeds, |seed, tally| {
        last = seed;
        report_progress(tally);
        limits.are_reached(tally)
    })?;
    println!("seeds {} to {last}", limits.seed);
    conclude(&tally)
}

/// Compares calls of every kfunc in programs of every type: `[ROUNDS [SEED]]`.
pub(crate) fn compare_kfunc_calls(words: &[&str]) -> Outcome {
    let number = |at: usize, default: u64| match words.get(at) {
        Some(word) => word.parse().map_err(|_| format!("{word:?} is no number")),
        None => Ok(default),
    };
    let (rounds, seed) = (number(0, 10)?, number(1, 0)?);
    let kernel = sys::kernel::running()?;
    let types = kernel.btf().ok_or("the running kernel has no BTF")?;
    let registry = kernel_data::linux_6_18_registry(types);
    let mut verifiers = VerifierPair::new(&kernel, &registry).ok_or(NOT_ALLOWED)?;
    let seeds = seed..seed + rounds;
    let tally = testkit::verifier::compare_kfunc_calls(&mut verifiers, &registry, types, seeds)?;
    conclude(&tally)
}

/// Compares mutations of the selftests' programs and of our own:
/// `[MUTATIONS [SEED]] [--seconds N]`.
pub(crate) fn compare_mutated(words: &[&str]) -> Outcome {
    let limits = Limits::read(words)?;
    if let Err(why) = oracle::selftest_path("7.2/obj-v3") {
        oracle::skip("mutations of the kernel's selftests", why);
        return Ok(());
    }
    let selftests = selftests::Options::parse(&[], &["7.2/v3"])?;
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut objects: Vec<PathBuf> = OWN.map(|path| repository.join(path)).to_vec();
    for set in &selftests.sets {
        objects.extend(selftests.objects(set)?);
    }
    let target = selftests::Target::running()?;
    let kernel = (target.kernel.clone()).with_privileges(limits.privileges, Source::Given);
    let mut verifiers = VerifierPair::new(&kernel, &target.registry).ok_or(NOT_ALLOWED)?;
    let mut choices = Choices::from_seed(limits.seed);
    let mut tally = Tally::default();
    let mut programs = 0;
    while !limits.are_reached(&tally) {
        let path = &objects[choices.below(objects.len() as u32) as usize];
        target.load_each(path, &mut |loaded| {
            let Ok(program) = &loaded.program else {
                return;
            };
            if limits.are_reached(&tally) {
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

/// A number among the arguments of a chore.
pub(crate) fn read(numbers: &[&str], at: usize, default: u64) -> Outcome<u64> {
    match numbers.get(at) {
        None => Ok(default),
        Some(text) => Ok(text.parse().map_err(|_| format!("{text:?} is no number"))?),
    }
}

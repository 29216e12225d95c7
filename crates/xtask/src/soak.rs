//! Long comparisons with the running kernel's verifier.

use testkit::verifier::{Agreement, compare_generated};

use crate::Outcome;

/// Programs if no number is given.
const PROGRAMS: u64 = 200_000;

/// Compares generated programs: `[PROGRAMS [SEED]]`.
pub(crate) fn compare_verifiers(numbers: &[&str]) -> Outcome {
    let read = |at: usize, default| match numbers.get(at) {
        None => Ok(default),
        Some(text) => text
            .parse::<u64>()
            .map_err(|_| format!("{text:?} is no number")),
    };
    let (programs, seed) = (read(0, PROGRAMS)?, read(1, 0)?);
    let kernel = sys::kernel::running()?;
    let types = kernel.btf().ok_or("the running kernel has no BTF")?;
    let registry = profile::linux_6_18_registry(types);
    let tally = compare_generated(&kernel, &registry, seed..seed + programs, |at, tally| {
        if at % 10_000 == 9_999 {
            eprintln!("{} compared: {:?}", tally.compared(), tally.agreements);
        }
    })?;
    for difference in &tally.differences {
        let comparison = &difference.comparison;
        println!(
            "{:?}, seed {}, {:?}\n{}\n  kernel  {}",
            comparison.agreement,
            difference.seed,
            difference.target,
            difference.text,
            comparison.kernel
        );
        match &comparison.ours {
            Ok(ours) => println!("  beebox  {ours}\n"),
            Err(unsupported) => println!("  beebox  unsupported: {unsupported}\n"),
        }
    }
    let mut reasons: Vec<_> = tally.reasons.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (reason, count) in reasons.iter().take(40) {
        println!("{count:8}  {reason}");
    }
    println!(
        "{} programs, {} accepted by the kernel, {} without an answer: {:?}",
        tally.compared(),
        tally.accepted,
        tally.unanswered,
        tally.agreements
    );
    match tally.compared() - tally.count(Agreement::Equal) {
        0 => Ok(()),
        differ => Err(format!("{differ} answers differ").into()),
    }
}

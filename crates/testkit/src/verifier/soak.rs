//! Many generated programs, counted by how far the answers agree; what differs is
//! made small.

use std::collections::BTreeMap;
use std::ops::Range;

use spec::Kernel;
use spec::registry::Registry;

use super::ask::{Agreement, Comparison, Judges, assembled};
use super::grammar::{self, Target};
use crate::ebpf::Choices;

/// Differences that are kept with their programs.
const KEPT: usize = 40;

/// A program on which the answers differ, reduced.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The seed that made it.
    pub seed: u64,
    /// What it is a program of.
    pub target: Target,
    /// Its text, with as few lines as still show the difference.
    pub text: String,
    /// The answers to it.
    pub comparison: Comparison,
}

/// What became of many programs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Programs by agreement.
    pub agreements: BTreeMap<Agreement, u64>,
    /// Programs that the kernel accepts.
    pub accepted: u64,
    /// Programs that the kernel refuses, by its reason with every number as `N`.
    pub reasons: BTreeMap<String, u64>,
    /// Programs whose log does not fit.
    pub unanswered: u64,
    /// What differs, the first ones.
    pub differences: Vec<Difference>,
}

impl Tally {
    /// Programs that were compared.
    pub fn compared(&self) -> u64 {
        self.agreements.values().sum()
    }

    /// Programs of one agreement.
    pub fn count(&self, agreement: Agreement) -> u64 {
        self.agreements.get(&agreement).copied().unwrap_or(0)
    }
}

/// Compares the programs of these seeds; fails where the kernel cannot be asked.
pub fn compare_generated(
    kernel: &Kernel,
    registry: &Registry,
    seeds: Range<u64>,
    mut progress: impl FnMut(u64, &Tally),
) -> Result<Tally, String> {
    let mut judges = Judges::new(kernel, registry)?;
    let mut tally = Tally::default();
    for seed in seeds {
        let mut choices = Choices::from_seed(seed);
        let target = match choices.below(5) {
            0 => Target::Xdp,
            1 => Target::SocketFilter,
            _ => Target::SchedCls,
        };
        let text = grammar::program(&mut choices, target);
        let insns = assembled(&text).map_err(|error| format!("seed {seed}: {error}\n{text}"))?;
        let Some(comparison) = judges.compare(target, &insns) else {
            tally.unanswered += 1;
            continue;
        };
        tally.accepted += u64::from(comparison.kernel.accepted);
        if !comparison.kernel.accepted {
            let reason = without_numbers(&comparison.kernel.reason);
            *tally.reasons.entry(reason).or_default() += 1;
        }
        let agreement = comparison.agreement;
        *tally.agreements.entry(agreement).or_default() += 1;
        if agreement != Agreement::Equal && tally.differences.len() < KEPT {
            let difference = reduce(&mut judges, seed, target, text, comparison);
            tally.differences.push(difference);
        }
        progress(seed, &tally);
    }
    Ok(tally)
}

/// A reason with every run of digits as `N`.
fn without_numbers(reason: &str) -> String {
    let mut text = String::with_capacity(reason.len());
    for letter in reason.chars() {
        match letter.is_ascii_digit() {
            true if text.ends_with('N') => {}
            true => text.push('N'),
            false => text.push(letter),
        }
    }
    text
}

/// Takes out lines as long as the answers differ in the same way.
fn reduce(
    judges: &mut Judges<'_>,
    seed: u64,
    target: Target,
    text: String,
    comparison: Comparison,
) -> Difference {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut best = comparison;
    let mut chunk = lines.len() / 2;
    while chunk > 0 {
        let mut at = 0;
        while at + chunk <= lines.len() {
            let mut fewer = lines.clone();
            fewer.drain(at..at + chunk);
            let insns = assembled(&fewer.join("\n")).ok();
            let comparison = insns.and_then(|insns| judges.compare(target, &insns));
            match comparison {
                Some(comparison) if comparison.agreement == best.agreement => {
                    best = comparison;
                    lines = fewer;
                }
                _ => at += 1,
            }
        }
        chunk /= 2;
    }
    Difference {
        seed,
        target,
        text: lines.join("\n"),
        comparison: best,
    }
}

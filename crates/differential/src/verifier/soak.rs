//! Many programs put to both verifiers, counted by how far the answers agree; what
//! differs is reduced to a small case.

use std::collections::BTreeMap;
use std::ops::Range;

use program::Program;
use program::case::Case;

use testkit::ebpf::Choices;
use testkit::verifier::{generated_case, generated_plain_case, mutate};

use super::verdict_comparison::{Agreement, VerdictComparison, VerifierPair};

/// Differences that are kept with their programs.
const KEPT: usize = 40;
/// Questions that the reduction of one difference may take.
const REDUCTION_QUESTIONS: u32 = 3000;
/// Programs that take more instructions than this to verify are not mutated.
pub(super) const MOST_INSNS: u32 = 5_000;

/// A program on which the answers differ, reduced.
#[derive(Clone, Debug)]
pub struct VerdictDifference {
    /// Its origin: a seed, or an object's program with its mutation.
    pub origin: String,
    /// A program with as few instructions as still show the difference, as a case.
    pub case: String,
    /// The answers to it.
    pub comparison: VerdictComparison,
}

/// Counts of the programs of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct KindCounts {
    /// Programs that were compared.
    pub compared: u64,
    /// Those that the kernel accepts.
    pub accepted: u64,
    /// Those that our verifier does not support.
    pub unsupported: u64,
}

/// Counts of the answers to many programs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Programs by agreement.
    pub agreements: BTreeMap<Agreement, u64>,
    /// Programs by kind: the program type, or the mutation.
    pub kinds: BTreeMap<String, KindCounts>,
    /// Programs that the kernel refuses, by its reason with every number as `N`.
    pub reasons: BTreeMap<String, u64>,
    /// Unsupported features of programs, with every number as `N`.
    pub unsupported: BTreeMap<String, u64>,
    /// Programs that the kernel did not answer about, by why not.
    pub unanswered: BTreeMap<String, u64>,
    /// The first differences.
    pub differences: Vec<VerdictDifference>,
}

impl Tally {
    /// Programs that were compared.
    pub fn compared(&self) -> u64 {
        self.agreements.values().sum()
    }

    /// Programs that the kernel accepts.
    pub fn accepted(&self) -> u64 {
        self.kinds.values().map(|counts| counts.accepted).sum()
    }

    /// Programs of one agreement.
    pub fn count(&self, agreement: Agreement) -> u64 {
        self.agreements.get(&agreement).copied().unwrap_or(0)
    }

    /// Programs whose answers differ.
    pub fn differing(&self) -> u64 {
        self.compared() - self.count(Agreement::Equal) - self.count(Agreement::Unsupported)
    }

    /// Puts a program of a kind to both and counts the answer. `origin` is asked for
    /// where they differ.
    pub fn compare(
        &mut self,
        verifiers: &mut VerifierPair<'_>,
        program: &Program,
        kind: &str,
        origin: impl FnOnce() -> String,
    ) {
        let comparison = match verifiers.compare(program) {
            Ok(comparison) => comparison,
            Err(why) => {
                *self.unanswered.entry(why).or_default() += 1;
                return;
            }
        };
        let agreement = comparison.agreement;
        self.note(&comparison, kind);
        if !matches!(agreement, Agreement::Equal | Agreement::Unsupported)
            && self.differences.len() < KEPT
        {
            let difference = reduce(verifiers, program, origin(), comparison);
            self.differences.push(difference);
        }
    }

    /// Counts a program of a kind that was put to both.
    pub(super) fn note(&mut self, comparison: &VerdictComparison, kind: &str) {
        let agreement = comparison.agreement;
        *self.agreements.entry(agreement).or_default() += 1;
        let counts = self.kinds.entry(kind.to_owned()).or_default();
        counts.compared += 1;
        match comparison.kernel.is_accepted() {
            true => counts.accepted += 1,
            false => {
                let reason = without_numbers(&comparison.kernel.reason);
                *self.reasons.entry(reason).or_default() += 1;
            }
        }
        if let Err(what) = &comparison.ours {
            counts.unsupported += 1;
            *self.unsupported.entry(without_numbers(what)).or_default() += 1;
        }
    }
}

/// Compares the programs that the grammar makes of seeds, until `is_over`, which is given
/// the seed and what was counted so far.
///
/// # Errors
/// If the grammar writes what is no program.
pub fn compare_generated(
    verifiers: &mut VerifierPair<'_>,
    seeds: Range<u64>,
    mut is_over: impl FnMut(u64, &Tally) -> bool,
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let types = verifiers.types().ok_or("the kernel has no BTF")?;
    for seed in seeds {
        let (kind, text) = match verifiers.has_bpf() {
            true => generated_case(seed, types),
            false => generated_plain_case(seed, types),
        };
        let case = Case::parse(&text).map_err(|error| format!("seed {seed}: {error}\n{text}"))?;
        let origin = || format!("seed {seed}");
        tally.compare(verifiers, &case.program, kind, origin);
        if is_over(seed, &tally) {
            break;
        }
    }
    Ok(tally)
}

/// Compares `count` mutations of a program, if both verifiers agree about the program
/// itself, support it, and answer soon; else none. Returns how many.
pub fn compare_mutations(
    verifiers: &mut VerifierPair<'_>,
    tally: &mut Tally,
    choices: &mut Choices<'_>,
    name: &str,
    program: &Program,
    count: u32,
) -> u32 {
    let is_short = |found: &VerdictComparison| {
        let counts = found.kernel.counts;
        found.agreement == Agreement::Equal && counts.is_some_and(|of| of.insns <= MOST_INSNS)
    };
    if !verifiers.ours(program).is_ok_and(|ours| {
        ours.counts
            .is_some_and(|of| (1..=MOST_INSNS).contains(&of.insns))
    }) || !verifiers
        .compare(program)
        .is_ok_and(|found| is_short(&found))
    {
        return 0;
    }
    let before = tally.compared();
    for _ in 0..count {
        if let Some((mutation, slot, mutated)) = mutate(choices, program) {
            let origin = || format!("{name}: {mutation} at {slot}");
            tally.compare(verifiers, &mutated, &mutation.to_string(), origin);
        }
    }
    (tally.compared() - before) as u32
}

/// A reason with every run of digits as `N`.
pub(super) fn without_numbers(reason: &str) -> String {
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

/// Takes out instructions as long as the answers differ in the same way.
fn reduce(
    verifiers: &mut VerifierPair<'_>,
    program: &Program,
    origin: String,
    comparison: VerdictComparison,
) -> VerdictDifference {
    let agreement = comparison.agreement;
    let (least, shown) =
        testkit::verifier::reduce(program, comparison, REDUCTION_QUESTIONS, |fewer| {
            let found = verifiers.compare(fewer).ok()?;
            (found.agreement == agreement).then_some(found)
        });
    VerdictDifference {
        origin,
        case: Case::new(least).to_string(),
        comparison: shown,
    }
}

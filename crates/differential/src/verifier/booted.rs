//! The verifier of a kernel that is booted under QEMU, beside ours for that kernel: many programs a boot.
//!
//! What differs is reduced in rounds, with the candidates of all differences in one boot
//! ([`testkit::verifier::Reduction`]). Differences are alike if both sides say the same but for numbers; of
//! those that are alike a few are kept and reduced.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use beebox::internal::ask::{AskError, AskOptions, GuestAnswer, NotAsked, ask};
use kernel_client::verdict::{Answer, counts_of};
use program::{MapDef, Program};
use spec::Kernel;
use spec::registry::Registry;
use testkit::verifier::{Reduction, without_unused_maps};
use verifier::{Options, verify};

use super::soak::{MOST_INSNS, Tally, without_numbers};
use super::verdict_comparison::{Agreement, VerdictComparison, answer};

/// Differences that are kept of those that are alike.
const ALIKE: usize = 2;
/// Differences that are reduced at most.
const REDUCED: usize = 200;
/// Time after which a machine is stopped.
const LIMIT: Duration = Duration::from_secs(3600);
/// Boots that may fail.
const FAILED_BOOTS: u32 = 2;
/// The kernel counts statistics at every level; this one prints no states.
const STATISTICS: u32 = 4;
/// Why there is no answer of a program as it is.
const BTF_REFUSED: &str = "the BTF is refused";
const EPERM: i32 = 1;
const ENOSPC: i32 = 28;

/// A kernel that can be booted, as it is described.
pub struct BootedKernel {
    image: PathBuf,
    kernel: Kernel,
    registry: Registry,
    options: AskOptions,
}

/// A program for both, with what it is.
pub struct Question {
    /// Its origin: a seed, or an object's program with its mutation.
    pub origin: String,
    /// Its kind: the program type, or the mutation. A program without is a real one, whose mutations
    /// follow: they count if both answer alike about it, and soon.
    pub kind: Option<String>,
    /// The program.
    pub program: Program,
}

/// A program on which the answers differ.
pub struct Found {
    /// Its origin.
    pub origin: String,
    /// The program, reduced once [`BootedSoak::reduce`] is done.
    pub program: Program,
    /// The answers to it.
    pub comparison: VerdictComparison,
}

/// What differences that are alike have in common: agreement, and what both say without numbers.
type Likeness = (Agreement, String, String);

/// Answers to many programs, counted, and what differs.
pub struct BootedSoak<'k> {
    kernel: &'k BootedKernel,
    /// The counts.
    pub tally: Tally,
    /// What differs, with the number of all that are alike.
    pub found: BTreeMap<Likeness, (u64, Vec<Found>)>,
}

impl BootedKernel {
    /// The kernel of an image, as it is described.
    ///
    /// # Errors
    /// If nothing is known of its types.
    pub fn new(image: PathBuf, kernel: Kernel) -> Result<BootedKernel, &'static str> {
        let registry = kernel.registry().ok_or("the kernel has no BTF")?.clone();
        let options = AskOptions {
            log_level: STATISTICS,
            limit: LIMIT,
            ..AskOptions::default()
        };
        let kernel = options.in_machine(kernel);
        Ok(BootedKernel {
            image,
            kernel,
            registry,
            options,
        })
    }

    /// The kernel as it is described.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Its answers; of some the reason why there is none. Where a program ends the machine, it is booted
    /// again for those behind.
    ///
    /// # Errors
    /// If the kernel does not boot.
    pub fn answers(&self, programs: &[&Program]) -> Result<Vec<Result<Answer, String>>, AskError> {
        let mut answers = Vec::with_capacity(programs.len());
        let mut failed_boots = 0;
        while answers.len() < programs.len() {
            let given = match ask(&self.image, &programs[answers.len()..], &self.options) {
                // A machine that does not get so far may do so the next time.
                Err(AskError::NoAnswer { .. }) if failed_boots < FAILED_BOOTS => {
                    failed_boots += 1;
                    continue;
                }
                given => given?,
            };
            let is_given = |answer: &Result<_, _>| !matches!(answer, Err(NotAsked::NoAnswer));
            let end = given.iter().rposition(is_given).map_or(0, |last| last + 1);
            answers.extend(given.into_iter().take(end).map(read));
            if answers.len() < programs.len() {
                answers.push(Err("the machine ends".to_owned()));
            }
        }
        Ok(answers)
    }

    /// Our answer; `Err` names what is unsupported, or the failure.
    pub fn ours(&self, program: &Program) -> Result<Answer, String> {
        let verify = || verify(program, &self.kernel, &self.registry, &Options::default());
        let done = catch_unwind(AssertUnwindSafe(verify));
        let done = done.map_err(|_| "bug: panic".to_owned())?;
        let mut answer = answer(done)?;
        answer.reason = last_line(&answer.reason);
        Ok(answer)
    }

    /// Puts programs to both; of some the reason why the kernel has no answer.
    ///
    /// # Errors
    /// If the kernel does not boot.
    pub fn compare(
        &self,
        programs: &[&Program],
    ) -> Result<Vec<Result<VerdictComparison, String>>, AskError> {
        let (theirs, ours) = thread::scope(|scope| {
            let asking = scope.spawn(|| self.answers(programs));
            let ours: Vec<_> = programs.iter().map(|program| self.ours(program)).collect();
            match asking.join() {
                Ok(theirs) => (theirs, ours),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        });
        let pairs = theirs?.into_iter().zip(ours);
        Ok(pairs
            .map(|(theirs, ours)| Ok(VerdictComparison::of(theirs?, ours)))
            .collect())
    }
}

/// The last line of a reason.
fn last_line(reason: &str) -> String {
    let line = reason.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or_default().trim().to_owned()
}

/// The answer of the guest; `Err` if the program did not reach the verifier as it is, or if the answer
/// depends on what no description of a kernel says.
fn read(given: Result<GuestAnswer, NotAsked>) -> Result<Answer, String> {
    let given = given.map_err(|why| why.to_string())?;
    if given.refused_map.is_some() {
        return Err("a map is not created".to_owned());
    }
    if given.btf_errno != 0 {
        return Err(BTF_REFUSED.to_owned());
    }
    match given.errno {
        ENOSPC => return Err("the log does not fit".to_owned()),
        EPERM if given.log.is_empty() => return Err("not permitted".to_owned()),
        _ => {}
    }
    let reason = match given.is_accepted() || given.log.is_empty() {
        true => String::new(),
        false => given.reason(),
    };
    // Some messages have no newline, and the statistics follow on their line.
    let reason = reason
        .split("verification time ")
        .next()
        .unwrap_or_default();
    if reason.starts_with("cannot find address for kernel function") {
        return Err("a kernel function has no address".to_owned());
    }
    if reason.ends_with("is not pointing to valid bpf_map") {
        return Err("an instruction names a descriptor of the process".to_owned());
    }
    Ok(Answer {
        errno: given.errno,
        counts: counts_of(&given.log),
        reason: reason.trim().to_owned(),
    })
}

/// The program without BTF; none if it needs it.
fn without_types(program: &Program) -> Option<Program> {
    let maps = program.maps().iter().map(|map| {
        let mut map = MapDef::clone(map);
        map.has_btf = false;
        (map.params.key_type, map.params.value_type) = Default::default();
        Arc::new(map)
    });
    let maps: Vec<Arc<MapDef>> = maps.collect();
    let plain = program.to_builder().btf(None).func_info(Vec::new());
    plain.line_info(Vec::new()).maps(maps).build().ok()
}

/// What a difference has in common with others; none where the answers do not differ.
fn likeness(comparison: &VerdictComparison) -> Option<Likeness> {
    let agreement = comparison.agreement;
    let ours = comparison.ours.as_ref().ok()?;
    let is_difference = agreement != Agreement::Equal;
    is_difference.then(|| {
        let reason = |answer: &Answer| without_numbers(&answer.reason);
        (agreement, reason(&comparison.kernel), reason(ours))
    })
}

impl<'k> BootedSoak<'k> {
    /// Nothing is compared yet.
    pub fn new(kernel: &'k BootedKernel) -> BootedSoak<'k> {
        BootedSoak {
            kernel,
            tally: Tally::default(),
            found: BTreeMap::new(),
        }
    }

    /// Puts programs to both in one boot, and counts the answers. Those whose BTF the kernel refuses are
    /// asked about without, in another one.
    ///
    /// # Errors
    /// If the kernel does not boot.
    pub fn compare(&mut self, mut questions: Vec<Question>) -> Result<(), AskError> {
        let programs: Vec<&Program> = questions.iter().map(|of| &of.program).collect();
        let mut compared = self.kernel.compare(&programs)?;
        let mut again = Vec::new();
        for (at, compared) in compared.iter().enumerate() {
            let is_refused = matches!(compared, Err(why) if why == BTF_REFUSED);
            if let Some(plain) = is_refused.then(|| without_types(&questions[at].program)) {
                again.extend(plain.map(|plain| (at, plain)));
            }
        }
        let plain: Vec<&Program> = again.iter().map(|(_, plain)| plain).collect();
        let answers = self.kernel.compare(&plain)?;
        for ((at, plain), answer) in again.into_iter().zip(answers) {
            questions[at].program = plain;
            compared[at] = answer;
        }
        let mut counts = true;
        for (question, compared) in questions.into_iter().zip(compared) {
            let Some(kind) = &question.kind else {
                counts = compared.is_ok_and(|of| {
                    let insns = of.kernel.counts.map_or(0, |counts| counts.insns);
                    of.agreement == Agreement::Equal && (1..=MOST_INSNS).contains(&insns)
                });
                continue;
            };
            if !counts {
                continue;
            }
            match compared {
                Err(why) => *self.tally.unanswered.entry(why).or_default() += 1,
                Ok(comparison) => {
                    self.tally.note(&comparison, kind);
                    let Some(likeness) = likeness(&comparison) else {
                        continue;
                    };
                    let (count, kept) = self.found.entry(likeness).or_default();
                    *count += 1;
                    kept.push(Found {
                        origin: question.origin,
                        program: question.program,
                        comparison,
                    });
                    kept.sort_by_key(|found| found.program.insns().len());
                    kept.truncate(ALIKE);
                }
            }
        }
        Ok(())
    }

    /// Reduces what differs, as long as it differs alike.
    ///
    /// # Errors
    /// If the kernel does not boot.
    pub fn reduce(&mut self) -> Result<(), AskError> {
        let found = self.found.iter_mut();
        let found =
            found.flat_map(|(likeness, (_, kept))| kept.iter_mut().map(move |it| (likeness, it)));
        let mut reduced: Vec<_> = found
            .take(REDUCED)
            .map(|(likeness, found)| {
                let reduction = Reduction::new(found.program.clone());
                (likeness, found, reduction)
            })
            .collect();
        loop {
            let rounds = reduced
                .iter_mut()
                .map(|(.., reduction)| reduction.candidates());
            let rounds: Vec<Vec<Program>> = rounds.collect();
            let all: Vec<&Program> = rounds.iter().flatten().collect();
            if all.is_empty() {
                break;
            }
            let mut compared = self.kernel.compare(&all)?.into_iter();
            for ((wanted, _, reduction), candidates) in reduced.iter_mut().zip(&rounds) {
                let own = compared.by_ref().take(candidates.len());
                let shows: Vec<bool> = own
                    .map(|compared| {
                        compared.is_ok_and(|it| likeness(&it).as_ref() == Some(*wanted))
                    })
                    .collect();
                if !candidates.is_empty() {
                    reduction.learn(&shows);
                }
            }
        }
        let least: Vec<Program> = reduced
            .iter()
            .map(|(.., reduction)| reduction.least())
            .collect();
        // Of each the one with fewest lines that still differs alike.
        let forms = least.into_iter().map(|program| {
            let fewer = without_unused_maps(&program);
            [without_types(&fewer), Some(fewer), Some(program)]
        });
        let forms: Vec<[Option<Program>; 3]> = forms.collect();
        let all: Vec<&Program> = forms.iter().flatten().flatten().collect();
        let mut compared = self.kernel.compare(&all)?.into_iter();
        for ((wanted, found, _), forms) in reduced.into_iter().zip(forms) {
            let mut is_found = false;
            for program in forms.into_iter().flatten() {
                if let Some(Ok(comparison)) = compared.next()
                    && !is_found
                    && likeness(&comparison).as_ref() == Some(wanted)
                {
                    is_found = true;
                    found.program = program;
                    found.comparison = comparison;
                }
            }
        }
        Ok(())
    }
}

//! `cargo differential compare behaviours`: for each behaviour a program of the kernel's selftests on each
//! side, whose recorded answer it decides.
//!
//! Compared are kernels that follow each other, on the programs whose recorded answers differ, then the cases
//! of `crates/testkit/cases/kernels`. A program shows a behaviour on the side of a kernel if our answer for that
//! kernel is the recorded one, and another one when the behaviour alone is switched. What is found is written to `tools/kernels/truth/behaviours.csv`,
//! and counted in docs/kernels.md.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use beebox::Kernel;
use kernel_client::verdict::Counts;
use program::Program;
use program::case::Case;
use spec::behaviour::{Behaviour, Behaviours};
use spec::kernel::KernelVersion;
use verifier::{Verdict, Verification, verify};

use super::kernels::{PAGE, behaviours, described, kernels};
use super::selftests::{Options, Set, Target, name_of};
use super::truth::{self, Answer};
use crate::command::Outcome;
use beebox_differential::page::write_part;

/// The set of which the answers are recorded.
const SET: &str = "7.2/v3";
/// The kernels whose answers are recorded, oldest first.
const RELEASES: [&str; 8] = [
    "5.10.262", "6.1.192", "6.12.117", "6.18.15", RUNNING, "7.0.13", "7.2.12", "7.3.4",
];
/// The one that runs here.
const RUNNING: &str = "6.18.44";
/// Instructions that a verification may take, so that many can be made.
const MOST_INSNS: u64 = 20_000;
/// The file with what was found.
const FILE: &str = "tools/kernels/truth/behaviours.csv";
/// Our own programs.
const CASES: &str = "crates/testkit/cases/kernels";
const HEADING: &str = "behaviour,kernel,program";

/// A program that shows a behaviour on the side of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The release of the kernel.
    pub(super) kernel: String,
    /// FILE/PROGRAM.
    pub(super) program: String,
}

/// By behaviour what shows it in kernels without it, and in kernels with it.
pub(super) type Sides = BTreeMap<Behaviour, [Option<Shown>; 2]>;

/// Searches what shows each behaviour, and writes it.
pub(crate) fn search() -> Outcome {
    let options = Options::of_set(SET)?;
    let set = &options.sets[0];
    let objects = options.objects(set)?;
    let mut sides = read()?;
    for pair in RELEASES.windows(2) {
        let truths = [truth_of(set, pair[0])?, truth_of(set, pair[1])?];
        let differing: BTreeSet<&str> = truths[0]
            .iter()
            .filter_map(|(name, one)| {
                let other = truths[1].get(name)?;
                let is_short =
                    |answer: &Answer| answer.insns.parse().is_ok_and(|n: u64| n <= MOST_INSNS);
                let both =
                    one.accepted.and(other.accepted).is_some() && is_short(one) && is_short(other);
                (both && !is_equal(one, other)).then_some(name.as_str())
            })
            .collect();
        let versions: [KernelVersion; 2] = [pair[0].parse()?, pair[1].parse()?];
        let [older, newer] = versions.map(Behaviours::of);
        for (at, release) in pair.iter().enumerate() {
            let open = |behaviour: &Behaviour, sides: &Sides| {
                let is_there = usize::from(Behaviours::of(versions[at]).has(*behaviour));
                sides
                    .get(behaviour)
                    .is_none_or(|sides| sides[is_there].is_none())
            };
            let wanted: Vec<Behaviour> = older
                .differing(newer)
                .filter(|it| open(it, &sides))
                .collect();
            if wanted.is_empty() {
                continue;
            }
            let target = target_of(release)?;
            let mut search = Search {
                target: &target,
                release,
                wanted,
                sides: &mut sides,
            };
            search.run(&objects, &differing, &truths[at])?;
            eprintln!(
                "Linux {release}: {} programs, not shown {:?}",
                differing.len(),
                search.wanted
            );
            write(&sides)?;
        }
    }
    search_cases(&mut sides)?;
    write(&sides)?;
    println!("{}", summary(&sides));
    write_part(PAGE, "behaviours", &behaviours(&sides))
}

/// Searches among our cases what the selftests do not show.
fn search_cases(sides: &mut Sides) -> Outcome {
    let cases = cases()?;
    for release in RELEASES.iter().filter(|release| **release != RUNNING) {
        let rules = Behaviours::of(release.parse()?);
        let open = |behaviour: &&Behaviour| {
            let is_there = usize::from(rules.has(**behaviour));
            sides
                .get(behaviour)
                .is_none_or(|sides| sides[is_there].is_none())
        };
        let wanted: Vec<Behaviour> = Behaviour::ALL.iter().filter(open).copied().collect();
        let target = target_of(release)?;
        let mut search = Search {
            target: &target,
            release,
            wanted,
            sides,
        };
        for (name, case) in &cases {
            if let Some(recorded) = case.answers.iter().find(|it| it.release == *release) {
                let recorded = [recorded.errno.map(|errno| errno.to_string())]
                    .into_iter()
                    .flatten();
                let recorded: Vec<String> = recorded.chain(answer_lines(case, release)).collect();
                search.note(name, &case.program, |done| {
                    lines_of(done).as_ref() == Some(&recorded)
                });
            }
        }
    }
    Ok(())
}

/// Our cases by the names of their files.
fn cases() -> Outcome<Vec<(String, Case)>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(CASES);
    let mut cases = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let case = Case::parse(&fs::read_to_string(&path)?);
        let case = case.map_err(|error| format!("{}: {error}", path.display()))?;
        cases.push((name_of(&path), case));
    }
    cases.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(cases)
}

/// The lines that a case has of the answer of a release.
fn answer_lines(case: &Case, release: &str) -> Vec<String> {
    let answer = case.answers.iter().find(|it| it.release == release);
    answer.map_or_else(Vec::new, |answer| answer.log.clone())
}

/// What a case would have of our answer: error number, reason and counts.
fn lines_of(done: &Verification) -> Option<Vec<String>> {
    let of = done.statistics;
    let counts = Counts {
        insns: of.insns_processed,
        per_insn: of.max_states_per_insn,
        total: of.total_states,
        peak: of.peak_states,
    };
    let mut lines = match &done.verdict {
        Verdict::Accepted => Vec::new(),
        Verdict::Refused(refusal) => {
            let message = refusal.message();
            let last = message.lines().last().unwrap_or_default().trim();
            vec![refusal.errno.0.to_string(), last.to_owned()]
        }
        Verdict::Unsupported(_) | Verdict::Bug(_) => return None,
    };
    lines.push(counts.to_string());
    Some(lines)
}

/// The search on the side of one kernel.
struct Search<'s> {
    target: &'s Target,
    release: &'s str,
    wanted: Vec<Behaviour>,
    sides: &'s mut Sides,
}

impl Search<'_> {
    fn run(
        &mut self,
        objects: &[PathBuf],
        programs: &BTreeSet<&str>,
        truth: &HashMap<String, Answer>,
    ) -> Outcome {
        for path in objects {
            let file = name_of(path);
            if self.wanted.is_empty()
                || !programs
                    .iter()
                    .any(|name| name.starts_with(&format!("{file}/")))
            {
                continue;
            }
            let kinds = |name: &str| truth.get(&format!("{file}/{name}"))?.kind;
            let (target, mut loaded) = (self.target, Vec::new());
            target.load_each_as(path, &kinds, None, &mut |program| {
                let name = format!("{file}/{}", program.name);
                if let (true, Ok(program)) = (programs.contains(&*name), program.program) {
                    loaded.push((name, program));
                }
            })?;
            for (name, program) in loaded {
                let recorded = truth.get(&name);
                self.note(&name, &program, |done| {
                    let pair = recorded.zip(answer(done));
                    pair.is_some_and(|(recorded, ours)| is_equal(&ours, recorded))
                });
            }
        }
        Ok(())
    }

    /// Notes the behaviours that the program shows: without which our answer is not the recorded one.
    fn note(&mut self, name: &str, program: &Program, is_recorded: impl Fn(&Verification) -> bool) {
        let (kernel, registry) = (&self.target.kernel, &self.target.registry);
        // A set of behaviours that no kernel has may break an invariant, and then shows nothing.
        let verify = |kernel: &Kernel| {
            let done = || verify(program, kernel, registry, &Default::default());
            let done = catch_unwind(AssertUnwindSafe(done)).ok();
            done.filter(|done| !matches!(done.verdict, Verdict::Unsupported(_) | Verdict::Bug(_)))
        };
        if !verify(kernel).is_some_and(|done| is_recorded(&done)) {
            return;
        }
        let rules = kernel.behaviours();
        self.wanted.retain(|&behaviour| {
            let is_there = rules.has(behaviour);
            let switched = rules.with(behaviour, !is_there);
            let switched = verify(&kernel.clone().with_behaviours(switched));
            if switched.is_none_or(|done| is_recorded(&done)) {
                return true;
            }
            let shown = Shown {
                kernel: self.release.to_owned(),
                program: name.to_owned(),
            };
            let sides = self.sides.entry(behaviour).or_default();
            sides[usize::from(is_there)] = Some(shown);
            false
        });
    }
}

/// True if the answers are equal in what is recorded of each.
fn is_equal(one: &Answer, other: &Answer) -> bool {
    one.accepted == other.accepted
        && match one.accepted {
            Some(true) => (&one.insns, &one.states) == (&other.insns, &other.states),
            _ => one.reason == other.reason,
        }
}

/// Our answer, as it is recorded.
fn answer(done: &Verification) -> Option<Answer> {
    let (accepted, reason) = match &done.verdict {
        Verdict::Accepted => (true, String::new()),
        Verdict::Refused(refusal) => (false, refusal.message().trim().to_owned()),
        Verdict::Unsupported(_) | Verdict::Bug(_) => return None,
    };
    Some(Answer {
        accepted: Some(accepted),
        insns: done.statistics.insns_processed.to_string(),
        states: done.statistics.total_states.to_string(),
        reason,
        kind: None,
    })
}

fn truth_of(set: &Set, release: &str) -> Outcome<HashMap<String, Answer>> {
    match release {
        RUNNING => truth::read(&Options::of_set(SET)?.truth(set)),
        _ => truth::read(&set.truth_on(release)),
    }
}

fn target_of(release: &str) -> Outcome<Target> {
    if release == RUNNING {
        return Target::running();
    }
    let series = release
        .rsplit_once('.')
        .map_or(release, |(series, _)| series);
    let target = Target::described(&described(&kernels().join(series)))?;
    let version = target.kernel.version().map(|version| version.to_string());
    match version.as_deref() == Some(release) {
        true => Ok(target),
        false => Err(format!("the kernel that is described as {series} is not {release}").into()),
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(FILE)
}

/// What was found before.
pub(super) fn read() -> Outcome<Sides> {
    let mut sides = Sides::new();
    let text = match fs::read_to_string(path()) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.splitn(3, ',').collect();
        let [name, kernel, program] = cells[..] else {
            return Err(format!("{FILE}: {line}").into());
        };
        let behaviour = Behaviour::ALL.iter().find(|it| it.name() == name);
        let behaviour = behaviour.ok_or_else(|| format!("{FILE}: no behaviour {name}"))?;
        let version: KernelVersion = kernel.parse()?;
        let is_there = usize::from(Behaviours::of(version).has(*behaviour));
        let shown = Shown {
            kernel: kernel.to_owned(),
            program: program.to_owned(),
        };
        sides.entry(*behaviour).or_default()[is_there] = Some(shown);
    }
    Ok(sides)
}

fn write(sides: &Sides) -> Outcome {
    let mut text = format!("{HEADING}\n");
    for (behaviour, shown) in sides {
        for shown in shown.iter().flatten() {
            let _ = writeln!(
                text,
                "{},{},{}",
                behaviour.name(),
                shown.kernel,
                shown.program
            );
        }
    }
    Ok(fs::write(path(), text)?)
}

/// How many behaviours are shown, in words.
pub(super) fn summary(sides: &Sides) -> String {
    let count = |sides_shown: usize| {
        let all = sides.values();
        all.filter(|shown| shown.iter().flatten().count() == sides_shown)
            .count()
    };
    let (both, one) = (count(2), count(1));
    let all = Behaviour::ALL.len();
    format!(
        "Of {all} behaviours {both} decide a recorded answer of kernels on both sides, {one} on one side, {} none.",
        all - both - one
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_a_behaviour_is_recorded() {
        let options = Options::of_set(SET).unwrap();
        let mut truths: HashMap<String, HashMap<String, Answer>> = HashMap::new();
        let sides = read().unwrap();
        assert!(!sides.is_empty());
        let cases = cases().unwrap();
        for (behaviour, shown) in sides {
            for (is_there, shown) in shown.into_iter().enumerate() {
                let Some(Shown { kernel, program }) = shown else {
                    continue;
                };
                let version: KernelVersion = kernel.parse().unwrap();
                let has = Behaviours::of(version).has(behaviour);
                assert_eq!(usize::from(has), is_there, "{behaviour:?}");
                if let Some((_, case)) = cases.iter().find(|(name, _)| *name == program) {
                    assert!(!answer_lines(case, &kernel).is_empty(), "{behaviour:?}");
                    continue;
                }
                let truth = truths
                    .entry(kernel.clone())
                    .or_insert_with(|| truth_of(&options.sets[0], &kernel).unwrap());
                let recorded = truth.get(&program).and_then(|answer| answer.accepted);
                assert!(recorded.is_some(), "{behaviour:?}: {program} on {kernel}");
            }
        }
    }
}

//! `cargo differential compare verifier`: verdicts, counts and last lines of the kernel's
//! selftests beside a kernel's recorded answers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use beebox::internal::verify::StandaloneProgram;
use verifier::{Verdict, verify};

use super::PAGE;
use super::selftests::{Options, Selection, Target, name_of};
use super::truth::{self, Answer};
use crate::command::Outcome;
use beebox_differential::page::write_part;

/// The sets that the page is about.
const SETS: &[&str] = &["7.2/v3", "7.2/v4", "6.12/v3"];

/// The first two lines of the tables.
pub(super) const HEADING: &str = "| set | programs | answered | verdict agrees | false accepts | false refusals | \
     counts exact (accepted) | last line exact (refused) |\n\
     |---|---:|---:|---:|---:|---:|---:|---:|\n";

/// Verifies the programs of sets of the kernel's selftests and counts how far the
/// answers are those that the kernel gave.
pub(crate) fn score(selection: Selection) -> Outcome {
    let options = Options::from_selection(selection, SETS)?;
    let target = Target::running()?;
    let mut table = String::from(HEADING);
    for set in &options.sets {
        let truth = truth::read(&options.truth(set))?;
        let mine = answers(&options.objects(set)?, &target)?;
        let all: BTreeSet<&str> = truth.keys().map(String::as_str).collect();
        let part = |of_core: bool| {
            let is_core = |it: &&str| match &options.core {
                Some(core) => core.contains(*it),
                None => true,
            };
            let programs = all.iter().copied();
            programs.filter(|it| is_core(it) == of_core).collect()
        };
        let title = set.title();
        let lists: Vec<(String, BTreeSet<&str>)> = match &options.core {
            Some(_) => vec![
                (format!("{title}, core"), part(true)),
                (format!("{title}, others"), part(false)),
            ],
            None => vec![(title, all.clone())],
        };
        for (name, programs) in lists {
            let _ = writeln!(table, "| {name} {}", count(&programs, &truth, &mine));
            for difference in differences(&programs, &truth, &mine) {
                println!("{name}: {difference}");
            }
            if options.list {
                for program in unanswered(&programs, &truth, &mine) {
                    println!("{name}: {program} is not answered");
                }
            }
        }
    }
    print!("{table}");
    match options.is_whole() && options.core.is_some() {
        true => write_part(PAGE, "score", &table),
        false => Ok(()),
    }
}

/// Compares with the recorded answers of Debian's Linux 6.18 those for the built-in kernel, and for that
/// kernel if a directory describes it.
pub(crate) fn score_trampolines(directory: Option<&Path>) -> Outcome {
    const RELEASE: &str = "6.18.15";
    let options = Options::from_selection(Selection::default(), SETS)?;
    let described = directory.map(Target::described).transpose()?;
    let described = described.map(|target| ("types of Linux 6.18.15", target));
    let targets: Vec<_> = described
        .into_iter()
        .chain([("built in", Target::built_in()?)])
        .collect();
    let mut table = String::from(HEADING);
    for set in &options.sets {
        let truth = truth::read(&set.truth_on(RELEASE))?;
        let all: BTreeSet<&str> = truth.keys().map(String::as_str).collect();
        let objects = options.objects(set)?;
        for (name, target) in &targets {
            let title = format!("{}, {name}", set.title());
            let mine = answers(&objects, target)?;
            for difference in differences(&all, &truth, &mine) {
                println!("{title}: {difference}");
            }
            let _ = writeln!(table, "| {title} {}", count(&all, &truth, &mine));
        }
    }
    print!("{table}");
    match directory {
        Some(_) => write_part(PAGE, "trampolines", &table),
        None => Ok(()),
    }
}

/// Pairs of answers to the programs that both answered.
fn pairs<'t>(
    programs: &'t BTreeSet<&str>,
    truth: &'t HashMap<String, Answer>,
    mine: &'t HashMap<String, Answer>,
) -> impl Iterator<Item = (&'t str, &'t Answer, &'t Answer)> {
    let is_answer = |answer: &&Answer| answer.accepted.is_some();
    programs.iter().filter_map(move |&program| {
        let theirs = truth.get(program).filter(is_answer)?;
        let ours = mine.get(program).filter(is_answer)?;
        Some((program, theirs, ours))
    })
}

/// Differences of answers, in words.
pub(super) fn differences<'t>(
    programs: &'t BTreeSet<&str>,
    truth: &'t HashMap<String, Answer>,
    mine: &'t HashMap<String, Answer>,
) -> impl Iterator<Item = String> + 't {
    pairs(programs, truth, mine).filter_map(|(program, theirs, ours)| {
        let is_equal = theirs.accepted == ours.accepted
            && match ours.accepted {
                Some(true) => ours.insns == theirs.insns && ours.states == theirs.states,
                _ => ours.reason == theirs.reason,
            };
        let words = |answer: &Answer| match answer.accepted {
            Some(true) => format!("accepts ({} insns, {} states)", answer.insns, answer.states),
            _ => format!("refuses: {}", answer.reason),
        };
        let (theirs, ours) = (words(theirs), words(ours));
        (!is_equal).then(|| format!("{program}: the kernel {theirs}; Beebox {ours}"))
    })
}

/// Programs that the kernel answered and Beebox does not.
pub(super) fn unanswered<'t>(
    programs: &'t BTreeSet<&str>,
    truth: &'t HashMap<String, Answer>,
    mine: &'t HashMap<String, Answer>,
) -> impl Iterator<Item = &'t str> {
    let is_answered = |answers: &HashMap<String, Answer>, program: &str| {
        let answer = answers.get(program);
        answer.is_some_and(|answer| answer.accepted.is_some())
    };
    let programs = programs.iter().copied();
    programs.filter(move |program| is_answered(truth, program) && !is_answered(mine, program))
}

/// How far answers agree with a kernel's, as the cells of a row.
pub(super) fn count(
    programs: &BTreeSet<&str>,
    truth: &HashMap<String, Answer>,
    mine: &HashMap<String, Answer>,
) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut note = |what: &'static str, holds: bool| {
        *counts.entry(what).or_default() += usize::from(holds);
    };
    for program in programs {
        let theirs = truth.get(*program);
        note(
            "all",
            theirs.is_some_and(|answer| answer.accepted.is_some()),
        );
    }
    for (_, theirs, ours) in pairs(programs, truth, mine) {
        note("answered", true);
        let agrees = ours.accepted == theirs.accepted;
        note("agrees", agrees);
        note("false accepts", !agrees && ours.accepted == Some(true));
        note("false refusals", !agrees && ours.accepted == Some(false));
        if agrees && ours.accepted == Some(true) {
            note("accepted", true);
            let is_exact = ours.insns == theirs.insns && ours.states == theirs.states;
            note("counts", is_exact);
        }
        if agrees && ours.accepted == Some(false) {
            note("refused", true);
            note("lines", ours.reason == theirs.reason);
        }
    }
    let get = |what: &str| counts.get(what).copied().unwrap_or(0);
    let share = |part: &str, whole: &str| {
        let (part, whole) = (get(part), get(whole));
        let percent = 100.0 * part as f64 / whole.max(1) as f64;
        format!("{part} of {whole} ({percent:.2} %)")
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |",
        get("all"),
        share("answered", "all"),
        share("agrees", "answered"),
        get("false accepts"),
        get("false refusals"),
        share("counts", "accepted"),
        share("lines", "refused"),
    )
}

/// Our answers to the programs of objects, by FILE/PROGRAM.
pub(super) fn answers(files: &[PathBuf], target: &Target) -> Outcome<HashMap<String, Answer>> {
    answers_as(files, target, &HashMap::new())
}

/// As [`answers`], with the types that recorded answers are about.
pub(super) fn answers_as(
    files: &[PathBuf],
    target: &Target,
    truth: &HashMap<String, Answer>,
) -> Outcome<HashMap<String, Answer>> {
    let mut all = HashMap::new();
    for path in files {
        let file = name_of(path);
        let mut visit = |loaded: StandaloneProgram| {
            if let Some(answer) = answer(&loaded, target) {
                all.insert(format!("{file}/{}", loaded.name), answer);
            }
        };
        let kinds = |name: &str| truth.get(&format!("{file}/{name}"))?.kind;
        target.load_each_as(path, &kinds, None, &mut visit)?;
    }
    Ok(all)
}

fn answer(loaded: &StandaloneProgram, target: &Target) -> Option<Answer> {
    let program = loaded.program.as_ref().ok()?;
    let verify = || {
        verify(
            program,
            &target.kernel,
            &target.registry,
            &Default::default(),
        )
    };
    // A panic is one program's missing answer.
    let done = catch_unwind(AssertUnwindSafe(verify)).ok()?;
    let (accepted, reason) = match done.verdict {
        Verdict::Accepted => (Some(true), String::new()),
        Verdict::Refused(refusal) => (Some(false), refusal.message()),
        Verdict::Unsupported(_) | Verdict::Bug(_) => (None, String::new()),
    };
    Some(Answer {
        accepted,
        insns: done.statistics.insns_processed.to_string(),
        states: done.statistics.total_states.to_string(),
        reason: reason.trim().to_owned(),
        kind: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted() {
        let answer = |accepted, insns: &str| Answer {
            accepted,
            insns: insns.to_owned(),
            ..Answer::default()
        };
        let truth = HashMap::from([
            ("a".to_owned(), answer(Some(true), "7")),
            ("b".to_owned(), answer(Some(false), "7")),
            ("c".to_owned(), answer(None, "")),
        ]);
        let mine = HashMap::from([
            ("a".to_owned(), answer(Some(true), "8")),
            ("b".to_owned(), answer(Some(true), "7")),
        ]);
        let line = count(&BTreeSet::from(["a", "b", "c"]), &truth, &mine);
        let expected = "| 2 | 2 of 2 (100.00 %) | 1 of 2 (50.00 %) | 1 | 0 | 0 of 1 (0.00 %) | 0 of 0 (0.00 %) |";
        assert_eq!(line, expected);
    }
}

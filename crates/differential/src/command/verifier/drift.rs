//! `cargo differential drift OLD NEW`: the programs of the kernel's selftests whose answers changed from
//! one release to another, as both were recorded, grouped by what decides the change.
//!
//! Causes are found by verifying for both kernels, with what `tools/kernels/vm describe` knows of each
//! (`beebox::internal::verify::matrix`). What Beebox answers alike for both has no cause, and is listed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beebox::Kernel;
use beebox::internal::loading::ObjectLoading;
use beebox::internal::program::LoadFlags;
use beebox::internal::verify::matrix::{ProgramAnswers, RefusalCause, differs_much, verify_files};
use beebox::internal::verify::results::{FileContents, FileFault, Files, Job, Logs};
use beebox::internal::verify::veristat::Filters;
use btf::Btf;
use spec::kernel::{KernelVersion, Release};
use verifier::Options as VerifierOptions;

use super::kernels::{described, kernels};
use super::selftests::{Options, Target, name_of};
use super::truth::{self, Answer};
use crate::command::Outcome;

/// The set of which the answers are recorded.
const SET: &str = "7.2/v3";
/// The release whose answers are those of the set.
const OF_SET: &str = "6.18.44";
/// Programs that a group lists.
const MOST_LISTED: usize = 12;

/// What changed about a program.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// The new kernel takes it.
    Taken,
    /// The new kernel refuses it.
    Refused,
    /// Processed instructions, before and after.
    Cost(u64, u64),
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Change::Taken => f.write_str("refused to accepted"),
            Change::Refused => f.write_str("accepted to refused"),
            Change::Cost(before, after) => write!(f, "{before} to {after} instructions"),
        }
    }
}

/// Writes the page about what changed.
pub(crate) fn write(old: &str, new: &str) -> Outcome {
    let options = Options::of_set(SET)?;
    let set = &options.sets[0];
    let recorded = |version: &str| {
        let asked = set.truth_on(version);
        truth::read(&match version == OF_SET && !asked.is_file() {
            true => options.truth(set),
            false => asked,
        })
    };
    let changed = changed(&recorded(old)?, &recorded(new)?);
    let kernels = [kernel(old)?, kernel(new)?];
    let mut groups: BTreeMap<String, Vec<(String, Change)>> = BTreeMap::new();
    let mut rest = changed.clone();
    for path in options.objects(set)? {
        let file = name_of(&path);
        let of_file: BTreeSet<&str> = changed
            .keys()
            .filter_map(|program| program.strip_prefix(&format!("{file}/")))
            .collect();
        if of_file.is_empty() {
            continue;
        }
        for program in answers(&path, &of_file, &kernels) {
            let name = format!("{file}/{}", program.name);
            if let Some(what) = rest.remove(&name) {
                groups
                    .entry(cause(&program))
                    .or_default()
                    .push((name, what));
            }
        }
    }
    if !rest.is_empty() {
        let unknown = "Programs that Beebox does not load".to_owned();
        groups.insert(unknown, rest.into_iter().collect());
    }
    let text = page([old, new], changed.len(), &groups);
    let path = format!("docs/drift-{old}-{new}.md");
    fs::write(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(&path),
        &text,
    )?;
    print!("{text}");
    println!("{path}");
    Ok(())
}

/// What changed of the programs that both kernels judged.
fn changed(
    old: &HashMap<String, Answer>,
    new: &HashMap<String, Answer>,
) -> BTreeMap<String, Change> {
    let both = old
        .iter()
        .filter_map(|(name, old)| Some((name, old, new.get(name)?)));
    let changed = both.filter_map(|(name, old, new)| {
        let count = |text: &str| text.parse().unwrap_or(0);
        let (before, after): (u64, u64) = (count(&old.insns), count(&new.insns));
        let what = match (old.accepted?, new.accepted?) {
            (false, true) => Change::Taken,
            (true, false) => Change::Refused,
            (true, true) if differs_much(before, after) => Change::Cost(before, after),
            (true, true) | (false, false) => return None,
        };
        Some((name.clone(), what))
    });
    changed.collect()
}

/// The kernel of a release, as it is described.
fn kernel(version: &str) -> Outcome<Kernel> {
    let parsed: KernelVersion = version.parse()?;
    let home = described(&kernels().join(Release::from(parsed).to_string()));
    let kernel = Target::described(&home)?.kernel;
    let source = spec::kernel::Source::Given;
    Ok(kernel.with_version(parsed, source))
}

/// Our answers for both kernels about programs of an object.
fn answers(path: &Path, programs: &BTreeSet<&str>, kernels: &[Kernel]) -> Vec<ProgramAnswers> {
    let names: Vec<String> = programs.iter().map(|name| (*name).to_owned()).collect();
    let filters = Filters::default();
    let job = Job {
        programs: &names,
        filters: &filters,
        flags: LoadFlags::default(),
        test_tags: true,
        options: VerifierOptions::default(),
        explains: false,
        loading: ObjectLoading::default(),
        target: None,
        logs: Logs::new(0, None, None),
        threads: 1,
    };
    let file = One(path.to_owned(), [name_of(path)]);
    verify_files(&file, &job, kernels, &|_| true).map_or_else(Vec::new, |matrix| matrix.programs)
}

/// What decides the change, as the heading of a group.
fn cause(program: &ProgramAnswers) -> String {
    let causes = program
        .cells
        .iter()
        .flatten()
        .filter_map(|cell| cell.cause.as_ref());
    let mut causes = causes.map(words);
    causes
        .next()
        .unwrap_or_else(|| match program.costs_differ() {
            true => "Other numbers of states, here as there".to_owned(),
            false => "No cause is known: Beebox answers alike for both".to_owned(),
        })
}

fn words(cause: &RefusalCause) -> String {
    let named = cause.deciders.iter().map(|decider| {
        let name = format!("{} `{}`", decider.kind.name(), decider.name);
        match decider.title.trim_end_matches('.') {
            "" => name,
            title => format!("{title} ({name})"),
        }
    });
    named.collect::<Vec<_>>().join("; ")
}

fn page(
    [old, new]: [&str; 2],
    count: usize,
    groups: &BTreeMap<String, Vec<(String, Change)>>,
) -> String {
    let mut text = format!(
        "# From Linux {old} to {new}\n\nOf the kernel's own tests (set {SET}) that both judged, {count} have \
         another verdict or another cost, as both kernels answered. What decides is found by verifying for both.\n\
         `cargo differential drift {old} {new}` writes this page.\n\n\
         | what decides | now taken | now refused | another cost |\n|---|---:|---:|---:|\n"
    );
    let mut groups: Vec<_> = groups.iter().collect();
    groups.sort_by_key(|(cause, programs)| (std::cmp::Reverse(programs.len()), *cause));
    for (cause, programs) in &groups {
        let count = |is_it: fn(&Change) -> bool| {
            programs.iter().filter(|(_, change)| is_it(change)).count()
        };
        let taken = count(|change| *change == Change::Taken);
        let refused = count(|change| *change == Change::Refused);
        let cost = count(|change| matches!(change, Change::Cost(..)));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {cause} | {taken} | {refused} | {cost} |");
    }
    for (cause, programs) in groups {
        let _ = writeln!(text, "\n## {cause}\n");
        for (name, change) in programs.iter().take(MOST_LISTED) {
            let _ = writeln!(text, "* `{name}`: {change}");
        }
        if let Some(more) = programs
            .len()
            .checked_sub(MOST_LISTED)
            .filter(|more| *more > 0)
        {
            let _ = writeln!(text, "* and {more} more");
        }
    }
    text
}

/// A file.
struct One(PathBuf, [String; 1]);

impl Files for One {
    type Error = String;

    fn names(&self) -> &[String] {
        &self.1
    }

    fn read(&self, _: usize) -> Result<FileContents, String> {
        let bytes = fs::read(&self.0).map_err(|error| error.to_string())?;
        Ok(FileContents::Object(bytes))
    }

    fn read_btf(&self, _: usize, name: &str) -> Option<Arc<Btf<'static>>> {
        let bytes = fs::read(self.0.with_file_name(name)).ok()?;
        Btf::parse(bytes).ok().map(Arc::new)
    }

    fn fault(&self, _: usize, fault: FileFault) -> String {
        fault.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_verdicts_and_costs_of_what_both_judged() {
        let answer = |accepted, insns: &str| Answer {
            accepted,
            insns: insns.to_owned(),
            ..Answer::default()
        };
        let of = |answers: &[(&str, Option<bool>, &str)]| {
            let answers = answers.iter();
            answers
                .map(|(name, accepted, insns)| ((*name).to_owned(), answer(*accepted, insns)))
                .collect::<HashMap<_, _>>()
        };
        let old = of(&[
            ("a", Some(true), "10"),
            ("b", Some(false), "5"),
            ("c", Some(true), "1000"),
            ("d", None, ""),
            ("e", Some(true), "9"),
        ]);
        let new = of(&[
            ("a", Some(false), "10"),
            ("b", Some(true), "9"),
            ("c", Some(true), "400"),
            ("d", Some(true), "9"),
        ]);
        let changed: Vec<String> = changed(&old, &new)
            .into_iter()
            .map(|(name, what)| format!("{name}: {what}"))
            .collect();
        assert_eq!(
            changed,
            [
                "a: accepted to refused",
                "b: refused to accepted",
                "c: 1000 to 400 instructions"
            ]
        );
    }
}

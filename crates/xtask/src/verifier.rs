//! `cargo xtask oracle registry` and `cargo xtask oracle verifier`: how far the
//! registry and the verifier's answers are the running kernel's, written into the
//! tables of docs/verifier.md.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use beebox::verify::{LoadRules, load_each};
use flate2::read::GzDecoder;
use testkit::registry::compare::{Comparison, compare};
use verifier::{Options, Verdict, verify};

use crate::Outcome;

/// The page, and the marks around the parts of it that are written here.
const PAGE: &str = "docs/verifier.md";
const REGISTRY: &str = "registry";
const SCORE: &str = "score";

/// Compares every entry of the built-in registry that can be asked about.
pub(crate) fn ask_about_registry() -> Outcome {
    let kernel = sys::kernel::running()?;
    let types = kernel.btf().ok_or("the running kernel has no BTF")?;
    let registry = profile::linux_6_18_registry(types);
    let comparison = compare(&registry, 1)?;
    for difference in &comparison.differences {
        eprintln!("{difference}");
    }
    if !comparison.differences.is_empty() {
        return Err("the kernel answers differently; nothing was written".into());
    }
    let table = registry_table(&comparison);
    print!("{table}");
    write_part(REGISTRY, &table)
}

fn registry_table(comparison: &Comparison) -> String {
    let mut table = String::from("| entries | compared | differences |\n|---|---:|---:|\n");
    for (kind, count) in &comparison.compared {
        // Writing to a string cannot fail.
        let _ = writeln!(table, "| {kind} | {count} | 0 |");
    }
    let _ = writeln!(
        table,
        "\n{} programs were given to the kernel. Not asked, because this kernel verifies no \
         such programs, and read from the source of Linux 6.18 instead: {}.",
        comparison.questions,
        comparison.unasked.join("; ")
    );
    table
}

/// Verifies the programs of sets of the kernel's selftests and counts how far the
/// answers are those that the kernel gave.
pub(crate) fn score(options: &[&str]) -> Outcome {
    let mut sets = Vec::new();
    let mut core = None;
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let value = options
            .next()
            .ok_or_else(|| format!("{option} wants a value"))?;
        match *option {
            "--set" => sets.push((*value).to_owned()),
            "--programs" => core = Some(read_list(Path::new(value))?),
            _ => return Err(format!("no option {option:?}").into()),
        }
    }
    if sets.is_empty() {
        sets.push("7.2/v3".to_owned());
    }
    let kernel = sys::kernel::running()?;
    let types = kernel.btf().ok_or("the running kernel has no BTF")?;
    let registry = profile::linux_6_18_registry(types);
    let mut table = String::from(
        "| set | programs | answered | verdict agrees | false accepts | false refusals | \
         counts exact (accepted) | last line exact (refused) |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for set in &sets {
        let (release, cpu) = set
            .split_once('/')
            .ok_or("a set is RELEASE/CPU, such as 7.2/v3")?;
        let home = oracle::selftests().join(release);
        let truth = read_truth(&home.join(format!("record-{cpu}/truth.csv")))?;
        let mine = answers(&home.join(format!("obj-{cpu}")), &kernel, &registry)?;
        let all: BTreeSet<&str> = truth.keys().map(String::as_str).collect();
        let lists: Vec<(String, BTreeSet<&str>)> = match &core {
            Some(core) => vec![
                (
                    format!("{set}, core"),
                    all.iter()
                        .copied()
                        .filter(|it| core.contains(*it))
                        .collect(),
                ),
                (
                    format!("{set}, others"),
                    all.iter()
                        .copied()
                        .filter(|it| !core.contains(*it))
                        .collect(),
                ),
            ],
            None => vec![(set.clone(), all)],
        };
        for (name, programs) in lists {
            let _ = writeln!(table, "| {name} {}", count(&programs, &truth, &mine));
        }
    }
    print!("{table}");
    write_part(SCORE, &table)
}

/// What is known of a program's verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Answer {
    /// `None` if there is none.
    accepted: Option<bool>,
    insns: String,
    states: String,
    reason: String,
}

fn count(
    programs: &BTreeSet<&str>,
    truth: &HashMap<String, Answer>,
    mine: &HashMap<String, Answer>,
) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for program in programs {
        let Some(theirs) = truth
            .get(*program)
            .filter(|answer| answer.accepted.is_some())
        else {
            continue;
        };
        let mut note = |what: &'static str, holds: bool| {
            *counts.entry(what).or_default() += usize::from(holds);
        };
        note("all", true);
        let Some(ours) = mine
            .get(*program)
            .filter(|answer| answer.accepted.is_some())
        else {
            continue;
        };
        note("answered", true);
        let agrees = ours.accepted == theirs.accepted;
        note("agrees", agrees);
        note("false accepts", !agrees && ours.accepted == Some(true));
        note("false refusals", !agrees && ours.accepted == Some(false));
        if agrees && ours.accepted == Some(true) {
            note("accepted", true);
            note(
                "counts",
                ours.insns == theirs.insns && ours.states == theirs.states,
            );
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

/// Our answers to every program of a directory of objects.
fn answers(
    directory: &Path,
    kernel: &spec::Kernel,
    registry: &spec::registry::Registry,
) -> Outcome<HashMap<String, Answer>> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".bpf.o"))
        .collect();
    files.sort();
    let rules = LoadRules {
        test_flags: true,
        ..LoadRules::default()
    };
    let options = Options::default();
    let mut all = HashMap::new();
    for path in files {
        let bytes = fs::read(&path)?;
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut visit = |loaded: beebox::verify::Loaded| {
            let Ok(program) = &loaded.program else {
                return;
            };
            // A panic is one program's missing answer.
            let run = AssertUnwindSafe(|| verify(program, kernel, registry, &options));
            let Ok(done) = catch_unwind(run) else {
                return;
            };
            let (accepted, reason) = match done.verdict {
                Verdict::Accepted => (Some(true), String::new()),
                Verdict::Refused(refusal) => (Some(false), refusal.message),
                Verdict::Unsupported(_) | Verdict::Bug(_) => (None, String::new()),
            };
            let answer = Answer {
                accepted,
                insns: done.statistics.insns_processed.to_string(),
                states: done.statistics.total_states.to_string(),
                reason: reason.trim().to_owned(),
            };
            all.insert(format!("{file}/{}", loaded.name), answer);
        };
        // An object that cannot be opened has no answers.
        let _ = load_each(&bytes, &file, kernel, rules, &|_| true, &|_| {}, &mut visit);
    }
    Ok(all)
}

fn read_truth(path: &Path) -> Outcome<HashMap<String, Answer>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut lines = text.lines();
    let headings = cells(lines.next().unwrap_or_default());
    let at = |name: &str| {
        let found = headings.iter().position(|heading| heading == name);
        found.ok_or_else(|| format!("{}: no column {name}", path.display()))
    };
    let columns = [
        at("object")?,
        at("prog")?,
        at("verdict")?,
        at("total_insns")?,
        at("total_states")?,
        at("reason")?,
    ];
    let mut truth = HashMap::new();
    for line in lines {
        let cells = cells(line);
        let cell = |column: usize| cells.get(columns[column]).cloned().unwrap_or_default();
        let answer = Answer {
            accepted: match cell(2).as_str() {
                "accepted" => Some(true),
                "rejected" => Some(false),
                _ => None,
            },
            insns: cell(3),
            states: cell(4),
            reason: cell(5).trim().to_owned(),
        };
        truth.insert(format!("{}/{}", cell(0), cell(1)), answer);
    }
    Ok(truth)
}

/// The cells of a line of comma-separated values.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut rest = line.chars().peekable();
    while let Some(now) = rest.next() {
        match (now, is_quoted, cells.last_mut()) {
            ('"', true, Some(cell)) if rest.peek() == Some(&'"') => {
                rest.next();
                cell.push('"');
            }
            ('"', ..) => is_quoted = !is_quoted,
            (',', false, _) => cells.push(String::new()),
            (other, _, Some(cell)) => cell.push(other),
            (_, _, None) => {}
        }
    }
    cells
}

/// Names of programs, one a line, perhaps packed.
fn read_list(path: &Path) -> Outcome<BTreeSet<String>> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = match bytes.starts_with(&[0x1f, 0x8b]) {
        true => std::io::read_to_string(GzDecoder::new(&bytes[..]))?,
        false => String::from_utf8(bytes)?,
    };
    Ok(text.lines().map(str::to_owned).collect())
}

/// Writes a part of the page, between the marks of its name.
fn write_part(name: &str, text: &str) -> Outcome {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(PAGE);
    let page = fs::read_to_string(&path)?;
    let page =
        replace_part(&page, name, text).ok_or_else(|| format!("{PAGE} has no part {name}"))?;
    fs::write(path, page)?;
    Ok(())
}

fn replace_part(page: &str, name: &str, text: &str) -> Option<String> {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = page.split_once(&start)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{start}{}\n{end}{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_replaced_between_their_marks() {
        let page = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n";
        let new = replace_part(page, "x", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n");
        assert_eq!(replace_part(page, "y", "new"), None);
    }

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

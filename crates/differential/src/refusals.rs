//! The page of the most frequent refusals: for each its smallest program, the kernel's line, the
//! explanation and the edit, from one source with both versions of each program
//! (`testkit/cases/explain/edits/frequent.bpf.c`).
//!
//! A part of the source begins with a comment `refusal: LINE`, where a star stands for what
//! differs, and goes on to the next such comment. Its macros `CHOOSE`, `refuse` and `edit` hold the
//! text of one version or the other.
//!
//! Complexity: quadratic in the lines of a part.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use beebox::internal::program::Program;
use beebox::internal::verify::{ProgramLoader, StandaloneProgram, explain, explanation_text};
use beebox::verify::{Explanation, Options};

use crate::recorded::{cells, read_text};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Recorded answers in which refusals are counted.
const ANSWERS: &[&str] = &[
    "tools/selftests/truth-7.2-v3.csv.gz",
    "tools/selftests/truth-6.12-v3.csv.gz",
    "tools/kernels/truth/truth-7.2-v3-on-6.18.15.csv.gz",
];
const SOURCE: &str = "crates/testkit/cases/explain/edits/frequent.bpf.c";
/// Refusals that are the most frequent ones.
const MOST: usize = 40;
/// Begins a part of the source.
const MARK: &str = "/* refusal: ";

const INTRODUCTION: &str = "\
# The most frequent refusals

Each refusal below has the kernel's line, where `*` stands for what differs, the smallest program that
is refused so, what `beebox verify --explain` says of it, and the edit with which the program is accepted.

The first 40 are the last lines that are most frequent among the refusals which Linux 6.18.44 (the kernel's
tests of Linux 7.2 and 6.12) and Debian's Linux 6.18.15 (those of 7.2) gave to these tests, as
`tools/selftests` and `tools/kernels/truth` record them. Lines that differ in names or numbers are counted
together, and lines that the programs of only one object provoke are left out. The others are lines that
authors of programs ask about, and which the tests have seldom: stack, loops, sleeping helpers, functions
that a kernel lacks. The programs are parts of `crates/testkit/cases/explain/edits/frequent.bpf.c`, whose
line numbers the explanations have; the tests of the project verify both versions of each, and so does the
running kernel.

`cargo xtask refusals` writes this page.
";

/// One refusal of the page.
struct Part {
    /// The kernel's line with stars.
    pattern: String,
    /// Its text with macros.
    text: String,
}

/// The page, from the files of the repository.
///
/// # Errors
/// If a file is missing or damaged, a program is not refused with the line of its part, or a line
/// without a part is more frequent than one of the first 40.
pub fn page() -> Outcome<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = fs::read_to_string(root.join(SOURCE))?;
    let reasons = recorded_reasons(&root)?;
    let explanations = explanations(&root.join(SOURCE).with_extension("o"))?;
    let parts = parts(&source);
    let (counts, others) = counted(&parts, &reasons);
    let mut sections = Vec::new();
    for (part, count) in parts.iter().zip(counts) {
        let name =
            program_name(&part.text).ok_or_else(|| format!("{}: no program", part.pattern))?;
        let explanation = { explanations.get(&name) }.ok_or_else(|| format!("{name}: accepted"))?;
        let line = explanation.refusal.message();
        if !matches(&part.pattern, &line) {
            return Err(format!("{name}: {line:?} is not {:?}", part.pattern).into());
        }
        sections.push((count, section(part, count, explanation)));
    }
    sections.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let least = sections.get(MOST - 1).map_or(0, |(count, _)| *count);
    if let Some((line, count)) = others.iter().find(|(_, count)| *count > least) {
        return Err(
            format!("{line:?} has {count} tests, more than a part of the first {MOST}").into(),
        );
    }
    let mut page = String::from(INTRODUCTION);
    for (number, (_, section)) in (1..).zip(&sections) {
        if number == MOST + 1 {
            page += "\n# Others\n";
        }
        let _ = write!(page, "\n## {number}. {section}");
    }
    Ok(page)
}

/// A refusal as it is recorded.
struct Recorded {
    /// File of the program.
    object: String,
    /// Last line.
    line: String,
}

/// Recorded refusals of each part, and of lines without a part that programs of several objects
/// provoke, alike but for names and numbers. A line belongs to the most specific pattern.
fn counted(parts: &[Part], reasons: &[Recorded]) -> (Vec<usize>, Vec<(String, usize)>) {
    let mut counts = vec![0; parts.len()];
    let mut others: BTreeMap<String, (usize, BTreeSet<&str>)> = BTreeMap::new();
    let letters = |pattern: &str| pattern.chars().filter(|letter| *letter != '*').count();
    for Recorded { object, line } in reasons {
        let found = { parts.iter().enumerate() }
            .filter(|(_, part)| matches(&part.pattern, line))
            .max_by_key(|(_, part)| letters(&part.pattern));
        match found {
            Some((index, _)) => counts[index] += 1,
            None => {
                let other = others.entry(without_names(line)).or_default();
                other.0 += 1;
                other.1.insert(object);
            }
        }
    }
    let others = others
        .into_iter()
        .filter(|(_, (_, objects))| objects.len() > 1);
    let others = others.map(|(line, (count, _))| (line, count));
    (counts, others.collect())
}

/// A line with stars for numbers and for what is quoted.
fn without_names(line: &str) -> String {
    let mut text = String::new();
    for (index, piece) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            text += "'*'";
            continue;
        }
        for letter in piece.chars() {
            match letter.is_ascii_digit() {
                false => text.push(letter),
                true if text.ends_with('*') => {}
                true => text.push('*'),
            }
        }
    }
    text
}

/// All recorded refusals.
fn recorded_reasons(root: &Path) -> Outcome<Vec<Recorded>> {
    let mut reasons = Vec::new();
    for file in ANSWERS {
        let text = read_text(&root.join(file))?;
        let mut lines = text.lines();
        let headings = cells(lines.next().unwrap_or_default());
        let at = |name: &str| {
            let found = headings.iter().position(|heading| heading == name);
            found.ok_or_else(|| format!("{file}: no column {name}"))
        };
        let (object, verdict, reason) = (at("object")?, at("verdict")?, at("reason")?);
        for line in lines {
            let mut cells = cells(line);
            if cells
                .get(verdict)
                .is_some_and(|verdict| verdict == "rejected")
            {
                reasons.push(Recorded {
                    object: std::mem::take(&mut cells[object]),
                    line: cells.swap_remove(reason),
                });
            }
        }
    }
    Ok(reasons)
}

/// Explanations of the programs of an object, by name.
fn explanations(object: &PathBuf) -> Outcome<BTreeMap<String, Explanation>> {
    let kernel = kernel_data::linux_6_18();
    let registry = kernel
        .registry()
        .ok_or("the built-in kernel has no registry")?;
    let mut programs: Vec<(String, Program)> = Vec::new();
    let mut visit = |loaded: StandaloneProgram| {
        if let Ok(program) = loaded.program {
            programs.push((loaded.name.to_string(), program));
        }
    };
    let bytes = fs::read(object)?;
    ProgramLoader::new(&kernel).load_each(&bytes, "frequent", &mut visit)?;
    let explained = programs.into_iter().filter_map(|(name, program)| {
        let explanation = explain(&program, &kernel, registry, &Options::default())?;
        Some((name, explanation))
    });
    Ok(explained.collect())
}

/// The parts of the source.
fn parts(source: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for text in source.split(MARK).skip(1) {
        let Some((pattern, text)) = text.split_once(" */\n") else {
            continue;
        };
        let text = text.split("char LICENSE").next().unwrap_or_default();
        parts.push(Part {
            pattern: pattern.to_owned(),
            text: text.trim().to_owned(),
        });
    }
    parts
}

/// Name of the program of a part: that of the comment `refused NAME: …`.
fn program_name(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("/* refused ")?;
    Some(rest.split_once(':')?.0.to_owned())
}

fn section(part: &Part, count: usize, explanation: &Explanation) -> String {
    let refused = version(&part.text, false);
    let edited = version(&part.text, true);
    let text = explanation_text(explanation);
    let shown = text.lines().map(|line| version(line, false));
    let shown: Vec<String> = shown.filter(|line| !line.is_empty()).collect();
    let tests = match count {
        0 => String::from("Asked about by authors of programs; none of the tests has it."),
        1 => String::from("1 test."),
        count => format!("{count} tests."),
    };
    let mut section = format!("`{}`\n\n{tests}\n\n", part.pattern);
    let _ = write!(section, "```c\n{refused}\n```\n\n");
    let _ = write!(section, "```text\n{}\n```\n\n", shown.join("\n"));
    let _ = write!(section, "```diff\n{}```\n", difference(&refused, &edited));
    section
}

/// True if a line is one of a pattern, in which a star stands for any text.
fn matches(pattern: &str, line: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        let Some((_, behind)) = rest.split_once(piece) else {
            return false;
        };
        rest = behind;
    }
    rest.ends_with(last)
}

/// One version of a text: macros expanded, comments for tests left out, and lines that become
/// empty by that.
fn version(text: &str, is_edited: bool) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let code = line.split(" /* refused ").next().unwrap_or_default();
        let code = expand(code, is_edited);
        let code = code.trim_end();
        if !code.trim().is_empty() || line.trim().is_empty() {
            lines.push(code.replace('\t', "    "));
        }
    }
    lines.join("\n")
}

/// A text with its macros expanded.
fn expand(text: &str, is_edited: bool) -> String {
    const MACROS: [&str; 3] = ["CHOOSE(", "refuse(", "edit("];
    let starts = MACROS
        .iter()
        .filter_map(|name| Some((text.find(name)?, *name)));
    let Some((start, name)) = starts.min() else {
        return text.to_owned();
    };
    let (before, inside) = (&text[..start], &text[start + name.len()..]);
    let Some((first, second, after)) = arguments(inside) else {
        return text.to_owned();
    };
    let whole = match second {
        Some(second) => format!("{first},{second}"),
        None => first.to_owned(),
    };
    let kept = match (name, is_edited) {
        ("CHOOSE(", false) => first.to_owned(),
        ("CHOOSE(", true) => second.unwrap_or_default().trim_start().to_owned(),
        ("refuse(", false) | ("edit(", true) => whole,
        _ => String::new(),
    };
    let before = match kept.is_empty() && after.starts_with([';', ',', ')']) {
        true => before.trim_end_matches(' '),
        false => before,
    };
    format!(
        "{before}{}{}",
        expand(&kept, is_edited),
        expand(after, is_edited)
    )
}

/// The text up to the first comma outside of parentheses, that up to the parenthesis which closes,
/// and what is behind it.
fn arguments(text: &str) -> Option<(&str, Option<&str>, &str)> {
    let (mut depth, mut is_quoted, mut comma) = (0, false, None);
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '{' | '[' => depth += 1,
            ')' if depth == 0 => {
                let first = &text[..comma.unwrap_or(at)];
                let second = comma.map(|comma| &text[comma + 1..at]);
                return Some((first, second, &text[at + 1..]));
            }
            ')' | '}' | ']' => depth -= 1,
            ',' if depth == 0 && comma.is_none() => comma = Some(at),
            _ => {}
        }
    }
    None
}

/// The lines that differ, with one line around them, by the longest common subsequence.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut common = vec![vec![0usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = match old[i] == new[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines: Vec<(char, &str)> = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    let is_shown = |at: usize| {
        let around = at.saturating_sub(1)..(at + 2).min(lines.len());
        lines[around].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut text = String::new();
    let mut last = None;
    for (at, (mark, line)) in lines.iter().enumerate().filter(|(at, _)| is_shown(*at)) {
        if last.is_some_and(|last| last + 1 != at) {
            text += "@@\n";
        }
        last = Some(at);
        let _ = writeln!(text, "{}", format!("{mark}{line}").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{expand, matches, without_names};

    #[test]
    fn lines_that_differ_in_names_and_numbers_are_alike() {
        let line = "R12 invalid mem access 'map_value' at 0x10";
        assert_eq!(without_names(line), "R* invalid mem access '*' at *x*");
    }

    #[test]
    fn stars_stand_for_any_text() {
        assert!(matches(
            "R* type=* expected=*",
            "R1 type=scalar expected=fp, pkt"
        ));
        assert!(matches("div by zero", "div by zero"));
        assert!(!matches("div by zero", "div by zero."));
        assert!(!matches("R* !read_ok", "R1 !read_okay"));
    }

    #[test]
    fn macros_hold_one_version_or_the_other() {
        let text = "f(CHOOSE((void *)&a, \"x)\"), n edit(, 0)); refuse(g(1, 2);)";
        assert_eq!(expand(text, false), "f((void *)&a, n); g(1, 2);");
        assert_eq!(expand(text, true), "f(\"x)\", n , 0); ");
    }
}

//! Kinds of programs, maps, registers and instructions have names: their numbers are compared nowhere, and what
//! several places know of them is a column of a table.

use std::collections::BTreeSet;
use std::path::Path;

use crate::workspace::{Faults, is_test, sources, without_tests};

/// Program types, attach types, map kinds, types of registers, flags, helpers and opcodes have
/// names in `spec` and `isa`: the verifier and what lowers its programs compare no number of
/// one, and list none.
#[test]
fn kinds_are_named() {
    const NUMBERS: [&str; 9] = [
        "kind.number() ",
        "kind().number() ",
        "map_type ==",
        "map_type()",
        "TypeFlags(",
        "MapFlags(",
        "flags.0 &",
        "imm == 1",
        "attach == 2",
    ];
    // Sizes of numbers are listed, too: powers of two.
    let is_listed = |code: &str| {
        let trim = |word: &str| {
            word.trim_matches(|letter: char| "(),".contains(letter))
                .parse()
        };
        let words: Vec<&str> = code.split_whitespace().collect();
        let mut pairs = words.windows(3).filter(|words| words[1] == "|");
        !code.contains("<<")
            && pairs.any(|words| match (trim(words[0]), trim(words[2])) {
                (Ok(one), Ok(other)) => [one, other].iter().any(|n: &u64| n.count_ones() > 1),
                _ => false,
            })
    };
    // A new kind is decided in each match; `spec` has their rows, and there a default is one.
    const POINTERS: [&str; 5] = [
        "RegKind::",
        "RegBase::",
        "PointerKind::",
        "StackObjectKind::",
        "KfuncArgKind::",
    ];
    const KINDS: [&str; 5] = [
        "MapKind::",
        "ProgramType::",
        "AttachType::",
        "HookKind::",
        "HelperRule::",
    ];
    let mut faults = Faults::default();
    const BELOW: [&str; 6] = ["program", "object", "interp", "jit", "vm", "kernel"];
    const ABOVE: [&str; 4] = ["beebox", "capi", "report", "trace"];
    for (name, path, source) in sources() {
        let is_verifier = ["verifier", "lower"].contains(&&*name);
        let (is_below, is_above) = (BELOW.contains(&&*name), ABOVE.contains(&&*name));
        if is_test(&path) || !is_verifier && !is_below && !is_above {
            continue;
        }
        check_opcodes(&path, &source, &mut faults);
        check_lists(&path, &source, &KINDS, &mut faults);
        if is_above {
            continue;
        }
        check_defaults(&path, &source, &KINDS, &mut faults);
        if !is_verifier {
            continue;
        }
        check_defaults(&path, &source, &POINTERS, &mut faults);
        for (line, at) in without_tests(&source).lines().zip(1..) {
            let code = line.split("//").next().unwrap();
            let number = NUMBERS.iter().find(|number| code.contains(**number));
            faults.note(number.is_none() && !is_listed(code), || {
                format!(
                    "{}:{at}: a kind is a number: {}",
                    path.display(),
                    line.trim()
                )
            });
        }
    }
}

/// Notes where opcodes are compared: `isa` has their properties as functions and columns.
fn check_opcodes(path: &Path, source: &str, faults: &mut Faults) {
    const COMPARED: [&str; 4] = [".code == ", ".code != ", ".code & ", ".code {"];
    for (line, at) in without_tests(source).lines().zip(1..) {
        let code = line.split("//").next().unwrap();
        let is_compared = COMPARED.iter().any(|word| code.contains(word))
            || code.contains("matches!(") && code.contains(".code,");
        // Results of programs are codes, too.
        let is_opcode = ["insn", "slot", "raw", "first", "second", "high"];
        let is_opcode = is_opcode
            .iter()
            .any(|name| code.contains(&format!("{name}.code")));
        faults.note(!(is_compared && is_opcode), || {
            format!(
                "{}:{at}: an opcode is compared: {}",
                path.display(),
                line.trim()
            )
        });
    }
}

/// Lists of kinds that are the rule of a place, not a property of kinds: the file, and the first one.
const LISTS: &[(&str, &str)] = &[
    // Words that are left out, since nearly all types have them.
    ("report/src/kfuncs.rs", "ProgramType::LircMode2"),
    // Programs that bpf(2) does not test-run.
    (
        "beebox/src/internal/run/prepared.rs",
        "AttachType::XdpDevmap",
    ),
    // What Linux 6.18 has of programs of tracepoints alone.
    ("verifier/src/attach.rs", "ProgramType::Tracepoint"),
    // Programs that `freplace` does not extend.
    ("verifier/src/attach/program.rs", "HookKind::Fentry"),
];

/// Notes where several kinds are listed, by `matches!`, comparisons or an array: a column of their
/// table says what they have in common, which a new kind has to state.
fn check_lists(path: &Path, source: &str, enums: &[&str], faults: &mut Faults) {
    let code: Vec<&str> = without_tests(source)
        .lines()
        .map(|line| line.split("//").next().unwrap())
        .collect();
    let words: Vec<String> = code.iter().flat_map(|line| words_of(line)).collect();
    // The end of `matches!`, at which its brackets are closed.
    let mut matches_until = 0;
    for (at, word) in words.iter().enumerate() {
        if word.ends_with("matches!") {
            let mut depth = 0;
            let mut rest = words[at + 1..].iter();
            let end = rest.position(|word| {
                depth += i32::from(word == "(") - i32::from(word == ")");
                depth == 0
            });
            matches_until = at + 1 + end.unwrap_or(0);
        }
        let is_variant = |word: &str, kind: &str| {
            let name = word.strip_prefix(kind);
            name.is_some_and(|name| name.starts_with(char::is_uppercase))
        };
        let Some(kind) = enums.iter().find(|kind| is_variant(word, kind)) else {
            continue;
        };
        let is_other = |word: &&String| is_variant(word, kind);
        let mut after = words[at + 1..].iter().filter(|word| *word != ")");
        let (next, second) = (after.next(), after.next());
        let has_next = |sign: &str| next.is_some_and(|word| word == sign);
        let before = at.checked_sub(1).map(|at| words[at].as_str());
        let is_alternative = has_next("|") && second.is_some_and(|word| is_other(&word));
        let is_element =
            before == Some("[") && has_next(",") && second.is_some_and(|word| is_other(&word));
        // `a == K::A || a == K::B`, and the same with `!=` and `&&`.
        let is_compared = |sign: &str, joined: &str| {
            let end = |word: &&String| !["&&", "||", ";", "{", "}"].contains(&word.as_str());
            let rest: Vec<&String> = after.clone().take_while(end).collect();
            let has_before = before == Some(sign) || before == Some("(");
            let signs = rest.iter().chain(second.iter()).any(|word| *word == sign);
            has_before && has_next(joined) && signs && rest.iter().any(is_other)
        };
        let is_list = at < matches_until && is_alternative
            || is_element
            || is_compared("==", "||")
            || is_compared("!=", "&&");
        let is_known = LISTS
            .iter()
            .any(|(file, first)| path.ends_with(Path::new(file)) && word == first);
        faults.note(!is_list || is_known, || {
            format!(
                "{}: a list of kinds from {word} on is a column",
                path.display()
            )
        });
    }
}

#[test]
fn lists_of_kinds_are_found() {
    let is_list = |code: &str| {
        let mut faults = Faults::default();
        check_lists(Path::new("x.rs"), code, &["MapKind::"], &mut faults);
        !std::mem::take(&mut faults.0).is_empty()
    };
    assert!(is_list(
        "!matches!(kind, Some(MapKind::Array | MapKind::Hash))"
    ));
    assert!(is_list(
        "kind == MapKind::Array\n    || kind == MapKind::Hash"
    ));
    assert!(is_list(
        "a != Some(MapKind::Array) && b != Some(MapKind::Hash)"
    ));
    assert!(is_list(
        "const X: &[MapKind] = &[\n    MapKind::Array,\n    MapKind::Hash,\n];"
    ));
    assert!(!is_list(
        "match kind {\n    MapKind::Array | MapKind::Hash => 1,\n}"
    ));
    assert!(!is_list(
        "matches!(kind, MapKind::Array) || kind.is_percpu()"
    ));
    assert!(!is_list(
        "kind.is_some_and(MapKind::is_lru) || kind == Some(MapKind::Array)"
    ));
}

/// The words and signs of a line of code.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in line.split_whitespace() {
        let mut word = String::new();
        for letter in part.chars() {
            match letter {
                '(' | ')' | '[' | ']' | ',' | ';' => {
                    words.push(std::mem::take(&mut word));
                    words.push(letter.to_string());
                }
                letter => word.push(letter),
            }
        }
        words.push(word);
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Notes the matches on one of these enums that have a default, but for one that is an error.
fn check_defaults(path: &Path, source: &str, enums: &[&str], faults: &mut Faults) {
    // Columns at which a match on one of them has its arms.
    let mut arms = BTreeSet::new();
    for (line, at) in without_tests(source).lines().zip(1..) {
        let code = line.trim_start();
        let column = line.len() - code.len();
        if code.is_empty() {
            continue;
        }
        arms.retain(|&arm| arm <= column);
        let pattern = code.trim_start_matches("Some(");
        if enums.iter().any(|kind| pattern.starts_with(kind)) && code.contains("=>") {
            arms.insert(column);
        }
        let is_error = code.starts_with("_ => Err(") || code.starts_with("_ => return Err(");
        let is_catch_all = code.starts_with("_ =>") || code.starts_with("_ if ");
        faults.note(!is_catch_all || is_error || !arms.contains(&column), || {
            format!(
                "{}:{at}: a match on kinds that does not name all",
                path.display()
            )
        });
    }
}

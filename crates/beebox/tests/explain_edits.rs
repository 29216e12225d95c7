//! Refused programs in C with the line, the cause and the edit that are right, in comments of
//! the source; the same programs with the edit verify. The kernel gives both answers too.
//!
//! A comment `refused PROGRAM: CAUSE | WORDS` stands on the refused line, with words of the
//! explanation; `refused PROGRAM with CAPABILITIES: …` is a program that the capabilities named
//! in the explanation let through, as it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use beebox::Kernel;
use beebox::internal::kernel::files::running_with_registry;
use beebox::internal::program::Program;
use beebox::internal::verify::reason::Capability;
use beebox::internal::verify::{ProgramLoader, explain, verify};
use beebox::verify::{Explanation, Options, Verdict};
use kernel_client::verdict::refusal_of_kernel;
use spec::kernel::{Privileges, Source};
use spec::programs::{AttachType, ProgramType};

/// What the comments say of a program.
struct Expected {
    line: u32,
    privileges: Privileges,
    cause: String,
    words: Vec<String>,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/cases/explain/edits")
}

/// The sources, without their extension.
fn sources() -> Vec<PathBuf> {
    let entries = fs::read_dir(directory()).expect("the programs");
    let mut sources: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a file").path())
        .filter_map(|path| Some(PathBuf::from(path.to_str()?.strip_suffix(".bpf.c")?)))
        .collect();
    sources.sort();
    sources
}

fn expected(source: &Path) -> BTreeMap<String, Expected> {
    let text = fs::read_to_string(source.with_extension("bpf.c")).expect("a source");
    let mut all = BTreeMap::new();
    for (line, text) in (1..).zip(text.lines()) {
        let Some((_, comment)) = text.split_once("/* refused ") else {
            continue;
        };
        let comment = comment
            .strip_suffix(" */")
            .expect("the comment ends the line");
        let (program, rest) = comment.split_once(": ").expect("a program and a cause");
        let (program, privileges) = match program.split_once(" with ") {
            Some((program, privileges)) => (program, privileges.parse().expect("privileges")),
            None => (program, Privileges::ALL),
        };
        let mut words = rest.split(" | ").map(str::to_owned);
        let expected = Expected {
            line,
            privileges,
            cause: words.next().expect("a cause"),
            words: words.collect(),
        };
        assert!(
            all.insert(program.to_owned(), expected).is_none(),
            "{program} twice"
        );
    }
    all
}

/// The programs of an object, by name.
fn programs(object: &Path, kernel: &Kernel) -> BTreeMap<String, Program> {
    let bytes = fs::read(object).unwrap_or_else(|error| panic!("{}: {error}", object.display()));
    let mut programs = BTreeMap::new();
    let mut visit = |loaded: beebox::internal::verify::StandaloneProgram| {
        let program = loaded.program.expect("a program that links");
        programs.insert(loaded.name.to_string(), program);
    };
    ProgramLoader::new(kernel)
        .load_each(&bytes, "explain", &mut visit)
        .expect("an object that opens");
    programs
}

/// What differs from the comment, if something does.
fn difference(expected: &Expected, explanation: &Explanation) -> Option<String> {
    let json = report::explain::json(explanation);
    // The source lines are left out, as they hold the comments.
    let texts = [&json["headline"], &json["needed"]].into_iter();
    let texts = texts.chain(json["help"].as_array().into_iter().flatten());
    let origin = json["provenance"].as_array().into_iter().flatten();
    let texts: Vec<&str> = { texts.chain(origin.map(|note| &note["text"])) }
        .filter_map(|text| text.as_str())
        .collect();
    let text = texts.join("\n");
    let line = json["place"]["source"]["line"]
        .as_u64()
        .map(|line| line as u32);
    let cause = json["cause"].as_str().expect("a cause");
    let is_program = explanation.place.is_none();
    let missing: Vec<&String> = { expected.words.iter() }
        .filter(|words| !text.contains(words.as_str()))
        .collect();
    let is_right = cause == expected.cause
        && (is_program || line == Some(expected.line))
        && missing.is_empty();
    (!is_right).then(|| {
        format!(
            "expected line {} and {}, without {missing:?}:\n{text}",
            expected.line, expected.cause
        )
    })
}

fn with(capability: Capability, mut privileges: Privileges) -> Privileges {
    match capability {
        Capability::Bpf => privileges.bpf = true,
        Capability::Perfmon => privileges.perfmon = true,
        Capability::NetAdmin => privileges.net_admin = true,
    }
    privileges
}

#[oracle::test]
fn explanations_have_line_cause_and_edit() {
    let all = kernel_data::linux_6_18_minimal();
    let registry = all.registry().expect("the built-in kernel has one");
    let (mut count, mut wrong) = (0, Vec::new());
    for source in sources() {
        let mut expected = expected(&source);
        for (name, program) in programs(&source.with_extension("bpf.o"), &all) {
            let place = format!("{}: {name}", source.display());
            let Some(expected) = expected.remove(&name) else {
                wrong.push(format!("{place}: no comment"));
                continue;
            };
            let kernel = (all.clone()).with_privileges(expected.privileges, Source::Given);
            let Some(explanation) = explain(&program, &kernel, registry, &Options::default())
            else {
                wrong.push(format!("{place}: accepted"));
                continue;
            };
            count += 1;
            let found = difference(&expected, &explanation);
            wrong.extend(found.map(|found| format!("{place}: {found}")));
            if expected.privileges == Privileges::ALL {
                assert!(explanation.missing.is_none(), "{place}");
                continue;
            }
            let Some(missing) = explanation.missing else {
                wrong.push(format!("{place}: no capability"));
                continue;
            };
            let accepted_with = missing.accepted_with.expect("all are accepted");
            let privileges = { accepted_with.into_iter() }
                .fold(expected.privileges, |held, one| with(one, held));
            let kernel = (all.clone()).with_privileges(privileges, Source::Given);
            let verdict = verify(&program, &kernel, registry, &Options::default()).verdict;
            assert_eq!(verdict, Verdict::Accepted, "{place} with {privileges:?}");
        }
        assert!(
            expected.is_empty(),
            "{}: {:?}",
            source.display(),
            expected.keys()
        );
    }
    assert!(count >= 290, "{count} programs");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[oracle::test]
fn edited_programs_verify() {
    let kernel = kernel_data::linux_6_18_minimal();
    let registry = kernel.registry().expect("the built-in kernel has one");
    let mut wrong = Vec::new();
    for source in sources() {
        for (name, program) in programs(&source.with_extension("edited.bpf.o"), &kernel) {
            let verdict = verify(&program, &kernel, registry, &Options::default()).verdict;
            if verdict != Verdict::Accepted {
                wrong.push(format!("{}: {name}: {verdict:?}", source.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// True for programs that this kernel loads only with trampolines, or for a program that it
/// replaces.
fn needs_trampolines(program: &Program) -> bool {
    let is_entry = matches!(
        AttachType::from_number(program.expected_attach_type()),
        Some(AttachType::TraceFentry | AttachType::TraceFexit | AttachType::ModifyReturn)
    );
    match program.kind() {
        ProgramType::Lsm | ProgramType::Ext => true,
        ProgramType::Tracing => is_entry,
        _ => false,
    }
}

/// Error number and last line of a refusal.
fn refusal(program: &Program, kernel: &Kernel) -> Option<(i32, String)> {
    let registry = kernel.registry().expect("the kernel has a registry");
    match verify(program, kernel, registry, &Options::default()).verdict {
        Verdict::Refused(refusal) => Some((refusal.errno.0, refusal.message())),
        Verdict::Accepted => None,
        other => panic!("no verdict: {other:?}"),
    }
}

#[oracle::test]
fn the_kernel_answers_alike() {
    // Its own types, as ids of types are in programs.
    let kernel = match kernel_client::kernel_release() {
        Ok(_) => running_with_registry().expect("the running kernel"),
        Err(_) => kernel_data::linux_6_18_minimal(),
    };
    let mut differ = Vec::new();
    for source in sources() {
        for extension in ["bpf.o", "edited.bpf.o"] {
            for (name, program) in programs(&source.with_extension(extension), &kernel) {
                if needs_trampolines(&program) {
                    continue;
                }
                let ours = refusal(&program, &kernel);
                if let Some(answer) =
                    oracle::found("explained programs", refusal_of_kernel(&program))
                    && answer != ours
                {
                    differ.push(format!(
                        "{}.{extension}: {name}: the kernel {answer:?}, ours {ours:?}",
                        source.display()
                    ));
                }
            }
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// A line without its large numbers: ids of types and offsets in structures, which differ between
/// builds of a kernel.
fn without_large_numbers(line: &str) -> String {
    let mut text = String::new();
    let mut digits = String::new();
    for letter in line.chars().chain(['\n']) {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        text += if digits.len() < 3 { &digits } else { "N" };
        digits.clear();
        text.push(letter);
    }
    text.trim_end().to_owned()
}

/// Programs to which 6.18.15 had another last line than 6.18.44, which Beebox follows.
const CHANGED_SINCE: &[&str] = &[
    // The kernel named the instruction `exit` where `bpf_throw` ended the program.
    "iterators.bpf.o thrown_inside",
    "returns.bpf.o thrown_with_task",
    "sections.bpf.o throw_under_rcu",
];

/// What Debian's Linux 6.18.15 answered, which runs programs by trampolines; a line for each
/// program, as `OBJECT PROGRAM accepted` or `OBJECT PROGRAM ERRNO LAST LINE`.
#[oracle::test]
fn another_kernel_answered_alike() {
    let kernel = kernel_data::linux_6_18();
    let recorded = fs::read_to_string(directory().join("linux-6.18.15.txt")).expect("the answers");
    let mut recorded: BTreeMap<String, &str> = { recorded.lines() }
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (object, rest) = line.split_once(' ')?;
            let (program, answer) = rest.split_once(' ')?;
            Some((format!("{object} {program}"), answer))
        })
        .collect();
    let mut differ = Vec::new();
    for source in sources() {
        for extension in ["bpf.o", "edited.bpf.o"] {
            let file = source.with_extension(extension);
            let object = file
                .file_name()
                .expect("a file")
                .to_string_lossy()
                .into_owned();
            for (name, program) in programs(&file, &kernel) {
                let Some(answer) = recorded.remove(&format!("{object} {name}")) else {
                    if needs_trampolines(&program) {
                        differ.push(format!("{object} {name}: not recorded"));
                    }
                    continue;
                };
                let ours = match refusal(&program, &kernel) {
                    None => String::from("accepted"),
                    Some((errno, line)) => format!("{errno} {line}"),
                };
                let is_same = without_large_numbers(&ours) == without_large_numbers(answer);
                let is_known = CHANGED_SINCE.contains(&&*format!("{object} {name}"));
                if is_same == is_known {
                    differ.push(format!("{object} {name}: {answer:?} there, ours {ours:?}"));
                }
            }
        }
    }
    differ.extend(
        recorded
            .keys()
            .map(|program| format!("{program}: no program")),
    );
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

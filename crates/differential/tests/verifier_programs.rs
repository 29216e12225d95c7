//! Programs of which a verifier once answered wrongly: `cases/unsound` has those that
//! kernels accepted, each with the fix it is about, `cases/differences` those of which
//! ours did not answer as the kernel; and of rules that were read in the kernel's source:
//! `cases/fields` has special fields of map values, `cases/objects` objects that programs allocate,
//! `cases/tail-calls` what a tail call needs. Our answer is the one that the kernel gave when the
//! case was recorded, and the one that the running kernel gives: verdict, error number,
//! last line and counts.
//!
//! `UPDATE_EXPECT` in the environment records the running kernel's answers instead.

use std::fs;
use std::path::{Path, PathBuf};

use beebox_differential::verifier::VerifierPair;
use btf::Kind;
use kernel_client::load::may_load;
use kernel_client::verdict::Answer;
use program::case::{Case, KernelAnswer};
use spec::Kernel;
use spec::kernel::{Privileges, Source};

pub(crate) fn case_files(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testkit")
        .join(directory);
    let entries = fs::read_dir(directory).expect("the cases");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

/// Error number, and the lines of the log that a case has of an answer.
fn lines(answer: &Answer) -> (Option<i32>, Vec<String>) {
    let errno = (!answer.is_accepted()).then_some(answer.errno);
    let reason = errno.map(|_| answer.reason.clone());
    let counts = answer.counts.filter(|counts| counts.insns != 0);
    let counts = counts.map(|counts| counts.to_string());
    (errno, reason.into_iter().chain(counts).collect())
}

fn recorded(answer: &KernelAnswer) -> (Option<i32>, Vec<String>) {
    (answer.errno, answer.log.clone())
}

/// The text with the answer in front of the first subprogram.
fn with_answer(text: &str, (errno, log): &(Option<i32>, Vec<String>)) -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let release = release.split('-').next().expect("a version").trim();
    let verdict = match errno {
        None => "accepted".to_owned(),
        Some(errno) => format!("refused {errno}"),
    };
    let lines: String = log
        .iter()
        .map(|line| format!("    .log {line:?}\n"))
        .collect();
    let block = format!(".kernel {release:?} {verdict}\n{lines}.end\n");
    let mut plain = String::new();
    let mut skipping = false;
    for line in text.lines() {
        skipping |= line.starts_with(".kernel ");
        if !skipping {
            if line.starts_with(".subprog ") && !plain.contains(".kernel ") {
                plain += &block;
            }
            plain += line;
            plain.push('\n');
        }
        skipping &= line != ".end";
    }
    plain
}

/// What a case names in place of a BTF id, which each kernel has its own of: the text before the name, how
/// the name begins, the text behind it, the kind of the type.
const NAMED: [(&str, &str, char, Kind); 2] = [
    ("call kfunc(", "bpf_", ')', Kind::Func),
    (".attach btf_id=", "btf_trace_", ' ', Kind::Typedef),
];

/// A line that names a type of the kernel: the text before the name, the name, the text after it.
fn named(line: &str) -> Option<(&str, &str, &str, Kind)> {
    NAMED.iter().find_map(|&(before, prefix, end, kind)| {
        let start = line.find(before)? + before.len();
        let (name, _) = line[start..].split_once(end)?;
        let behind = start + name.len();
        name.starts_with(prefix)
            .then(|| (&line[..start], name, &line[behind..], kind))
    })
}

/// The text of a case with the BTF ids that a kernel has of what the case names.
pub(crate) fn with_ids(text: &str, kernel: &Kernel) -> String {
    let line = |line: &str| {
        let Some((before, name, behind, kind)) = named(line) else {
            return format!("{line}\n");
        };
        let types = kernel.btf().expect("types of the kernel");
        let found = types.find(kind, name);
        let id = found.unwrap_or_else(|| panic!("no {name}")).id();
        format!("{before}{}{behind}\n", id.0)
    };
    text.lines().map(line).collect()
}

/// Compares the answers to the cases of a directory. Returns how many there are, and what
/// differs.
fn compare(directory: &str, built_in: &Kernel) -> (usize, Vec<String>) {
    let registry = built_in.registry().expect("the built-in kernel has one");
    let mut judges = VerifierPair::new(built_in, registry).expect("a caller with all privileges");
    let mut differ = Vec::new();
    let files = case_files(directory);
    for file in &files {
        let text = fs::read_to_string(file).expect("a case");
        let parse = |kernel: &Kernel| {
            let case = Case::parse(&with_ids(&text, kernel));
            case.unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        };
        let case = parse(built_in);
        let name = case.program.name();
        let ours = judges.ours(&case.program);
        let ours = lines(&ours.unwrap_or_else(|what| panic!("{name}: {what}")));
        let kernels = match text.lines().any(|line| named(line).is_some()) {
            true => sys::kernel::running()
                .map_err(|error| error.to_string())
                .and_then(|running| judges.kernel(&parse(&running).program)),
            false => judges.kernel(&case.program),
        };
        let kernels = kernels.map(|answer| lines(&answer));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            let answer = kernels.clone().expect("a kernel to ask");
            fs::write(file, with_answer(&text, &answer)).expect("a written case");
        } else {
            assert_eq!(case.answers.len(), 1, "{name}: one answer is recorded");
            if recorded(&case.answers[0]) != ours {
                let recorded = &case.answers[0];
                differ.push(format!("{name}: recorded {recorded:?}, ours {ours:?}"));
            }
        }
        if let Some(kernels) = oracle::found("cases of the verifier", kernels)
            && kernels != ours
        {
            differ.push(format!("{name}: the kernel {kernels:?}, ours {ours:?}"));
        }
    }
    (files.len(), differ)
}

#[oracle::test]
fn programs_that_once_were_accepted_wrongly_get_the_kernels_answer() {
    let (count, differ) = compare("cases/unsound", &kernel_data::linux_6_18_minimal());
    assert!(count >= 46, "{count} cases");
    assert!(differ.is_empty(), "{differ:#?}");
}

#[oracle::test]
fn programs_that_showed_a_difference_get_the_kernels_answer() {
    let (count, differ) = compare("cases/differences", &kernel_data::linux_6_18_minimal());
    assert!(count >= 15, "{count} cases");
    assert!(differ.is_empty(), "{differ:#?}");
}

#[oracle::test]
fn callers_without_privileges_get_the_kernels_answer() {
    // Only a caller with privileges can leave them.
    if oracle::found("callers without privileges", may_load()).is_none() {
        return;
    }
    let built_in = kernel_data::linux_6_18_minimal();
    let kernel = built_in.with_privileges(Privileges::NONE, Source::Given);
    let (count, differ) = compare("cases/unprivileged", &kernel);
    assert!(count >= 16, "{count} cases");
    assert!(differ.is_empty(), "{differ:#?}");
}

#[oracle::test]
fn special_fields_of_map_values_are_those_that_the_kernel_finds() {
    let (count, differ) = compare("cases/fields", &kernel_data::linux_6_18_minimal());
    assert!(count >= 12, "{count} cases");
    assert!(differ.is_empty(), "{differ:#?}");
}

#[oracle::test]
fn objects_on_the_stack_get_the_kernels_answer() {
    let (count, differ) = compare("cases/stack-objects", &kernel_data::linux_6_18_minimal());
    assert!(count >= 21, "{count} cases");
    assert!(differ.is_empty(), "{differ:#?}");
}

#[oracle::test]
fn objects_that_programs_allocate_get_the_kernels_answer() {
    let (count, differ) = compare("cases/objects", &kernel_data::linux_6_18_minimal());
    assert!(count >= 34, "{count} cases");
    assert!(differ.is_empty(), "{differ:#?}");
}

#[oracle::test]
fn tail_calls_are_allowed_where_the_kernel_allows_them() {
    let (count, differ) = compare("cases/tail-calls", &kernel_data::linux_6_18_minimal());
    assert!(count >= 17, "{count} cases");
    assert!(differ.is_empty(), "{differ:#?}");
}

#[oracle::test]
fn exception_callbacks_are_checked_as_in_the_kernel() {
    let (count, differ) = compare("cases/exceptions", &kernel_data::linux_6_18_minimal());
    assert!(count >= 14, "{count} cases");
    assert!(differ.is_empty(), "{differ:#?}");
}

/// Linux adds a callback to a program that throws and has none, with a stack of its own: the running
/// kernel said so of this program.
#[oracle::test]
fn the_default_callback_of_exceptions_has_its_stack() {
    let kernel = kernel_data::linux_6_18_minimal();
    let registry = kernel.registry().expect("the built-in kernel has one");
    let judges = VerifierPair::new(&kernel, registry).expect("a caller with all privileges");
    let depth = |case: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/cases/exceptions");
        let text = fs::read_to_string(path.join(case)).expect("a case");
        // Any cookie is a return value of a tc program.
        let text = text.replace(
            ".type cgroup_skb\n.attach_type cgroup_inet_ingress",
            ".type sched_cls",
        );
        let case = Case::parse(&with_ids(&text, &kernel)).expect("a case");
        let log = judges.our_log(&case.program, 4).expect("an answer");
        let mut lines = log.lines().map(str::to_owned);
        lines.find(|line| line.starts_with("stack depth"))
    };
    assert_eq!(
        depth("default-return.case").as_deref(),
        Some("stack depth 0+0")
    );
    assert_eq!(depth("callback.case").as_deref(), Some("stack depth 0+0"));
}

/// What callers without CAP_PERFMON have: speculative paths are walked, a call that only these reach
/// takes its stack, and addresses of maps are not told.
#[oracle::test]
fn logs_of_callers_without_perfmon_are_those_of_the_kernel() {
    const PROGRAM: &str = r#"
.program "speculative"
.type sched_cls
.license "GPL"
.btf
    [1] INT "int" size=4 bits_offset=0 nr_bits=32 encoding=1
    [2] FUNC_PROTO ret_type_id=1
    [3] FUNC "main" type_id=2 linkage=global
    [4] FUNC "callback" type_id=2 linkage=static
.end
.map "values" type=array key=4 value=48 entries=1
.end
.subprog "main"
.func_info 3
    r7 = map_idx(0) ll
    r8 = 4
    if r8 == 4 goto out
    r1 = 1
    r2 = func(callback) ll
    r3 = 0
    r4 = 0
    call 181
out:
    r0 = 0
    exit
.func_info 4
callback:
    r0 = 0
    exit
"#;
    let privileges: Privileges = "bpf,net_admin".parse().expect("privileges");
    let kernel = kernel_data::linux_6_18_minimal().with_privileges(privileges, Source::Given);
    let registry = kernel.registry().expect("the built-in kernel has one");
    let options = verifier::Options {
        log_level: 6,
        ..verifier::Options::default()
    };
    let case = Case::parse(PROGRAM).expect("a case");
    let log = verifier::verify(&case.program, &kernel, registry, &options).log;
    assert!(log.contains("(18) r7 = 0x0 "), "{log}");
    assert!(log.contains("stack depth 24\n"), "{log}");
}

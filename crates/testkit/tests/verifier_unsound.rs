//! Programs that kernels once accepted wrongly, each with the fix it is about: our answer is the one that the kernel gave when the case was
//! recorded, and the one that the running kernel gives.
//!
//! `BEEBOX_WRITE` in the environment records the running kernel's answers instead.

use std::fs;
use std::path::{Path, PathBuf};

use program::Program;
use program::case::{Case, KernelAnswer};
use spec::Kernel;
use sys::bpf::{Map, MapRequest, ProgLoad, prog_load};
use verifier::{Options, Verdict, verify};

/// Verdict and the last line of a refusal.
type Answer = (Option<i32>, Vec<String>);

fn case_files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/unsound");
    let entries = fs::read_dir(directory).expect("the cases");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

fn ours(program: &Program, kernel: &Kernel) -> Answer {
    let registry = kernel.registry().expect("the built-in kernel has one");
    match verify(program, kernel, registry, &Options::default()).verdict {
        Verdict::Accepted => (None, Vec::new()),
        Verdict::Refused(refusal) => (Some(refusal.errno), vec![refusal.message]),
        other => panic!("{}: {other:?}", program.name()),
    }
}

/// The running kernel's answer; `Err` where it takes no programs from us.
fn kernels(program: &Program) -> Result<Answer, String> {
    let mut maps = Vec::new();
    for map in program.maps() {
        let params = &map.params;
        let request = MapRequest {
            map_type: params.map_type,
            name: &map.name,
            key_size: params.key_size,
            value_size: params.value_size,
            max_entries: params.max_entries,
            flags: params.flags.0,
            ..MapRequest::default()
        };
        maps.push(Map::create(&request).map_err(|errno| format!("no map: {errno}"))?);
    }
    let insns = program.insns_with_map_fds(|map| maps[map.0 as usize].descriptor() as i32);
    let request = ProgLoad {
        log_level: 1,
        log_size: 1 << 20,
        ..ProgLoad::new(program.kind().number(), &insns)
    };
    let mut log = Vec::new();
    match prog_load(&request, &mut log).result {
        Ok(_) => Ok((None, Vec::new())),
        Err(errno) if errno == sys::Errno::EPERM => Err("bpf(2) is not allowed".to_owned()),
        Err(errno) => {
            let log = String::from_utf8_lossy(&log).into_owned();
            let last = log
                .lines()
                .rev()
                .find(|line| !line.starts_with("processed "));
            Ok((Some(errno.0), last.map(str::to_owned).into_iter().collect()))
        }
    }
}

fn recorded(answer: &KernelAnswer) -> Answer {
    (answer.errno, answer.log.clone())
}

/// The text with the answer in front of the first subprogram.
fn with_answer(text: &str, answer: &Answer) -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let release = release.split('-').next().expect("a version").trim();
    let verdict = match answer.0 {
        None => "accepted".to_owned(),
        Some(errno) => format!("refused {errno}"),
    };
    let lines: String = answer
        .1
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

#[test]
fn programs_that_once_were_accepted_wrongly_get_the_kernels_answer() {
    let built_in = profile::linux_6_18();
    let mut differ = Vec::new();
    let mut count = 0;
    for file in case_files() {
        let text = fs::read_to_string(&file).expect("a case");
        let case = Case::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let ours = ours(&case.program, &built_in);
        let name = case.program.name();
        let kernels = kernels(&case.program);
        if std::env::var_os("BEEBOX_WRITE").is_some() {
            let answer = kernels.clone().expect("a kernel to ask");
            fs::write(&file, with_answer(&text, &answer)).expect("a written case");
        } else {
            assert_eq!(case.answers.len(), 1, "{name}: one answer is recorded");
            if recorded(&case.answers[0]) != ours {
                differ.push(format!(
                    "{name}: recorded {:?}, ours {ours:?}",
                    case.answers
                ));
            }
        }
        if let Some(kernels) = oracle::found("cases of the verifier", kernels)
            && kernels != ours
        {
            differ.push(format!("{name}: the kernel {kernels:?}, ours {ours:?}"));
        }
        count += 1;
    }
    assert!(count >= 20, "{count} cases");
    assert!(differ.is_empty(), "{differ:#?}");
}

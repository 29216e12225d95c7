//! Programs that trampolines run, that replace functions of others, and that call functions of modules,
//! beside recorded answers of Debian's Linux 6.18, which loads them: verdict, counts, last line.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beebox::internal::btf::Btf;
use beebox::internal::object::Object;
use beebox::internal::program::Program;
use beebox::internal::verify::{ProgramLoader, verify};
use beebox::verify::{Options, Verdict};
use flate2::read::GzDecoder;
use spec::Kernel;
use spec::kernel::{Module, Source};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/cases/attach")
}

/// The default kernel with the modules whose functions programs call.
fn kernel() -> Kernel {
    let kernel = kernel_data::linux_6_18();
    let base = kernel.btf().expect("the built-in types").clone();
    let module = |name: &str| {
        let path = directory().join(format!("{name}.btf.gz"));
        let mut bytes = Vec::new();
        let mut file = GzDecoder::new(File::open(path).expect("types of a module"));
        file.read_to_end(&mut bytes).expect("compressed types");
        Module {
            name: name.to_owned(),
            btf: Arc::new(Btf::parse_module(bytes, base.clone()).expect("types")),
            kfuncs: None,
        }
    };
    let modules = ["fou", "nf_flow_table", "tcp_bbr"].map(module);
    kernel.with_modules(modules.into(), Source::Given)
}

/// The programs of an object by name; those of a target attach to it.
fn programs(
    kernel: &Kernel,
    object: &str,
    target: Option<&Arc<Program>>,
) -> BTreeMap<String, Program> {
    let file = fs::read(directory().join(format!("{object}.bpf.o"))).expect("an object");
    let change = |object: &mut Object<'_>| {
        if let Some(target) = target {
            object.set_target(target);
        }
    };
    let loader = ProgramLoader::new(kernel).with_change(&change);
    let mut found = BTreeMap::new();
    let visit = &mut |loaded: beebox::internal::verify::StandaloneProgram| {
        let program = loaded.program.expect("a program that links");
        found.insert(loaded.name, program);
    };
    loader
        .load_each(&file, object, visit)
        .expect("an object that opens");
    found
}

/// A last line without numbers of types, which each kernel counts by itself.
fn without_ids(line: &str) -> String {
    match line.split_once("attach_btf_id ") {
        Some((before, rest)) => {
            let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
            format!("{before}attach_btf_id N{rest}")
        }
        None => line.to_owned(),
    }
}

#[oracle::test]
fn answers_are_those_of_a_kernel_with_trampolines() {
    let kernel = kernel();
    let registry = kernel.registry().expect("the built-in kernel has one");
    let target = |object, name| {
        let program = programs(&kernel, object, None).remove(name);
        Arc::new(program.expect("a target"))
    };
    let replaced = target("replaced", "main_program");
    let probed = target("probed", "probed");
    let mut all = BTreeMap::new();
    let objects = [
        ("hooks", None),
        ("scheduler", None),
        ("modules", None),
        ("congestion", None),
        ("replacements", Some(&replaced)),
        ("probes", Some(&probed)),
    ];
    for (object, target) in objects {
        let programs = programs(&kernel, object, target).into_iter();
        all.extend(programs.map(|(name, program)| (format!("{object} | {name}"), program)));
    }
    let answers = fs::read_to_string(directory().join("answers-6.18.15.txt")).expect("answers");
    let mut differ = Vec::new();
    let lines = answers.lines().filter(|line| !line.starts_with('#'));
    for line in lines.clone() {
        let name = all
            .keys()
            .find(|name| line.starts_with(&format!("{name} | ")));
        let name = name.unwrap_or_else(|| panic!("{line}: no such program"));
        let done = verify(&all[name], &kernel, registry, &Options::default());
        let (verdict, reason) = match &done.verdict {
            Verdict::Accepted => ("accepted", String::new()),
            Verdict::Refused(refusal) => ("rejected", without_ids(&refusal.reason())),
            other => ("none", format!("{other:?}")),
        };
        let counts = done.statistics;
        let (insns, states) = (counts.insns_processed, counts.total_states);
        let ours = format!("{name} | {verdict} | {insns} | {states} | {reason}");
        let ours = ours.trim_end_matches([' ', '|']);
        if line.trim_end_matches([' ', '|']) != ours {
            differ.push(format!("{line}\n{ours}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
    assert_eq!(lines.count(), all.len());
}

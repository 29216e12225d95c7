//! The built-in data of Linux 6.18 beside the running kernel: BTF and symbols, and every
//! program of the kernel's own tests linked alone against both. The results must be equal but
//! for BTF ids, which differ where the kernel is another build.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beebox_object::{Object, Referent};
use btf::ext::CoreKind;
use btf::{Btf, Kind};
use isa::ebpf::RawInsn;
use program::AttachTarget;
use spec::Kernel;
use spec::kernel::{Source, SymbolAddress, SymbolTable, Symbols};

/// Maximum share of programs with different results, in percent.
const MAX_DIFFERENT: f64 = 0.1;

/// The release of the build that the built-in data were taken from.
fn build(kernel: &Kernel) -> String {
    let config = kernel.config().expect("a configuration");
    let local = config.value("CONFIG_LOCALVERSION").unwrap_or_default();
    format!("{}{}", kernel_data::RELEASE, local.trim_matches('"'))
}

#[oracle::test]
fn types_and_symbols_are_those_of_the_kernel() {
    let what = "built-in data and the running kernel of that build";
    let kernel = kernel_data::linux_6_18_minimal();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if release.trim() != build(&kernel) {
        oracle::does_not_apply(what, format!("the kernel is {}", release.trim()));
        return;
    }
    let Some(types) = oracle::found(what, running_types()) else {
        return;
    };
    assert!(kernel.btf().unwrap().as_bytes() == types);
    let symbols = kernel.symbols().unwrap();
    // Symbols of modules, and of what runs in the kernel at the time (BPF programs, trampolines
    // of ftrace), are none of the built-in kernel. Their lines name an owner.
    let listed = fs::read_to_string("/proc/kallsyms").unwrap();
    let is_own = |line: &&str| line.split_ascii_whitespace().nth(3).is_none();
    let listed: Vec<&str> = listed.lines().filter(is_own).collect();
    let listed = listed.join("\n");
    assert!(listed.len() > 1 << 20, "{} bytes", listed.len());
    let table = SymbolTable::read(&listed);
    let names = listed
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(2));
    let functions = kernel
        .btf()
        .unwrap()
        .of_kind(Kind::Func)
        .map(|ty| ty.name().to_string());
    let absent = ["init_net", "bpf_no_such_symbol"].map(str::to_owned);
    let names = names.map(str::to_owned).chain(functions).chain(absent);
    for name in names.filter(|name| !name.starts_with("__pfx_")) {
        let (theirs, ours) = (table.address(&name), symbols.address(&name));
        let is_alike = matches!(
            (theirs, ours),
            (SymbolAddress::Missing, SymbolAddress::Missing)
                | (SymbolAddress::At(_), SymbolAddress::At(_))
                | (SymbolAddress::Several(..), SymbolAddress::Several(..))
        );
        assert!(is_alike, "{name}: {theirs:?} {ours:?}");
    }
}

/// The sets of the tests' objects.
const SETS: &[&str] = &["7.2/obj-v3", "7.2/obj-v4", "6.12/obj-v3"];

fn objects(what: &str) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for set in SETS {
        let Some(directory) = oracle::found(what, oracle::selftest_set(set)) else {
            continue;
        };
        let entries = fs::read_dir(directory).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        paths.extend(files.filter(|path| path.extension() == Some("o".as_ref())));
    }
    paths.sort();
    paths
}

/// BTF of the running kernel, if it is Linux 6.18.
fn running_types() -> Result<Vec<u8>, String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if !release.starts_with("6.18.") {
        return Err(format!(
            "the kernel is not Linux 6.18 but {:?}",
            release.trim()
        ));
    }
    let types = "/sys/kernel/btf/vmlinux";
    fs::read(types).map_err(|error| format!("{types}: {error}"))
}

/// Result of linking a program, without BTF ids of the kernel.
#[derive(PartialEq)]
struct Outcome {
    insns: Vec<RawInsn>,
    references: Vec<String>,
    attach_target: Option<AttachTarget>,
    rest: String,
}

fn outcome(object: &Object<'_>, kernel: &Kernel) -> Result<Outcome, String> {
    let linked = object.link(kernel).map_err(|error| error.to_string())?;
    if let Some(unloadable) = linked.unloadable.first() {
        return Err(unloadable.error.to_string());
    }
    let Some(linked) = linked.programs.into_iter().next() else {
        return Err("no program".into());
    };
    let program = &linked.program;
    let mut insns = program.insns().to_vec();
    let mut references = Vec::new();
    for mut reference in linked.references {
        let insn = &mut insns[reference.slot as usize];
        let is_id = match &mut reference.to {
            Referent::Kfunc { id, .. } | Referent::Typed { id, .. } => {
                id.0 = 1;
                true
            }
            Referent::Core(question) => question.kind == CoreKind::TYPE_ID_TARGET,
            _ => false,
        };
        if is_id {
            insn.imm = (insn.imm != 0).into();
        }
        references.push(format!("{reference:?}"));
    }
    let mut attach_target = program.attach_target().cloned();
    if let Some(target) = &mut attach_target {
        target.btf_id.0 = 1;
    }
    let rest = format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {} {}",
        program.kind(),
        program.attach_type(),
        program.flags(),
        program.subprogs(),
        program.func_info(),
        program.line_info(),
        program.license(),
        program.kernel_version(),
    );
    Ok(Outcome {
        insns,
        references,
        attach_target,
        rest,
    })
}

#[oracle::test]
fn programs_link_for_the_built_in_data_as_for_the_kernel() {
    let what = "selftests linked for the built-in and the running kernel";
    let Some(kernel) = oracle::found(what, running_types()) else {
        return;
    };
    let paths = objects(what);
    if paths.is_empty() {
        return;
    }
    let symbols = Symbols::new(|_| SymbolAddress::At(0xffff_ffff_8100_0000));
    let stored = kernel_data::linux_6_18_minimal().with_symbols(symbols, Source::Given);
    let types = Arc::new(Btf::parse(kernel).unwrap());
    let running = stored.clone().with_btf(types, Source::Running);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut different = Vec::new();
    for path in &paths {
        let file = fs::read(path).unwrap();
        let Ok(mut object) = Object::open(&file) else {
            continue;
        };
        let names: Vec<String> = object
            .programs()
            .map(|(_, code)| code.name.to_string())
            .collect();
        for name in names {
            object.set_autoload(|code| code.name == *name);
            let (theirs, ours) = (outcome(&object, &running), outcome(&object, &stored));
            let class = match (&theirs, &ours) {
                (Ok(theirs), Ok(ours)) if theirs == ours => "linked alike",
                (Err(theirs), Err(ours)) if theirs == ours => "refused alike",
                (Ok(_), Ok(_)) => "linked to something else",
                (_, Err(_)) => "refused for the built-in data",
                (Err(_), Ok(_)) => "refused for the kernel",
            };
            *counts.entry(class).or_default() += 1;
            if !class.ends_with("alike") {
                different.push(format!(
                    "{}: {name}: {class}: {}",
                    stem(path),
                    why(&theirs, &ours)
                ));
            }
        }
    }
    eprintln!("{counts:#?}\n{}", different.join("\n"));
    let all: usize = counts.values().sum();
    assert!(all > 4000, "{all} programs");
    assert!(different.len() as f64 <= all as f64 * MAX_DIFFERENT / 100.0);
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn why(theirs: &Result<Outcome, String>, ours: &Result<Outcome, String>) -> String {
    match (theirs, ours) {
        (_, Err(why)) | (Err(why), _) => why.clone(),
        (Ok(theirs), Ok(ours)) => {
            let insns = theirs.insns.iter().zip(&ours.insns);
            let first = insns.zip(0..).find(|((theirs, ours), _)| theirs != ours);
            format!("{first:?}")
        }
    }
}

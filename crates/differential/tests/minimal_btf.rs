//! Minimal BTF: linked against it, objects have the same instructions as against the
//! whole BTF; the kernel accepts it; it is about as large as bpftool's.
//!
//! `BEEBOX_OBJECTS` limits the selftests to those whose path contains it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::{env, fs};

use beebox_differential::objects::selftests::SETS;
use btf::core::{CoreError, Minimal, MinimalBtf, Resolution, Resolver};
use btf::ext::CoreKind;
use btf::{Btf, BtfExt};
use object::elf::Elf;
use object::{LinkedProgram, Object, Referent};
use spec::Kernel;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Objects of this repository below a directory.
fn committed(directory: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![repository().join(directory)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "o") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// BTF and BTF.ext of an object as its compiler wrote them.
fn types(file: &[u8]) -> Option<(Btf<'_>, BtfExt<'_>)> {
    let elf = Elf::parse(file).ok()?;
    let section = |name: &[u8]| elf.section_named(name)?.data().ok();
    let btf = Btf::parse(section(b".BTF")?).ok()?;
    let ext = BtfExt::parse(section(b".BTF.ext")?).ok()?;
    Some((btf, ext))
}

/// Minimal BTF for one object; `None` without relocations. Those that cannot be resolved
/// add nothing.
fn minimal_of(file: &[u8], target: &Btf<'_>) -> Option<Minimal> {
    let (btf, ext) = types(file)?;
    ext.relocations().next()?;
    let mut minimal = MinimalBtf::new(target);
    for group in ext.relocations() {
        for relocation in group.records() {
            // The comparison expects the same error of both.
            let _ = minimal.add_relocation(&btf, &relocation.spec);
        }
    }
    Some(minimal.finish())
}

/// Compares the resolution of every relocation of an object, linkable or not. Returns
/// their number.
fn compare_resolutions(path: &Path, file: &[u8], target: &Btf<'_>, minimal: &Minimal) -> usize {
    let Some((btf, ext)) = types(file) else {
        return 0;
    };
    let small = Btf::parse(&minimal.blob[..]).unwrap();
    let mut whole = Resolver::new(&btf, target);
    let mut reduced = Resolver::new(&btf, &small);
    let mut count = 0;
    for group in ext.relocations() {
        for relocation in group.records() {
            let spec = relocation.spec;
            let mut answer = reduced.resolve(&spec);
            if spec.kind == CoreKind::TYPE_ID_TARGET {
                let old = |id: u64| u64::from(minimal.ids[id as usize].0);
                match &mut answer {
                    Ok(Resolution::Value { value, .. }) => *value = old(*value),
                    Err(CoreError::Answers { first, other }) => {
                        *first = first.map(old);
                        *other = other.map(old);
                    }
                    _ => {}
                }
            }
            let text = whole.describe(&spec).unwrap_or_default();
            let place = format!("{}: {text}", path.display());
            assert_eq!(whole.resolve(&spec), answer, "{place}");
            count += 1;
        }
    }
    count
}

fn with_core(kernel: &Kernel, core: &Arc<Btf<'static>>) -> Kernel {
    kernel.clone().with_core_btf(core.clone())
}

/// Compares one object resolved and linked both ways. Returns the number of CO-RE
/// relocations.
fn compare(path: &Path, file: &[u8], kernel: &Kernel, target: &Arc<Btf<'static>>) -> usize {
    let Some(minimal) = minimal_of(file, target) else {
        return 0;
    };
    let small = Arc::new(Btf::parse(minimal.blob.clone()).unwrap());
    let relocations = compare_resolutions(path, file, target, &minimal);
    let Ok(object) = Object::open(file) else {
        return relocations;
    };
    let whole = object.link(&with_core(kernel, target));
    let reduced = object.link(&with_core(kernel, &small));
    let (whole, reduced) = match (whole, reduced) {
        (Ok(whole), Ok(reduced)) => (whole, reduced),
        (Err(whole), Err(reduced)) => {
            assert_eq!(whole.to_string(), reduced.to_string(), "{}", path.display());
            return relocations;
        }
        (whole, reduced) => panic!("{}: {:?}, {:?}", path.display(), whole.err(), reduced.err()),
    };
    let pairs = whole.programs.iter().zip(&reduced.programs);
    assert_eq!(whole.programs.len(), reduced.programs.len());
    for (whole, reduced) in pairs {
        compare_program(path, whole, reduced, &minimal);
    }
    relocations
}

/// Compares instructions; those that load the id of a type have that of the same type.
fn compare_program(path: &Path, whole: &LinkedProgram, reduced: &LinkedProgram, minimal: &Minimal) {
    let place = format!("{}: {}", path.display(), whole.program.name());
    assert_eq!(whole.references, reduced.references, "{place}");
    let mut insns = reduced.program.insns().to_vec();
    for reference in &whole.references {
        let Referent::Core(spec) = reference.to else {
            continue;
        };
        if spec.kind == CoreKind::TYPE_ID_TARGET {
            let insn = &mut insns[reference.slot as usize];
            insn.imm = minimal.ids[insn.imm as usize].0 as i32;
        }
    }
    assert_eq!(whole.program.insns(), insns, "{place}");
}

#[oracle::test]
fn committed_objects_link_the_same_against_minimal_btf() {
    let kernel = kernel_data::linux_6_18_minimal();
    let target = Arc::new(kernel.btf().unwrap().to_owned());
    let mut relocations = 0;
    for directory in ["crates/object/tests", "examples"] {
        for path in committed(directory) {
            relocations += compare(&path, &fs::read(&path).unwrap(), &kernel, &target);
        }
    }
    // Kernels with moved, renamed, resized and removed fields.
    let path = repository().join("crates/object/tests/core/questions.o");
    let questions = fs::read(&path).unwrap();
    for moved in committed("crates/object/tests/core/targets") {
        let file = fs::read(&moved).unwrap();
        let target = Elf::parse(&file).unwrap();
        let blob = target.section_named(b".BTF").unwrap().data().unwrap();
        let target = Arc::new(Btf::parse(blob.to_vec()).unwrap());
        relocations += compare(&path, &questions, &kernel, &target);
    }
    eprintln!("{relocations} relocations");
    assert!(relocations > 100, "{relocations}");
}

/// Objects of the selftests.
fn selftests() -> Result<Vec<PathBuf>, String> {
    let chosen = env::var("BEEBOX_OBJECTS").unwrap_or_default();
    let mut found = Vec::new();
    for set in SETS {
        found.extend(set.objects().map_err(|error| error.to_string())?);
    }
    found.retain(|path| path.to_string_lossy().contains(&chosen));
    match found.is_empty() {
        true => Err("the selftests are not built".into()),
        false => Ok(found),
    }
}

#[oracle::test]
fn selftests_link_the_same_against_minimal_btf() {
    let Some(objects) = oracle::found("minimal BTF of the selftests", selftests()) else {
        return;
    };
    let kernel = kernel_data::linux_6_18_minimal();
    let target = Arc::new(kernel.btf().unwrap().to_owned());
    let (mut with_relocations, mut relocations) = (0, 0);
    for path in &objects {
        let found = compare(path, &fs::read(path).unwrap(), &kernel, &target);
        with_relocations += usize::from(found > 0);
        relocations += found;
    }
    eprintln!(
        "{relocations} relocations of {with_relocations} of {} objects",
        objects.len()
    );
    assert!(relocations > 0);
}

#[oracle::test]
fn the_kernel_accepts_minimal_btf() {
    let Some(objects) = oracle::found("minimal BTF of the selftests", selftests()) else {
        return;
    };
    let probe = sys::bpf::btf_load(&btf::Builder::new().finish(), sys::bpf::LogLevel::NONE, 0);
    if probe.result == Err(sys::Errno::EPERM) {
        return oracle::skip("the kernel's check of BTF", "BPF_BTF_LOAD is not permitted");
    }
    let kernel = kernel_data::linux_6_18_minimal();
    let target = kernel.btf().unwrap();
    let mut loaded = 0;
    for path in &objects {
        let Some(minimal) = minimal_of(&fs::read(path).unwrap(), target) else {
            continue;
        };
        // The kernel refuses BTF without types.
        if minimal.ids.len() > 1 {
            let answer = sys::bpf::btf_load(&minimal.blob, sys::bpf::LogLevel::LEVEL1, 1 << 16);
            let log = String::from_utf8_lossy(&answer.log);
            assert_eq!(answer.result, Ok(()), "{}: {log}", path.display());
            loaded += 1;
        }
    }
    eprintln!("{loaded} blobs loaded");
    assert!(loaded > 0);
}

#[oracle::test]
fn minimal_btf_is_no_larger_than_that_of_bpftool() {
    let bpftool = oracle::selftest_path("7.2/tools/bpftool");
    let Some(bpftool) = oracle::found("minimal BTF by bpftool", bpftool) else {
        return;
    };
    let Some(objects) = oracle::found("minimal BTF of the selftests", selftests()) else {
        return;
    };
    let kernel = kernel_data::linux_6_18_minimal();
    let target = kernel.btf().unwrap();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let whole = directory.join("whole.btf");
    let output = directory.join("minimal.btf");
    fs::write(&whole, target.as_bytes()).unwrap();
    let (mut ours, mut theirs, mut compared) = (0, 0, 0);
    let mut by_difference = Vec::new();
    // Each run of bpftool indexes the whole BTF: a sample.
    for path in objects.iter().step_by(16) {
        let Some(minimal) = minimal_of(&fs::read(path).unwrap(), target) else {
            continue;
        };
        let run = Command::new(&bpftool)
            .args(["gen", "min_core_btf"])
            .args([&whole, &output, path])
            .stderr(Stdio::null())
            .status();
        if !run.unwrap().success() {
            continue;
        }
        let len = fs::metadata(&output).unwrap().len() as usize;
        ours += minimal.blob.len();
        theirs += len;
        compared += 1;
        by_difference.push((minimal.blob.len() as i64 - len as i64, path));
    }
    by_difference.sort();
    eprintln!("{compared} objects: {ours} bytes, bpftool {theirs}");
    eprintln!("largest excess: {:?}", by_difference.last());
    assert!(compared > 0 && ours <= theirs + theirs / 20);
}

//! Every object in the repository is what the compiler makes of the source beside it.
//!
//! Another release of the compiler orders instructions differently, so there is one
//! that counts; where it is absent the test is skipped. `UPDATE_EXPECT` in the environment writes the objects instead.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const COMPILER: &str = "clang-19";
const STRIP: &str = "llvm-strip-19";

/// An object that is made otherwise than by the plain rule.
struct Special {
    object: &'static str,
    source: &'static str,
    options: &'static [&'static str],
}

const SPECIAL: &[Special] = &[
    Special {
        object: "refused/big_endian.o",
        source: "../calls.c",
        options: &["-target", "bpfeb"],
    },
    Special {
        object: "refused/old_maps_big_endian.o",
        source: "old_maps.c",
        options: &["-target", "bpfeb"],
    },
    Special {
        object: "fields-100.bpf.o",
        source: "fields.bpf.c",
        options: &[],
    },
    Special {
        object: "fields-10000.bpf.o",
        source: "fields.bpf.c",
        options: &["-DMANY"],
    },
    Special {
        object: "data/values_compressed.bpf.o",
        source: "values.bpf.c",
        options: &["-gz"],
    },
    Special {
        object: "data/values_stripped.bpf.o",
        source: "values.bpf.c",
        options: &[],
    },
    Special {
        object: "data/against_new.bpf.o",
        source: "against_old.bpf.c",
        options: &["-DSECOND"],
    },
    Special {
        object: "data/against_all.bpf.o",
        source: "against_old.bpf.c",
        options: &["-DTHIRD"],
    },
    Special {
        object: "objects/guards.o",
        source: "guards.c",
        options: &["-mcpu=v4"],
    },
];
/// Objects linked from others, which a test of their own rebuilds.
const LINKED: &[&str] = &["linker/linked.o"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository")
}

/// The objects in a directory and below.
fn objects(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).expect("a directory");
    for entry in entries.map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if entry.file_type().expect("a type").is_dir() {
            if entry.file_name() != "target" {
                objects(&path, found);
            }
        } else if path.extension() == Some(OsStr::new("o")) {
            found.push(path);
        }
    }
}

/// Every object but those that were linked.
fn committed() -> Vec<PathBuf> {
    let mut committed = Vec::new();
    for place in ["crates", "examples", "fuzz"] {
        objects(&repository().join(place), &mut committed);
    }
    committed.retain(|object| !LINKED.iter().any(|name| object.ends_with(name)));
    assert!(committed.len() > 40, "{} objects", committed.len());
    committed
}

/// The source of an object, with compiler options: `NAME.edited.bpf.o` is made with `-DEDIT`.
fn made_of(object: &Path) -> (PathBuf, &'static [&'static str]) {
    if let Some(special) = SPECIAL
        .iter()
        .find(|special| object.ends_with(special.object))
    {
        let directory = object.parent().expect("a directory");
        return (directory.join(special.source), special.options);
    }
    let name = object.to_string_lossy();
    if let Some(stem) = name.strip_suffix(".edited.bpf.o") {
        return (PathBuf::from(format!("{stem}.bpf.c")), &["-DEDIT"]);
    }
    let source = ["c", "s"].map(|extension| object.with_extension(extension));
    let source = source.into_iter().find(|source| source.exists());
    (
        source.unwrap_or_else(|| panic!("{}: no source", object.display())),
        &[],
    )
}

fn has_compiler() -> bool {
    [COMPILER, STRIP]
        .iter()
        .all(|name| oracle::found("committed objects", oracle::program(name)).is_some())
}

/// The sources in the directory of a file.
fn sources_beside(file: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(file.parent().expect("a directory")).expect("a directory");
    let is_source = |path: &PathBuf| {
        let extension = path.extension().and_then(OsStr::to_str);
        extension.is_some_and(|extension| ["c", "s"].contains(&extension))
    };
    entries
        .map(|entry| entry.expect("an entry").path())
        .filter(is_source)
}

#[oracle::test]
fn every_source_beside_objects_has_one() {
    let committed = committed();
    let canonical = |path: PathBuf| path.canonicalize().expect("a source");
    let used: BTreeSet<_> = committed
        .iter()
        .map(|object| canonical(made_of(object).0))
        .collect();
    let all: BTreeSet<_> = committed
        .iter()
        .flat_map(|object| sources_beside(object))
        .map(canonical)
        .collect();
    let unused: Vec<_> = all.difference(&used).collect();
    assert!(unused.is_empty(), "sources without an object: {unused:#?}");
}

/// Runs a program that must succeed.
fn run(command: &mut Command) {
    let status = command.status().expect("the program starts");
    assert!(status.success(), "{command:?}");
}

#[oracle::test]
fn objects_are_those_of_their_sources() {
    if !has_compiler() {
        return;
    }
    let committed = committed();
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("made.o");
    let writes = env::var_os("UPDATE_EXPECT").is_some();
    let mut others = Vec::new();
    for object in &committed {
        let kept = fs::read(object).expect("an object");
        let has = |section: &[u8]| kept.windows(section.len()).any(|name| name == section);
        let (source, options) = made_of(object);
        let mut compiler = Command::new(COMPILER);
        // Paths are relative, so that none of a machine gets into an object.
        compiler
            .current_dir(source.parent().expect("a directory"))
            .args(["-target", "bpfel", "-mcpu=v3", "-ffile-compilation-dir=."])
            .args(["-Wall", "-Wno-unused-variable"])
            .args((has(b".BTF\0") || has(b".debug_")).then_some("-g"))
            .args(options)
            .arg("-c")
            .arg(source.file_name().expect("a name"))
            .arg("-o")
            .arg(&made);
        if source.extension() == Some(OsStr::new("c")) {
            compiler.arg("-O2");
        }
        run(&mut compiler);
        // Those without debug sections had them taken out.
        if !has(b".debug_") {
            run(Command::new(STRIP).arg("-g").arg(&made));
        }
        if fs::read(&made).expect("an object") != kept {
            others.push(object.display().to_string());
            if writes {
                fs::copy(&made, object).expect("the object is written");
            }
        }
    }
    assert!(
        writes || others.is_empty(),
        "changed:\n{}",
        others.join("\n")
    );
}

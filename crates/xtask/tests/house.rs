//! The invariants of the house, as ARCHITECTURE.md states them: which room may
//! know which, where unsafe code may live, who may print, how long a file may be.
//! They are read off `cargo metadata` and the tree, so a change that breaks one
//! fails here, with the file named.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The layers, from the bottom; an arrow only ever points down.
const LAYERS: &[&[&str]] = &[
    &["isa", "packet", "btf"],
    &["spec", "capture"],
    &["classic", "vm", "program", "profile"],
    &["lower", "object", "verifier"],
    &["interp", "jit", "seccomp"],
    &["beebox"],
    &["report"],
    &["cli"],
];

/// Rooms beside the layers, with the rooms beside that each may know. The
/// layers know none of them, but for the command, and the library that maps
/// files through the doors to the host.
const BESIDE: &[(&str, &[&str])] = &[
    ("sys", &[]),
    ("oracle", &[]),
    ("testkit", &["sys", "oracle"]),
    ("bench", &["sys", "testkit", "oracle"]),
    ("fuzz", &["testkit"]),
    ("xtask", &["bench", "testkit", "sys", "oracle"]),
];
const LAYERS_KNOW: &[(&str, &[&str])] = &[("cli", &["sys"]), ("beebox", &["sys"])];

/// Where unsafe code may live.
const UNSAFE: &[&str] = &["vm", "interp", "jit", "sys"];

/// Who may, in one place, vouch for programs: the command passes on its user's
/// word, the benchmarks know theirs, and the generator's are safe as they are made.
const VOUCHES: &[(&str, &str)] = &[
    ("cli", "crates/cli/src/run/trusted.rs"),
    ("bench", "crates/bench/src/engines/unproved.rs"),
    ("testkit", "crates/testkit/src/corpus.rs"),
    ("testkit", "crates/testkit/src/ebpf/engines.rs"),
];

/// Who may print.
const PRINTS: &[&str] = &["cli", "xtask", "bench", "fuzz", "testkit"];

/// Lines of a source file; tables and tests aside.
const LONGEST_FILE: usize = 1000;

#[test]
fn arrows_only_point_down() {
    let mut faults = Faults::default();
    let beside = |room: &str| BESIDE.iter().find(|(name, _)| *name == room);
    for (room, dependencies) in dependencies() {
        for dependency in dependencies {
            let allowed = match (layer(&room), layer(&dependency)) {
                (Some(from), Some(to)) => to < from,
                (Some(_), None) => LAYERS_KNOW
                    .iter()
                    .any(|(name, knows)| *name == room && knows.contains(&&*dependency)),
                // System interfaces know instructions, BTF and the description of kernels.
                (None, Some(to)) => room != "sys" || to <= 1,
                (None, None) => {
                    beside(&room).is_some_and(|(_, knows)| knows.contains(&&*dependency))
                }
            };
            faults.note(allowed, || format!("{room} may not depend on {dependency}"));
        }
    }
}

#[test]
fn every_room_has_its_place_and_is_described() {
    let architecture = read("ARCHITECTURE.md");
    let placed: BTreeSet<String> = LAYERS
        .iter()
        .flat_map(|layer| layer.iter())
        .chain(BESIDE.iter().map(|(room, _)| room))
        .map(|room| room.to_string())
        .collect();
    let rooms: BTreeSet<String> = dependencies().into_keys().collect();
    assert_eq!(placed, rooms, "the tables of this test and the crates");
    for room in rooms {
        assert!(
            architecture.contains(&format!("`{room}`")),
            "ARCHITECTURE.md has no `{room}`"
        );
    }
}

#[test]
fn every_outside_crate_has_a_reason() {
    let mut faults = Faults::default();
    let architecture = read("ARCHITECTURE.md");
    let (_, reasons) = architecture.split_once("## Crates from outside").unwrap();
    for package in packages() {
        for dependency in package["dependencies"].as_array().unwrap() {
            if dependency["path"].is_null() {
                let name = dependency["name"].as_str().unwrap();
                faults.note(reasons.contains(&format!("`{name}`")), || {
                    format!("ARCHITECTURE.md gives no reason for the crate {name}")
                });
            }
        }
    }
}

#[test]
fn every_dependency_is_used() {
    let mut faults = Faults::default();
    for package in packages() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let directory = manifest.parent().unwrap();
        let sources: Vec<(PathBuf, String)> = files(directory)
            .into_iter()
            .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
            .map(|path| {
                let text = fs::read_to_string(&path).unwrap();
                (path, text)
            })
            .collect();
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["rename"]
                .as_str()
                .or(dependency["name"].as_str());
            let name = name.unwrap().replace('-', "_");
            let place = match dependency["kind"].as_str() {
                Some("build") => directory.join("build.rs"),
                Some(_) => directory.to_owned(),
                None => directory.join("src"),
            };
            let mut used = sources.iter().filter(|(path, _)| path.starts_with(&place));
            faults.note(used.any(|(_, text)| has_word(text, &name)), || {
                format!("{} does not use {name}", package["name"])
            });
        }
    }
}

/// True if a text has the word outside of longer ones.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[test]
fn no_cargo_feature_changes_behaviour() {
    for package in packages() {
        let features = package["features"].as_object().unwrap();
        assert!(features.is_empty(), "{} has features", package["name"]);
    }
}

#[test]
fn unsafe_code_has_an_address() {
    let mut faults = Faults::default();
    for package in packages() {
        let room = room(&package);
        for target in package["targets"].as_array().unwrap() {
            let kind = target["kind"][0].as_str().unwrap();
            let path = Path::new(target["src_path"].as_str().unwrap());
            if !matches!(kind, "lib" | "bin") || UNSAFE.contains(&&*room) {
                continue;
            }
            let source = fs::read_to_string(path).unwrap();
            let lint = match VOUCHES.iter().any(|(vouches, _)| room == *vouches) {
                true => "#![deny(unsafe_code)]",
                false => "#![forbid(unsafe_code)]",
            };
            faults.note(source.contains(lint), || {
                format!("{} does not say {lint}", path.display())
            });
        }
    }
    for (vouches, _) in VOUCHES {
        let places = VOUCHES.iter().filter(|(room, _)| room == vouches);
        let places: Vec<&Path> = places.map(|(_, place)| Path::new(*place)).collect();
        let allowances: Vec<PathBuf> = sources()
            .into_iter()
            .filter(|(room, _, source)| room == vouches && source.contains("allow(unsafe_code"))
            .map(|(_, path, _)| path)
            .collect();
        assert_eq!(allowances, places, "where {vouches} asserts safety");
    }
}

#[test]
fn only_the_command_and_the_chores_print() {
    let mut faults = Faults::default();
    for (room, path, source) in sources() {
        // What a build script prints is read by cargo.
        if PRINTS.contains(&&*room) || is_test(&path) || path.ends_with("build.rs") {
            continue;
        }
        for (number, line) in without_tests(&source).lines().enumerate() {
            let code = line.trim_start();
            let prints = ["println!(", "eprintln!(", "print!(", "eprint!("]
                .iter()
                .any(|word| code.contains(word));
            faults.note(!prints || code.starts_with("//"), || {
                format!("{}:{} prints", path.display(), number + 1)
            });
        }
    }
}

#[test]
fn files_end_in_time_and_begin_with_why() {
    let mut faults = Faults::default();
    for (_, path, source) in sources() {
        let is_table = path.components().any(|part| part.as_os_str() == "tables")
            || path.file_stem().is_some_and(|stem| stem == "table");
        let lines = without_tests(&source).lines().count();
        faults.note(lines <= LONGEST_FILE || is_table || is_test(&path), || {
            format!("{} has {lines} lines", path.display())
        });
        faults.note(source.starts_with("//!"), || {
            format!("{} does not say why it is there", path.display())
        });
    }
}

#[test]
fn no_file_is_a_drawer_for_odds_and_ends() {
    let mut faults = Faults::default();
    for (_, path, _) in sources() {
        for part in path.iter().map(|part| part.to_string_lossy()) {
            let name = part.trim_end_matches(".rs");
            // Helpers are what programs call, here.
            let is_drawer = ["util", "utils", "misc", "common"].contains(&name);
            faults.note(!is_drawer, || format!("{}: a drawer", path.display()));
        }
    }
}

#[test]
fn no_path_of_somebodys_machine_is_written_down() {
    let mut faults = Faults::default();
    // Where machines keep people's homes and checkouts. Where this checkout lies
    // and who runs the test does not matter.
    let homes = [
        "/home/",
        "/Users/",
        "/root/",
        "/work/",
        "/workspace/",
        "/builds/",
    ];
    for path in files(&root()) {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let is_this_file = path.ends_with("tests/house.rs");
        for (number, line) in text.lines().enumerate() {
            let found = homes.iter().find(|home| line.contains(**home));
            faults.note(found.is_none() || is_this_file, || {
                format!("{}:{}: {line}", path.display(), number + 1)
            });
        }
    }
}

#[test]
fn what_the_readme_promises_runs_in_ci() {
    let ci = read(".ci/run");
    let readme = read("README.md");
    let promised: Vec<&str> = readme
        .lines()
        .skip_while(|line| *line != "```sh")
        .skip(1)
        .take_while(|line| *line != "```")
        .filter(|line| line.starts_with("cargo "))
        .collect();
    assert_eq!(promised.len(), 2, "the first screen has two commands");
    for command in promised {
        assert!(ci.contains(command), ".ci/run does not run {command:?}");
    }
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let mut faults = Faults::default();
    for path in files(&root()) {
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let there = path.parent().unwrap().join(target);
            faults.note(there.exists(), || {
                format!("{}: {target} leads nowhere", path.display())
            });
        }
    }
}

#[test]
fn every_page_can_be_reached() {
    let index = read("docs/README.md");
    assert!(read("README.md").contains("(docs/README.md)"));
    for path in files(&root().join("docs")) {
        let name = path
            .strip_prefix(root().join("docs"))
            .unwrap()
            .display()
            .to_string();
        if name != "README.md" && name.ends_with(".md") {
            assert!(
                index.contains(&format!("({name})")),
                "docs/README.md does not name {name}"
            );
        }
    }
}

/// What is wrong, all of it; a test that ends with any fails.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn note(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds {
            self.0.push(fault());
        }
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "\n{}", self.0.join("\n"));
        }
    }
}

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn layer(room: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&room))
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {said}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// A room is known inside the house by its short name.
fn short(package: &str) -> String {
    package
        .strip_prefix("beebox-")
        .unwrap_or(package)
        .to_owned()
}

fn room(package: &Value) -> String {
    short(package["name"].as_str().unwrap())
}

/// The rooms, each with the rooms that its product (not its tests) depends on.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    packages()
        .iter()
        .map(|package| {
            let inside = package["dependencies"].as_array().unwrap().iter();
            let inside = inside
                .filter(|dependency| dependency["path"].is_string() && dependency["kind"].is_null())
                .map(|dependency| short(dependency["name"].as_str().unwrap()));
            (room(package), inside.collect())
        })
        .collect()
}

/// Every Rust file of the rooms: its room, its path from the root, its text.
fn sources() -> Vec<(String, PathBuf, String)> {
    let root = root();
    files(&root.join("crates"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let path = path.strip_prefix(&root).unwrap().to_path_buf();
            let room = path.iter().nth(1).unwrap().to_string_lossy().into_owned();
            (room, path, text)
        })
        .collect()
}

fn is_test(path: &Path) -> bool {
    path.iter()
        .any(|part| part == "tests" || part == "tests.rs")
}

/// A source up to its unit tests, which stand at its end.
fn without_tests(source: &str) -> &str {
    source.split("#[cfg(test)]\nmod ").next().unwrap()
}

/// Every file below a directory but for what building makes.
fn files(directory: &Path) -> Vec<PathBuf> {
    let made = ["target", ".git", "corpus", "artifacts", "coverage"];
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if made.contains(&&*name) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

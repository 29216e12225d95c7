//! Invariants of the crates as packages: their version, their licences, and their executables of tests.

use std::fs;
use std::path::Path;

use beebox_checks::root;

use crate::workspace::{crate_name, members, read};

/// A release changes the version in the manifest of the workspace, and that of the Python package, a
/// workspace of its own; the changelog has a section of it, and the symbols of the C library are of no later
/// one.
#[test]
fn the_version_stands_in_one_file() {
    let manifest = read("Cargo.toml");
    let (_, package) = manifest
        .split_once("[workspace.package]\nversion = \"")
        .unwrap();
    let version = package.split('"').next().unwrap();
    let inside = manifest.matches("version = \"=").count();
    assert_eq!(
        inside,
        manifest
            .matches(&format!("version = \"={version}\""))
            .count()
    );
    assert!(inside > 15, "{inside} crates of this version");
    for package in members("Cargo.toml") {
        assert_eq!(package["version"], version, "{}", package["name"]);
    }
    let python = read("python/Cargo.toml");
    let line = python.lines().find(|line| line.starts_with("version = "));
    assert_eq!(
        line,
        Some(&*format!("version = \"{version}\"")),
        "python/Cargo.toml"
    );
    let changelog = read("CHANGELOG.md");
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## "));
    assert_eq!(newest.and_then(|it| it.split(' ').next()), Some(version));
    let symbols = read("crates/capi/libbeebox.map");
    let nodes = symbols
        .lines()
        .filter_map(|line| line.strip_prefix("BEEBOX_"));
    let numbers = |text: &str| -> Vec<u32> {
        let parts = text.trim_end_matches(" {").split('.');
        parts.take(2).map(|part| part.parse().unwrap()).collect()
    };
    assert!(
        nodes
            .max_by_key(|node| numbers(node))
            .is_some_and(|it| numbers(it) <= numbers(version))
    );
}

/// Files of tests that Cargo compiles: those that `tests/main.rs` names, and executables of their
/// own that the manifest names.
#[test]
fn every_file_of_tests_is_compiled() {
    let crates = fs::read_dir(root().join("crates")).expect("the crates");
    let mut files = 0;
    for directory in crates.map(|entry| entry.expect("an entry").path()) {
        let tests = directory.join("tests");
        let Ok(main) = fs::read_to_string(tests.join("main.rs")) else {
            continue;
        };
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).expect("a manifest");
        for entry in fs::read_dir(&tests).expect("the tests") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|it| it != "rs") || path.ends_with("main.rs") {
                continue;
            }
            let name = path.file_stem().and_then(|it| it.to_str()).expect("a name");
            let is_module = main.lines().any(|line| line == format!("mod {name};"));
            let is_target = manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
            assert!(
                is_module != is_target,
                "{}: name it once, as a module of tests/main.rs or as a [[test]]",
                path.display()
            );
            files += 1;
        }
    }
    assert!(files > 150, "{files} files of tests");
}

/// A crate has one executable of integration tests, `it`, which tests for other targets run; a comment in the
/// manifest says why another one is apart.
#[test]
fn tests_are_one_executable_of_a_crate() {
    for package in members("Cargo.toml") {
        let (name, manifest) = (crate_name(&package), package["manifest_path"].as_str());
        let manifest = fs::read_to_string(manifest.unwrap()).expect("a manifest");
        let targets = package["targets"].as_array().unwrap();
        let tests = targets.iter().filter(|target| target["kind"][0] == "test");
        let tests: Vec<&str> = tests.filter_map(|test| test["name"].as_str()).collect();
        assert!(
            tests.is_empty() || tests.contains(&"it"),
            "{name}: {tests:?}"
        );
        for test in tests.into_iter().filter(|&test| test != "it") {
            let (before, _) = manifest
                .split_once(&format!("[[test]]\nname = \"{test}\"\n"))
                .unwrap_or_else(|| panic!("{name}: {test} is a module of tests/main.rs"));
            let reason = before.lines().last();
            assert!(
                reason.is_some_and(|line| line.starts_with("# ")),
                "{name}: no reason why {test} is apart"
            );
        }
    }
}

/// What is published has the text of both licences in its package.
#[test]
fn every_package_has_its_licences() {
    for package in members("Cargo.toml") {
        let is_published = package["publish"]
            .as_array()
            .is_none_or(|it| !it.is_empty());
        let directory = Path::new(package["manifest_path"].as_str().unwrap()).parent();
        for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let is_there = directory.unwrap().join(file).is_file();
            assert!(
                is_there || !is_published,
                "{} has no {file}",
                package["name"]
            );
        }
    }
}

//! The Rust blocks of the README and the pages of docs/: each is compiled, as an example, as the unit
//! test of the README, or as the body of a function in `pages/blocks.rs`.

// Some of the blocks write files, or need what is not there.
#[allow(dead_code)]
mod blocks;

use std::fs;
use std::path::{Path, PathBuf};

use beebox::Object;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Text of the files of a directory with an ending, each with its path.
fn files(directory: &str, ending: &str) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(repository().join(directory)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == ending));
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    paths.into_iter().map(read).collect()
}

/// The Rust blocks of a text.
fn rust_blocks(text: &str) -> impl Iterator<Item = &str> {
    let mut fences = text.split("\n```");
    fences.next();
    // Every second fence ends a block.
    let begun = fences.step_by(2);
    begun.filter_map(|block| match block.split_once('\n')? {
        (info, text) if info.starts_with("rust") || info == "rs" => Some(text),
        _ => None,
    })
}

#[oracle::test]
fn every_rust_block_of_the_pages_is_compiled() {
    // These write tables of pages, in place of being shown there.
    let tables = ["coverage_cost.rs", "fuzz_rate.rs"];
    let mut examples = files("crates/beebox/examples", "rs");
    examples.retain(|(path, _)| !tables.iter().any(|name| path.ends_with(name)));
    let whole = |text: &str| {
        examples
            .iter()
            .any(|(_, example)| example.trim_end() == text)
    };
    // In the README the object is seen from a crate beside the clone.
    let unit_test =
        include_str!("instance/unit_test.rs").replace("../../examples", "../beebox/examples");
    let bodies = include_str!("pages/blocks.rs");
    let mut pages = files("docs", "md");
    pages.extend(files("", "md"));
    let mut shown = 0;
    for (path, page) in &pages {
        for block in rust_blocks(page) {
            let body =
                format!("\n    {}\n", block.replace('\n', "\n    ")).replace("\n    \n", "\n\n");
            let is_compiled =
                whole(block) || unit_test.trim_end() == block || bodies.contains(&body);
            assert!(is_compiled, "{}: no test compiles\n{block}", path.display());
            shown += 1;
        }
    }
    // Each example is shown, so is the unit test, and each function.
    let functions = bodies.matches("fn ").count();
    assert_eq!(shown, examples.len() + 1 + functions);
}

#[oracle::test]
fn blocks_of_the_pages_do_what_they_say() {
    let file = |name: &str| fs::read(repository().join("examples").join(name)).unwrap();
    let linked = blocks::link(file("link/main.bpf.o"), file("link/count.bpf.o")).unwrap();
    assert!(Object::from_bytes(linked).is_ok());
    let line = blocks::one_line(b"ret #0").unwrap();
    assert!(line.starts_with(b"1,6 0 0 0"));
    let router = Object::from_bytes(file("packets/router.bpf.o")).unwrap();
    blocks::router(router, "192.0.2.1".parse().unwrap()).unwrap();
}

#[oracle::test]
fn the_features_of_the_pages_are_those_of_the_crate() {
    let manifest = include_str!("../Cargo.toml");
    let (_, features) = manifest.split_once("\n[features]\n").unwrap();
    let (features, _) = features.split_once("\n[").unwrap();
    let declared: Vec<&str> = features
        .lines()
        .filter_map(|line| {
            line.split_once(" = ")
                .map(|(name, _)| name.trim_matches('"'))
        })
        .filter(|name| *name != "default")
        .collect();
    assert!(declared.contains(&"run"), "{declared:?}");
    let listed = |page: &str, row: &str| -> Vec<String> {
        let (_, table) = page.split_once("| feature | adds |").unwrap();
        let rows = table.lines().skip(1).take_while(|line| line.contains('|'));
        let names = rows.filter_map(|line| line.trim_start_matches(row).strip_prefix("| `"));
        let names = names.filter_map(|line| line.split_once('`'));
        names.map(|(name, _)| name.to_owned()).collect()
    };
    let page = fs::read_to_string(repository().join("docs/embed.md")).unwrap();
    assert_eq!(listed(&page, ""), declared);
    assert_eq!(listed(include_str!("../src/lib.rs"), "//! "), declared);
    // Each is built alone by a step of `.ci/extended`.
    let steps = fs::read_to_string(repository().join(".ci/common")).unwrap();
    let alone = format!("for feature in '' {}; do", declared.join(" "));
    assert!(steps.contains(&alone), "{alone}");
}

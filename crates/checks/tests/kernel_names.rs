//! Names of Linux: every item that is the counterpart of a function or type of the kernel's
//! verifier has it as an alias, so that rustdoc's search finds it, and docs/kernel-names.md
//! lists them. `UPDATE_EXPECT=1 cargo test -p beebox-checks --test it kernel_names::` writes the
//! table again.

use expect_test::expect_file;
use std::collections::BTreeMap;
use std::fs;

use beebox_checks::{files, root};
use tables::{RULES, WITHOUT};

mod tables;

const PAGE: &str = "docs/kernel-names.md";
/// First line of the table.
const HEAD: &str = "| Linux | here |\n|---|---|\n";
/// Crates with counterparts of the kernel's verifier.
const CRATES: [&str; 7] = [
    "isa", "btf", "spec", "program", "verifier", "lower", "kernel",
];

/// Names that readers of the kernel's verifier look for first.
const CENTRAL: [&str; 32] = [
    "__mark_chain_precision",
    "adjust_ptr_min_max_vals",
    "adjust_scalar_min_max_vals",
    "backtrack_insn",
    "bpf_verifier_env",
    "bpf_verifier_state",
    "check_cfg",
    "check_cond_jmp_op",
    "check_func_arg",
    "check_helper_mem_access",
    "check_map_func_compatibility",
    "check_ptr_to_btf_access",
    "convert_ctx_accesses",
    "convert_pseudo_ld_imm64",
    "do_check",
    "do_check_common",
    "do_misc_fixups",
    "find_good_pkt_pointers",
    "is_state_visited",
    "loop_flag_is_zero",
    "map_kptr_match_type",
    "mark_fastcall_pattern_for_call",
    "mark_ptr_or_null_regs",
    "propagate_liveness",
    "reg_bounds_sync",
    "reg_set_min_max",
    "regsafe",
    "resolve_pseudo_ldimm64",
    "scalar_min_max_add",
    "setup_func_entry",
    "stacksafe",
    "tnum_add",
];

/// The places of each name: path below `crates`, and item.
fn names() -> BTreeMap<String, Vec<(String, String)>> {
    let mut names: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for name in CRATES {
        let directory = root().join("crates").join(name).join("src");
        for path in files(&directory) {
            let source = fs::read_to_string(&path).unwrap();
            let path = path.strip_prefix(root().join("crates")).unwrap();
            let mut add = |alias: &str, item: &str| {
                let places = names.entry(alias.to_owned()).or_default();
                places.push((path.display().to_string(), item.to_owned()));
            };
            let (mut aliases, mut doc) = (Vec::new(), String::new());
            for line in source.lines().map(str::trim) {
                if let Some(text) = line.strip_prefix("///") {
                    doc.push_str(text);
                } else if let Some(rest) = line.strip_prefix("#[doc(alias = \"") {
                    aliases.push(rest.split('"').next().unwrap());
                } else if !line.starts_with("#[") {
                    let item = item(line);
                    aliases.iter().for_each(|alias| add(alias, item));
                    // Items that have the kernel's name need no alias.
                    let is_function = item.contains('_') && !item.contains(char::is_uppercase);
                    let mut brackets = doc.split('(').skip(1);
                    let own = format!("`{item}`");
                    let is_named = |text: &str| text.split(')').next().unwrap().contains(&own);
                    if is_function && brackets.any(is_named) {
                        add(item, item);
                    }
                    aliases.clear();
                    doc.clear();
                }
            }
        }
    }
    names
}

/// The name of the item that a line declares.
fn item(line: &str) -> &str {
    const WORDS: [&str; 10] = [
        "pub",
        "const",
        "unsafe",
        "async",
        "fn",
        "struct",
        "enum",
        "trait",
        "type",
        "macro_rules",
    ];
    let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let is_word = |word: &&str| {
        !word.is_empty() && !WORDS.contains(word) && !["crate", "super", "in"].contains(word)
    };
    words.find(is_word).unwrap_or_default()
}

fn table() -> String {
    let mut table = String::from(HEAD);
    for (name, places) in names() {
        let places: Vec<String> = places
            .iter()
            .map(|(path, item)| format!("`{item}` in `{path}`"))
            .collect();
        table += &format!("| `{name}` | {} |\n", places.join(", "));
    }
    table += "\n## Rules in tables and arms\n\n| Linux | its rule |\n|---|---|\n";
    for [name, rule, path] in RULES {
        table += &format!("| `{name}` | {rule} in `{path}` |\n");
    }
    table += "\n## Without counterpart\n\n| why | Linux |\n|---|---|\n";
    for (why, names) in WITHOUT {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        table += &format!("| {why} | {} |\n", names.join(", "));
    }
    table
}

#[test]
fn the_page_lists_every_alias() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let (text, _) = page.split_once(HEAD).expect("a table");
    expect_file![root().join(PAGE)].assert_eq(&format!("{text}{}", table()));
}

#[test]
fn central_names_are_found() {
    let names = names();
    let missing: Vec<_> = CENTRAL
        .iter()
        .filter(|name| !names.contains_key(**name))
        .collect();
    assert!(missing.is_empty(), "without alias: {missing:?}");
}

#[test]
fn rules_stand_where_the_page_says() {
    for [name, rule, path] in RULES {
        let source = fs::read_to_string(root().join("crates").join(path)).unwrap();
        for word in rule.split('`').skip(1).step_by(2) {
            assert!(source.contains(word), "{name}: no {word} in {path}");
        }
    }
}

#[test]
fn each_name_stands_once() {
    let mut names = names();
    let rules = RULES.iter().map(|[name, ..]| *name);
    let without = WITHOUT.iter().flat_map(|(_, names)| *names).copied();
    for name in rules.chain(without) {
        assert!(
            names.insert(name.to_owned(), Vec::new()).is_none(),
            "{name} stands twice"
        );
    }
}

//! The invariants of the workspace, as ARCHITECTURE.md states them: which crate may
//! depend on which, where unsafe code may live, which crates print, how long a file may
//! be. They are read from `cargo metadata` and the tree; a change that breaks one fails
//! here, with the file named.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use beebox_checks::{files, root};
use serde_json::Value;

/// The layers, from the bottom, and every dependency of each crate. A dependency is on
/// a lower layer, and is here exactly if the crate's manifest has it: what is missing
/// in either place fails.
const LAYERS: &[&[(&str, &str)]] = &[
    &[("isa", ""), ("btf", ""), ("packet", "")],
    &[("spec", "btf isa"), ("capture", "packet")],
    &[
        ("program", "btf isa spec"),
        ("kernel-data", "btf spec"),
        ("classic", "isa packet spec"),
        ("vm", "btf isa packet spec"),
    ],
    &[
        ("object", "btf isa program spec"),
        ("kernel-presets", "btf kernel-data spec"),
        ("verifier", "btf isa program spec"),
        ("seccomp", "classic isa spec"),
    ],
    &[("lower", "classic isa program spec verifier vm")],
    &[
        ("interp", "isa lower packet spec vm"),
        ("jit", "classic isa lower packet spec vm"),
        ("kernel", "btf isa program spec vm"),
    ],
    &[
        ("report", "btf classic object program seccomp spec verifier"),
        ("trace", "btf interp isa object packet program spec"),
    ],
    &[(
        "beebox",
        "btf capture classic interp isa jit kernel kernel-data kernel-presets lower object packet \
         program report seccomp spec sys trace verifier vm",
    )],
    // The commands are embedders. Beside the library they use the built-in kernel data, the
    // renderers of `report`, and from `sys` what is no task of a library: mapped kernel files,
    // filters of processes by ptrace, signals, devices.
    &[("command", "beebox kernel-data report sys")],
    &[
        ("capi", "beebox"),
        ("cli", "beebox command report sys"),
        ("gateway", "beebox command report sys"),
    ],
];

/// Crates beside the layers, with every dependency of each. Of these, the layers depend
/// on `sys` alone, and only those of [`ON_SYS`] do.
const BESIDE: &[(&str, &str)] = &[
    ("checks", ""),
    ("command-tests", "oracle sys"),
    ("oracle", "oracle-macros"),
    ("oracle-macros", ""),
    ("sys", "btf isa spec"),
    ("testkit", "btf capture classic isa packet program spec"),
    ("kernel-client", "isa program spec sys"),
    (
        "differential",
        "beebox btf classic interp isa jit kernel kernel-client kernel-data lower object oracle \
         packet program seccomp spec sys testkit verifier vm",
    ),
    (
        "bench",
        "beebox btf classic differential gateway interp isa jit kernel kernel-client lower oracle \
         packet kernel-data program spec sys testkit verifier vm",
    ),
    (
        "fuzz",
        "beebox btf capi capture classic differential gateway interp isa object packet kernel-data \
         program seccomp spec sys verifier",
    ),
    (
        "xtask",
        "beebox btf differential kernel-data kernel-presets report spec",
    ),
];

/// Crates of the layers that depend on one beside them.
const ON_SYS: &[&str] = &["beebox", "command", "cli", "gateway"];

/// Crates with unsafe code.
const UNSAFE: &[&str] = &["vm", "interp", "jit", "sys", "capi"];

/// Crates that assert that programs are safe, and where: the command for its user, the
/// benchmarks for their own, the plugin of the
/// conformance suite for its programs, the tests for what is safe by construction or was accepted by
/// a kernel.
const ASSUMES_SAFE: &[(&str, &[&str])] = &[
    ("cli", &["crates/cli/src/exec/trusted.rs"]),
    ("bench", &["crates/bench/src/engines/unchecked.rs"]),
    ("xtask", &["crates/xtask/src/bin/conformance-plugin.rs"]),
    (
        "differential",
        &[
            "crates/differential/src/corpus.rs",
            "crates/differential/src/ebpf/engines.rs",
        ],
    ),
];

/// Crates that print.
const PRINTS: &[&str] = &["cli", "command", "xtask", "bench", "fuzz", "differential"];

/// Lines of a source file; tables and tests aside.
const LONGEST_FILE: usize = 1000;

#[test]
fn dependencies_are_those_that_are_listed() {
    let mut faults = Faults::default();
    let listed: BTreeMap<&str, &str> = LAYERS
        .iter()
        .flat_map(|layer| layer.iter())
        .chain(BESIDE)
        .copied()
        .collect();
    for (name, dependencies) in dependencies() {
        let listed: BTreeSet<String> = listed
            .get(&*name)
            .map(|listed| listed.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default();
        for dependency in dependencies.difference(&listed) {
            faults.note(false, || format!("{name} may not depend on {dependency}"));
        }
        for dependency in listed.difference(&dependencies) {
            faults.note(false, || {
                format!("{name} is listed as depending on {dependency}, and does not")
            });
        }
    }
}

#[test]
fn dependencies_point_down() {
    let mut faults = Faults::default();
    for (level, layer) in LAYERS.iter().enumerate() {
        for (name, dependencies) in *layer {
            for dependency in dependencies.split_whitespace() {
                let is_below = match layer_of(dependency) {
                    Some(below) => below < level,
                    None => dependency == "sys" && ON_SYS.contains(name),
                };
                faults.note(is_below, || format!("{name} is not above {dependency}"));
            }
        }
    }
    // The verifier knows no implementation.
    let implementations = ["vm", "lower", "interp", "jit", "sys"];
    for name in ["verifier", "object", "program", "spec"] {
        let all = reachable(name);
        let known = implementations.iter().find(|it| all.contains(**it));
        faults.note(known.is_none(), || {
            format!("{name} reaches {}", known.unwrap_or(&""))
        });
    }
    // What links and verifies does not contain the built-in kernel data.
    for name in ["object", "verifier"] {
        faults.note(!reachable(name).contains("kernel-data"), || {
            format!("{name} carries the built-in kernel data")
        });
    }
}

/// A crate's tests depend on no crate that depends on it: after a change of `jit`, its tests
/// alone are built with it.
#[test]
fn tests_depend_on_nothing_above() {
    let mut faults = Faults::default();
    for package in packages() {
        let name = crate_name(&package);
        let inside = package["dependencies"].as_array().unwrap().iter();
        let inside = inside.filter(|dependency| dependency["path"].is_string());
        for dependency in inside.filter(|dependency| dependency["kind"] == "dev") {
            let tests = short(dependency["name"].as_str().unwrap());
            let is_below = tests != name && !reachable(&tests).contains(&*name);
            faults.note(is_below, || {
                format!("{name} is tested with {tests}, which depends on it")
            });
        }
    }
}

/// Every crate that a crate depends on, directly or not.
fn reachable(name: &str) -> BTreeSet<&'static str> {
    let all = || LAYERS.iter().flat_map(|layer| layer.iter()).chain(BESIDE);
    let mut found = BTreeSet::new();
    let mut pending: Vec<&str> = vec![name];
    while let Some(name) = pending.pop() {
        let own = all().find(|(known, _)| *known == name);
        for dependency in own
            .map(|(_, dependencies)| *dependencies)
            .unwrap_or_default()
            .split_whitespace()
        {
            if found.insert(dependency) {
                pending.push(dependency);
            }
        }
    }
    found
}

#[test]
fn every_crate_has_its_place_and_is_described() {
    let architecture = read("ARCHITECTURE.md");
    let placed: BTreeSet<String> = LAYERS
        .iter()
        .flat_map(|layer| layer.iter())
        .chain(BESIDE)
        .map(|(name, _)| name.to_string())
        .collect();
    let crates: BTreeSet<String> = dependencies().into_keys().collect();
    assert_eq!(placed, crates, "the tables of this test and the crates");
    for name in crates {
        assert!(
            architecture.contains(&format!("`{name}`")),
            "ARCHITECTURE.md has no `{name}`"
        );
    }
}

#[test]
fn every_outside_crate_has_a_reason_where_it_is_used() {
    let mut faults = Faults::default();
    let architecture = read("ARCHITECTURE.md");
    let (_, table) = architecture.split_once("## Crates from outside").unwrap();
    let mut stated = BTreeSet::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let names = cells[1].split(" (").next().unwrap();
        for name in names.split(", ").map(|name| name.trim_matches('`')) {
            let places = cells[2].replace("tests of ", "").replace(" and ", ", ");
            let places = places.split(", ").map(str::to_owned);
            stated.extend(places.map(|place| (name.to_owned(), place)));
        }
    }
    let mut used = BTreeSet::new();
    for package in packages() {
        for dependency in package["dependencies"].as_array().unwrap() {
            if dependency["path"].is_null() {
                let name = dependency["name"].as_str().unwrap().to_owned();
                used.insert((name, crate_name(&package)));
            }
        }
    }
    for (name, place) in used.difference(&stated) {
        faults.note(false, || {
            format!("ARCHITECTURE.md gives no reason for {name} in {place}")
        });
    }
    for (name, place) in stated.difference(&used) {
        faults.note(false, || {
            format!("ARCHITECTURE.md lists {name} for {place}, which does not use it")
        });
    }
}

/// An executable with the harness of `oracle` runs what `#[oracle::test]` registers, and
/// rustc drops each `#[test]` of it. Unit tests have no such harness: those that ask an oracle are
/// ignored, and `.ci/run` runs them.
#[test]
fn tests_with_oracles_are_registered_with_their_harness() {
    let mut faults = Faults::default();
    let with_harness: BTreeSet<String> = sources()
        .into_iter()
        .filter(|(_, path, text)| {
            path.ends_with("tests/main.rs") && text.contains("oracle::main()")
        })
        .map(|(name, _, _)| name)
        .collect();
    assert!(with_harness.len() > 5, "{with_harness:?}");
    let targets: BTreeSet<String> = packages()
        .iter()
        .flat_map(|package| package["targets"].as_array().unwrap().clone())
        .map(|target| target["src_path"].as_str().unwrap().to_owned())
        .collect();
    for (name, path, text) in sources() {
        let shown = path.display();
        let is_module = is_test(&path)
            && !targets
                .iter()
                .any(|target| target.ends_with(&*path.to_string_lossy()));
        let has_tests = text.lines().any(|line| line.trim() == "#[test]");
        if is_module && path.iter().nth(2).is_some_and(|part| part == "tests") {
            faults.note(!(with_harness.contains(&name) && has_tests), || {
                format!("{shown}: #[test] is #[oracle::test] here")
            });
        }
        let asks = text.contains("oracle::found(") || text.contains("oracle::skip(");
        if asks && has_tests && path.iter().nth(2).is_some_and(|part| part == "src") {
            faults.note(text.contains("#[ignore = \"asks"), || {
                format!("{shown}: a unit test asks an oracle and is not ignored")
            });
        }
    }
}

/// Features that leave items out and change none, by crate.
const FEATURES: &[(&str, &[&str])] = &[
    (
        "beebox",
        &[
            "capture",
            "coverage",
            "debug",
            "decompress",
            "fuzz",
            "html",
            "kernel-data",
            "run",
            "seccomp",
            "trace",
        ],
    ),
    ("gateway", &["command"]),
    ("kernel-presets", KERNELS),
];

/// Features of the data of kernels, by series.
const KERNELS: &[&str] = &[
    "all-kernels",
    "kernel-5.10",
    "kernel-6.1",
    "kernel-6.12",
    "kernel-7.0",
    "kernel-7.2",
    "kernel-7.3",
];

#[test]
fn no_cargo_feature_changes_behaviour() {
    for package in packages() {
        let name = crate_name(&package);
        let known = FEATURES.iter().find(|(known, _)| name == *known);
        let mut known = known.map_or(&[][..], |(_, features)| features).to_vec();
        if name == "beebox" {
            known.extend(KERNELS);
        }
        let features = package["features"].as_object().unwrap();
        let mut features = features.keys().map(String::as_str);
        let other = features.find(|feature| *feature != "default" && !known.contains(feature));
        assert_eq!(other, None, "{name} has this feature");
    }
}

#[test]
fn unsafe_code_is_where_it_may_be() {
    let mut faults = Faults::default();
    for package in packages() {
        let name = crate_name(&package);
        for target in package["targets"].as_array().unwrap() {
            let kind = target["kind"][0].as_str().unwrap();
            let path = Path::new(target["src_path"].as_str().unwrap());
            if !matches!(kind, "lib" | "bin") || UNSAFE.contains(&&*name) {
                continue;
            }
            let source = fs::read_to_string(path).unwrap();
            let lint = match ASSUMES_SAFE.iter().any(|(known, _)| name == *known) {
                true => "#![deny(unsafe_code)]",
                false => "#![forbid(unsafe_code)]",
            };
            let forbids = source.contains("#![forbid(unsafe_code)]");
            faults.note(forbids || source.contains(lint), || {
                format!("{} does not say {lint}", path.display())
            });
        }
    }
    for (name, places) in ASSUMES_SAFE {
        let allowances: Vec<PathBuf> = sources()
            .into_iter()
            .filter(|(of, _, source)| of == name && source.contains("allow(unsafe_code"))
            .map(|(_, path, _)| path)
            .collect();
        assert_eq!(
            allowances,
            places.iter().map(PathBuf::from).collect::<Vec<_>>(),
            "{name} asserts safety where it is listed"
        );
    }
}

#[test]
fn only_commands_and_tests_print() {
    let mut faults = Faults::default();
    for (name, path, source) in sources() {
        // What a build script prints is read by cargo; examples of the library are commands.
        let is_example = path.components().any(|part| part.as_os_str() == "examples");
        if PRINTS.contains(&&*name) || is_test(&path) || is_example || path.ends_with("build.rs") {
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
fn files_are_short_and_have_a_header() {
    let mut faults = Faults::default();
    for (_, path, source) in sources() {
        let is_table = path.components().any(|part| part.as_os_str() == "tables")
            || path.file_stem().is_some_and(|stem| stem == "table");
        let lines = without_tests(&source).lines().count();
        faults.note(lines <= LONGEST_FILE || is_table || is_test(&path), || {
            format!("{} has {lines} lines", path.display())
        });
        let is_written = source
            .lines()
            .next()
            .is_some_and(|line| line.ends_with("Written by beebox gen rust."));
        faults.note(is_written || source.starts_with("//!"), || {
            format!("{} has no module header", path.display())
        });
    }
}

#[test]
fn pseudo_numbers_are_defined_in_isa() {
    for (name, path, source) in sources() {
        let defined = source.lines().find(|line| {
            let rest = line.trim_start().trim_start_matches("pub ");
            let name = rest.strip_prefix("const PSEUDO_");
            // BPF_F_PSEUDO_HDR is a flag of a helper.
            name.is_some_and(|name| !name.starts_with("HEADER"))
        });
        assert!(
            name == "isa" || defined.is_none(),
            "{}: BPF_PSEUDO_* are PseudoLoad and PseudoCall of isa: {defined:?}",
            path.display()
        );
    }
}

/// Program types, attach types, map kinds, types of registers, flags, helpers and opcodes have
/// names in `spec` and `isa`: the verifier and what lowers its programs compare no number of
/// one, and list none.
#[test]
fn kinds_are_named() {
    const NUMBERS: [&str; 9] = [
        "kind.number() ",
        "kind().number() ",
        "map_type ==",
        "map_type()",
        "TypeFlags(",
        "MapFlags(",
        "flags.0 &",
        "imm == 1",
        "attach == 2",
    ];
    // Sizes of numbers are listed, too: powers of two.
    let is_listed = |code: &str| {
        let trim = |word: &str| {
            word.trim_matches(|letter: char| "(),".contains(letter))
                .parse()
        };
        let words: Vec<&str> = code.split_whitespace().collect();
        let mut pairs = words.windows(3).filter(|words| words[1] == "|");
        !code.contains("<<")
            && pairs.any(|words| match (trim(words[0]), trim(words[2])) {
                (Ok(one), Ok(other)) => [one, other].iter().any(|n: &u64| n.count_ones() > 1),
                _ => false,
            })
    };
    // A new kind is decided in each match; `spec` has their rows, and there a default is one.
    const POINTERS: [&str; 5] = [
        "RegKind::",
        "RegBase::",
        "PointerKind::",
        "StackObjectKind::",
        "KfuncArgKind::",
    ];
    const KINDS: [&str; 5] = [
        "MapKind::",
        "ProgramType::",
        "AttachType::",
        "HookKind::",
        "HelperRule::",
    ];
    let mut faults = Faults::default();
    const BELOW: [&str; 6] = ["program", "object", "interp", "jit", "vm", "kernel"];
    const ABOVE: [&str; 4] = ["beebox", "capi", "report", "trace"];
    for (name, path, source) in sources() {
        let is_verifier = ["verifier", "lower"].contains(&&*name);
        let (is_below, is_above) = (BELOW.contains(&&*name), ABOVE.contains(&&*name));
        if is_test(&path) || !is_verifier && !is_below && !is_above {
            continue;
        }
        check_opcodes(&path, &source, &mut faults);
        check_lists(&path, &source, &KINDS, &mut faults);
        if is_above {
            continue;
        }
        check_defaults(&path, &source, &KINDS, &mut faults);
        if !is_verifier {
            continue;
        }
        check_defaults(&path, &source, &POINTERS, &mut faults);
        for (line, at) in without_tests(&source).lines().zip(1..) {
            let code = line.split("//").next().unwrap();
            let number = NUMBERS.iter().find(|number| code.contains(**number));
            faults.note(number.is_none() && !is_listed(code), || {
                format!(
                    "{}:{at}: a kind is a number: {}",
                    path.display(),
                    line.trim()
                )
            });
        }
    }
}

/// Notes where opcodes are compared: `isa` has their properties as functions and columns.
fn check_opcodes(path: &Path, source: &str, faults: &mut Faults) {
    const COMPARED: [&str; 4] = [".code == ", ".code != ", ".code & ", ".code {"];
    for (line, at) in without_tests(source).lines().zip(1..) {
        let code = line.split("//").next().unwrap();
        let is_compared = COMPARED.iter().any(|word| code.contains(word))
            || code.contains("matches!(") && code.contains(".code,");
        // Results of programs are codes, too.
        let is_opcode = ["insn", "slot", "raw", "first", "second", "high"];
        let is_opcode = is_opcode
            .iter()
            .any(|name| code.contains(&format!("{name}.code")));
        faults.note(!(is_compared && is_opcode), || {
            format!(
                "{}:{at}: an opcode is compared: {}",
                path.display(),
                line.trim()
            )
        });
    }
}

/// Lists of kinds that are the rule of a place, not a property of kinds: the file, and the first one.
const LISTS: &[(&str, &str)] = &[
    // Words that are left out, since nearly all types have them.
    ("report/src/kfuncs.rs", "ProgramType::LircMode2"),
    // Programs that bpf(2) does not test-run.
    (
        "beebox/src/internal/run/prepared.rs",
        "AttachType::XdpDevmap",
    ),
    // What Linux 6.18 has of programs of tracepoints alone.
    ("verifier/src/attach.rs", "ProgramType::Tracepoint"),
    // Programs that `freplace` does not extend.
    ("verifier/src/attach/program.rs", "HookKind::Fentry"),
];

/// Notes where several kinds are listed, by `matches!`, comparisons or an array: a column of their
/// table says what they have in common, which a new kind has to state.
fn check_lists(path: &Path, source: &str, enums: &[&str], faults: &mut Faults) {
    let code: Vec<&str> = without_tests(source)
        .lines()
        .map(|line| line.split("//").next().unwrap())
        .collect();
    let words: Vec<String> = code.iter().flat_map(|line| words_of(line)).collect();
    // The end of `matches!`, at which its brackets are closed.
    let mut matches_until = 0;
    for (at, word) in words.iter().enumerate() {
        if word.ends_with("matches!") {
            let mut depth = 0;
            let mut rest = words[at + 1..].iter();
            let end = rest.position(|word| {
                depth += i32::from(word == "(") - i32::from(word == ")");
                depth == 0
            });
            matches_until = at + 1 + end.unwrap_or(0);
        }
        let is_variant = |word: &str, kind: &str| {
            let name = word.strip_prefix(kind);
            name.is_some_and(|name| name.starts_with(char::is_uppercase))
        };
        let Some(kind) = enums.iter().find(|kind| is_variant(word, kind)) else {
            continue;
        };
        let is_other = |word: &&String| is_variant(word, kind);
        let mut after = words[at + 1..].iter().filter(|word| *word != ")");
        let (next, second) = (after.next(), after.next());
        let has_next = |sign: &str| next.is_some_and(|word| word == sign);
        let before = at.checked_sub(1).map(|at| words[at].as_str());
        let is_alternative = has_next("|") && second.is_some_and(|word| is_other(&word));
        let is_element =
            before == Some("[") && has_next(",") && second.is_some_and(|word| is_other(&word));
        // `a == K::A || a == K::B`, and the same with `!=` and `&&`.
        let is_compared = |sign: &str, joined: &str| {
            let end = |word: &&String| !["&&", "||", ";", "{", "}"].contains(&word.as_str());
            let rest: Vec<&String> = after.clone().take_while(end).collect();
            let has_before = before == Some(sign) || before == Some("(");
            let signs = rest.iter().chain(second.iter()).any(|word| *word == sign);
            has_before && has_next(joined) && signs && rest.iter().any(is_other)
        };
        let is_list = at < matches_until && is_alternative
            || is_element
            || is_compared("==", "||")
            || is_compared("!=", "&&");
        let is_known = LISTS
            .iter()
            .any(|(file, first)| path.ends_with(Path::new(file)) && word == first);
        faults.note(!is_list || is_known, || {
            format!(
                "{}: a list of kinds from {word} on is a column",
                path.display()
            )
        });
    }
}

#[test]
fn lists_of_kinds_are_found() {
    let is_list = |code: &str| {
        let mut faults = Faults::default();
        check_lists(Path::new("x.rs"), code, &["MapKind::"], &mut faults);
        !std::mem::take(&mut faults.0).is_empty()
    };
    assert!(is_list(
        "!matches!(kind, Some(MapKind::Array | MapKind::Hash))"
    ));
    assert!(is_list(
        "kind == MapKind::Array\n    || kind == MapKind::Hash"
    ));
    assert!(is_list(
        "a != Some(MapKind::Array) && b != Some(MapKind::Hash)"
    ));
    assert!(is_list(
        "const X: &[MapKind] = &[\n    MapKind::Array,\n    MapKind::Hash,\n];"
    ));
    assert!(!is_list(
        "match kind {\n    MapKind::Array | MapKind::Hash => 1,\n}"
    ));
    assert!(!is_list(
        "matches!(kind, MapKind::Array) || kind.is_percpu()"
    ));
    assert!(!is_list(
        "kind.is_some_and(MapKind::is_lru) || kind == Some(MapKind::Array)"
    ));
}

/// The words and signs of a line of code.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in line.split_whitespace() {
        let mut word = String::new();
        for letter in part.chars() {
            match letter {
                '(' | ')' | '[' | ']' | ',' | ';' => {
                    words.push(std::mem::take(&mut word));
                    words.push(letter.to_string());
                }
                letter => word.push(letter),
            }
        }
        words.push(word);
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Notes the matches on one of these enums that have a default, but for one that is an error.
fn check_defaults(path: &Path, source: &str, enums: &[&str], faults: &mut Faults) {
    // Columns at which a match on one of them has its arms.
    let mut arms = BTreeSet::new();
    for (line, at) in without_tests(source).lines().zip(1..) {
        let code = line.trim_start();
        let column = line.len() - code.len();
        if code.is_empty() {
            continue;
        }
        arms.retain(|&arm| arm <= column);
        let pattern = code.trim_start_matches("Some(");
        if enums.iter().any(|kind| pattern.starts_with(kind)) && code.contains("=>") {
            arms.insert(column);
        }
        let is_error = code.starts_with("_ => Err(") || code.starts_with("_ => return Err(");
        let is_catch_all = code.starts_with("_ =>") || code.starts_with("_ if ");
        faults.note(!is_catch_all || is_error || !arms.contains(&column), || {
            format!(
                "{}:{at}: a match on kinds that does not name all",
                path.display()
            )
        });
    }
}

#[test]
fn no_file_is_called_utils() {
    let mut faults = Faults::default();
    for (_, path, _) in sources() {
        for part in path.iter().map(|part| part.to_string_lossy()) {
            let name = part.trim_end_matches(".rs");
            // Helpers are what programs call, here.
            let is_catch_all = ["util", "utils", "misc", "common"].contains(&name);
            faults.note(!is_catch_all, || {
                format!("{}: a catch-all name", path.display())
            });
        }
    }
}

/// A name of a file in both `vm` and `kernel` is that of one thing.
#[test]
fn files_of_vm_and_kernel_are_told_apart() {
    const SAME: [&str; 3] = ["lib.rs", "maps.rs", "tests.rs"];
    let of = |name: &str| -> BTreeSet<String> {
        let own = sources()
            .into_iter()
            .filter(|(of, path, _)| of == name && !is_test(path));
        own.map(|(_, path, _)| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    };
    let (vm, kernel) = (of("vm"), of("kernel"));
    let common: Vec<&String> = vm.intersection(&kernel).collect();
    let mut faults = Faults::default();
    for name in common {
        faults.note(SAME.contains(&&**name), || {
            format!("{name} is a file of vm and one of kernel")
        });
    }
}

/// A module that has modules is a file beside their directory.
#[test]
fn no_file_is_called_mod() {
    let mut faults = Faults::default();
    for (_, path, _) in sources() {
        faults.note(!path.ends_with("mod.rs"), || {
            format!("{}: call it as its directory", path.display())
        });
    }
}

#[test]
fn no_path_of_a_machine_is_in_the_tree() {
    let mut faults = Faults::default();
    // Directories of homes and checkouts on common machines; the location of this checkout
    // does not matter.
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
        let is_this_file = path.ends_with("tests/workspace.rs");
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
    let commands = commands_of_steps(&format!("{}\n{}", read(".ci/common"), read(".ci/run")));
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
        let is_run = commands.contains(command);
        assert!(is_run, "no step of .ci/run is {command:?}: {commands:#?}");
    }
}

/// The commands of cargo that the steps of a script run, directly or in a function of the script,
/// without flags that change no result.
fn commands_of_steps(script: &str) -> BTreeSet<String> {
    let lines = script.lines();
    let lines: Vec<&str> = lines
        .filter(|line| !line.trim_start().starts_with('#'))
        .collect();
    let script = lines.join("\n").replace("\\\n", "");
    let body_of = |name: &str| {
        let (_, body) = script.split_once(&format!("\n{name}() {{\n"))?;
        body.split("\n}").next()
    };
    let mut commands = BTreeSet::new();
    for step in script.lines().filter_map(|line| line.strip_prefix("step ")) {
        let (name, arguments) = step.split_once(' ').unwrap_or((step, ""));
        let body = body_of(name).map(|body| body.replace("\"$@\"", arguments));
        for line in body.as_deref().unwrap_or(step).lines() {
            let words = line.split_whitespace();
            let words = words.skip_while(|word| *word != "cargo");
            let words = words.take_while(|word| *word != "2>&1");
            let words = words.filter(|word| !["--locked", "--no-fail-fast"].contains(word));
            commands.insert(words.collect::<Vec<_>>().join(" "));
        }
    }
    commands
}

#[test]
fn commands_in_comments_are_no_steps() {
    let script = "\ntests() {\n    timeout 9 \\\n    cargo test --locked \"$@\" 2>&1 | tee log\n}\n\
                  # cargo run\n# step cargo build\ncargo doc\nstep tests --workspace\n\
                  step cargo fmt --all\n";
    let expected = ["cargo fmt --all", "cargo test --workspace"];
    let mut commands = commands_of_steps(script);
    commands.remove("");
    assert_eq!(commands, expected.map(str::to_owned).into());
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

/// The book shows these files of the root in `docs/`, from where a relative link leads elsewhere.
#[test]
fn files_of_the_root_that_the_book_shows_have_no_relative_links() {
    let mut faults = Faults::default();
    let mut shown = 0;
    for page in files(&root().join("docs")) {
        let text = fs::read_to_string(&page).unwrap_or_default();
        let Some((_, include)) = text.split_once("{{#include ../") else {
            continue;
        };
        let name = include.split('}').next().unwrap();
        shown += 1;
        for link in fs::read_to_string(root().join(name))
            .unwrap()
            .split("](")
            .skip(1)
        {
            faults.note(
                link.starts_with("https://") || link.starts_with('#'),
                || format!("{name}: ({})", link.split(')').next().unwrap()),
            );
        }
    }
    assert_eq!(shown, 3);
}

/// Files and directories are code spans that end in `.rs` or `/`. The list of modules in the header of
/// a file names them by the end of their path in its crate, or by their path below `crates`;
/// ARCHITECTURE.md by the end of their path in the repository.
#[test]
fn every_file_that_the_architecture_names_exists() {
    let mut faults = Faults::default();
    let root = root();
    let mut paths = BTreeSet::new();
    for path in files(&root) {
        let path = path.strip_prefix(&root).unwrap();
        for part in path.ancestors() {
            let end = if part == path { "" } else { "/" };
            paths.insert(format!("/{}{end}", part.display()));
        }
    }
    let exists = |within: &str, name: &str| {
        let mut paths = paths.iter();
        let end = format!("/{name}");
        paths.any(|path| path.starts_with(within) && path.ends_with(&end))
    };
    let mut texts = vec![("/".to_owned(), read("ARCHITECTURE.md"))];
    for path in files(&root)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|it| it == "rs"))
    {
        let text = fs::read_to_string(&path).unwrap();
        let header: String = text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .collect();
        let path = path.strip_prefix(&root).unwrap();
        let name = path.iter().nth(1).map(|name| name.display().to_string());
        if let (Some((_, list)), Some(name)) = (header.split_once("//! # Modules"), name) {
            texts.push((format!("/crates/{name}/"), list.to_owned()));
        }
    }
    let mut named = 0;
    for (within, text) in &texts {
        for name in text.split('`').skip(1).step_by(2) {
            if name.ends_with(".rs") || name.ends_with('/') && name.len() > 1 {
                named += 1;
                let is_there = exists(within, name) || paths.contains(&format!("/crates/{name}"));
                faults.note(is_there, || format!("no {name} in {within}"));
            }
        }
    }
    assert!(named > 300, "{named} names were found");
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

/// All violations; a test with any fails.
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

pub(crate) fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn layer_of(name: &str) -> Option<usize> {
    let is_in = |layer: &&[(&str, &str)]| layer.iter().any(|(known, _)| *known == name);
    LAYERS.iter().position(is_in)
}

/// The packages of the workspace, and the benchmark, which is a workspace of its own.
fn packages() -> Vec<Value> {
    ["Cargo.toml", "crates/bench/Cargo.toml"]
        .into_iter()
        .flat_map(members)
        .collect()
}

/// The packages of a workspace, by its manifest.
pub(crate) fn members(manifest: &str) -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline"])
        .args(["--format-version", "1", "--manifest-path", manifest])
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {said}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// The short name of a crate of the workspace.
fn short(package: &str) -> String {
    package
        .strip_prefix("beebox-")
        .unwrap_or(package)
        .to_owned()
}

pub(crate) fn crate_name(package: &Value) -> String {
    short(package["name"].as_str().unwrap())
}

/// The crates, each with those that its product (not its tests) depends on.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    packages()
        .iter()
        .map(|package| {
            let inside = package["dependencies"].as_array().unwrap().iter();
            let inside = inside
                .filter(|dependency| dependency["path"].is_string() && dependency["kind"].is_null())
                .map(|dependency| short(dependency["name"].as_str().unwrap()));
            (crate_name(package), inside.collect())
        })
        .collect()
}

/// Every Rust file of the crates: its crate, its path from the root, its text.
fn sources() -> Vec<(String, PathBuf, String)> {
    let root = root();
    files(&root.join("crates"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let path = path.strip_prefix(&root).unwrap().to_path_buf();
            let name = path.iter().nth(1).unwrap().to_string_lossy().into_owned();
            (name, path, text)
        })
        .collect()
}

fn is_test(path: &Path) -> bool {
    path.iter()
        .any(|part| part == "tests" || part == "tests.rs")
}

/// A source without its unit tests, which are at its end.
fn without_tests(source: &str) -> &str {
    source.split("#[cfg(test)]\nmod ").next().unwrap()
}

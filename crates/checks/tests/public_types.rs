//! Rules for the public types of the libraries, read from their sources: every error type
//! implements `Display` and `Error`; names that several libraries use are listed. No lint of rustc, clippy or
//! rustdoc looks at names of types over several crates, or tells an error type by its use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use beebox_checks::texts;

/// Crates whose types are no interface of a library.
const TOOLS: &[&str] = &[
    "bench",
    "checks",
    "cli",
    "command",
    "command-tests",
    "differential",
    "fuzz",
    "kernel-client",
    "oracle",
    "oracle-macros",
    "testkit",
    "xtask",
];

/// Ends of names of errors.
const ERROR_ENDS: &[&str] = &["Error", "Fault", "Problem", "Refusal", "Mismatch"];

/// Parts of the causes of the verifier's refusals, whose words are those of the crate
/// `report`.
const EXPLAINED: &[&str] = &[
    "ArgumentFault",
    "ArithmeticFault",
    "BoundsFault",
    "ContextFault",
    "ExceptionFault",
    "LockFault",
    "ObjectFault",
    "PacketCheckFault",
    "ParameterFault",
    "SignatureFault",
    "SizeFault",
    "StackObjectFault",
    "TargetFault",
    "TypeRule",
];

/// A library and its sources, without tests.
struct Library {
    name: String,
    sources: Vec<String>,
}

fn libraries() -> Vec<Library> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut names: Vec<String> = fs::read_dir(&crates)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !TOOLS.contains(&&**name))
        .collect();
    names.sort();
    let library = |name: String| {
        let without_tests = |text: String| {
            let text = text.split("\n#[cfg(test)]\nmod tests {").next();
            text.unwrap_or_default().to_owned()
        };
        let directory = crates.join(&name).join("src");
        let mut sources = texts(&directory, "rs");
        sources.retain(|(path, _)| !is_of_tests(path.strip_prefix(&directory).unwrap()));
        let sources = sources.into_iter().map(|(_, text)| without_tests(text));
        let sources = sources.collect();
        Library { name, sources }
    };
    names.into_iter().map(library).collect()
}

fn is_of_tests(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

impl Library {
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().flat_map(|source| source.lines())
    }

    /// Names of the public structures and enumerations.
    fn types(&self) -> Vec<&str> {
        let declared = self.lines().filter_map(|line| {
            let line = line.trim_start();
            let rest = line
                .strip_prefix("pub struct ")
                .or(line.strip_prefix("pub enum "))?;
            Some(identifier(rest))
        });
        declared.filter(|name| !name.is_empty()).collect()
    }

    /// Names of the errors of results in signatures.
    fn errors_of_results(&self) -> BTreeSet<&str> {
        let signatures = self.lines().filter_map(|line| {
            let (_, result) = line.split_once("-> Result<")?;
            let result = result.trim_end_matches([' ', '{', ';', '>']);
            let (_, error) = result.rsplit_once(", ")?;
            // The last element of a tuple or array of results is no error.
            if error.contains([')', ']']) {
                return None;
            }
            Some(identifier(error.rsplit("::").next()?))
        });
        signatures.collect()
    }

    /// True if `impl … TRAIT for NAME` is in the sources.
    fn implements(&self, of: &str, name: &str) -> bool {
        self.lines().any(|line| {
            let found = line.trim_start().strip_prefix("impl").and_then(|rest| {
                let (before, after) = rest.split_once(" for ")?;
                Some((before, identifier(after.rsplit("::").next()?)))
            });
            found.is_some_and(|(before, implementor)| before.ends_with(of) && implementor == name)
        })
    }
}

fn identifier(text: &str) -> &str {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).next().unwrap_or_default()
}

#[test]
fn every_error_type_implements_display_and_error() {
    let mut faults = Vec::new();
    let mut errors = 0;
    for library in libraries() {
        let of_results = library.errors_of_results();
        for name in library.types() {
            let is_error = ERROR_ENDS.iter().any(|end| name.ends_with(end));
            let is_error = is_error || of_results.contains(name);
            if !is_error || EXPLAINED.contains(&name) {
                continue;
            }
            errors += 1;
            for of in ["Display", "Error"] {
                if !library.implements(of, name) {
                    faults.push(format!("{}: {name} does not implement {of}", library.name));
                }
            }
        }
    }
    assert!(errors > 60, "{errors} errors");
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Names of public types in several libraries, with these libraries. Modules tell them
/// apart; a name that the facade would export twice has to be distinct. A new one fails
/// until it is listed.
const SHARED: &[(&str, &str)] = &[
    ("Access", "btf, interp, isa"),
    ("Action", "gateway, seccomp"),
    ("Addresses", "gateway, vm"),
    ("Analysis", "beebox, seccomp, verifier"),
    ("Applied", "interp, jit"),
    ("Batch", "kernel, sys"),
    ("ByteOrder", "capture, classic, isa"),
    ("Capability", "spec, sys, verifier"),
    ("Case", "program, seccomp"),
    ("Change", "btf, gateway"),
    ("CompileError", "jit, seccomp, sys"),
    ("Compiled", "gateway, seccomp"),
    ("Decision", "beebox, verifier"),
    ("Entry", "interp, jit, sys"),
    ("Errno", "spec, sys"),
    ("Error", "beebox, capture, object"),
    ("Fault", "capture, isa"),
    ("Features", "jit, spec"),
    ("Field", "gateway, isa, spec"),
    ("FilterEntry", "interp, jit"),
    ("Format", "capture, report"),
    ("FunctionStack", "lower, verifier"),
    ("Group", "isa, seccomp"),
    ("Halves", "isa, lower"),
    ("Image", "jit, program"),
    ("Input", "beebox, verifier"),
    ("Layout", "capture, report, spec"),
    ("Listed", "beebox, report"),
    ("LoadError", "beebox, sys"),
    ("LoadedProgram", "kernel, sys"),
    ("Machine", "program, vm"),
    ("Malformed", "lower, spec"),
    ("Map", "beebox, kernel, object, sys, verifier"),
    ("MapFault", "object, program"),
    ("Maps", "object, verifier"),
    ("Note", "beebox, verifier"),
    ("Object", "beebox, object"),
    ("Options", "beebox, jit, verifier"),
    ("Outcome", "sys, vm"),
    ("Packet", "gateway, packet"),
    ("Parameter", "spec, verifier"),
    ("Pass", "btf, lower"),
    ("Path", "btf, verifier"),
    ("Problem", "capture, classic, lower, object"),
    ("Program", "beebox, program"),
    ("Reason", "btf, interp"),
    ("Record", "beebox, capture"),
    ("Reference", "object, verifier"),
    ("Refusal", "btf, classic, verifier"),
    ("Requirement", "object, verifier"),
    ("Resolution", "btf, capture"),
    ("Row", "beebox, isa"),
    ("Rule", "classic, gateway"),
    ("Section", "capture, object, verifier"),
    ("Source", "beebox, spec, verifier"),
    ("Stack", "seccomp, verifier"),
    ("StructOps", "object, spec"),
    ("Table", "gateway, seccomp"),
    ("TestRun", "beebox, sys"),
    ("TestRunResult", "beebox, sys"),
    ("Verdict", "beebox, verifier"),
    ("XdpSocket", "sys, vm"),
];

#[test]
fn type_names_of_several_libraries_are_listed() {
    let mut libraries_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for library in libraries() {
        for name in library.types() {
            let of = libraries_of.entry(name.to_owned()).or_default();
            of.insert(library.name.clone());
        }
    }
    libraries_of.retain(|_, of| of.len() > 1);
    let found: BTreeMap<&str, String> = libraries_of
        .iter()
        .map(|(name, of)| (&**name, of.iter().cloned().collect::<Vec<_>>().join(", ")))
        .collect();
    let listed: BTreeMap<&str, String> = SHARED
        .iter()
        .map(|(name, of)| (*name, (*of).to_owned()))
        .collect();
    assert_eq!(found, listed, "names found, and those of SHARED");
}

//! Every type in a public signature of the library `beebox` is exported from it, read from
//! the pages that rustdoc writes: there the compiler has resolved every name, types with a
//! page are links, and a type without one is plain text. No lint holds it (`unnameable_types` takes the
//! hidden module `internal` for a name), and `cargo public-api` needs nightly Rust and lists no methods of
//! types that other crates define.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use beebox_checks::{root, texts};

/// Directory of the library's pages: the one that `BEEBOX_PAGES` names, where they have just
/// been written, or they are written anew.
fn pages() -> PathBuf {
    if let Some(written) = env::var_os("BEEBOX_PAGES") {
        return root().join(written);
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    let status = Command::new(env!("CARGO"))
        .args(["doc", "--quiet", "--locked", "--no-deps", "-p", "beebox"])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(root())
        .status();
    assert!(status.unwrap().success(), "cargo doc fails");
    target.join("doc/beebox")
}

/// Names of the types and traits that the workspace's libraries declare.
fn declared() -> BTreeSet<String> {
    const DECLARATIONS: &[&str] = &["struct", "enum", "trait", "union", "type"];
    let mut names = BTreeSet::new();
    for (path, text) in texts(&root().join("crates"), "rs") {
        if !path.components().any(|part| part.as_os_str() == "src") {
            continue;
        }
        for line in text.lines() {
            let Some(rest) = line.trim_start().strip_prefix("pub ") else {
                continue;
            };
            let mut words = rest.splitn(2, ' ');
            if words
                .next()
                .is_some_and(|word| DECLARATIONS.contains(&word))
            {
                names.extend(
                    words
                        .next()
                        .and_then(|rest| identifiers(rest).next())
                        .map(str::to_owned),
                );
            }
        }
    }
    names
}

/// The parts of a text between two marks.
fn between<'t>(text: &'t str, from: &'t str, to: &'t str) -> impl Iterator<Item = &'t str> {
    let parts = text.split(from).skip(1);
    parts.filter_map(move |part| part.split_once(to).map(|(inside, _)| inside))
}

/// The text without the marks and what is between them.
fn without(text: &str, from: &str, to: &str) -> String {
    let mut parts = text.split(from);
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        rest.push('\u{1}');
        rest.push_str(part.split_once(to).map_or(part, |(_, behind)| behind));
    }
    rest
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |symbol: char| symbol.is_alphanumeric() || symbol == '_';
    text.split(move |symbol| !is_part(symbol))
        .filter(|word| !word.is_empty())
}

/// The names in a signature that are no links, but for what it declares itself.
fn unlinked(signature: &str) -> Vec<String> {
    let text = without(signature, "<summary", "</summary>");
    let text = without(&text, "<span class=\"comment\">", "</span>");
    let text = without(&text, "<a ", "</a>");
    let text = without(&text, "<", ">")
        .replace("&lt;", "<")
        .replace("&gt;", ">");
    let is_enum = text.contains("pub enum ");
    let mut names = Vec::new();
    for line in text.lines() {
        let mut words = identifiers(line).peekable();
        // A variant begins its line.
        let begins = line.trim_start_matches([' ', '\u{1}']);
        if is_enum && begins.starts_with(char::is_uppercase) {
            words.next();
        }
        while let Some(word) = words.next() {
            match word {
                "struct" | "enum" | "trait" | "union" | "type" => {
                    words.next();
                }
                word if word.starts_with(char::is_uppercase) => names.push(word.to_owned()),
                _ => {}
            }
        }
    }
    names
}

/// Names in the signatures of a page that are types of the workspace without a page.
fn faults(page: &str, declared: &BTreeSet<String>) -> BTreeSet<String> {
    let items = between(page, "<pre class=\"rust item-decl\">", "</pre>");
    let members = between(page, "<h4 class=\"code-header\">", "</h4>");
    let mut found = BTreeSet::new();
    for signature in items.chain(members) {
        let names = unlinked(signature).into_iter();
        found.extend(names.filter(|name| declared.contains(name)));
        // Links to types on the pages of other crates, where those are beside these.
        for link in between(signature, "<a ", "</a>") {
            let name = link.rsplit('>').next().unwrap_or_default();
            if link.contains("../beebox_") && name.starts_with(char::is_uppercase) {
                found.insert(name.to_owned());
            }
        }
    }
    found
}

#[test]
fn every_type_in_a_signature_of_the_library_is_exported_from_it() {
    let declared = declared();
    let directory = pages();
    let mut pages = 0;
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, page) in texts(&directory, "html") {
        pages += 1;
        let place = path.strip_prefix(&directory).unwrap().display().to_string();
        for name in faults(&page, &declared) {
            found.entry(name).or_default().insert(place.clone());
        }
    }
    assert!(pages > 60, "{pages} pages");
    assert!(
        found.is_empty(),
        "types that are not exported, and where they are named: {found:#?}"
    );
}

#[test]
fn types_without_a_page_are_found() {
    let declared: BTreeSet<String> = ["Inner", "Outer", "Kind"].map(str::to_owned).into();
    let page = "<pre class=\"rust item-decl\"><code>pub enum Outer {\n    \
                Kind(<a class=\"struct\" href=\"x.html\">Linked</a>),\n}</code></pre>\
                <h4 class=\"code-header\">pub fn <a href=\"#m\">inner</a>(&amp;self) -&gt; \
                <a href=\"y.html\">Option</a>&lt;Inner&gt;</h4>";
    assert_eq!(
        faults(page, &declared),
        BTreeSet::from(["Inner".to_owned()])
    );
    let beside = "<h4 class=\"code-header\">fn f() -> <a class=\"struct\" \
                  href=\"../../beebox_vm/struct.Inner.html\">Inner</a></h4>";
    assert_eq!(
        faults(beside, &declared),
        BTreeSet::from(["Inner".to_owned()])
    );
    let known = page.replace("Inner", "<a href=\"z.html\">Inner</a>");
    assert_eq!(faults(&known, &declared), BTreeSet::new());
}

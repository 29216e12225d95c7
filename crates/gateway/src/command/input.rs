//! Sets of rules from files, as text or compiled.

use std::ffi::CString;
use std::fmt;
use std::path::Path;

use gateway::{Compiled, RuleSet, Table};

use command::answer::{Failure, note};
use command::input::name;
use command::input::read_file;

/// A set of rules from a file, with its table.
pub(super) struct Rules {
    pub(super) set: RuleSet,
    pub(super) table: Table,
}

/// Reads rules from a file or standard input (`-`), as text or compiled.
pub(super) fn read_set(path: &Path) -> Result<(RuleSet, Option<Table>), Failure> {
    let (set, table) = parse(path, read_file(path)?, &|text| {
        if is_blank(text) {
            note(format_args!(
                "warning: {}: no rules, so that every packet passes",
                name(path)
            ));
        }
        Ok(())
    })?;
    Ok((set, table))
}

/// Reads rules that packets are to meet at an interface, and compiles them if they are text. A
/// file that was cut off, or has no rules and does not say so, is refused: it would let packets
/// pass that its author means to drop.
pub(super) fn read_for_interface(path: &Path) -> Result<Rules, Failure> {
    let check = |text: &str| {
        if is_blank(text) {
            let failure = Failure::new("no rules: every packet would pass");
            return Err(failure.within(name(path)).hint("`default pass` states it"));
        }
        if !text.ends_with('\n') {
            let line = text.lines().count();
            let what = format_args!("line {line} has no newline: the file may be cut off");
            let failure = Failure::new(what).within(name(path));
            return Err(failure.hint("a newline behind the last line"));
        }
        Ok(())
    };
    let (set, table) = parse(path, read_file(path)?, &check)?;
    with_table(set, table, path)
}

/// True for text without anything but comments.
fn is_blank(text: &str) -> bool {
    let is_blank = |line: &str| line.split('#').next().unwrap_or_default().trim().is_empty();
    text.lines().all(is_blank)
}

fn parse(
    path: &Path,
    bytes: Vec<u8>,
    check: &dyn Fn(&str) -> Result<(), Failure>,
) -> Result<(RuleSet, Option<Table>), Failure> {
    if gateway::is_state(&bytes) {
        let (set, table) =
            gateway::read_state(&bytes).map_err(|error| Failure::new(error).within(name(path)))?;
        return Ok((set, Some(table)));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new("the file is not text (UTF-8)").within(name(path)))?;
    let set = RuleSet::parse(&text).map_err(|error| {
        let line = text.lines().nth(error.line - 1).unwrap_or_default();
        let marker = format!("{}^", " ".repeat(error.column - 1));
        Failure::new(&error)
            .within(name(path))
            .excerpt(format_args!("  {line}\n  {marker}"))
    })?;
    check(&text)?;
    Ok((set, None))
}

/// Reads rules, and compiles them if they are text.
pub(super) fn read(path: &Path) -> Result<Rules, Failure> {
    let (set, table) = read_set(path)?;
    with_table(set, table, path)
}

fn with_table(set: RuleSet, table: Option<Table>, path: &Path) -> Result<Rules, Failure> {
    let table = match table {
        Some(table) => table,
        None => compile(&set, path)?.into_table(),
    };
    Ok(Rules { set, table })
}

/// Compiles rules, with the interfaces of this machine. Those that it lacks have index 0.
pub(super) fn compile(set: &RuleSet, path: &Path) -> Result<Compiled, Failure> {
    let compiled = Compiled::with_interfaces(set, &|name| Some(interface(name).unwrap_or(0)));
    compiled.map_err(|error| Failure::new(error).within(name(path)))
}

/// An interface of this network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: u32,
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (index {})", self.name, self.index)
    }
}

impl Interface {
    /// The interface of a name, or of the index that the text is.
    pub(super) fn find(text: &str) -> Result<Interface, Failure> {
        let found = interface(text).and_then(|index| {
            let name = sys::network::interface_name(index).ok()?;
            Some(Interface { name, index })
        });
        found.ok_or_else(|| {
            Failure::new(format_args!("no interface is called {text}"))
                .hint("a name that `ip link` lists")
        })
    }
}

/// The index of an interface by its name, or the index that the name is.
pub(super) fn interface(name: &str) -> Option<u32> {
    if let Ok(index) = name.parse() {
        return Some(index);
    }
    let name = CString::new(name).ok()?;
    sys::network::interface_index(&name).ok()
}

//! Lines of lists: `list NAME WORD…`, a line for each structure or tracepoint where
//! entries have parts.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use super::words::{Words, hex};
use crate::registry::{Lists, SafeList};

type NameList = fn(&mut Lists) -> &mut BTreeSet<Box<str>>;

const NAME_LISTS: &[(&str, NameList)] = &[
    ("d_path", |lists| &mut lists.d_path),
    ("lsm_hooks", |lists| &mut lists.lsm_hooks),
    ("lsm_sleepable", |lists| &mut lists.lsm_sleepable),
    ("lsm_disabled", |lists| &mut lists.lsm_disabled),
    ("lsm_untrusted", |lists| &mut lists.lsm_untrusted),
    ("lsm_bool", |lists| &mut lists.lsm_bool),
    ("lsm_sockopt", |lists| &mut lists.lsm_sockopt),
    ("modify_return", |lists| &mut lists.modify_return),
    ("traced_sleepable", |lists| &mut lists.traced_sleepable),
    ("faultable_tracepoints", |lists| {
        &mut lists.faultable_tracepoints
    }),
    ("attach_denied", |lists| &mut lists.attach_denied),
    ("noreturn", |lists| &mut lists.noreturn),
    ("rcu_protected", |lists| &mut lists.rcu_protected),
];

/// Reads a line of a list.
pub(super) fn read_list(lists: &mut Lists, mut words: Words<'_>) -> Option<()> {
    let list = words.next()?;
    if let Some(safe) = SafeList::ALL
        .into_iter()
        .find(|safe| safe.suffix().strip_prefix("__") == Some(list))
    {
        let structure: Box<str> = words.next()?.into();
        lists
            .safe_fields
            .extend(words.map(|field| (safe, structure.clone(), field.into())));
        return Some(());
    }
    match list {
        "nullable_tracepoint_args" => {
            let name = words.next()?.into();
            let mask = hex(words.next()?)?;
            lists.nullable_tracepoint_args.insert(name, mask);
        }
        "destructor" => {
            lists
                .destructors
                .insert(words.next()?.into(), words.next()?.into());
        }
        name => {
            let (_, get) = NAME_LISTS.iter().find(|(list, _)| *list == name)?;
            get(lists).extend(words.map(Box::from));
        }
    }
    Some(())
}

/// Writes all lists.
pub(super) fn write_lists(lists: &Lists, out: &mut String) -> fmt::Result {
    for (list, structure, field) in &lists.safe_fields {
        let list = list.suffix().trim_start_matches('_');
        writeln!(out, "list {list} {structure} {field}")?;
    }
    for (name, mask) in &lists.nullable_tracepoint_args {
        writeln!(out, "list nullable_tracepoint_args {name} {mask:#x}")?;
    }
    for (structure, function) in &lists.destructors {
        writeln!(out, "list destructor {structure} {function}")?;
    }
    let mut lists = lists.clone();
    for (list, get) in NAME_LISTS {
        let names = get(&mut lists);
        if !names.is_empty() {
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            writeln!(out, "list {list} {}", names.join(" "))?;
        }
    }
    Ok(())
}

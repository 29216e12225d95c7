//! Says what a seccomp filter does with a system call, and with all calls.

use std::error::Error;

use beebox::seccomp::{Action, Arch, SeccompFilter};

/// The action for a call by name, all arguments 0, on x86_64.
pub(crate) fn decide(filter: &SeccompFilter, name: &str) -> Result<Action, Box<dyn Error>> {
    let call = Arch::X86_64.call(name, [0; 6]).ok_or("no such call")?;
    Ok(filter.decide(&call))
}

/// Each action with its number of calls and its condition: all calls with all arguments.
pub(crate) fn table(filter: &SeccompFilter) -> Result<Vec<String>, Box<dyn Error>> {
    let table = filter.analyze()?.table(Arch::X86_64)?;
    let mut lines = Vec::new();
    for group in &table.groups {
        for case in &group.cases {
            let (calls, action, when) = (group.calls.len(), case.action, &case.when);
            lines.push(format!("{calls} calls: {action} when {when}"));
        }
    }
    Ok(lines)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(path), Some(name)) = (words.next(), words.next()) else {
        return Err("usage: ask_seccomp FILTER SYSCALL".into());
    };
    // Text or bytes, in any form of a classic program.
    let filter = SeccompFilter::parse(&std::fs::read(path)?)?;
    println!("{name}: {}", decide(&filter, &name)?);
    println!("{}", table(&filter)?.join("\n"));
    Ok(())
}

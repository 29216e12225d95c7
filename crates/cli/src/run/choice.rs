//! The programs of an object that a run needs.

use beebox::internal::object::{Object, ProgramDef};
use beebox::internal::program::ProgramType;
use beebox::internal::run::{can_test_run, takes_packet};

use crate::answer::Failure;

/// What the command line says of the program and its input.
pub(crate) struct Given<'a> {
    /// Its name.
    pub(crate) prog: Option<&'a str>,
    /// Packets are given.
    pub(crate) has_packet: bool,
    /// The interface of packets is given.
    pub(crate) has_ifindex: bool,
}

/// Name of the program that the command line runs: the named one, or the only one that takes
/// the input that is given.
pub(crate) fn choose(object: &Object<'_>, given: &Given<'_>) -> Result<String, Failure> {
    let has_packet = given.has_packet;
    let takes = |kind: Option<ProgramType>| {
        kind.is_some_and(|kind| can_test_run(kind) && (!has_packet || takes_packet(kind)))
    };
    let name = given.prog;
    let is_found = |program: &&ProgramDef<'_>| match name {
        Some(name) => program.name == *name,
        None => takes(program.kind),
    };
    let all = object.programs().map(|(_, program)| program);
    let found: Vec<_> = all.filter(is_found).collect();
    let input = if has_packet {
        "gets a packet"
    } else {
        "Linux test-runs"
    };
    match (&found[..], name) {
        ([one], _) => check_input(one, given).map(|()| one.name.to_string()),
        (_, Some(name)) => Err(Failure::new(format_args!("no program is called {name:?}"))
            .hint(format_args!("--prog with one of {}", names(object)))),
        ([], None) => Err(
            Failure::new(format_args!("no program of a type that {input}"))
                .hint("`beebox show FILE.o` lists the programs of an object and their types"),
        ),
        (several, None) => {
            let several: Vec<String> = several.iter().map(|it| it.name.to_string()).collect();
            Err(Failure::new("several programs take this input")
                .hint(format_args!("--prog with one of {}", several.join(", "))))
        }
    }
}

/// Checks that a program gets the input that its type takes.
fn check_input(program: &ProgramDef<'_>, given: &Given<'_>) -> Result<(), Failure> {
    let Some(kind) = program.kind.filter(|kind| can_test_run(*kind)) else {
        // Loading says why.
        return Ok(());
    };
    let (name, has_packet) = (&program.name, given.has_packet);
    if given.has_ifindex && !takes_packet(kind) {
        let what = "--ifindex is the interface of packets, and program";
        let what = format_args!("{what} {name} of type {} gets none", kind.name());
        return Err(Failure::new(what).hint("no --ifindex"));
    }
    match takes_packet(kind) {
        true if !has_packet => Err(Failure::new(format_args!(
            "no packet is given for program {name}"
        ))
        .hint("--packet HEX|FILE or --pcap IN")),
        false if has_packet => Err(Failure::new(format_args!(
            "program {name} is of type {}, which gets no packet",
            kind.name()
        ))
        .hint("--ctx HEX|FILE, its context")),
        _ => Ok(()),
    }
}

/// Names of all programs.
pub(crate) fn names(object: &Object<'_>) -> String {
    let names = object
        .programs()
        .map(|(_, program)| program.name.to_string());
    names.collect::<Vec<_>>().join(", ")
}

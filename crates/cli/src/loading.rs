//! Options that open an object by the conventions of a loader, and set what a loader sets.

use beebox::internal::loading::{Guess, LoadingError, ObjectLoading};
use beebox::internal::object::Object;
use beebox::internal::program::{LoaderKind, ProgramType};
use beebox::internal::run::LoadError;

use crate::answer::{Failure, note};
use crate::object_input::{expected_value, program_type};
use crate::verify::globals;

/// The failure for an object that is not loaded; a program that is refused with the command that says why.
pub(crate) fn load_failure(error: LoadError, name: &str) -> Failure {
    let hint = match &error {
        LoadError::Refused { program, .. } => {
            Some(format!("beebox verify {name} --prog {program} --explain"))
        }
        LoadError::Link(_) | LoadError::Unsupported { .. } => {
            Some(format!("beebox verify {name} --explain"))
        }
        _ => None,
    };
    let failure = Failure::new(error).within(name);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The options.
#[derive(clap::Args)]
pub(crate) struct LoadingArgs {
    /// The loader that the object is written for: libbpf, cilium-ebpf, aya, libbpf-0.8 (before
    /// 1.0) or iproute2 (tc, ip). Its conventions say what names of sections, definitions of maps
    /// and undefined symbols mean [default: libbpf; where that refuses the object, the one that
    /// takes it, with a note]
    #[arg(long, value_name = "LOADER", value_parser = loader)]
    loader: Option<LoaderKind>,

    /// The type of programs whose section names imply none, or of one program, as `xdp` or
    /// `count=xdp`. Those of type tracing run at the begin of a function (fentry)
    #[arg(long = "type", value_name = "[PROGRAM=]TYPE", value_parser = kind)]
    kinds: Vec<(Option<String>, ProgramType)>,

    /// What a program attaches to, in place of what its section names, as
    /// `on_open=do_filp_open`: a function, hook or tracepoint of the kernel
    #[arg(long, value_name = "PROGRAM=FUNCTION", value_parser = attach)]
    attach: Vec<(String, String)>,

    /// Value of an undefined symbol or an extern (kconfig, ksym), as a loader defines it
    #[arg(long, value_name = "NAME=NUMBER", value_parser = define)]
    define: Vec<(String, u64)>,

    /// Set a global variable before loading, as `limit = 10` or `ports[2].low = FAST`;
    /// @FILE holds one on each line
    #[arg(
        short = 'G',
        long,
        visible_alias = "set-global-vars",
        value_name = "GLOBAL"
    )]
    set: Vec<String>,
}

impl LoadingArgs {
    /// The type of programs whose section names imply none.
    pub(crate) fn kind(&self) -> Option<ProgramType> {
        let general = self.kinds.iter().filter(|(name, _)| name.is_none());
        general.map(|(_, kind)| *kind).next_back()
    }

    /// True if an option is given.
    pub(crate) fn is_given(&self) -> bool {
        self.loader.is_some()
            || !self.kinds.is_empty()
            || !self.attach.is_empty()
            || !self.define.is_empty()
            || !self.set.is_empty()
    }

    /// What they say.
    ///
    /// # Errors
    /// For values of global variables that cannot be read.
    pub(crate) fn read(&self) -> Result<ObjectLoading, Failure> {
        let of_one = |(name, kind): &(Option<String>, _)| Some((name.clone()?, *kind));
        let kinds: Vec<_> = self.kinds.iter().filter_map(of_one).collect();
        let mut general = self.kinds.iter().filter(|(name, _)| name.is_none());
        if general.any(|(_, kind)| Some(*kind) != self.kind()) {
            let what = "--type is given twice for all programs, with different types";
            return Err(Failure::new(what).hint("one of them, or --type PROGRAM=TYPE"));
        }
        check_repeated("--type", &kinds)?;
        check_repeated("--attach", &self.attach)?;
        check_repeated("--define", &self.define)?;
        Ok(ObjectLoading {
            loader: self.loader,
            defines: self.define.clone(),
            kind: self.kind(),
            kinds,
            attach: self.attach.clone(),
            globals: globals::read(&self.set)?,
        })
    }
}

/// Says on standard error by whose conventions an object is opened, if that is guessed.
pub(crate) fn note_guess(object: &Object<'_>, name: &str) {
    if let Some(guess) = object.guess() {
        note_guessed(guess, name);
    }
}

/// Says whose conventions are guessed.
pub(crate) fn note_guessed(guess: &Guess, name: &str) {
    note(format_args!("{name}: {guess}"));
}

/// Sets what is to be set.
///
/// # Errors
/// For what cannot be set, with a remedy.
pub(crate) fn change(object: &mut Object<'_>, loading: &ObjectLoading) -> Result<(), Failure> {
    loading.change(object).map_err(failure)
}

/// Failure to set what a loader sets.
pub(crate) fn failure(error: LoadingError) -> Failure {
    let failure = Failure::new(&error);
    match error {
        LoadingError::Variable(error) => globals::failure(error),
        LoadingError::Define(_) => failure,
        LoadingError::NoFunction { .. } => failure.hint(
            "--attach for programs of fentry, fexit, fmod_ret, lsm, tp_btf, iter; \
                 --type PROGRAM=tracing makes it one of fentry",
        ),
        LoadingError::NoProgram { known, .. } => {
            failure.hint(format_args!("one of {}", known.join(", ")))
        }
    }
}

/// Refuses an option that is given twice for a name, with different values.
fn check_repeated<V: PartialEq>(option: &str, given: &[(String, V)]) -> Result<(), Failure> {
    for (at, (name, value)) in given.iter().enumerate() {
        let mut before = given[..at].iter();
        if before.any(|(known, other)| known == name && other != value) {
            let what = format_args!("{option} is given twice for {name}, with different values");
            return Err(Failure::new(what).hint("one of them"));
        }
    }
    Ok(())
}

fn loader(name: &str) -> Result<LoaderKind, String> {
    LoaderKind::from_name(name)
        .ok_or_else(|| expected_value(name, LoaderKind::ALL.into_iter().map(LoaderKind::name)))
}

fn kind(text: &str) -> Result<(Option<String>, ProgramType), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("TYPE or PROGRAM=TYPE is expected".to_owned()),
        Some((program, kind)) => Ok((Some(program.to_owned()), program_type(kind)?)),
        None => Ok((None, program_type(text)?)),
    }
}

fn attach(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=');
    let is_whole = |(program, function): &(&str, &str)| !program.is_empty() && !function.is_empty();
    let (program, function) = parts
        .filter(is_whole)
        .ok_or("PROGRAM=FUNCTION is expected")?;
    Ok((program.to_owned(), function.to_owned()))
}

fn define(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').unwrap_or_default();
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() {
        return Err("NAME=NUMBER is expected".to_owned());
    }
    let (is_negative, digits) = match value.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, value),
    };
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    let number = number.map_err(|_| {
        format!("{value:?} is no number of 64 bits, decimal or hexadecimal with 0x")
    })?;
    Ok((
        name.to_owned(),
        match is_negative {
            true => number.wrapping_neg(),
            false => number,
        },
    ))
}

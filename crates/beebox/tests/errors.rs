//! Every error type of the library implements `Error`.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use beebox::internal::{
    ask, btf, bytes, captures, coverage, ebpf, expect, fuzz, host, kernel, loading, maps,
    maps_json, mutate, network, object, program, raw, run, seccomp, test_files, text, variables,
    verify,
};

/// Checks at compile time that the types are errors, and lists their paths.
macro_rules! errors {
    ($($error:ty,)*) => {
        const ERRORS: &[&str] = &[$(stringify!($error)),*];

        const _: () = {
            const fn is_error<E: Error>() {}
            $(is_error::<$error>();)*
        };
    };
}

errors! {
    ask::AskError,
    beebox::Error,
    beebox::FilterError,
    beebox::JumpLimitExceeded,
    beebox::internal::MemoryError,
    beebox::internal::Refusal,
    beebox::internal::EngineRefusal,
    btf::AccessFault,
    btf::core::CoreError,
    btf::DedupError,
    btf::DumpError,
    btf::ext::ExtError,
    btf::ext::ExtFault,
    btf::ParseError,
    btf::ShowError,
    btf::TypeFileError,
    btf::validate::FieldFault,
    btf::validate::Reason,
    btf::validate::Refusal,
    bytes::ByteSourceError,
    coverage::LcovFault,
    captures::CaptureError,
    captures::Fault,
    captures::FilterCaptureError,
    captures::OutputFormatError,
    captures::PacketsError,
    captures::Problem,
    ebpf::AsmError,
    ebpf::AsmProblem,
    ebpf::Fault,
    expect::ExpectError,
    expect::ExpectProblem,
    fuzz::CorpusError,
    fuzz::FindsError,
    host::BadFunctions,
    kernel::ImageFault,
    kernel::files::KernelFileError,
    <kernel::KernelVersion as std::str::FromStr>::Err,
    loading::LoadingError,
    maps::TailTableError,
    maps_json::MapsJsonError,
    maps_json::MapsJsonFault,
    maps_json::RecordTypeError,
    mutate::MutationError,
    network::NetworkFileError,
    object::AttachFault,
    object::BtfFault,
    object::ContainerFault,
    object::DatasecFault,
    object::elf::ElfFault,
    object::Error,
    object::ExternFault,
    object::LinkFault,
    object::MapFault,
    object::Mismatch,
    object::Problem,
    object::ProgramDefFault,
    object::ProgramFault,
    object::RelocationFault,
    object::SectionFault,
    object::SectionMismatch,
    object::StructOpsFault,
    program::InvalidProgram,
    raw::AccessError,
    raw::BadAccess,
    raw::CallFault,
    raw::CompileError,
    raw::ElfError,
    raw::ListingReadError,
    raw::NoRoom,
    raw::Problem,
    raw::ProgramReadError,
    raw::RawStop<'static>,
    raw::Reason,
    raw::RegionError,
    raw::Trap,
    raw::UncheckedError,
    run::DataError,
    run::debug::DebugError,
    run::LoadError,
    run::PacketChoiceError,
    run::ReuseFault,
    run::RunCaptureError,
    run::RunError,
    seccomp::ParseCallError,
    seccomp::ExpectationError,
    seccomp::profile::CompileError,
    seccomp::profile::ProfileError,
    seccomp::TooComplex,
    test_files::NetworkFault,
    test_files::TestFault,
    test_files::TestFilesError,
    text::Problem,
    text::ReadError,
    variables::VariableError,
    variables::VariableFault,
    verify::InnerFault,
    verify::MapFault,
    verify::MapRefusal,
    verify::Refusal,
    verify::registry::CtxRefused,
    verify::results::FileFault,
    verify::veristat::VeristatError,
}

/// Ends of names of errors.
const ENDS: &[&str] = &[
    "Error", "Exceeded", "Fault", "Mismatch", "Problem", "Reason", "Refusal", "Refused", "Stop",
    "Trap",
];

/// Exported types with such a name that are no errors: the outcome of a step of the verifier, why a
/// debugged run stopped, and why an object was opened by other conventions.
const OTHERS: &[(&str, &str)] = &[
    ("loading", "GuessReason"),
    ("run", "StopReason"),
    ("verify", "Stop"),
];

/// What the sources export by such a name is in the list above, by name and module of the crate or of
/// `internal`.
#[oracle::test]
fn the_list_of_errors_is_complete() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let internal = source.join("internal");
    let roots = [
        (&source, source.join("lib.rs")),
        (&internal, source.join("internal.rs")),
    ];
    let mut exported = BTreeSet::new();
    for (directory, root) in roots {
        let root = fs::read_to_string(root).unwrap();
        exported.extend(exports("beebox", &root));
        let modules = root
            .lines()
            .filter_map(|line| line.strip_prefix("pub mod "));
        let modules = modules.map(|module| module.trim_end_matches(';'));
        for module in modules.filter(|module| *module != "internal") {
            for file in files_of(directory, module) {
                exported.extend(exports(module, &fs::read_to_string(file).unwrap()));
            }
        }
    }
    let is_error = |name: &str| ENDS.iter().any(|end| name.ends_with(end));
    exported.retain(|(_, name)| is_error(name));
    exported.retain(|(module, name)| !OTHERS.contains(&(module, name)));
    assert!(exported.len() > 60, "{exported:#?}");
    let listed = |(module, name): &(String, String)| {
        ERRORS.iter().any(|path| {
            let mut parts = path
                .split(['<', '>'])
                .next()
                .unwrap_or_default()
                .split("::");
            parts.next() == Some(module) && parts.last() == Some(name)
        })
    };
    exported.retain(|error| !listed(error));
    assert!(exported.is_empty(), "add to `errors!`: {exported:#?}");
}

/// The files of a module of the crate.
fn files_of(source: &Path, module: &str) -> Vec<PathBuf> {
    let mut files = vec![source.join(format!("{module}.rs"))];
    let mut directories = vec![source.join(module)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false => files.push(path),
            }
        }
    }
    files.retain(|file| file.exists());
    files
}

/// Module and name of what a file exports: its public types, and those of its `pub use`.
fn exports(module: &str, text: &str) -> BTreeSet<(String, String)> {
    let reexports = text.split("pub use ").skip(1).flat_map(|rest| {
        let names = rest.split(';').next().unwrap_or_default();
        let last = |name: &str| {
            let name = name.rsplit(" as ").next()?;
            Some(name.rsplit("::").next()?.trim().to_owned())
        };
        names
            .split(['{', '}', ','])
            .filter_map(last)
            .collect::<Vec<_>>()
    });
    let types = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let rest = line
            .strip_prefix("pub enum ")
            .or(line.strip_prefix("pub struct "))?;
        Some(
            rest.split(|c: char| !c.is_alphanumeric())
                .next()?
                .to_owned(),
        )
    });
    reexports
        .chain(types)
        .map(|name| (module.to_owned(), name))
        .collect()
}

//! Classes of errors. libbpf's error numbers are ambiguous, so errors are classified by
//! their messages.

use object::externs::ExternFault;
use object::sections::SectionFault;
use object::{AttachFault, Problem, RelocationFault};

use super::syscall_record::{Outcome, Stage};

/// Success.
pub const LOADED: &str = "loaded";
/// The kernel lacks a function or variable.
pub const NO_SYMBOL: &str = "no such kernel symbol";

/// Patterns of libbpf's messages by class; the first match counts.
const WORDS: &[(&str, &str)] = &[
    ("legacy map definitions", "legacy maps"),
    ("failed to find BTF for extern", "extern of another object"),
    ("unrecognized extern section", "extern of another object"),
    (
        "isn't referenced anywhere",
        "struct_ops program without a map",
    ),
    ("struct_ops", "struct_ops"),
    ("not found in kernel", NO_SYMBOL),
    ("(strong): not resolved", NO_SYMBOL),
    ("(strong): unknown", NO_SYMBOL),
    ("incompatible with kernel", "unlike the kernel's symbol"),
    ("func_proto", "unlike the kernel's symbol"),
    ("missing BPF prog type", "no program type"),
    ("attach program FD is not set", "no attach point"),
    ("no BTF-based attach target", "no attach point"),
    ("to find kernel BTF type ID", "no such attach point"),
    ("invalid pinning value", "map definition"),
    ("CO-RE", "CO-RE"),
    ("relo", "relocation"),
    ("map '", "map definition"),
    ("elf:", "ELF"),
    ("BTF", "BTF"),
    // Of a module that the kernel lacks libbpf says no more.
    ("to prepare load attributes", "no such attach point"),
];

impl Outcome {
    /// Class of the result.
    pub fn class(&self) -> &'static str {
        if self.errno == 0 {
            return LOADED;
        }
        if let Some(class) = self.known_class {
            return class;
        }
        for message in &self.messages {
            // The last line repeats that loading failed, and has a path in it.
            if message.starts_with("failed to load object") {
                continue;
            }
            if let Some((_, class)) = WORDS.iter().find(|(words, _)| message.contains(words)) {
                return class;
            }
        }
        match self.stage {
            Stage::Open => "not opened",
            Stage::Load => "not loaded",
        }
    }
}

/// Class of one of our errors.
pub fn of_problem(problem: &Problem) -> &'static str {
    match problem {
        Problem::Elf(_) | Problem::Container(_) => "ELF",
        Problem::Section(SectionFault::LegacyMaps) => "legacy maps",
        Problem::Section(_) | Problem::ProgramDef(_) => "section",
        Problem::Btf(_) | Problem::Datasec(_) => "BTF",
        Problem::Map(_) => "map definition",
        Problem::StructOps(_) => "struct_ops",
        Problem::Extern(fault) => match fault {
            ExternFault::NotDescribed
            | ExternFault::NotExtern
            | ExternFault::NoSection
            | ExternFault::UnknownSection(_)
            | ExternFault::NoSymbol => "extern of another object",
            ExternFault::Missing | ExternFault::Unresolved => NO_SYMBOL,
            ExternFault::OtherType { .. } | ExternFault::OtherPrototype { .. } => {
                "unlike the kernel's symbol"
            }
            _ => "extern",
        },
        Problem::Attach(fault) => match fault {
            AttachFault::NoType { .. } => "no program type",
            AttachFault::Unused => "struct_ops program without a map",
            AttachFault::NoTarget { .. } | AttachFault::NoProgram { .. } => "no attach point",
            _ => "no such attach point",
        },
        Problem::Relocation(RelocationFault::Core(_)) => "CO-RE",
        Problem::Relocation(_) => "relocation",
        _ => "other",
    }
}

//! BTF from files.

use std::path::Path;

use beebox::internal::btf::{TypeFile, TypeFileError};

use crate::answer::Failure;
use crate::input::name;

/// Reads a file, or standard input (`-`).
pub fn read_types(path: &Path) -> Result<TypeFile, Failure> {
    TypeFile::open(path).map_err(|error| unreadable(path, &error))
}

/// The failure for a file whose types are not read, with a remedy.
pub fn unreadable(path: &Path, error: &TypeFileError) -> Failure {
    let failure = Failure::new(error).within(name(path));
    match error {
        TypeFileError::File(error) => Failure::of_file(path, error),
        TypeFileError::NoBtf { is_image: true } => {
            failure.hint("a kernel that is configured with CONFIG_DEBUG_INFO_BTF")
        }
        TypeFileError::NoBtf { is_image: false } => {
            failure.hint("clang -target bpf -g writes one; llvm-strip -g keeps it, strip does not")
        }
        _ => failure,
    }
}

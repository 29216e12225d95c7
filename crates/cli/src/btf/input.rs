//! Types that the command line names.

use std::path::PathBuf;

use beebox::internal::btf::{Btf, Shape, TypeId};

use crate::answer::Failure;

/// The types with a number, or with a name (with or without `struct` and the like).
pub(crate) fn find(btf: &Btf<'_>, word: &str) -> Result<Vec<TypeId>, Failure> {
    if let Ok(number) = word.parse() {
        let id = TypeId(number);
        return match btf.get(id) {
            Some(_) if !id.is_void() => Ok(vec![id]),
            _ => Err(Failure::new(format!(
                "no type {number}: the last is {}",
                btf.len() - 1
            ))),
        };
    }
    let (prefix, name) = word.split_once(' ').unwrap_or(("", word));
    let fits = |shape: Shape<'_>| match prefix {
        "struct" => matches!(shape, Shape::Struct(_)),
        "union" => matches!(shape, Shape::Union(_)),
        "enum" => matches!(shape, Shape::Enum(_)),
        _ => true,
    };
    let found: Vec<TypeId> = btf
        .types()
        .filter(|ty| ty.name() == name && fits(ty.shape()))
        .filter(|ty| {
            !matches!(
                ty.shape(),
                Shape::Fwd(_) | Shape::DeclTag(_) | Shape::TypeTag(_)
            )
        })
        .map(|ty| ty.id())
        .collect();
    if found.is_empty() {
        return Err(missing(btf, name, word));
    }
    Ok(found)
}

/// The failure for a name that no type has, with the nearest one.
fn missing(btf: &Btf<'_>, name: &str, word: &str) -> Failure {
    let failure = Failure::new(format!("no type named {word}"));
    let names = btf
        .types()
        .map(|ty| ty.name())
        .filter(|name| !name.is_empty());
    let near = names
        .map(|other| (strsim::damerau_levenshtein(&other.to_string(), name), other))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| 3 * *distance <= name.chars().count());
    match near {
        Some((_, near)) => failure.hint(near),
        None => failure.hint("beebox btf dump FILE lists the types"),
    }
}

/// A file on the command line.
#[derive(clap::Args)]
pub(super) struct FileArg {
    /// BTF, or an ELF file with a section .BTF; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
}

//! Limits on the total size of names in an input file.
//!
//! Names are NUL-terminated and may share bytes, so that a small file can have names that
//! exhaust memory when copied. All names are counted before any is copied; real objects
//! have a few megabytes.

use std::collections::BTreeSet;

use btf::{Btf, BtfExt, Name, Shape, StrOffset, Type};

use super::LinkFault;
use crate::elf::Elf;

/// Maximum number of bytes of the names of a file, and of those of its types.
const MAX_NAMES: usize = 64 << 20;
/// Maximum number of bytes of BTF.ext strings beyond those of the file, which may share bytes.
const MAX_INFO: usize = 128 << 20;

/// Remaining budget.
struct Allowance(usize);

impl Allowance {
    fn take(&mut self, name: Name<'_>) -> Result<(), LinkFault> {
        let len = name.as_bytes().len() + 1;
        self.0 = self.0.checked_sub(len).ok_or(LinkFault::TooMuchText)?;
        Ok(())
    }
}

/// Counts the names of sections and symbols.
pub(super) fn check_names(elf: &Elf<'_>) -> Result<(), LinkFault> {
    let mut left = Allowance(MAX_NAMES);
    for section in elf.sections() {
        left.take(section.name)?;
    }
    for symbol in elf.symbols() {
        left.take(elf.symbol_name(symbol).unwrap_or_default())?;
    }
    Ok(())
}

/// Counts the names of types and their parts.
pub(super) fn check_types(btf: &Btf<'_>) -> Result<(), LinkFault> {
    let mut left = Allowance(MAX_NAMES);
    btf.types().try_for_each(|ty| check_type(&mut left, ty))
}

fn check_type(left: &mut Allowance, ty: Type<'_>) -> Result<(), LinkFault> {
    left.take(ty.name())?;
    let mut take = |name: StrOffset| left.take(ty.btf().string(name));
    match ty.shape() {
        Shape::Struct(of) | Shape::Union(of) => {
            of.members().try_for_each(|member| take(member.name))
        }
        Shape::Enum(of) => of.values().try_for_each(|value| take(value.name)),
        Shape::Proto(of) => of.params().try_for_each(|param| take(param.name)),
        _ => Ok(()),
    }
}

/// Counts the names and source lines of what is said about instructions, each once.
pub(super) fn check_info(btf: &Btf<'_>, ext: &BtfExt<'_>) -> Result<(), LinkFault> {
    let mut left = Allowance(MAX_INFO + btf.strings().len());
    let mut counted = BTreeSet::new();
    let mut take = |text: StrOffset| match counted.insert(text) {
        true => left.take(btf.string(text)),
        false => Ok(()),
    };
    for group in ext.lines() {
        for line in group.records() {
            take(line.file)?;
            take(line.text)?;
        }
    }
    for group in ext.relocations() {
        for relocation in group.records() {
            take(relocation.spec.access)?;
        }
    }
    Ok(())
}

//! Words that several kinds of lines share: types with modifiers, structures, sets of
//! bits. A type is its name in C without the prefix of its enumeration, then its
//! modifiers, each behind `|`; a structure follows behind `:`.

use crate::registry::{KernelType, RegBase, RegType, TypeFlags};

/// Words of a line behind the first.
pub(super) type Words<'t> = std::str::Split<'t, char>;

/// A structure by name; none for an empty word.
pub(super) fn kernel_type(name: &str) -> Option<KernelType> {
    (!name.is_empty()).then(|| KernelType {
        name: name.into(),
        btf_id: 0,
    })
}

/// Base of a type, written without the prefix of its C name, before any flag.
pub(super) fn base<B: Copy>(
    text: &str,
    prefix: &str,
    all: &[B],
    name: fn(B) -> &'static str,
) -> Option<B> {
    let text = text.split('|').next()?;
    all.iter()
        .copied()
        .find(|&base| name(base).strip_prefix(prefix) == Some(text))
}

/// Modifiers behind a base.
pub(super) fn flags(text: &str) -> Option<TypeFlags> {
    text.split('|')
        .skip(1)
        .try_fold(TypeFlags::NONE, |flags, word| {
            let found = TypeFlags::ALL.iter().find(|(_, name)| *name == word)?;
            Some(flags.with(found.0))
        })
}

/// Bits of a word in hexadecimal, `0x1f`.
pub(super) fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// Parses the type of a register.
pub(super) fn read_value(text: &str) -> Option<RegType> {
    let base = base(text, "", RegBase::ALL, |base| base.name())?;
    Some(RegType::new(base, flags(text)?))
}

/// A type without the prefix of its names.
pub(super) fn write_type(name: &str, prefix: &str, flags: TypeFlags, out: &mut String) {
    out.push_str(name.strip_prefix(prefix).unwrap_or(name));
    for (flag, name) in TypeFlags::ALL {
        if flags.has(*flag) {
            out.push('|');
            out.push_str(name);
        }
    }
}

/// The text of [`read_value`] with the structure that it points to.
pub(super) fn write_value(value: RegType, btf: Option<&KernelType>, out: &mut String) {
    write_type(value.base.name(), "", value.flags, out);
    if let Some(ty) = btf {
        out.push(':');
        out.push_str(&ty.name);
    }
}

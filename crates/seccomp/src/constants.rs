//! Names of the kernel's constants, as arguments of system calls have them.
//!
//! `constants.csv` holds a name, its value, and the architectures where the value is
//! another. It was made from the headers that Linux 6.17 installs for each architecture
//! (`asm/`, `linux/`): flags, commands and families of the calls that filters look into.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use crate::arch::Arch;
use crate::nearest::nearest;

const TABLE: &str = include_str!("constants.csv");

/// The rest of each row, by name.
static ROWS: LazyLock<BTreeMap<&'static str, &'static str>> = LazyLock::new(|| {
    TABLE
        .lines()
        .filter_map(|line| line.split_once(','))
        .collect()
});

/// A name that is not that of a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownConstant {
    /// The name as given.
    pub name: String,
    /// The name that was probably meant.
    pub closest: Option<&'static str>,
}

impl fmt::Display for UnknownConstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no constant named {:?} is known", self.name)
    }
}

impl std::error::Error for UnknownConstant {}

/// The value of a constant on an architecture.
pub fn value(arch: Arch, name: &str) -> Result<u64, UnknownConstant> {
    let unknown = || UnknownConstant {
        name: name.to_owned(),
        closest: closest(name),
    };
    let row = ROWS.get(name).ok_or_else(unknown)?;
    let (common, others) = row.split_once(',').unwrap_or((row, ""));
    let mut others = others.split(' ').filter_map(|other| other.split_once('='));
    let own = others.find(|(column, _)| *column == arch.column());
    let text = own.map_or(common, |(_, value)| value);
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| unknown())
}

/// The known name that is most like a mistyped one.
fn closest(name: &str) -> Option<&'static str> {
    nearest(name, ROWS.keys().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_architecture() {
        let on = |arch, name| value(arch, name).ok();
        assert_eq!(on(Arch::X86_64, "AF_NETLINK"), Some(16));
        assert_eq!(on(Arch::X86_64, "CLONE_NEWUSER"), Some(0x1000_0000));
        assert_eq!(on(Arch::X86_64, "O_DIRECT"), Some(0x4000));
        assert_eq!(on(Arch::Ppc64le, "O_DIRECT"), Some(0x20000));
        assert_eq!(on(Arch::Mipsel64, "SOCK_STREAM"), Some(2));
        assert_eq!(on(Arch::S390x, "KEYCTL_DESCRIBE"), Some(6));
        let unknown = value(Arch::X86_64, "AF_NETLNK").unwrap_err();
        assert_eq!(unknown.closest, Some("AF_NETLINK"));
        assert_eq!(value(Arch::X86_64, "QQQQ").unwrap_err().closest, None);
    }

    #[test]
    fn every_row_has_values() {
        for (name, _) in ROWS.iter() {
            for &arch in Arch::ALL {
                assert!(value(arch, name).is_ok(), "{name} on {arch}");
            }
        }
        assert_eq!(ROWS.len(), TABLE.lines().count());
    }
}

//! System call names and numbers.
//!
//! `calls.csv` has one row for each call with its numbers on all architectures, from the
//! tables of Linux 6.18: `arch/x86/entry/syscalls/syscall_64.tbl` (`common` and `64` for
//! x86_64, `common` and `x32` for x32, without the x32 bit), `syscall_32.tbl`,
//! `arch/arm/tools/syscall.tbl` (with Arm's six private calls) and `scripts/syscall.tbl`
//! with the ABIs that arm64 and riscv select.
//! Those of s390x, ppc64le, mips64 (n64) and loongarch64 are the `__NR_` macros of the
//! headers that Linux 6.17 installs for them; 6.18 added none there. mips64's numbers
//! include n64's 5000, and mipsel64 has the same.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::arch::Arch;
use crate::nearest::nearest;

const TABLE: &str = include_str!("calls.csv");

/// Names and numbers of one architecture.
#[derive(Debug)]
struct Calls {
    by_name: BTreeMap<&'static str, u32>,
    by_number: BTreeMap<u32, &'static str>,
}

static CALLS: LazyLock<Vec<Calls>> =
    LazyLock::new(|| Arch::ALL.iter().map(|&arch| Calls::read(arch)).collect());

impl Calls {
    fn read(arch: Arch) -> Calls {
        let mut lines = TABLE.lines();
        let heads = lines.next().unwrap_or_default();
        let column = heads.split(',').position(|head| head == arch.column());
        let rows = lines.filter_map(|line| {
            let name = line.split(',').next()?;
            let number: u32 = line.split(',').nth(column?)?.parse().ok()?;
            Some((name, number + arch.bias()))
        });
        let by_name: BTreeMap<_, _> = rows.collect();
        Calls {
            by_number: by_name.iter().map(|(&name, &nr)| (nr, name)).collect(),
            by_name,
        }
    }

    fn of(arch: Arch) -> &'static Calls {
        &CALLS[arch as usize]
    }
}

/// The number of a call as filters see it (on x32, with its bit).
pub fn number(arch: Arch, name: &str) -> Option<u32> {
    Calls::of(arch).by_name.get(name).copied()
}

/// The name of a call by its number as filters see it.
pub fn name(arch: Arch, number: u32) -> Option<&'static str> {
    Calls::of(arch).by_number.get(&number).copied()
}

/// Every call of an architecture, by number.
pub fn all(arch: Arch) -> impl Iterator<Item = (u32, &'static str)> {
    Calls::of(arch)
        .by_number
        .iter()
        .map(|(&nr, &name)| (nr, name))
}

/// True if some supported architecture has a call of this name.
pub fn is_known(name: &str) -> bool {
    Arch::ALL.iter().any(|&arch| number(arch, name).is_some())
}

/// The known name that is closest to a mistyped one.
pub fn closest(arch: Arch, name: &str) -> Option<&'static str> {
    nearest(name, all(arch).map(|(_, known)| known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_numbers() {
        assert_eq!(number(Arch::X86_64, "openat"), Some(257));
        assert_eq!(number(Arch::X86_64, "uprobe"), Some(336));
        assert_eq!(number(Arch::I386, "socketcall"), Some(102));
        assert_eq!(number(Arch::I386, "break"), Some(17));
        assert_eq!(number(Arch::X32, "ioctl"), Some(0x4000_0000 + 514));
        assert_eq!(number(Arch::X32, "read"), Some(0x4000_0000));
        assert_eq!(number(Arch::Aarch64, "newfstatat"), Some(79));
        assert_eq!(number(Arch::Arm, "cacheflush"), Some(0xf0002));
        assert_eq!(number(Arch::Riscv64, "riscv_hwprobe"), Some(258));
        assert_eq!(number(Arch::S390x, "s390_sthyi"), Some(380));
        assert_eq!(number(Arch::Ppc64le, "rtas"), Some(255));
        assert_eq!(number(Arch::Mips64, "openat"), Some(5247));
        assert_eq!(number(Arch::Mipsel64, "openat"), Some(5247));
        assert_eq!(number(Arch::Loongarch64, "openat"), Some(56));
        for &arch in Arch::ALL {
            let first = match arch {
                Arch::Mips64 | Arch::Mipsel64 => 5000,
                _ => arch.bias(),
            };
            let newest = number(arch, "file_setattr");
            assert_eq!(newest, Some(469 + first), "{arch}");
        }
    }

    #[test]
    fn the_table_is_a_bijection_in_every_column() {
        assert_eq!(TABLE.lines().next().unwrap().split(',').count(), 11);
        for &arch in Arch::ALL {
            let calls = Calls::of(arch);
            assert_eq!(calls.by_name.len(), calls.by_number.len(), "{arch}");
            assert!(calls.by_name.len() > 300, "{arch}");
        }
    }

    #[test]
    fn a_mistyped_name_finds_its_neighbour() {
        assert_eq!(closest(Arch::X86_64, "opneat"), Some("openat"));
        assert_eq!(closest(Arch::X86_64, "completely_else"), None);
    }
}

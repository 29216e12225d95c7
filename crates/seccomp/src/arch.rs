//! The supported architectures: audit number, width of arguments and, for x32, the bit that
//! distinguishes its system call numbers from those of x86_64.

use std::fmt;

use classic::SeccompData;

use crate::calls;

pub use classic::text::ByteOrder;

/// Set in every x32 system call number (`__X32_SYSCALL_BIT`).
pub const X32_BIT: u32 = 0x4000_0000;

/// A system call interface. `X32` has the audit number of x86_64: a filter can distinguish
/// them by [`X32_BIT`] only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86, also reached from 64-bit programs by `int 0x80`.
    I386,
    /// 32-bit pointers on 64-bit x86.
    X32,
    /// 64-bit Arm.
    Aarch64,
    /// 32-bit Arm.
    Arm,
    /// 64-bit RISC-V.
    Riscv64,
    /// 64-bit Z (big-endian).
    S390x,
    /// 64-bit Power, little-endian.
    Ppc64le,
    /// 64-bit MIPS (n64), big-endian.
    Mips64,
    /// 64-bit MIPS (n64), little-endian.
    Mipsel64,
    /// 64-bit LoongArch.
    Loongarch64,
}

impl Arch {
    /// All values, in the order of the table's columns.
    pub const ALL: &[Arch] = &[
        Arch::X86_64,
        Arch::I386,
        Arch::X32,
        Arch::Aarch64,
        Arch::Arm,
        Arch::Riscv64,
        Arch::S390x,
        Arch::Ppc64le,
        Arch::Mips64,
        Arch::Mipsel64,
        Arch::Loongarch64,
    ];

    /// A system call by name, as filters see it; `None` if the architecture has none of that name.
    pub fn call(self, name: &str, args: [u64; 6]) -> Option<SeccompData> {
        Some(SeccompData {
            nr: calls::number(self, name)? as i32,
            arch: self.audit(),
            instruction_pointer: 0,
            args,
        })
    }

    /// Value of `seccomp_data.arch` (`AUDIT_ARCH_*`).
    pub const fn audit(self) -> u32 {
        match self {
            Arch::X86_64 | Arch::X32 => 0xc000_003e,
            Arch::I386 => 0x4000_0003,
            Arch::Aarch64 => 0xc000_00b7,
            Arch::Arm => 0x4000_0028,
            Arch::Riscv64 => 0xc000_00f3,
            Arch::S390x => 0x8000_0016,
            Arch::Ppc64le => 0xc000_0015,
            Arch::Mips64 => 0x8000_0008,
            Arch::Mipsel64 => 0xc000_0008,
            Arch::Loongarch64 => 0xc000_0102,
        }
    }

    /// Its usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::I386 => "i386",
            Arch::X32 => "x32",
            Arch::Aarch64 => "aarch64",
            Arch::Arm => "arm",
            Arch::Riscv64 => "riscv64",
            Arch::S390x => "s390x",
            Arch::Ppc64le => "ppc64le",
            Arch::Mips64 => "mips64",
            Arch::Mipsel64 => "mipsel64",
            Arch::Loongarch64 => "loongarch64",
        }
    }

    /// Its name in container profiles (`SCMP_ARCH_*`).
    pub const fn profile_name(self) -> &'static str {
        match self {
            Arch::X86_64 => "SCMP_ARCH_X86_64",
            Arch::I386 => "SCMP_ARCH_X86",
            Arch::X32 => "SCMP_ARCH_X32",
            Arch::Aarch64 => "SCMP_ARCH_AARCH64",
            Arch::Arm => "SCMP_ARCH_ARM",
            Arch::Riscv64 => "SCMP_ARCH_RISCV64",
            Arch::S390x => "SCMP_ARCH_S390X",
            Arch::Ppc64le => "SCMP_ARCH_PPC64LE",
            Arch::Mips64 => "SCMP_ARCH_MIPS64",
            Arch::Mipsel64 => "SCMP_ARCH_MIPSEL64",
            Arch::Loongarch64 => "SCMP_ARCH_LOONGARCH64",
        }
    }

    /// Its name in the `arches` lists of Docker profiles.
    pub const fn docker_name(self) -> &'static str {
        match self {
            Arch::X86_64 => "amd64",
            Arch::I386 => "x86",
            Arch::X32 => "x32",
            Arch::Aarch64 => "arm64",
            Arch::Arm => "arm",
            Arch::Riscv64 => "riscv64",
            Arch::S390x => "s390x",
            Arch::Ppc64le => "ppc64le",
            Arch::Mips64 => "mips64",
            Arch::Mipsel64 => "mipsel64",
            Arch::Loongarch64 => "loongarch64",
        }
    }

    /// Looks up an architecture by any of its names.
    pub fn from_name(name: &str) -> Option<Arch> {
        let name = name.to_ascii_lowercase();
        let known = Arch::ALL.iter().copied().find(|arch| {
            name == arch.name()
                || name == arch.docker_name()
                || name == arch.profile_name().to_ascii_lowercase()
        });
        known.or(match name.as_str() {
            "x86-64" | "x64" | "scmp_arch_amd64" => Some(Arch::X86_64),
            "i486" | "i586" | "i686" | "386" => Some(Arch::I386),
            "armv7l" | "armhf" | "armel" => Some(Arch::Arm),
            "powerpc64le" | "ppc64el" => Some(Arch::Ppc64le),
            "mips64le" | "mips64el" => Some(Arch::Mipsel64),
            "loong64" => Some(Arch::Loongarch64),
            _ => None,
        })
    }

    /// The architecture of this process, if it is supported.
    pub fn native() -> Option<Arch> {
        let is_little = cfg!(target_endian = "little");
        match (std::env::consts::ARCH, is_little) {
            ("mips64", true) => Some(Arch::Mipsel64),
            ("powerpc64", true) => Some(Arch::Ppc64le),
            ("powerpc64", false) => None,
            (name, _) => Arch::from_name(name),
        }
    }

    /// Byte order of the machine. It decides at which offset a filter finds which half of
    /// an argument.
    #[doc(hidden)]
    pub const fn byte_order(self) -> ByteOrder {
        match self {
            Arch::S390x | Arch::Mips64 => ByteOrder::Big,
            _ => ByteOrder::Little,
        }
    }

    /// The heading of its column in the table of calls.
    pub(crate) const fn column(self) -> &'static str {
        match self {
            Arch::Mipsel64 => Arch::Mips64.name(),
            other => other.name(),
        }
    }

    /// True if argument registers have 32 bits, so that the upper half of every argument is
    /// zero.
    pub const fn has_narrow_arguments(self) -> bool {
        matches!(self, Arch::I386 | Arch::Arm)
    }

    /// True if another interface has this audit number too.
    pub const fn has_x32_twin(self) -> bool {
        matches!(self, Arch::X86_64 | Arch::X32)
    }

    /// Offset of system call numbers as filters see them.
    pub const fn bias(self) -> u32 {
        match self {
            Arch::X32 => X32_BIT,
            _ => 0,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for &arch in Arch::ALL {
            for name in [arch.name(), arch.profile_name(), arch.docker_name()] {
                assert_eq!(Arch::from_name(name), Some(arch), "{name}");
            }
        }
        assert_eq!(Arch::from_name("vax"), None);
    }
}

//! The architectures whose system calls have names here, and what a filter sees
//! of each: its audit number, the width of its arguments, and for x32 the bit
//! that sets its numbers apart from x86_64's.

use std::fmt;

/// Set in every x32 system call number (`__X32_SYSCALL_BIT`).
pub const X32_BIT: u32 = 0x4000_0000;

/// One system call interface. `X32` shares x86_64's audit number: a filter can
/// tell them apart by [`X32_BIT`] only.
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
}

impl Arch {
    /// All of them, in the order of the table's columns.
    pub const ALL: &[Arch] = &[
        Arch::X86_64,
        Arch::I386,
        Arch::X32,
        Arch::Aarch64,
        Arch::Arm,
        Arch::Riscv64,
    ];

    /// What `seccomp_data.arch` holds (`AUDIT_ARCH_*`).
    pub const fn audit(self) -> u32 {
        match self {
            Arch::X86_64 | Arch::X32 => 0xc000_003e,
            Arch::I386 => 0x4000_0003,
            Arch::Aarch64 => 0xc000_00b7,
            Arch::Arm => 0x4000_0028,
            Arch::Riscv64 => 0xc000_00f3,
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
        }
    }

    /// The architecture by any of the names in use.
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
            _ => None,
        })
    }

    /// The architecture that this program was built for, where it is known here.
    pub fn native() -> Option<Arch> {
        Arch::from_name(std::env::consts::ARCH)
    }

    /// Whether argument registers have 32 bits, so that the upper half of every
    /// argument that a filter sees is zero.
    pub const fn has_narrow_arguments(self) -> bool {
        matches!(self, Arch::I386 | Arch::Arm)
    }

    /// Whether another interface shares this audit number.
    pub const fn has_x32_twin(self) -> bool {
        matches!(self, Arch::X86_64 | Arch::X32)
    }

    /// The number that a filter sees for call `number` of the table.
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
    fn every_name_leads_back() {
        for &arch in Arch::ALL {
            for name in [arch.name(), arch.profile_name(), arch.docker_name()] {
                assert_eq!(Arch::from_name(name), Some(arch), "{name}");
            }
        }
        assert_eq!(Arch::from_name("vax"), None);
    }
}

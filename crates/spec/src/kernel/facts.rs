//! Version, features, privileges and mitigations of a kernel.

use crate::maps::MapKind;
use std::fmt;
use std::str::FromStr;

/// A version of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    /// Major version.
    pub major: u8,
    /// Minor version.
    pub minor: u8,
    /// Patch level, at most 255, as in `LINUX_VERSION_CODE`.
    pub patch: u8,
}

impl KernelVersion {
    /// Version of these numbers.
    pub const fn new(major: u8, minor: u8, patch: u8) -> KernelVersion {
        KernelVersion {
            major,
            minor,
            patch,
        }
    }

    /// Version of a `LINUX_VERSION_CODE`.
    pub const fn from_code(code: u32) -> KernelVersion {
        KernelVersion::new((code >> 16) as u8, (code >> 8) as u8, code as u8)
    }

    /// `LINUX_VERSION_CODE`: a byte for each number, the major version highest.
    pub const fn code(self) -> u32 {
        (self.major as u32) << 16 | (self.minor as u32) << 8 | self.patch as u32
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Error of parsing a kernel version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidVersion(String);

impl fmt::Display for InvalidVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no kernel version such as 6.18 or 6.18.44",
            self.0
        )
    }
}

impl std::error::Error for InvalidVersion {}

#[doc(hidden)]
impl FromStr for KernelVersion {
    type Err = InvalidVersion;

    /// Parses a release: `6.18`, `6.18.44`, `6.18-rc1`, `6.18.44-distribution`.
    fn from_str(text: &str) -> Result<KernelVersion, InvalidVersion> {
        let refused = || InvalidVersion(text.to_owned());
        let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (numbers, suffix) = text.split_at(end.unwrap_or(text.len()));
        let has_suffix = suffix.is_empty()
            || suffix.starts_with(['-', '+', '~', '_'])
            || suffix.starts_with("rc");
        let numbers: Result<Vec<u32>, _> = numbers.split('.').map(str::parse).collect();
        let numbers = numbers.ok().filter(|_| has_suffix).ok_or_else(refused)?;
        let (major, minor, patch) = match numbers[..] {
            [major, minor] => (major, minor, 0),
            [major, minor, patch, ..] => (major, minor, patch.min(255)),
            _ => return Err(refused()),
        };
        match (u8::try_from(major), u8::try_from(minor)) {
            (Ok(major), Ok(minor)) => Ok(KernelVersion::new(major, minor, patch as u8)),
            _ => Err(refused()),
        }
    }
}

/// Features of a kernel that affect linking or verification and that neither its version
/// nor its BTF decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Attachments have BPF cookies (`LINUX_HAS_BPF_COOKIE`).
    pub cookies: bool,
    /// System calls take their arguments in a structure
    /// (`LINUX_HAS_SYSCALL_WRAPPER`).
    pub syscall_wrapper: bool,
    /// Uprobe-multi links exist.
    pub uprobe_multi: bool,
    /// Offsets into arenas have 32 bits, so that globals can be at the end of an arena.
    pub wide_offsets: bool,
    /// The JIT compiler gives functions of tracing programs stacks of their own
    /// (`bpf_jit_supports_private_stack`).
    pub private_stack: bool,
}

impl Features {
    /// Linux 6.18 on x86-64.
    pub const LINUX_6_18: Features = Features {
        cookies: true,
        syscall_wrapper: true,
        uprobe_multi: true,
        wide_offsets: false,
        private_stack: true,
    };

    /// Name of [`syscall_wrapper`](Features::syscall_wrapper).
    pub const SYSCALL_WRAPPER: &'static str = "syscall-wrapper";

    /// Names of the features, in the order of the fields.
    pub const NAMES: [&'static str; 5] = [
        "cookies",
        Features::SYSCALL_WRAPPER,
        "uprobe-multi",
        "wide-offsets",
        "private-stack",
    ];

    /// These features with one of them set or cleared; `None` if none has that name.
    pub fn with(mut self, name: &str, is_there: bool) -> Option<Features> {
        let fields = [
            &mut self.cookies,
            &mut self.syscall_wrapper,
            &mut self.uprobe_multi,
            &mut self.wide_offsets,
            &mut self.private_stack,
        ];
        let at = Features::NAMES.iter().position(|known| *known == name)?;
        *fields[at] = is_there;
        Some(self)
    }
}

/// Capabilities of the caller of bpf(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// CAP_BPF.
    pub bpf: bool,
    /// CAP_PERFMON.
    pub perfmon: bool,
    /// CAP_NET_ADMIN.
    pub net_admin: bool,
    /// CAP_SYS_ADMIN, which implies the others for bpf(2).
    pub sys_admin: bool,
}

impl Privileges {
    /// All capabilities, those of root.
    pub const ALL: Privileges = Privileges {
        bpf: true,
        perfmon: true,
        net_admin: true,
        sys_admin: true,
    };
    /// No capability.
    pub const NONE: Privileges = Privileges {
        bpf: false,
        perfmon: false,
        net_admin: false,
        sys_admin: false,
    };

    /// True for CAP_BPF or CAP_SYS_ADMIN.
    pub const fn has_bpf(self) -> bool {
        self.bpf || self.sys_admin
    }

    /// True for CAP_PERFMON or CAP_SYS_ADMIN.
    pub const fn has_perfmon(self) -> bool {
        self.perfmon || self.sys_admin
    }

    /// True for CAP_NET_ADMIN or CAP_SYS_ADMIN.
    pub const fn has_net_admin(self) -> bool {
        self.net_admin || self.sys_admin
    }

    /// The capability that such a caller lacks to create maps of a kind (`map_create`), where
    /// `kernel.unprivileged_bpf_disabled` is 0. Without it Linux answers EPERM.
    pub const fn lacks_to_create(self, kind: MapKind) -> Option<&'static str> {
        use MapKind as K;
        match kind {
            K::Array
            | K::PercpuArray
            | K::ProgArray
            | K::PerfEventArray
            | K::CgroupArray
            | K::ArrayOfMaps
            | K::Hash
            | K::PercpuHash
            | K::HashOfMaps
            | K::Ringbuf
            | K::UserRingbuf
            | K::CgroupStorage
            | K::PercpuCgroupStorage => None,
            K::SkStorage
            | K::InodeStorage
            | K::TaskStorage
            | K::CgrpStorage
            | K::BloomFilter
            | K::LpmTrie
            | K::ReuseportSockarray
            | K::StackTrace
            | K::Queue
            | K::Stack
            | K::LruHash
            | K::LruPercpuHash
            | K::StructOps
            | K::Cpumap
            | K::Arena
            | K::InsnArray
            | K::Rhash => match self.has_bpf() {
                true => None,
                false => Some("CAP_BPF"),
            },
            K::Sockmap | K::Sockhash | K::Devmap | K::DevmapHash | K::Xskmap => {
                match self.has_net_admin() {
                    true => None,
                    false => Some("CAP_NET_ADMIN"),
                }
            }
        }
    }

    /// True if such a caller may load BTF (`BPF_BTF_LOAD`), which maps and programs then
    /// refer to. Without it Linux answers EPERM.
    pub const fn may_load_btf(self) -> bool {
        self.has_bpf()
    }
}

/// Error of parsing privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidPrivileges(String);

impl fmt::Display for InvalidPrivileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} names no privileges: write all, none, or a list of bpf, perfmon, net_admin \
             and sys_admin, with commas",
            self.0
        )
    }
}

impl std::error::Error for InvalidPrivileges {}

impl FromStr for Privileges {
    type Err = InvalidPrivileges;

    /// Parses `all`, `none`, or capabilities with commas: `bpf,net_admin`.
    fn from_str(text: &str) -> Result<Privileges, InvalidPrivileges> {
        match text {
            "all" => return Ok(Privileges::ALL),
            "none" => return Ok(Privileges::NONE),
            _ => {}
        }
        let mut privileges = Privileges::NONE;
        for name in text.split(',') {
            let name = name.trim().to_ascii_lowercase();
            match name.strip_prefix("cap_").unwrap_or(&name) {
                "bpf" => privileges.bpf = true,
                "perfmon" => privileges.perfmon = true,
                "net_admin" => privileges.net_admin = true,
                "sys_admin" => privileges.sys_admin = true,
                _ => return Err(InvalidPrivileges(text.to_owned())),
            }
        }
        Ok(privileges)
    }
}

/// Mitigations of speculative execution that the verifier applies to callers without
/// CAP_PERFMON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mitigations {
    /// Spectre variant 1: speculative paths are verified.
    pub spectre_v1: bool,
    /// Spectre variant 4: stores to the stack are followed by barriers.
    pub spectre_v4: bool,
}

impl Mitigations {
    /// Both mitigations.
    pub const ON: Mitigations = Mitigations {
        spectre_v1: true,
        spectre_v4: true,
    };
    /// No mitigation (`mitigations=off`).
    pub const OFF: Mitigations = Mitigations {
        spectre_v1: false,
        spectre_v4: false,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_set_by_name() {
        for name in Features::NAMES {
            let is_of_linux = Features::LINUX_6_18.with(name, true) == Some(Features::LINUX_6_18);
            // Offsets into arenas are newer than 6.18.
            assert_eq!(is_of_linux, name != "wide-offsets", "{name}");
        }
        let without = Features::LINUX_6_18.with("syscall-wrapper", false);
        assert!(!without.unwrap().syscall_wrapper);
        assert_eq!(Features::LINUX_6_18.with("syscall_wrapper", false), None);
    }

    #[test]
    fn releases_are_versions() {
        let code = |text: &str| text.parse::<KernelVersion>().map(KernelVersion::code).ok();
        assert_eq!(code("6.18.44-foo"), Some(0x06122c));
        assert_eq!(code("6.18-rc1"), Some(0x061200));
        assert_eq!(code("5.4.300"), Some(0x0504ff));
        assert_eq!(code("6.1.0+"), Some(0x060100));
        for text in ["", "6", "6.x.1", "x", "700.1", ".1"] {
            assert_eq!(code(text), None, "{text}");
        }
        let version = KernelVersion::from_code(0x06122c);
        assert_eq!(version.to_string(), "6.18.44");
    }
}

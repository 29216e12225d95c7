//! Features, privileges and mitigations of a kernel.

use crate::maps::{MapCapability, MapKind};
use std::fmt;
use std::str::FromStr;

macro_rules! features {
    ($($(#[$doc:meta])* $field:ident = $name:literal, $is_in_6_18:literal;)*) => {
        /// Features of a kernel that affect linking or verification and that neither its version
        /// nor its BTF decides.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Features {
            $($(#[$doc])* pub $field: bool,)*
        }

        impl Features {
            /// Linux 6.18 on x86-64.
            pub const LINUX_6_18: Features = Features { $($field: $is_in_6_18,)* };

            /// Names of the features, in the order of the fields.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// These features with one of them set or cleared; `None` if none has that name.
            pub fn with(mut self, name: &str, is_there: bool) -> Option<Features> {
                match name {
                    $($name => self.$field = is_there,)*
                    _ => return None,
                }
                Some(self)
            }
        }
    };
}

// Field, name, and whether Linux 6.18 has it.
features! {
    /// Attachments have BPF cookies (`LINUX_HAS_BPF_COOKIE`).
    cookies = "cookies", true;
    /// System calls take their arguments in a structure
    /// (`LINUX_HAS_SYSCALL_WRAPPER`).
    syscall_wrapper = "syscall-wrapper", true;
    /// Uprobe-multi links exist.
    uprobe_multi = "uprobe-multi", true;
    /// Offsets into arenas have 32 bits, so that globals can be at the end of an arena.
    wide_offsets = "wide-offsets", false;
    /// The JIT compiler gives functions of tracing programs stacks of their own
    /// (`bpf_jit_supports_private_stack`).
    private_stack = "private-stack", true;
}

impl Features {
    /// Name of [`syscall_wrapper`](Features::syscall_wrapper).
    pub const SYSCALL_WRAPPER: &'static str = Features::NAMES[1];
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
        match kind.capability() {
            MapCapability::NetAdmin if !self.has_net_admin() => Some("CAP_NET_ADMIN"),
            MapCapability::Bpf if !self.has_bpf() => Some("CAP_BPF"),
            MapCapability::Anyone | MapCapability::Bpf | MapCapability::NetAdmin => None,
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
        for name in Features::NAMES.iter().copied() {
            let is_of_linux = Features::LINUX_6_18.with(name, true) == Some(Features::LINUX_6_18);
            // Offsets into arenas are newer than 6.18.
            assert_eq!(is_of_linux, name != "wide-offsets", "{name}");
        }
        let without = Features::LINUX_6_18.with("syscall-wrapper", false);
        assert!(!without.unwrap().syscall_wrapper);
        assert_eq!(Features::LINUX_6_18.with("syscall_wrapper", false), None);
        assert_eq!(Features::SYSCALL_WRAPPER, "syscall-wrapper");
    }
}

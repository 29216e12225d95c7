//! Names of Linux capabilities (`linux/capability.h`), and the default sets of container
//! engines.

use std::collections::BTreeSet;
use std::fmt;

use crate::nearest::nearest;

/// The capabilities of Linux 6.18, by number.
pub const CAPABILITIES: &[&str] = &[
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
];

/// Default capabilities of Docker and containerd.
const DOCKER: &[&str] = &[
    "CAP_AUDIT_WRITE",
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_MKNOD",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_RAW",
    "CAP_SETFCAP",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
    "CAP_SYS_CHROOT",
];

/// Default capabilities of Podman.
const PODMAN: &[&str] = &[
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETFCAP",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
    "CAP_SYS_CHROOT",
];

/// Sets of capabilities by name.
pub const CAPABILITY_SETS: &[(&str, &[&str])] = &[
    ("all", CAPABILITIES),
    ("none", &[]),
    ("docker", DOCKER),
    ("containerd", DOCKER),
    ("podman", PODMAN),
];

/// An error: a name that is neither a capability nor a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCapability {
    /// The name as given.
    pub name: String,
    /// The closest known name.
    pub closest: Option<&'static str>,
}

impl fmt::Display for UnknownCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a capability", self.name)
    }
}

impl std::error::Error for UnknownCapability {}

/// Parses a list of capabilities: names with or without `CAP_`, in either case, and
/// [sets](CAPABILITY_SETS), separated by commas or blanks.
pub fn parse_capabilities(list: &str) -> Result<BTreeSet<String>, UnknownCapability> {
    let mut found = BTreeSet::new();
    let names = list.split(|c: char| c == ',' || c.is_whitespace());
    for name in names.filter(|name| !name.is_empty()) {
        let lower = name.to_ascii_lowercase();
        if let Some((_, set)) = CAPABILITY_SETS.iter().find(|(set, _)| *set == lower) {
            found.extend(set.iter().map(|name| (*name).to_owned()));
            continue;
        }
        let full = format!(
            "CAP_{}",
            name.to_ascii_uppercase().trim_start_matches("CAP_")
        );
        match CAPABILITIES.contains(&full.as_str()) {
            true => found.insert(full),
            false => {
                return Err(UnknownCapability {
                    name: name.to_owned(),
                    closest: closest(&full),
                });
            }
        };
    }
    Ok(found)
}

/// The capability closest to a misspelt full name.
fn closest(full: &str) -> Option<&'static str> {
    let name = |full: &str| full.trim_start_matches("CAP_").to_owned();
    let names: Vec<String> = CAPABILITIES.iter().map(|full| name(full)).collect();
    let near = nearest(&name(full), names.iter().map(String::as_str))?;
    let at = names.iter().position(|name| name == near)?;
    Some(CAPABILITIES[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_sets_and_misspelt_names() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(
            parse_capabilities("sys_admin,CAP_NET_RAW cap_bpf"),
            Ok(set(&["CAP_SYS_ADMIN", "CAP_NET_RAW", "CAP_BPF"]))
        );
        assert_eq!(parse_capabilities("ALL"), Ok(set(CAPABILITIES)));
        assert_eq!(parse_capabilities("none"), Ok(set(&[])));
        assert_eq!(parse_capabilities("docker").map(|set| set.len()), Ok(14));
        let error = parse_capabilities("CAP_SYS_ADMN").unwrap_err();
        assert_eq!(error.closest, Some("CAP_SYS_ADMIN"));
        assert_eq!(parse_capabilities("CAP_QQQ").unwrap_err().closest, None);
        assert_eq!(CAPABILITIES.len(), 41);
    }
}

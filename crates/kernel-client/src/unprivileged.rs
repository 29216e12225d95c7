//! Programs given to the running kernel without some capabilities.

use std::fs::{self, File};
use std::sync::Arc;

use spec::kernel::Privileges;
use sys::capabilities::{Capability, Dropped, drop_effective};

const SYSCTL: &str = "/proc/sys/kernel/unprivileged_bpf_disabled";

/// The right to load programs without capabilities, while this lives; one process has it
/// at a time.
#[derive(Debug)]
pub struct Unprivileged {
    before: String,
    _lock: File,
}

impl Unprivileged {
    /// Sets the sysctl to 0, when no other process has it so; `None` where the kernel does
    /// not let it (1 is final).
    pub fn allow() -> Option<Unprivileged> {
        let lock = File::open(SYSCTL).ok()?;
        lock.lock().ok()?;
        let before = fs::read_to_string(SYSCTL).ok()?;
        fs::write(SYSCTL, "0").ok()?;
        Some(Unprivileged {
            before,
            _lock: lock,
        })
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        if let Err(error) = fs::write(SYSCTL, self.before.trim()) {
            // The kernel takes back every value that it had.
            debug_assert!(false, "{SYSCTL}: {error}");
        }
    }
}

/// A caller of bpf(2) with some capabilities. Its clones are the same caller on other threads.
#[derive(Clone, Debug)]
pub struct Caller {
    privileges: Privileges,
    _allowed: Option<Arc<Unprivileged>>,
}

impl Caller {
    /// A caller with these privileges; `None` where the kernel lets none of them load
    /// programs.
    pub fn with(privileges: Privileges) -> Option<Caller> {
        let allowed = match privileges.has_bpf() {
            true => None,
            false => Some(Arc::new(Unprivileged::allow()?)),
        };
        Some(Caller {
            privileges,
            _allowed: allowed,
        })
    }

    /// True if the caller has all privileges.
    pub fn has_all(&self) -> bool {
        self.privileges == Privileges::ALL
    }

    /// True if the caller may load types.
    pub fn has_bpf(&self) -> bool {
        self.privileges.has_bpf()
    }

    /// Gives up what the caller lacks to create maps and load programs, until the result is
    /// dropped.
    pub fn loads_programs(&self) -> Option<Dropped> {
        if self.has_all() {
            return None;
        }
        let Privileges {
            bpf,
            perfmon,
            net_admin,
            sys_admin,
        } = self.privileges;
        let capabilities = [
            (Capability::BPF, bpf),
            (Capability::PERFMON, perfmon),
            (Capability::NET_ADMIN, net_admin),
            (Capability::SYS_ADMIN, sys_admin),
        ];
        let lacking = capabilities.iter().filter(|(_, has)| !has);
        let lacking: Vec<Capability> = lacking.map(|(capability, _)| *capability).collect();
        drop_effective(&lacking).ok()
    }
}

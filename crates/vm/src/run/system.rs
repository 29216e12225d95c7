//! The machine and the process that programs run in, as helpers report them.

use std::borrow::Cow;

use crate::network::Network;

/// Machine and process data that helpers return. The defaults are fixed, so that equal
/// input gives equal runs on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// Thread id.
    pub pid: u32,
    /// Process id.
    pub tgid: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Name of the process, zero-terminated.
    pub comm: [u8; 16],
    /// Device and inode number of the process's pid namespace.
    pub pid_namespace: (u64, u64),
    /// Ids of the cgroups from the root, whose id is 1, to that of the process.
    pub cgroups: Cow<'static, [u64]>,
    /// Cookie of the network namespace; the first one's is 1.
    pub netns_cookie: u64,
    /// The network.
    pub network: Network,
    /// NUMA node of all CPUs.
    pub numa_node: u32,
    /// Nanoseconds that the machine was suspended since it started: what the clock of
    /// `CLOCK_BOOTTIME` is ahead.
    pub suspended: u64,
    /// Nanoseconds from the clock's start to that of TAI.
    pub tai_offset: u64,
    /// Timer ticks a second (`CONFIG_HZ`).
    pub hz: u32,
    /// The two keys of SYN cookies.
    pub syncookie_secrets: [[u64; 2]; 2],
}

/// The default in a place, for references.
pub(crate) static DEFAULT: System = System::DEFAULT;

impl System {
    /// Cookie of the first network namespace.
    pub const FIRST_NETNS_COOKIE: u64 = 1;

    /// Index of the loopback interface.
    pub const LOOPBACK: u32 = 1;

    /// Process 1 of user and group 0, named `beebox`, in the root cgroup; a loopback
    /// device; 250 ticks a second.
    pub const DEFAULT: System = System {
        pid: 1,
        tgid: 1,
        uid: 0,
        gid: 0,
        comm: *b"beebox\0\0\0\0\0\0\0\0\0\0",
        pid_namespace: (0, 0),
        cgroups: Cow::Borrowed(&[1]),
        netns_cookie: System::FIRST_NETNS_COOKIE,
        network: Network::LOOPBACK_ONLY,
        numa_node: 0,
        suspended: 0,
        tai_offset: 0,
        hz: 250,
        syncookie_secrets: [[1, 2], [3, 4]],
    };

    /// Id of the process's cgroup.
    pub fn cgroup(&self) -> u64 {
        self.cgroups.last().copied().unwrap_or(1)
    }

    /// The 64-bit count of timer ticks at a time of the clock. It starts five minutes before
    /// the lower half overflows (Linux: `INITIAL_JIFFIES`).
    pub fn jiffies(&self, nanoseconds: u64) -> u64 {
        let start = self.hz.wrapping_mul(300).wrapping_neg();
        let ticks = u128::from(nanoseconds) * u128::from(self.hz) / 1_000_000_000;
        u64::from(start).wrapping_add(ticks as u64)
    }
}

impl Default for System {
    fn default() -> System {
        System::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::System;

    #[test]
    fn ticks_start_before_the_lower_half_overflows() {
        let system = System::DEFAULT;
        assert_eq!(system.jiffies(0), (1 << 32) - 75_000);
        assert_eq!(system.jiffies(300_000_000_000), 1 << 32);
    }
}

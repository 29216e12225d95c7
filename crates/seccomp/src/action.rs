//! Actions of seccomp filters and their precedence.
//!
//! A filter returns 32 bits: the action in the upper half, data in the lower half. Linux
//! compares actions as signed numbers and applies the least; among equal ones the data are
//! those of the filter that was installed last. An unknown action kills the process, but is
//! compared by its number, and error numbers above 4095 are capped to 4095.

use std::fmt;

use crate::errno;

/// Largest error number that a call can return (`MAX_ERRNO`).
pub const MAX_ERRNO: u16 = 4095;

/// The kernel's treatment of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The process is killed.
    KillProcess,
    /// The thread is killed.
    KillThread,
    /// SIGSYS with this `si_errno`.
    Trap(u16),
    /// The call fails with this error number (0: it returns 0).
    Errno(u16),
    /// Handled by a user-space supervisor (user notification); without one, ENOSYS.
    UserNotif,
    /// Handled by the ptrace tracer, which reads this message; without one, ENOSYS.
    Trace(u16),
    /// The call is executed and logged.
    Log,
    /// The call is executed.
    Allow,
    /// An unknown action: the process is killed.
    Unknown(u32),
}

impl Action {
    /// The action of a filter's return value.
    pub const fn from_return(value: u32) -> Action {
        let data = value as u16;
        match value >> 16 {
            0x8000 => Action::KillProcess,
            0x0000 => Action::KillThread,
            0x0003 => Action::Trap(data),
            0x0005 if data > MAX_ERRNO => Action::Errno(MAX_ERRNO),
            0x0005 => Action::Errno(data),
            0x7fc0 => Action::UserNotif,
            0x7ff0 => Action::Trace(data),
            0x7ffc => Action::Log,
            0x7fff => Action::Allow,
            _ => Action::Unknown(value),
        }
    }

    /// A return value with this action.
    pub const fn to_return(self) -> u32 {
        match self {
            Action::KillProcess => 0x8000_0000,
            Action::KillThread => 0,
            Action::Trap(data) => 0x0003_0000 | data as u32,
            Action::Errno(data) => 0x0005_0000 | data as u32,
            Action::UserNotif => 0x7fc0_0000,
            Action::Trace(data) => 0x7ff0_0000 | data as u32,
            Action::Log => 0x7ffc_0000,
            Action::Allow => 0x7fff_0000,
            Action::Unknown(value) => value,
        }
    }

    /// The action that takes effect: an unknown action kills the process.
    pub const fn effect(self) -> Action {
        match self {
            Action::Unknown(_) => Action::KillProcess,
            known => known,
        }
    }

    /// The action's name as seccomp(2) spells it, without `SECCOMP_RET_`.
    pub const fn name(self) -> &'static str {
        match self {
            Action::KillProcess => "KILL_PROCESS",
            Action::KillThread => "KILL_THREAD",
            Action::Trap(_) => "TRAP",
            Action::Errno(_) => "ERRNO",
            Action::UserNotif => "USER_NOTIF",
            Action::Trace(_) => "TRACE",
            Action::Log => "LOG",
            Action::Allow => "ALLOW",
            Action::Unknown(_) => "UNKNOWN",
        }
    }

    /// True if the call is executed without a supervisor or tracer.
    pub const fn allows(self) -> bool {
        matches!(self, Action::Allow | Action::Log)
    }

    /// Precedence: the least rank is applied.
    pub const fn rank(self) -> i32 {
        (self.to_return() & 0xffff_0000) as i32
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Action::Errno(0) => f.write_str("ERRNO(0)"),
            Action::Errno(number) => match errno::name(number) {
                Some(name) => write!(f, "ERRNO({number} {name})"),
                None => write!(f, "ERRNO({number})"),
            },
            Action::Trap(data) | Action::Trace(data) => write!(f, "{}({data})", self.name()),
            Action::Unknown(value) => write!(f, "KILL_PROCESS (unknown action {value:#010x})"),
            plain => f.write_str(plain.name()),
        }
    }
}

/// The return value that the kernel applies, where `newer` is that of a later filter.
pub const fn combine(older: u32, newer: u32) -> u32 {
    if Action::from_return(newer).rank() <= Action::from_return(older).rank() {
        newer
    } else {
        older
    }
}

/// The action that the kernel applies, from the return values of all filters in the order
/// of their installation; without filters, `ALLOW`.
pub fn decide(returns: impl IntoIterator<Item = u32>) -> Action {
    let value = returns.into_iter().reduce(combine);
    Action::from_return(value.unwrap_or(Action::Allow.to_return()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_round_trip() {
        for value in [
            0x8000_0000u32,
            0,
            0x3_0007,
            0x5_000d,
            0x7fc0_0000,
            0x7ff0_0002,
            0x7ffc_0000,
            0x7fff_0000,
            0x7ffd_1234,
        ] {
            assert_eq!(Action::from_return(value).to_return(), value);
        }
        assert_eq!(Action::from_return(0x5_ffff), Action::Errno(4095));
        assert_eq!(Action::from_return(0x7fff_0009), Action::Allow);
    }

    #[test]
    fn the_least_action_applies_with_the_data_of_the_last_filter() {
        assert_eq!(decide([0x5_0001, 0x5_0002]), Action::Errno(2));
        assert_eq!(decide([0x5_0001, 0x7fff_0000]), Action::Errno(1));
        assert_eq!(decide([0x3_0000, 0x5_0002]), Action::Trap(0));
        assert_eq!(decide([0, 0x8000_0000]), Action::KillProcess);
        // Unknown actions: by number between the known ones.
        assert_eq!(decide([0x7ffd_0000, 0x7ffc_0000]), Action::Log);
        assert_eq!(
            decide([0x7ffd_0000, 0x7fff_0000]).effect(),
            Action::KillProcess
        );
        assert_eq!(decide([0xffff_0000, 0]).effect(), Action::KillProcess);
        assert_eq!(decide([]), Action::Allow);
    }
}

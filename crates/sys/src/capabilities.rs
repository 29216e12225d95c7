//! Effective capabilities of the calling thread (capget(2), capset(2)).

use std::io;
use std::marker::PhantomData;

/// A capability by its number in `include/uapi/linux/capability.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capability(pub u32);

impl Capability {
    /// CAP_NET_ADMIN.
    pub const NET_ADMIN: Capability = Capability(12);
    /// CAP_SYS_ADMIN.
    pub const SYS_ADMIN: Capability = Capability(21);
    /// CAP_PERFMON.
    pub const PERFMON: Capability = Capability(38);
    /// CAP_BPF.
    pub const BPF: Capability = Capability(39);
}

/// Capabilities that the calling thread gave up; it has them again when this is dropped.
#[derive(Debug)]
pub struct Dropped {
    before: Sets,
    /// Capabilities are the thread's: this must not move to another.
    thread: PhantomData<*const ()>,
}

/// Takes capabilities out of the calling thread's effective set. Other threads keep
/// theirs. Fails with the error of capget or capset.
pub fn drop_effective(capabilities: &[Capability]) -> io::Result<Dropped> {
    let before = get()?;
    let mut after = before;
    for capability in capabilities {
        let (word, bit) = (capability.0 / 32, capability.0 % 32);
        if let Some(word) = after.get_mut(word as usize) {
            word.effective &= !(1 << bit);
        }
    }
    set(&after)?;
    Ok(Dropped {
        before,
        thread: PhantomData,
    })
}

impl Drop for Dropped {
    fn drop(&mut self) {
        // The permitted set never shrank, so that the kernel cannot refuse this.
        let _ = set(&self.before);
    }
}

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

type Sets = [Word; 2];

const fn header() -> Header {
    Header {
        // _LINUX_CAPABILITY_VERSION_3
        version: 0x2008_0522,
        pid: 0,
    }
}

fn get() -> io::Result<Sets> {
    let mut header = header();
    let mut sets = Sets::default();
    // SAFETY: version 3 has two words of data; both pointers are to our own memory of
    // the kernel's layout (repr(C)), and the kernel writes no more than that.
    let done = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) };
    match done {
        0 => Ok(sets),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set(sets: &Sets) -> io::Result<()> {
    let mut header = header();
    // SAFETY: as in `get`; the kernel only reads the data.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_come_back() {
        let before = get().unwrap().map(|word| word.effective);
        let without = {
            let _dropped = drop_effective(&[Capability::BPF, Capability::SYS_ADMIN]).unwrap();
            get().unwrap().map(|word| word.effective)
        };
        assert_eq!(without[0], before[0] & !(1 << 21));
        assert_eq!(without[1], before[1] & !(1 << 7));
        assert_eq!(get().unwrap().map(|word| word.effective), before);
    }
}

//! Kernel memory that a test gives: accesses of it, and those of what was not given.

use vm::{GivenAccess, GivenMemory};

use super::memory::{Access, AccessError, BadAccess, Memory, Permission, RegionInfo};

impl<'m> Memory<'m> {
    /// Adds the memory that a test gives.
    pub fn add_given(&mut self, given: &'m dyn GivenMemory) {
        self.given = Some(given);
    }

    /// Reads given memory of the kernel; false if it has no such address.
    pub(super) fn read_given(&self, address: u64, into: &mut [u8]) -> Result<bool, BadAccess> {
        let Some(given) = self.given else {
            return Ok(false);
        };
        let len = into.len();
        outcome(given.read(address, into), (address, len), Access::Read)
    }

    /// Loads bytes of given memory, all bits of which were given; false if it has no such address.
    pub(super) fn load_all_given(&self, address: u64, into: &mut [u8]) -> Result<bool, BadAccess> {
        let Some(given) = self.given else {
            return Ok(false);
        };
        let place = (address, into.len());
        outcome(given.load(address, into, u64::MAX), place, Access::Read)
    }

    /// Loads bytes of given memory of which some bits are used, if those were given.
    pub(super) fn load_given(&self, address: u64, len: usize, bits: u64) -> Result<u64, BadAccess> {
        let mut bytes = [0; 8];
        let absent = GivenAccess::Absent;
        let access = self
            .given
            .map_or(absent, |given| given.load(address, &mut bytes[..len], bits));
        match outcome(access, (address, len), Access::Read)? {
            true => Ok(u64::from_le_bytes(bytes)),
            false => Err(self.fault(address, len as u64, Access::Read)),
        }
    }

    /// Reads given memory of the process; false if it has no such address.
    pub(super) fn read_given_user(&self, address: u64, into: &mut [u8]) -> Result<bool, BadAccess> {
        let Some(given) = self.given else {
            return Ok(false);
        };
        let len = into.len();
        outcome(given.read_user(address, into), (address, len), Access::Read)
    }

    /// Writes given memory of the kernel; false if it has no such address.
    pub(super) fn write_given(&self, address: u64, bytes: &[u8]) -> Result<bool, BadAccess> {
        let Some(given) = self.given else {
            return Ok(false);
        };
        let place = (address, bytes.len());
        outcome(given.write(address, bytes), place, Access::Write)
    }

    /// Replaces `N` bytes of given memory; the old ones, `None` if it has no such address.
    pub(super) fn update_given<const N: usize>(
        &self,
        address: u64,
        update: impl Fn(u64) -> u64,
    ) -> Result<Option<u64>, BadAccess> {
        let mut wide = [0; 8];
        if !self.read_given(address, &mut wide[..N])? {
            return Ok(None);
        }
        let old = u64::from_le_bytes(wide);
        self.write_given(address, &update(old).to_le_bytes()[..N])?;
        Ok(Some(old))
    }

    /// Notes that a helper asked for what was not given, if that is why it got nothing; true if it got
    /// bytes.
    pub(super) fn note_given(&self, read: Result<bool, BadAccess>) -> bool {
        match read {
            Ok(is_there) => is_there,
            Err(access) => {
                if access.error == AccessError::NotGiven {
                    *self.not_given.borrow_mut() = Some(access);
                }
                false
            }
        }
    }

    /// The access of a helper to what was not given.
    pub(super) fn take_not_given(&self) -> Option<BadAccess> {
        self.not_given.borrow_mut().take()
    }
}

fn outcome(
    access: GivenAccess,
    (address, len): (u64, usize),
    kind: Access,
) -> Result<bool, BadAccess> {
    match access {
        GivenAccess::Absent => Ok(false),
        GivenAccess::Done => Ok(true),
        GivenAccess::NotGiven(name) => Err(BadAccess {
            address,
            size: len as u64,
            access: kind,
            error: AccessError::NotGiven,
            nearest: Some(RegionInfo {
                name,
                start: address,
                len: len as u64,
                permission: Permission::ReadOnly,
            }),
        }),
    }
}

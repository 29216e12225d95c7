//! `xskmap`: AF_XDP sockets by queue. There are no such sockets, so it stays empty.

use spec::Errno;

use super::flags::{self, EXIST};
use super::resources::{NoResources, Resources};
use super::slots::{self, Slots};
use super::{Definition, Operations};

/// Places for sockets.
#[derive(Debug)]
pub(super) struct Xskmap(Slots<()>);

impl Xskmap {
    pub(super) fn new(map: &Definition) -> Result<Xskmap, Errno> {
        Ok(Xskmap(Slots::new(map.params.max_entries)?))
    }

    /// The kernel's rules of creation.
    pub(super) fn check(map: &Definition) -> Result<(), Errno> {
        let params = &map.params;
        let allowed = flags::NUMA_NODE | flags::RDONLY | flags::WRONLY;
        if params.max_entries == 0
            || params.key_size != 4
            || params.value_size != 4
            || params.flags.0 & !allowed != 0
        {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }
}

impl Operations for Xskmap {
    fn update(&self, _: u32, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.store_object(key, value, flags, &NoResources)
    }

    fn delete(&self, _: u32, key: &[u8]) -> Result<(), Errno> {
        self.0.index(key).map(drop).ok_or(Errno::EINVAL)
    }

    fn copy(&self, _: &[u8], _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.store_object(key, value, flags, &NoResources)
    }

    fn store_object(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u64,
        resources: &dyn Resources,
    ) -> Result<(), Errno> {
        if flags > EXIST {
            return Err(Errno::EINVAL);
        }
        self.0.index(key).ok_or(Errno::E2BIG)?;
        match resources.is_open(slots::number(value)?) {
            true => Err(Errno::ENOTSOCK),
            false => Err(Errno::EBADF),
        }
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result<(), Errno> {
        self.0.next_key(key, next)
    }
}

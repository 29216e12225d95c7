//! `prog_array`: programs by index, which tail calls enter.

use std::sync::{Arc, OnceLock};

use spec::Errno;

use super::resources::{NoResources, ProgramClass, Resources, StoredProgram};
use super::slots::{self, Slots};
use super::{Definition, Operations};

/// Programs that may call each other: the first one that is stored or uses the array decides
/// which.
#[derive(Debug)]
pub(super) struct ProgArray {
    slots: Slots<StoredProgram>,
    owner: OnceLock<ProgramClass>,
}

impl ProgArray {
    pub(super) fn new(map: &Definition) -> Result<ProgArray, Errno> {
        Ok(ProgArray {
            slots: Slots::new(map.params.max_entries)?,
            owner: OnceLock::new(),
        })
    }
}

impl Operations for ProgArray {
    fn update(&self, _: u32, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.store_object(key, value, flags, &NoResources)
    }

    fn delete(&self, _: u32, key: &[u8]) -> Result<(), Errno> {
        self.slots.delete(key)
    }

    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result<(), Errno> {
        let index = self.slots.index(key).ok_or(Errno::ENOENT)?;
        let program = self.slots.get(index).ok_or(Errno::ENOENT)?;
        out.copy_from_slice(&program.id.to_ne_bytes());
        Ok(())
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
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        let index = self.slots.index(key).ok_or(Errno::E2BIG)?;
        let descriptor = slots::number(value)?;
        let Some(program) = resources.program(descriptor) else {
            return Err(match resources.is_open(descriptor) {
                true => Errno::EINVAL,
                false => Errno::EBADF,
            });
        };
        self.admit(&program.class)?;
        self.slots.set(index, Some(program));
        Ok(())
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result<(), Errno> {
        self.slots.next_key(key, next)
    }

    fn admit(&self, class: &ProgramClass) -> Result<(), Errno> {
        match class.fits(self.owner.get_or_init(|| *class)) {
            true => Ok(()),
            false => Err(Errno::EINVAL),
        }
    }

    fn program(&self, index: u32) -> Option<Arc<StoredProgram>> {
        self.slots.get(index)
    }
}

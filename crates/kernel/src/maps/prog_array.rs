//! `prog_array`: programs by index, which tail calls enter.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use spec::{Errno, Result};
use vm::{MapOperations, TailTable};

use super::resources::{ProgramClass, Resources, StoredProgram};
use super::slots::{self, Slots};
use super::{Definition, Host, SyscallOperations};

/// Programs that may call each other: the first one that is stored or uses the array decides
/// which.
#[derive(Debug)]
pub(super) struct ProgArray {
    slots: Slots<StoredProgram>,
    owner: OnceLock<ProgramClass>,
    cpus: u32,
    /// The slots as native code sees them, while there is some that refers to them. Whoever
    /// changes slots holds it, so that both say the same.
    table: Mutex<Weak<TailTable>>,
}

impl ProgArray {
    pub(super) fn new(map: &Definition, host: &Host) -> Result<ProgArray> {
        Ok(ProgArray {
            slots: Slots::new(map.params.max_entries)?,
            owner: OnceLock::new(),
            cpus: host.cpus,
            table: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Weak<TailTable>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a program in a slot in range. EINVAL if native code uses the array and the
    /// program has none that fits.
    fn set(&self, index: u32, program: Arc<StoredProgram>) -> Result {
        let table = self.lock();
        if let Some(table) = table.upgrade() {
            let target = program.target.clone().ok_or(Errno::EINVAL)?;
            let stored = table.set(index, Some(target));
            stored.map_err(|_| Errno::EINVAL)?;
        }
        self.slots.set(index, Some(program));
        Ok(())
    }

    /// A table of the programs that are stored now; `None` if one of them has no native code
    /// that fits.
    fn new_table(&self) -> Option<Arc<TailTable>> {
        let table = TailTable::new(self.slots.count(), self.cpus).ok()?;
        for (index, program) in self.slots.filled() {
            let target = program.target.clone()?;
            table.set(index, Some(target)).ok()?;
        }
        Some(Arc::new(table))
    }
}

impl MapOperations for ProgArray {
    fn delete(&self, _: u32, key: &[u8]) -> Result {
        let table = self.lock();
        self.slots.delete(key)?;
        if let (Some(table), Some(index)) = (table.upgrade(), self.slots.index(key)) {
            table.set(index, None).map_err(|_| Errno::EINVAL)?;
        }
        Ok(())
    }

    fn tail_table(&self) -> Option<Arc<TailTable>> {
        let mut known = self.lock();
        if let Some(table) = known.upgrade() {
            return Some(table);
        }
        let table = self.new_table()?;
        *known = Arc::downgrade(&table);
        Some(table)
    }
}

impl SyscallOperations for ProgArray {
    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        let index = self.slots.index(key).ok_or(Errno::ENOENT)?;
        let program = self.slots.get(index).ok_or(Errno::ENOENT)?;
        out.copy_from_slice(&program.id.to_le_bytes());
        Ok(())
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        let index = self.slots.index_to_store(key, flags, 0)?;
        let descriptor = slots::number(value)?;
        let Some(program) = resources.program(descriptor) else {
            return Err(match resources.is_open(descriptor) {
                true => Errno::EINVAL,
                false => Errno::EBADF,
            });
        };
        self.admit(&program.class)?;
        self.set(index, program)
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        self.slots.next_key(key, next)
    }

    fn admit(&self, class: &ProgramClass) -> Result {
        Errno::EINVAL.when(class.is_device_bound)?;
        Errno::EINVAL.when(!class.fits(self.owner.get_or_init(|| *class)))
    }

    fn program(&self, index: u32) -> Option<Arc<StoredProgram>> {
        self.slots.get(index)
    }

    fn release(&self) {
        let table = self.lock();
        for (index, program) in self.slots.filled() {
            self.slots.set(index, None);
            if let Some(table) = table.upgrade() {
                let emptied = table.set(index, None);
                debug_assert_eq!(emptied, Ok(()), "the slot of {program:?} exists");
            }
        }
    }
}

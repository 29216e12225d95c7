//! What bpf(2) does with a map: the operations of its kind beside those of programs.

use std::sync::Arc;

use spec::{Errno, Result};
use vm::MapOperations;

use super::{ProgramClass, Resources, StoredMap, StoredProgram};

/// Operations of bpf(2) on the maps of a kind (`struct bpf_map_ops`), beside those of programs.
/// Keys and values have the map's sizes; the caller checks that. An operation that a kind does
/// not define fails as in the kernel's kinds without it.
#[expect(unused_variables, reason = "defaults do not read them")]
pub trait SyscallOperations: MapOperations {
    /// Forgets what belongs to one test run: sets the value of the program that runs to zero,
    /// removes that of the packet's socket.
    fn reset(&self) {}

    /// Reads the value of a key, of all CPUs where there is one for each.
    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result;

    /// Writes the value of a key, of all CPUs where there is one for each. Key and value may
    /// name objects of the host.
    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result;

    /// Reads the value of a key, which may name an object of the host.
    fn copy_object(&self, key: &[u8], out: &mut [u8], resources: &dyn Resources) -> Result {
        self.copy(key, out)
    }

    /// Removes the entry of a key, which may name an object of the host.
    fn delete_object(&self, key: &[u8], resources: &dyn Resources) -> Result {
        self.delete(0, key)
    }

    /// Reads the value of a key and removes it.
    fn take(&self, key: &[u8], out: &mut [u8]) -> Result {
        Err(Errno::ENOTSUPP)
    }

    /// The key after this one in the order of iteration; the first one after none and
    /// after a key that is not there. ENOENT after the last.
    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result;

    /// Number of buckets of a hash.
    fn buckets(&self) -> u32 {
        0
    }

    /// Keys and values in a bucket of a hash, removed with `delete`; `None` if there are
    /// more than `most`.
    fn read_bucket(&self, bucket: u32, most: usize, delete: bool) -> Option<Entries> {
        None
    }

    /// Checks a program that uses the map, when it is loaded: the first program of a program
    /// array decides which others it takes. EINVAL if this one does not fit.
    fn admit(&self, class: &ProgramClass) -> Result {
        Ok(())
    }

    /// The program at an index, for a tail call.
    fn program(&self, index: u32) -> Option<Arc<StoredProgram>> {
        None
    }

    /// The maps that a map of maps holds now.
    fn inner_maps(&self) -> Vec<Arc<StoredMap>> {
        Vec::new()
    }

    /// Forgets what only users keep in it, when the last of them has gone
    /// (`map_release_uref`).
    fn release(&self) {}
}

/// Keys with their values.
pub type Entries = Vec<(Box<[u8]>, Box<[u8]>)>;

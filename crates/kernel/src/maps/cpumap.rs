//! `cpumap`: CPUs to redirect to.
//!
//! A value is `struct bpf_cpumap_val`: length of the CPU's queue and, where values have 8
//! bytes, a program: its descriptor in an update, its id in a lookup.

use spec::programs::{AttachType, ProgramType};
use spec::{Errno, Result};
use vm::{CellSlice, MapOperations};

use super::array::Array;
use super::flags::{EXIST, NOEXIST};
use super::memory::Charge;
use super::resources::Resources;
use super::{Definition, Host, RunGuard, SyscallOperations, slots};

/// Most packets in a queue.
const MOST_QUEUE: u32 = 16384;

/// Queues by CPU. An empty element has a queue of length 0.
#[derive(Debug)]
pub(super) struct Cpumap {
    values: Array,
    cpus: u32,
}

impl Cpumap {
    pub(super) fn new(map: &Definition, host: &Host, charge: &Charge) -> Result<Cpumap> {
        Ok(Cpumap {
            values: Array::new(map, host, charge)?,
            cpus: host.cpus,
        })
    }
}

impl MapOperations for Cpumap {
    fn lookup<'g>(&'g self, guard: &'g RunGuard, cpu: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        let value = self.values.lookup(guard, cpu, key)?;
        let mut queue = [0; 4];
        value.read(0, &mut queue);
        (queue != [0; 4]).then_some(value)
    }

    fn delete(&self, cpu: u32, key: &[u8]) -> Result {
        clear(&self.values, cpu, key)
    }
}

impl SyscallOperations for Cpumap {
    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        copy_filled(&self.values, key, out)
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        check_update(&self.values, key, flags)?;
        let queue = slots::number(&value[..4])?;
        Errno::EOVERFLOW.when(queue > MOST_QUEUE)?;
        Errno::ENODEV.when(slots::number(key)? >= self.cpus)?;
        let mut stored = vec![0; value.len()];
        if queue > 0 {
            let descriptor = value[4..]
                .as_array()
                .map_or(0, |bytes| i32::from_le_bytes(*bytes));
            let id = program_id(descriptor, AttachType::XdpCpumap, resources);
            // Linux 6.18 says no more than that there is no entry.
            let id = id.map_err(|_| Errno::ENOMEM)?;
            stored[..4].copy_from_slice(&value[..4]);
            stored[4..].copy_from_slice(&id.to_le_bytes()[..value.len() - 4]);
        }
        self.values.store(key, &stored, 0, resources)
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        self.values.next_key(key, next)
    }
}

/// The id of the XDP program of a descriptor; 0 where there is none (0 or less).
pub(super) fn program_id(
    descriptor: i32,
    attach_type: AttachType,
    resources: &dyn Resources,
) -> Result<u32> {
    if descriptor <= 0 {
        return Ok(0);
    }
    let program = resources.program(descriptor as u32);
    let fits = program.filter(|program| {
        let class = program.class;
        class.program_type == ProgramType::Xdp && class.attach_type == attach_type.number()
    });
    fits.map(|program| program.id).ok_or(Errno::EINVAL)
}

/// The flags and index of an update of an array whose elements all exist.
pub(super) fn check_update(values: &Array, key: &[u8], flags: u64) -> Result {
    Errno::EINVAL.when(flags > EXIST)?;
    values.index(key).ok_or(Errno::E2BIG)?;
    match flags {
        NOEXIST => Err(Errno::EEXIST),
        _ => Ok(()),
    }
}

/// Empties an element, whether or not it was empty.
pub(super) fn clear(values: &Array, cpu: u32, key: &[u8]) -> Result {
    values.index(key).ok_or(Errno::EINVAL)?;
    values.update(cpu, key, &[0; 8][..values.value_size()], 0)
}

/// Reads an element that is not empty: whose first number is not 0.
pub(super) fn copy_filled(values: &Array, key: &[u8], out: &mut [u8]) -> Result {
    values.copy(key, out)?;
    match out[..4] == [0; 4] {
        true => Err(Errno::ENOENT),
        false => Ok(()),
    }
}

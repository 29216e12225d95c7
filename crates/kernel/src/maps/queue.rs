//! `queue` and `stack`: values without keys, first or last in, first out.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spec::maps::MapKind;
use spec::{Errno, Result};
use vm::MapOperations;

use super::flags::{EXIST, NOEXIST};
use super::memory::Charge;
use super::resources::Resources;
use super::{Definition, Host, SyscallOperations};

/// Values of one size in the order in which they were pushed.
#[derive(Debug)]
pub(super) struct Queue {
    values: Mutex<VecDeque<Box<[u8]>>>,
    value_size: u32,
    charge: Charge,
    capacity: usize,
    /// The newest value is the next, as in a stack.
    is_stack: bool,
}

impl Queue {
    pub(super) fn new(map: &Definition, host: &Host) -> Queue {
        Queue {
            values: Mutex::default(),
            value_size: map.params.value_size,
            charge: Charge::new(&host.memory),
            capacity: map.params.max_entries as usize,
            is_stack: map.kind == MapKind::Stack,
        }
    }

    /// Bytes of a value.
    fn bytes(&self) -> u64 {
        u64::from(self.value_size)
    }

    fn values(&self) -> MutexGuard<'_, VecDeque<Box<[u8]>>> {
        // The queue is whole after every step, so a panic elsewhere does not matter.
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MapOperations for Queue {
    fn push(&self, value: &[u8], flags: u64) -> Result {
        Errno::EINVAL.when(flags & NOEXIST != 0 || flags > EXIST)?;
        let mut values = self.values();
        if values.len() == self.capacity {
            Errno::E2BIG.when(flags & EXIST == 0)?;
            // The oldest makes room, in a stack as well.
            values.pop_front();
            self.charge.remove(self.bytes());
        }
        self.charge.add(self.bytes())?;
        values.push_back(value.into());
        Ok(())
    }

    fn pop(&self, out: &mut [u8]) -> Result {
        let mut values = self.values();
        let value = match self.is_stack {
            true => values.pop_back(),
            false => values.pop_front(),
        };
        if value.is_some() {
            self.charge.remove(self.bytes());
        }
        give(value.as_deref(), out)
    }

    fn peek(&self, out: &mut [u8]) -> Result {
        let values = self.values();
        let value = match self.is_stack {
            true => values.back(),
            false => values.front(),
        };
        give(value.map(|value| &**value), out)
    }

    fn update(&self, _: u32, _: &[u8], _: &[u8], _: u64) -> Result {
        Err(Errno::EINVAL)
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result {
        Err(Errno::EINVAL)
    }
}

impl SyscallOperations for Queue {
    fn copy(&self, _: &[u8], out: &mut [u8]) -> Result {
        self.peek(out)
    }

    fn store(&self, _: &[u8], value: &[u8], flags: u64, _: &dyn Resources) -> Result {
        self.push(value, flags)
    }

    fn take(&self, _: &[u8], out: &mut [u8]) -> Result {
        self.pop(out)
    }

    fn next_key(&self, _: Option<&[u8]>, _: &mut [u8]) -> Result {
        Err(Errno::EINVAL)
    }
}

/// Copies a value out; without one, zeros.
fn give(value: Option<&[u8]>, out: &mut [u8]) -> Result {
    match value {
        Some(value) => {
            out.copy_from_slice(value);
            Ok(())
        }
        None => {
            out.fill(0);
            Err(Errno::ENOENT)
        }
    }
}

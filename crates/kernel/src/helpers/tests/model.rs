//! The model side of the memory: everything that a call asks for is there.

use std::sync::Arc;

use spec::{Errno, Result};
use vm::{ModelPort, ObjectLayout, Objects, Opened, Streams};

use super::{Buffer, CONTEXT};

/// Where a packet and its fragments are: no bytes of the buffer.
const PACKET: u64 = 0xe000;

/// What the run opened and holds.
pub(super) struct Model {
    pub(super) objects: Arc<Objects>,
    streams: Streams,
    /// One of each kind, whatever the address is.
    opened: [Opened; 7],
    locks: [u64; 2],
    /// Attempts to take a lock.
    attempts: u32,
}

impl Model {
    pub(super) fn new() -> Model {
        Model {
            objects: Arc::new(Objects::new(4)),
            streams: Streams::new(),
            opened: [
                Opened::Numbers,
                Opened::Bits([5, 1 << 63].into()),
                Opened::Nothing("bpf_iter_dmabuf"),
                Opened::Nothing("bpf_iter_kmem_cache"),
                Opened::Nothing("bpf_iter_task_vma"),
                Opened::IrqFlags(0),
                Opened::LockFlags(0),
            ],
            locks: [1, 2],
            attempts: 0,
        }
    }
}

impl Buffer {
    /// Makes an object of so many bytes that is not in the buffer; its address.
    pub(crate) fn allocate(&mut self, size: usize) -> u64 {
        let object = self.model.objects.allocate(&object_of(size));
        object.expect("there is memory")
    }
}

fn object_of(size: usize) -> Arc<ObjectLayout> {
    Arc::new(ObjectLayout {
        name: "object".to_owned(),
        size,
        owning: Vec::new(),
    })
}

impl ModelPort for Buffer {
    fn refuse(&self, _: String) -> u64 {
        0
    }

    fn open(&mut self, _: u64, _: Opened) -> Result<(), u64> {
        Ok(())
    }

    fn opened(&self, address: u64, name: &str) -> Result<&Opened, u64> {
        let mut opened = self.model.opened.iter();
        opened.find(|opened| opened.name() == name).ok_or(address)
    }

    fn close(&mut self, address: u64, name: &str) -> Result<Opened, u64> {
        self.opened(address, name).cloned()
    }

    fn packet_address(&self, context: u64) -> Result<u64, u64> {
        match context {
            CONTEXT => Ok(PACKET),
            _ => Err(context),
        }
    }

    fn fragment_address(&self, fragment: usize) -> u64 {
        PACKET + 0x100 * (fragment as u64 + 1)
    }

    fn saved_flags(&self) -> usize {
        1
    }

    fn lock_resilient(&mut self, _: u64) -> Result<Result, u64> {
        self.model.attempts += 1;
        Ok(match self.model.attempts % 2 {
            0 => Ok(()),
            _ => Err(Errno::EDEADLK),
        })
    }

    fn unlock_resilient(&mut self, _: u64) -> Result<(), u64> {
        Ok(())
    }

    fn resilient_locks(&self) -> &[u64] {
        &self.model.locks
    }

    fn objects(&self) -> Result<Arc<Objects>, u64> {
        Ok(Arc::clone(&self.model.objects))
    }

    fn layout(&self, _: u64) -> Result<Arc<ObjectLayout>, u64> {
        Ok(object_of(64))
    }

    fn streams(&self) -> Result<&Streams, u64> {
        Ok(&self.model.streams)
    }

    fn hold(&mut self, _: u64) {}

    fn give(&mut self, _: u64) -> Result<(), u64> {
        Ok(())
    }

    fn root(&self, address: u64) -> Result<u64, u64> {
        Ok(address)
    }

    fn throw(&mut self, _: u64) -> Result<(), u64> {
        Ok(())
    }
}

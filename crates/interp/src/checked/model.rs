//! Resources held by a run: the model side of functions that the verifier tracks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use spec::{Errno, Result};
use vm::{MemoryPort, ModelPort, ModelPrograms, ObjectLayout, Objects, Opened, Streams};

use super::calls::CallFault;
use super::memory::{Access, Memory, refused};
use super::trap::{Reason, Unclosed};

/// Timeout of a resilient lock (`RES_DEF_TIMEOUT`).
const LOCK_TIMEOUT: Duration = Duration::from_millis(250);
/// Bits of the addresses of a fragment of the packet.
const FRAGMENT_BITS: u32 = 20;
/// Most resilient locks that a run is known to hold (`RES_NR_HELD`).
const MOST_HELD: usize = 31;
/// Alignment of what is opened on the stack.
const ALIGNMENT: u64 = 8;

/// Resources held by a run.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// By address.
    opened: BTreeMap<u64, Opened>,
    /// The cookie of an exception that was thrown.
    thrown: Option<u64>,
    /// References to objects, by their addresses.
    held: BTreeMap<u64, u32>,
    /// Addresses of resilient locks, in the order of taking.
    locks: Vec<u64>,
}

impl<'m> Memory<'m> {
    /// The fragment that an address could be in, and the offset in it.
    fn fragment_of(&self, address: u64) -> Option<(usize, usize)> {
        let offset = address.checked_sub(self.addresses().fragments)?;
        let number = usize::try_from(offset >> FRAGMENT_BITS).ok()?;
        let in_fragment = offset & ((1 << FRAGMENT_BITS) - 1);
        Some((number, in_fragment as usize))
    }

    /// Bytes of a fragment of the packet.
    pub(super) fn fragment(&self, address: u64, len: usize) -> Option<&[u8]> {
        let (number, offset) = self.fragment_of(address)?;
        let fragment = self.packet_buffer()?.fragment(number)?;
        fragment.get(offset..offset + len)
    }

    /// Bytes of a fragment of the packet, to change.
    pub(super) fn fragment_mut(&mut self, address: u64, len: usize) -> Option<&mut [u8]> {
        let (number, offset) = self.fragment_of(address)?;
        let fragment = self.packet_buffer_mut()?.fragment_mut(number)?;
        fragment.get_mut(offset..offset + len)
    }

    /// Adds the objects and the programs of the host.
    pub fn add_model(&mut self, objects: &Arc<Objects>, programs: &'m dyn ModelPrograms) {
        self.objects = Some(Arc::clone(objects));
        self.programs = Some(programs);
    }

    /// Checks that the run holds no reference and no lock, which is about to leave the program.
    pub(super) fn check_released(&self) -> Result<(), Reason> {
        if let Some(pointer) = self.model.held.keys().next() {
            return Err(Reason::Unreleased(*pointer));
        }
        match self.locks().next() {
            Some(lock) => Err(Reason::Locked(lock)),
            None => Ok(()),
        }
    }

    /// Addresses of the locks of both kinds that the run holds.
    fn locks(&self) -> impl Iterator<Item = u64> {
        self.held_lock()
            .into_iter()
            .chain(self.model.locks.iter().copied())
    }

    /// Sets the lock at an address; false if it is not freed while `goes_on` holds.
    pub(super) fn wait_for_lock(
        &mut self,
        address: u64,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<bool, CallFault> {
        loop {
            match self.update_shared::<4>(address, |old| old.max(1)) {
                Some(0) => return Ok(true),
                Some(_) if goes_on() => thread::yield_now(),
                Some(_) => return Ok(false),
                None => return Err(self.fault(address, 4, Access::Update).into()),
            }
        }
    }

    /// The cookie of the exception that the function threw which was called last.
    pub(super) fn take_thrown(&mut self) -> Option<u64> {
        self.model.thrown.take()
    }

    /// Checks that nothing is open in the last frame, which is about to be removed.
    pub(super) fn check_closed(&self) -> Result<(), Unclosed> {
        match self.model.opened.range(self.last_frame()).next() {
            Some((address, opened)) => Err(Unclosed {
                name: opened.name(),
                address: *address,
            }),
            None => Ok(()),
        }
    }

    /// Forgets what a run opened, which may have ended in any way.
    pub(super) fn end_model(&mut self) {
        let Model { held, locks, .. } = std::mem::take(&mut self.model);
        for lock in locks {
            self.update_shared::<4>(lock, |_| 0);
        }
        if let Some(objects) = &self.objects {
            for (pointer, references) in held {
                (0..references).for_each(|_| objects.drop_reference(pointer));
            }
        }
    }

    /// Passes a reference of the run to a field with a pointer, if it is one to an object.
    pub(super) fn pass_reference(&mut self, pointer: u64) -> Result<(), CallFault> {
        match self.is_object(pointer) {
            true => self.give(pointer),
            false => Ok(()),
        }
    }

    /// Takes a reference that was in a field with a pointer, if it is one to an object.
    pub(super) fn take_reference(&mut self, pointer: u64) {
        if self.is_object(pointer) {
            self.hold(pointer);
        }
    }

    fn is_object(&self, pointer: u64) -> bool {
        let objects = self.objects.as_ref();
        objects.is_some_and(|objects| objects.start(pointer).is_some())
    }

    /// Forgets a reference of the run; false if it has none.
    fn forget(&mut self, pointer: u64) -> bool {
        let Some(references) = self.model.held.get_mut(&pointer) else {
            return false;
        };
        *references -= 1;
        if *references == 0 {
            self.model.held.remove(&pointer);
        }
        true
    }
}

impl<'m> ModelPort for Memory<'m> {
    fn refuse(&self, why: String) -> CallFault {
        refused(why)
    }

    fn open(&mut self, address: u64, opened: Opened) -> Result<(), CallFault> {
        let name = opened.name();
        if !address.is_multiple_of(ALIGNMENT) || !self.is_on_stack(address, ALIGNMENT) {
            return Err(refused(format!(
                "{address:#x} is no place of the stack for a {name}"
            )));
        }
        if let Some(opened) = self.model.opened.get(&address) {
            let open = opened.name();
            return Err(refused(format!("a {open} is open at {address:#x} already")));
        }
        self.model.opened.insert(address, opened);
        Ok(())
    }

    fn opened(&self, address: u64, name: &str) -> Result<&Opened, CallFault> {
        let opened = self.model.opened.get(&address);
        let opened = opened.filter(|opened| opened.name() == name);
        opened.ok_or_else(|| refused(format!("no {name} is open at {address:#x}")))
    }

    fn close(&mut self, address: u64, name: &str) -> Result<Opened, CallFault> {
        let is_open = ModelPort::opened(self, address, name).map(drop);
        let opened = self.model.opened.remove(&address);
        is_open.and(opened.ok_or_else(|| refused(format!("no {name} is open at {address:#x}"))))
    }

    fn fragment_address(&self, fragment: usize) -> u64 {
        self.addresses().fragments + ((fragment as u64) << FRAGMENT_BITS)
    }

    fn saved_flags(&self) -> usize {
        let is_flags =
            |opened: &&Opened| matches!(opened, Opened::IrqFlags(_) | Opened::LockFlags(_));
        self.model.opened.values().filter(is_flags).count()
    }

    fn lock_resilient(&mut self, address: u64) -> Result<Result, CallFault> {
        let place = self.value_address(address)?;
        let mut held = self.model.locks.iter().take(MOST_HELD);
        if held.any(|lock| self.value_address(*lock) == Ok(place)) {
            return Ok(Err(Errno::EDEADLK));
        }
        let start = Instant::now();
        if !self.wait_for_lock(address, || start.elapsed() < LOCK_TIMEOUT)? {
            return Ok(Err(Errno::ETIMEDOUT));
        }
        self.model.locks.push(address);
        Ok(Ok(()))
    }

    fn unlock_resilient(&mut self, address: u64) -> Result<(), CallFault> {
        if self.model.locks.last() != Some(&address) {
            return Err(refused(format!(
                "the lock at {address:#x} is not the last one that the run took"
            )));
        }
        self.model.locks.pop();
        self.update_shared::<4>(address, |_| 0);
        Ok(())
    }

    fn resilient_locks(&self) -> &[u64] {
        &self.model.locks
    }

    fn packet_address(&self, context: u64) -> Result<u64, CallFault> {
        self.packet(context)?;
        let bounds = self.packet_bounds();
        let start = bounds.map(|[_, start, _]| start);
        start.ok_or_else(|| refused(format!("{context:#x} carries no packet")))
    }

    fn objects(&self) -> Result<Arc<Objects>, CallFault> {
        let objects = self.objects.clone();
        objects.ok_or_else(|| refused("the run has no objects".to_owned()))
    }

    fn layout(&self, type_id: u64) -> Result<Arc<ObjectLayout>, CallFault> {
        let number = u32::try_from(type_id).ok();
        let layout = (self.programs).and_then(|programs| programs.layout(self.program, number?));
        layout
            .map(Arc::new)
            .ok_or_else(|| refused(format!("type {type_id} is no structure of the program")))
    }

    fn streams(&self) -> Result<&Streams, CallFault> {
        let streams = self
            .programs
            .and_then(|programs| programs.streams(self.program));
        streams.ok_or_else(|| refused("the program has no streams".to_owned()))
    }

    fn hold(&mut self, pointer: u64) {
        *self.model.held.entry(pointer).or_default() += 1;
    }

    fn give(&mut self, pointer: u64) -> Result<(), CallFault> {
        match self.forget(pointer) {
            true => Ok(()),
            false => Err(refused(format!("the run holds no object at {pointer:#x}"))),
        }
    }

    fn root(&self, address: u64) -> Result<u64, CallFault> {
        let place = self.value_address(address)?;
        let is_held = self
            .locks()
            .any(|lock| self.are_in_one_value(lock, address));
        match is_held {
            true => Ok(place),
            false => Err(refused(format!(
                "the lock of the root at {address:#x} is not held"
            ))),
        }
    }

    fn throw(&mut self, cookie: u64) -> Result<(), CallFault> {
        if let Err(reason) = self.check_released() {
            return Err(refused(reason.to_string()));
        }
        if let Some((address, opened)) = self.model.opened.first_key_value() {
            let name = opened.name();
            return Err(refused(format!("a {name} is open at {address:#x}")));
        }
        self.model.thrown = Some(cookie);
        Ok(())
    }
}

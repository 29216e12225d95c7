//! What a run opened and holds: the model side of functions that the verifier tracks.

use std::collections::BTreeMap;
use std::sync::Arc;

use vm::{MemoryPort, ModelPort, ModelPrograms, ObjectLayout, Objects, Opened, Streams};

use super::calls::CallFault;
use super::memory::{Memory, refused};
use super::trap::{Reason, Unclosed};

/// Alignment of what is opened on the stack.
const ALIGNMENT: u64 = 8;

/// What a run opened and holds.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// By address.
    opened: BTreeMap<u64, Opened>,
    /// The cookie of an exception that was thrown.
    thrown: Option<u64>,
    /// References to objects, by their addresses.
    held: BTreeMap<u64, u32>,
}

impl<'m> Memory<'m> {
    /// Adds the objects and the programs of the host.
    pub fn add_model(&mut self, objects: &Arc<Objects>, programs: &'m dyn ModelPrograms) {
        self.objects = Some(Arc::clone(objects));
        self.programs = Some(programs);
    }

    /// Checks that the run holds no reference and no lock, which is about to leave the program.
    pub(super) fn check_released(&self) -> Result<(), Reason> {
        match (self.model.held.first_key_value(), self.held_lock()) {
            (Some((pointer, _)), _) => Err(Reason::Unreleased(*pointer)),
            (None, Some(lock)) => Err(Reason::Locked(lock)),
            (None, None) => Ok(()),
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
        let held = std::mem::take(&mut self.model).held;
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
        match self.held_lock() {
            Some(lock) if self.are_in_one_value(lock, address) => Ok(place),
            _ => Err(refused(format!(
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

//! The model side of a run in the checked engine: what programs open and hold, which the
//! verifier tracks and native code of verified programs needs no record of.
//!
//! A function that Linux's verifier would refuse to call as it is called ends the run with a
//! fault ([`ModelPort::refuse`]).

use std::sync::Arc;

use spec::Result;

use crate::{MemoryPort, ObjectLayout, Objects, Streams};

/// Object that is open at an address of the stack, and is closed before its function returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// An iterator over numbers, whose state is on the stack.
    Numbers,
    /// An iterator over these set bits; its place is on the stack.
    Bits(Box<[u64]>),
    /// An iterator of that name over nothing.
    Nothing(&'static str),
    /// A saved state of interrupts: the number of those that were saved before.
    IrqFlags(usize),
    /// One that was saved with a lock.
    LockFlags(usize),
}

impl Opened {
    /// The name of its structure, or what it is.
    pub fn name(&self) -> &'static str {
        match self {
            Opened::Numbers => "bpf_iter_num",
            Opened::Bits(_) => "bpf_iter_bits",
            Opened::Nothing(name) => name,
            Opened::IrqFlags(_) => "state of interrupts",
            Opened::LockFlags(_) => "state of interrupts with a lock",
        }
    }
}

/// The programs of a host, by the numbers that engines know them by.
pub trait ModelPrograms {
    /// The layout of a structure of a program, by its type id.
    fn layout(&self, program: u32, type_id: u32) -> Option<ObjectLayout>;

    /// The streams of a program.
    fn streams(&self, program: u32) -> Option<&Streams>;
}

/// The memory of a run of an unverified program.
pub trait ModelPort: MemoryPort {
    /// A fault that says why a call is refused.
    fn refuse(&self, why: String) -> Self::Fault;

    /// Opens something at an address of the stack.
    ///
    /// # Errors
    /// If the address is not aligned and on the stack, or something is open there.
    fn open(&mut self, address: u64, opened: Opened) -> Result<(), Self::Fault>;

    /// Returns the object that is open at an address.
    ///
    /// # Errors
    /// If it is not of that name, or nothing is.
    fn opened(&self, address: u64, name: &str) -> Result<&Opened, Self::Fault>;

    /// Closes what is open at an address.
    ///
    /// # Errors
    /// As [`ModelPort::opened`].
    fn close(&mut self, address: u64, name: &str) -> Result<Opened, Self::Fault>;

    /// The address of the first byte of the packet that a context carries.
    ///
    /// # Errors
    /// If it carries none.
    fn packet_address(&self, context: u64) -> Result<u64, Self::Fault>;

    /// The address of the first byte of a fragment of the packet, which need not exist.
    fn fragment_address(&self, fragment: usize) -> u64;

    /// Number of states of interrupts that are open.
    fn saved_flags(&self) -> usize;

    /// Takes the resilient lock at an address: EDEADLK if the run holds it, ETIMEDOUT if another
    /// one does not free it.
    ///
    /// # Errors
    /// If it is in no value of a map and no object.
    fn lock_resilient(&mut self, address: u64) -> Result<Result, Self::Fault>;

    /// Frees the resilient lock that the run took last.
    ///
    /// # Errors
    /// If it is another one.
    fn unlock_resilient(&mut self, address: u64) -> Result<(), Self::Fault>;

    /// Addresses of the resilient locks that the run holds, in the order of taking.
    fn resilient_locks(&self) -> &[u64];

    /// The objects of the host.
    ///
    /// # Errors
    /// If there are none.
    fn objects(&self) -> Result<Arc<Objects>, Self::Fault>;

    /// The layout of a structure of the executing program, by its type id.
    ///
    /// # Errors
    /// If it has no such structure.
    fn layout(&self, type_id: u64) -> Result<Arc<ObjectLayout>, Self::Fault>;

    /// The streams of the executing program.
    ///
    /// # Errors
    /// If it has none.
    fn streams(&self) -> Result<&Streams, Self::Fault>;

    /// Gives the run a reference to an object, which it passes on or drops.
    fn hold(&mut self, pointer: u64);

    /// Takes a reference from the run.
    ///
    /// # Errors
    /// If it has none.
    fn give(&mut self, pointer: u64) -> Result<(), Self::Fault>;

    /// The place on the host of the root of a list or tree.
    ///
    /// # Errors
    /// If it is in no value of a map and no object, or the run does not hold the lock beside it.
    fn root(&self, address: u64) -> Result<u64, Self::Fault>;

    /// Has the engine throw an exception when the function has returned.
    ///
    /// # Errors
    /// If something is open or held.
    fn throw(&mut self, cookie: u64) -> Result<(), Self::Fault>;
}

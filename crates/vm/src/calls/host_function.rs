//! Functions of a host, which programs call as kfuncs or helpers.
//!
//! A function gets its argument registers and the memory of the run as copies: it holds no
//! pointer into it, and a wrong address ends the run in an engine that checks.

use std::fmt;
use std::sync::Arc;

use spec::host::{MOST_FUNCTIONS, Prototype};

use crate::{Call, Direct, MemoryPort, RunContext, direct_call};

/// The memory of a run, as functions of a host reach it. An access that is not possible ends
/// the run when the function has returned.
pub trait HostMemory {
    /// Reads bytes at an address; false if it is not possible.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;

    /// Writes bytes at an address; false if it is not possible.
    fn write(&mut self, address: u64, bytes: &[u8]) -> bool;
}

/// Result of a function for its argument registers; `None` if it had no access to an
/// argument.
type Body = dyn Fn([u64; 5], &mut dyn HostMemory) -> Option<u64> + Send + Sync;

/// A function of a host, with its prototype.
#[derive(Clone)]
pub struct HostFunction {
    prototype: Prototype,
    body: Arc<Body>,
}

impl HostFunction {
    /// A function of this prototype.
    #[doc(hidden)]
    pub fn new(
        prototype: Prototype,
        body: impl Fn([u64; 5], &mut dyn HostMemory) -> Option<u64> + Send + Sync + 'static,
    ) -> HostFunction {
        HostFunction {
            prototype,
            body: Arc::new(body),
        }
    }

    /// The prototype.
    #[doc(hidden)]
    pub fn prototype(&self) -> &Prototype {
        &self.prototype
    }

    /// The same function, which programs can also call as the helper with a number, one of
    /// [`HELPER_NUMBERS`](spec::host::HELPER_NUMBERS).
    #[must_use]
    pub fn as_helper(mut self, number: u32) -> HostFunction {
        self.prototype.helper = Some(number);
        self
    }

    /// Declarations of functions in C, for the source of programs that call them.
    pub fn header(functions: &[HostFunction]) -> String {
        let prototypes = functions.iter().map(|function| function.prototype.clone());
        spec::host::header(&prototypes.collect::<Vec<_>>())
    }

    /// The prototype, to change flags and program types.
    #[doc(hidden)]
    pub fn prototype_mut(&mut self) -> &mut Prototype {
        &mut self.prototype
    }

    /// Calls it.
    ///
    /// # Errors
    /// The fault of an access.
    #[doc(hidden)]
    pub fn call<M: MemoryPort>(
        &self,
        arguments: [u64; 5],
        memory: &mut M,
    ) -> Result<u64, M::Fault> {
        let mut port = Port {
            memory,
            fault: std::cell::Cell::new(None),
        };
        let result = (self.body)(arguments, &mut port);
        match port.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(result.unwrap_or(0)),
        }
    }
}

impl fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostFunction({})", self.prototype)
    }
}

/// A memory port, with the first fault of an access.
struct Port<'m, M: MemoryPort> {
    memory: &'m mut M,
    fault: std::cell::Cell<Option<M::Fault>>,
}

impl<M: MemoryPort> Port<'_, M> {
    fn is_done(&self, access: Result<(), M::Fault>) -> bool {
        match access {
            Ok(()) => true,
            Err(fault) => {
                let first = self.fault.take();
                self.fault.set(Some(first.unwrap_or(fault)));
                false
            }
        }
    }
}

impl<M: MemoryPort> HostMemory for Port<'_, M> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let access = self.memory.read(address, into);
        self.is_done(access)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        let access = self.memory.write(address, bytes);
        self.is_done(access)
    }
}

/// Calls the function of that index of the run.
fn function<const INDEX: usize>(
    arguments: [u64; 5],
    memory: &mut Direct,
    cx: &mut RunContext<'_>,
) -> Result<u64, std::convert::Infallible> {
    match cx.host.get(INDEX) {
        Some(function) => function.call(arguments, memory),
        None => Ok(0),
    }
}

macro_rules! calls {
    ($($index:literal)*) => {
        /// The function through which code of verified programs calls the function of the host
        /// with that index in [`RunContext::host`].
        pub fn host_call(index: u16) -> Option<Call> {
            Some(match index {
                $($index => direct_call(function::<$index>),)*
                _ => return None,
            })
        }

        const _: () = assert!([$($index),*].len() == MOST_FUNCTIONS);
    };
}

calls! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
    62 63
}

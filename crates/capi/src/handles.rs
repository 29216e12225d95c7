//! Handles of maps and programs as numbers, in place of file descriptors: C passes them by value.
//!
//! The table is the only state of the library that is shared by all objects, as descriptors are
//! shared by a process. A number is given once: a handle that was closed is refused from then on
//! (EBADF), and never means another map. Numbers begin where no descriptor of a process is, so that
//! `close` and `bpf` refuse them too.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{PoisonError, RwLock};

use beebox::{Map, Program};

use crate::boundary::{Failure, number};

/// What a handle names.
#[derive(Clone)]
pub(crate) enum Named {
    Map(Map),
    Program(Program),
}

struct Table {
    open: BTreeMap<c_int, Named>,
    next: c_int,
}

/// The first handle.
const FIRST: c_int = 1 << 30;

static TABLE: RwLock<Table> = RwLock::new(Table {
    open: BTreeMap::new(),
    next: FIRST,
});

/// A new handle.
pub(crate) fn open(named: Named) -> Result<c_int, Failure> {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let handle = table.next;
    let spent = || Failure::new(libc::EMFILE, "this process has used up all handles");
    table.next = handle.checked_add(1).ok_or_else(spent)?;
    table.open.insert(handle, named);
    Ok(handle)
}

/// Closes a handle; false if it is not open.
pub(crate) fn close(handle: c_int) -> bool {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let closed = table.open.remove(&handle);
    // What it names may be the last of its object, and is freed without the lock.
    drop(table);
    closed.is_some()
}

/// What a handle names.
fn named(handle: c_int) -> Result<Named, Failure> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let named = table.open.get(&handle).cloned();
    named.ok_or_else(|| {
        let what = match handle {
            ..0 => "is an error number and no handle",
            0..FIRST => "is no handle of Beebox",
            FIRST.. => "is closed",
        };
        Failure::new(libc::EBADF, format!("handle {handle} {what}"))
    })
}

/// The map of a handle.
pub(crate) fn map(handle: c_int) -> Result<Map, Failure> {
    match named(handle)? {
        Named::Map(map) => Ok(map),
        Named::Program(program) => Err(Failure::argument(format!(
            "handle {handle} is program {}, not a map",
            program.name()
        ))),
    }
}

/// The program of a handle.
pub(crate) fn program(handle: c_int) -> Result<Program, Failure> {
    match named(handle)? {
        Named::Program(program) => Ok(program),
        Named::Map(map) => Err(Failure::argument(format!(
            "handle {handle} is map {}, not a program",
            map.name()
        ))),
    }
}

/// Closes the handle of a map that `beebox_map_create_inner` returned. Handles of an object's own maps
/// and programs end with their object.
///
/// Returns 0, or -EBADF for what is no open handle.
#[unsafe(no_mangle)]
pub extern "C" fn beebox_close(fd: c_int) -> c_int {
    number(|| match close(fd) {
        true => Ok(0),
        false => named(fd).map(|_| 0),
    })
}

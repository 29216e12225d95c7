//! Files that are removed when a signal ends the process.
//!
//! A handler may do little: it walks a list that only grows, whose nodes are never freed, and
//! calls unlink(2) for the files that are still unfinished. Then the signal ends the process as
//! it would have done without the handler. A process has few outputs, so the list is short.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::Errno;

/// A file of the process that is removed when SIGHUP, SIGINT, SIGQUIT or SIGTERM ends it; no more
/// once this is dropped.
#[derive(Debug)]
pub struct RemovedOnSignal(&'static Node);

/// An element of the list.
#[derive(Debug)]
struct Node {
    path: CString,
    is_unfinished: AtomicBool,
    /// The element before.
    next: *const Node,
}

// SAFETY: `next` is set before the node is shared, and what it points to is never freed.
unsafe impl Sync for Node {}

/// The newest element.
static NEWEST: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

/// Signals that end a process, unless they are ignored or handled.
const ENDING: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

impl RemovedOnSignal {
    /// Has the file of this path removed by signals, from before it exists.
    ///
    /// The first call installs handlers for the signals that nothing else handles and that are
    /// not ignored, and ignores SIGXFSZ, so that a write beyond the limit of file sizes fails
    /// with EFBIG.
    ///
    /// # Errors
    /// EINVAL if the path has a zero byte.
    pub fn new(path: &Path) -> Result<RemovedOnSignal, Errno> {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(install);
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno(libc::EINVAL))?;
        let node = Box::leak(Box::new(Node {
            path,
            is_unfinished: AtomicBool::new(true),
            next: ptr::null(),
        }));
        let mut newest = NEWEST.load(Ordering::Acquire);
        loop {
            node.next = newest;
            let pushed = NEWEST.compare_exchange(
                newest,
                ptr::from_mut(node),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match pushed {
                Ok(_) => return Ok(RemovedOnSignal(node)),
                Err(other) => newest = other,
            }
        }
    }
}

impl Drop for RemovedOnSignal {
    fn drop(&mut self) {
        self.0.is_unfinished.store(false, Ordering::Release);
    }
}

/// Installs the handlers.
fn install() {
    for signal in ENDING {
        replace_default(signal, remove_and_end as *const () as libc::sighandler_t);
    }
    replace_default(libc::SIGXFSZ, libc::SIG_IGN);
}

/// Sets what a signal does, if it does what it does by default.
fn replace_default(signal: libc::c_int, handler: libc::sighandler_t) {
    // SAFETY: all zeros is a valid value of this plain structure, with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null pointer asks for the present action, which is written to a local.
    let read = unsafe { libc::sigaction(signal, ptr::null(), &mut action) };
    if read != 0 || action.sa_sigaction != libc::SIG_DFL {
        return;
    }
    action.sa_sigaction = handler;
    // The default is in force again when the handler is entered.
    action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
    // SAFETY: the handler calls functions only that are safe in handlers, and takes no lock.
    unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
}

/// Removes the unfinished files. The signal that is raised again ends the process when this
/// returns.
extern "C" fn remove_and_end(signal: libc::c_int) {
    let mut next = NEWEST.load(Ordering::Acquire).cast_const();
    // SAFETY: elements of the list are never freed.
    while let Some(node) = unsafe { next.as_ref() } {
        if node.is_unfinished.load(Ordering::Acquire) {
            // SAFETY: the path is a string that ends with zero; unlink is safe in handlers.
            unsafe { libc::unlink(node.path.as_ptr()) };
        }
        next = node.next;
    }
    // SAFETY: raise is safe in handlers, and the action is the default one by now.
    unsafe { libc::raise(signal) };
}

//! Text that programs print in the running kernel (`bpf_trace_printk`), read from a trace
//! instance of its own.

use std::fs;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::ptr;

use crate::Errno;

const TRACING: &str = "/sys/kernel/tracing";
const EVENT: &str = "events/bpf_trace/bpf_trace_printk/enable";

/// Prefix of the text in a line of a trace.
const MARK: &str = "bpf_trace_printk: ";

/// A trace instance that records what programs print that the calling thread runs.
#[derive(Debug)]
pub struct PrintkTrace {
    instance: PathBuf,
    /// Makes the value neither `Send` nor `Sync`: the mount belongs to a thread.
    thread: PhantomData<*const ()>,
}

impl PrintkTrace {
    /// Moves the calling thread into a mount namespace of its own, mounts tracefs there and
    /// creates an instance. The thread cannot leave the namespace, so use a dedicated
    /// thread. Needs CAP_SYS_ADMIN.
    pub fn start() -> Result<PrintkTrace, Errno> {
        // SAFETY: unshare takes no pointers; working directory and root of the thread
        // become its own.
        Errno::check(unsafe { libc::unshare(libc::CLONE_FS | libc::CLONE_NEWNS) })?;
        let (none, root) = (c"none".as_ptr(), c"/".as_ptr());
        let (kind, at) = (c"tracefs".as_ptr(), c"/sys/kernel/tracing".as_ptr());
        let private = libc::MS_REC | libc::MS_PRIVATE;
        // SAFETY: the strings are constants; no options are given.
        Errno::check(unsafe { libc::mount(none, root, ptr::null(), private, ptr::null()) })?;
        // SAFETY: as above.
        Errno::check(unsafe { libc::mount(none, at, kind, 0, ptr::null()) })?;
        // SAFETY: gettid takes no arguments.
        let thread = unsafe { libc::gettid() };
        let instance = PathBuf::from(format!("{TRACING}/instances/beebox-{thread}"));
        fs::create_dir(&instance)?;
        let trace = PrintkTrace {
            instance,
            thread: PhantomData,
        };
        trace.write("set_event_pid", &thread.to_string())?;
        trace.write(EVENT, "1")?;
        Ok(trace)
    }

    /// The text of the one call since the last one was taken; `None` if there was none.
    pub fn take(&self) -> Result<Option<Vec<u8>>, Errno> {
        let trace = fs::read(self.instance.join("trace"))?;
        self.write("trace", "")?;
        let mark = MARK.as_bytes();
        let found = trace.windows(mark.len()).position(|bytes| bytes == mark);
        Ok(found.map(|at| {
            let text = &trace[at + mark.len()..];
            text.strip_suffix(b"\n").unwrap_or(text).to_vec()
        }))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Errno> {
        Ok(fs::write(self.instance.join(name), text)?)
    }
}

impl Drop for PrintkTrace {
    fn drop(&mut self) {
        // What cannot be removed remains as an empty instance.
        let _ = self.write(EVENT, "0");
        let _ = fs::remove_dir(&self.instance);
    }
}

//! Whether the running kernel is the one that the models answer for.

use std::{fs, thread};

use sys::Errno;
use sys::network::OwnNamespace;

/// The kernel whose answers the models give.
pub const KERNEL: &str = "6.18";

/// Reason why the kernel cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Not Linux, or not the modelled release; its name.
    OtherKernel(String),
    /// A system call fails.
    Refused {
        /// The system call.
        call: &'static str,
        /// With what error.
        errno: Errno,
    },
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unavailable::OtherKernel(release) => {
                write!(f, "the kernel is not Linux {KERNEL} but {release:?}")
            }
            Unavailable::Refused { call, errno } => write!(f, "{call}: {errno}"),
        }
    }
}

impl std::error::Error for Unavailable {}

/// The release of the running kernel, without what its builder appended, when it
/// is the one that we model.
pub fn kernel_release() -> Result<String, Unavailable> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let is_ours = |rest: &str| rest.starts_with(['.', '-']) || rest.is_empty();
    if release.strip_prefix(KERNEL).is_some_and(is_ours) {
        Ok(release.split('-').next().unwrap_or(release).to_owned())
    } else {
        Err(Unavailable::OtherKernel(release.to_owned()))
    }
}

/// Runs a function on a new thread, in a network namespace of its own and on CPU 0.
pub fn in_own_namespace<T: Send>(
    ask: impl FnOnce(&OwnNamespace) -> Result<T, Unavailable> + Send,
) -> Result<T, Unavailable> {
    kernel_release()?;
    thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let namespace = OwnNamespace::enter().map_err(unavailable("network namespace"))?;
            sys::network::pin_to_cpu(0).map_err(unavailable("CPU affinity"))?;
            ask(&namespace)
        });
        match asked.join() {
            Ok(answer) => answer,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// The error of a failed system call.
pub fn unavailable(call: &'static str) -> impl Fn(Errno) -> Unavailable {
    move |errno| Unavailable::Refused { call, errno }
}

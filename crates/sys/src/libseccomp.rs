//! libseccomp's filter compiler, loaded at run time: a peer for tests.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;

use crate::library::{LibraryError, SharedObject};

use crate::Errno;

/// File name of the library in every distribution.
const NAME: &str = "libseccomp.so.2";

/// libseccomp, loaded: the functions that are used, as its header declares them.
pub struct Libseccomp {
    init: unsafe extern "C" fn(u32) -> *mut c_void,
    release: unsafe extern "C" fn(*mut c_void),
    arch_add: unsafe extern "C" fn(*mut c_void, u32) -> c_int,
    arch_remove: unsafe extern "C" fn(*mut c_void, u32) -> c_int,
    resolve: unsafe extern "C" fn(*const c_char) -> c_int,
    resolve_on: unsafe extern "C" fn(u32, *const c_char) -> c_int,
    rule_add: unsafe extern "C" fn(*mut c_void, u32, c_int, c_uint, *const ArgComparison) -> c_int,
    export: unsafe extern "C" fn(*const c_void, c_int) -> c_int,
    /// Keeps the functions loaded.
    _library: SharedObject,
}

/// `struct scmp_arg_cmp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ArgComparison {
    /// Number of the argument.
    pub arg: c_uint,
    /// `enum scmp_compare`: 1 to 7 for NE, LT, LE, EQ, GE, GT and MASKED_EQ.
    pub op: c_int,
    /// Operand, or the mask.
    pub first: u64,
    /// Value that must remain under the mask.
    pub second: u64,
}

impl Libseccomp {
    /// Loads the system's library.
    pub fn load() -> Result<Libseccomp, LibraryError> {
        // SAFETY: loading runs the library's initialisers, which have no requirements.
        // The types are those of its public header, unchanged since version 2.0.
        unsafe {
            let library = SharedObject::load(&[NAME])?;
            Ok(Libseccomp {
                init: library.get(c"seccomp_init")?,
                release: library.get(c"seccomp_release")?,
                arch_add: library.get(c"seccomp_arch_add")?,
                arch_remove: library.get(c"seccomp_arch_remove")?,
                resolve: library.get(c"seccomp_syscall_resolve_name")?,
                resolve_on: library.get(c"seccomp_syscall_resolve_name_arch")?,
                rule_add: library.get(c"seccomp_rule_add_array")?,
                export: library.get(c"seccomp_export_bpf")?,
                _library: library,
            })
        }
    }

    /// Number of a call on this machine; negative for calls of other architectures,
    /// `None` for unknown names.
    pub fn resolve(&self, name: &str) -> Option<i32> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name is a C string that outlives the call.
        let number = unsafe { (self.resolve)(name.as_ptr()) };
        (number != -1).then_some(number)
    }

    /// Number of a call on an architecture, by its token; `None` where it has none.
    pub fn resolve_on(&self, arch: u32, name: &str) -> Option<u32> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name is a C string that outlives the call.
        let number = unsafe { (self.resolve_on)(arch, name.as_ptr()) };
        u32::try_from(number).ok()
    }

    /// A filter for some architectures, with a default action.
    pub fn filter(&self, default: u32, archs: &[u32]) -> Result<LibseccompFilter<'_>, Errno> {
        // SAFETY: the function takes a number.
        let context = unsafe { (self.init)(default) };
        let context = NonNull::new(context).ok_or(Errno(libc::EINVAL))?;
        let filter = LibseccompFilter {
            library: self,
            context,
        };
        // Token 0 is this machine's architecture, which a new filter has.
        // SAFETY: the filter is alive.
        unsafe {
            check((self.arch_remove)(filter.context.as_ptr(), 0))?;
            for &arch in archs {
                check((self.arch_add)(filter.context.as_ptr(), arch))?;
            }
        }
        Ok(filter)
    }
}

/// A filter in the making.
pub struct LibseccompFilter<'l> {
    library: &'l Libseccomp,
    context: NonNull<c_void>,
}

impl LibseccompFilter<'_> {
    /// Adds a rule for a call, by its number on this machine.
    pub fn add(
        &mut self,
        action: u32,
        number: i32,
        comparisons: &[ArgComparison],
    ) -> Result<(), Errno> {
        // SAFETY: the filter is alive, and the array has as many elements as stated.
        check(unsafe {
            (self.library.rule_add)(
                self.context.as_ptr(),
                action,
                number,
                comparisons.len() as c_uint,
                comparisons.as_ptr(),
            )
        })
    }

    /// The filter's code: `struct sock_filter` records.
    pub fn export(&self) -> Result<Vec<u8>, Errno> {
        // SAFETY: the name is a C string; the descriptor is new and owned by the file.
        let mut file = unsafe {
            let descriptor = libc::memfd_create(c"filter".as_ptr(), libc::MFD_CLOEXEC);
            File::from_raw_fd(Errno::check(descriptor)?)
        };
        // SAFETY: the filter and the descriptor are alive.
        check(unsafe { (self.library.export)(self.context.as_ptr(), file.as_raw_fd()) })?;
        let mut code = Vec::new();
        let read = file.rewind().and_then(|()| file.read_to_end(&mut code));
        read.map_err(|error| Errno(error.raw_os_error().unwrap_or(libc::EIO)))?;
        Ok(code)
    }
}

impl Drop for LibseccompFilter<'_> {
    fn drop(&mut self) {
        // SAFETY: the filter is alive and released once.
        unsafe { (self.library.release)(self.context.as_ptr()) };
    }
}

/// libseccomp returns negative error numbers.
fn check(status: c_int) -> Result<(), Errno> {
    match status {
        0.. => Ok(()),
        negative => Err(Errno(-negative)),
    }
}

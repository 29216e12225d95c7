//! libbpf, loaded at run time, for benchmarks.
//!
//! libbpf parses BTF and opens objects in user space, but loads them by bpf(2).
//! [`OpenObject::load`] therefore requires a libbpf that was built with a stand-in for
//! the kernel, recognised by the symbol `beebox_stand_in`, so that nothing reaches the
//! running kernel.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use crate::library::{LibraryError, SharedObject};

use crate::Errno;

/// File name of the system's libbpf.
pub const SYSTEM: &str = "libbpf.so.1";

/// libbpf, loaded: the functions that are used, as its headers declare them.
pub struct Libbpf {
    version: unsafe extern "C" fn() -> *const c_char,
    btf_parse: unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut c_void,
    btf_new: unsafe extern "C" fn(*const c_void, u32) -> *mut c_void,
    btf_count: unsafe extern "C" fn(*const c_void) -> u32,
    btf_free: unsafe extern "C" fn(*mut c_void),
    open: unsafe extern "C" fn(*const c_void, usize, *const c_void) -> *mut c_void,
    load: unsafe extern "C" fn(*mut c_void) -> c_int,
    close: unsafe extern "C" fn(*mut c_void),
    next_program: unsafe extern "C" fn(*const c_void, *mut c_void) -> *mut c_void,
    program_length: unsafe extern "C" fn(*const c_void) -> usize,
    has_stand_in: bool,
    /// Keeps the functions loaded.
    _library: SharedObject,
}

impl Libbpf {
    /// Loads this file, or the system's library of that name. Disables libbpf's messages
    /// (`libbpf_set_print`).
    pub fn load(file: &Path) -> Result<Libbpf, LibraryError> {
        // SAFETY: loading a library runs its initialisers; libbpf's have no
        // requirements. The types given to its functions are those that its public
        // headers declare since 1.0.
        unsafe {
            let library = SharedObject::load(&[file])?;
            type SetPrint = unsafe extern "C" fn(*const c_void) -> *const c_void;
            let set_print: SetPrint = library.get(c"libbpf_set_print")?;
            set_print(std::ptr::null());
            Ok(Libbpf {
                version: library.get(c"libbpf_version_string")?,
                btf_parse: library.get(c"btf__parse")?,
                btf_new: library.get(c"btf__new")?,
                btf_count: library.get(c"btf__type_cnt")?,
                btf_free: library.get(c"btf__free")?,
                open: library.get(c"bpf_object__open_mem")?,
                load: library.get(c"bpf_object__load")?,
                close: library.get(c"bpf_object__close")?,
                next_program: library.get(c"bpf_object__next_program")?,
                program_length: library.get(c"bpf_program__insn_cnt")?,
                has_stand_in: library.get::<*const c_char>(c"beebox_stand_in").is_ok(),
                _library: library,
            })
        }
    }

    /// Version string of the library.
    pub fn version(&self) -> String {
        // SAFETY: the function takes nothing and returns a static C string.
        let version = unsafe { CStr::from_ptr((self.version)()) };
        version.to_string_lossy().into_owned()
    }

    /// True if the library was built with a stand-in for the kernel and can load objects.
    pub fn has_stand_in(&self) -> bool {
        self.has_stand_in
    }

    /// Parses the BTF of a file (`btf__parse`); returns the number of types, including
    /// `void`.
    pub fn parse_btf_file(&self, file: &Path) -> Result<u32, Errno> {
        let name = CString::new(file.as_os_str().as_bytes()).map_err(|_| Errno(libc::ENOENT))?;
        // SAFETY: the name is a C string that outlives the call; the output for
        // `.BTF.ext` may be null.
        let btf = unsafe { (self.btf_parse)(name.as_ptr(), std::ptr::null_mut()) };
        self.count_and_free(btf)
    }

    /// Parses BTF (`btf__new`); returns the number of types, including `void`.
    pub fn parse_btf(&self, bytes: &[u8]) -> Result<u32, Errno> {
        let length = u32::try_from(bytes.len()).map_err(|_| Errno(libc::E2BIG))?;
        // SAFETY: libbpf copies `length` bytes, which are readable.
        let btf = unsafe { (self.btf_new)(bytes.as_ptr().cast(), length) };
        self.count_and_free(btf)
    }

    fn count_and_free(&self, btf: *mut c_void) -> Result<u32, Errno> {
        let btf = NonNull::new(btf).ok_or_else(Errno::last)?;
        // SAFETY: libbpf returned it, this function owns it, and it is freed once.
        unsafe {
            let count = (self.btf_count)(btf.as_ptr());
            (self.btf_free)(btf.as_ptr());
            Ok(count)
        }
    }

    /// Opens an object (`bpf_object__open_mem`).
    pub fn open<'l>(&'l self, bytes: &'l [u8]) -> Result<OpenObject<'l>, Errno> {
        // SAFETY: the bytes are readable for as long as the object is open, and
        // options may be null.
        let object = unsafe { (self.open)(bytes.as_ptr().cast(), bytes.len(), std::ptr::null()) };
        match NonNull::new(object) {
            Some(object) => Ok(OpenObject {
                libbpf: self,
                object,
            }),
            None => Err(Errno::last()),
        }
    }
}

impl fmt::Debug for Libbpf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Libbpf").field(&self.version()).finish()
    }
}

/// An open object (`struct bpf_object`).
pub struct OpenObject<'l> {
    libbpf: &'l Libbpf,
    object: NonNull<c_void>,
}

impl OpenObject<'_> {
    /// Number of instruction slots of all programs.
    pub fn slots(&self) -> usize {
        let mut program = std::ptr::null_mut();
        let mut sum = 0;
        loop {
            // SAFETY: the object is open, and the program is null or one of its.
            unsafe {
                program = (self.libbpf.next_program)(self.object.as_ptr(), program);
                if program.is_null() {
                    return sum;
                }
                sum += (self.libbpf.program_length)(program);
            }
        }
    }

    /// Links and loads the object, once. ENOSYS for a libbpf without a stand-in.
    pub fn load(&mut self) -> Result<(), Errno> {
        if !self.libbpf.has_stand_in {
            return Err(Errno(libc::ENOSYS));
        }
        // SAFETY: the object is open. libbpf rejects a second call.
        match unsafe { (self.libbpf.load)(self.object.as_ptr()) } {
            0 => Ok(()),
            error => Err(Errno(-error)),
        }
    }
}

impl Drop for OpenObject<'_> {
    fn drop(&mut self) {
        // SAFETY: the object is open and is closed once.
        unsafe { (self.libbpf.close)(self.object.as_ptr()) };
    }
}

impl fmt::Debug for OpenObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenObject").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_an_error_with_its_name() {
        let absent = Libbpf::load(Path::new("/nonexistent/libbpf.so"));
        let said = absent.expect_err("there is no such file").to_string();
        assert!(said.contains("/nonexistent/libbpf.so"), "{said}");
    }
}

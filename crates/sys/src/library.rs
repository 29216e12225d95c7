//! Shared objects, loaded at run time: those of optional libraries, and single functions.

use std::error::Error;
use std::ffi::{CStr, CString, OsStr, c_void};
use std::fmt;
use std::path::Path;

use libloading::Library;

/// A loaded shared object. Values of its symbols are valid as long as it exists.
#[derive(Debug)]
pub(crate) struct SharedObject {
    name: String,
    library: Library,
}

impl SharedObject {
    /// Loads the first of several files, or libraries of the system by name.
    ///
    /// # Safety
    /// Loading and unloading each of them is safe.
    pub(crate) unsafe fn load<N: AsRef<OsStr>>(names: &[N]) -> Result<SharedObject, LibraryError> {
        let mut reasons = Vec::new();
        for file in names {
            let name = file.as_ref().to_string_lossy().into_owned();
            // SAFETY: the caller asserts that loading is safe.
            match unsafe { Library::new(file.as_ref()) } {
                Ok(library) => return Ok(SharedObject { name, library }),
                Err(error) => reasons.push(linker_message(&name, &error)),
            }
        }
        Err(LibraryError(reasons.join("; ")))
    }

    /// Value of a symbol: a pointer to a function or variable.
    ///
    /// # Safety
    /// `T` is a pointer type that fits the symbol.
    pub(crate) unsafe fn get<T: Copy>(&self, symbol: &CStr) -> Result<T, LibraryError> {
        // SAFETY: the caller asserts the type.
        let found = unsafe { self.library.get::<T>(symbol.to_bytes_with_nul()) };
        found
            .map(|value| *value)
            .map_err(|error| LibraryError(linker_message(&self.name, &error)))
    }
}

/// The message of the dynamic linker with the name of the file.
fn linker_message(name: &str, error: &libloading::Error) -> String {
    // The system's message, if any, is the source of the error.
    match error.source() {
        Some(source) => format!("{name}: {source}"),
        None => format!("{name}: {error}"),
    }
}

/// `uint32_t function(void *)`, as C declares it.
type Function = unsafe extern "C" fn(*mut c_void) -> u32;

/// A loaded function that takes a pointer and returns a number.
#[derive(Debug)]
pub struct Entry {
    function: Function,
    /// Keeps the function loaded.
    _library: SharedObject,
}

/// Error of loading a library or a function: the message of the dynamic linker for each
/// name that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryError(pub String);

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for LibraryError {}

impl Entry {
    /// Loads a shared object and finds the function in it.
    ///
    /// # Safety
    /// Loading and unloading the file is safe, and `symbol` is a C function that takes
    /// a pointer and returns a `uint32_t`.
    pub unsafe fn load(file: &Path, symbol: &str) -> Result<Entry, LibraryError> {
        let name = CString::new(symbol)
            .map_err(|_| LibraryError(format!("symbol {symbol:?} contains a NUL byte")))?;
        // SAFETY: the caller asserts that loading is safe and that the type is right.
        unsafe {
            let library = SharedObject::load(&[file])?;
            let function = library.get::<Function>(&name)?;
            Ok(Entry {
                function,
                _library: library,
            })
        }
    }

    /// Calls the function.
    ///
    /// # Safety
    /// The function is safe to call with this pointer.
    #[inline(always)]
    pub unsafe fn call(&self, argument: *mut c_void) -> u32 {
        // SAFETY: the library is loaded; the caller asserts the rest.
        unsafe { (self.function)(argument) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_an_error_with_its_name() {
        // SAFETY: there is no such file, so nothing is loaded.
        let absent = unsafe { Entry::load(Path::new("/nonexistent/x.so"), "entry") };
        let said = absent.expect_err("there is no such file").to_string();
        assert!(said.contains("/nonexistent/x.so"), "{said}");
        // SAFETY: as above.
        let broken = unsafe { Entry::load(Path::new("/nonexistent/x.so"), "a\0b") };
        assert!(broken.is_err());
    }
}

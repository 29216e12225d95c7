//! A function of a shared object, loaded at run time.

use std::error::Error;
use std::ffi::{CString, c_void};
use std::fmt;
use std::path::Path;

use libloading::Library;

/// `uint32_t function(void *)`, as C declares it.
type Function = unsafe extern "C" fn(*mut c_void) -> u32;

/// A loaded function that takes a pointer and returns a number.
#[derive(Debug)]
pub struct Entry {
    function: Function,
    /// Keeps the function loaded.
    _library: Library,
}

/// Error of loading a library or a function: the message of the dynamic linker.
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
        // The system's message, if any, is the source of the error.
        let words = |error: libloading::Error| {
            let said = error
                .source()
                .map_or(String::new(), |said| format!(": {said}"));
            LibraryError(format!("{}: {error}{said}", file.display()))
        };
        let name = CString::new(symbol)
            .map_err(|_| LibraryError(format!("symbol {symbol:?} contains a NUL byte")))?;
        // SAFETY: the caller asserts that loading is safe and that the type is right.
        unsafe {
            let library = Library::new(file).map_err(words)?;
            let function = *library
                .get::<Function>(name.as_bytes_with_nul())
                .map_err(words)?;
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

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

/// The library or the function can't be loaded, with the loader's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotLoaded(pub String);

impl fmt::Display for NotLoaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for NotLoaded {}

impl Entry {
    /// Loads a shared object and finds the function in it.
    ///
    /// # Safety
    /// Loading and unloading the file is safe, and `symbol` is a C function that takes
    /// a pointer and returns a `uint32_t`.
    pub unsafe fn load(file: &Path, symbol: &str) -> Result<Entry, NotLoaded> {
        // What the system says is the source of the error, if anything.
        let words = |error: libloading::Error| {
            let said = error
                .source()
                .map_or(String::new(), |said| format!(": {said}"));
            NotLoaded(format!("{}: {error}{said}", file.display()))
        };
        let name = CString::new(symbol).map_err(|_| NotLoaded(format!("a NUL in {symbol:?}")))?;
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
    fn what_is_not_there_is_said_in_words() {
        // SAFETY: there is no such file, so nothing is loaded.
        let absent = unsafe { Entry::load(Path::new("/nonexistent/x.so"), "entry") };
        let said = absent.expect_err("there is no such file").to_string();
        assert!(said.contains("/nonexistent/x.so"), "{said}");
        // SAFETY: as above.
        let broken = unsafe { Entry::load(Path::new("/nonexistent/x.so"), "a\0b") };
        assert!(broken.is_err());
    }
}

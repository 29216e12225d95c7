//! The boundary to C: every entry point runs within [`value`], which catches panics, and keeps
//! what went wrong for [`beebox_last_error`].
//!
//! Pointers of the caller become references and slices here, after a check for null. What they
//! point to is the caller's promise, which `beebox.h` states once for all functions: a pointer is
//! null or points to as many bytes as the call says, a handle is one that this library returned
//! and that was not freed.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error as _;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use beebox::{Error, ErrorKind, FilterError};

/// Reason why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Error number of Linux, positive.
    errno: c_int,
    message: String,
    explanation: Option<String>,
}

/// Messages of the last call of this thread that failed.
#[derive(Default)]
struct Last {
    message: CString,
    explanation: Option<CString>,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::new(Last::default());
}

impl Failure {
    pub(crate) fn new(errno: c_int, message: impl Into<String>) -> Failure {
        Failure {
            errno,
            message: message.into(),
            explanation: None,
        }
    }

    /// `EINVAL`: an argument is none that the function takes.
    pub(crate) fn argument(message: impl Into<String>) -> Failure {
        Failure::new(libc::EINVAL, message)
    }

    /// Keeps the messages for the caller, sets `errno`, and returns the error number.
    fn record(self) -> c_int {
        let last = Last {
            message: text_for_c(self.message),
            explanation: self.explanation.map(text_for_c),
        };
        // While a thread ends there is no place for messages; the number is returned anyway.
        let _ = LAST.try_with(|place| place.replace(last));
        set_errno(self.errno);
        self.errno
    }
}

#[cfg(target_os = "linux")]
fn set_errno(errno: c_int) {
    // SAFETY: the C library returns the address of the calling thread's `errno`.
    unsafe { *libc::__errno_location() = errno }
}

#[cfg(not(target_os = "linux"))]
fn set_errno(_: c_int) {}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let of_file = || {
            let source = error.source()?.downcast_ref::<io::Error>()?;
            source.raw_os_error()
        };
        let errno = error.errno().map(|errno| errno.0).or_else(of_file);
        Failure {
            errno: errno.unwrap_or_else(|| errno_of_kind(error.kind())),
            explanation: error
                .explanation()
                .map(beebox::internal::verify::explanation_text),
            message: error.to_string(),
        }
    }
}

/// Error number of a category, for errors to which Linux gives none.
fn errno_of_kind(kind: ErrorKind) -> c_int {
    match kind {
        ErrorKind::File => libc::EIO,
        ErrorKind::Object => libc::ENOEXEC,
        ErrorKind::Refused => libc::EACCES,
        ErrorKind::Unsupported => libc::EOPNOTSUPP,
        ErrorKind::NotFound => libc::ENOENT,
        ErrorKind::Limit => libc::ETIMEDOUT,
        ErrorKind::Trap => libc::EFAULT,
        _ => libc::EINVAL,
    }
}

impl From<FilterError> for Failure {
    fn from(error: FilterError) -> Failure {
        let errno = match error {
            FilterError::NoLibpcap(_) => libc::EOPNOTSUPP,
            FilterError::OutOfMemory => libc::ENOMEM,
            _ => libc::EINVAL,
        };
        Failure::new(errno, error.to_string())
    }
}

/// What a call returns; where it fails or panics, something else, with the failure kept.
pub(crate) fn value<T>(
    call: impl FnOnce() -> Result<T, Failure>,
    failed: impl FnOnce(c_int) -> T,
) -> T {
    // A panic may leave an object half changed; locks of it are then taken anyway, and what the
    // library shares between threads holds its invariants by itself.
    let result =
        catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(&*panic)));
    result.unwrap_or_else(|failure| failed(failure.record()))
}

/// The number that a call returns, or the negative error number.
pub(crate) fn number(call: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    value(call, |errno| -errno)
}

/// The pointer that a call returns, or null.
pub(crate) fn pointer<T>(call: impl FnOnce() -> Result<*mut T, Failure>) -> *mut T {
    value(call, |_| ptr::null_mut())
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let said = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    let said = said.unwrap_or_default();
    Failure::new(libc::ENOTRECOVERABLE, format!("a fault of Beebox: {said}"))
}

/// A text without its zero bytes.
pub(crate) fn text_for_c(text: impl Into<Vec<u8>>) -> CString {
    let mut bytes = text.into();
    bytes.retain(|byte| *byte != 0);
    CString::new(bytes).unwrap_or_default()
}

/// Text about the last call of this thread that failed: what, where, why. Empty if none did. It
/// stays until another call fails in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn beebox_last_error() -> *const c_char {
    let message = LAST.try_with(|last| last.borrow().message.as_ptr());
    message.unwrap_or(c"".as_ptr())
}

/// Explanation of the verifier's refusal, if that is why the last call of this thread failed: cause,
/// source line, the way there, the usual edit. NULL otherwise. It stays until another call fails in
/// this thread.
#[unsafe(no_mangle)]
pub extern "C" fn beebox_last_explanation() -> *const c_char {
    let explanation = LAST.try_with(|last| {
        let last = last.borrow();
        last.explanation.as_ref().map(|text| text.as_ptr())
    });
    explanation.ok().flatten().unwrap_or(ptr::null())
}

/// What a pointer of the caller points to.
///
/// # Safety
/// The pointer is null, or points to a value that nobody changes and frees during the call.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller promises it.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// What a pointer of the caller points to, for this call alone.
///
/// # Safety
/// The pointer is null, or points to a value that nobody else uses during the call.
pub(crate) unsafe fn exclusive<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller promises it.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// Bytes of the caller. Null has none.
///
/// # Safety
/// The pointer is null, or points to as many bytes that nobody changes during the call.
pub(crate) unsafe fn bytes<'a>(
    pointer: *const c_void,
    len: usize,
    what: &str,
) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller promises it.
    unsafe { items(pointer.cast(), len, what) }
}

/// Items of an array of the caller. Null has none.
///
/// # Safety
/// The pointer is null, or points to as many items that nobody changes during the call, any bytes of
/// which are a `T`.
pub(crate) unsafe fn items<'a, T>(
    pointer: *const T,
    len: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(what));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!("{what} is not aligned")));
    }
    if len > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::argument(format!(
            "{what} has {len} items: that is no size"
        )));
    }
    // SAFETY: the caller promises that so many items are there; pointer and length are those of a
    // slice as checked above.
    Ok(unsafe { std::slice::from_raw_parts(pointer, len) })
}

/// A text of the caller.
///
/// # Safety
/// The pointer is null, or points to bytes that end with a zero byte.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller promises it.
    let text = unsafe { CStr::from_ptr(pointer) };
    let text = text.to_str();
    text.map_err(|_| Failure::argument(format!("{what} is no text in UTF-8")))
}

/// Writes bytes into memory of the caller.
///
/// # Safety
/// The pointer is null, or points to as many bytes that may be written.
pub(crate) unsafe fn write(bytes: &[u8], out: *mut c_void, what: &str) -> Result<(), Failure> {
    if bytes.is_empty() {
        return Ok(());
    }
    if out.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller promises the room; `bytes` is memory of this library.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast(), bytes.len()) };
    Ok(())
}

/// Writes a value into memory of the caller.
///
/// # Safety
/// The pointer is null, or points to room for a `T`.
pub(crate) unsafe fn put<T>(value: T, out: *mut T, what: &str) -> Result<(), Failure> {
    if out.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller promises the room.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Frees what [`owned`] made.
///
/// # Safety
/// The pointer is null or one that [`owned`] returned, and this call is its last use.
pub(crate) unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: the caller promises it.
        let owned = unsafe { Box::from_raw(pointer) };
        value(
            move || {
                drop(owned);
                Ok(())
            },
            |_| (),
        );
    }
}

/// A value for the caller, who frees it.
pub(crate) fn owned<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

fn null(what: &str) -> Failure {
    Failure::argument(format!("{what} is NULL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_text() {
        let number = number(|| panic!("lost {}", 7));
        assert_eq!(number, -libc::ENOTRECOVERABLE);
        // SAFETY: the message is a text until another call of this thread fails.
        let message = unsafe { CStr::from_ptr(beebox_last_error()) };
        assert_eq!(message, c"a fault of Beebox: lost 7");
        assert!(beebox_last_explanation().is_null());
        let errno = io::Error::last_os_error();
        assert_eq!(errno.raw_os_error(), Some(libc::ENOTRECOVERABLE));
    }
}

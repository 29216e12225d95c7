//! Text that programs print.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use beebox::PrintedText;

use crate::boundary::text_for_c;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The texts, one a line.
pub(crate) fn lines(printed: &PrintedText) -> CString {
    let mut lines = String::new();
    for text in &printed.texts {
        lines.push_str(text);
        if !text.ends_with('\n') {
            lines.push('\n');
        }
    }
    text_for_c(lines)
}

/// Keeps the texts of a test run for [`beebox_last_printk`].
pub(crate) fn keep(printed: &PrintedText) {
    // While a thread ends there is no place for them.
    let _ = LAST.try_with(|last| {
        if !printed.is_empty() || !last.borrow().is_empty() {
            last.replace(lines(printed));
        }
    });
}

/// Text that the program printed (`bpf_printk`) in the last test run of this thread, each text with a
/// newline behind it; empty if it printed none. It stays until the next test run of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn beebox_last_printk() -> *const c_char {
    let text = LAST.try_with(|last| last.borrow().as_ptr());
    text.unwrap_or(c"".as_ptr())
}

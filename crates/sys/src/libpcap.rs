//! libpcap's filter compiler, loaded at run time.
//!
//! Expressions compile as with `tcpdump -r`: libpcap opens a capture file (here one in
//! memory with a file header and no packets, for link type, byte order and snapshot
//! length) and compiles for it. Accepted expressions and programs equal those of
//! `tcpdump -d -r`.
//!
//! The handle lives for one call on one thread. A lock serialises calls, because old
//! releases keep their parser's state in globals.

mod interpreter;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use isa::classic::SockFilter;

use crate::library::{LibraryError, SharedObject};

pub use crate::compile_error::CompileError;
pub use interpreter::Interpreter;

/// File names of libpcap in order of preference: Debian's, then that of other
/// distributions.
const NAMES: &[&str] = &["libpcap.so.0.8", "libpcap.so.1"];

/// Size of a pcap file header in bytes.
pub const FILE_HEADER: usize = 24;

/// Netmask that tcpdump passes when it reads a file: unknown.
const NETMASK: c_uint = 0;

/// Size of libpcap's error buffer in bytes (`PCAP_ERRBUF_SIZE`).
const ERROR_BUFFER: usize = 256;

/// Serialises calls: libpcap is loaded once in a process, so the lock is global.
static IN_USE: Mutex<()> = Mutex::new(());

/// libpcap, loaded: the functions that are used, as its header declares them.
pub struct Libpcap {
    fopen_offline: unsafe extern "C" fn(*mut libc::FILE, *mut c_char) -> *mut c_void,
    datalink: unsafe extern "C" fn(*mut c_void) -> c_int,
    datalink_val_to_name: unsafe extern "C" fn(c_int) -> *const c_char,
    compile:
        unsafe extern "C" fn(*mut c_void, *mut BpfProgram, *const c_char, c_int, c_uint) -> c_int,
    geterr: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    freecode: unsafe extern "C" fn(*mut BpfProgram),
    close: unsafe extern "C" fn(*mut c_void),
    lib_version: unsafe extern "C" fn() -> *const c_char,
    validate: interpreter::Validate,
    filter: interpreter::Filter,
    /// Keeps the functions loaded.
    _library: SharedObject,
}

/// `struct bpf_program`.
#[repr(C)]
struct BpfProgram {
    len: c_uint,
    insns: *mut SockFilter,
}

impl Libpcap {
    /// Loads the system's libpcap.
    pub fn load() -> Result<Libpcap, LibraryError> {
        // SAFETY: loading a library runs its initialisers; libpcap's have no
        // requirements. The types given to its functions are those that its
        // public header declares, unchanged since libpcap 0.9.
        unsafe {
            let library = SharedObject::load(NAMES)?;
            Ok(Libpcap {
                fopen_offline: library.get(c"pcap_fopen_offline")?,
                datalink: library.get(c"pcap_datalink")?,
                datalink_val_to_name: library.get(c"pcap_datalink_val_to_name")?,
                compile: library.get(c"pcap_compile")?,
                geterr: library.get(c"pcap_geterr")?,
                freecode: library.get(c"pcap_freecode")?,
                close: library.get(c"pcap_close")?,
                lib_version: library.get(c"pcap_lib_version")?,
                validate: library.get(c"bpf_validate")?,
                filter: library.get(c"bpf_filter")?,
                _library: library,
            })
        }
    }

    /// Version string of the library.
    pub fn version(&self) -> String {
        // SAFETY: the function takes nothing and returns a static C string.
        unsafe { text((self.lib_version)()) }
    }

    /// Name of the link type that libpcap reads from a pcap file header; `None` if it has
    /// none.
    pub fn link_type_name(
        &self,
        header: &[u8; FILE_HEADER],
    ) -> Result<Option<String>, CompileError> {
        let _one_at_a_time = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let capture = Capture::open(self, header)?;
        // SAFETY: the handle is open.
        let number = unsafe { (self.datalink)(capture.handle.as_ptr()) };
        // SAFETY: the name is null or a static C string.
        let name = unsafe { text((self.datalink_val_to_name)(number)) };
        Ok(Some(name).filter(|name| !name.is_empty()))
    }

    /// Compiles an expression for the packets of a capture file that starts
    /// with this pcap file header, through libpcap's optimizer or not.
    pub fn compile(
        &self,
        header: &[u8; FILE_HEADER],
        expression: &str,
        optimizes: bool,
    ) -> Result<Vec<SockFilter>, CompileError> {
        let expression = CString::new(expression).map_err(|_| CompileError::Nul)?;
        let _one_at_a_time = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let capture = Capture::open(self, header)?;
        let mut program = BpfProgram {
            len: 0,
            insns: std::ptr::null_mut(),
        };
        // SAFETY: the handle is open, the program is writable, and the expression is
        // a C string that outlives the call.
        let status = unsafe {
            (self.compile)(
                capture.handle.as_ptr(),
                &mut program,
                expression.as_ptr(),
                c_int::from(optimizes),
                NETMASK,
            )
        };
        if status != 0 {
            // SAFETY: the handle is open; the message is copied before it
            // closes.
            let message = unsafe { text((self.geterr)(capture.handle.as_ptr())) };
            return Err(CompileError::Expression(message));
        }
        let insns = match NonNull::new(program.insns) {
            // SAFETY: a successful compilation makes `insns` the address of `len`
            // instructions with the layout of `SockFilter`.
            Some(insns) => unsafe {
                std::slice::from_raw_parts(insns.as_ptr(), program.len as usize).to_vec()
            },
            None => Vec::new(),
        };
        // SAFETY: a successful compilation filled the program, and it is freed
        // once.
        unsafe { (self.freecode)(&mut program) };
        Ok(insns)
    }
}

impl fmt::Debug for Libpcap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Libpcap").field(&self.version()).finish()
    }
}

/// An open `pcap_t` that reads a file in memory.
struct Capture<'l> {
    libpcap: &'l Libpcap,
    handle: NonNull<c_void>,
}

impl<'l> Capture<'l> {
    /// Opens a capture of this header, which is read during the call only.
    fn open(libpcap: &'l Libpcap, header: &[u8; FILE_HEADER]) -> Result<Capture<'l>, CompileError> {
        // SAFETY: the buffer is readable for its length, and a stream opened
        // with "r" does not write to it. It outlives every read: libpcap reads
        // the header now and packets never, and what closes the stream later
        // does not read.
        let file = unsafe {
            libc::fmemopen(
                header.as_ptr().cast_mut().cast(),
                header.len(),
                c"r".as_ptr(),
            )
        };
        if file.is_null() {
            return Err(CompileError::OutOfMemory);
        }
        let mut message = [0 as c_char; ERROR_BUFFER];
        // SAFETY: the stream is open, and the buffer has the size that libpcap
        // requires.
        let handle = unsafe { (libpcap.fopen_offline)(file, message.as_mut_ptr()) };
        match NonNull::new(handle) {
            Some(handle) => Ok(Capture { libpcap, handle }),
            None => {
                // SAFETY: a failed open leaves the stream to the caller, and the
                // message is a C string in our buffer.
                unsafe {
                    libc::fclose(file);
                    Err(CompileError::Header(text(message.as_ptr())))
                }
            }
        }
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is open and closed once; this closes the stream
        // too.
        unsafe { (self.libpcap.close)(self.handle.as_ptr()) };
    }
}

/// # Safety
/// `message` is null or a C string.
unsafe fn text(message: *const c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: as the caller upholds.
    unsafe { CStr::from_ptr(message) }
        .to_string_lossy()
        .into_owned()
}

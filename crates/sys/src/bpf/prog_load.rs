//! BPF_PROG_LOAD: program and attach type by number, BTF with func_info and line_info,
//! file descriptors of maps and module BTF, attach target, flags, log level and a log
//! buffer of up to 1 GiB.

use super::attributes::{ProgramLoad, call};
use super::{BtfObject, LoadedProgram};
use crate::Errno;
use crate::kernel::last_words;
use isa::ebpf::RawInsn;
use std::ffi::CStr;
use std::fmt;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Largest log buffer that the kernel accepts, in bytes.
pub const MAX_LOG_SIZE: usize = u32::MAX as usize >> 2;

/// Number of attempts of a load whose verification a signal interrupts (EAGAIN).
const ATTEMPTS: u32 = 5;

/// Request to load a program. Numbers are passed to the kernel unchecked.
#[derive(Clone, Copy, Debug)]
pub struct ProgLoad<'a> {
    /// Program type (`enum bpf_prog_type`).
    pub program_type: u32,
    /// Instructions.
    pub insns: &'a [RawInsn],
    /// Licence.
    pub license: &'a CStr,
    /// Name; cut to 15 bytes.
    pub name: &'a str,
    /// Expected attach type.
    pub expected_attach_type: u32,
    /// BTF id of the attach target, or 0.
    pub attach_btf_id: u32,
    /// Program or module BTF that contains the attach target; vmlinux if `None`.
    pub attach_object: Option<BorrowedFd<'a>>,
    /// Flags (BPF_F_*).
    pub flags: u32,
    /// Kernel version (`kern_version`).
    pub kernel_version: u32,
    /// BTF of the program.
    pub btf: Option<&'a BtfObject>,
    /// func_info records: instruction offset and BTF id.
    pub func_info: &'a [[u32; 2]],
    /// line_info records: instruction offset, file name and line text as string offsets,
    /// and line << 10 | column.
    pub line_info: &'a [[u32; 4]],
    /// File descriptors that instructions refer to by index: maps, and BTF of modules.
    pub fd_array: &'a [i32],
    /// True to bind every map of the array to the program (`fd_array_cnt`), referenced
    /// or not.
    pub bind_fd_array: bool,
    /// Log level.
    pub log_level: LogLevel,
    /// Size of the log buffer in bytes; at most [`MAX_LOG_SIZE`], 0 for no buffer. The
    /// kernel refuses a buffer with level 0 (EINVAL).
    pub log_size: usize,
}

impl<'a> ProgLoad<'a> {
    /// A program of this type with licence "GPL" and no log.
    pub fn new(program_type: u32, insns: &'a [RawInsn]) -> ProgLoad<'a> {
        ProgLoad {
            program_type,
            insns,
            license: c"GPL",
            name: "",
            expected_attach_type: 0,
            attach_btf_id: 0,
            attach_object: None,
            flags: 0,
            kernel_version: 0,
            btf: None,
            func_info: &[],
            line_info: &[],
            fd_array: &[],
            bind_fd_array: false,
            log_level: LogLevel::NONE,
            log_size: 0,
        }
    }

    /// The same program with this log level and a log buffer of 64 KiB.
    #[must_use]
    pub fn with_log(self, level: LogLevel) -> ProgLoad<'a> {
        ProgLoad {
            log_level: level,
            log_size: 1 << 16,
            ..self
        }
    }

    /// Loads the program; returns it with its verifier log.
    pub fn load(&self) -> Result<(LoadedProgram, String), LoadError> {
        let mut log = Vec::new();
        let answer = self.load_into(&mut log);
        let log = String::from_utf8_lossy(&log).into_owned();
        match answer.result {
            Ok(program) => Ok((program, log)),
            Err(errno) => Err(LoadError { errno, log }),
        }
    }

    /// Loads the program. The verifier log replaces the contents of `log`, whose
    /// allocation is reused.
    pub fn load_into(&self, log: &mut Vec<u8>) -> LoadAnswer {
        log.clear();
        match attributes_of(self) {
            Err(errno) => LoadAnswer {
                result: Err(errno),
                log_true_size: 0,
            },
            Ok(attributes) => call_prog_load(attributes, self, log),
        }
    }
}

/// Log level of the verifier: BPF_LOG_* bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LogLevel(pub u32);

impl LogLevel {
    /// No log.
    pub const NONE: LogLevel = LogLevel(0);
    /// BPF_LOG_LEVEL1: the path that led to the rejection.
    pub const LEVEL1: LogLevel = LogLevel(1);
    /// BPF_LOG_LEVEL2: every instruction that the verifier processed.
    pub const LEVEL2: LogLevel = LogLevel(2);
    /// BPF_LOG_STATS: statistics at the end.
    pub const STATS: LogLevel = LogLevel(4);
}

/// Result of `BPF_PROG_LOAD`.
#[derive(Debug)]
pub struct LoadAnswer {
    /// The loaded program, or the error number. ENOSPC if the log did not fit.
    pub result: Result<LoadedProgram, Errno>,
    /// Bytes of the whole log with its final NUL (`log_true_size`), if the kernel
    /// states it; else 0.
    pub log_true_size: u32,
}

/// A rejected program load with the verifier log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// Error number of bpf(2). The verifier rejects with EACCES or EINVAL; E2BIG is a
    /// program that is too long or too complex, ENOSPC a log that did not fit, EPERM
    /// missing privilege.
    pub errno: Errno,
    /// Verifier log.
    pub log: String,
}

impl LoadError {
    /// Reason of the rejection: the last line of the log that is no statistics; empty
    /// without a log.
    pub fn reason(&self) -> &str {
        last_words(&self.log).unwrap_or("").trim()
    }

    /// True if the process may not call bpf(2) at all: it lacks the privilege, or the
    /// kernel lacks the system call.
    pub fn is_unavailable(&self) -> bool {
        [Errno::EPERM, Errno::ENOSYS].contains(&self.errno)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.errno)?;
        match self.reason() {
            "" => Ok(()),
            reason => write!(f, ": {reason}"),
        }
    }
}

impl std::error::Error for LoadError {}

fn attributes_of(request: &ProgLoad<'_>) -> Result<ProgramLoad, Errno> {
    let count = |len: usize| u32::try_from(len).map_err(|_| Errno(libc::E2BIG));
    let size = |records: u32, bytes: u32| if records == 0 { 0 } else { bytes };
    let func_info_count = count(request.func_info.len())?;
    let line_info_count = count(request.line_info.len())?;
    Ok(ProgramLoad {
        program_type: request.program_type,
        insn_count: count(request.insns.len())?,
        insns: request.insns.as_ptr() as u64,
        license: request.license.as_ptr() as u64,
        kernel_version: request.kernel_version,
        flags: request.flags,
        name: name_of(request.name),
        expected_attach_type: request.expected_attach_type,
        btf: request.btf.map_or(0, BtfObject::descriptor),
        func_info_size: size(func_info_count, 8),
        func_info: address(request.func_info),
        func_info_count,
        line_info_size: size(line_info_count, 16),
        line_info: address(request.line_info),
        line_info_count,
        attach_btf_id: request.attach_btf_id,
        attach_object: request.attach_object.map_or(0, |fd| fd.as_raw_fd() as u32),
        fd_array: address(request.fd_array),
        fd_array_count: match request.bind_fd_array {
            true => count(request.fd_array.len())?,
            false => 0,
        },
        ..ProgramLoad::default()
    })
}

fn call_prog_load(
    mut attributes: ProgramLoad,
    request: &ProgLoad<'_>,
    log: &mut Vec<u8>,
) -> LoadAnswer {
    attributes.log_level = request.log_level.0;
    let len = request.log_size.min(MAX_LOG_SIZE);
    if len != 0 {
        if log.capacity() < len {
            // Zeroed allocation: only pages that the kernel writes become resident.
            *log = vec![0; len];
        } else {
            log.resize(len, 0);
        }
        attributes.log_size = len as u32;
        attributes.log = log.as_mut_ptr() as u64;
    }
    // SAFETY: `RawInsn` has the layout of struct bpf_insn (repr(C), same fields), and
    // the kernel reads `insn_count` of them; records are arrays of the stated size and
    // count; the licence ends with a NUL byte; `log` is writable for `log_size` bytes. Of
    // `fd_array` the kernel reads the entries that instructions refer to. An index beyond the
    // end makes it copy other bytes of this process as a descriptor; it writes nothing.
    let mut ask = || unsafe { call(&mut attributes) };
    let mut answer = ask();
    for _ in 1..ATTEMPTS {
        if answer != Err(Errno(libc::EAGAIN)) {
            break;
        }
        answer = ask();
    }
    let len = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    log.truncate(len);
    // SAFETY: the command just made the descriptor, and nothing else owns it.
    let fd = answer.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    LoadAnswer {
        result: fd.map(|fd| LoadedProgram { fd }),
        log_true_size: attributes.log_true_size,
    }
}

/// Address of the first value; 0 for an empty slice.
pub(super) fn address<T>(values: &[T]) -> u64 {
    match values {
        [] => 0,
        values => values.as_ptr() as u64,
    }
}

/// Name in the kernel's form (`BPF_OBJ_NAME_LEN`): at most 15 bytes, then a NUL.
pub(super) fn name_of(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().take(15).zip(name.bytes()) {
        *place = byte;
    }
    bytes
}

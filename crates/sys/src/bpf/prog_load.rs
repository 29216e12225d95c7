//! BPF_PROG_LOAD with everything that it takes: any program and attach type by number,
//! BTF with func_info and line_info, descriptors of maps and module BTF, attach target,
//! flags, log level and a log buffer of up to 1 GiB.

use super::attributes::{ProgramLoad, call};
use super::{BtfObject, Program};
use crate::Errno;
use isa::ebpf::RawInsn;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Bytes of the largest log buffer that the kernel takes.
pub const LARGEST_LOG: usize = u32::MAX as usize >> 2;

/// A program to load. Numbers are handed over as they are.
#[derive(Clone, Copy, Debug)]
pub struct ProgLoad<'a> {
    /// Program type.
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
    /// Program or BTF that the attach target is in; vmlinux if none is given.
    pub attach_object: Option<BorrowedFd<'a>>,
    /// Flags (BPF_F_*).
    pub flags: u32,
    /// Kernel version that the program states.
    pub kernel_version: u32,
    /// BTF of the program.
    pub btf: Option<&'a BtfObject>,
    /// func_info records: instruction and BTF id.
    pub func_info: &'a [[u32; 2]],
    /// line_info records: instruction, file, text, and line << 10 | column.
    pub line_info: &'a [[u32; 4]],
    /// Descriptors that instructions refer to by index: maps, and BTF of modules.
    pub fd_array: &'a [i32],
    /// True if every descriptor of the array is bound to the program
    /// (`fd_array_cnt`), whether an instruction refers to it or not.
    pub bind_fd_array: bool,
    /// Log level: 1 the path to the refusal, 2 every instruction, 4 statistics.
    pub log_level: u32,
    /// Bytes of the log buffer; at most [`LARGEST_LOG`].
    pub log_size: usize,
}

impl<'a> ProgLoad<'a> {
    /// A program of this type, under the GPL, without a log.
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
            log_level: 0,
            log_size: 0,
        }
    }
}

/// What the kernel answered.
#[derive(Debug)]
pub struct Answer {
    /// The program, or the error number. ENOSPC if the log did not fit.
    pub result: Result<Program, Errno>,
    /// Bytes of the whole log with its final NUL, if the kernel says how long it is.
    pub log_true_size: u32,
}

/// Loads a program. The log replaces what is in `log`, whose memory is used again.
pub fn prog_load(request: &ProgLoad<'_>, log: &mut Vec<u8>) -> Answer {
    log.clear();
    match attributes_of(request) {
        Err(errno) => Answer {
            result: Err(errno),
            log_true_size: 0,
        },
        Ok(attributes) => ask(attributes, request, log),
    }
}

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

fn ask(mut attributes: ProgramLoad, request: &ProgLoad<'_>, log: &mut Vec<u8>) -> Answer {
    if request.log_level != 0 {
        let len = request.log_size.clamp(1, LARGEST_LOG);
        if log.capacity() < len {
            // Fresh pages of zeros, of which only those that are written take memory.
            *log = vec![0; len];
        } else {
            log.resize(len, 0);
        }
        attributes.log_level = request.log_level;
        attributes.log_size = len as u32;
        attributes.log = log.as_mut_ptr() as u64;
    }
    // SAFETY: `RawInsn` has the layout of struct bpf_insn (repr(C), same fields), and
    // the kernel reads `insn_count` of them; records are arrays of the stated size and
    // count; the licence ends with a NUL byte; `log` is ours to write for `log_size`
    // bytes. Of the array of descriptors the kernel reads the entries that instructions
    // name: where one lies behind the end, it copies bytes of this process, takes them
    // for a descriptor, and writes nothing.
    let answer = unsafe { call(&mut attributes) };
    let said = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    log.truncate(said);
    // SAFETY: the command just made the descriptor, and nothing else owns it.
    let fd = answer.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    Answer {
        result: fd.map(|fd| Program { fd }),
        log_true_size: attributes.log_true_size,
    }
}

/// Address of the first of several values; 0 if there are none.
pub(super) fn address<T>(values: &[T]) -> u64 {
    match values {
        [] => 0,
        values => values.as_ptr() as u64,
    }
}

/// A name as the kernel takes it: 15 bytes at most, and a NUL.
pub(super) fn name_of(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().take(15).zip(name.bytes()) {
        *place = byte;
    }
    bytes
}

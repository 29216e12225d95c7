//! `union bpf_attr` of bpf(2): its commands, where its members are, and how it is read.

use spec::{Errno, Result};
use vm::BpfCall;

/// Commands that programs may give (`enum bpf_cmd`).
pub(super) const MAP_CREATE: u32 = 0;
pub(super) const MAP_UPDATE_ELEM: u32 = 2;
pub(super) const MAP_DELETE_ELEM: u32 = 3;
pub(super) const PROG_LOAD: u32 = 5;
pub(super) const MAP_GET_FD_BY_ID: u32 = 14;
pub(super) const RAW_TRACEPOINT_OPEN: u32 = 17;
pub(super) const BTF_LOAD: u32 = 18;
pub(super) const MAP_FREEZE: u32 = 22;
pub(super) const LINK_CREATE: u32 = 28;

/// `BPF_F_TOKEN_FD` of all commands that have it.
pub(super) const TOKEN_FD: u32 = 1 << 16;

/// Size of the union in Linux 6.18.
const SIZE: usize = 168;

/// Members of `BPF_MAP_CREATE` by their offsets; `END` is behind the last.
pub(super) mod map_create {
    pub(in crate::process) const MAP_TYPE: usize = 0;
    pub(in crate::process) const KEY_SIZE: usize = 4;
    pub(in crate::process) const VALUE_SIZE: usize = 8;
    pub(in crate::process) const MAX_ENTRIES: usize = 12;
    pub(in crate::process) const FLAGS: usize = 16;
    pub(in crate::process) const INNER_MAP_FD: usize = 20;
    pub(in crate::process) const NUMA_NODE: usize = 24;
    pub(in crate::process) const NAME: usize = 28;
    pub(in crate::process) const IFINDEX: usize = 44;
    pub(in crate::process) const BTF_FD: usize = 48;
    pub(in crate::process) const KEY_TYPE: usize = 52;
    pub(in crate::process) const VALUE_TYPE: usize = 56;
    pub(in crate::process) const VMLINUX_VALUE_TYPE: usize = 60;
    pub(in crate::process) const EXTRA: usize = 64;
    pub(in crate::process) const EXCLUSIVE_HASH: usize = 80;
    pub(in crate::process) const EXCLUSIVE_HASH_SIZE: usize = 88;
    pub(in crate::process) const END: usize = 92;
}

/// Members of the commands on elements and of `BPF_MAP_FREEZE`.
pub(super) mod element {
    pub(in crate::process) const MAP_FD: usize = 0;
    pub(in crate::process) const KEY: usize = 8;
    pub(in crate::process) const VALUE: usize = 16;
    pub(in crate::process) const FLAGS: usize = 24;
    pub(in crate::process) const END_OF_FREEZE: usize = 4;
    pub(in crate::process) const END_OF_DELETE: usize = 16;
    pub(in crate::process) const END: usize = 32;
}

/// Members of `BPF_MAP_GET_FD_BY_ID`.
pub(super) mod by_id {
    pub(in crate::process) const ID: usize = 0;
    pub(in crate::process) const OPEN_FLAGS: usize = 8;
    pub(in crate::process) const END: usize = 16;
}

/// Members of `BPF_BTF_LOAD`.
pub(super) mod btf_load {
    pub(in crate::process) const DATA: usize = 0;
    pub(in crate::process) const LOG_BUF: usize = 8;
    pub(in crate::process) const SIZE: usize = 16;
    pub(in crate::process) const LOG_SIZE: usize = 20;
    pub(in crate::process) const LOG_LEVEL: usize = 24;
    pub(in crate::process) const LOG_TRUE_SIZE: usize = 28;
    pub(in crate::process) const FLAGS: usize = 32;
    pub(in crate::process) const END: usize = 40;
}

/// Members of `BPF_PROG_LOAD`.
pub(super) mod prog_load {
    pub(in crate::process) const TYPE: usize = 0;
    pub(in crate::process) const INSN_COUNT: usize = 4;
    pub(in crate::process) const INSNS: usize = 8;
    pub(in crate::process) const LICENSE: usize = 16;
    pub(in crate::process) const LOG_LEVEL: usize = 24;
    pub(in crate::process) const LOG_SIZE: usize = 28;
    pub(in crate::process) const LOG_BUF: usize = 32;
    pub(in crate::process) const KERNEL_VERSION: usize = 40;
    pub(in crate::process) const FLAGS: usize = 44;
    pub(in crate::process) const NAME: usize = 48;
    pub(in crate::process) const IFINDEX: usize = 64;
    pub(in crate::process) const ATTACH_TYPE: usize = 68;
    pub(in crate::process) const BTF_FD: usize = 72;
    pub(in crate::process) const FUNC_INFO_SIZE: usize = 76;
    pub(in crate::process) const FUNC_INFO: usize = 80;
    pub(in crate::process) const FUNC_INFO_COUNT: usize = 88;
    pub(in crate::process) const LINE_INFO_SIZE: usize = 92;
    pub(in crate::process) const LINE_INFO: usize = 96;
    pub(in crate::process) const LINE_INFO_COUNT: usize = 104;
    pub(in crate::process) const ATTACH_BTF_ID: usize = 108;
    pub(in crate::process) const ATTACH_FD: usize = 112;
    pub(in crate::process) const CORE_COUNT: usize = 116;
    pub(in crate::process) const FD_ARRAY: usize = 120;
    pub(in crate::process) const LOG_TRUE_SIZE: usize = 140;
    pub(in crate::process) const SIGNATURE: usize = 152;
}

/// Members of `BPF_RAW_TRACEPOINT_OPEN` and `BPF_LINK_CREATE`.
pub(super) mod attach {
    pub(in crate::process) const RAW_TRACEPOINT_PROG_FD: usize = 8;
    pub(in crate::process) const END_OF_RAW_TRACEPOINT: usize = 24;
    pub(in crate::process) const LINK_PROG_FD: usize = 0;
    pub(in crate::process) const END_OF_LINK: usize = 64;
}

/// The attributes of a call; members that are not given are zero.
pub(super) struct Attributes([u8; SIZE]);

impl Attributes {
    /// Reads what a program gives. E2BIG for bytes behind the union that are not zero.
    pub(super) fn read(given: &[u8]) -> Result<Attributes> {
        let (known, unknown) = given.split_at(given.len().min(SIZE));
        Errno::E2BIG.when(unknown.iter().any(|byte| *byte != 0))?;
        let mut bytes = [0; SIZE];
        bytes[..known.len()].copy_from_slice(known);
        Ok(Attributes(bytes))
    }

    /// A member of four bytes.
    pub(super) fn u32(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.0[at..at + 4]);
        u32::from_le_bytes(bytes)
    }

    /// A member of eight bytes.
    pub(super) fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }

    /// Refuses members behind the last one of a command (EINVAL).
    pub(super) fn check_end(&self, end: usize) -> Result {
        Errno::EINVAL.when(self.0[end..].iter().any(|byte| *byte != 0))
    }

    /// The name of a map or program. EINVAL without a zero byte, and for other characters than
    /// letters, digits, `_` and `.`.
    pub(super) fn name(&self, at: usize) -> Result<String> {
        let bytes = &self.0[at..at + spec::maps::MAX_NAME + 1];
        let len = bytes.iter().position(|byte| *byte == 0);
        let name = &bytes[..len.ok_or(Errno::EINVAL)?];
        let is_known = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
        match name.iter().all(is_known) {
            true => Ok(String::from_utf8_lossy(name).into_owned()),
            false => Err(Errno::EINVAL),
        }
    }

    /// The requested log. EINVAL if buffer, size and level do not fit each other.
    pub(super) fn log(&self, buffer: usize, size: usize, level: usize) -> Result<Log> {
        /// `BPF_LOG_MASK` with `BPF_LOG_FIXED`.
        const LEVELS: u32 = 15;
        let (buffer, size, level) = (self.u64(buffer), self.u32(size), self.u32(level));
        let is_valid = (buffer != 0) == (size != 0)
            && (buffer == 0 || level != 0)
            && level & !LEVELS == 0
            && size <= u32::MAX >> 2;
        let has_buffer = buffer != 0;
        let is_written = level != 0;
        let log = Log {
            has_buffer,
            is_written,
        };
        is_valid.then_some(log).ok_or(Errno::EINVAL)
    }
}

/// A log that a command is to write.
pub(super) struct Log {
    has_buffer: bool,
    is_written: bool,
}

impl Log {
    /// True if there is text, be it only counted.
    pub(super) fn is_written(&self) -> bool {
        self.is_written
    }

    /// Ends it. EFAULT if it has a buffer, which is in memory of the process: it has none.
    pub(super) fn finish(&self) -> Result {
        match self.has_buffer {
            true => Err(Errno::EFAULT),
            false => Ok(()),
        }
    }
}

/// Writes a member of four bytes, if the program gives it.
pub(super) fn put(call: &mut BpfCall<'_>, at: usize, value: u32) {
    if let Some(bytes) = call.attributes.get_mut(at..at + 4) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}

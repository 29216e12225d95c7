//! BPF_OBJ_GET_INFO_BY_FD of a program: what the kernel made of it.

use super::Program;
use super::attributes::{ObjectInfo, ProgramInfo, call};
use crate::Errno;
use isa::ebpf::{RawInsn, from_bytes};
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// What the kernel made of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Its number while it is loaded.
    pub id: u32,
    /// The native code of all its functions, one after the other; empty where
    /// the compiler is off.
    pub native: Vec<u8>,
    /// Bytes of native code of each function, the main one first; they sum up to
    /// the length of `native`.
    pub function_lens: Vec<u32>,
    /// The instructions after the verifier's rewriting.
    pub translated: Vec<RawInsn>,
    /// When it was loaded, since the machine started.
    pub load_time: Duration,
    /// Name.
    pub name: String,
    /// Hash of the instructions.
    pub tag: [u8; 8],
    /// Instructions that the verifier walked over.
    pub verified_insns: u32,
    /// Numbers of the maps that it uses.
    pub map_ids: Vec<u32>,
}

impl Program {
    /// Asks what the kernel made of it. Reading the native code needs
    /// CAP_SYS_ADMIN and `kernel.kptr_restrict` below 2.
    pub fn info(&self) -> Result<Info, Errno> {
        // SAFETY: every address in it is zero.
        let lengths = unsafe { self.ask(ProgramInfo::default()) }?;
        let mut native = vec![0u8; lengths.jited_len as usize];
        let mut translated = vec![0u8; lengths.xlated_len as usize];
        let mut function_lens = vec![0u32; lengths.function_count as usize];
        let mut map_ids = vec![0u32; lengths.map_count as usize];
        let request = ProgramInfo {
            map_count: lengths.map_count,
            map_ids: map_ids.as_mut_ptr() as u64,
            jited_len: lengths.jited_len,
            jited: native.as_mut_ptr() as u64,
            xlated_len: lengths.xlated_len,
            xlated: translated.as_mut_ptr() as u64,
            function_count: lengths.function_count,
            function_lens: function_lens.as_mut_ptr() as u64,
            ..ProgramInfo::default()
        };
        // SAFETY: the four addresses are those of buffers made above with the
        // lengths that stand beside them.
        let found = unsafe { self.ask(request) }?;
        native.truncate(found.jited_len as usize);
        translated.truncate(found.xlated_len as usize);
        function_lens.truncate(found.function_count as usize);
        map_ids.truncate(found.map_count as usize);
        let end = found.name.iter().position(|&byte| byte == 0).unwrap_or(16);
        Ok(Info {
            name: String::from_utf8_lossy(&found.name[..end]).into_owned(),
            tag: found.tag,
            verified_insns: found.verified_insns,
            map_ids,
            id: found.id,
            native,
            function_lens,
            // The kernel hands over whole instructions.
            translated: from_bytes(&translated).map_err(|_| Errno(libc::EIO))?,
            load_time: Duration::from_nanos(found.load_time),
        })
    }

    /// Fills in the structure.
    ///
    /// # Safety
    /// Its addresses are zero or those of memory that is ours to write, as long
    /// as the lengths beside them say.
    unsafe fn ask(&self, mut info: ProgramInfo) -> Result<ProgramInfo, Errno> {
        let mut attributes = ObjectInfo {
            object: self.fd.as_raw_fd() as u32,
            info_size: size_of::<ProgramInfo>() as u32,
            info: (&raw mut info) as u64,
        };
        // SAFETY: `info` is one structure of the stated size and ours to write;
        // the caller upholds the same of what it names.
        unsafe { call(&mut attributes) }?;
        Ok(info)
    }
}

//! BPF_OBJ_GET_INFO_BY_FD of a program: translated instructions and native code.

use super::LoadedProgram;
use super::attributes::{BpfProgInfo, ObjectInfo, call};
use crate::Errno;
use isa::ebpf::{RawInsn, from_bytes};
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Properties of a loaded program (`struct bpf_prog_info`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramInfo {
    /// Program type (`enum bpf_prog_type`).
    pub program_type: u32,
    /// Program id.
    pub id: u32,
    /// Id of the program's BTF; 0 if it has none.
    pub btf_id: u32,
    /// True if the licence is GPL-compatible.
    pub gpl_compatible: bool,
    /// Native code of all subprogs, one after the other; empty where the JIT compiler
    /// is off.
    pub native: Vec<u8>,
    /// Length in bytes of the native code of each subprog, the main one first; their
    /// sum is the length of `native`.
    pub function_lens: Vec<u32>,
    /// Translated instructions (xlated): those that the verifier rewrote.
    pub translated: Vec<RawInsn>,
    /// Time of the load, since boot.
    pub load_time: Duration,
    /// Name.
    pub name: String,
    /// Tag: hash of the instructions.
    pub tag: [u8; 8],
    /// Instructions that the verifier processed.
    pub verified_insns: u32,
    /// Ids of the maps that it uses.
    pub map_ids: Vec<u32>,
}

impl LoadedProgram {
    /// Properties of the program. The native code needs CAP_SYS_ADMIN and
    /// `kernel.kptr_restrict` below 2.
    pub fn info(&self) -> Result<ProgramInfo, Errno> {
        // SAFETY: every address in it is zero.
        let lengths = unsafe { self.read_info(BpfProgInfo::default()) }?;
        let mut native = vec![0u8; lengths.jited_len as usize];
        let mut translated = vec![0u8; lengths.xlated_len as usize];
        let mut function_lens = vec![0u32; lengths.function_count as usize];
        let mut map_ids = vec![0u32; lengths.map_count as usize];
        let request = BpfProgInfo {
            map_count: lengths.map_count,
            map_ids: map_ids.as_mut_ptr() as u64,
            jited_len: lengths.jited_len,
            jited: native.as_mut_ptr() as u64,
            xlated_len: lengths.xlated_len,
            xlated: translated.as_mut_ptr() as u64,
            function_count: lengths.function_count,
            function_lens: function_lens.as_mut_ptr() as u64,
            ..BpfProgInfo::default()
        };
        // SAFETY: the four addresses are those of buffers allocated above with the
        // lengths stated beside them.
        let found = unsafe { self.read_info(request) }?;
        native.truncate(found.jited_len as usize);
        translated.truncate(found.xlated_len as usize);
        function_lens.truncate(found.function_count as usize);
        map_ids.truncate(found.map_count as usize);
        let end = found.name.iter().position(|&byte| byte == 0).unwrap_or(16);
        Ok(ProgramInfo {
            name: String::from_utf8_lossy(&found.name[..end]).into_owned(),
            tag: found.tag,
            verified_insns: found.verified_insns,
            map_ids,
            program_type: found.program_type,
            id: found.id,
            btf_id: found.btf_id,
            // A bit field; the bits behind it are padding.
            gpl_compatible: found.gpl_compatible & 1 != 0,
            native,
            function_lens,
            // The kernel returns whole instructions.
            translated: from_bytes(&translated).map_err(|_| Errno(libc::EIO))?,
            load_time: Duration::from_nanos(found.load_time),
        })
    }

    /// Fills in `info` and the buffers that it names.
    ///
    /// # Safety
    /// Each address in it is zero or that of writable memory of the length beside it.
    unsafe fn read_info(&self, mut info: BpfProgInfo) -> Result<BpfProgInfo, Errno> {
        let mut attributes = ObjectInfo {
            object: self.fd.as_raw_fd() as u32,
            info_size: size_of::<BpfProgInfo>() as u32,
            info: (&raw mut info) as u64,
        };
        // SAFETY: `info` is one writable structure of the stated size; the caller
        // upholds the same of the buffers that it names.
        unsafe { call(&mut attributes) }?;
        Ok(info)
    }
}

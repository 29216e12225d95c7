//! Attributes of bpf(2): `union bpf_attr` by command, `struct bpf_prog_info` and
//! `struct bpf_map_info` (uapi/linux/bpf.h), each up to the last field that is used
//! here. The kernel accepts a shorter structure than its own and reads the rest as zero.

use crate::Errno;
use std::mem::size_of;

/// bpf(2) commands (`enum bpf_cmd`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    MapNextKey = 4,
    ProgramLoad = 5,
    ProgramTestRun = 10,
    ObjectInfo = 15,
    BtfLoad = 18,
    MapLookupAndDelete = 21,
    MapFreeze = 22,
    MapLookupBatch = 24,
    MapLookupAndDeleteBatch = 25,
    MapUpdateBatch = 26,
    MapDeleteBatch = 27,
    LinkCreate = 28,
}

/// Attributes of a bpf(2) command.
///
/// # Safety
/// The kernel reads and writes through the addresses in it. Whoever makes one upholds
/// that each is zero or the address of memory of the size stated beside it, alive and
/// (where the kernel writes) uniquely borrowed during the call. The type is `repr(C)`,
/// made of plain integers, without padding.
pub(super) unsafe trait Attributes {
    const COMMAND: Command;
}

/// Executes the command; returns a file descriptor, or 0.
///
/// # Safety
/// The addresses in `attributes` are as [`Attributes`] requires.
pub(super) unsafe fn call<T: Attributes>(attributes: &mut T) -> Result<i32, Errno> {
    // SAFETY: the caller upholds it.
    unsafe { call_as(T::COMMAND, attributes) }
}

/// Executes a command that shares its attributes with others.
///
/// # Safety
/// The addresses in `attributes` are as [`Attributes`] requires for this command.
pub(super) unsafe fn call_as<T: Attributes>(
    command: Command,
    attributes: &mut T,
) -> Result<i32, Errno> {
    // SAFETY: pointer and size are those of one writable structure; the caller upholds
    // the addresses in it.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_int,
            (&raw mut *attributes).cast::<libc::c_void>(),
            size_of::<T>(),
        )
    };
    Errno::check(answer as libc::c_int)
}

/// Attributes of BPF_MAP_CREATE.
#[derive(Default)]
#[repr(C)]
pub(super) struct MapCreate {
    pub(super) map_type: u32,
    pub(super) key_size: u32,
    pub(super) value_size: u32,
    pub(super) max_entries: u32,
    pub(super) flags: u32,
    pub(super) inner_map: u32,
    pub(super) numa_node: u32,
    pub(super) name: [u8; 16],
    pub(super) ifindex: u32,
    pub(super) btf: u32,
    pub(super) btf_key: u32,
    pub(super) btf_value: u32,
    pub(super) btf_vmlinux_value: u32,
    pub(super) extra: u64,
}

// SAFETY: integers only, eight-byte fields at multiples of eight, 72 bytes.
unsafe impl Attributes for MapCreate {
    const COMMAND: Command = Command::MapCreate;
}

/// Attributes of the commands on one map element: lookup, update, delete, next key.
#[derive(Default)]
#[repr(C)]
pub(super) struct MapElement {
    pub(super) map: u32,
    pub(super) padding: u32,
    pub(super) key: u64,
    /// The value, or the next key.
    pub(super) value: u64,
    pub(super) flags: u64,
}

// SAFETY: integers only, eight-byte fields at multiples of eight, 32 bytes.
unsafe impl Attributes for MapElement {
    const COMMAND: Command = Command::MapLookup;
}

/// Attributes of the batch commands of maps.
#[derive(Default)]
#[repr(C)]
pub(super) struct MapBatch {
    pub(super) in_batch: u64,
    pub(super) out_batch: u64,
    pub(super) keys: u64,
    pub(super) values: u64,
    pub(super) count: u32,
    pub(super) map: u32,
    pub(super) element_flags: u64,
    pub(super) flags: u64,
}

// SAFETY: integers only, eight-byte fields at multiples of eight, 56 bytes.
unsafe impl Attributes for MapBatch {
    const COMMAND: Command = Command::MapLookupBatch;
}

/// Attributes of BPF_MAP_FREEZE.
#[derive(Default)]
#[repr(C)]
pub(super) struct MapFreeze {
    pub(super) map: u32,
}

// SAFETY: one integer.
unsafe impl Attributes for MapFreeze {
    const COMMAND: Command = Command::MapFreeze;
}

/// Attributes of BPF_PROG_LOAD.
#[derive(Default)]
#[repr(C)]
pub(super) struct ProgramLoad {
    pub(super) program_type: u32,
    pub(super) insn_count: u32,
    pub(super) insns: u64,
    pub(super) license: u64,
    pub(super) log_level: u32,
    pub(super) log_size: u32,
    pub(super) log: u64,
    pub(super) kernel_version: u32,
    pub(super) flags: u32,
    pub(super) name: [u8; 16],
    pub(super) ifindex: u32,
    pub(super) expected_attach_type: u32,
    pub(super) btf: u32,
    pub(super) func_info_size: u32,
    pub(super) func_info: u64,
    pub(super) func_info_count: u32,
    pub(super) line_info_size: u32,
    pub(super) line_info: u64,
    pub(super) line_info_count: u32,
    pub(super) attach_btf_id: u32,
    /// File descriptor of the program or BTF that contains the attach target.
    pub(super) attach_object: u32,
    pub(super) core_relocation_count: u32,
    pub(super) fd_array: u64,
    pub(super) core_relocations: u64,
    pub(super) core_relocation_size: u32,
    pub(super) log_true_size: u32,
    pub(super) token: u32,
    pub(super) fd_array_count: u32,
}

// SAFETY: integers only, eight-byte fields at multiples of eight, 152 bytes.
unsafe impl Attributes for ProgramLoad {
    const COMMAND: Command = Command::ProgramLoad;
}

/// Attributes of BPF_PROG_TEST_RUN.
#[derive(Default)]
#[repr(C)]
pub(super) struct ProgramTestRun {
    pub(super) program: u32,
    pub(super) retval: u32,
    pub(super) data_size_in: u32,
    pub(super) data_size_out: u32,
    pub(super) data_in: u64,
    pub(super) data_out: u64,
    pub(super) repeat: u32,
    pub(super) duration: u32,
    pub(super) context_size_in: u32,
    pub(super) context_size_out: u32,
    pub(super) context_in: u64,
    pub(super) context_out: u64,
    pub(super) flags: u32,
    pub(super) cpu: u32,
    pub(super) batch_size: u32,
    pub(super) padding: u32,
}

// SAFETY: integers only, eight-byte fields at multiples of eight, 80 bytes.
unsafe impl Attributes for ProgramTestRun {
    const COMMAND: Command = Command::ProgramTestRun;
}

/// Attributes of BPF_LINK_CREATE.
#[derive(Default)]
#[repr(C)]
pub(super) struct LinkCreate {
    pub(super) program: u32,
    /// Index of the device.
    pub(super) target: u32,
    pub(super) attach_type: u32,
    pub(super) flags: u32,
    /// Of tc: place among the programs of the device, none of which is named.
    pub(super) relative: u32,
    pub(super) padding: u32,
    pub(super) expected_revision: u64,
}

// SAFETY: integers only, eight-byte fields at multiples of eight, 32 bytes.
unsafe impl Attributes for LinkCreate {
    const COMMAND: Command = Command::LinkCreate;
}

/// Attributes of BPF_OBJ_GET_INFO_BY_FD.
#[derive(Default)]
#[repr(C)]
pub(super) struct ObjectInfo {
    pub(super) object: u32,
    pub(super) info_size: u32,
    pub(super) info: u64,
}

// SAFETY: integers only, no padding, 16 bytes.
unsafe impl Attributes for ObjectInfo {
    const COMMAND: Command = Command::ObjectInfo;
}

/// Properties of a link to a device (`struct bpf_link_info`).
#[derive(Default)]
#[repr(C)]
pub(super) struct BpfLinkInfo {
    pub(super) link_type: u32,
    pub(super) id: u32,
    pub(super) program_id: u32,
    pub(super) padding: u32,
    pub(super) ifindex: u32,
    pub(super) attach_type: u32,
}

/// Attributes of BPF_BTF_LOAD.
#[derive(Default)]
#[repr(C)]
pub(super) struct BtfLoad {
    pub(super) btf: u64,
    pub(super) log: u64,
    pub(super) btf_size: u32,
    pub(super) log_size: u32,
    pub(super) log_level: u32,
    pub(super) log_true_size: u32,
}

// SAFETY: integers only, eight-byte fields at multiples of eight, 32 bytes.
unsafe impl Attributes for BtfLoad {
    const COMMAND: Command = Command::BtfLoad;
}

/// `struct bpf_prog_info`: fixed fields, and addresses of buffers for the variable ones.
#[derive(Default)]
#[repr(C)]
pub(super) struct BpfProgInfo {
    pub(super) program_type: u32,
    pub(super) id: u32,
    pub(super) tag: [u8; 8],
    pub(super) jited_len: u32,
    pub(super) xlated_len: u32,
    pub(super) jited: u64,
    pub(super) xlated: u64,
    pub(super) load_time: u64,
    pub(super) user: u32,
    pub(super) map_count: u32,
    pub(super) map_ids: u64,
    pub(super) name: [u8; 16],
    pub(super) ifindex: u32,
    pub(super) gpl_compatible: u32,
    pub(super) netns_device: u64,
    pub(super) netns_inode: u64,
    pub(super) symbol_count: u32,
    pub(super) function_count: u32,
    pub(super) symbols: u64,
    pub(super) function_lens: u64,
    pub(super) btf_id: u32,
    pub(super) func_info_size: u32,
    pub(super) func_info: u64,
    pub(super) func_info_count: u32,
    pub(super) line_info_count: u32,
    pub(super) line_info: u64,
    pub(super) native_line_info: u64,
    pub(super) native_line_info_count: u32,
    pub(super) line_info_size: u32,
    pub(super) native_line_info_size: u32,
    pub(super) tag_count: u32,
    pub(super) tags: u64,
    pub(super) run_time: u64,
    pub(super) run_count: u64,
    pub(super) recursion_misses: u64,
    pub(super) verified_insns: u32,
    pub(super) attach_btf_object: u32,
    pub(super) attach_btf_id: u32,
    pub(super) padding: u32,
}

/// `struct bpf_map_info`.
#[derive(Default)]
#[repr(C)]
pub(super) struct BpfMapInfo {
    pub(super) map_type: u32,
    pub(super) id: u32,
    pub(super) key_size: u32,
    pub(super) value_size: u32,
    pub(super) max_entries: u32,
    pub(super) flags: u32,
    pub(super) name: [u8; 16],
    pub(super) ifindex: u32,
    pub(super) btf_vmlinux_value: u32,
    pub(super) netns_device: u64,
    pub(super) netns_inode: u64,
    pub(super) btf_id: u32,
    pub(super) btf_key: u32,
    pub(super) btf_value: u32,
    pub(super) btf_vmlinux_id: u32,
    pub(super) extra: u64,
}

const _: () = assert!(size_of::<ProgramLoad>() == 152);
const _: () = assert!(size_of::<MapCreate>() == 72);
const _: () = assert!(size_of::<MapElement>() == 32);
const _: () = assert!(size_of::<MapBatch>() == 56);
const _: () = assert!(size_of::<ProgramTestRun>() == 80);
const _: () = assert!(size_of::<BtfLoad>() == 32);
const _: () = assert!(size_of::<BpfProgInfo>() == 232);
const _: () = assert!(size_of::<BpfMapInfo>() == 88);

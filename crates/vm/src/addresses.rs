//! The address space of checked runs: where memory lies that programs see.
//!
//! The addresses look like those of Linux on x86-64: they are in the upper half of the 64 bits,
//! neither half of 32 bits is zero, and memory is aligned as much as Linux aligns it and no
//! further, so that programs that cut, shift or compare addresses go the way that they go in
//! Linux.
//!
//! | from | memory | as in Linux |
//! |---|---|---|
//! | `REGIONS` | context, packet and other regions, one after the other, with one upper half | direct map |
//! | [`CURRENT_TASK`] | the task | direct map |
//! | `SOCKETS` | sockets of the network | direct map |
//! | [`VARIABLES`] | per-CPU variables of the kernel | direct map |
//! | `FRAGMENTS` | fragments of a packet, whole pages | direct map |
//! | `MAPS` | structures of maps | direct map |
//! | `VALUES` | keys and values of maps | direct map |
//! | `OBJECTS` | objects that programs allocate | direct map |
//! | `FRAMES` | stack frames, callers above what they call | vmalloc |
//! | `FUNCTIONS` | functions of programs | modules |

/// First address of the kernel.
pub const KERNEL: u64 = 0xffff_8000_0000_0000;

/// First address of the regions; all have its upper 32 bits.
pub const REGIONS: u64 = 0xffff_8881_1035_d000;

/// End of the regions.
pub const REGIONS_END: u64 = 0xffff_8881_f000_0000;

/// Offset in its page of a region that is no packet, as of memory of `kmalloc`.
pub const IN_PAGE: u64 = 0x940;

/// Address that stands for the current task: one of the kernel, where nothing is. Verified
/// programs that read a task do not run as native code.
pub const CURRENT_TASK: u64 = 0xffff_8882_1038_10c0;

/// Bytes from the address of the task that runs to its registers in user space.
pub const USER_REGISTERS: u64 = 0x10_0000;

/// Address of the memory of the sockets of the network.
pub const SOCKETS: u64 = 0xffff_8883_4254_5000;

/// Address that stands for the per-CPU variables of the kernel: that of the first CPU's block.
/// Verified programs that read them do not run as native code.
pub const VARIABLES: u64 = 0xffff_8884_3bc1_9000;

/// Address of the first fragment of the packet.
pub const FRAGMENTS: u64 = 0xffff_8885_2b31_d000;

/// Address of the structure of the first map.
pub const MAPS: u64 = 0xffff_8886_1433_2e00;

/// First address of keys and values of maps.
pub const VALUES: u64 = 0xffff_88a0_1257_0000;

/// End of keys and values of maps.
pub const VALUES_END: u64 = 0xffff_a000_0000_0000;

/// Offset of a key or value from an address with 16 zero bits: it has the alignment of 8 bytes
/// that values have.
pub const IN_VALUES: u64 = 0x29b8;

/// Address of the first object that a program allocates.
pub const OBJECTS: u64 = 0xffff_a000_10cd_b048;

/// End of the first stack frame. Those of called functions are below it.
pub const FRAMES: u64 = 0xffff_c900_1384_7c08;

/// Address of the first instruction of a program.
pub const FUNCTIONS: u64 = 0xffff_ffff_a002_c3a8;

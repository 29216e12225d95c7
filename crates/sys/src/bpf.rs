//! bpf(2): loads programs, maps and BTF into the running kernel, runs programs on given
//! data, reads back their translated and native code, and operates on maps.
//!
//! | file | commands |
//! |---|---|
//! | `prog_load` | BPF_PROG_LOAD |
//! | `btf_load` | BPF_BTF_LOAD |
//! | `map` | BPF_MAP_CREATE, operations on elements and batches, BPF_MAP_FREEZE |
//! | `arena` | none: reads and writes the mapped pages |
//! | `ring_buffer` | none: reads records through the mapped pages |
//! | `test_run` | BPF_PROG_TEST_RUN |
//! | `info` | BPF_OBJ_GET_INFO_BY_FD |
//! | `link` | BPF_LINK_CREATE |
//!
//! Only `link` attaches a program: no other affects anything outside this process. A
//! [`LoadedProgram`] owns a file descriptor; dropping it unloads the program. Every
//! command needs CAP_BPF (and CAP_NET_ADMIN for the networking types), or root.

mod arena;
mod attributes;
mod btf_load;
mod info;
mod link;
mod map;
mod prog_load;
mod ring_buffer;
mod test_run;
mod user_ring_buffer;

pub use arena::ArenaMapping;
pub use btf_load::{BtfAnswer, BtfObject, btf_load};
pub use info::ProgramInfo;
pub use link::{Link, LinkKind};
pub use map::{Batch, Map, MapInfo, MapRequest, possible_cpus};
pub use prog_load::{LoadAnswer, LoadError, LogLevel, MAX_LOG_SIZE, ProgLoad};
pub use ring_buffer::RingBuffer;
pub use test_run::{TestRun, TestRunResult};
pub use user_ring_buffer::UserRingBuffer;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// File descriptor of a program in the running kernel.
#[derive(Debug)]
pub struct LoadedProgram {
    fd: OwnedFd,
}

impl LoadedProgram {
    /// Number of the file descriptor, as a prog_array takes it.
    pub fn descriptor(&self) -> u32 {
        self.fd.as_raw_fd() as u32
    }
}

impl AsFd for LoadedProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

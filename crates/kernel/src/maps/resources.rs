//! Objects that numbers in keys and values stand for: programs, maps, perf buffers, sockets,
//! control groups and owners of local storage by descriptor, network interfaces by index.

use std::sync::Arc;

use spec::maps::{MapKind, StorageKind};
use spec::programs::ProgramType;
use spec::{Errno, Result};
use vm::TailTarget;

use super::{Map, PerfBuffer, Socket};

/// Finds the objects that bpf(2) finds by the numbers in a value.
#[expect(unused_variables, reason = "defaults do not read them")]
pub trait Resources {
    /// The program of a descriptor.
    fn program(&self, descriptor: u32) -> Option<Arc<StoredProgram>> {
        None
    }

    /// The map of a descriptor.
    fn map(&self, descriptor: u32) -> Option<Arc<StoredMap>> {
        None
    }

    /// The perf buffer of a descriptor.
    fn perf_buffer(&self, descriptor: u32) -> Option<Arc<PerfBuffer>> {
        None
    }

    /// The socket of a descriptor.
    fn socket(&self, descriptor: u32) -> Option<Arc<Socket>> {
        None
    }

    /// The control group of a descriptor.
    fn cgroup(&self, descriptor: u32) -> Option<Arc<Cgroup>> {
        None
    }

    /// The identity of the object of a descriptor that local storage of this kind belongs to:
    /// the cookie of a socket, the id of a control group, or what the host chooses for
    /// inodes and tasks.
    ///
    /// # Errors
    /// EBADF if nothing is open there or what is there is no such object, ENOTSOCK for a
    /// descriptor that is no socket.
    fn owner(&self, kind: MapKind, descriptor: u32) -> Result<u64> {
        match kind.storage_kind() {
            Some(StorageKind::Socket) => match self.socket(descriptor) {
                Some(socket) => Ok(socket.cookie),
                None if self.is_open(descriptor) => Err(Errno::ENOTSOCK),
                None => Err(Errno::EBADF),
            },
            Some(StorageKind::Cgroup) => match self.cgroup(descriptor) {
                Some(cgroup) => Ok(cgroup.id),
                None => Err(Errno::EBADF),
            },
            Some(StorageKind::Inode | StorageKind::Task) | None => Err(Errno::EBADF),
        }
    }

    /// True if there is a descriptor of this number, of whatever object.
    fn is_open(&self, descriptor: u32) -> bool {
        self.program(descriptor).is_some()
            || self.map(descriptor).is_some()
            || self.perf_buffer(descriptor).is_some()
            || self.socket(descriptor).is_some()
            || self.cgroup(descriptor).is_some()
    }

    /// True if there is an interface of this index.
    fn has_interface(&self, index: u32) -> bool {
        false
    }
}

/// No descriptor is open, and there is no interface.
#[derive(Clone, Copy, Debug)]
pub struct NoResources;

impl Resources for NoResources {}

/// A model control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Its id.
    pub id: u64,
}

/// A program stored in a map.
#[derive(Clone, Debug)]
pub struct StoredProgram {
    /// Program id, which lookups return.
    pub id: u32,
    /// Compatibility class, equal for all programs of an array.
    pub class: ProgramClass,
    /// The native code that tail calls of native code enter.
    pub target: Option<Arc<dyn TailTarget>>,
}

/// Compatibility class of tail calls (`bpf_prog_map_compatible`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramClass {
    /// Type of the program.
    pub program_type: ProgramType,
    /// `expected_attach_type` of its load.
    pub attach_type: u32,
    /// It was loaded with `BPF_F_XDP_HAS_FRAGS`.
    pub has_frags: bool,
    /// It runs as native code.
    pub is_native: bool,
    /// It is bound to a network device (`BPF_F_XDP_DEV_BOUND_ONLY`, offload): no map of
    /// programs takes it.
    pub is_device_bound: bool,
    /// Identities of the maps for cgroups that it uses, the shared one and the one with a
    /// value for each CPU; 0: none.
    pub cgroup_storage: [u64; 2],
}

impl ProgramClass {
    /// True if the program may be in an array that belongs to a program of this class.
    pub(super) fn fits(&self, owner: &ProgramClass) -> bool {
        let mut storage = self.cgroup_storage.iter().zip(&owner.cgroup_storage);
        self.program_type == owner.program_type
            && self.attach_type == owner.attach_type
            && self.has_frags == owner.has_frags
            && self.is_native == owner.is_native
            && storage.all(|(own, owner)| *own == 0 || own == owner)
    }
}

/// A map that another map holds.
#[derive(Clone, Debug)]
pub struct StoredMap {
    /// Map id, which lookups return.
    pub id: u32,
    /// The map.
    pub map: Arc<Map>,
}

impl StoredMap {
    /// A map with its id.
    pub fn new(id: u32, map: Arc<Map>) -> StoredMap {
        StoredMap { id, map }
    }
}

//! A model process: the descriptors that programs open and close by `bpf_sys_bpf` and
//! `bpf_sys_close`.
//!
//! It begins with standard input, output and error, and a new descriptor has the smallest free
//! number, as in Linux. Nothing can be attached in it: links and raw tracepoints fail. It has no
//! memory of its own, so that logs, which Linux writes to memory of the process, fail too.

mod attributes;
mod map_commands;
mod program_load;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use btf::Btf;
use btf::validate::{kernel_log, validate};
use program::Program;
use spec::{Errno, Kernel, Result};
use vm::{BpfCall, SystemCalls};

use crate::maps::{Host, Map, Resources, StoredMap, StoredProgram};
use attributes::{Attributes, Log};

/// Verifies the programs that programs load by bpf(2).
pub trait ProgramVerifier: fmt::Debug + Send + Sync {
    /// Verifies a program.
    ///
    /// # Errors
    /// The error number of the kernel's verifier.
    fn verify(&self, program: &Program) -> Result;
}

/// A program that a program loaded.
#[derive(Debug)]
pub struct LoadedProgram {
    /// The program, which refers to its maps by index.
    pub program: Program,
    /// Its maps.
    pub maps: Vec<Arc<Map>>,
    /// The program as maps store it.
    pub stored: Arc<StoredProgram>,
}

/// Object that is open at a descriptor.
#[derive(Clone, Debug)]
pub enum Descriptor {
    /// A file: nothing of BPF.
    File,
    /// A map.
    Map(Arc<StoredMap>),
    /// Types.
    Types(Arc<Btf<'static>>),
    /// A program.
    Program(Arc<LoadedProgram>),
}

/// A process.
#[derive(Debug)]
pub struct Process {
    host: Host,
    kernel: Kernel,
    verifier: Option<Arc<dyn ProgramVerifier>>,
    table: Mutex<Table>,
}

/// Descriptors, and the maps and programs that exist by their ids.
#[derive(Debug, Default)]
struct Table {
    open: BTreeMap<u32, Descriptor>,
    maps: BTreeMap<u32, Weak<StoredMap>>,
    /// The types of key and value, by the ids of maps.
    map_types: BTreeMap<u32, Arc<Btf<'static>>>,
    programs: u32,
}

/// Most descriptors that are open at once (`RLIMIT_NOFILE`).
const MOST_OPEN: u32 = 1024;

impl Process {
    /// A process on a machine with a kernel, and the verifier of programs that it loads. Without a verifier it may load none (`EPERM`).
    pub fn new(host: Host, kernel: Kernel, verifier: Option<Arc<dyn ProgramVerifier>>) -> Process {
        let files = (0..3).map(|number| (number, Descriptor::File));
        Process {
            host,
            kernel,
            verifier,
            table: Mutex::new(Table {
                open: files.collect(),
                ..Table::default()
            }),
        }
    }

    /// The types of the kernel, to keep.
    pub fn shared_types(&self) -> Option<Arc<Btf<'static>>> {
        self.kernel.btf().cloned()
    }

    /// The types of the kernel.
    pub fn types(&self) -> Option<&Btf<'static>> {
        self.kernel.btf().map(|types| &**types)
    }

    /// The object that is open at a descriptor.
    pub fn descriptor(&self, number: u32) -> Option<Descriptor> {
        self.table().open.get(&number).cloned()
    }

    /// All descriptors by number.
    pub fn descriptors(&self) -> Vec<(u32, Descriptor)> {
        let table = self.table();
        let open = table.open.iter();
        open.map(|(number, descriptor)| (*number, descriptor.clone()))
            .collect()
    }

    /// Opens a descriptor for a map of the host.
    ///
    /// # Errors
    /// `EMFILE` if too many are open.
    pub fn open_map(&self, map: Arc<Map>) -> Result<u32> {
        let mut table = self.table();
        table.open_map(map, None)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is changed in single steps: it is whole after a panic too.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `BPF_BTF_LOAD`.
    fn load_types(&self, attributes: &Attributes, call: &mut BpfCall<'_>) -> Result<u32> {
        use attributes::btf_load as at;
        /// `BTF_MAX_SIZE`.
        const MOST_BYTES: u32 = 16 << 20;
        attributes.check_end(at::END)?;
        Errno::EINVAL.when(attributes.u32(at::FLAGS) & !attributes::TOKEN_FD != 0)?;
        Errno::EBADF.when(attributes.u32(at::FLAGS) != 0)?;
        Errno::E2BIG.when(attributes.u32(at::SIZE) > MOST_BYTES)?;
        let log = attributes.log(at::LOG_BUF, at::LOG_SIZE, at::LOG_LEVEL)?;
        let (address, size) = (attributes.u64(at::DATA), attributes.u32(at::SIZE));
        let mut bytes = vec![0; size as usize];
        let (loaded, log_len) = match (call.read)(address, &mut bytes) {
            true => self.read_types(&bytes, &log),
            false => (Err(Errno::EFAULT), 0),
        };
        // The kernel writes the length of the log also where there is none.
        attributes::put(call, at::LOG_TRUE_SIZE, log_len);
        log.finish()?;
        let types = loaded?;
        self.table().open(Descriptor::Types(types))
    }

    /// The types of a blob, and the length of the log with its final zero byte, if there is one.
    fn read_types(&self, bytes: &[u8], log: &Log) -> (Result<Arc<Btf<'static>>>, u32) {
        let checked = validate(bytes, self.types());
        let log_len = match log.is_written() {
            true => kernel_log(bytes, checked.as_ref().err()).len() as u32 + 1,
            false => 0,
        };
        let types = match checked {
            Ok(()) => Btf::parse(bytes).map_err(|_| Errno::EINVAL),
            Err(refusal) => Err(Errno(refusal.errno())),
        };
        (types.map(|types| Arc::new(types.into_owned())), log_len)
    }
}

impl SystemCalls for Process {
    fn bpf(&self, call: &mut BpfCall<'_>) -> Result<u32> {
        let attributes = Attributes::read(call.attributes)?;
        match call.command {
            attributes::MAP_CREATE => self.create_map(&attributes),
            attributes::MAP_UPDATE_ELEM => self.update_map(&attributes, call),
            attributes::MAP_DELETE_ELEM => self.delete_from_map(&attributes, call),
            attributes::MAP_GET_FD_BY_ID => self.open_map_of_id(&attributes),
            attributes::MAP_FREEZE => self.freeze_map(&attributes),
            attributes::BTF_LOAD => self.load_types(&attributes, call),
            attributes::PROG_LOAD => self.load_program(&attributes, call),
            attributes::RAW_TRACEPOINT_OPEN => self.open_raw_tracepoint(&attributes),
            attributes::LINK_CREATE => self.create_link(&attributes),
            // Programs may give no others.
            _ => Err(Errno::EINVAL),
        }
    }

    fn close(&self, descriptor: u32) -> Result {
        // What is freed may close others.
        let closed = self.table().open.remove(&descriptor);
        closed.map(drop).ok_or(Errno::EBADF)
    }
}

impl Table {
    fn open(&mut self, descriptor: Descriptor) -> Result<u32> {
        let free = (0..MOST_OPEN).find(|number| !self.open.contains_key(number));
        let number = free.ok_or(Errno::EMFILE)?;
        self.open.insert(number, descriptor);
        Ok(number)
    }

    fn open_map(&mut self, map: Arc<Map>, types: Option<Arc<Btf<'static>>>) -> Result<u32> {
        let id = self.maps.keys().next_back().map_or(1, |last| last + 1);
        let stored = Arc::new(StoredMap::new(id, map));
        let number = self.open(Descriptor::Map(stored.clone()))?;
        let maps = &mut self.maps;
        maps.retain(|_, map| map.strong_count() > 0);
        self.map_types.retain(|id, _| maps.contains_key(id));
        maps.insert(id, Arc::downgrade(&stored));
        if let Some(types) = types {
            self.map_types.insert(id, types);
        }
        Ok(number)
    }

    /// The map of a descriptor. EBADF if nothing is open there, EINVAL for something else.
    fn map(&self, descriptor: u32) -> Result<Arc<StoredMap>> {
        match self.open.get(&descriptor) {
            Some(Descriptor::Map(map)) => Ok(map.clone()),
            Some(_) => Err(Errno::EINVAL),
            None => Err(Errno::EBADF),
        }
    }

    /// The types of a descriptor, with errors as of [`Table::map`].
    fn types(&self, descriptor: u32) -> Result<Arc<Btf<'static>>> {
        match self.open.get(&descriptor) {
            Some(Descriptor::Types(types)) => Ok(types.clone()),
            Some(_) => Err(Errno::EINVAL),
            None => Err(Errno::EBADF),
        }
    }

    /// The program of a descriptor, with errors as of [`Table::map`].
    fn program(&self, descriptor: u32) -> Result<Arc<LoadedProgram>> {
        match self.open.get(&descriptor) {
            Some(Descriptor::Program(program)) => Ok(program.clone()),
            Some(_) => Err(Errno::EINVAL),
            None => Err(Errno::EBADF),
        }
    }
}

impl Resources for Table {
    fn program(&self, descriptor: u32) -> Option<Arc<StoredProgram>> {
        let program = Table::program(self, descriptor).ok()?;
        Some(program.stored.clone())
    }

    fn map(&self, descriptor: u32) -> Option<Arc<StoredMap>> {
        Table::map(self, descriptor).ok()
    }

    fn is_open(&self, descriptor: u32) -> bool {
        self.open.contains_key(&descriptor)
    }
}

//! A loaded object: its programs by name, its maps, and what the host sets between runs.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use ::kernel::maps::{Arena, Host, Map};
use ::kernel::process::Process;
use btf::{Btf, RustDump, TypeId};
use object::maps::Global;
use spec::maps::MapKind;
use spec::programs::ProgramType;
use spec::{Errno, SplitMix};
use vm::{Addresses, Stream, System};

use super::kernel_sockets::SocketLayout;
use super::prepared::Prepared;
use super::random::{RunRandom, SharedRandom};
use super::shared::Shared;
use super::{ObjectMap, RunnableProgram, UnwrittenRead, tail_calls};
use crate::internal::maps_json::MapFormats;

/// The programs and maps of an object, ready to run. The maps last over all runs.
#[derive(Debug)]
pub struct LoadedObject {
    pub(super) shared: Shared,
    /// The programs as program arrays hold them.
    pub(super) stored: tail_calls::Programs,
    pub(super) globals: Vec<Global>,
    pub(super) random: SharedRandom,
    pub(super) cpu: u32,
    pub(super) host: Host,
    /// The layout of sockets, as far as the kernel's types are known.
    pub(super) socket_layout: SocketLayout,
    /// Number of maps that the host put into maps of maps.
    pub(super) inner_maps: AtomicU32,
}

/// Bytes of a perf buffer of one CPU, where records are taken after each run.
pub const PERF_BUFFER_BYTES: usize = 16 << 20;

impl LoadedObject {
    /// Opens a perf buffer of `bytes` for each CPU in every `perf_event_array`, so that
    /// programs can write records, which [`RunnableProgram::collect_records`] has runs collect.
    /// Before, `bpf_perf_event_output` returns `-ENOENT`, as in Linux.
    ///
    /// # Errors
    /// Those of the updates of the maps.
    pub fn open_perf_buffers(&mut self, bytes: usize) -> Result<(), Errno> {
        let cpus = self.host.cpus;
        let mut maps = self.shared.maps.iter_mut().flatten();
        maps.try_for_each(|map| map.open_perf_buffers(cpus, bytes))
    }

    /// Chooses the forms of fields of a map.
    pub(crate) fn set_map_formats(&mut self, name: &str, formats: MapFormats) {
        let maps = self.shared.maps.iter_mut().flatten();
        for map in maps.filter(|map| map.def.name == name) {
            map.formats = formats.clone();
        }
    }

    /// Number of possible CPUs, on which programs run.
    pub fn cpus(&self) -> u32 {
        self.host.cpus
    }

    /// Sets the machine, the process and the network that helpers report:
    /// [`System::DEFAULT`] until then.
    pub fn set_system(&mut self, mut system: System) {
        self.socket_layout.describe(&mut system.network.sockets);
        self.shared.system = system;
    }

    /// The types of the kernel that it was loaded for.
    pub(crate) fn kernel_types(&self) -> Option<Arc<Btf<'static>>> {
        self.shared.process.shared_types()
    }

    /// Where memory lies that programs see.
    pub(crate) fn addresses(&self) -> Addresses {
        self.shared.addresses
    }

    /// The process of its programs: what they opened by `bpf_sys_bpf` and did not close.
    pub fn process(&self) -> &Process {
        &self.shared.process
    }

    /// Name of the program at an index of a program array.
    pub fn program_at(&self, map: &Map, index: u32) -> Option<&str> {
        let stored = map.operations().program(index)?;
        let prepared = self.shared.programs.get(stored.id as usize)?;
        Some(prepared.program.name())
    }

    /// A program by its name.
    pub fn program(&mut self, name: &str) -> Option<RunnableProgram<'_>> {
        self.program_of(name)
    }

    /// As [`LoadedObject::program`], of an object that others run too.
    pub fn program_of(&self, name: &str) -> Option<RunnableProgram<'_>> {
        Some(self.runnable(self.program_place(name)?, self.cpu))
    }

    /// A program by its name, to run on another CPU with random numbers of its own, whose seed is
    /// taken from these: threads that run programs at the same time have one each.
    pub fn program_on(
        &self,
        name: &str,
        cpu: u32,
        random: &mut SplitMix,
    ) -> Option<RunnableProgram<'_>> {
        let random = RunRandom::Own(SplitMix::new(random.next_u64()));
        Some(self.shared.program(self.program_place(name)?, cpu, random))
    }

    /// The program at a place, to run on a CPU.
    pub(crate) fn runnable(&self, place: usize, cpu: u32) -> RunnableProgram<'_> {
        let random = RunRandom::Shared(&self.random);
        self.shared.program(place, cpu, random)
    }

    /// As [`LoadedObject::runnable`], with random numbers of a seed.
    pub(crate) fn runnable_with_seed(
        &self,
        place: usize,
        cpu: u32,
        seed: u64,
    ) -> RunnableProgram<'_> {
        let random = RunRandom::Own(SplitMix::new(seed));
        self.shared.program(place, cpu, random)
    }

    /// As [`LoadedObject::runnable`], with random numbers that only the seed and the CPU decide
    /// about.
    pub(crate) fn runnable_alone(&self, place: usize, cpu: u32) -> RunnableProgram<'_> {
        let random = RunRandom::Own(self.random.of_cpu(cpu));
        self.shared.program(place, cpu, random)
    }

    /// The place of the program of this name.
    pub(crate) fn program_place(&self, name: &str) -> Option<usize> {
        self.shared.place(name)
    }

    /// Names of the programs by their places.
    pub(crate) fn program_names(&self) -> impl Iterator<Item = &str> {
        let programs = self.shared.programs.iter();
        programs.map(|prepared| prepared.program.name())
    }

    /// Type of the program at a place.
    pub(crate) fn program_kind(&self, place: usize) -> ProgramType {
        self.shared.programs[place].program.kind()
    }

    /// The program at a place.
    pub(crate) fn program_at_place(&self, place: usize) -> &program::Program {
        &self.shared.programs[place].program
    }

    /// Places of the maps that programs use.
    pub(crate) fn map_places(&self) -> impl Iterator<Item = usize> {
        let maps = self.shared.maps.iter().enumerate();
        maps.filter_map(|(place, map)| map.is_some().then_some(place))
    }

    /// The map at a place, if programs use it.
    pub(crate) fn map_at(&self, place: usize) -> Option<&ObjectMap> {
        self.shared.maps.get(place)?.as_ref()
    }

    /// The Rust type that `beebox gen rust` writes for a type of the object, if that has a layout.
    pub(crate) fn rust_type(&self, id: TypeId) -> Option<String> {
        let mut programs = self.shared.programs.iter();
        let types = programs.find_map(|prepared| prepared.program.btf())?;
        types.get(id).filter(|_| id != TypeId::VOID)?;
        RustDump::new(types).refer(id, "", "").ok()
    }

    /// Puts a program of the object into a slot of a program array, or empties the slot: tail
    /// calls reach it from the next one on, those of runs on other threads too.
    ///
    /// # Errors
    /// ENOENT if there is no such array or program, or the slot is empty already; otherwise
    /// those of the kernel: E2BIG beyond the array, EINVAL if it takes programs of another
    /// class.
    pub fn set_tail_call(
        &self,
        array: &str,
        index: u32,
        program: Option<&str>,
    ) -> Result<(), Errno> {
        let mut maps = self.maps();
        let array = maps.find(|map| map.def.name == array && map.map.kind() == MapKind::ProgArray);
        let array = array.ok_or(Errno::ENOENT)?;
        let place = |name: &str| self.shared.place(name).ok_or(Errno::ENOENT);
        let place = program.map(place).transpose()?;
        tail_calls::set(array, index, place, &self.stored)
    }

    /// Takes the bytes that a program wrote into one of its streams (`bpf_stream_vprintk`), in
    /// all runs since they were taken last; `None` if there is no such program. A stream that
    /// holds almost 100,000 bytes takes no more.
    pub fn take_stream(&self, program: &str, stream: Stream) -> Option<Vec<u8>> {
        Some(self.take_stream_of(self.shared.place(program)?, stream))
    }

    /// As [`LoadedObject::take_stream`], of the program at a place.
    pub(crate) fn take_stream_of(&self, place: usize, stream: Stream) -> Vec<u8> {
        self.shared.programs[place].streams.take(stream)
    }

    /// Reads of stack memory that programs never wrote, one of a program at most: of programs that
    /// run in the checked engine those that runs made until now, of those without checks those that they
    /// may make. Results that depend on them are not comparable with Linux.
    pub fn unwritten_stack_reads(&self) -> Vec<UnwrittenRead> {
        let programs = self.shared.programs.iter();
        programs.filter_map(Prepared::unwritten_read).collect()
    }

    /// The map of this name, if a program uses it.
    pub fn map(&self, name: &str) -> Option<&Map> {
        let mut maps = self.maps();
        maps.find(|map| map.def.name == name).map(|map| &*map.map)
    }

    /// The limit in bytes of the memory of the maps, [`LoadOptions::memory`](super::LoadOptions),
    /// if they asked for more since they were loaded or since the last call or run.
    pub fn take_memory_limit(&self) -> Option<u64> {
        let memory = &self.shared.memory;
        memory.take_refused().then(|| memory.limit())
    }

    /// The memory of the arena of this name, if a program uses it.
    pub fn arena(&self, name: &str) -> Option<&Arena> {
        self.map(name)?.of_kind::<Arena>()
    }

    /// The maps that programs use, in the object's order.
    pub fn maps(&self) -> impl Iterator<Item = &ObjectMap> {
        self.shared.maps.iter().flatten()
    }
}

impl Drop for LoadedObject {
    /// Program arrays and the programs that they hold and that use them keep each other.
    fn drop(&mut self) {
        for map in self.maps() {
            map.map.release();
        }
    }
}

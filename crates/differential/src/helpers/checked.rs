//! Runs programs in the checked engine.

use std::cell::Cell;
use std::fs;
use std::sync::{Arc, LazyLock};

use btf::fields::{FieldRecord, FieldSet};
use btf::{Btf, TypeId};
use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory, Permission};
use isa::ebpf::decode;
use kernel::maps::{Host, Map, RunGuard, ValueLayout};
use kernel::object_layout;
use kernel::process::{Process, ProgramVerifier};
use kernel::programs::{TestInput, TestProgram};
use packet::{Metadata, Packet};
use spec::kernel::Source;
use spec::{Kernel, SplitMix};
use sys::network::namespace_cookie;
use vm::network::{NetDevice, Network};
use vm::{ModelPrograms, ObjectLayout, RunContext, Streams, System};

use super::case::{Case, Setup, holds_sockets};
use super::compare::{self, Left, is_returned};
use super::program_types::{ProgramTypes, TYPES};

/// Offset of the spin lock in the values of maps with types, which have 16 bytes.
const LOCK: usize = 8;

/// System data that helpers report of this thread.
pub fn own_system() -> System {
    let link = fs::read_link("/proc/thread-self").unwrap_or_default();
    let pid = link
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    let name = fs::read("/proc/thread-self/comm").unwrap_or_default();
    let mut comm = [0; 16];
    for (to, from) in comm.iter_mut().zip(name.trim_ascii_end()) {
        *to = *from;
    }
    System {
        pid: pid.unwrap_or_default(),
        tgid: std::process::id(),
        comm,
        // That of a new namespace is down.
        network: Network {
            devices: vec![NetDevice {
                is_up: false,
                ..NetDevice::LOOPBACK
            }]
            .into(),
            ..Network::LOOPBACK_ONLY
        },
        netns_cookie: namespace_cookie().unwrap_or(System::DEFAULT.netns_cookie),
        ..System::DEFAULT
    }
}

/// The built-in kernel, whose registry is the running one's.
static KERNEL: LazyLock<Kernel> = LazyLock::new(kernel_data::linux_6_18_minimal);

/// Run context of programs on this side.
pub(super) struct OurSide<'s> {
    pub(super) system: &'s System,
    pub(super) types: &'s Arc<Btf<'static>>,
    /// Verifies what programs load; without it they may load none.
    pub(super) verifier: Option<Arc<dyn ProgramVerifier>>,
}

impl OurSide<'_> {
    /// A process for one run.
    pub(super) fn process(&self) -> Process {
        let types = Arc::clone(self.types);
        let kernel = KERNEL.clone().with_btf(types, Source::Running);
        Process::new(Host::default(), kernel, self.verifier.clone())
    }
}

/// Result of a program in the checked engine.
pub(super) fn ours(case: &Case, side: &OurSide<'_>, calls: &Cell<u64>) -> Left {
    let system = side.system;
    let rules = TestProgram::of(case.kind).expect("a type that is test-run");
    let (mut data, mut context, mut results) = (Vec::new(), Vec::new(), Vec::new());
    let maps = OurMaps::create(case, system);
    for cpu in case.runs() {
        let input = rules.test_input(&case.packet, &compare::context(case), system);
        let mut input = input.map_err(|errno| format!("errno {}", errno.0))?;
        let result = run(case, &mut input, (side, &maps, cpu), calls)?;
        let retval = input.end_run(result, system);
        results.push(retval.map_err(|errno| format!("errno {}", errno.0))?);
        data = input.data_out();
        context = match is_returned(case) {
            true => input.context_out(),
            false => Vec::new(),
        };
    }
    Ok((case.result(&results), data, context))
}

/// The maps of a program, and its host.
struct OurMaps {
    host: Host,
    maps: Vec<Map>,
}

impl OurMaps {
    fn create(case: &Case, system: &System) -> OurMaps {
        let host = own_host();
        let own = case.has_types.then(|| &*TYPES);
        let maps = case.maps.iter();
        let maps = maps.map(|map| typed_map(map, system, &host, own)).collect();
        OurMaps { host, maps }
    }
}

/// A host with as many CPUs as this machine.
pub(super) fn own_host() -> Host {
    Host::new(sys::bpf::possible_cpus() as u32, 0)
}

/// The metadata of a run on a CPU.
pub(super) fn metadata(cpu: Option<u32>) -> Metadata {
    cpu.map_or(Metadata::UNKNOWN, Metadata::from_cpu)
}

fn run(
    case: &Case,
    input: &mut TestInput,
    (side, OurMaps { host, maps }, cpu): (&OurSide<'_>, &OurMaps, Option<u32>),
    calls: &Cell<u64>,
) -> Result<u32, String> {
    let system = side.system;
    let process = side.process();
    let model = Model {
        types: case.has_types.then(|| &*TYPES),
        streams: Streams::new(),
    };
    let guard = RunGuard::new();
    let mut memory = Memory::new();
    if let Some(packet) = &mut input.packet {
        memory.add_packet(packet).expect("room for the packet");
    }
    if let Some(keys) = &mut input.flow_keys {
        let keys = memory.add("flow keys", keys).expect("room for the keys");
        let address = memory.address(keys).to_le_bytes();
        input.context[TestInput::FLOW_KEYS..][..8].copy_from_slice(&address);
    }
    if let Some(socket) = &input.packet_socket {
        let socket = memory.add_packet_socket(&socket.0);
        let address = memory.address(socket.expect("room for the socket"));
        input.context[TestInput::SOCKET..][..8].copy_from_slice(&address.to_le_bytes());
    }
    let context = (memory.add_context(&mut input.context)).expect("room for the context");
    for map in maps {
        let added = memory.add_map("map", map.handle(), &guard, Permission::ReadWrite);
        added.expect("room for the map");
    }
    memory.add_model(&host.objects, &model);
    memory.add_sockets(&system.network.sockets);
    let slots = case.slots(|is_map, index| {
        let address = match is_map {
            true => memory.map_pointer(index),
            false => memory.direct_value(index),
        };
        let address = address.expect("a map of the case");
        (0, [address as i32, (address >> 32) as i32])
    });
    let entry = Entry {
        arguments: [memory.address(context), 0, 0, 0, 0],
    };
    let metadata = metadata(cpu);
    let mut table = Calls::resolved(|number, arguments, memory| {
        calls.set(calls.get() + 1);
        let (mut random, mut clock) = (SplitMix::new(0), || 0);
        let packet = Packet::whole(&[], &metadata);
        let mut cx = RunContext {
            system,
            types: Some(side.types),
            process: Some(&process),
            ..RunContext::new(&packet, &mut random, Some(&mut clock))
        };
        let helper = kernel::find(number)?;
        Some(helper(arguments, memory, &mut cx))
    });
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut table,
        packet: None,
    };
    let program = CheckedProgram::new(decode(&slots))
        .with_exception_callback(case.exception_callback_at(&slots));
    let outcome = program.run(cx, entry, &Limits::default()).outcome;
    outcome
        .map(|value| value as u32)
        .map_err(|trap| trap.to_string())
}

/// The types of the program and its streams.
struct Model<'t> {
    types: Option<&'t ProgramTypes>,
    streams: Streams,
}

impl ModelPrograms for Model<'_> {
    fn layout(&self, _: u32, type_id: u32) -> Option<ObjectLayout> {
        object_layout(&self.types?.btf, None, TypeId(type_id))
    }

    fn streams(&self, _: u32) -> Option<&Streams> {
        Some(&self.streams)
    }
}

/// A map of a program without types.
pub(super) fn our_map(setup: &Setup, system: &System, host: &Host) -> Map {
    typed_map(setup, system, host, None)
}

fn typed_map(
    Setup(params, value): &Setup,
    system: &System,
    host: &Host,
    types: Option<&ProgramTypes>,
) -> Map {
    let size = params.value_size as usize;
    let layout = match (params.value_type, types) {
        (TypeId::VOID, _) => ValueLayout::plain(size),
        (value_type, Some(types)) => {
            let fields = FieldRecord::new(&types.btf, None, value_type, FieldSet::MAP_VALUE);
            ValueLayout::with_fields(size, &fields.expect("fields that Linux takes"))
        }
        (_, None) => ValueLayout {
            special: std::iter::once(LOCK..LOCK + 4).collect(),
            lock: Some(LOCK),
            ..ValueLayout::plain(size)
        },
    };
    let map = Map::create(params, layout, host).expect("a map that Linux creates");
    if let Some(value) = value {
        map.update(&[0; 4], value, 0).expect("an array");
    }
    if holds_sockets(params) {
        for (number, socket) in (0u32..).zip(system.network.sockets.list()) {
            // What the map does not take is not in it.
            let _ = (map.operations()).update_socket(&number.to_ne_bytes(), socket, 0);
        }
    }
    map
}

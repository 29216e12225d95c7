//! Runs programs here and in the running kernel.

use std::cell::Cell;
use std::{fs, thread};

use btf::{Btf, Kind, TypeId};
use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory, Permission};
use isa::ebpf::{RawInsn, decode};
use kernel::maps::{Host, Map, RunGuard, ValueLayout};
use kernel::programs::{TestInput, TestProgram};
use packet::{Metadata, Packet};
use program::MapParams;
use spec::SplitMix;
use spec::kfuncs::KernelFunction;
use spec::maps::MapKind;
use spec::programs::ProgramType;
use sys::Errno;
use sys::bpf::{BtfObject, LogLevel, Map as KernelMap, MapRequest, ProgLoad, TestRun};
use sys::network::{OwnNamespace, namespace_cookie};
use vm::network::{NetDevice, Network};
use vm::{RunContext, System};

use super::case::{Case, Setup, callbacks};
use super::{Family, native, sockets};
use crate::ebpf::Choices;
use crate::execution::Setting;
use crate::registry::fields::{FIELDS, value_with, with_callback};

/// Source registers of `ld_imm64` for a map and for a value of a map.
const PSEUDO_MAP_FD: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;
/// Opcode of calls, and their source register for kfuncs.
const CALL: u8 = 0x85;
const PSEUDO_KFUNC_CALL: u8 = 2;

/// `BPF_F_SLEEPABLE`, which programs of type syscall have.
const SLEEPABLE: u32 = 1 << 4;
/// `BPF_F_XDP_HAS_FRAGS`: the program takes packets in several pieces.
const XDP_HAS_FRAGS: u32 = 1 << 5;

/// Offset of the spin lock in the values of maps with types, which have 16 bytes.
const LOCK: usize = 8;

/// Most bytes that a test run returns.
const MOST_DATA: usize = 128 << 10;

/// Programs that were run on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Programs.
    pub programs: u64,
    /// Calls of helpers in them.
    pub calls: u64,
    /// Programs that return another value than 0 in the kernel.
    pub answers: u64,
    /// What differs, as text.
    pub differences: Vec<String>,
}

/// What a test run returns: the low half of the result, data and context; or why it does not.
pub(super) type Left = Result<(u32, Vec<u8>, Vec<u8>), String>;

/// Programs in one network of a family that has its own.
const PROGRAMS_IN_A_WORLD: u64 = 150;

/// Runs so many programs of a family here and in the kernel, in network namespaces of their
/// own.
///
/// # Errors
/// Why the kernel cannot be asked.
pub fn compare(family: Family, seed: u64, programs: u64) -> Result<Comparison, Errno> {
    run_worlds(None, family, seed, programs)
}

/// As [`compare`], with native code of the programs, verified for a kernel.
///
/// # Errors
/// As [`compare`].
pub fn compare_engines(
    setting: Setting<'_>,
    family: Family,
    seed: u64,
    programs: u64,
) -> Result<Comparison, Errno> {
    run_worlds(Some(setting), family, seed, programs)
}

fn run_worlds(
    setting: Option<Setting<'_>>,
    family: Family,
    seed: u64,
    programs: u64,
) -> Result<Comparison, Errno> {
    let most = match family.world {
        Some(_) => PROGRAMS_IN_A_WORLD,
        None => programs.max(1),
    };
    let mut all = Comparison::default();
    for (world, first) in (0..programs).step_by(most as usize).enumerate() {
        let count = most.min(programs - first);
        let seed = seed.wrapping_add(0x1_0000 * world as u64);
        let run = move || in_namespace(setting, family, seed, count);
        let compared = thread::scope(|scope| match scope.spawn(run).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })?;
        all.programs += compared.programs;
        all.calls += compared.calls;
        all.answers += compared.answers;
        all.differences.extend(compared.differences);
    }
    Ok(all)
}

/// Runs programs in one network namespace, which the thread enters.
fn in_namespace(
    setting: Option<Setting<'_>>,
    family: Family,
    seed: u64,
    programs: u64,
) -> Result<Comparison, Errno> {
    let _namespace = OwnNamespace::enter()?;
    let types = sys::kernel::btf().map_err(|_| Errno::EPERM)?;
    let mut choices = Choices::from_seed(seed);
    let mut system = own_system();
    if let Some(make_world) = family.world {
        system = make_world(&mut choices, system)?;
    }
    let mut comparison = Comparison::default();
    for _ in 0..programs {
        let case = (family.make)(&mut choices);
        let calls = Cell::new(0);
        let ours = ours(&case, &system, &calls);
        let theirs = theirs(&case, &types)?;
        comparison.programs += 1;
        comparison.calls += calls.get();
        comparison.answers += u64::from(matches!(theirs, Ok((1.., ..))));
        if let Some(setting) = setting {
            let native = native::left(setting, &case, &system);
            if native.as_ref().is_some_and(|native| *native != ours) {
                comparison.differences.push(format!(
                    "{family:?}: native code {native:x?}\nchecked {ours:x?}\n{:?}\n{}",
                    case.kind, case.text
                ));
            }
        }
        if ours != theirs {
            comparison.differences.push(format!(
                "{family:?}: here {ours:x?}\nin the kernel {theirs:x?}\n{:?}\n{}\n{:?}\n{:02x?}\n{:02x?}{}",
                case.kind, case.text, case.maps, case.packet, case.context, socket_list(&system)
            ));
        }
    }
    Ok(comparison)
}

/// The sockets of a system, a line for each.
fn socket_list(system: &System) -> String {
    let list = system.network.sockets.list().iter();
    list.map(|socket| {
        format!(
            "\n{:?} {:?} {} {} only IPv6: {} device {} mark {} group {:?} cpu {:?}",
            socket.protocol,
            socket.state,
            socket.local,
            socket.remote,
            socket.is_ipv6_only,
            socket.device,
            socket.mark,
            socket.group,
            socket.incoming_cpu
        )
    })
    .collect()
}

/// What helpers report of this thread.
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

/// What a program leaves in the checked engine.
fn ours(case: &Case, system: &System, calls: &Cell<u64>) -> Left {
    let rules = TestProgram::of(case.kind).expect("a type that is test-run");
    let input = rules.test_input(&case.packet, &case.context, system);
    let mut input = input.map_err(|errno| format!("errno {}", errno.0))?;
    let result = run(case, &mut input, system, calls)?;
    let retval = input.end_run(result, system);
    let retval = retval.map_err(|errno| format!("errno {}", errno.0))?;
    let context = match is_returned(case) {
        true => input.context_out(),
        false => Vec::new(),
    };
    Ok((retval, input.data_out(), context))
}

fn run(
    case: &Case,
    input: &mut TestInput,
    system: &System,
    calls: &Cell<u64>,
) -> Result<u32, String> {
    let maps: Vec<Map> = case.maps.iter().map(|map| our_map(map, system)).collect();
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
    for map in &maps {
        let added = memory.add_map("map", map, &guard, Permission::ReadWrite);
        added.expect("room for the map");
    }
    memory.add_sockets(&system.network.sockets);
    let slots = case.slots(|is_map, index| {
        let address = match is_map {
            true => memory.map_pointer(index),
            false => memory.numbered_map_value(index, 0),
        };
        let address = address.expect("a map of the case");
        (0, [address as i32, (address >> 32) as i32])
    });
    let entry = Entry {
        arguments: [memory.address(context), 0, 0, 0, 0],
    };
    let mut table = Calls::resolved(|number, arguments, memory| {
        calls.set(calls.get() + 1);
        let (mut random, mut clock) = (SplitMix::new(0), || 0);
        let packet = Packet::whole(&[], &Metadata::UNKNOWN);
        let mut cx = RunContext {
            system,
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
    let program = CheckedProgram::new(decode(&slots));
    let outcome = program.run(cx, entry, &Limits::default()).outcome;
    outcome
        .map(|value| value as u32)
        .map_err(|trap| trap.to_string())
}

pub(super) fn our_map(Setup(params, value): &Setup, system: &System) -> Map {
    let mut layout = ValueLayout::plain(params.value_size as usize);
    if params.value_type != TypeId::VOID {
        layout.special.push(LOCK..LOCK + 4);
        layout.lock = Some(LOCK);
    }
    let map = Map::create(params, layout, &Host::default()).expect("a map that Linux creates");
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

/// True for maps that the sockets of the world are put into.
fn holds_sockets(params: &MapParams) -> bool {
    let kinds = [MapKind::Sockmap, MapKind::Sockhash];
    kinds.iter().any(|kind| kind.number() == params.map_type)
}

fn kernel_map(Setup(params, value): &Setup) -> Result<KernelMap, Errno> {
    let locked = value_with(FIELDS[0]);
    let types = match params.value_type {
        TypeId::VOID => None,
        _ => Some(BtfObject::load(&locked.blob)?),
    };
    let has_types = u32::from(types.is_some());
    let map = KernelMap::create(&MapRequest {
        btf: types.as_ref(),
        btf_key: locked.key.0 * has_types,
        btf_value: locked.value.0 * has_types,
        map_type: params.map_type,
        key_size: params.key_size,
        value_size: params.value_size,
        max_entries: params.max_entries,
        flags: params.flags.0,
        ..MapRequest::default()
    })?;
    if let Some(value) = value {
        map.update(&[0; 4], value)?;
        map.freeze()?;
    }
    if holds_sockets(params) {
        sockets::fill(&map);
    }
    Ok(map)
}

/// True if a test run returns the context. Without one that is given, the kernel takes zeros
/// for it.
pub(super) fn is_returned(case: &Case) -> bool {
    use ProgramType::{FlowDissector, Netfilter, RawTracepoint, SkLookup, Syscall, Xdp};
    match case.kind {
        Netfilter | RawTracepoint | Syscall => false,
        Xdp | FlowDissector | SkLookup => !case.context.is_empty(),
        _ => true,
    }
}

/// The attach type that loading a type demands.
pub(super) fn attach_type(kind: ProgramType) -> u32 {
    const SK_LOOKUP: u32 = 36;
    const NETFILTER: u32 = 45;
    match kind {
        ProgramType::SkLookup => SK_LOOKUP,
        ProgramType::Netfilter => NETFILTER,
        _ => 0,
    }
}

/// Puts BTF ids of the running kernel into calls of kfuncs.
fn put_kfuncs(slots: &mut [RawInsn], types: &Btf<'_>) {
    for slot in slots {
        let is_call = slot.code == CALL && slot.src() == 0;
        let function = KernelFunction::of_number(slot.imm).filter(|_| is_call);
        if let Some(name) = function.and_then(KernelFunction::name) {
            let func = types.find(Kind::Func, name);
            slot.set_src(PSEUDO_KFUNC_CALL);
            slot.imm = func.map_or(0, |func| func.id().0 as i32);
        }
    }
}

/// What a program leaves in the running kernel.
fn theirs(case: &Case, types: &Btf<'_>) -> Result<Left, Errno> {
    let maps: Result<Vec<KernelMap>, Errno> = case.maps.iter().map(kernel_map).collect();
    let maps = maps?;
    let mut slots = case.slots(|is_map, index| {
        let source = if is_map {
            PSEUDO_MAP_FD
        } else {
            PSEUDO_MAP_VALUE
        };
        (source, [maps[index as usize].descriptor() as i32, 0])
    });
    put_kfuncs(&mut slots, types);
    let callbacks = callbacks(&slots);
    let (own, [main, callback]) = with_callback();
    let own = match callbacks.is_empty() {
        true => None,
        false => Some(BtfObject::load(&own)?),
    };
    let info = callbacks.iter().map(|start| [*start, callback.0]);
    let func_info: Vec<[u32; 2]> = [[0, main.0]].into_iter().chain(info).collect();
    let request = ProgLoad {
        btf: own.as_ref(),
        func_info: match own {
            Some(_) => &func_info,
            None => &[],
        },
        flags: match case.kind {
            ProgramType::Syscall => SLEEPABLE,
            _ if case.has_fragments => XDP_HAS_FRAGS,
            _ => 0,
        },
        expected_attach_type: attach_type(case.kind),
        ..ProgLoad::new(case.kind.number(), &slots)
    };
    let (loaded, _) = match request.load() {
        Ok(loaded) => loaded,
        Err(refused) if refused.errno == Errno::EPERM => return Err(refused.errno),
        Err(refused) => {
            let again = request.with_log(LogLevel::LEVEL1).load();
            let why = again.map_err(|refused| refused.reason().to_owned());
            return Ok(Err(format!("refused: {:?} {why:?}", refused.errno)));
        }
    };
    let has_data = !matches!(
        case.kind,
        ProgramType::SkLookup | ProgramType::Syscall | ProgramType::RawTracepoint
    );
    let mut data = vec![0; if has_data { MOST_DATA } else { 0 }];
    let mut context = vec![0; if is_returned(case) { 256 } else { 0 }];
    let test = TestRun {
        context: &case.context,
        repeat: u32::from(!matches!(
            case.kind,
            ProgramType::Syscall | ProgramType::RawTracepoint
        )),
        ..TestRun::on(&case.packet)
    };
    let result = match loaded.test_run(&test, &mut data, &mut context) {
        Ok(result) => result,
        Err(errno) => return Ok(Err(format!("errno {}", errno.0))),
    };
    data.truncate(result.data_len);
    context.truncate(result.context_len);
    Ok(Ok((result.retval, data, context)))
}

//! Run context of a program: context, packet, maps and helpers, made of a seed.

use std::sync::Arc;

use btf::{Btf, TypeId};
use interp::checked::{Calls, CheckedProgram, Memory, NoRoom};
use kernel::maps::RunGuard;
use kernel::object_layout;
use kernel::programs::{self, PacketContext, TestInput};
use packet::{Metadata, Packet};
use program::Program;
use spec::kfuncs::KernelFunction;
use spec::programs::ProgramType;
use spec::registry::SpecialKfunc;
use spec::{Kernel, Random, SplitMix};
use vm::{
    FLOW_DISSECTOR, HEADROOM, ModelPrograms, ObjectLayout, PacketBuffer, RunContext, Streams,
};

use super::maps::{Instances, MapSet, RunMaps};
use testkit::ebpf::Choices;

/// Bytes behind a packet that programs can add.
const TAILROOM: usize = 256;
/// Most bytes of a packet.
const MAX_PACKET: u32 = 220;
/// Bytes of `struct bpf_flow_keys`.
const FLOW_KEYS: usize = 56;
/// Fields of contexts that are pointers to sockets, which runs have none of, by the size of
/// the context: `sk` of `struct __sk_buff` and of `struct bpf_sk_lookup`.
const SOCKETS: &[(usize, usize)] = &[(192, 168), (SK_LOOKUP, 0)];
/// Bytes of `struct bpf_sk_lookup`.
const SK_LOOKUP: usize = 72;
/// Bytes of the context of a raw tracepoint: 12 numbers.
const TRACEPOINT: usize = 12 * 8;
/// Bytes of the context of a syscall program, which users choose.
const SYSCALL: usize = 1024;

/// The context of a program type.
#[derive(Clone, Copy)]
enum Shape {
    /// A structure with a packet.
    Packet(PacketContext),
    /// Bytes.
    Bytes(usize),
}

/// Common setting of the runs of a program.
pub(super) struct Setting {
    shape: Shape,
    maps: MapSet,
    cpus: u32,
    model: Model,
}

/// What calls of a run find of its program.
struct Model {
    types: Option<Arc<Btf<'static>>>,
    kernel: Option<Arc<Btf<'static>>>,
    streams: Streams,
}

impl ModelPrograms for Model {
    fn layout(&self, _: u32, type_id: u32) -> Option<ObjectLayout> {
        object_layout(
            self.types.as_ref()?,
            self.kernel.as_deref(),
            TypeId(type_id),
        )
    }

    fn streams(&self, _: u32) -> Option<&Streams> {
        Some(&self.streams)
    }
}

/// Packet and context of one run.
pub(super) struct Input {
    pub(super) packet: Option<PacketBuffer>,
    pub(super) context: Vec<u8>,
    /// Flow keys behind the context of a flow dissector.
    pub(super) flow_keys: Option<Vec<u8>>,
}

/// Addresses of the objects of a run.
#[derive(Clone, Copy)]
pub(super) struct Places<'s> {
    /// Address of the context.
    pub(super) context: u64,
    /// Address of the flow keys; 0 without them.
    pub(super) flow_keys: u64,
    pub(super) instances: &'s Instances,
}

impl Setting {
    /// What a program needs on a kernel; `Err` says what is not to be had.
    pub(super) fn new(program: &Program, kernel: &Kernel) -> Result<Setting, String> {
        let shape = match program.kind() {
            ProgramType::Xdp => Shape::Packet(programs::XDP),
            ProgramType::SchedCls
            | ProgramType::SchedAct
            | ProgramType::SocketFilter
            | ProgramType::CgroupSkb
            | ProgramType::LwtIn
            | ProgramType::LwtOut
            | ProgramType::LwtXmit => Shape::Packet(programs::SKB),
            ProgramType::FlowDissector => Shape::Packet(FLOW_DISSECTOR),
            ProgramType::SkLookup => Shape::Bytes(SK_LOOKUP),
            ProgramType::RawTracepoint => Shape::Bytes(TRACEPOINT),
            ProgramType::Syscall => Shape::Bytes(SYSCALL),
            kind => return Err(format!("program type {kind:?}")),
        };
        let cpus = kernel.cpus().max(1);
        Ok(Setting {
            shape,
            maps: MapSet::new(program, kernel, cpus)?,
            cpus,
            model: Model {
                types: program.btf().cloned(),
                kernel: kernel.btf().cloned(),
                streams: Streams::new(),
            },
        })
    }

    /// The input of a run, of a seed.
    pub(super) fn input(&self, seed: u64) -> Input {
        let mut choices = Choices::from_seed(seed);
        let (size, packet) = match self.shape {
            Shape::Bytes(size) => (size, None),
            Shape::Packet(context) => {
                let len = match choices.below(4) {
                    0 => choices.below(20),
                    1 => 14 + choices.below(60),
                    _ => choices.below(MAX_PACKET),
                };
                // Linux gives programs at least the link-layer header.
                let packet: Vec<u8> = (0..len.max(14)).map(|_| byte(&mut choices)).collect();
                let packet = PacketBuffer::new(context, &packet, HEADROOM, TAILROOM);
                (context.size, Some(packet))
            }
        };
        let words = (0..size.div_ceil(4)).map(|_| choices.value() as u32);
        let mut context: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let socket = SOCKETS.iter().find(|(of, _)| *of == size);
        if let Some(&(_, at)) = socket {
            context[at..at + 8].fill(0);
        }
        let is_dissector =
            matches!(self.shape, Shape::Packet(context) if context == FLOW_DISSECTOR);
        let flow_keys = (0..FLOW_KEYS).map(|_| byte(&mut choices)).collect();
        Input {
            packet,
            context,
            flow_keys: is_dissector.then_some(flow_keys),
        }
    }

    /// The maps of a run.
    pub(super) fn maps(&self, seed: u64) -> Result<RunMaps<'_>, String> {
        self.maps.create(seed)
    }

    /// Lays out input and maps in a memory.
    pub(super) fn prepare<'s, 'm>(
        &'s self,
        guard: &'m RunGuard,
        input: &'m mut Input,
        maps: &'m RunMaps<'_>,
    ) -> Result<(Memory<'m>, Places<'s>), NoRoom>
    where
        's: 'm,
    {
        let mut memory = Memory::new();
        if let Some(packet) = &mut input.packet {
            memory.add_packet(packet)?;
        }
        let mut flow_keys = 0;
        if let Some(keys) = &mut input.flow_keys {
            let keys = memory.add("flow keys", keys)?;
            flow_keys = memory.address(keys);
            let field = TestInput::FLOW_KEYS;
            input.context[field..field + 8].copy_from_slice(&flow_keys.to_le_bytes());
        }
        let context = memory.add_context(&mut input.context)?;
        maps.add_to(&mut memory, guard)?;
        memory.add_model(&maps.objects, &self.model);
        let places = Places {
            context: memory.address(context),
            flow_keys,
            instances: self.maps.instances(),
        };
        Ok((memory, places))
    }

    /// The helpers of a run. Tail calls mostly start the program again.
    pub(super) fn calls(&self, program: &Arc<CheckedProgram>, seed: u64) -> Calls<'_> {
        let mut random = SplitMix::new(seed);
        let mut ticks = SplitMix::new(!seed);
        let cpu = random.next_u32() % self.cpus;
        let metadata = Metadata::from_cpu(cpu);
        let mut now = 0u64;
        let mut calls = Calls::resolved(move |number, arguments, memory| {
            let mut clock = || {
                now += u64::from(ticks.next_u32());
                now
            };
            let packet = Packet::whole(&[], &metadata);
            let mut cx = RunContext::new(&packet, &mut random, Some(&mut clock));
            let helper = kernel::find(number)?;
            let result = helper(arguments, memory, &mut cx);
            // Linux takes the error number of these for one of 64 bits.
            match takes_resilient_lock(number) {
                true => Some(result.map(|errno| errno as i32 as u64)),
                false => Some(result),
            }
        });
        let program = Arc::clone(program);
        calls.set_tail_targets(move |_, index: u32| (index % 3 != 2).then(|| Arc::clone(&program)));
        calls
    }
}

/// True for the kernel functions that take a resilient lock, or fail to.
fn takes_resilient_lock(number: i32) -> bool {
    let name = KernelFunction::from_number(number).and_then(KernelFunction::name);
    let special = name.and_then(SpecialKfunc::named);
    special.is_some_and(SpecialKfunc::may_fail_to_lock)
}

/// A byte, more often one at a border.
pub(super) fn byte(choices: &mut Choices<'_>) -> u8 {
    match choices.below(4) {
        0 => choices.pick(&[0, 0, 1, 0x7f, 0x80, 0xff]),
        1 => choices.below(16) as u8,
        _ => choices.below(256) as u8,
    }
}

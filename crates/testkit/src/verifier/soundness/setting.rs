//! What a program runs in: context, packet, array maps, made of a seed.

use interp::checked::{Calls, Memory, NoRoom, Permission};
use kernel::maps::{Host, Map, RunGuard, ValueLayout};
use kernel::programs::{self, PacketContext};
use packet::{Metadata, Packet};
use program::Program;
use spec::maps::MapKind;
use spec::programs::ProgramType;
use spec::{Random, SplitMix};
use vm::{CellSlice, HEADROOM, PacketBuffer, RunContext};

use crate::ebpf::Choices;

/// Most values of a map that a run gets.
const MAX_ENTRIES: u32 = 4096;
/// `BPF_F_RDONLY_PROG`: programs may only read the map.
const RDONLY_PROG: u32 = 1 << 7;
/// Bytes behind a packet that programs can add.
const TAILROOM: usize = 256;
/// Most bytes of a packet.
const MAX_PACKET: u32 = 220;

/// What the runs of a program have in common.
pub(super) struct Setting {
    context: PacketContext,
    maps: Vec<ArrayMap>,
    cpus: u32,
}

struct ArrayMap {
    name: String,
    map: Map,
    permission: Permission,
    /// The first value of maps that hold global variables.
    initial: Option<Vec<u8>>,
    is_frozen: bool,
}

/// Packet and context of one run.
pub(super) struct Input {
    pub(super) packet: PacketBuffer,
    pub(super) context: Vec<u8>,
}

impl Setting {
    /// What a program needs on a machine of so many CPUs; `Err` says what is not to be had.
    pub(super) fn new(program: &Program, cpus: u32) -> Result<Setting, String> {
        let context = match program.kind() {
            ProgramType::Xdp => programs::XDP,
            ProgramType::SchedCls
            | ProgramType::SchedAct
            | ProgramType::SocketFilter
            | ProgramType::CgroupSkb
            | ProgramType::LwtIn
            | ProgramType::LwtOut
            | ProgramType::LwtXmit => programs::SKB,
            kind => return Err(format!("program type {kind:?}")),
        };
        let maps = program.maps().iter().map(|def| {
            let kind = def.kind().filter(|kind| *kind == MapKind::Array);
            let params = &def.params;
            if kind.is_none() || params.max_entries > MAX_ENTRIES {
                return Err(match def.kind() {
                    Some(kind) => format!("map {kind:?}"),
                    None => "unknown map".to_owned(),
                });
            }
            let value = ValueLayout::plain(params.value_size as usize);
            let map = Map::create(params, value, &Host::default());
            Ok(ArrayMap {
                name: def.name.clone(),
                map: map.map_err(|errno| format!("map that is not created: {errno:?}"))?,
                permission: match params.flags.0 & RDONLY_PROG {
                    0 => Permission::ReadWrite,
                    _ => Permission::ReadOnly,
                },
                initial: def.initial_value().map(|image| image.to_vec()),
                is_frozen: def.is_frozen(),
            })
        });
        Ok(Setting {
            context,
            maps: maps.collect::<Result<_, String>>()?,
            cpus,
        })
    }

    /// The input of a run, of a seed.
    pub(super) fn input(&self, seed: u64) -> Input {
        let mut choices = Choices::from_seed(seed);
        let len = match choices.below(4) {
            0 => choices.below(20),
            1 => 14 + choices.below(60),
            _ => choices.below(MAX_PACKET),
        };
        // Linux gives programs at least the link-layer header.
        let packet: Vec<u8> = (0..len.max(14)).map(|_| byte(&mut choices)).collect();
        let packet = PacketBuffer::new(self.context, &packet, HEADROOM, TAILROOM);
        let context = (0..self.context.size.div_ceil(4))
            .flat_map(|_| (choices.value() as u32).to_le_bytes())
            .collect();
        Input { packet, context }
    }

    /// Values of the maps for a run: what the program's object says, bytes of the seed
    /// where nothing is said or programs may have changed it.
    fn fill_maps(&self, guard: &RunGuard, seed: u64) {
        let mut choices = Choices::from_seed(!seed);
        for map in &self.maps {
            for (number, cells) in map.values(guard).enumerate() {
                let mut value: Vec<u8> = (0..cells.len()).map(|_| byte(&mut choices)).collect();
                let is_initial = map.is_frozen || choices.percent(30);
                if let Some(initial) = &map.initial
                    && number == 0
                    && is_initial
                {
                    value.copy_from_slice(initial);
                }
                cells.write(0, &value);
            }
        }
    }

    /// Lays out the input in a memory, with the maps filled; the address of the context.
    pub(super) fn prepare<'m>(
        &'m self,
        guard: &'m RunGuard,
        packet: &'m mut PacketBuffer,
        context: &'m mut [u8],
        seed: u64,
    ) -> Result<(Memory<'m>, u64), NoRoom> {
        self.fill_maps(guard, seed);
        let mut memory = Memory::new();
        memory.add_packet(packet)?;
        let context = memory.add_context(context)?;
        for (index, map) in (0..).zip(&self.maps) {
            memory.add_map(&*map.name, &map.map, guard, map.permission)?;
            for cells in map.values(guard) {
                memory.map_value(index, cells)?;
            }
        }
        let context = memory.address(context);
        Ok((memory, context))
    }

    /// The helpers of a run.
    pub(super) fn calls(&self, seed: u64) -> Calls<'_> {
        let mut random = SplitMix::new(seed);
        let mut ticks = SplitMix::new(!seed);
        let cpu = random.next_u32() % self.cpus.max(1);
        let metadata = Metadata::of_cpu(cpu);
        let mut now = 0u64;
        Calls::resolved(move |number, arguments, memory| {
            let mut clock = || {
                now += u64::from(ticks.next_u32());
                now
            };
            let packet = Packet::whole(&[], &metadata);
            let mut cx = RunContext::new(&packet, &mut random, Some(&mut clock));
            let helper = kernel::helpers::find(number)?;
            Some(helper(arguments, memory, &mut cx))
        })
    }

    /// Contents of all maps.
    pub(super) fn contents(&self, guard: &RunGuard) -> Vec<Vec<u8>> {
        let contents = |map: &ArrayMap| map.values(guard).flat_map(CellSlice::to_vec).collect();
        self.maps.iter().map(contents).collect()
    }
}

impl ArrayMap {
    /// The values in the order of their indices.
    fn values<'g>(&'g self, guard: &'g RunGuard) -> impl Iterator<Item = CellSlice<'g>> {
        let entries = self.map.params().max_entries;
        let lookup = |index: u32| {
            let operations = self.map.operations();
            operations.lookup(guard, 0, &index.to_ne_bytes())
        };
        (0..entries).filter_map(lookup)
    }
}

/// A byte, more often one at a border.
fn byte(choices: &mut Choices<'_>) -> u8 {
    match choices.below(4) {
        0 => choices.pick(&[0, 0, 1, 0x7f, 0x80, 0xff]),
        1 => choices.below(16) as u8,
        _ => choices.below(256) as u8,
    }
}

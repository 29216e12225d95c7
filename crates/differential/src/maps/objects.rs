//! Objects that values name: programs and maps of the kernel with ours beside them, found
//! by the same numbers.

use std::collections::HashMap;
use std::sync::Arc;

use ::kernel::maps::{
    Cgroup, Host, Map, ProgramClass, Resources, Socket, StoredMap, StoredProgram, ValueLayout,
};
use btf::TypeId;
use isa::ebpf::{assemble, encode};
use program::MapParams;
use spec::Errno;
use spec::maps::{MapFlags, MapKind};
use spec::programs::{AttachType, ProgramType};
use sys::bpf::{LoadedProgram, Map as KernelMap, MapRequest, ProgLoad};

use super::descriptors::Descriptors;
use super::errno;
use super::generate::{Dice, Shape};

/// A number that names nothing.
const NOTHING: u32 = 0x7fff_fff0;

/// The loopback interface, in every network namespace.
const LOOPBACK: u32 = 1;

/// `BPF_F_XDP_HAS_FRAGS`.
const HAS_FRAGS: u32 = 1 << 5;

/// Open objects.
pub(super) struct Objects {
    programs: HashMap<u32, (LoadedProgram, Arc<StoredProgram>)>,
    maps: HashMap<u32, (KernelMap, Arc<StoredMap>)>,
    /// Descriptors of programs, then of maps, in the order in which they were made.
    descriptors: Vec<u32>,
    others: Descriptors,
}

impl Objects {
    /// Objects of each kind that makes a difference. The error is the kernel's.
    pub(super) fn open(cpus: u32) -> Result<Objects, Errno> {
        let mut objects = Objects {
            programs: HashMap::new(),
            maps: HashMap::new(),
            descriptors: Vec::new(),
            others: Descriptors::open()?,
        };
        let xdp = ProgramType::Xdp;
        for (program_type, attach_type, flags) in [
            (xdp, 0, 0),
            (xdp, 0, 0),
            (xdp, AttachType::XdpDevmap.number(), 0),
            (xdp, AttachType::XdpCpumap.number(), 0),
            (xdp, 0, HAS_FRAGS),
            (ProgramType::SocketFilter, 0, 0),
        ] {
            objects.add_program(program_type, attach_type, flags)?;
        }
        for shape in Objects::inner_shapes() {
            objects.add_map(&shape, cpus)?;
        }
        Ok(objects)
    }

    /// Maps that differ in each parameter from the first one.
    fn inner_shapes() -> [Shape; 9] {
        let array = MapParams {
            map_type: MapKind::Array.number(),
            key_size: 4,
            value_size: 8,
            max_entries: 2,
            ..MapParams::default()
        };
        let kind = |kind: MapKind, key_size| MapParams {
            map_type: kind.number(),
            key_size,
            ..array
        };
        [
            array,
            array,
            MapParams {
                max_entries: 3,
                ..array
            },
            MapParams {
                flags: MapFlags::INNER_MAP,
                ..array
            },
            MapParams {
                value_size: 4,
                ..array
            },
            kind(MapKind::Hash, 4),
            kind(MapKind::Queue, 0),
            MapParams {
                value_size: 4,
                ..kind(MapKind::ProgArray, 4)
            },
            MapParams {
                value_size: 4,
                ..kind(MapKind::PerfEventArray, 4)
            },
        ]
        .map(Shape)
    }

    fn add_program(
        &mut self,
        program_type: ProgramType,
        attach_type: u32,
        flags: u32,
    ) -> Result<(), Errno> {
        let program = assemble("r0 = 2\nexit").expect("two instructions");
        let slots = encode(&program).expect("encodable instructions");
        let request = ProgLoad {
            expected_attach_type: attach_type,
            flags,
            ..ProgLoad::new(program_type.number(), &slots)
        };
        let (loaded, _) = request.load().map_err(|refused| errno(refused.errno))?;
        let stored = StoredProgram {
            id: loaded.info().map_err(errno)?.id,
            class: ProgramClass {
                program_type,
                attach_type,
                has_frags: flags & HAS_FRAGS != 0,
                is_native: true,
                is_device_bound: false,
                cgroup_storage: [0; 2],
            },
            target: None,
        };
        self.descriptors.push(loaded.descriptor());
        self.programs
            .insert(loaded.descriptor(), (loaded, Arc::new(stored)));
        Ok(())
    }

    fn add_map(&mut self, shape: &Shape, cpus: u32) -> Result<(), Errno> {
        let kernel = KernelMap::create(&self.request(shape)).map_err(errno)?;
        let value = ValueLayout::plain(shape.0.value_size as usize);
        let stored = StoredMap::new(
            kernel.info().map_err(errno)?.id,
            Arc::new(Map::create(&shape.0, value, &Host::new(cpus, 7))?),
        );
        self.descriptors.push(kernel.descriptor());
        self.maps
            .insert(kernel.descriptor(), (kernel, Arc::new(stored)));
        Ok(())
    }

    /// A template for inner maps, of one of the kinds, or none.
    pub(super) fn template(&self, dice: &mut Dice) -> Option<(&KernelMap, &Map)> {
        let descriptor = self.descriptor(dice);
        let (kernel, stored) = self.maps.get(&descriptor)?;
        Some((kernel, &stored.map))
    }

    /// The template that most inner maps fit.
    pub(super) fn usual_template(&self) -> (&KernelMap, &Map) {
        let first = self.descriptors[self.programs.len()];
        let (kernel, stored) = &self.maps[&first];
        (kernel, &stored.map)
    }

    fn descriptor(&self, dice: &mut Dice) -> u32 {
        match dice.one_in(8) {
            true => dice.pick(&[NOTHING, u32::MAX]),
            false => dice.pick(&self.descriptors),
        }
    }

    /// A descriptor of the objects that a map of this kind refers to, at times another.
    fn other(&self, kind: MapKind, dice: &mut Dice) -> u32 {
        let fitting = self.others.of(kind);
        match dice.one_in(8) || fitting.is_empty() {
            true => self.descriptor(dice),
            false => dice.pick(&fitting),
        }
    }

    /// A key for a map of this kind; `None` where any bytes will do.
    pub(super) fn key(&self, kind: MapKind, dice: &mut Dice) -> Option<Vec<u8>> {
        use MapKind::{CgrpStorage, InodeStorage, SkStorage, TaskStorage};
        matches!(kind, SkStorage | InodeStorage | TaskStorage | CgrpStorage)
            .then(|| self.other(kind, dice).to_ne_bytes().to_vec())
    }

    /// The request to the kernel for a map of these parameters.
    pub(super) fn request(&self, shape: &Shape) -> MapRequest<'_> {
        let params = shape.0;
        let is_typed = params.key_type != TypeId::VOID;
        MapRequest {
            map_type: params.map_type,
            key_size: params.key_size,
            value_size: params.value_size,
            max_entries: params.max_entries,
            flags: params.flags.0,
            extra: params.extra,
            numa_node: params.numa_node,
            btf: is_typed.then_some(&self.others.types),
            btf_key: params.key_type.0,
            btf_value: params.value_type.0,
            ..MapRequest::default()
        }
    }

    /// A value for a map of this kind; `None` where any bytes will do.
    pub(super) fn value(&self, kind: MapKind, len: usize, dice: &mut Dice) -> Option<Vec<u8>> {
        use MapKind::{
            ArrayOfMaps, CgroupArray, Cpumap, Devmap, DevmapHash, HashOfMaps, PerfEventArray,
            ProgArray, ReuseportSockarray, Sockhash, Sockmap, Xskmap,
        };
        let number = match kind {
            Devmap | DevmapHash => dice.pick(&[LOOPBACK, LOOPBACK, LOOPBACK, 0, NOTHING]),
            Cpumap => dice.pick(&[0, 1, 64, 16384, 16385, u32::MAX]),
            ProgArray | PerfEventArray | ArrayOfMaps | HashOfMaps => self.descriptor(dice),
            CgroupArray | Xskmap => self.other(kind, dice),
            ReuseportSockarray | Sockmap | Sockhash => {
                let high = u32::from(dice.one_in(20));
                let value = [self.other(kind, dice).to_ne_bytes(), high.to_ne_bytes()].concat();
                return Some(value[..len.min(8)].to_vec());
            }
            _ => return None,
        };
        let program = match dice.below(3) {
            0 => self.descriptor(dice),
            1 => dice.pick(&self.descriptors[..4]),
            _ => 0,
        };
        let value = [number.to_ne_bytes(), program.to_ne_bytes()].concat();
        Some(value[..len.min(8)].to_vec())
    }
}

impl Resources for Objects {
    fn program(&self, descriptor: u32) -> Option<Arc<StoredProgram>> {
        let (_, stored) = self.programs.get(&descriptor)?;
        Some(Arc::clone(stored))
    }

    fn map(&self, descriptor: u32) -> Option<Arc<StoredMap>> {
        let (_, stored) = self.maps.get(&descriptor)?;
        Some(Arc::clone(stored))
    }

    fn socket(&self, descriptor: u32) -> Option<Arc<Socket>> {
        self.others.socket(descriptor)
    }

    fn cgroup(&self, descriptor: u32) -> Option<Arc<Cgroup>> {
        self.others.cgroup(descriptor)
    }

    fn owner(&self, kind: MapKind, descriptor: u32) -> Result<u64, Errno> {
        match (kind, self.is_open(descriptor)) {
            (_, false) | (MapKind::TaskStorage, _) => Err(Errno::EBADF),
            // Sockets have an inode each, programs and maps one in common.
            (MapKind::InodeStorage, true) => Ok(match self.socket(descriptor) {
                Some(socket) => socket.cookie,
                None => 0,
            }),
            (MapKind::CgrpStorage, true) => {
                let cgroup = self.cgroup(descriptor);
                cgroup.map(|cgroup| cgroup.id).ok_or(Errno::EBADF)
            }
            _ => {
                let socket = self.socket(descriptor);
                socket.map(|socket| socket.cookie).ok_or(Errno::ENOTSOCK)
            }
        }
    }

    fn has_interface(&self, index: u32) -> bool {
        index == LOOPBACK
    }
}

//! Map definitions with types, each used by a program, as a loader gives them to the kernel and
//! as our verification takes them: whether the map is created, with which error number it is not,
//! and what becomes of the program.

use std::fs;
use std::ops::Range;
use std::sync::Arc;

use btf::{Btf, TypeId};
use isa::ebpf::{assemble, encode};
use program::creation::{MapCreator, MapFault, MapRefusal};
use program::{MapDef, MapParams, Program};
use spec::kernel::{Privileges, Source};
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;
use spec::{Errno, Kernel};
use sys::bpf::possible_cpus;
use verifier::{Options, Verdict, verify};

use super::generate::{Dice, KINDS, any_shape};
use super::{MapComparison, MapDifference, Shape};
use crate::registry::fields::{FIELDS, Types};
use kernel_client::load::{LoadFault, LoadRequest, Resources, load};
use kernel_client::unprivileged::Caller;

/// Most bytes of memory of a map that is made for a comparison.
const MOST_MEMORY: u64 = 16 << 20;

/// Creates maps of random definitions, one for each seed, and loads a program that uses each; the
/// operations of the result are definitions, its successes maps that were created. The error is
/// the kernel's, if it creates no maps for us at all.
pub fn compare_definitions(
    seeds: Range<u64>,
    privileges: Privileges,
) -> Result<MapComparison, Errno> {
    let caller = Caller::with(privileges).ok_or(Errno::EPERM)?;
    let kernel = kernel_data::linux_6_18_minimal()
        .with_cpus(possible_cpus() as u32, Source::Running)
        .with_memory(machine_memory(), Source::Running)
        .with_privileges(privileges, Source::Given);
    let described = Described::new();
    let mut comparison = MapComparison::default();
    for seed in seeds {
        let mut dice = Dice::new(seed);
        let def = described.definition(&mut dice);
        let program = described.program(def, &mut dice);
        if !is_asked(&program, &kernel) {
            continue;
        }
        let theirs = of_kernel(&program, &caller);
        let ours = ours(&program, &kernel, caller.has_all());
        comparison.operations += 1;
        comparison.successes += u64::from(!theirs.starts_with("not created"));
        if theirs != ours {
            let map = &program.maps()[0];
            comparison.differences.push(MapDifference {
                seed,
                shape: Shape(map.params),
                operation: format!(
                    "{privileges:?}, types {:?}",
                    (map.has_btf, map.params.key_type, map.params.value_type,)
                ),
                kernel: theirs,
                ours,
            });
        }
    }
    Ok(comparison)
}

/// Bytes of memory of this machine; none where the system does not tell.
fn machine_memory() -> u64 {
    let about = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = about
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = total.and_then(|total| total.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.unwrap_or(0u64) << 10
}

/// True if the map takes little of this machine's memory, or more than it has in one piece: no
/// other part is allocated before the kernel refuses it.
fn is_asked(program: &Program, kernel: &Kernel) -> bool {
    let Some(registry) = kernel.registry() else {
        return false;
    };
    let all = kernel
        .clone()
        .with_privileges(Privileges::ALL, Source::Given);
    let creator = MapCreator::new(&all, registry);
    let def = &program.maps()[0];
    match creator.create(def, program.btf().map(|types| &**types)) {
        Ok(created) => created.memory <= MOST_MEMORY,
        Err(MapRefusal {
            fault: MapFault::Memory { bytes, memory },
            ..
        }) => def.kind().is_some_and(is_one_piece) && bytes > memory + memory / 8,
        Err(_) => true,
    }
}

/// True for kinds whose elements are one allocation.
fn is_one_piece(kind: MapKind) -> bool {
    matches!(
        kind,
        MapKind::Array
            | MapKind::ProgArray
            | MapKind::PerfEventArray
            | MapKind::CgroupArray
            | MapKind::ArrayOfMaps
            | MapKind::Queue
            | MapKind::Stack
            | MapKind::Devmap
            | MapKind::Xskmap
            | MapKind::Sockmap
            | MapKind::ReuseportSockarray
    )
}

/// The kernel's answer: that of the map, or of the program.
fn of_kernel(program: &Program, caller: &Caller) -> String {
    let request = LoadRequest {
        log_level: 1,
        log_size: 1 << 20,
    };
    let not_created = |fault| match fault {
        LoadFault::Map { errno, .. } => format!("not created: {}", errno.0),
        LoadFault::Btf(errno) => format!("types: {}", errno.0),
        LoadFault::License => "license".to_owned(),
    };
    if !caller.has_all() {
        // Without BTF, as loaders go on where it is refused.
        let untyped = without_types(program);
        let program = match caller.has_bpf() {
            true => program,
            false => &untyped,
        };
        let dropped = caller.loads_programs();
        let resources = Resources::of(program);
        let created = resources.and_then(|mut resources| resources.create_maps(program));
        drop(dropped);
        return created.map_or_else(not_created, |()| "created".to_owned());
    }
    let loaded = match load(program, request) {
        Ok(loaded) => loaded,
        Err(fault) => return not_created(fault),
    };
    match loaded.answer.result {
        Ok(_) => "accepted".to_owned(),
        Err(refused) => {
            let lines = loaded.log.lines().map(str::trim_end);
            let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with("processed"));
            let last = lines.next_back().unwrap_or_default();
            format!("refused: {} {last}", refused.0)
        }
    }
}

/// A program without its types and those of its maps.
fn without_types(program: &Program) -> Program {
    let plain = |def: &MapDef| {
        let mut def = def.clone();
        def.has_btf = false;
        (def.params.key_type, def.params.value_type) = (TypeId::VOID, TypeId::VOID);
        def
    };
    let maps = program.maps().iter().map(|def| {
        let mut outer = plain(def);
        outer.inner = def.inner.as_deref().map(|inner| Arc::new(plain(inner)));
        Arc::new(outer)
    });
    let maps: Vec<_> = maps.collect();
    let builder = program.to_builder().btf(None).maps(maps);
    builder.build().expect("a valid program")
}

/// Our answer, in the same words.
fn ours(program: &Program, kernel: &Kernel, with_program: bool) -> String {
    let registry = kernel.registry().expect("the built-in kernel has one");
    let done = verify(program, kernel, registry, &Options::default());
    if let Some(map) = done.refused_map {
        return format!("not created: {}", map.refusal.errno.0);
    }
    match done.verdict {
        _ if !with_program => "created".to_owned(),
        Verdict::Accepted => "accepted".to_owned(),
        Verdict::Refused(refusal) => format!("refused: {} {}", refusal.errno.0, refusal.message()),
        Verdict::Unsupported(why) | Verdict::Bug(why) => format!("unsupported: {why}"),
    }
}

/// A type with its bytes, and for values the offset of a special field.
type Typed = (TypeId, u32, u32);

/// Types of keys and values.
struct Described {
    types: Arc<Btf<'static>>,
    keys: Vec<Typed>,
    values: Vec<Typed>,
}

impl Described {
    fn new() -> Described {
        let mut types = Types::new();
        let (u32, u64) = (types.u32, types.u64);
        let number = |ty| (ty, "x", 0);
        let mut keys = vec![(u32, 4, 0), (u64, 8, 0)];
        keys.push((types.structure("number", 4, &[number(u32)]), 4, 0));
        let prefix = [(u32, "prefixlen", 0), (u32, "data", 4)];
        keys.push((types.structure("prefix", 8, &prefix), 8, 0));
        let wide = [(u64, "a", 0), (u32, "b", 8)];
        keys.push((types.structure("bpf_cgroup_storage_key", 16, &wide), 16, 0));
        keys.push((types.structure("wide", 16, &[number(u64)]), 16, 0));
        keys.push((TypeId(1 << 20), 4, 0));
        let mut values = keys.clone();
        values.push((types.structure("large", 4096, &[number(u64)]), 4096, 0));
        for field in FIELDS {
            let (value, size, offset) = types.add_value_with(*field);
            values.push((value, size, offset));
        }
        // Pairs of fields, and fields that occur twice.
        let parts = [
            ("bpf_spin_lock", 4, 4),
            ("bpf_timer", 16, 8),
            ("bpf_wq", 16, 8),
            ("bpf_res_spin_lock", 4, 4),
            ("bpf_task_work", 8, 8),
            ("bpf_refcount", 4, 4),
        ];
        let parts = parts.map(|(name, size, align)| (types.opaque(name, size, align), size));
        for (first, _) in parts {
            for (second, size) in parts {
                let members = [(first, "first", 0), (second, "second", 16)];
                let size = 16 + size.next_multiple_of(8);
                values.push((types.structure("pair", size, &members), size, 16));
            }
        }
        let blob = types.into_blob();
        let types = Btf::parse(blob).expect("types as they were built");
        Described {
            types: Arc::new(types),
            keys,
            values,
        }
    }

    /// A definition that may break any rule.
    fn definition(&self, dice: &mut Dice) -> MapDef {
        let Shape(mut params) = any_shape(dice);
        if dice.one_in(40) {
            params.map_type = dice.pick(&[0, 34, 35, 36, 100, u32::MAX]);
        }
        if dice.one_in(24) {
            let sizes = [1 << 27, (1 << 27) + 1, 1 << 31, (1 << 31) + 1, u32::MAX];
            params.max_entries = dice.pick(&sizes);
        }
        if dice.one_in(40) {
            params.flags = params.flags.with(MapFlags::NUMA_NODE);
            params.numa_node = dice.pick(&[0, 77, u32::MAX - 1]);
        }
        (params.key_type, params.value_type) = (TypeId::VOID, TypeId::VOID);
        let mut def = MapDef::new("m", params);
        if !dice.one_in(5) {
            def.has_btf = true;
            self.describe(&mut def.params, dice);
        }
        if def.kind().is_some_and(MapKind::is_map_of_maps) {
            def.inner = Some(Arc::new(self.inner(dice)));
        }
        def
    }

    /// States types, mostly with the sizes that they have.
    fn describe(&self, params: &mut MapParams, dice: &mut Dice) {
        let fits = |all: &[Typed], size: u32| {
            let fitting = all.iter().filter(|(_, bytes, _)| *bytes == size);
            fitting.copied().collect::<Vec<Typed>>()
        };
        if !dice.one_in(12) {
            let fitting = fits(&self.keys, params.key_size);
            let (key, ..) = match fitting.is_empty() || dice.one_in(8) {
                true => dice.pick(&self.keys),
                false => dice.pick(&fitting),
            };
            params.key_type = key;
        }
        if !dice.one_in(24) {
            let (value, size, _) = dice.pick(&self.values);
            params.value_type = value;
            if params.value_size != 0 && !dice.one_in(8) {
                params.value_size = size;
            }
        }
    }

    /// A definition of inner maps, mostly one that is created.
    fn inner(&self, dice: &mut Dice) -> MapDef {
        let kind = match dice.one_in(4) {
            true => dice.pick(&KINDS),
            false => MapKind::Array,
        };
        let params = MapParams {
            map_type: kind.number(),
            key_size: dice.pick(&[4, 4, 4, 8, 0]),
            value_size: dice.pick(&[4, 8, 16]),
            max_entries: dice.pick(&[1, 4, 4096]),
            flags: MapFlags(dice.pick(&[0, 0, 0, 1, 1 << 10])),
            ..MapParams::default()
        };
        let mut def = MapDef::new("m.inner", params);
        if dice.one_in(2) {
            def.has_btf = true;
            self.describe(&mut def.params, dice);
        }
        def
    }

    /// A program that uses the map: looks a value up and accesses its special field, or names the
    /// map.
    fn program(&self, def: MapDef, dice: &mut Dice) -> Program {
        let mut values = self.values.iter();
        let value = values.find(|(value, ..)| *value == def.params.value_type);
        let offset = value.map_or(0, |(.., offset)| *offset);
        let access = match dice.below(5) {
            0 => "r6 = r0\ncall 93\nr1 = r6\nr1 += OFFSET\ncall 94",
            1 => "r2 = map_idx(0) ll\nr3 = 1\ncall 169",
            2 => "r2 = *(u64 *)(r1 + 0)",
            3 => "r2 = 0\n*(u64 *)(r1 + 0) = r2",
            _ => "",
        };
        let uses = match access {
            "" => "r1 = map_idx(0) ll\n".to_owned(),
            access => format!(
                "r1 = 0\n*(u64 *)(r10 - 8) = r1\n*(u64 *)(r10 - 16) = r1\nr2 = r10\nr2 += -16\n\
                 r1 = map_idx(0) ll\ncall 1\nif r0 != 0 goto +2\nr0 = 0\nexit\nr1 = r0\n\
                 r1 += OFFSET\n{access}\n"
            ),
        };
        let text = format!("{uses}r0 = 0\nexit").replace("OFFSET", &offset.to_string());
        let insns = encode(&assemble(&text).expect("a program")).expect("encodable instructions");
        let program = Program::builder(ProgramType::SchedCls, insns)
            .name("uses_map")
            .license("GPL")
            .btf(Some(Arc::clone(&self.types)))
            .maps(vec![Arc::new(def)]);
        program.build().expect("a valid program")
    }
}

//! Creation of maps (`BPF_MAP_CREATE`): the rules of Linux 6.18 in its order, as a loader meets
//! them.
//!
//! Linux checks the numbers of the request, the privileges of the caller, the sizes, then the
//! types of key and value with their special fields. A loader that is refused with types asks
//! again without them (libbpf), so that a map whose kind cannot hold the special fields of its
//! values is created, but without BTF.
//!
//! The rules depend on the request and on the described kernel alone, its memory included: the
//! answer is the same on every machine.
//!
//! | file | contents |
//! |---|---|
//! | `attributes` | sizes, entries and flags by kind |
//! | `allocation` | the memory that a map takes when it is created, and its limits |
//! | `types` | BTF of key and value, special fields |
//! | `fault` | the violated rule, as data and in words |

mod allocation;
mod attributes;
mod fault;
mod types;

use btf::fields::{FieldKind, FieldRecord, FieldSet};
use btf::{Btf, TypeId};
use spec::behaviour::Behaviour;
use spec::kernel::Privileges;
use spec::maps::{MapFlags, MapKind};
use spec::registry::Registry;
use spec::since::{Feature, Release};
use spec::{Errno, Kernel};

use crate::map_def::{MapDef, MapParams};

pub use allocation::{bloom_hashes, bloom_mask};
pub use attributes::LOADER_STACK_BYTES;
pub use fault::{EntriesRule, InnerFault, MapFault, MapRefusal, RefusedMap, SizeRule, TypeRule};
pub use types::{field_fault, value_fields};

/// The caller and the kernel of a map creation.
#[derive(Clone, Debug)]
pub struct MapCreator<'k> {
    /// The special fields that it looks for, in parts.
    fields: Vec<FieldSet>,
    /// Data sections may hold a lock.
    locks_in_sections: bool,
    /// Ring buffers may overwrite records.
    overwrites: bool,
    registry: &'k Registry,
    types: Option<&'k Btf<'static>>,
    privileges: Privileges,
    machine: Machine,
}

/// CPUs that Linux is built for at most on x86-64, as those of distributions are
/// (`CONFIG_NR_CPUS`).
pub const MOST_CPUS: u32 = 8192;

/// Facts of the machine and its kernel that decide how large a map may be, and how much memory it
/// takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Possible CPUs.
    pub cpus: u32,
    /// CPUs that the kernel is built for (`CONFIG_NR_CPUS`).
    pub most_cpus: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// Arrays have a power of two of elements, as for callers without CAP_PERFMON where
    /// Spectre variant 1 is mitigated.
    pub rounds_arrays: bool,
}

/// A map as it is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedMap {
    /// The special fields of its values; none without BTF.
    pub fields: FieldRecord,
    /// True if BTF describes key and value.
    pub has_btf: bool,
    /// The refusal of the types, if the loader has to leave them out.
    pub types_refusal: Option<MapRefusal>,
    /// Bytes of memory that its creation takes.
    pub memory: u64,
}

/// The special fields that a kernel looks for, in the parts that it searches one by one.
fn known_fields(kernel: &Kernel) -> Vec<FieldSet> {
    let release = kernel.version().map(Release::from);
    let Some(release) = release.filter(|_| kernel.has_rules()) else {
        return vec![FieldSet::MAP_VALUE];
    };
    let is_known = |kind| Feature::of_field(kind).is_none_or(|feature| feature.is_in(release));
    let known = FieldSet::MAP_VALUE.filter(is_known);
    if kernel.behaviours().has(Behaviour::PointersTagged) {
        return vec![known];
    }
    vec![
        known.filter(|kind| !kind.is_pointer()),
        known.filter(FieldKind::is_pointer).with_first_tags(),
    ]
}

/// True if the kernel is of a release that has a flag.
fn known_flag(kernel: &Kernel, flag: MapFlags) -> bool {
    let release = kernel.version().map(Release::from);
    let release = release.filter(|_| kernel.has_rules());
    let mut since = flag.since();
    release.is_some_and(|release| since.all(|(_, since)| since.release <= release))
}

impl<'k> MapCreator<'k> {
    /// The caller that a kernel describes; what BTF does not say of the kernel is in the
    /// registry.
    pub fn new(kernel: &'k Kernel, registry: &'k Registry) -> MapCreator<'k> {
        let privileges = kernel.privileges();
        let built_for = kernel.config().and_then(|config| config.cpus());
        MapCreator {
            registry,
            fields: known_fields(kernel),
            locks_in_sections: kernel.behaviours().has(Behaviour::LocksInSections),
            overwrites: known_flag(kernel, MapFlags::RB_OVERWRITE),
            types: kernel.btf().map(|types| &**types),
            privileges,
            machine: Machine {
                cpus: kernel.cpus().max(1),
                most_cpus: built_for.unwrap_or(MOST_CPUS),
                memory: kernel.memory(),
                rounds_arrays: kernel.mitigations().spectre_v1 && !privileges.has_perfmon(),
            },
        }
    }

    /// Creates a map of a definition as libbpf does: with the types of its program if the kernel
    /// takes them, otherwise without.
    ///
    /// # Errors
    /// The violated rule of the last request.
    pub fn create(&self, def: &MapDef, types: Option<&Btf<'_>>) -> Result<CreatedMap, MapRefusal> {
        let types = types.filter(|_| self.privileges.may_load_btf());
        let params = &def.params;
        let is_of_maps = params.kind().is_some_and(MapKind::is_map_of_maps);
        if let Some(inner) = def.inner.as_deref().filter(|_| is_of_maps) {
            self.create(inner, types).map_err(MapRefusal::of_inner)?;
        }
        let is_described = def.has_btf && def.kernel_value.is_none() && has_types(params);
        let (types_refusal, memory) = match types.filter(|_| is_described) {
            Some(types) => match self.create_described(def, types) {
                Ok(created) => return Ok(created),
                Err(refusal) => (Some(refusal), self.create_plain(def)),
            },
            None => (None, self.create_plain(def)),
        };
        match memory {
            Ok(memory) => Ok(CreatedMap {
                fields: FieldRecord::default(),
                has_btf: false,
                types_refusal,
                memory,
            }),
            // What is missing without the types is what was wrong with them.
            Err(plain) => Err(match (&plain.fault, types_refusal) {
                (MapFault::Untyped { .. }, Some(described)) => MapRefusal {
                    errno: plain.errno,
                    ..described
                },
                _ => plain,
            }),
        }
    }

    /// The request with types, whose BTF is loaded.
    ///
    /// # Errors
    /// The violated rule.
    pub fn create_described(
        &self,
        def: &MapDef,
        types: &Btf<'_>,
    ) -> Result<CreatedMap, MapRefusal> {
        let memory = self.request(def, &def.params)?;
        let kind = self.kind(&def.params)?;
        let fields = types::check_types(&def.params, kind, types, self)?;
        Ok(CreatedMap {
            fields,
            has_btf: true,
            types_refusal: None,
            memory,
        })
    }

    /// The request without the program's types; bytes of memory that the map takes. A map that
    /// exists may have types of another blob.
    fn create_plain(&self, def: &MapDef) -> Result<u64, MapRefusal> {
        let mut params = def.params;
        if def.has_btf {
            (params.key_type, params.value_type) = (TypeId::VOID, TypeId::VOID);
        }
        self.request(def, &params)
    }

    /// The checks before those of types.
    fn request(&self, def: &MapDef, params: &MapParams) -> Result<u64, MapRefusal> {
        let kind = self.kind(params)?;
        let mut params = *params;
        if kind == MapKind::Ringbuf && self.overwrites {
            params.flags = MapFlags(params.flags.0 & !MapFlags::RB_OVERWRITE.0);
        }
        let params = &params;
        if kind == MapKind::StructOps && def.kernel_value.is_some() {
            // The kernel's structure says the sizes.
            return Ok(0);
        }
        if !params.key_type.is_void() && params.value_type.is_void() {
            return Err(MapFault::Value(TypeRule::Stated).with(Errno::EINVAL));
        }
        check_request(params, self.privileges)?;
        if let Some(capability) = self.privileges.lacks_to_create(kind) {
            let fault = MapFault::Privilege { kind, capability };
            return Err(fault.with(Errno::EPERM));
        }
        attributes::check_allocated(kind, params, &self.machine)?;
        if let Some(of_maps) = Some(kind).filter(|kind| kind.is_map_of_maps()) {
            self.check_inner(of_maps, def)?;
        }
        let memory = allocation::check_memory(kind, params, &self.machine)?;
        if def.ifindex != 0 {
            return Err(MapFault::Device.with(Errno::EINVAL));
        }
        Ok(memory)
    }

    /// The kind of a map, if the kernel has it.
    fn kind(&self, params: &MapParams) -> Result<MapKind, MapRefusal> {
        let kind = params
            .kind()
            .filter(|kind| self.registry.map(*kind).is_some());
        kind.ok_or_else(|| {
            let map_type = params.map_type;
            MapFault::Kind { map_type }.with(Errno::EINVAL)
        })
    }

    /// The checks of the definition of inner maps, which are created first.
    fn check_inner(&self, kind: MapKind, def: &MapDef) -> Result<(), MapRefusal> {
        let Some(inner) = &def.inner else {
            // libbpf gives descriptor 0, which is no map.
            let fault = MapFault::Inner(InnerFault::Missing { kind });
            return Err(fault.with(Errno::EINVAL));
        };
        check_template(inner.kind())
    }
}

impl MapRefusal {
    /// The refusal of a map of maps whose inner map is not created.
    fn of_inner(self) -> MapRefusal {
        MapRefusal {
            errno: self.errno,
            fault: MapFault::Inner(InnerFault::NotCreated(Box::new(self.fault))),
        }
    }
}

/// True if a request states the type of its key or value.
fn has_types(params: &MapParams) -> bool {
    !params.key_type.is_void() || !params.value_type.is_void()
}

/// The checks of the numbers of a request that come before those of privileges.
///
/// # Errors
/// The violated rule.
fn check_request(params: &MapParams, privileges: Privileges) -> Result<(), MapRefusal> {
    let kind = params.kind();
    let kind = kind.ok_or_else(|| unknown(params).with(Errno::EINVAL))?;
    attributes::check_common(kind, params)?;
    let token = params.flags.0 & MapFlags::TOKEN_FD.0;
    let params = MapParams {
        flags: MapFlags(params.flags.0 & !token),
        ..*params
    };
    attributes::check_before_privileges(kind, &params, privileges)?;
    match token {
        0 => Ok(()),
        _ => Err(MapFault::Token.with(Errno::EINVAL)),
    }
}

fn unknown(params: &MapParams) -> MapFault {
    MapFault::Kind {
        map_type: params.map_type,
    }
}

/// Checks the numbers of a request by a caller with all capabilities; the machine has memory
/// enough for every map that it creates. Types are left out, as of maps that are created
/// without BTF.
///
/// # Errors
/// The violated rule.
pub fn check_numbers(params: &MapParams, machine: &Machine) -> Result<(), MapRefusal> {
    check_request(params, Privileges::ALL)?;
    let kind = params.kind();
    let kind = kind.filter(|kind| kind.since().release <= Release::LINUX_6_18);
    let kind = kind.ok_or_else(|| unknown(params).with(Errno::EINVAL))?;
    attributes::check_allocated(kind, params, machine)?;
    allocation::check_memory(kind, params, machine).map(drop)
}

/// Checks the kind of inner maps.
///
/// # Errors
/// EINVAL for maps of maps, ENOTSUPP for kinds that no map holds.
pub fn check_template(inner: Option<MapKind>) -> Result<(), MapRefusal> {
    let (errno, kind) = match inner {
        Some(kind) if kind.is_map_of_maps() => (Errno::EINVAL, kind),
        Some(kind) if kind.is_never_inner() => (Errno::ENOTSUPP, kind),
        Some(_) | None => return Ok(()),
    };
    Err(MapFault::Inner(InnerFault::Kind { kind }).with(errno))
}

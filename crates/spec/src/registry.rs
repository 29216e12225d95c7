//! Registry: the facts about a kernel that the verifier needs beside its BTF.
//!
//! Helper prototypes and their availability to program types, context accesses, return
//! ranges, map kinds, kfuncs and name lists, as data. A registry is a value that
//! callers pass in. That of Linux 6.18 is extracted from a running kernel
//! (`cargo xtask kernel-data`) and built into the crate `kernel-data`.
//!
//! The key of lookups is a [`ProgramContext`]: type, expected attach type, sleepability
//! and capabilities.

mod context;
mod helper;
mod iterator;
mod kfunc;
mod lists;
mod map;
mod resolve;
mod rewriting;
mod signature;
mod special_kfunc;
mod struct_ops;
pub mod text;
pub mod types;

use std::collections::BTreeMap;
use std::ops::Deref;

pub use context::{CtxAccess, CtxQuery, CtxRefused, FieldRule, Layout, Widths};
pub use helper::{ArgDetail, HelperProto, HostHelper, KernelType, Restriction, Unavailable};
pub use iterator::{IteratorArg, IteratorTarget};
pub use kfunc::{Kfunc, KfuncFlags, MODULE_KFUNCS, ModuleKfuncs, ProgramTypes};
pub use lists::{Lists, SafeList, TracepointArg};
pub use map::MapTraits;
pub use rewriting::{AccessForm, PacketLoads, Rewriting, Rewritten};
pub use signature::kfunc_signature;
pub use special_kfunc::{Erased, KfuncResult, SpecialKfunc};
pub use struct_ops::{Operations, PACKET_WRITES, StructOps, Writes, WrittenMember};
pub use types::{ArgBase, ArgType, BASE_MASK, RegBase, RegType, RetBase, RetType, TypeFlags};

use btf::{Kind, TypeId};

use crate::helpers::HelperId;
use crate::kernel::Module;
use crate::maps::MapKind;
use crate::programs::{AttachType, HookKind, ProgramType};

/// Offset of the first field that programs of tracepoints may read.
const TRACEPOINT_FIRST: i32 = 8;

/// Properties of a program that decide about its helpers, context and return value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramContext<'a> {
    /// Program type; of a freplace program, that of its target.
    pub kind: ProgramType,
    /// Expected attach type; `None` for a number that no release has.
    pub attach: Option<AttachType>,
    /// True if the program is sleepable.
    pub sleepable: bool,
    /// True if the caller has CAP_BPF.
    pub has_cap_bpf: bool,
    /// True if the caller has CAP_PERFMON.
    pub has_cap_perfmon: bool,
    /// Name of the function, hook or structure of operations of `attach_btf_id` in the kernel.
    pub attach_target: Option<&'a str>,
    /// Name of the operation that a struct_ops program is.
    pub operation: Option<&'a str>,
    /// True if the program traces or replaces a function of another program (`dst_prog`).
    pub of_program: bool,
}

impl ProgramContext<'_> {
    /// Hook of its attach type.
    pub fn hook(&self) -> HookKind {
        HookKind::of(self.attach)
    }

    /// What goes by the structure whose operation a struct_ops program is; `None` for
    /// structures that are not known (`bpf_struct_ops_find`, `bpf_struct_ops_find_value`).
    #[doc(alias = "bpf_struct_ops_find")]
    #[doc(alias = "bpf_struct_ops_find_value")]
    pub fn struct_ops(&self) -> Option<&'static StructOps> {
        StructOps::named(
            self.attach_target
                .filter(|_| self.kind == ProgramType::StructOps)?,
        )
    }
}

/// Range of values that a program may return (`retval_range`).
#[doc(alias = "retval_range")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReturnRange {
    /// Least value.
    pub min: i32,
    /// Greatest value.
    pub max: i32,
}

/// Capability that a helper requires beside that of loading the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Capability {
    /// None.
    None,
    /// CAP_BPF.
    Bpf,
    /// CAP_PERFMON.
    Perfmon,
}

/// Helper in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HelperEntry {
    /// Number of the helper.
    pub id: u32,
    /// Index of the prototype.
    pub proto: u32,
    /// Capability that the caller needs.
    pub capability: Capability,
}

/// Helpers, context layout and return range of one program type and attach type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramRules {
    /// Index of the set of helpers.
    pub helpers: u32,
    /// Index of the context layout.
    pub layout: Option<u32>,
    /// Allowed return values; `None` for any.
    pub returns: Option<ReturnRange>,
    /// Bits of `enum btf_field_type`: special fields whose maps they may not use.
    pub refused_fields: u32,
    /// They may put sockets into maps of sockets.
    pub updates_sockmap: bool,
    /// They may delete sockets from maps of sockets.
    pub deletes_sockmap: bool,
    /// Instructions that Linux puts in front of programs that write to packets.
    pub prologue: u8,
    /// True if the rules were confirmed by a running kernel, false if they are read from
    /// its source.
    pub is_confirmed: bool,
}

/// The registry of a kernel: [`RegistryData`] that was read from its text form
/// ([`text::parse`]), with the helpers of a host.
///
/// What the verifier accepts rests on it, so nothing else makes or changes one. Native code
/// compares what it says of helpers, contexts and sockets with the code that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry(RegistryData);

impl Registry {
    /// The registry with these helpers of a host in place of others.
    pub(crate) fn with_host_helpers(mut self, helpers: Vec<HostHelper>) -> Registry {
        self.0.host_helpers = helpers;
        self
    }
}

impl Deref for Registry {
    type Target = RegistryData;

    fn deref(&self) -> &RegistryData {
        &self.0
    }
}

/// Facts about a kernel that the verifier needs beside its BTF, as they are extracted from a
/// running kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryData {
    /// Helper prototypes; several for some helpers.
    pub protos: Vec<HelperProto>,
    /// Helpers of a host, whose numbers are above those of Linux.
    pub host_helpers: Vec<HostHelper>,
    /// Sets of helpers, each sorted by number. A second entry of a helper is that of programs that
    /// sleep.
    pub helper_sets: Vec<Vec<HelperEntry>>,
    /// Context layouts.
    pub layouts: Vec<Layout>,
    /// Fields of the sockets that programs read by pointers of these types.
    pub sockets: Vec<(RegBase, Vec<FieldRule>)>,
    /// Instructions that Linux makes of calls and packet loads.
    pub rewriting: Rewriting,
    /// Rules by program type and attach type; `None` for types whose rules do not depend
    /// on the attach type.
    pub programs: BTreeMap<(ProgramType, Option<AttachType>), ProgramRules>,
    /// Targets of iterators by name, without `bpf_iter_`.
    pub iterators: BTreeMap<Box<str>, IteratorTarget>,
    /// Map kinds.
    pub maps: BTreeMap<MapKind, MapTraits>,
    /// kfuncs by name.
    pub kfuncs: BTreeMap<Box<str>, Kfunc>,
    /// Names of kfuncs by BTF id.
    pub kfunc_ids: BTreeMap<u32, Box<str>>,
    /// Lists of names.
    pub lists: Lists,
}

/// The entry of a helper in a set.
fn entry_of(set: &[HelperEntry], id: u32, sleepable: bool) -> Option<HelperEntry> {
    let first = set.partition_point(|entry| entry.id < id);
    let mut entries = set[first..].iter().take_while(|entry| entry.id == id);
    let found = match sleepable {
        true => entries.last(),
        false => entries.next(),
    };
    found.copied()
}

/// True for accesses to `struct __sk_buff` that programs of cgroups have only with CAP_BPF
/// (`cg_skb_is_valid_access`): `data` and `data_end`, and writing `tstamp`.
fn needs_cap_bpf(kind: ProgramType, query: CtxQuery) -> bool {
    const DATA: std::ops::Range<i32> = 76..84;
    const TSTAMP: std::ops::Range<i32> = 152..160;
    kind == ProgramType::CgroupSkb
        && (DATA.contains(&query.offset) || query.write && TSTAMP.contains(&query.offset))
}

impl RegistryData {
    /// Rules for a program; `None` for unknown program types.
    pub fn rules(&self, program: &ProgramContext<'_>) -> Option<&ProgramRules> {
        let attach = program.attach.map(AttachType::single);
        let by_attach = self.programs.get(&(program.kind, attach));
        by_attach.or_else(|| self.programs.get(&(program.kind, None)))
    }

    /// Prototype of a helper for a program (`get_helper_proto`, `bpf_get_helper_proto`). Licence
    /// and sleepability are not checked: the verifier refuses them after this.
    #[doc(alias = "get_helper_proto")]
    #[doc(alias = "bpf_get_helper_proto")]
    pub fn helper(
        &self,
        program: &ProgramContext<'_>,
        id: u32,
    ) -> Result<&HelperProto, Unavailable> {
        let proto = self.helper_proto(program, id)?;
        match self.is_allowed(proto, program) {
            true => Ok(proto),
            false => Err(Unavailable::Hook),
        }
    }

    /// Prototype of a helper for a program, whatever the program attaches to.
    pub fn helper_proto(
        &self,
        program: &ProgramContext<'_>,
        id: u32,
    ) -> Result<&HelperProto, Unavailable> {
        if let Some(helper) = self.host_helper(id) {
            return match helper.programs.has(program.kind) {
                true => Ok(&helper.proto),
                false => Err(Unavailable::ForProgram),
            };
        }
        let is_known = |id| id != 0 && crate::helpers::helper(id).is_some();
        if !i32::try_from(id).is_ok_and(is_known) {
            return Err(Unavailable::Unknown);
        }
        if let Some(proto) = self.helper_of_operation(program, id)? {
            return Ok(proto);
        }
        if self.sets_options(program, id) {
            let mut protos = self.protos.iter().filter(|proto| proto.id == id);
            let of_socket = protos.find(|proto| proto.args[0].base != ArgBase::PtrToCtx);
            return of_socket.ok_or(Unavailable::ForProgram);
        }
        let set = self.helper_set(program).ok_or(Unavailable::ForProgram)?;
        let set = self.helper_sets.get(set as usize);
        let set = set.ok_or(Unavailable::ForProgram)?;
        let entry = entry_of(set, id, program.sleepable).ok_or(Unavailable::ForProgram)?;
        let has_capability = match entry.capability {
            Capability::None => true,
            Capability::Bpf => program.has_cap_bpf,
            Capability::Perfmon => program.has_cap_perfmon,
        };
        if !has_capability {
            return Err(Unavailable::Privilege);
        }
        let proto = self.protos.get(entry.proto as usize);
        proto.ok_or(Unavailable::ForProgram)
    }

    /// True if a program may call a helper where it attaches.
    fn is_allowed(&self, proto: &HelperProto, program: &ProgramContext<'_>) -> bool {
        let target = program.attach_target.unwrap_or_default();
        match proto.restriction {
            None => true,
            Some(Restriction::DPath) if program.kind == ProgramType::Lsm => {
                self.lists.lsm_sleepable.contains(target)
            }
            Some(Restriction::DPath) => {
                program.hook() == HookKind::Iterator || self.lists.d_path.contains(target)
            }
            Some(Restriction::SleepableHook) => self.lists.lsm_sleepable.contains(target),
            Some(Restriction::SkStorageTracing) if program.of_program => false,
            Some(Restriction::SkStorageTracing) => match program.hook() {
                HookKind::Iterator | HookKind::RawTracepoint => true,
                HookKind::Fentry | HookKind::Fexit => !target.starts_with("bpf_sk_storage"),
                HookKind::ModifyReturn
                | HookKind::Lsm
                | HookKind::LsmCgroup
                | HookKind::Fsession
                | HookKind::Multi
                | HookKind::Unnamed => false,
            },
        }
    }

    /// True for helpers of socket options in hooks that have a socket at hand
    /// (`bpf_lsm_func_proto`).
    #[doc(alias = "bpf_lsm_func_proto")]
    fn sets_options(&self, program: &ProgramContext<'_>, id: u32) -> bool {
        let helper = i32::try_from(id).ok().and_then(HelperId::from_number);
        let is_one = matches!(helper, Some(HelperId::Setsockopt | HelperId::Getsockopt));
        let hook = program.attach_target.unwrap_or_default();
        is_one && program.hook() == HookKind::LsmCgroup && self.lists.lsm_sockopt.contains(hook)
    }

    /// Prototype of a helper that the operations of a structure have beyond those that all programs
    /// have.
    fn helper_of_operation(
        &self,
        program: &ProgramContext<'_>,
        id: u32,
    ) -> Result<Option<&HelperProto>, Unavailable> {
        let helper = i32::try_from(id).ok().and_then(HelperId::from_number);
        let (Some(operations), Some(helper)) = (program.struct_ops(), helper) else {
            return Ok(None);
        };
        if operations.without.contains(&helper) {
            return Err(Unavailable::ForProgram);
        }
        let Some(function) = operations.helper(helper, program.operation.unwrap_or_default())
        else {
            return Ok(None);
        };
        let takes_no_context = |proto: &&HelperProto| proto.args[1].base != ArgBase::PtrToCtx;
        let mut protos = self
            .protos
            .iter()
            .filter(|proto| &*proto.function == function);
        Ok(protos.find(takes_no_context))
    }

    /// Name of a helper in messages (`func_id_name`).
    #[doc(alias = "func_id_name")]
    pub fn helper_name(&self, id: i32) -> &str {
        let of_host = u32::try_from(id).ok().and_then(|id| self.host_helper(id));
        match (crate::helpers::helper(id), of_host) {
            (Some(helper), _) => helper.name,
            (None, Some(helper)) => &helper.proto.name,
            (None, None) if id == 0 => "bpf_unspec",
            (None, None) => "unknown",
        }
    }

    fn host_helper(&self, id: u32) -> Option<&HostHelper> {
        self.host_helpers
            .iter()
            .find(|helper| helper.proto.id == id)
    }

    /// Index of the helpers that a program has.
    pub fn helper_set(&self, program: &ProgramContext<'_>) -> Option<u32> {
        // What replaces a function of an operation has neither its helpers nor any other.
        if program.of_program && program.kind == ProgramType::StructOps {
            return None;
        }
        let of_target = self.iterator(program).and_then(|target| target.helpers);
        of_target.or_else(|| match program.kind {
            // Those of all programs, which netfilter programs have without any other; a kernel
            // without these was asked about an operation.
            ProgramType::StructOps => {
                let mut rules = self.programs.iter();
                let of_netfilter = rules.find(|((kind, _), _)| *kind == ProgramType::Netfilter);
                let of_netfilter = of_netfilter.map(|(_, rules)| rules);
                Some(of_netfilter.or_else(|| self.rules(program))?.helpers)
            }
            _ => Some(self.rules(program)?.helpers),
        })
    }

    /// The iterator that a program is for.
    pub fn iterator(&self, program: &ProgramContext<'_>) -> Option<&IteratorTarget> {
        let is_iterator =
            program.kind == ProgramType::Tracing && program.hook() == HookKind::Iterator;
        let name = program.attach_target?.strip_prefix("bpf_iter_")?;
        self.iterators.get(name).filter(|_| is_iterator)
    }

    /// Value and type of an allowed access to the context, or the reason of its refusal.
    pub fn ctx_access(
        &self,
        program: &ProgramContext<'_>,
        mut query: CtxQuery,
    ) -> Result<CtxAccess<'_>, CtxRefused> {
        // Linux 6.18 compares the offset with the first one without its sign, so that reads
        // below the context pass (`tp_prog_is_valid_access`).
        let is_aligned = query.offset.unsigned_abs().is_multiple_of(query.size);
        if program.kind == ProgramType::Tracepoint && query.offset < 0 && is_aligned {
            query.offset = TRACEPOINT_FIRST;
        }
        let is_of_operation = program.of_program && program.kind == ProgramType::StructOps;
        if is_of_operation || !program.has_cap_bpf && needs_cap_bpf(program.kind, query) {
            return Err(CtxRefused::Invalid);
        }
        self.layout(program)
            .ok_or(CtxRefused::Unknown)?
            .access(query)
    }

    /// Layout of a program's context.
    pub fn layout(&self, program: &ProgramContext<'_>) -> Option<&Layout> {
        let rules = self.rules(program)?;
        self.layouts.get(rules.layout? as usize)
    }

    /// True if a socket may be read there through a pointer of this type.
    pub fn reads_socket(&self, base: RegBase, query: CtxQuery) -> bool {
        context::rule_for(self.socket_fields(base), query).is_some()
    }

    /// Number of instructions that Linux makes of a load of a socket's field; `None` if it is
    /// not allowed.
    pub fn socket_insns(
        &self,
        base: RegBase,
        offset: i32,
        size: u32,
        form: AccessForm,
    ) -> Option<u32> {
        context::insns(self.socket_fields(base), offset, size, form, false)
    }

    fn socket_fields(&self, base: RegBase) -> &[FieldRule] {
        let mut sockets = self.sockets.iter();
        let found = sockets.find(|(other, _)| *other == base);
        found.map_or(&[], |(_, rules)| rules)
    }

    /// Range of values that a program may return; `None` for any. Ranges that depend on
    /// the attach target's prototype (LSM, struct_ops, fmod_ret) are not included.
    pub fn return_range(&self, program: &ProgramContext<'_>) -> Option<ReturnRange> {
        self.rules(program)?.returns
    }

    /// Properties of a map kind.
    pub fn map(&self, kind: MapKind) -> Option<&MapTraits> {
        self.maps.get(&kind)
    }

    /// kfunc with this BTF id.
    pub fn kfunc(&self, btf_id: u32) -> Option<&Kfunc> {
        self.kfunc_named(self.kfunc_ids.get(&btf_id)?)
    }

    /// kfunc of a module with this id in its BTF: as is stated for the module, else as Linux has the
    /// function of this name in a module (its own BTF id is 0).
    pub fn kfunc_of_module<'a>(&'a self, module: &'a Module, btf_id: u32) -> Option<&'a Kfunc> {
        if module.kfuncs.is_some() {
            return module.kfunc(btf_id);
        }
        let func = module.btf.get(TypeId(btf_id))?;
        let kfunc = self.kfunc_named(func.name().to_str()?)?;
        (func.kind() == Kind::Func && kfunc.btf_id == 0).then_some(kfunc)
    }

    /// kfunc with this name.
    pub fn kfunc_named(&self, name: &str) -> Option<&Kfunc> {
        self.kfuncs.get(name)
    }
}

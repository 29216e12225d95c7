//! Map kinds, asked: which helpers take a map of a kind (one load for each helper with a
//! map argument and each kind), which kinds programs that sleep use, which special fields
//! values may have (one map for each field and kind), which fields' maps a program type
//! is refused, and which programs change maps of sockets.
//!
//! The program of a question gives every other argument what the prototype requires, so that
//! the kind of the map decides (`check_map_func_compatibility` comes after the arguments).
//! A kind whose maps fail as an argument before that, such as a ring buffer where a key is
//! required, counts as not taken: no program can observe it.

use std::collections::{BTreeMap, BTreeSet};

use btf::{Btf, Kind};
use isa::ebpf::RawInsn;
use spec::helpers;
use spec::maps::MapKind;
use spec::programs::{AttachType, ProgramType};
use spec::registry::{
    ArgBase, ArgDetail, HelperProto, Layout, MapTraits, ProgramContext, RegBase, RegistryData,
};
use sys::bpf::Map;

use super::build::HELPERS;
use super::fields::{self, FIELDS, SpecialField};
use super::map_requests::create_all;
use super::numbering::enumerators;
use super::query::{KernelQuery, Subject, slot};
use super::source;
use super::targets;

/// Bit of `enum btf_field_type` of timers.
const TIMER: u32 = 2;
/// Bit of `enum btf_field_type` of referenced kptrs.
const KPTR_REF: u32 = 8;

/// `bpf_map_update_elem`.
pub const MAP_UPDATE: u32 = 2;
/// `bpf_map_delete_elem`.
pub const MAP_DELETE: u32 = 3;
const CURRENT_TASK_BTF: u32 = 158;
const LOOP: u32 = 181;

/// Answers about the map kinds of this kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapAnswers {
    /// Traits by kind.
    pub traits: BTreeMap<MapKind, MapTraits>,
    /// Helpers with a map argument that no program here can call as far as that
    /// argument, and kinds that this kernel does not create.
    pub by_source: Vec<String>,
    /// Pairs of helper and kind that were asked.
    pub helper_kinds: u64,
    /// Pairs of field and kind that were asked.
    pub field_kinds: u64,
}

/// Maps of every kind, to ask with.
pub struct MapQuery<'a> {
    btf: &'a Btf<'a>,
    maps: Vec<(MapKind, Map)>,
    tracepoints: Vec<targets::Target>,
}

impl<'a> MapQuery<'a> {
    /// Creates a map of every kind.
    pub fn new(btf: &'a Btf<'a>) -> MapQuery<'a> {
        MapQuery {
            btf,
            maps: create_all(),
            tracepoints: targets::tracepoints(btf),
        }
    }

    /// Asks about every kind. The registry has the helpers and contexts of `subjects`.
    pub fn ask(
        &self,
        kernel_query: &mut KernelQuery,
        registry: &RegistryData,
        subjects: &[Subject],
    ) -> MapAnswers {
        let mut answers = MapAnswers::default();
        let mut taken: BTreeMap<MapKind, BTreeSet<u32>> = BTreeMap::new();
        for id in with_map_argument(registry) {
            let Some(kinds) = self.kinds_of(kernel_query, registry, subjects, id) else {
                let name = helpers::helper(id as i32).map_or("?", |helper| helper.name);
                answers.by_source.push(format!("map kinds of {name}"));
                for &kind in source::map_kinds(name) {
                    taken.entry(kind).or_default().insert(id);
                }
                continue;
            };
            answers.helper_kinds += self.maps.len() as u64;
            for kind in kinds {
                taken.entry(kind).or_default().insert(id);
            }
        }
        let named = enumerators(self.btf, "bpf_map_type");
        let has = |kind: MapKind| {
            let mut named = named.iter().flatten();
            // The last is their count.
            named.any(|(name, number)| *number == kind.number() && !name.starts_with("__"))
        };
        for &kind in MapKind::ALL.iter().filter(|&&kind| has(kind)) {
            let mut helpers = taken.remove(&kind).unwrap_or_default();
            let special_fields = self.special_fields(kind, &mut answers.field_kinds);
            if special_fields & TIMER != 0 {
                helpers.extend(TIMERS);
            }
            if special_fields & KPTR_REF != 0 {
                helpers.insert(KPTR_XCHG);
            }
            if self.map(kind).is_none() {
                let what = format!("map kind {}: not created", kind.name());
                answers.by_source.push(what);
            }
            let traits = MapTraits {
                kind,
                helpers: helpers.into_iter().collect(),
                has_direct_value: matches!(
                    kind,
                    MapKind::Array | MapKind::Arena | MapKind::InsnArray
                ),
                in_sleepable: self.in_sleepable(kernel_query, kind),
                special_fields,
            };
            answers.traits.insert(kind, traits);
        }
        answers
    }

    /// The maps that calls of a helper may be given, with their kinds; of a helper without a
    /// map argument, any one.
    pub(super) fn for_calls(
        &self,
        registry: &RegistryData,
        id: u32,
    ) -> Vec<(Option<MapKind>, &Map)> {
        if !with_map_argument(registry).contains(&id) {
            let any = self.maps.first();
            return any.map(|(_, map)| (None, map)).into_iter().collect();
        }
        let takes = |kind: MapKind| registry.map(kind).is_some_and(|it| it.allows_helper(id));
        let taken = self.maps.iter().filter(|(kind, _)| takes(*kind));
        taken.map(|(kind, map)| (Some(*kind), map)).collect()
    }

    /// A program of a kind that calls a helper; `None` where it has not the helper or not the
    /// object that the helper takes.
    pub(super) fn call_of(
        &self,
        registry: &RegistryData,
        subject: &Subject,
        id: u32,
        map: &Map,
    ) -> Option<Draft> {
        let proto = registry.helper(&context(subject), id).ok()?;
        let object = self.object_for(registry, subject, proto)?;
        Some(draft(proto, map, object))
    }

    /// What a program of a kind calls that calls a helper by this prototype; `None` where the prototype
    /// takes an object that not every program has, and where the kernel refuses the program.
    pub(super) fn callees(
        &self,
        kernel_query: &mut KernelQuery,
        subject: &Subject,
        proto: &HelperProto,
    ) -> Option<Vec<i32>> {
        let mut args = proto.args.iter().zip(&proto.arg_details);
        let object = match args.find(|(arg, _)| is_object(arg.base)) {
            None => Object::None,
            Some((_, ArgDetail::Btf(ty))) if &*ty.name == "task_struct" => Object::CurrentTask,
            Some(_) => return None,
        };
        let takes_map = proto
            .args
            .iter()
            .any(|arg| arg.base == ArgBase::ConstMapPtr);
        let maps = &self.maps[..if takes_map { self.maps.len() } else { 1 }];
        maps.iter().find_map(|(_, map)| {
            let call = draft(proto, map, object);
            let has_callback = call.callback.is_some();
            let insns = call.insns.get(..call.behind).filter(|_| !has_callback)?;
            kernel_query.callees(subject, insns)
        })
    }

    /// The map of a kind.
    fn map(&self, kind: MapKind) -> Option<&Map> {
        let found = self.maps.iter().find(|(other, _)| *other == kind);
        found.map(|(_, map)| map)
    }

    /// Kinds that a helper takes; `None` where no program gets as far as the map.
    fn kinds_of(
        &self,
        kernel_query: &mut KernelQuery,
        registry: &RegistryData,
        subjects: &[Subject],
        id: u32,
    ) -> Option<Vec<MapKind>> {
        let tracepoints = self.tracepoints.iter().map(|target| &target.subject);
        for subject in subjects.iter().chain(tracepoints) {
            let Ok(proto) = registry.helper(&context(subject), id) else {
                continue;
            };
            let Some(object) = self.object_for(registry, subject, proto) else {
                continue;
            };
            let mut is_decided = false;
            let mut kinds = Vec::new();
            for (kind, map) in &self.maps {
                match ask_call(kernel_query, subject, proto, map, object) {
                    Outcome::Taken => {
                        is_decided = true;
                        kinds.push(*kind);
                    }
                    Outcome::Refused => is_decided = true,
                    Outcome::Earlier => {}
                }
            }
            if is_decided {
                return Some(kinds);
            }
        }
        None
    }

    /// Source of the object that the prototype requires, in a program of the kind.
    fn object_for(
        &self,
        registry: &RegistryData,
        subject: &Subject,
        proto: &HelperProto,
    ) -> Option<Object> {
        let wanted = proto.args.iter().zip(&proto.arg_details);
        let mut wanted = wanted.filter(|(arg, _)| is_object(arg.base));
        let Some((arg, detail)) = wanted.next() else {
            return Some(Object::None);
        };
        let tracepoint = |structure: &str| {
            let target = self
                .tracepoints
                .iter()
                .find(|target| target.subject == *subject)?;
            let mut args = 0..target.args.len();
            let index = args.find(|&index| {
                let nullness = registry.lists.tracepoint_arg(&target.name, index);
                target.structure(self.btf, index) == Some(structure)
                    && nullness == spec::registry::TracepointArg::default()
            })?;
            Some(Object::Context(target.offset(self.btf, index)?))
        };
        match (arg.base, detail) {
            (ArgBase::PtrToBtfId, ArgDetail::Btf(ty)) if &*ty.name == "task_struct" => {
                let has = registry.helper(&context(subject), CURRENT_TASK_BTF).is_ok();
                has.then_some(Object::CurrentTask)
            }
            (ArgBase::PtrToBtfId, ArgDetail::Btf(ty)) => tracepoint(&ty.name),
            _ => socket_in_context(registry, subject).or_else(|| tracepoint("sock")),
        }
    }

    /// Bits of the fields that values of a kind may have.
    fn special_fields(&self, kind: MapKind, asked: &mut u64) -> u32 {
        // Other kernels take what they do not know for plain bytes.
        let known = FIELDS.iter().filter(|field| field.is_known(self.btf));
        let holds = |field: &&SpecialField| {
            *asked += 1;
            fields::create(kind, &fields::value_with(**field)).is_ok()
        };
        let fields = known.filter(holds);
        fields.fold(0, |bits, field| bits | field.bit)
    }

    /// True if programs that sleep may use maps of the kind.
    fn in_sleepable(&self, kernel_query: &mut KernelQuery, kind: MapKind) -> bool {
        let syscall = Subject {
            kind: ProgramType::Syscall,
            attach: 0,
            sleepable: true,
            attach_btf_id: 0,
        };
        // Before Linux 5.14 hooks of security are the programs that sleep.
        let hook = self.btf.find(Kind::Func, SLEEPABLE_HOOK);
        let hook = hook.map(|hook| Subject {
            kind: ProgramType::Lsm,
            attach: AttachType::LsmMac.number(),
            attach_btf_id: hook.id().0,
            ..syscall
        });
        let mut subjects = [Some(syscall), hook].into_iter().flatten();
        let Some(subject) = subjects.find(|subject| kernel_query.can_ask(subject)) else {
            return false;
        };
        self.map(kind).is_some_and(|map| {
            let log = kernel_query.ask(&subject, &naming(map), true).log;
            !log.contains("Sleepable programs can only use")
        })
    }

    /// Bits of the fields whose maps programs of a kind may not use. A list or tree is
    /// in a value with a lock, which the kernel refuses by a message of its own.
    pub fn refused_fields(&self, kernel_query: &mut KernelQuery, subject: &Subject) -> u32 {
        let mut is_refused = |field: &&SpecialField| {
            let value = fields::value_with(**field);
            let kinds = [MapKind::Array, MapKind::TaskStorage];
            let map = kinds
                .iter()
                .find_map(|&kind| fields::create(kind, &value).ok());
            let log = map.map(|map| {
                kernel_query
                    .ask(subject, &naming(&map), true)
                    .log
                    .to_owned()
            });
            log.is_some_and(|log| {
                log.contains("cannot use") && log.contains("_head,") == field.is_root()
            })
        };
        let fields = FIELDS.iter().filter(|field| is_refused(field));
        fields.fold(0, |bits, field| bits | field.bit)
    }

    /// True if programs of a kind may call the update or deletion of an element with a
    /// map of sockets; `None` where they have no socket or not the helper.
    pub fn may_change_sockmap(
        &self,
        kernel_query: &mut KernelQuery,
        registry: &RegistryData,
        subject: &Subject,
        helper: u32,
    ) -> Option<bool> {
        let proto = registry.helper(&context(subject), helper).ok()?;
        let object = match helper {
            MAP_UPDATE => socket_in_context(registry, subject)?,
            _ => Object::None,
        };
        match ask_call(
            kernel_query,
            subject,
            proto,
            self.map(MapKind::Sockmap)?,
            object,
        ) {
            Outcome::Taken => Some(true),
            Outcome::Refused => Some(false),
            Outcome::Earlier => None,
        }
    }
}

/// A hook where programs sleep since Linux 5.10.
const SLEEPABLE_HOOK: &str = "bpf_lsm_bprm_committed_creds";

/// Helpers of timers, which live in the values of maps that may hold one.
const TIMERS: [u32; 4] = [169, 170, 171, 172];
/// `bpf_kptr_xchg`, whose destination is in a value.
const KPTR_XCHG: u32 = 194;

/// Helpers with a map among their arguments, timers aside.
pub fn with_map_argument(registry: &RegistryData) -> Vec<u32> {
    let takes_map = |id: &u32| {
        let mut protos = registry.protos.iter().filter(|proto| proto.id == *id);
        protos.any(|proto| {
            proto
                .args
                .iter()
                .any(|arg| arg.base == ArgBase::ConstMapPtr)
        })
    };
    let ids = (1..=HELPERS).filter(|id| takes_map(id) && !TIMERS.contains(id));
    ids.collect()
}

/// Outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The helper takes the map.
    Taken,
    /// The helper takes no map of the kind.
    Refused,
    /// An argument was refused before.
    Earlier,
}

/// Source of the object of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Object {
    /// The call takes no object.
    None,
    /// A pointer at this offset of the context.
    Context(i16),
    /// `bpf_get_current_task_btf`.
    CurrentTask,
}

fn is_object(base: ArgBase) -> bool {
    matches!(
        base,
        ArgBase::PtrToBtfId
            | ArgBase::PtrToBtfIdSockCommon
            | ArgBase::PtrToSocket
            | ArgBase::PtrToSockCommon
    )
}

/// The first field of a context that is a socket.
fn socket_in_context(registry: &RegistryData, subject: &Subject) -> Option<Object> {
    let Layout::Fields(rules) = registry.layout(&context(subject))? else {
        return None;
    };
    let is_socket = |base| matches!(base, RegBase::PtrToSocket | RegBase::PtrToSockCommon);
    let rule = rules.iter().find(|rule| is_socket(rule.value.base))?;
    Some(Object::Context(i16::try_from(rule.first).ok()?))
}

fn context(subject: &Subject) -> ProgramContext<'static> {
    ProgramContext {
        kind: subject.kind,
        attach: subject.attach_type(),
        sleepable: subject.sleepable,
        has_cap_bpf: true,
        has_cap_perfmon: true,
        attach_target: None,
        operation: None,
        of_program: false,
    }
}

/// Asks about one call.
fn ask_call(
    kernel_query: &mut KernelQuery,
    subject: &Subject,
    proto: &HelperProto,
    map: &Map,
    object: Object,
) -> Outcome {
    let call = draft(proto, map, object);
    let answer = match call.callback {
        Some(callback) => kernel_query.ask_with_callback(subject, &call.insns, callback),
        None => kernel_query.ask(subject, &call.insns, true),
    };
    let went_on = format!("\n{}: (b7) r0 = 0", call.behind);
    if answer.log.contains("cannot pass map_type") {
        Outcome::Refused
    } else if answer.result.is_ok() || answer.log.contains(&went_on) {
        Outcome::Taken
    } else {
        Outcome::Earlier
    }
}

/// A program that calls a helper.
pub(super) struct Draft {
    pub(super) insns: Vec<RawInsn>,
    /// Index of the instruction behind the call.
    pub(super) behind: usize,
    /// Index of the callback, if the helper takes one.
    pub(super) callback: Option<u32>,
}

/// Bytes of zeroed stack that pointer arguments point to.
const ROOM: i16 = 64;
/// Bytes that arguments of sizes say.
const SIZE: i32 = 8;

fn draft(proto: &HelperProto, map: &Map, object: Object) -> Draft {
    let mov = |dst, src| slot(0xbf, dst, src, 0, 0);
    let set = |dst, imm| slot(0xb7, dst, 0, 0, imm);
    let exit = slot(0x95, 0, 0, 0, 0);
    let mut insns = vec![mov(6, 1), set(7, 0)];
    for offset in (-ROOM..0).step_by(8) {
        insns.push(slot(0x7a, 10, 0, offset, 0));
    }
    match object {
        Object::None => {}
        Object::Context(offset) => {
            insns.push(slot(0x79, 7, 6, offset, 0));
            // if r7 == 0 then return
            insns.extend([slot(0x55, 7, 0, 2, 0), set(0, 0), exit]);
        }
        Object::CurrentTask => {
            insns.extend([slot(0x85, 0, 0, 0, CURRENT_TASK_BTF as i32), mov(7, 0)]);
        }
    }
    let mut callback_load = None;
    for (arg, reg) in proto.args.iter().zip(1..) {
        match arg.base {
            ArgBase::DontCare => break,
            ArgBase::ConstMapPtr => {
                insns.push(slot(0x18, reg, 1, 0, map.descriptor() as i32));
                insns.push(slot(0, 0, 0, 0, 0));
            }
            ArgBase::PtrToCtx => insns.push(mov(reg, 6)),
            ArgBase::PtrToMapValue if object != Object::None && proto.id == MAP_UPDATE => {
                insns.push(mov(reg, 7));
            }
            ArgBase::PtrToMapKey
            | ArgBase::PtrToMapValue
            | ArgBase::PtrToMem
            | ArgBase::PtrToDynptr
            | ArgBase::PtrToStack => {
                insns.extend([mov(reg, 10), slot(0x07, reg, 0, 0, (-ROOM).into())]);
            }
            ArgBase::ConstSize | ArgBase::ConstSizeOrZero | ArgBase::ConstAllocSizeOrZero => {
                insns.push(set(reg, SIZE));
            }
            ArgBase::PtrToFunc => {
                callback_load = Some(insns.len());
                insns.extend([slot(0x18, reg, 4, 0, 0), slot(0, 0, 0, 0, 0)]);
            }
            base if is_object(base) => insns.push(mov(reg, 7)),
            // A loop without rounds would never call its function.
            _ if proto.id == LOOP => insns.push(set(reg, i32::from(reg == 1))),
            _ => insns.push(set(reg, 0)),
        }
    }
    insns.push(slot(0x85, 0, 0, 0, proto.id as i32));
    let behind = insns.len();
    insns.extend([set(0, 0), exit]);
    let callback = callback_load.map(|load| {
        let start = insns.len();
        insns[load].imm = (start - load - 1) as i32;
        insns.extend([set(0, 0), exit]);
        start as u32
    });
    Draft {
        insns,
        behind,
        callback,
    }
}

/// A program that names a map and does nothing with it.
fn naming(map: &Map) -> [RawInsn; 4] {
    [
        slot(0x18, 1, 1, 0, map.descriptor() as i32),
        slot(0, 0, 0, 0, 0),
        slot(0xb7, 0, 0, 0, 0),
        slot(0x95, 0, 0, 0, 0),
    ]
}

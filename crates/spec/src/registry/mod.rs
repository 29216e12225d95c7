//! The registry: what the verifier must know of a kernel that BTF does not say.
//!
//! Prototypes of helpers and which programs have them, layouts of contexts, ranges
//! of return values, map kinds, kfuncs, limits and lists, as data. A registry is a
//! value that is passed in; nothing here is global. That of Linux 6.18 is made from
//! answers of a running kernel (`cargo xtask profile`) and kept in the crate
//! `profile`.
//!
//! Programs are told apart by a [`ProgramContext`]: type, expected attach type,
//! sleepability and capabilities.

mod context;
mod helper;
mod kfunc;
mod lists;
mod map;
mod resolve;
pub mod text;
pub mod types;

use std::collections::BTreeMap;

pub use context::{CtxAccess, CtxQuery, CtxRefused, FieldRule, Layout, Widths};
pub use helper::{ArgDetail, HelperProto, KernelType, Restriction, Unavailable};
pub use kfunc::{Kfunc, KfuncFlags, ProgramTypes};
pub use lists::{Limits, Lists, SafeList};
pub use map::MapTraits;
pub use types::{ArgBase, ArgType, RegBase, RegType, RetBase, RetType, TypeFlags};

use crate::maps::MapKind;
use crate::programs::ProgramType;

/// What of a program decides about its helpers, context and return value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramContext<'a> {
    /// Its type; of a freplace program, that of its target.
    pub kind: ProgramType,
    /// Its expected attach type as a number.
    pub attach: u32,
    /// True if it may sleep.
    pub sleepable: bool,
    /// The caller has CAP_BPF.
    pub has_cap_bpf: bool,
    /// The caller has CAP_PERFMON.
    pub has_cap_perfmon: bool,
    /// Name of the function or hook that it attaches to by BTF.
    pub attach_target: Option<&'a str>,
}

/// The values that a program may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReturnRange {
    /// Least value.
    pub min: i32,
    /// Greatest value.
    pub max: i32,
}

/// The capability that a helper needs beside that of loading the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Capability {
    /// None.
    None,
    /// CAP_BPF.
    Bpf,
    /// CAP_PERFMON.
    Perfmon,
}

/// A helper of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HelperEntry {
    /// Number of the helper.
    pub id: u32,
    /// Index of the prototype.
    pub proto: u32,
    /// What the caller needs for it.
    pub capability: Capability,
}

/// What programs of one type and attach type are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramRules {
    /// Index of the set of helpers.
    pub helpers: u32,
    /// Index of the context's layout.
    pub layout: Option<u32>,
    /// Allowed return values; `None` for any.
    pub returns: Option<ReturnRange>,
    /// True if an answer of the kernel stands behind the rules, false if they are
    /// read from its source.
    pub is_asked: bool,
}

/// What the verifier must know of a kernel that BTF does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    /// Prototypes; several for some helpers.
    pub protos: Vec<HelperProto>,
    /// Sets of helpers, each ascending by number.
    pub helper_sets: Vec<Vec<HelperEntry>>,
    /// Layouts of contexts.
    pub layouts: Vec<Layout>,
    /// Rules by program type and attach type. Types whose rules do not depend on
    /// the attach type stand there with `None`.
    pub programs: BTreeMap<(ProgramType, Option<u32>), ProgramRules>,
    /// Map kinds.
    pub maps: BTreeMap<MapKind, MapTraits>,
    /// kfuncs by name.
    pub kfuncs: BTreeMap<Box<str>, Kfunc>,
    /// Names of kfuncs by BTF id.
    pub kfunc_ids: BTreeMap<u32, Box<str>>,
    /// Limits.
    pub limits: Limits,
    /// Lists of names.
    pub lists: Lists,
}

impl Registry {
    /// The rules for a program; `None` for types that the registry does not have.
    pub fn rules(&self, program: &ProgramContext<'_>) -> Option<&ProgramRules> {
        let by_attach = self.programs.get(&(program.kind, Some(program.attach)));
        by_attach.or_else(|| self.programs.get(&(program.kind, None)))
    }

    /// The prototype of a helper as a program may call it. Licence and sleeping are
    /// the caller's to check, as their refusals come after this one.
    pub fn helper(
        &self,
        program: &ProgramContext<'_>,
        id: u32,
    ) -> Result<&HelperProto, Unavailable> {
        if id == 0 || i32::try_from(id).is_ok_and(|id| crate::helpers::helper(id).is_none()) {
            return Err(Unavailable::Unknown);
        }
        let rules = self.rules(program).ok_or(Unavailable::ForProgram)?;
        let set = self.helper_sets.get(rules.helpers as usize);
        let set = set.ok_or(Unavailable::ForProgram)?;
        let found = set.binary_search_by_key(&id, |entry| entry.id);
        let entry = set[found.map_err(|_| Unavailable::ForProgram)?];
        let has_capability = match entry.capability {
            Capability::None => true,
            Capability::Bpf => program.has_cap_bpf,
            Capability::Perfmon => program.has_cap_perfmon,
        };
        if !has_capability {
            return Err(Unavailable::Privilege);
        }
        let proto = self
            .protos
            .get(entry.proto as usize)
            .ok_or(Unavailable::ForProgram)?;
        let target = program.attach_target.unwrap_or_default();
        let is_allowed = match proto.restriction {
            None => true,
            Some(Restriction::DPath) => self.lists.d_path.contains(target),
            Some(Restriction::SkStorageTracing) => !target.contains("bpf_sk_storage"),
        };
        if is_allowed {
            Ok(proto)
        } else {
            Err(Unavailable::Hook)
        }
    }

    /// What an access to the context means, or why it is refused.
    pub fn ctx_access(
        &self,
        program: &ProgramContext<'_>,
        query: CtxQuery,
    ) -> Result<CtxAccess<'_>, CtxRefused> {
        self.layout(program)
            .ok_or(CtxRefused::Unknown)?
            .access(query)
    }

    /// The layout of a program's context.
    pub fn layout(&self, program: &ProgramContext<'_>) -> Option<&Layout> {
        let rules = self.rules(program)?;
        self.layouts.get(rules.layout? as usize)
    }

    /// The values that a program may return; `None` for any. What depends on the
    /// attach target's prototype (LSM, struct_ops, fmod_ret) is not in here.
    pub fn return_range(&self, program: &ProgramContext<'_>) -> Option<ReturnRange> {
        self.rules(program)?.returns
    }

    /// What the verifier must know of a map kind.
    pub fn map(&self, kind: MapKind) -> Option<&MapTraits> {
        self.maps.get(&kind)
    }

    /// The kfunc of that BTF id.
    pub fn kfunc(&self, btf_id: u32) -> Option<&Kfunc> {
        self.kfunc_named(self.kfunc_ids.get(&btf_id)?)
    }

    /// The kfunc of that name.
    pub fn kfunc_named(&self, name: &str) -> Option<&Kfunc> {
        self.kfuncs.get(name)
    }
}

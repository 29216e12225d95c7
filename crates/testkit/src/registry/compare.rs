//! Compares a registry with the running kernel: every entry that can be asked about,
//! or one of so many.
//!
//! A prototype is compared with kernel memory; a helper of a program type, an access
//! to a context, a range of return values, a kfunc of a program type by one load.

use std::{fs, io};

use btf::{Btf, Kind};
use spec::programs::ProgramType;
use spec::registry::{CtxQuery, HelperProto, Layout, ProgramContext, RegBase, Registry};

use super::ask::{Asker, Subject, subjects};
use super::build::{HELPERS, protos};
use super::layout::value;
use super::memory::KernelMemory;

/// Offsets of contexts asked about.
const OFFSETS: i16 = 320;

/// What a comparison found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Entries compared, by kind.
    pub compared: Vec<(&'static str, u64)>,
    /// Programs that were given to the kernel.
    pub questions: u64,
    /// What differs.
    pub differences: Vec<String>,
    /// Entries that stand in the registry unasked, with the reason.
    pub unasked: Vec<String>,
}

impl Comparison {
    fn count(&mut self, kind: &'static str, differs: Option<String>) {
        match self.compared.iter_mut().find(|(name, _)| *name == kind) {
            Some((_, count)) => *count += 1,
            None => self.compared.push((kind, 1)),
        }
        self.differences.extend(differs);
    }
}

/// Takes one of so many entries, by a fixed stride.
struct Stride {
    every: u64,
    at: u64,
}

impl Stride {
    fn takes(&mut self) -> bool {
        self.at += 1;
        self.at.is_multiple_of(self.every)
    }
}

/// Compares one entry of each `every`, all for 1.
pub fn compare(registry: &Registry, every: u64) -> io::Result<Comparison> {
    let btf = Btf::parse(fs::read("/sys/kernel/btf/vmlinux")?).map_err(io::Error::other)?;
    let memory = KernelMemory::read()?;
    let mut asker = Asker::new();
    let mut comparison = Comparison::default();
    let mut stride = Stride {
        every: every.max(1),
        at: 0,
    };
    compare_protos(registry, &protos(&memory, &btf), &mut comparison);
    let subjects = subjects(&btf);
    for subject in &subjects {
        let program = context(subject);
        compare_helpers(
            registry,
            &mut asker,
            subject,
            &program,
            &mut stride,
            &mut comparison,
        );
        compare_context(
            registry,
            &mut asker,
            subject,
            &program,
            &mut stride,
            &mut comparison,
        );
        let (theirs, ours) = (asker.return_range(subject), registry.return_range(&program));
        let differs = theirs != ours;
        let words = || {
            format!(
                "{} {}: returns {theirs:?}, registry {ours:?}",
                subject.kind, subject.attach
            )
        };
        comparison.count("return ranges", differs.then(words));
    }
    compare_kfuncs(
        registry,
        &mut asker,
        &btf,
        &subjects,
        &mut stride,
        &mut comparison,
    );
    let rules = registry
        .programs
        .iter()
        .filter(|(_, rules)| !rules.is_asked);
    comparison.unasked = rules
        .map(|((kind, attach), _)| match attach {
            Some(attach) => format!("{kind}, attach type {attach}"),
            None => kind.to_string(),
        })
        .collect();
    comparison.questions = asker.questions;
    Ok(comparison)
}

fn context(subject: &Subject) -> ProgramContext<'static> {
    ProgramContext {
        kind: subject.kind,
        attach: subject.attach,
        sleepable: subject.sleepable,
        has_cap_bpf: true,
        has_cap_perfmon: true,
        attach_target: None,
    }
}

/// Prototypes without the ids of their types, which the registry has by name.
fn plain(protos: &[HelperProto]) -> Vec<String> {
    let mut lines: Vec<String> = protos
        .iter()
        .map(|proto| {
            let mut proto = proto.clone();
            if let Some(ty) = &mut proto.ret_btf {
                ty.btf_id = 0;
            }
            for detail in &mut proto.arg_details {
                if let spec::registry::ArgDetail::Btf(ty) = detail {
                    ty.btf_id = 0;
                }
            }
            format!("{proto:?}")
        })
        .collect();
    lines.sort();
    lines
}

fn compare_protos(registry: &Registry, theirs: &[HelperProto], comparison: &mut Comparison) {
    let (ours, theirs) = (plain(&registry.protos), plain(theirs));
    for line in &theirs {
        let is_missing = ours.binary_search(line).is_err();
        let words = || format!("the kernel has the prototype {line}");
        comparison.count("prototypes", is_missing.then(words));
    }
    let extra = ours
        .iter()
        .filter(|line| theirs.binary_search(line).is_err());
    let words = extra.map(|line| format!("the registry has the prototype {line}"));
    comparison.differences.extend(words);
}

fn compare_helpers(
    registry: &Registry,
    asker: &mut Asker,
    subject: &Subject,
    program: &ProgramContext<'_>,
    stride: &mut Stride,
    comparison: &mut Comparison,
) {
    let set = registry.rules(program).map(|rules| rules.helpers as usize);
    let set = set.and_then(|set| registry.helper_sets.get(set));
    for id in 1..=HELPERS {
        if !stride.takes() {
            continue;
        }
        let theirs = asker.has_helper(subject, id);
        let ours = set.is_some_and(|set| set.iter().any(|entry| entry.id == id));
        let words = || {
            format!(
                "{} {}: helper {id}: kernel {theirs}, registry {ours}",
                subject.kind, subject.attach
            )
        };
        comparison.count("helpers of program types", (theirs != ours).then(words));
    }
}

fn compare_context(
    registry: &Registry,
    asker: &mut Asker,
    subject: &Subject,
    program: &ProgramContext<'_>,
    stride: &mut Stride,
    comparison: &mut Comparison,
) {
    if !matches!(registry.layout(program), Some(Layout::Fields(_))) {
        return;
    }
    for offset in 0..OFFSETS {
        for size in [1, 2, 4, 8] {
            for (write, signed) in [(false, false), (false, true), (true, false)] {
                if signed && size == 8 || !stride.takes() {
                    continue;
                }
                let query = CtxQuery {
                    offset: offset.into(),
                    size,
                    write,
                    signed,
                };
                let ours = registry.ctx_access(program, query).ok();
                let is_same = if write {
                    asker.ctx_write(subject, offset, size) == ours.is_some()
                } else {
                    let theirs = asker.ctx_read(subject, offset, size, signed);
                    match (theirs.as_deref().and_then(value), ours) {
                        (None, None) => theirs.is_none(),
                        (Some((value, btf)), Some(ours)) => {
                            let name = btf.as_ref().map(|ty| &ty.name);
                            let is_scalar = signed && value.base == RegBase::Scalar;
                            is_scalar || value == ours.value && name == ours.btf.map(|ty| &ty.name)
                        }
                        _ => false,
                    }
                };
                let words = || {
                    format!(
                        "{} {}: context, {query:?}: registry {ours:?}",
                        subject.kind, subject.attach
                    )
                };
                comparison.count("context accesses", (!is_same).then(words));
            }
        }
    }
}

fn compare_kfuncs(
    registry: &Registry,
    asker: &mut Asker,
    btf: &Btf<'_>,
    subjects: &[Subject],
    stride: &mut Stride,
    comparison: &mut Comparison,
) {
    let mut asked: Vec<ProgramType> = Vec::new();
    for subject in subjects {
        if asked.contains(&subject.kind) {
            continue;
        }
        asked.push(subject.kind);
        for kfunc in registry.kfuncs.values() {
            if !stride.takes() {
                continue;
            }
            let id = btf.find(Kind::Func, &kfunc.name).map(|ty| ty.id().0);
            let theirs = id.is_some_and(|id| asker.has_kfunc(subject, id));
            let ours = kfunc.program_types.has(subject.kind);
            let words = || {
                format!(
                    "{}: kfunc {}: kernel {theirs}, registry {ours}",
                    subject.kind, kfunc.name
                )
            };
            comparison.count("kfuncs of program types", (theirs != ours).then(words));
        }
    }
}

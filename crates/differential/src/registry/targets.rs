//! Attach targets by BTF: what programs are given for each argument of every tracepoint
//! and of every iterator's target, asked by one load for each argument.

use btf::{Btf, Kind, Shape, Type, TypeId};
use spec::programs::ProgramType;
use spec::registry::{
    IteratorArg, KernelType, RegBase, RegType, RegistryData, TracepointArg, TypeFlags,
};

use super::layout::value;
use super::query::{KernelQuery, Subject};
use super::tables::TRACEPOINT;

/// `BPF_TRACE_RAW_TP`.
pub const TRACE_RAW_TP: u32 = 23;
/// `BPF_TRACE_ITER`.
pub const TRACE_ITER: u32 = 28;
/// Prefix of the functions of iterators' targets.
pub const ITERATOR: &str = "bpf_iter_";

/// A target's attach kind and arguments.
#[derive(Clone, Debug)]
pub struct Target {
    /// Name of the tracepoint or iterator, without prefix.
    pub name: String,
    /// Programs for it.
    pub subject: Subject,
    /// Types of its arguments, without `__data` of a tracepoint.
    pub args: Vec<TypeId>,
}

/// Every tracepoint of the kernel.
pub fn tracepoints(btf: &Btf<'_>) -> Vec<Target> {
    let types = btf.types().filter(|ty| ty.kind() == Kind::Typedef);
    let targets = types.filter_map(|ty| {
        let name = ty.name().to_str()?.strip_prefix(TRACEPOINT)?;
        let Shape::Ptr(proto) = btf.get(btf.skip_modifiers(ty.id())?)?.shape() else {
            return None;
        };
        let args = params(btf.get(proto)?)?.into_iter().skip(1);
        Some(target(name, TRACE_RAW_TP, ty.id(), args.collect()))
    });
    targets.collect()
}

/// Every function that is named like an iterator's target; the kernel says which are.
pub fn iterators(btf: &Btf<'_>) -> Vec<Target> {
    let types = btf.types().filter(|ty| ty.kind() == Kind::Func);
    let targets = types.filter_map(|ty| {
        let name = ty.name().to_str()?.strip_prefix(ITERATOR)?;
        let args = params(btf.get(ty.referred()?)?)?;
        Some(target(name, TRACE_ITER, ty.id(), args))
    });
    targets.collect()
}

fn target(name: &str, attach: u32, id: TypeId, args: Vec<TypeId>) -> Target {
    Target {
        name: name.to_owned(),
        subject: Subject {
            kind: ProgramType::Tracing,
            attach,
            sleepable: false,
            attach_btf_id: id.0,
        },
        args,
    }
}

fn params(ty: Type<'_>) -> Option<Vec<TypeId>> {
    match ty.shape() {
        Shape::Proto(proto) => Some(proto.params().map(|param| param.ty).collect()),
        _ => None,
    }
}

impl Target {
    /// The structure that an argument points to.
    pub fn structure<'b>(&self, btf: &'b Btf<'_>, index: usize) -> Option<&'b str> {
        let ty = btf.get(btf.skip_modifiers(*self.args.get(index)?)?)?;
        let Shape::Ptr(to) = ty.shape() else {
            return None;
        };
        let ty = btf.get(btf.skip_modifiers(to)?)?;
        ty.name().to_str().filter(|_| ty.kind().is_composite())
    }

    /// Offset of an argument in the context; `None` where an argument before it takes more
    /// than eight bytes, or after the last that a program may read.
    pub fn offset(&self, btf: &Btf<'_>, index: usize) -> Option<i16> {
        let is_wide = |id: &TypeId| btf.size_of(*id).is_some_and(|size| size > 8);
        let fits = index < 12 && !self.args.iter().take(index).any(is_wide);
        fits.then_some(8 * index as i16)
    }

    /// Type of a loaded argument; `None` if the load is rejected.
    pub fn ask(
        &self,
        kernel_query: &mut KernelQuery,
        offset: i16,
    ) -> Option<(RegType, Option<KernelType>)> {
        let answer = kernel_query.ctx_read(&self.subject, offset, 8, false)?;
        value(&answer)
    }
}

/// Properties of a tracepoint's argument beyond its type; `None` for a
/// refusal.
pub fn nullness(answer: Option<&(RegType, Option<KernelType>)>) -> Option<TracepointArg> {
    let (value, _) = answer?;
    Some(TracepointArg {
        may_be_null: value.flags.has(TypeFlags::PTR_MAYBE_NULL),
        may_be_error: value.base == RegBase::Scalar,
    })
}

/// Type of an iterator's argument by the prototype of its function.
pub fn plain_argument(structure: &str) -> (RegType, Option<KernelType>) {
    let ty = KernelType {
        name: structure.into(),
        btf_id: 0,
    };
    let value = RegType::new(RegBase::PtrToBtfId, TypeFlags::PTR_TRUSTED);
    (value, Some(ty))
}

/// Queries every argument of an iterator's target, and records those that differ from the
/// prototype.
pub fn iterator_args(
    kernel_query: &mut KernelQuery,
    btf: &Btf<'_>,
    target: &Target,
) -> Vec<IteratorArg> {
    let mut args = Vec::new();
    for index in 0..target.args.len() {
        let Some(offset) = target.offset(btf, index) else {
            continue;
        };
        let Some((value, ty)) = target.ask(kernel_query, offset) else {
            continue;
        };
        let by_prototype = match target.structure(btf, index) {
            Some(structure) => plain_argument(structure),
            None => (RegBase::Scalar.into(), None),
        };
        if (value, ty.clone()) != by_prototype {
            args.push(IteratorArg {
                index: index as u32,
                value,
                btf: ty,
            });
        }
    }
    args
}

/// The registry's type of an iterator's argument.
pub fn expected_argument(
    registry: &RegistryData,
    btf: &Btf<'_>,
    target: &Target,
    index: usize,
) -> (RegType, Option<KernelType>) {
    let described = registry.iterators.get(target.name.as_str());
    match described.and_then(|iterator| iterator.arg(index)) {
        Some(arg) => {
            let plain = |ty: &KernelType| KernelType {
                name: ty.name.clone(),
                btf_id: 0,
            };
            (arg.value, arg.btf.as_ref().map(plain))
        }
        None => match target.structure(btf, index) {
            Some(structure) => plain_argument(structure),
            None => (RegBase::Scalar.into(), None),
        },
    }
}

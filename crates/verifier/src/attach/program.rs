//! Programs that replace or trace a function of another program (`bpf_check_attach_target` with a
//! `tgt_prog`).

use btf::{Btf, Kind, Linkage, Name, Shape, Type, TypeId};
use program::Program;
use spec::programs::{AttachType, HookKind, LoadFlags, ProgramType};

use super::function::{AttachedFunction, prototype};
use crate::analysis::{Analysis, check_func_proto};
use crate::env::Env;
use crate::input::Input;
use crate::log::Sink;
use crate::{Result, Stop, Verdict, refuse, refuse_if};

/// What Linux keeps of a loaded program that others attach to (`bpf_prog_aux`).
#[derive(Clone, Debug)]
pub(crate) struct LoadedTarget {
    /// The verdict about it.
    pub(crate) verdict: Verdict,
    /// Its functions, in the order of its func_info.
    pub(crate) functions: Vec<LoadedFunction>,
}

/// What Linux keeps of a function of a loaded program (`bpf_func_info`, `bpf_func_info_aux`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadedFunction {
    /// Its type in the program's BTF.
    ty: TypeId,
    /// Its BTF does not say what its arguments are.
    is_unreliable: bool,
    /// It changes packet data.
    changes_packet: bool,
    /// It may sleep.
    might_sleep: bool,
    /// It runs when an exception is thrown.
    is_exception_callback: bool,
}

impl LoadedTarget {
    /// A program of which nothing is known but the verdict.
    pub(crate) fn without_functions(verdict: Verdict) -> LoadedTarget {
        LoadedTarget {
            verdict,
            functions: Vec::new(),
        }
    }

    /// A verified program. Functions of which no instruction was reached are removed with their
    /// func_info, but not with their func_info_aux: Linux 6.18 reads that of another function
    /// behind them (`adjust_subprog_starts_after_remove`).
    #[doc(alias = "adjust_subprog_starts_after_remove")]
    pub(crate) fn new(verdict: Verdict, env: &Env<'_>) -> LoadedTarget {
        let analysis = env.analysis;
        let starts = analysis.subprogs.iter().map(|info| info.start as usize);
        let ends = starts.clone().skip(1).chain([env.aux.len()]);
        let is_left = |(start, end): (usize, usize)| env.aux[start..end].iter().any(|aux| aux.seen);
        let left = starts.zip(ends).map(is_left);
        let functions = env.input.program.func_info().iter().zip(&analysis.subprogs);
        let functions = functions
            .enumerate()
            .zip(left)
            .filter(|(_, is_left)| *is_left);
        let functions = functions.zip(&env.subprogs);
        let functions = functions.map(|(((index, (func, info)), _), aux)| LoadedFunction {
            ty: func.type_id,
            is_unreliable: aux.unreliable,
            changes_packet: info.changes_pkt_data,
            might_sleep: info.might_sleep,
            is_exception_callback: analysis.exception_callback == Some(index),
        });
        LoadedTarget {
            verdict,
            functions: functions.collect(),
        }
    }

    /// The function of a type in the program's BTF.
    pub(crate) fn function(&self, id: TypeId) -> Option<LoadedFunction> {
        let mut functions = self.functions.iter();
        functions.find(|function| function.ty == id).copied()
    }
}

impl LoadedFunction {
    /// True if its BTF says what its arguments are.
    pub(crate) fn is_reliable(self) -> bool {
        !self.is_unreliable
    }
}

/// Checks that the program may replace or trace a function of its target.
pub(super) fn check_program_target(
    input: &Input<'_>,
    analysis: &Analysis,
    target: &Program,
    id: TypeId,
    check: &mut Sink<'_>,
) -> Result<()> {
    let Some(loaded) = &input.target else {
        return Err(Stop::Bug("the target program is not verified".into()));
    };
    if loaded.verdict != Verdict::Accepted {
        let why = match &loaded.verdict {
            Verdict::Refused(refusal) => format!("the target program is refused: {refusal}"),
            _ => "the target program has no verdict".to_owned(),
        };
        return Err(Stop::unsupported(why));
    }
    let Some(types) = target.btf() else {
        return Err(refuse!(check => Program::TargetWithoutBtf));
    };
    let Some(ty) = types.get(id) else {
        return Err(refuse!(check => Program::InvalidAttachBtfId { id: id.0 }));
    };
    let name = ty.name();
    let Some(function) = loaded.function(id) else {
        return Err(refuse!(check => Program::NoTargetFunction { name }));
    };
    let replaces = input.program.kind() == ProgramType::Ext;
    let traces = |program: &Program| program.kind() == ProgramType::Tracing;
    let is_tracing = traces(input.program);
    if function.is_exception_callback {
        let what = if replaces {
            "Extension"
        } else {
            "FENTRY/FEXIT"
        };
        return Err(refuse!(check => Program::TargetExceptionCallback { what }));
    }
    if replaces {
        check_replacement(analysis, function, check)?;
    }
    let nested = target.attach_target();
    if is_tracing {
        let of_tracing = nested.and_then(|nested| nested.program.as_deref());
        if traces(target) && of_tracing.is_some_and(traces) {
            return Err(refuse!(check => Program::NestedTracing));
        }
    } else if target.kind() == input.program.kind() {
        return Err(refuse!(check => Program::RecursiveAttach));
    }
    let hook_of =
        |program: &Program| HookKind::of(AttachType::from_number(program.expected_attach_type()));
    let target_hook = hook_of(target);
    if replaces && traces(target) && matches!(target_hook, HookKind::Fentry | HookKind::Fexit) {
        return Err(refuse!(check => Program::ExtendsTracing));
    }
    let hook = match is_tracing {
        true => hook_of(input.program),
        false => HookKind::Unnamed,
    };
    match hook {
        HookKind::RawTracepoint => return Err(refuse!(check => Program::TracepointTarget)),
        HookKind::Fentry | HookKind::Fexit | HookKind::ModifyReturn | HookKind::Iterator => {}
        HookKind::Unnamed
        | HookKind::Lsm
        | HookKind::LsmCgroup
        | HookKind::Fsession
        | HookKind::Multi => {
            if is_tracing {
                let number = input.program.expected_attach_type();
                return Err(super::unknown_attach_type(number));
            }
        }
    }
    refuse_if!(ty.kind() != Kind::Func, check => Program::NotFunction { id: id.0 });
    if replaces {
        check_type_match(input.program, types, ty, check)?;
    }
    if function.is_reliable() {
        let returned = check_func_proto(check, types, ty)?;
        super::check_returned(input, check, &name.to_string_lossy(), returned)?;
    }
    // A replacement takes the attach type of its target, of whatever type that is.
    let is_of_iterator = match replaces {
        true => target_hook == HookKind::Iterator,
        false => hook == HookKind::Iterator,
    };
    let is_sleepable = input.program.flags().has(LoadFlags::SLEEPABLE);
    refuse_if!(is_sleepable && hook != HookKind::Iterator, check => Program::NotSleepable { name });
    if is_of_iterator {
        return Err(super::no_iterator(&name.to_string_lossy()));
    }
    refuse_if!(hook == HookKind::ModifyReturn, check => Program::ModifiesReturn);
    Ok(())
}

/// What a replacement may do that the function does not.
fn check_replacement(
    analysis: &Analysis,
    function: LoadedFunction,
    check: &mut Sink<'_>,
) -> Result<()> {
    refuse_if!(function.is_unreliable, check => Program::ReplacesStatic);
    let Some(own) = analysis.subprogs.first() else {
        return Ok(());
    };
    if own.changes_pkt_data && !function.changes_packet {
        return Err(refuse!(check => Program::ReplacementChangesPacket));
    }
    refuse_if!(own.might_sleep && !function.might_sleep, check => Program::ReplacementSleeps);
    Ok(())
}

/// Checks that the replacement has the prototype of the function (`btf_check_type_match`,
/// `btf_check_func_type_match`).
#[doc(alias = "btf_check_type_match")]
#[doc(alias = "btf_check_func_type_match")]
fn check_type_match(
    program: &Program,
    theirs: &Btf<'_>,
    target: Type<'_>,
    check: &mut Sink<'_>,
) -> Result<()> {
    let (Some(ours), Some(func)) = (program.btf(), program.func_info().first()) else {
        return Err(refuse!(check => Program::ReplacementWithoutBtf));
    };
    let own = ours.at(func.type_id);
    let (name, their_name) = (own.name(), target.name());
    for (ty, name) in [(own, name), (target, their_name)] {
        match ty.shape() {
            Shape::Func(func) if func.linkage == Linkage::GLOBAL => {}
            _ => return Err(refuse!(check => Program::NotGlobal { name })),
        }
    }
    let proto = |btf, ty: Type<'_>| match ty.shape() {
        Shape::Func(func) => prototype(btf, func.proto),
        _ => None,
    };
    let (Some(ours_proto), Some(theirs_proto)) = (proto(ours, own), proto(theirs, target)) else {
        return Err(Stop::Bug("a function without prototype".into()));
    };
    let (count, their_count) = (ours_proto.params().len(), theirs_proto.params().len());
    if count != their_count {
        return Err(refuse!(check => Program::ParameterCount {
            name, count, their_name, their_count
        }));
    }
    let (returned, their_returned) = (
        strip(ours, ours_proto.returns),
        strip(theirs, theirs_proto.returns),
    );
    if info(&returned) != info(&their_returned) {
        return Err(refuse!(check => Program::ReturnKind {
            kind: returned.kind().name(), name,
            their_kind: their_returned.kind().name(), their_name
        }));
    }
    for (index, (one, other)) in ours_proto.params().zip(theirs_proto.params()).enumerate() {
        let pair = Pair {
            ours,
            theirs,
            name,
            their_name,
            index,
        };
        pair.check_parameter(one.ty, other.ty, check)?;
    }
    Ok(())
}

/// A parameter of both functions.
struct Pair<'a> {
    ours: &'a Btf<'a>,
    theirs: &'a Btf<'a>,
    name: Name<'a>,
    their_name: Name<'a>,
    index: usize,
}

impl Pair<'_> {
    fn check_parameter(&self, one: TypeId, other: TypeId, check: &mut Sink<'_>) -> Result<()> {
        let Pair {
            name,
            their_name,
            index,
            ..
        } = *self;
        let (ty, their) = (strip(self.ours, one), strip(self.theirs, other));
        if info(&ty) != info(&their) {
            return Err(refuse!(check => Program::ParameterKind {
                index, name, kind: ty.kind().name(), their_name, their_kind: their.kind().name()
            }));
        }
        let size = |btf: &Btf<'_>, ty: &Type<'_>| match ty.kind() {
            Kind::Ptr => None,
            _ => btf.size_of(ty.id()),
        };
        let (bytes, their_bytes) = (size(self.ours, &ty), size(self.theirs, &their));
        if bytes != their_bytes {
            return Err(refuse!(check => Program::ParameterSize {
                index, name, size: bytes.unwrap_or(0), their_name,
                their_size: their_bytes.unwrap_or(0)
            }));
        }
        if matches!(ty.kind(), Kind::Int | Kind::Enum | Kind::Enum64) {
            return Ok(());
        }
        let (Shape::Ptr(to), Shape::Ptr(their_to)) = (ty.shape(), their.shape()) else {
            return Err(refuse!(check => Program::ParameterUnrecognized { index, name }));
        };
        let (to, their_to) = (strip(self.ours, to), strip(self.theirs, their_to));
        for (ty, name) in [(to, name), (their_to, their_name)] {
            if !ty.kind().is_composite() {
                return Err(refuse!(check => Program::ParameterNotContext { index, name }));
            }
        }
        if to.name() != their_to.name() {
            return Err(refuse!(check => Program::ParameterContext {
                index, name, context: to.name(), their_name, their_context: their_to.name()
            }));
        }
        Ok(())
    }
}

/// What `btf_type::info` has of a type.
fn info(ty: &Type<'_>) -> (Kind, bool, usize) {
    let members = ty
        .as_composite()
        .map_or(0, |composite| composite.members().count());
    (ty.kind(), ty.flag(), members)
}

/// The type below modifiers.
fn strip<'a>(btf: &'a Btf<'_>, id: TypeId) -> Type<'a> {
    btf.at(btf.skip_modifiers(id).unwrap_or(TypeId::VOID))
}

impl<'a> AttachedFunction<'a> {
    /// The function of another program that a program is attached to.
    pub(super) fn of_program(
        input: &Input<'a>,
        target: &'a Program,
        id: TypeId,
    ) -> Option<AttachedFunction<'a>> {
        let btf = &**target.btf()?;
        let ty = btf.get(id)?;
        let Shape::Func(func) = ty.shape() else {
            return None;
        };
        let function = input.target.as_ref()?.function(id)?;
        Some(AttachedFunction::new(
            ty.name().to_string_lossy(),
            btf,
            prototype(btf, func.proto).filter(|_| function.is_reliable()),
            Some(target),
        ))
    }
}

/// The type of the program whose context a function of it gets (`saved_dst_prog_type`).
pub(crate) fn context_type(target: &Program) -> ProgramType {
    let replaced = target
        .attach_target()
        .and_then(|target| target.program.as_deref());
    match (target.kind(), replaced) {
        (ProgramType::Ext, Some(replaced)) => replaced.kind(),
        (kind, _) => kind,
    }
}

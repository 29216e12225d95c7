//! Contexts of programs by the names of arguments and fields.
//!
//! Arguments are named as the kernel's BTF names the parameters of the function that is traced, of the
//! tracepoint (`__bpf_trace_NAME`), of the LSM hook (`bpf_lsm_NAME`) or of the stub of a member of a struct_ops
//! (`STRUCT__MEMBER`); a list gives them by position.

use std::sync::Arc;

use btf::{Btf, Kind, Shape, TypeId};
use program::Program;
use spec::programs::{HookKind, ProgramType};

use super::memory::{Label, ModelMemory};
use super::names::{member, nearest, type_name, type_of};
use super::value::{MemberPath, ModelError, ModelValue};
use super::write::Target;

/// Registers of arguments on x86-64, in order.
const REGISTERS: [&str; 6] = ["di", "si", "dx", "cx", "r8", "r9"];

/// Those of arguments of a system call.
const SYSCALL_REGISTERS: [&str; 6] = ["di", "si", "dx", "r10", "r8", "r9"];

/// Pointers of contexts to bytes, and those behind them.
const BOUNDS: [(&str, &str); 3] = [
    ("optval", "optval_end"),
    ("data", "data_end"),
    ("skb_data", "skb_data_end"),
];

/// A parameter: its name and its type.
type Parameter = (String, TypeId);

/// What the context of a program is.
#[derive(Clone, Debug)]
pub enum ContextForm {
    /// A word for each argument, and one for the result behind them.
    Arguments {
        /// The function, tracepoint or member.
        of: String,
        /// Names and types of the kernel.
        parameters: Vec<(String, TypeId)>,
        /// Type of the result, for programs that see one.
        result: Option<TypeId>,
        /// The result is 0 if it is not given.
        has_default_result: bool,
    },
    /// Registers at a function.
    Registers {
        /// The function.
        of: String,
        /// Names and types of the kernel.
        parameters: Vec<(String, TypeId)>,
        /// The function has returned.
        has_returned: bool,
        /// Of a system call, whose arguments are in registers that its first one points to, the parameters of
        /// its function.
        entry: Option<Vec<(String, TypeId)>>,
    },
    /// A structure.
    Structure(Arc<Btf<'static>>, TypeId),
    /// The structure of an iterator.
    Iterator(TypeId),
}

/// A context that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelContext {
    /// Its address.
    pub address: u64,
    /// Number of arguments.
    pub arguments: usize,
    /// The result of the function is behind them.
    pub has_result: bool,
}

impl ContextForm {
    /// That of a program, for a kernel with these types.
    ///
    /// # Errors
    /// For types whose programs get packets, and where the kernel lacks what the program is attached to.
    pub fn of(program: &Program, types: &Arc<Btf<'static>>) -> Result<ContextForm, String> {
        let kind = program.kind();
        match kind {
            ProgramType::Kprobe => Ok(registers(program, types)),
            ProgramType::Tracepoint => record(program, types),
            ProgramType::RawTracepoint | ProgramType::RawTracepointWritable => {
                match section_name(program) {
                    "" => any_tracepoint(types),
                    name => tracepoint(types, name),
                }
            }
            ProgramType::Tracing | ProgramType::Lsm => traced(program, types),
            ProgramType::StructOps => operation(program, types),
            ProgramType::PerfEvent
            | ProgramType::CgroupSock
            | ProgramType::SockOps
            | ProgramType::CgroupDevice
            | ProgramType::SkMsg
            | ProgramType::CgroupSockAddr
            | ProgramType::SkReuseport
            | ProgramType::CgroupSysctl
            | ProgramType::CgroupSockopt => {
                let id = type_of(types, kind.context().unwrap_or_default())?;
                Ok(ContextForm::Structure(types.clone(), id))
            }
            ProgramType::LircMode2 | ProgramType::Ext => Err(format!(
                "programs of type {} are not run by arguments",
                kind.name()
            )),
            ProgramType::SocketFilter
            | ProgramType::SkSkb
            | ProgramType::SchedCls
            | ProgramType::SchedAct
            | ProgramType::Xdp
            | ProgramType::CgroupSkb
            | ProgramType::LwtIn
            | ProgramType::LwtOut
            | ProgramType::LwtXmit
            | ProgramType::LwtSeg6local
            | ProgramType::FlowDissector
            | ProgramType::SkLookup
            | ProgramType::Syscall
            | ProgramType::Netfilter => Err(format!(
                "programs of type {} run on a packet: run NAME PACKET [ctx={{…}}], or none for the packet",
                kind.name()
            )),
        }
    }
}

/// What follows the first slash of the section, without an offset.
fn section_name(program: &Program) -> &str {
    let name = program
        .section()
        .split_once('/')
        .map_or("", |(_, name)| name);
    name.split('+').next().unwrap_or(name)
}

/// Names and types of the parameters of a prototype, from one on.
pub(super) fn parameters(types: &Btf<'_>, proto: TypeId, from: usize) -> Option<Vec<Parameter>> {
    let Shape::Proto(proto) = types.get(proto)?.shape() else {
        return None;
    };
    let named = proto
        .params()
        .skip(from)
        .enumerate()
        .map(|(number, param)| {
            let name = types.string(param.name).to_string_lossy().into_owned();
            match name.is_empty() {
                true => (format!("arg{number}"), param.ty),
                false => (name, param.ty),
            }
        });
    Some(named.collect())
}

/// Parameters and result of a function.
pub(super) fn function(types: &Btf<'_>, id: TypeId) -> Option<(Vec<Parameter>, TypeId)> {
    let Shape::Func(function) = types.get(id)?.shape() else {
        return None;
    };
    let Shape::Proto(proto) = types.get(function.proto)?.shape() else {
        return None;
    };
    Some((parameters(types, function.proto, 0)?, proto.returns))
}

fn registers(program: &Program, types: &Btf<'_>) -> ContextForm {
    let kind = program.section().split('/').next().unwrap_or_default();
    let has_returned = kind.starts_with("kret") || kind.starts_with("uret");
    let name = section_name(program);
    let of_function = |name: &str| {
        let found = types.find(Kind::Func, name)?;
        function(types, found.id()).map(|(parameters, _)| parameters)
    };
    if !kind.ends_with("syscall") {
        return ContextForm::Registers {
            of: name.to_owned(),
            parameters: of_function(name).unwrap_or_default(),
            has_returned,
            entry: None,
        };
    }
    let functions = ["__do_sys_", "__se_sys_", "ksys_"];
    let mut found = functions.map(|start| of_function(&format!("{start}{name}")));
    let found = found.iter_mut().find_map(Option::take);
    let words = || {
        let word = type_of(types, "u64").unwrap_or(TypeId::VOID);
        let named = super::syscalls::arguments(name)
            .map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let names: Vec<String> =
            named.unwrap_or_else(|| (1..=6).map(|number| format!("arg{number}")).collect());
        names.into_iter().map(|name| (name, word)).collect()
    };
    ContextForm::Registers {
        of: format!("system call {name}"),
        parameters: found.unwrap_or_else(words),
        has_returned,
        entry: Some(of_function(&format!("__x64_sys_{name}")).unwrap_or_default()),
    }
}

/// The record of a tracepoint: the structure that the program declares, of the kernel if that has it.
fn record(program: &Program, types: &Arc<Btf<'static>>) -> Result<ContextForm, String> {
    let declared = program
        .btf()
        .and_then(|own| Some((own, declared(program, own)?)));
    if let Some((own, id)) = declared {
        let name = type_name(own, id);
        // What follows three underscores is the program's own, as CO-RE has it.
        let name = name.split_once("___").map_or(&*name, |(name, _)| name);
        return Ok(match types.find(Kind::Struct, name) {
            Some(found) => ContextForm::Structure(types.clone(), found.id()),
            None => ContextForm::Structure(own.clone(), id),
        });
    }
    let event = section_name(program).rsplit('/').next().unwrap_or_default();
    let name = match event {
        _ if event.starts_with("sys_enter_") => "trace_event_raw_sys_enter".to_owned(),
        _ if event.starts_with("sys_exit_") => "trace_event_raw_sys_exit".to_owned(),
        event => format!("trace_event_raw_{event}"),
    };
    let of_event = || types.find(Kind::Struct, &name).map(|found| found.id());
    let id = of_event().or_else(|| class_record(types, event));
    let id = id.ok_or_else(|| {
        format!(
            "the kernel has no type {name}, and the program declares no structure as its context, \
             as trace_event_raw_CLASS for an event of a class"
        )
    })?;
    Ok(ContextForm::Structure(types.clone(), id))
}

/// The record of the class that an event belongs to: one for the same arguments whose name, but for its
/// last word, the event's begins with, or which begins with the event's.
fn class_record(types: &Btf<'_>, event: &str) -> Option<TypeId> {
    let unnamed = event_parameters(types, event)?;
    let mut records = types.of_kind(Kind::Struct).filter_map(|record| {
        let class = record.name().to_str()?.strip_prefix("trace_event_raw_")?;
        let words = class.rsplit_once('_').map_or(class, |(words, _)| words);
        let is_named = event.starts_with(words) || class.starts_with(event);
        let tracer = format!("__bpf_trace_{class}");
        let found = types.find(Kind::Func, &tracer);
        let takes = |found: btf::Type<'_>| {
            let (named, _) = function(types, found.id())?;
            Some(have_same_types(&named, &unnamed))
        };
        let is_it = is_named && found.and_then(takes).unwrap_or(false);
        is_it.then_some((words.len(), record.id()))
    });
    let first = records.next()?;
    let longest = records.fold(first, |longest, record| longest.max(record));
    Some(longest.1)
}

/// The structure that the first parameter of the program points to.
fn declared(program: &Program, types: &Btf<'_>) -> Option<TypeId> {
    let info = program.func_info().first()?;
    let (parameters, _) = function(types, info.type_id)?;
    let first = parameters.first()?.1;
    let Shape::Ptr(to) = types.get(types.skip_modifiers(first)?)?.shape() else {
        return None;
    };
    let id = types.skip_modifiers(to)?;
    matches!(types.get(id)?.shape(), Shape::Struct(_)).then_some(id)
}

/// Types of the arguments of a tracepoint.
fn event_parameters(types: &Btf<'_>, event: &str) -> Option<Vec<Parameter>> {
    let name = format!("btf_trace_{event}");
    let event = types.find(Kind::Typedef, &name)?;
    let pointer = types.skip_modifiers(event.id())?;
    match types.get(pointer)?.shape() {
        Shape::Ptr(to) => parameters(types, to, 1),
        _ => None,
    }
}

/// True if parameters behind the first one have types.
fn have_same_types(named: &[Parameter], unnamed: &[Parameter]) -> bool {
    let types = named.iter().skip(1).map(|(_, ty)| *ty);
    types.eq(unnamed.iter().map(|(_, ty)| *ty))
}

/// Most arguments of a tracepoint (`MAX_BPF_FUNC_ARGS`).
const MOST_ARGUMENTS: usize = 12;

/// The words of a tracepoint that is not known.
fn any_tracepoint(types: &Btf<'_>) -> Result<ContextForm, String> {
    let word = type_of(types, "u64")?;
    let words = (0..MOST_ARGUMENTS).map(|number| (format!("arg{number}"), word));
    Ok(ContextForm::Arguments {
        of: "the tracepoint".to_owned(),
        parameters: words.collect(),
        result: None,
        has_default_result: false,
    })
}

/// The arguments of a tracepoint: the names of the function that goes over its programs
/// (`__traceiter_NAME`), else those of the class that it belongs to.
fn tracepoint(types: &Btf<'_>, name: &str) -> Result<ContextForm, String> {
    let Some(unnamed) = event_parameters(types, name) else {
        let known = types
            .of_kind(Kind::Typedef)
            .filter_map(|ty| ty.name().to_str());
        let known = known.filter_map(|name| name.strip_prefix("btf_trace_"));
        return Err(format!(
            "the kernel has no tracepoint {name}{}",
            nearest(name, known)
        ));
    };
    // A class has the longest beginning in common.
    let common = |other: &str| {
        name.bytes()
            .zip(other.bytes())
            .take_while(|(a, b)| a == b)
            .count()
    };
    let functions = types.of_kind(Kind::Func).filter_map(|found| {
        let called = found.name().to_str()?;
        let rank = match called.strip_prefix("__traceiter_") {
            Some(of) if of == name => usize::MAX,
            Some(_) => return None,
            None => match called.strip_prefix("__bpf_trace_")? {
                of if of == name => usize::MAX - 1,
                of => common(of),
            },
        };
        let (named, _) = function(types, found.id())?;
        have_same_types(&named, &unnamed).then_some((rank, named))
    });
    let named = functions.max_by_key(|(rank, _)| *rank);
    let parameters = match named {
        Some((rank, named)) if rank > 0 => named.into_iter().skip(1).collect(),
        _ => unnamed,
    };
    Ok(ContextForm::Arguments {
        of: name.to_owned(),
        parameters,
        result: None,
        has_default_result: false,
    })
}

/// The context of a program at a function, hook or tracepoint of the kernel, or of an iterator.
fn traced(program: &Program, types: &Btf<'_>) -> Result<ContextForm, String> {
    let target = program.attach_target();
    let target = target.filter(|target| target.module == 0 && target.program.is_none());
    let found = target.and_then(|target| types.get(target.btf_id));
    let Some(found) = found else {
        return Err("what the program is attached to is not in the kernel itself".to_owned());
    };
    let name = found.name().to_string();
    let hook = HookKind::of(program.attach_type());
    let of_function = |result: bool, has_default_result: bool| {
        let (parameters, returns) = function(types, found.id())
            .ok_or_else(|| format!("{name} is no function of the kernel"))?;
        Ok(ContextForm::Arguments {
            of: name.clone(),
            parameters,
            result: Some(returns).filter(|returns| result && !returns.is_void()),
            has_default_result,
        })
    };
    match hook {
        HookKind::RawTracepoint => {
            tracepoint(types, name.strip_prefix("btf_trace_").unwrap_or(&name))
        }
        HookKind::Fentry => of_function(false, false),
        HookKind::Fexit => of_function(true, false),
        HookKind::ModifyReturn | HookKind::Lsm | HookKind::LsmCgroup => of_function(true, true),
        HookKind::Iterator => {
            let of = name.strip_prefix("bpf_iter_").unwrap_or(&name);
            Ok(ContextForm::Iterator(type_of(
                types,
                &format!("bpf_iter__{of}"),
            )?))
        }
        HookKind::Unnamed | HookKind::Fsession | HookKind::Multi => {
            Err("programs of this attach type are not run by arguments".to_owned())
        }
    }
}

/// The arguments of a member of a struct_ops.
fn operation(program: &Program, types: &Btf<'_>) -> Result<ContextForm, String> {
    let target = program.attach_target();
    let place = target.and_then(|target| {
        let structure = types.get(target.btf_id)?;
        let member = structure.as_composite()?.member(target.member? as usize)?;
        Some((structure.name().to_string(), member))
    });
    let Some((structure, place)) = place else {
        return Err("the program implements no member of a struct_ops of the kernel".to_owned());
    };
    let name = types.string(place.name).to_string();
    let pointer = types.skip_modifiers(place.ty).and_then(|id| types.get(id));
    let proto = match pointer.map(|pointer| pointer.shape()) {
        Some(Shape::Ptr(to)) => to,
        _ => return Err(format!("{structure}.{name} is no function")),
    };
    let unnamed = parameters(types, proto, 0).unwrap_or_default();
    let named = operation_names(types, (&structure, &name), &unnamed);
    // Verifiers read more in the names.
    let plain = |(name, ty): Parameter| match name.split_once("__") {
        Some((name, _)) if !name.is_empty() => (name.to_owned(), ty),
        _ => (name, ty),
    };
    Ok(ContextForm::Arguments {
        of: format!("{structure}.{name}"),
        parameters: named.unwrap_or(unnamed).into_iter().map(plain).collect(),
        result: None,
        has_default_result: false,
    })
}

/// The names of the arguments of a member of a struct_ops: those of the stub that kernels have for it, or of
/// a function of the kernel that implements one.
fn operation_names(
    types: &Btf<'_>,
    (structure, name): (&str, &str),
    unnamed: &[Parameter],
) -> Option<Vec<Parameter>> {
    let stub = format!("{structure}__{name}");
    let end = format!("_{name}");
    let functions = types.of_kind(Kind::Func).filter_map(|found| {
        let called = found.name().to_str()?;
        let plain = called.trim_start_matches('_');
        let rank = match called {
            called if called == stub => 3,
            called if called.ends_with(&end) && plain.starts_with("bpf_") => 2,
            called if called.ends_with(&end) => 1,
            _ => return None,
        };
        let (named, _) = function(types, found.id())?;
        let known = |all: &[Parameter]| all.iter().map(|(_, ty)| *ty).collect::<Vec<_>>();
        let is_it = match rank {
            3 => named.len() == unnamed.len(),
            _ => known(&named) == known(unnamed),
        };
        is_it.then_some((rank, named))
    });
    functions
        .max_by_key(|(rank, _)| *rank)
        .map(|(_, named)| named)
}

impl ModelMemory {
    /// Makes a context.
    ///
    /// # Errors
    /// If an argument or field is unknown or does not take its value.
    pub fn context(
        &mut self,
        form: &ContextForm,
        value: &ModelValue,
    ) -> Result<ModelContext, ModelError> {
        let is_named = matches!(value, ModelValue::Fields { ty: None, .. });
        match form {
            ContextForm::Structure(types, id) if !is_named => {
                let name = type_name(types, *id);
                Err(format!("the context, {name}, takes {{FIELD: VALUE}}, not {value}").into())
            }
            ContextForm::Iterator(_) if !is_named => {
                let what = "iterators take elements: iterate PROGRAM [ELEMENT, …]";
                Err(what.into())
            }
            ContextForm::Arguments {
                of,
                parameters,
                result,
                has_default_result,
            } => {
                let words = parameters.len() + usize::from(result.is_some());
                let target = self.context_object(TypeId::VOID, 8 * words, "context")?;
                let mut all = parameters.clone();
                all.extend(result.map(|ty| ("ret".to_owned(), ty)));
                self.name_arguments(&target, (0..).step_by(8).zip(&all));
                if *has_default_result && result.is_some() {
                    let mut at = target.clone();
                    at.offset = 8 * parameters.len();
                    self.store(&at, &[0; 8]);
                }
                for (path, value) in self.named(of, &all, value)? {
                    let (name_at, value_at) = path.written.unzip();
                    let name = path.join(".");
                    let place = all.iter().position(|(known, _)| *known == name);
                    let place = place.ok_or_else(|| {
                        ModelError::from(no_argument(of, &all, &name)).within(name_at)
                    })?;
                    let put = self.put_word(&target, 8 * place, &all[place], value);
                    put.map_err(|error| error.within(value_at))?;
                }
                Ok(ModelContext {
                    address: target.object,
                    arguments: parameters.len(),
                    has_result: result.is_some(),
                })
            }
            ContextForm::Registers {
                of,
                parameters,
                has_returned,
                entry,
            } => match entry {
                Some(entry) if is_of_registers(value) => {
                    self.registers_at(of, entry, *has_returned, value)
                }
                Some(_) if !has_returned => self.syscall_at(of, parameters, value),
                Some(_) | None => self.registers_at(of, parameters, *has_returned, value),
            },
            ContextForm::Structure(types, id) => {
                let size = types.size_of(*id).unwrap_or(0) as usize;
                let name = type_name(types, *id);
                let mut target = self.context_object(*id, size, &name)?;
                self.set_types(&target, types);
                target.types = types.clone();
                self.put(&target, *id, value)?;
                self.put_bounds(&target, *id, value)?;
                Ok(ModelContext {
                    address: target.object,
                    arguments: 0,
                    has_result: false,
                })
            }
            ContextForm::Iterator(id) => {
                let size = self.types.size_of(*id).unwrap_or(0) as usize;
                let name = type_name(&self.types, *id);
                let target = self.context_object(*id, size, &name)?;
                self.put(&target, *id, value)?;
                Ok(ModelContext {
                    address: target.object,
                    arguments: 0,
                    has_result: false,
                })
            }
        }
    }

    /// Values of arguments by name; a list has them in order.
    fn named<'v>(
        &self,
        of: &str,
        all: &[Parameter],
        value: &'v ModelValue,
    ) -> Result<Vec<(MemberPath, &'v ModelValue)>, ModelError> {
        match value {
            ModelValue::Fields {
                ty: None, fields, ..
            } => Ok(fields
                .iter()
                .map(|(path, value)| (path.clone(), value))
                .collect()),
            ModelValue::List(values) if values.len() <= all.len() => {
                let named = all.iter().map(|(name, _)| MemberPath::from(&**name));
                Ok(named.zip(values).collect())
            }
            ModelValue::List(values) => {
                Err(format!("{of} has {} arguments, not {}", all.len(), values.len()).into())
            }
            _ => Err(format!("{of} takes {{NAME: VALUE}} or [VALUE], not {value}").into()),
        }
    }

    fn context_object(&mut self, ty: TypeId, size: usize, path: &str) -> Result<Target, String> {
        let types = self.types.clone();
        let label = Label {
            path: path.to_owned(),
            owner: String::new(),
        };
        let object = self.allocate((types.clone(), ty), size, label.clone(), false)?;
        Ok(Target {
            types,
            object,
            offset: 0,
            label,
            is_user: false,
        })
    }

    fn set_types(&self, target: &Target, types: &Arc<Btf<'static>>) {
        if let Some(object) = self.objects_mut().get_mut(&target.object) {
            object.types = types.clone();
        }
    }

    fn name_arguments<'p>(
        &self,
        target: &Target,
        named: impl Iterator<Item = (usize, &'p Parameter)>,
    ) {
        if let Some(object) = self.objects_mut().get_mut(&target.object) {
            let named = named.map(|(offset, (name, _))| (offset, name.clone()));
            object.arguments = named.collect();
        }
    }

    fn put_word(
        &mut self,
        target: &Target,
        offset: usize,
        (name, ty): &Parameter,
        value: &ModelValue,
    ) -> Result<(), ModelError> {
        let mut at = target.clone();
        at.offset = offset;
        // What a pointer leads to has the name of its type.
        at.label = Label {
            path: name.clone(),
            owner: String::new(),
        };
        at.label.path = match value {
            ModelValue::Fields { ty: Some(ty), .. } => ty.clone(),
            _ => pointee_name(&at.types, *ty).unwrap_or_else(|| name.clone()),
        };
        if at.label.path != *name {
            at.label.owner = format!(" of argument {name}");
        }
        let word = self.word(&at, *ty, value).map_err(|error| {
            error.reword(|what| match at.label.path == *name {
                true => format!("argument {what}"),
                false => format!("argument {name}: {what}"),
            })
        })?;
        self.store(&at, &word.to_le_bytes());
        Ok(())
    }

    fn registers_at(
        &mut self,
        of: &str,
        parameters: &[Parameter],
        has_returned: bool,
        value: &ModelValue,
    ) -> Result<ModelContext, ModelError> {
        let word = type_of(&self.types, "u64")?;
        let result = [("ret".to_owned(), word)];
        let (registers, named) = match has_returned {
            true => (&["ax"][..], &result[..]),
            false => (&REGISTERS[..], parameters),
        };
        let target = self.put_registers(of, (registers, named), Some(word), value)?;
        Ok(ModelContext {
            address: target.object,
            arguments: 0,
            has_result: false,
        })
    }

    /// The registers at the entry of a system call, whose first argument points to those of the process.
    fn syscall_at(
        &mut self,
        of: &str,
        parameters: &[Parameter],
        value: &ModelValue,
    ) -> Result<ModelContext, ModelError> {
        let inner = self.put_registers(of, (&SYSCALL_REGISTERS, parameters), None, value)?;
        let (types, id, mut outer) = self.registers()?;
        outer.offset = member(&types, id, &[REGISTERS[0].to_owned()])?.offset;
        self.store(&outer, &inner.object.to_le_bytes());
        Ok(ModelContext {
            address: outer.object,
            arguments: 0,
            has_result: false,
        })
    }

    /// An object of the registers of a process, with their type.
    fn registers(&mut self) -> Result<(Arc<Btf<'static>>, TypeId, Target), ModelError> {
        let types = self.types.clone();
        let id = type_of(&types, "pt_regs")?;
        let size = types.size_of(id).unwrap_or(0) as usize;
        let target = self.context_object(id, size, "pt_regs")?;
        Ok((types, id, target))
    }

    /// Registers with arguments in some of them; the others have their own names, and values of the type
    /// `other`, if they take any.
    fn put_registers(
        &mut self,
        of: &str,
        (registers, parameters): (&[&str], &[Parameter]),
        other: Option<TypeId>,
        value: &ModelValue,
    ) -> Result<Target, ModelError> {
        let (types, id, target) = self.registers()?;
        let register = |name: &str| member(&types, id, &[name.to_owned()]);
        let mut all: Vec<(usize, Parameter)> = Vec::new();
        for (name, parameter) in registers.iter().zip(parameters) {
            all.push((register(name)?.offset, parameter.clone()));
        }
        self.name_arguments(&target, all.iter().map(|(offset, named)| (*offset, named)));
        let named: Vec<Parameter> = all.iter().map(|(_, named)| named.clone()).collect();
        for (path, value) in self.named(of, &named, value)? {
            let (name_at, value_at) = path.written.unzip();
            let name = path.join(".");
            let argument = all.iter().find(|(_, (known, _))| *known == name);
            let other = || Some((register(&name).ok()?.offset, (name.clone(), other?)));
            let (offset, parameter) = (argument.cloned().or_else(other))
                .ok_or_else(|| ModelError::from(no_argument(of, &named, &name)).within(name_at))?;
            let put = self.put_word(&target, offset, &parameter, value);
            put.map_err(|error| error.within(value_at))?;
        }
        Ok(target)
    }

    /// Sets the ends of bytes that a context points to.
    fn put_bounds(
        &mut self,
        target: &Target,
        id: TypeId,
        value: &ModelValue,
    ) -> Result<(), ModelError> {
        let ModelValue::Fields { fields, .. } = value else {
            return Ok(());
        };
        for (start, end) in BOUNDS {
            let given = |name: &str| fields.iter().find(|(path, _)| path.join(".") == name);
            let (Some((_, ModelValue::Bytes(bytes))), None) = (given(start), given(end)) else {
                continue;
            };
            let of = |name: &str| member(&target.types, id, &[name.to_owned()]);
            let (Ok(start), Ok(end)) = (of(start), of(end)) else {
                continue;
            };
            let address = {
                let objects = self.objects();
                let stored = &objects[&target.object].bytes[start.offset..];
                let stored = stored.first_chunk::<8>().copied().unwrap_or_default();
                u64::from_le_bytes(stored)
            };
            let mut at = target.clone();
            at.offset += end.offset;
            self.store(&at, &(address + bytes.len() as u64).to_le_bytes());
        }
        Ok(())
    }
}

/// The name of the structure that a type points to.
fn pointee_name(types: &Btf<'_>, ty: TypeId) -> Option<String> {
    let Shape::Ptr(to) = types.get(types.skip_modifiers(ty)?)?.shape() else {
        return None;
    };
    let id = types.skip_modifiers(to)?;
    types.get(id)?.as_composite()?;
    Some(type_name(types, id))
}

/// True for registers in place of arguments: `regs`, as the function of a system call has them, or `di`.
fn is_of_registers(value: &ModelValue) -> bool {
    let ModelValue::Fields { fields, .. } = value else {
        return false;
    };
    let mut names = fields.iter().map(|(path, _)| path.join("."));
    names.any(|name| name == "regs" || REGISTERS.contains(&&*name))
}

fn no_argument(of: &str, all: &[Parameter], name: &str) -> String {
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let near = nearest(name, names.iter().copied());
    let has = match names.is_empty() {
        true => "registers, as di".to_owned(),
        false => names.join(", "),
    };
    match near.is_empty() {
        true => format!("{of} has no argument {name}; it has {has}"),
        false => format!("{of} has no argument {name}{near}"),
    }
}

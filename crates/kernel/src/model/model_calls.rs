//! Calls of helpers and kfuncs in the model: about given objects, about the process, with results that were
//! given; the others are recorded, and those that return something need a result.

use std::sync::{Mutex, MutexGuard};

use btf::{Kind, Shape};
use program::Program;
use spec::helpers::HelperId;
use spec::kfuncs::CallState;
use vm::{ModelPort, System};

use super::answer::{GivenResult, ModelCall, Signature, name_of};
use super::context::{ContextForm, ModelContext};
use super::functions::read_text;
use super::memory::{Label, ModelMemory};
use super::names::nearest;
use super::value::{ModelError, ModelValue};
use super::write::Target;

/// Members of a process.
const MEMBERS: [&str; 8] = [
    "pid", "tgid", "uid", "gid", "comm", "cgroup", "cgroups", "task",
];

/// Most calls and bytes of text that are kept.
const MOST_CALLS: usize = 65_536;
const MOST_SEQ: usize = 16 << 20;

/// What a test gives of the process that programs run in.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelProcess {
    pub(super) pid: Option<u32>,
    pub(super) tgid: Option<u32>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) comm: Option<[u8; 16]>,
    /// From the root.
    pub(super) cgroups: Option<Vec<u64>>,
    pub(super) task: Option<u64>,
}

/// A model of the kernel: what a test gives, and what programs did to it.
#[derive(Debug)]
pub struct Model {
    /// The objects.
    pub memory: ModelMemory,
    pub(super) process: ModelProcess,
    /// The time is given.
    pub has_time: bool,
    /// Results with the number of calls that were seen.
    results: Mutex<Vec<(GivenResult, u64)>>,
    calls: Mutex<Vec<ModelCall>>,
    seq: Mutex<Vec<u8>>,
    /// The context of the run.
    pub(super) context: ModelContext,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|lock| lock.into_inner())
}

impl Clone for Model {
    fn clone(&self) -> Model {
        Model {
            memory: self.memory.clone(),
            process: self.process.clone(),
            has_time: self.has_time,
            results: Mutex::new(lock(&self.results).clone()),
            calls: Mutex::new(lock(&self.calls).clone()),
            seq: Mutex::new(lock(&self.seq).clone()),
            context: self.context.clone(),
        }
    }
}

impl Model {
    /// A model in which nothing is given but memory.
    pub fn new(memory: ModelMemory) -> Model {
        Model {
            memory,
            process: ModelProcess::default(),
            has_time: false,
            results: Mutex::default(),
            calls: Mutex::default(),
            seq: Mutex::default(),
            context: ModelContext {
                address: 0,
                arguments: 0,
                has_result: false,
            },
        }
    }

    /// Gives members of the process: `pid`, `tgid`, `uid`, `gid`, `comm`, `cgroup` or `cgroups` (ids from
    /// the root), `task` (an object, whose pid, tgid and comm are those of the process if it has them).
    ///
    /// # Errors
    /// For other members and values.
    pub fn give_process(&mut self, value: &ModelValue) -> Result<(), ModelError> {
        let ModelValue::Fields {
            ty: None, fields, ..
        } = value
        else {
            return Err(format!("process takes {{NAME: VALUE}}, not {value}").into());
        };
        for (path, value) in fields {
            let given = self.give_of_process(&path.join("."), value);
            given.map_err(|what| {
                ModelError::from(what).within(path.written.map(|(name, _)| name))
            })?;
        }
        Ok(())
    }

    fn give_of_process(&mut self, name: &str, value: &ModelValue) -> Result<(), String> {
        let number = || match value {
            ModelValue::Number(number) => u32::try_from(*number)
                .map_err(|_| format!("{name}: {number} is no number of 32 bits")),
            _ => Err(format!("{name} takes a number, not {value}")),
        };
        let id = |value: &ModelValue| match value {
            ModelValue::Number(number) => {
                u64::try_from(*number).map_err(|_| format!("{name}: {number} is no id of a cgroup"))
            }
            _ => Err(format!("{name} takes ids of cgroups, not {value}")),
        };
        let process = &mut self.process;
        match name {
            "pid" => process.pid = Some(number()?),
            "tgid" => process.tgid = Some(number()?),
            "uid" => process.uid = Some(number()?),
            "gid" => process.gid = Some(number()?),
            "comm" => match value {
                ModelValue::Text(text) if text.len() < 16 => {
                    let mut comm = [0; 16];
                    comm[..text.len()].copy_from_slice(text.as_bytes());
                    process.comm = Some(comm);
                }
                _ => {
                    return Err(format!(
                        "comm takes a text of at most 15 bytes, not {value}"
                    ));
                }
            },
            "cgroup" => process.cgroups = Some(vec![1, id(value)?]),
            "cgroups" => match value {
                ModelValue::List(ids) => {
                    let ids: Result<Vec<u64>, String> = ids.iter().map(id).collect();
                    process.cgroups = Some(ids?);
                }
                _ => return Err(format!("cgroups takes [ID, …] from the root, not {value}")),
            },
            "task" => match value {
                ModelValue::Object(name, path) if path.is_empty() => {
                    process.task = Some(self.memory.address(name)?);
                }
                _ => return Err(format!("task takes @NAME, not {value}")),
            },
            _ => {
                let near = nearest(name, MEMBERS.into_iter());
                let members = MEMBERS.join(", ");
                return Err(format!("a process has no {name}{near}; it has {members}"));
            }
        }
        Ok(())
    }

    /// Makes the context of the next run.
    ///
    /// # Errors
    /// As [`ContextForm::of`] and [`ModelMemory::context`].
    pub fn make_context(
        &mut self,
        program: &Program,
        value: &ModelValue,
    ) -> Result<(), ModelError> {
        let form = ContextForm::of(program, &self.memory.types.clone())?;
        self.context = self.memory.context(&form, value)?;
        Ok(())
    }

    /// The address of the context.
    pub fn context(&self) -> u64 {
        self.context.address
    }

    /// The address of the task that runs, if it is given.
    pub fn task(&self) -> Option<u64> {
        self.process.task
    }

    /// The machine that helpers report, with the process that is given.
    pub fn system(&self, before: &System) -> System {
        let mut system = before.clone();
        let process = &self.process;
        let of_task = |member: &str| {
            let task = process.task?;
            let number = self.memory.number(task, &[member]);
            number.ok().map(|number| number as u32)
        };
        system.pid = process.pid.or_else(|| of_task("pid")).unwrap_or(system.pid);
        system.tgid = (process.tgid.or_else(|| of_task("tgid"))).unwrap_or(system.tgid);
        system.uid = process.uid.unwrap_or(system.uid);
        system.gid = process.gid.unwrap_or(system.gid);
        system.comm = process
            .comm
            .or_else(|| self.comm_of_task())
            .unwrap_or(system.comm);
        if let Some(cgroups) = &process.cgroups {
            system.cgroups = cgroups.clone().into();
        }
        system
    }

    fn comm_of_task(&self) -> Option<[u8; 16]> {
        let task = self.process.task?;
        let (at, _) = self.memory.place_of(task, "comm")?;
        let mut comm = [0; 16];
        match vm::GivenMemory::read(&self.memory, at, &mut comm) {
            vm::GivenAccess::Done => Some(comm),
            vm::GivenAccess::Absent | vm::GivenAccess::NotGiven(_) => None,
        }
    }

    /// Gives the result of calls of a function, and bytes that it writes through arguments.
    ///
    /// # Errors
    /// If no helper and no kfunc of the kernel has the name, or a value does not suit.
    pub fn give_result(
        &mut self,
        function: &str,
        at: Option<u64>,
        value: &ModelValue,
        fills: &[(String, ModelValue)],
    ) -> Result<(), ModelError> {
        let (name, signature) = self.signature(function)?;
        let label = |path: String| Label {
            path,
            owner: String::new(),
        };
        let mut target = Target {
            types: self.memory.types.clone(),
            object: 0,
            offset: 0,
            label: label(format!("the result of {name}")),
            is_user: false,
        };
        let word = super::names::type_of(&self.memory.types, "u64")?;
        let returns = signature.returns.unwrap_or(word);
        let result = match returns.is_void() {
            true if *value == ModelValue::Word("void".to_owned()) => 0,
            true => return Err(format!("{name} returns nothing: result {name} = void").into()),
            false => self.memory.word(&target, returns, value)?,
        };
        let mut filled = Vec::new();
        for (argument, value) in fills {
            let number = signature.place(&name, argument)?;
            let bytes = match value {
                ModelValue::Text(text) => [text.as_bytes(), &[0]].concat(),
                ModelValue::Bytes(bytes) => bytes.clone(),
                value => {
                    let to = signature.type_of(number).and_then(|ty| {
                        let types = &self.memory.types;
                        match types.get(types.skip_modifiers(ty)?)?.shape() {
                            Shape::Ptr(to) if types.size_of(to).is_some_and(|size| size > 0) => {
                                Some(to)
                            }
                            _ => None,
                        }
                    });
                    let to = to.ok_or_else(|| {
                        format!("argument {argument} of {name} takes a text or hex")
                    })?;
                    target.label = label(argument.clone());
                    self.memory.encode(&target, to, value)?.0
                }
            };
            filled.push((number, bytes));
        }
        let given = GivenResult {
            function: name,
            at,
            result,
            fills: filled,
        };
        let mut results = lock(&self.results);
        results.retain(|(known, _)| (&known.function, known.at) != (&given.function, given.at));
        results.push((given, 0));
        Ok(())
    }

    /// The whole name of a function, and its arguments.
    pub(super) fn signature(&self, name: &str) -> Result<(String, Signature), String> {
        let types = &self.memory.types;
        let long = format!("bpf_{name}");
        for name in [name, &long] {
            if spec::helpers::number(name).is_some() {
                return Ok((name.to_owned(), Signature::of_helper(types, name)));
            }
        }
        if spec::kfuncs::KernelFunction::of_linux(name).is_some()
            && let Some(found) = types.find(Kind::Func, name)
            && let Some(signature) = Signature::of_kfunc(types, found.id())
        {
            return Ok((name.to_owned(), signature));
        }
        let known = spec::helpers::all().map(|(_, helper)| helper.name);
        let functions = types
            .of_kind(Kind::Func)
            .filter_map(|ty| ty.name().to_str());
        let functions =
            functions.filter(|name| name.starts_with("bpf_") || name.starts_with("scx_bpf_"));
        let near = nearest(name, known.chain(functions));
        Err(format!("there is no helper and no kfunc {name}{near}"))
    }

    /// Takes the next recorded call of a function.
    ///
    /// # Errors
    /// If there is no such function.
    pub fn take_call(&mut self, function: &str) -> Result<Option<ModelCall>, String> {
        let (name, _) = self.signature(function)?;
        let mut calls = lock(&self.calls);
        let next = calls.iter().position(|call| call.function == name);
        Ok(next.map(|next| calls.remove(next)))
    }

    /// The recorded calls that were not taken.
    pub fn calls(&self) -> Vec<ModelCall> {
        lock(&self.calls).clone()
    }

    /// The next recorded call that was not taken.
    pub fn next_call(&self) -> Option<ModelCall> {
        lock(&self.calls).first().cloned()
    }

    /// Forgets calls that were recorded, and text.
    pub fn begin(&mut self) {
        lock(&self.calls).clear();
        lock(&self.seq).clear();
    }

    pub(super) fn write_seq(&self, text: &[u8]) {
        let mut seq = lock(&self.seq);
        let room = MOST_SEQ - seq.len();
        seq.extend(&text[..text.len().min(room)]);
    }

    /// Bytes of the text that iterators wrote.
    pub fn seq_len(&self) -> usize {
        lock(&self.seq).len()
    }

    /// Drops the text behind so many bytes.
    pub fn cut_seq(&self, len: usize) {
        lock(&self.seq).truncate(len);
    }

    /// The text that iterators wrote and that was not taken; it is taken.
    pub fn take_seq(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.seq))
    }

    /// What a call returns in the model; `None` for functions that are not about the kernel around the
    /// program.
    pub fn call<M: ModelPort>(
        &self,
        number: i32,
        arguments: [u64; 5],
        memory: &mut M,
    ) -> Option<Result<u64, M::Fault>> {
        let name = name_of(number)?;
        if let Some(given) = self.given_result(name) {
            self.record(name, arguments, memory);
            for (argument, bytes) in &given.fills {
                if let Err(fault) = memory.write(arguments[*argument], bytes) {
                    return Some(Err(fault));
                }
            }
            return Some(Ok(given.result));
        }
        let helper = HelperId::from_number(number);
        match helper {
            Some(HelperId::SeqPrintf) => return Some(self.seq_printf(arguments, memory)),
            Some(HelperId::SeqWrite) => return Some(self.seq_write(arguments, memory)),
            _ => {}
        }
        let of_storage = |helper| self.storage(helper, arguments, memory);
        if let Some(result) = helper.and_then(of_storage) {
            return Some(result);
        }
        let refuse = |memory: &M, why: String| Some(Err(memory.refuse(why)));
        let answer = match helper {
            Some(helper) => self.answer(helper, arguments, memory),
            None => self.answer_kfunc(name, arguments, memory),
        };
        match answer {
            Some(Ok(result)) => return Some(Ok(result)),
            Some(Err(why)) => return refuse(memory, why),
            None => {}
        }
        let is_absent = crate::helpers::is_about_absent(number)
            && !crate::helpers::is_about_user_memory(number)
            || crate::kfuncs::state(name) == Some(CallState::Absent);
        let is_absent =
            is_absent || helper.is_some_and(|helper| self.wants_other_socket(helper, arguments));
        if crate::find::<M>(number).is_some() && !is_absent {
            return None;
        }
        self.record(name, arguments, memory);
        match self.signature(name) {
            Ok((_, signature)) if signature.is_void() => Some(Ok(0)),
            _ => refuse(
                memory,
                format!("the result of {name} was not given: result {name} = VALUE"),
            ),
        }
    }

    fn given_result(&self, name: &str) -> Option<GivenResult> {
        let mut found = None;
        for (given, seen) in lock(&self.results).iter_mut() {
            if given.function != name {
                continue;
            }
            *seen += 1;
            if given.at.is_none_or(|at| at == *seen) && (found.is_none() || given.at.is_some()) {
                found = Some(given.clone());
            }
        }
        found
    }

    fn record<M: ModelPort>(&self, name: &str, arguments: [u64; 5], memory: &M) {
        let texts = arguments.map(|address| read_text(memory, address));
        let call = ModelCall {
            function: name.to_owned(),
            arguments,
            texts,
        };
        let mut calls = lock(&self.calls);
        if calls.len() < MOST_CALLS {
            calls.push(call);
        }
    }
}

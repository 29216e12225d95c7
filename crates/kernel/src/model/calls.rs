//! Calls of helpers and kfuncs in the model: about given objects, about the process, with results that were
//! given; the others are recorded, and those that return something need a result.

use std::sync::{Mutex, MutexGuard};

use btf::{Kind, Shape, TypeId};
use program::Program;
use spec::kfuncs::CallState;
use vm::{ModelPort, RunContext, System};

use super::answer::{GivenResult, ModelCall, name_of};
use super::context::{ContextForm, ModelContext, function};
use super::memory::{Label, ModelMemory};
use super::names::nearest;
use super::value::ModelValue;
use super::write::Target;

/// Most objects that a function follows from one to the next.
const MOST_STEPS: usize = 4096;
/// Most bytes of a text.
const MOST_TEXT: u64 = 4096;
/// Most calls and bytes of text that are kept.
const MOST_CALLS: usize = 65_536;
const MOST_SEQ: usize = 16 << 20;

/// What a test gives of the process that programs run in.
#[derive(Clone, Debug, Default)]
struct ModelProcess {
    pid: Option<u32>,
    tgid: Option<u32>,
    uid: Option<u32>,
    gid: Option<u32>,
    comm: Option<[u8; 16]>,
    /// From the root.
    cgroups: Option<Vec<u64>>,
    task: Option<u64>,
}

/// A model of the kernel: what a test gives, and what programs did to it.
#[derive(Debug)]
pub struct Model {
    /// The objects.
    pub memory: ModelMemory,
    process: ModelProcess,
    /// The time is given.
    pub has_time: bool,
    /// Results with the number of calls that were seen.
    results: Mutex<Vec<(GivenResult, u64)>>,
    calls: Mutex<Vec<ModelCall>>,
    seq: Mutex<Vec<u8>>,
    /// The context of the run.
    context: ModelContext,
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
            },
        }
    }

    /// Gives members of the process: `pid`, `tgid`, `uid`, `gid`, `comm`, `cgroup` or `cgroups` (ids from
    /// the root), `task` (an object, whose pid, tgid and comm are those of the process if it has them).
    ///
    /// # Errors
    /// For other members and values.
    pub fn give_process(&mut self, value: &ModelValue) -> Result<(), String> {
        const MEMBERS: [&str; 8] = [
            "pid", "tgid", "uid", "gid", "comm", "cgroup", "cgroups", "task",
        ];
        let ModelValue::Fields {
            ty: None, fields, ..
        } = value
        else {
            return Err(format!("process takes {{NAME: VALUE}}, not {value}"));
        };
        for (path, value) in fields {
            let name = path.join(".");
            let number = || match value {
                ModelValue::Number(number) => u32::try_from(*number)
                    .map_err(|_| format!("{name}: {number} is no number of 32 bits")),
                _ => Err(format!("{name} takes a number, not {value}")),
            };
            let id = |value: &ModelValue| match value {
                ModelValue::Number(number) => u64::try_from(*number)
                    .map_err(|_| format!("{name}: {number} is no id of a cgroup")),
                _ => Err(format!("{name} takes ids of cgroups, not {value}")),
            };
            let process = &mut self.process;
            match &*name {
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
                    let near = nearest(&name, MEMBERS.into_iter());
                    let members = MEMBERS.join(", ");
                    return Err(format!("a process has no {name}{near}; it has {members}"));
                }
            }
        }
        Ok(())
    }

    /// Makes the context of the next run.
    ///
    /// # Errors
    /// As [`ContextForm::of`] and [`ModelMemory::context`].
    pub fn make_context(&mut self, program: &Program, value: &ModelValue) -> Result<(), String> {
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
    ) -> Result<(), String> {
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
        let returns = signature.as_ref().map_or(word, |(_, returns)| *returns);
        let result = match returns.is_void() {
            true if *value == ModelValue::Word("void".to_owned()) => 0,
            true => return Err(format!("{name} returns nothing: result {name} = void")),
            false => self.memory.word(&target, returns, value)?,
        };
        let mut filled = Vec::new();
        for (argument, value) in fills {
            let names = self.argument_names(&signature);
            let number = names.iter().position(|known| known == argument);
            let number = number.ok_or_else(|| {
                let names = names.join(", ");
                format!("{name} has no argument {argument}; it has {names}")
            })?;
            let bytes = match value {
                ModelValue::Text(text) => [text.as_bytes(), &[0]].concat(),
                ModelValue::Bytes(bytes) => bytes.clone(),
                value => {
                    let to = signature.as_ref().and_then(|(parameters, _)| {
                        let types = &self.memory.types;
                        let ty = parameters.get(number)?.1;
                        match types.get(types.skip_modifiers(ty)?)?.shape() {
                            Shape::Ptr(to) => Some(to),
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

    /// The whole name of a function, and its prototype if it is a kfunc.
    #[allow(clippy::type_complexity)]
    fn signature(
        &self,
        name: &str,
    ) -> Result<(String, Option<(Vec<(String, TypeId)>, TypeId)>), String> {
        let long = format!("bpf_{name}");
        for name in [name, &long] {
            if spec::helpers::number(name).is_some() {
                return Ok((name.to_owned(), None));
            }
        }
        let types = &self.memory.types;
        if spec::kfuncs::KernelFunction::of_linux(name).is_some()
            && let Some(found) = types.find(Kind::Func, name)
            && let Some(signature) = function(types, found.id())
        {
            return Ok((name.to_owned(), Some(signature)));
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

    fn argument_names(&self, signature: &Option<(Vec<(String, TypeId)>, TypeId)>) -> Vec<String> {
        match signature {
            Some((parameters, _)) => parameters.iter().map(|(name, _)| name.clone()).collect(),
            None => (1..=5).map(|number| format!("arg{number}")).collect(),
        }
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

    /// The first argument of a call that differs from what is expected, in words.
    ///
    /// # Errors
    /// If an argument is unknown or takes no such value.
    pub fn compare_call(
        &mut self,
        call: &ModelCall,
        expected: &[(String, ModelValue)],
    ) -> Result<Option<String>, String> {
        let (name, signature) = self.signature(&call.function)?;
        let names = self.argument_names(&signature);
        let word = super::names::type_of(&self.memory.types, "u64")?;
        for (argument, value) in expected {
            let number = names.iter().position(|known| known == argument);
            let number = number.filter(|number| *number < 5).ok_or_else(|| {
                let near = nearest(argument, names.iter().map(String::as_str));
                format!(
                    "{name} has no argument {argument}{near}; it has {}",
                    names.join(", ")
                )
            })?;
            let got = call.arguments[number];
            if let (ModelValue::Text(text), Some(found)) = (value, &call.texts[number]) {
                match text == found {
                    true => continue,
                    false => {
                        return Ok(Some(format!("{argument}: expected {value}, got {found:?}")));
                    }
                }
            }
            let parameter = signature
                .as_ref()
                .and_then(|(parameters, _)| parameters.get(number));
            let ty = parameter.map_or(word, |(_, ty)| *ty);
            let target = Target {
                types: self.memory.types.clone(),
                object: 0,
                offset: 0,
                label: Label {
                    path: argument.clone(),
                    owner: String::new(),
                },
                is_user: false,
            };
            let wanted = self.memory.word(&target, ty, value)?;
            let bits = 8 * self.memory.types.size_of(ty).unwrap_or(8).clamp(1, 8);
            let mask = u64::MAX >> (64 - bits);
            if got & mask != wanted & mask {
                let got = self.show_word(got & mask);
                return Ok(Some(format!("{argument}: expected {value}, got {got}")));
            }
        }
        Ok(None)
    }

    /// A call in words.
    pub fn show_call(&self, call: &ModelCall) -> String {
        let signature = self
            .signature(&call.function)
            .map(|(_, signature)| signature);
        let names =
            signature.map(|signature| (self.argument_names(&signature), signature.is_some()));
        let (names, is_known) = names.unwrap_or_default();
        let shown = names.iter().take(5).enumerate().map(|(number, name)| {
            let word = match &call.texts[number] {
                Some(text) if is_known => format!("{text:?}"),
                _ => self.show_word(call.arguments[number]),
            };
            format!("{name}: {word}")
        });
        let shown: Vec<String> = shown.collect();
        format!("{} {{{}}}", call.function, shown.join(", "))
    }

    fn show_word(&self, word: u64) -> String {
        match self.memory.name_of(word) {
            Some(name) => format!("@{name}"),
            None if word > u64::from(u32::MAX) => format!("{word:#x}"),
            None => word.to_string(),
        }
    }

    pub(super) fn write_seq(&self, text: &[u8]) {
        let mut seq = lock(&self.seq);
        let room = MOST_SEQ - seq.len();
        seq.extend(&text[..text.len().min(room)]);
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
        cx: &RunContext<'_>,
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
        match name {
            "bpf_seq_printf" => return Some(self.seq_printf(arguments, memory)),
            "bpf_seq_write" => return Some(self.seq_write(arguments, memory)),
            _ => {}
        }
        let refuse = |memory: &M, why: String| Some(Err(memory.refuse(why)));
        match self.answer(name, arguments, memory, cx) {
            Some(Ok(result)) => return Some(Ok(result)),
            Some(Err(why)) => return refuse(memory, why),
            None => {}
        }
        let is_absent = crate::helpers::is_about_absent(number)
            || crate::kfuncs::state(name) == Some(CallState::Absent);
        if crate::find::<M>(number).is_some() && !is_absent {
            return None;
        }
        self.record(name, arguments, memory);
        let signature = self
            .signature(name)
            .ok()
            .and_then(|(_, signature)| signature);
        match signature {
            Some((_, returns)) if returns.is_void() => Some(Ok(0)),
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

    /// What a function about given objects or the process returns; `None` for others. The error says what
    /// was not given.
    fn answer<M: ModelPort>(
        &self,
        name: &str,
        arguments: [u64; 5],
        memory: &mut M,
        cx: &RunContext<'_>,
    ) -> Option<Result<u64, String>> {
        let process = &self.process;
        let [first, second, ..] = arguments;
        let of_task = |member: &str| match process.task {
            Some(task) => self.memory.number(task, &[member]).map(|_| ()),
            None => Err(format!(
                "the {member} of the process was not given: process {{{member}: …}}"
            )),
        };
        let needs = |is_given: bool, member: &str| match is_given {
            true => Ok(()),
            false => Err(format!(
                "the {member} of the process was not given: process {{{member}: …}}"
            )),
        };
        let checked = match name {
            "bpf_get_current_pid_tgid" => {
                let pid = process.pid.map_or_else(|| of_task("pid"), |_| Ok(()));
                pid.and_then(|()| process.tgid.map_or_else(|| of_task("tgid"), |_| Ok(())))
            }
            "bpf_get_current_uid_gid" => needs(process.uid.is_some(), "uid")
                .and_then(|()| needs(process.gid.is_some(), "gid")),
            "bpf_get_current_comm" => process.comm.map_or_else(|| of_task("comm"), |_| Ok(())),
            "bpf_get_current_cgroup_id" | "bpf_get_current_ancestor_cgroup_id" => {
                needs(process.cgroups.is_some(), "cgroups")
            }
            "bpf_ktime_get_ns"
            | "bpf_ktime_get_boot_ns"
            | "bpf_ktime_get_coarse_ns"
            | "bpf_ktime_get_tai_ns"
            | "bpf_jiffies64" => match self.has_time {
                true => Ok(()),
                false => Err("the time was not given: time 5s".to_owned()),
            },
            "bpf_get_current_task" | "bpf_get_current_task_btf" => {
                needs(process.task.is_some(), "task")
            }
            "bpf_get_func_arg_cnt" => return Some(Ok(self.context.arguments as u64)),
            "bpf_task_from_pid" | "bpf_task_from_vpid" => {
                return Some(self.find_by("task_struct", &["pid"], first as u32 as u64));
            }
            "bpf_cgroup_from_id" => return Some(self.cgroup_from_id(first)),
            "bpf_task_acquire" | "bpf_cgroup_acquire" => return Some(Ok(first)),
            "bpf_task_release" | "bpf_cgroup_release" | "bpf_put_file" => return Some(Ok(0)),
            "bpf_cgroup_ancestor" => return Some(self.ancestor(first, second as u32 as i32)),
            "bpf_task_under_cgroup" => {
                return Some(
                    self.cgroup_of(first)
                        .and_then(|cgroup| self.is_below(cgroup, second)),
                );
            }
            "bpf_get_task_exe_file" => {
                let mm = self.memory.number(first, &["mm"]);
                return Some(mm.and_then(|mm| match mm {
                    0 => Ok(0),
                    mm => self.memory.number(mm, &["exe_file"]),
                }));
            }
            "bpf_d_path" | "bpf_path_d_path" => return Some(self.path(arguments, memory)),
            _ => return None,
        };
        let _ = cx;
        match checked {
            Ok(()) => None,
            Err(why) => Some(Err(why)),
        }
    }

    /// The object of a type with a number in a member; 0 if none has it.
    fn find_by(&self, ty: &str, path: &[&str], wanted: u64) -> Result<u64, String> {
        let all = self.memory.all_of(ty);
        let found = all
            .into_iter()
            .find(|address| self.memory.number(*address, path) == Ok(wanted));
        Ok(found.unwrap_or(0))
    }

    fn cgroup_id(&self, cgroup: u64) -> Result<u64, String> {
        self.memory
            .number(self.memory.number(cgroup, &["kn"])?, &["id"])
    }

    fn cgroup_from_id(&self, id: u64) -> Result<u64, String> {
        let all = self.memory.all_of("cgroup");
        let found = all
            .into_iter()
            .find(|cgroup| self.cgroup_id(*cgroup) == Ok(id));
        Ok(found.unwrap_or(0))
    }

    /// The cgroup above another one, which is the parent of its `self`.
    fn parent(&self, cgroup: u64) -> Result<u64, String> {
        self.memory.number(cgroup, &["self", "parent"])
    }

    fn ancestor(&self, cgroup: u64, level: i32) -> Result<u64, String> {
        let mut cgroup = cgroup;
        for _ in 0..MOST_STEPS {
            let at = self.memory.number(cgroup, &["level"])? as i32;
            match at {
                at if level < 0 || at < level => return Ok(0),
                at if at == level => return Ok(cgroup),
                _ => cgroup = self.parent(cgroup)?,
            }
        }
        Err("the parents of the cgroup go round".to_owned())
    }

    fn cgroup_of(&self, task: u64) -> Result<u64, String> {
        self.memory
            .number(self.memory.number(task, &["cgroups"])?, &["dfl_cgrp"])
    }

    fn is_below(&self, cgroup: u64, ancestor: u64) -> Result<u64, String> {
        let mut cgroup = cgroup;
        for _ in 0..MOST_STEPS {
            match cgroup {
                0 => return Ok(0),
                cgroup if cgroup == ancestor => return Ok(1),
                _ => cgroup = self.parent(cgroup)?,
            }
        }
        Err("the parents of the cgroup go round".to_owned())
    }

    /// The path of a `struct path`, written to a buffer: its length with the final zero byte, or
    /// `-ENAMETOOLONG`. Directories are the parents of entries up to one that is its own or has none.
    fn path<M: ModelPort>(
        &self,
        [path, buffer, size, ..]: [u64; 5],
        memory: &mut M,
    ) -> Result<u64, String> {
        const ENAMETOOLONG: u64 = -36i64 as u64;
        let mut names = Vec::new();
        let mut dentry = self.memory.pointer_at(path, "path", "dentry")?;
        for _ in 0..MOST_STEPS {
            let name = self.memory.number(dentry, &["d_name", "name"])?;
            let name = read_text(memory, name).ok_or("the name of an entry is no text")?;
            let parent = self.memory.number(dentry, &["d_parent"])?;
            if name != "/" {
                names.push(name);
            }
            if parent == 0 || parent == dentry {
                break;
            }
            dentry = parent;
        }
        let mut text = String::new();
        for name in names.iter().rev() {
            text.push('/');
            text.push_str(name);
        }
        if text.is_empty() {
            text.push('/');
        }
        let bytes = [text.as_bytes(), &[0]].concat();
        if bytes.len() as u64 > u64::from(size as u32) {
            return Ok(ENAMETOOLONG);
        }
        let written = memory.write(buffer, &bytes);
        written.map_err(|_| "the buffer cannot be written".to_owned())?;
        Ok(bytes.len() as u64)
    }
}

/// Text at an address, if one is there.
fn read_text<M: ModelPort>(memory: &M, address: u64) -> Option<String> {
    // Small numbers are no addresses.
    if address < 0x1_0000 {
        return None;
    }
    let mut text = Vec::new();
    for at in 0..MOST_TEXT {
        let mut byte = [0];
        memory.read(address.wrapping_add(at), &mut byte).ok()?;
        if byte == [0] {
            break;
        }
        text.extend(byte);
    }
    let text = String::from_utf8(text).ok()?;
    let is_text = |each: char| !each.is_control() || each == '\n' || each == '\t';
    (!text.is_empty() && text.chars().all(is_text)).then_some(text)
}

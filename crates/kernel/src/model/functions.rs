//! Functions about objects that a test gives: tasks, control groups, files; and about the process.

use spec::Errno;
use spec::helpers::HelperId;
use vm::network::{AF_INET, AF_INET6, AF_UNIX};
use vm::{GivenAccess, GivenMemory, ModelPort};

use super::model_calls::Model;
use crate::call::fail_if;

/// Families and states of sockets.
const UNIX: u64 = AF_UNIX as u64;
const INET: u64 = AF_INET as u64;
const INET6: u64 = AF_INET6 as u64;
const TIME_WAIT: u64 = 6;
const NEW_SYN_RECV: u64 = 12;

/// Most objects that a function follows from one to the next.
const MOST_STEPS: usize = 4096;
/// Most bytes of a text.
const MOST_TEXT: u64 = 4096;

impl Model {
    /// What a helper about given objects or the process returns; `None` for others. The error says what
    /// was not given.
    pub(super) fn answer<M: ModelPort>(
        &self,
        helper: HelperId,
        arguments: [u64; 5],
        memory: &mut M,
    ) -> Option<Result<u64, String>> {
        let process = &self.process;
        let needs = |is_given: bool, member: &str| match is_given {
            true => Ok(()),
            false => Err(format!(
                "the {member} of the process was not given: process {{{member}: …}}"
            )),
        };
        let of_task = |member: &str| match process.task {
            Some(task) => self.memory.number(task, &[member]).map(|_| ()),
            None => needs(false, member),
        };
        let checked = match helper {
            HelperId::GetCurrentPidTgid => {
                let pid = process.pid.map_or_else(|| of_task("pid"), |_| Ok(()));
                pid.and_then(|()| process.tgid.map_or_else(|| of_task("tgid"), |_| Ok(())))
            }
            HelperId::GetCurrentUidGid => needs(process.uid.is_some(), "uid")
                .and_then(|()| needs(process.gid.is_some(), "gid")),
            HelperId::GetCurrentComm => process.comm.map_or_else(|| of_task("comm"), |_| Ok(())),
            HelperId::GetCurrentCgroupId | HelperId::GetCurrentAncestorCgroupId => {
                needs(process.cgroups.is_some(), "cgroups")
            }
            helper if helper.returns_time() => match self.has_time {
                true => Ok(()),
                false => Err("the time was not given: `time 5s` in front of the run".to_owned()),
            },
            HelperId::GetCurrentTask | HelperId::GetCurrentTaskBtf => {
                needs(process.task.is_some(), "task")
            }
            HelperId::GetFuncArgCnt => return Some(Ok(self.context.arguments as u64)),
            HelperId::GetFuncArg => return Some(self.argument(arguments, memory)),
            HelperId::GetFuncRet => return Some(self.returned(arguments[1], memory)),
            HelperId::DPath => return Some(self.path(arguments, memory)),
            helper => return self.socket_of_kind(helper, arguments[0]),
        };
        checked.err().map(Err)
    }

    /// As [`Model::answer`], for kfuncs.
    pub(super) fn answer_kfunc<M: ModelPort>(
        &self,
        name: &str,
        arguments: [u64; 5],
        memory: &mut M,
    ) -> Option<Result<u64, String>> {
        let [first, second, ..] = arguments;
        Some(match name {
            "bpf_task_from_pid" | "bpf_task_from_vpid" => {
                self.find_by("task_struct", &["pid"], first as u32 as u64)
            }
            "bpf_cgroup_from_id" => self.cgroup_from_id(first),
            "bpf_task_acquire" | "bpf_cgroup_acquire" => Ok(first),
            "bpf_task_release" | "bpf_cgroup_release" | "bpf_put_file" => Ok(0),
            "bpf_cgroup_ancestor" => self.ancestor(first, second as u32 as i32),
            "bpf_task_under_cgroup" => self
                .cgroup_of(first)
                .and_then(|cgroup| self.is_below(cgroup, second)),
            "bpf_get_task_exe_file" => {
                let mm = self.memory.number(first, &["mm"]);
                mm.and_then(|mm| match mm {
                    0 => Ok(0),
                    mm => self.memory.number(mm, &["exe_file"]),
                })
            }
            "bpf_path_d_path" => self.path(arguments, memory),
            _ => return None,
        })
    }

    /// `long bpf_get_func_arg(void *ctx, u32 n, u64 *value)`.
    fn argument<M: ModelPort>(
        &self,
        [_, number, to, ..]: [u64; 5],
        memory: &mut M,
    ) -> Result<u64, String> {
        match number < self.context.arguments as u64 {
            true => self.copy_argument(number, to, memory),
            false => Ok(Errno::EINVAL.negated()),
        }
    }

    /// `long bpf_get_func_ret(void *ctx, u64 *value)`: the word behind the arguments, if there is one.
    fn returned<M: ModelPort>(&self, to: u64, memory: &mut M) -> Result<u64, String> {
        match self.context.has_result {
            true => self.copy_argument(self.context.arguments as u64, to, memory),
            false => Ok(Errno::EOPNOTSUPP.negated()),
        }
    }

    fn copy_argument<M: ModelPort>(
        &self,
        number: u64,
        to: u64,
        memory: &mut M,
    ) -> Result<u64, String> {
        let mut word = [0; 8];
        match self
            .memory
            .read(self.context.address + 8 * number, &mut word)
        {
            GivenAccess::Done => {}
            GivenAccess::NotGiven(what) => return Err(format!("{what} was not given")),
            GivenAccess::Absent => return Err("the program has no arguments".to_owned()),
        }
        let written = memory.write(to, &word);
        written.map_err(|_| "the value cannot be written".to_owned())?;
        Ok(0)
    }

    /// `bpf_skc_to_*_sock`: the socket if it is of the kind, as its members say; those that were not given are
    /// as an object of the kind has them. `None` for other functions and other sockets than given ones.
    fn socket_of_kind(&self, helper: HelperId, socket: u64) -> Option<Result<u64, String>> {
        const FULL: fn(u64) -> bool = is_full;
        const ANY: fn(u64) -> bool = |_| true;
        type Rule = (&'static [&'static str], fn(u64) -> bool);
        const FAMILY: &[&str] = &["__sk_common", "skc_family"];
        const STATE: &[&str] = &["__sk_common", "skc_state"];
        const KIND: &[&str] = &["sk_type"];
        const PROTOCOL: &[&str] = &["sk_protocol"];
        let stream: Rule = (KIND, |kind| kind == 1);
        let tcp: Rule = (PROTOCOL, |protocol| protocol == 6);
        let (kind, rules): (&str, Vec<Rule>) = match helper {
            HelperId::SkcToTcpSock => {
                let inet: Rule = (FAMILY, |family| family == INET || family == INET6);
                ("tcp_sock", vec![(STATE, FULL), inet, stream, tcp])
            }
            HelperId::SkcToTcp6Sock => {
                let inet: Rule = (FAMILY, |family| family == INET6);
                ("tcp6_sock", vec![(STATE, FULL), inet, stream, tcp])
            }
            HelperId::SkcToUdp6Sock => {
                let datagrams: Rule = (KIND, |kind| kind == 2);
                let udp: Rule = (PROTOCOL, |protocol| protocol == 17);
                let inet: Rule = (FAMILY, |family| family == INET6);
                ("udp6_sock", vec![(STATE, FULL), udp, datagrams, inet])
            }
            HelperId::SkcToUnixSock => {
                let unix: Rule = (FAMILY, |family| family == UNIX);
                ("unix_sock", vec![(STATE, ANY), unix])
            }
            HelperId::SkcToTcpTimewaitSock => {
                let waits: Rule = (STATE, |state| state == TIME_WAIT);
                ("tcp_timewait_sock", vec![waits])
            }
            HelperId::SkcToTcpRequestSock => {
                let waits: Rule = (STATE, |state| state == NEW_SYN_RECV);
                ("tcp_request_sock", vec![waits])
            }
            _ => return None,
        };
        if socket == 0 {
            return Some(Ok(0));
        }
        let is_of_kind = self.memory.is_of(socket, kind)?;
        for (path, is_it) in rules {
            match self.memory.member_of(socket, "sock", path) {
                Ok(value) if is_it(value) => {}
                Ok(_) => return Some(Ok(0)),
                Err(_) if is_of_kind => {}
                Err(missing) => return Some(Err(missing)),
            }
        }
        Some(Ok(socket))
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
        let mut names = Vec::new();
        let mut dentry = self.memory.member_of(path, "path", &["dentry"])?;
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
        fail_if!(bytes.len() as u64 > u64::from(size as u32) => Errno::ENAMETOOLONG);
        let written = memory.write(buffer, &bytes);
        written.map_err(|_| "the buffer cannot be written".to_owned())?;
        Ok(bytes.len() as u64)
    }
}

/// True for the state of a whole socket (`sk_fullsock`).
pub(super) fn is_full(state: u64) -> bool {
    state != TIME_WAIT && state != NEW_SYN_RECV
}

/// Text at an address, if one is there.
pub(super) fn read_text<M: ModelPort>(memory: &M, address: u64) -> Option<String> {
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

//! `cargo differential compare models`: tracing and LSM programs attached in Debian's Linux 6.18, beside
//! runs of the same programs in a model of the kernel that is given the same values.
//!
//! `tools/kernels/attach.c`, a static program, attaches the tools of `examples/tools` in that kernel, causes an
//! event whose values are known, and prints the records. A model run is given what the event was; its
//! records have to be equal byte for byte, its result that which the process saw.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use beebox::KernelModel;
use beebox::{Instance, Loader, Object, RunClock, TestRun};

use super::Outcome;

/// The kernel by the name that `tools/kernels/vm` has for it.
const KERNEL: &str = "6.18";
/// The tools with the events that they see.
const EVENTS: [(&str, &str); 5] = [
    ("execsnoop", "exec"),
    ("opensnoop", "open"),
    ("filepolicy", "secret"),
    ("tcpconnlat", "connect"),
    ("fifo", "schedule"),
];

/// What the kernel gave of an event.
#[derive(Default)]
struct Answer {
    facts: BTreeMap<String, i64>,
    records: Vec<Vec<u8>>,
}

impl Answer {
    fn fact(&self, name: &str) -> Outcome<i64> {
        let found = self.facts.get(name).copied();
        found.ok_or_else(|| format!("the kernel told no {name}").into())
    }
}

/// Compares all events.
pub(super) fn compare() -> Outcome {
    for needed in ["qemu-system-x86_64", "gcc"] {
        if let Err(absent) = oracle::program(needed) {
            println!("skipped: {absent}");
            return Ok(());
        }
    }
    let answers = ask()?;
    let mut differing = 0;
    for (tool, event) in EVENTS {
        let answer = answers
            .get(tool)
            .ok_or_else(|| format!("{tool} was not attached"))?;
        let (ours, theirs) = match tool {
            "execsnoop" => (executed(answer)?, of_child(answer, 0)?),
            "opensnoop" => (opened(answer)?, of_child(answer, 0)?),
            "tcpconnlat" => (connected(answer)?, of_child(answer, 16)?),
            "fifo" => (scheduled()?, vec![schedules(answer)?]),
            _ => (
                refused()?,
                vec![answer.fact("errno")?.to_le_bytes().to_vec()],
            ),
        };
        let is_equal = ours == theirs && !theirs.is_empty();
        differing += usize::from(!is_equal);
        let word = if is_equal { "equal" } else { "DIFFERENT" };
        println!("{tool} ({event}): {} records, {word}", theirs.len());
        if !is_equal {
            println!("  model  {ours:02x?}\n  kernel {theirs:02x?}");
        }
    }
    match differing {
        0 => Ok(()),
        differing => Err(format!("{differing} of {} events differ", EVENTS.len()).into()),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Has the kernel run all events in one boot.
fn ask() -> Outcome<BTreeMap<String, Answer>> {
    let root = root();
    let tools = oracle::selftests();
    let newest = std::fs::read_to_string(tools.join("newest"))?;
    let base = tools.join(newest.trim());
    let attach = base.join("tools/attach");
    let made = Command::new("gcc")
        .args(["-static", "-O2", "-std=gnu11", "-w", "-I"])
        .arg(base.join("tools/include"))
        .arg("-I")
        .arg(base.join("linux/tools/include/uapi"))
        .arg(root.join("tools/kernels/attach.c"))
        .arg(base.join("tools/libbpf.a"))
        .args(["-lelf", "-lz", "-o"])
        .arg(&attach)
        .status()?;
    if !made.success() {
        return Err("tools/kernels/attach.c is not compiled".into());
    }
    let mut vm = Command::new(root.join("tools/kernels/vm"));
    vm.args(["run", KERNEL]);
    let mut put = |file: &Path, inside: &str| {
        let mut argument = OsString::from(file);
        argument.push(format!(":{inside}"));
        vm.arg("--put").arg(argument);
    };
    put(&attach, "attach");
    let mut script = String::new();
    for (tool, event) in EVENTS {
        let object = format!("{tool}.bpf.o");
        put(&root.join("examples/tools").join(&object), &object);
        script += &format!("echo tool {tool}; ./attach {object} {event}; ");
    }
    let done = vm.arg("--").arg(script).stderr(Stdio::inherit()).output()?;
    parse(&String::from_utf8_lossy(&done.stdout))
}

fn parse(text: &str) -> Outcome<BTreeMap<String, Answer>> {
    let mut answers: BTreeMap<String, Answer> = BTreeMap::new();
    let mut tool = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["tool", name] => tool = name.to_owned(),
            ["fact", name, number] => {
                let facts = &mut answers.entry(tool.clone()).or_default().facts;
                facts.insert(name.to_owned(), number.parse()?);
            }
            ["record", digits] => {
                let pairs = digits.as_bytes().chunks(2);
                let bytes: Result<Vec<u8>, _> = pairs
                    .map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16))
                    .collect();
                answers
                    .entry(tool.clone())
                    .or_default()
                    .records
                    .push(bytes?);
            }
            ["failed", ..] => return Err(format!("{tool}: {line}").into()),
            _ => {}
        }
    }
    Ok(answers)
}

/// The records of the child, whose number is at an offset in them.
fn of_child(answer: &Answer, at: usize) -> Outcome<Vec<Vec<u8>>> {
    let child = (answer.fact("child")? as u32).to_le_bytes();
    let records = answer.records.iter();
    let is_of_child = |record: &&Vec<u8>| record.get(at..at + 4) == Some(&child[..]);
    Ok(records.filter(is_of_child).cloned().collect())
}

fn load(tool: &str) -> Outcome<Instance> {
    let object = Object::open(root().join("examples/tools").join(format!("{tool}.bpf.o")))?;
    Ok(Loader::default().models(true).load(&object)?)
}

/// Runs a program; its records.
fn run(
    instance: &Instance,
    model: &mut KernelModel,
    (program, arguments): (&str, &str),
    time: u64,
) -> Outcome<Vec<Vec<u8>>> {
    let options = TestRun::default().clock(RunClock::Fixed(time));
    let result = instance
        .program(program)?
        .model_run(model, arguments, &options)?;
    Ok(result
        .records
        .into_iter()
        .map(|record| record.bytes)
        .collect())
}

fn executed(answer: &Answer) -> Outcome<Vec<Vec<u8>>> {
    let (child, parent) = (answer.fact("child")?, answer.fact("parent")?);
    let instance = load("execsnoop")?;
    let mut model = KernelModel::new(&instance)?;
    model.give("parent", &format!("task_struct {{ tgid: {parent} }}"))?;
    let task = format!(
        "task_struct {{ pid: {child}, tgid: {child}, comm: \"exe\", real_parent: @parent }}"
    );
    model.give("child", &task)?;
    // The name is the new one's when the program begins.
    model.process(&format!(
        "{{ pid: {child}, tgid: {child}, comm: \"attach\" }}"
    ))?;
    let call = "{ args: [user \"/proc/self/exe\"] }";
    let mut records = run(&instance, &mut model, ("on_execve", call), 0)?;
    let begun =
        format!("{{ p: @child, old_pid: {child}, bprm: {{ filename: \"/proc/self/exe\" }} }}");
    records.extend(run(&instance, &mut model, ("on_exec", &begun), 0)?);
    Ok(records)
}

fn opened(answer: &Answer) -> Outcome<Vec<Vec<u8>>> {
    let child = answer.fact("child")?;
    let instance = load("opensnoop")?;
    let mut model = KernelModel::new(&instance)?;
    model.process(&format!(
        "{{ pid: {child}, tgid: {child}, comm: \"attach\" }}"
    ))?;
    let call = "{ dfd: -100, filename: user \"/missing-file\" }";
    let mut records = run(&instance, &mut model, ("on_open", call), 0)?;
    records.extend(run(
        &instance,
        &mut model,
        ("on_opened", "{ ret: -ENOENT }"),
        0,
    )?);
    Ok(records)
}

/// The latency is that of the kernel: its record gives the clock.
fn connected(answer: &Answer) -> Outcome<Vec<Vec<u8>>> {
    let (child, port) = (answer.fact("child")?, answer.fact("port")?);
    let theirs = of_child(answer, 16)?;
    let latency = theirs.first().and_then(|record| record.first_chunk::<8>());
    let latency = u64::from_le_bytes(*latency.ok_or("the kernel has no record of the connection")?);
    if Duration::from_nanos(latency) > Duration::from_secs(10) {
        return Err("the latency is no time".into());
    }
    let instance = load("tcpconnlat")?;
    let mut model = KernelModel::new(&instance)?;
    let socket = format!(
        "sock {{ __sk_common: {{ skc_daddr: \"127.0.0.1\", skc_dport: be {port}, skc_state: TCP_SYN_SENT }} }}"
    );
    model.give("sk", &socket)?;
    model.process(&format!("{{ pid: {child}, tgid: {child} }}"))?;
    let start = 1_000;
    run(&instance, &mut model, ("on_connect", "{ sk: @sk }"), start)?;
    run(
        &instance,
        &mut model,
        ("on_answer", "{ sk: @sk }"),
        start + latency,
    )
}

/// Whether the scheduler is enabled and queues tasks.
fn schedules(answer: &Answer) -> Outcome<Vec<u8>> {
    let queues = answer.fact("second")? > 0;
    Ok(vec![
        u8::from(answer.fact("enabled")? == 1),
        u8::from(queues),
    ])
}

/// The same of the model: its begin succeeds, and a task is queued and counted.
fn scheduled() -> Outcome<Vec<Vec<u8>>> {
    let instance = load("fifo")?;
    let mut model = KernelModel::new(&instance)?;
    model.give("task", "task_struct { pid: 5 }")?;
    model.result("scx_bpf_create_dsq", None, "0")?;
    let options = TestRun::default();
    let begin = instance.program("fifo_init")?;
    let begin = begin.model_run(&mut model, "[]", &options)?;
    let enqueue = instance.program("fifo_enqueue")?;
    enqueue.model_run(&mut model, "[@task, 0]", &options)?;
    let queues = instance.global::<u64>("queued")? > 0 && !model.calls().is_empty();
    Ok(vec![vec![u8::from(begin.retval == 0), u8::from(queues)]])
}

/// The error that the process gets is the negated result of the hook.
fn refused() -> Outcome<Vec<Vec<u8>>> {
    let instance = load("filepolicy")?;
    let mut model = KernelModel::new(&instance)?;
    model.give("root", "dentry { d_name.name: \"/\", d_parent: null }")?;
    for (name, text, parent) in [
        ("etc", "etc", "root"),
        ("secrets", "secrets", "etc"),
        ("key", "key", "secrets"),
    ] {
        let entry = format!("dentry {{ d_name.name: \"{text}\", d_parent: @{parent} }}");
        model.give(name, &entry)?;
    }
    model.process("{ uid: 1000, gid: 1000 }")?;
    let program = instance.program("file_policy")?;
    let arguments = "{ file: { f_path.dentry: @key } }";
    let result = program.model_run(&mut model, arguments, &TestRun::default())?;
    let errno = -i64::from(result.retval as i32);
    Ok(vec![errno.to_le_bytes().to_vec()])
}

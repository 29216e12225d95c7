//! `beebox test` of programs that Linux does not test-run.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Exit code, standard output and standard error of tests of a file or directory of the repository.
fn test(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("test")
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("beebox starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (
        output.status.code().expect("a code"),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Runs statements with an object of the examples.
fn run(object: &str, statements: &str) -> (i32, String, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let object = examples.join(object);
    let text = format!("object {}\ntest a\n{statements}\n", object.display());
    fs::write(directory.path().join("a.expect"), text).expect("a file");
    test(&[&directory.path().display().to_string(), "--no-why"])
}

#[oracle::test]
fn ten_tools_pass_their_tests() {
    let (code, out, said) = test(&["examples/tools"]);
    assert_eq!(code, 0, "{out}{said}");
    assert!(out.ends_with("24 tests passed\n"), "{out}");
    let lines = out.lines().filter(|line| line.starts_with("ok"));
    assert!(
        lines.clone().all(|line| line.ends_with(" (model)")),
        "{out}"
    );
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tools");
    let files = fs::read_dir(directory).expect("the tools").flatten();
    let files: Vec<_> = files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "expect"))
        .collect();
    assert_eq!(files.len(), 10);
    for path in files {
        let text = fs::read_to_string(&path).expect("text");
        assert!(text.lines().count() <= 30, "{}", path.display());
    }
}

#[oracle::test]
fn contexts_of_every_kind_have_fields_by_name() {
    let (code, out, said) = test(&["crates/cli/tests/data/model.expect"]);
    assert_eq!(code, 0, "{out}{said}");
}

#[oracle::test]
fn casts_bits_arguments_and_streams_run() {
    let (code, out, said) = test(&["crates/cli/tests/data/model_casts.expect"]);
    assert_eq!(code, 0, "{out}{said}");
}

#[oracle::test]
fn storage_belongs_to_what_was_given() {
    let (code, out, said) = test(&["crates/cli/tests/data/storage.expect"]);
    assert_eq!(code, 0, "{out}{said}");
    // A map of no program is an error wherever it stands, and one of other tests in a test.
    let object = "../crates/cli/tests/data/storage.bpf.o";
    let run_on = "run on_setsockopt { level: 0 }\nretval 1";
    for (statements, part) in [
        (
            "set of_task \"task\" = 1",
            "no program uses a map \"of_task\"; there are of_sockets",
        ),
        (
            "set of_tasks \"task\" = 1",
            "no program uses a map \"of_tasks\"",
        ),
        ("set of_sockets 7x = 1", "does not begin with a key"),
        (
            "set of_sockets [7] = 1",
            "map of_sockets is local storage: its keys are",
        ),
        ("map of_sockets \"@gone\" = 1", "@gone was not given"),
    ] {
        let (code, out, said) = run(object, &format!("{run_on}\n{statements}"));
        assert_eq!(code, 2, "{statements}: {out}{said}");
        assert!(said.contains(part), "{statements}: {said}");
    }
}

/// Tests that pass are told, too: what was given has its names, and so has the context.
#[oracle::test]
fn runs_of_models_are_told_by_names() {
    let (code, out, said) = test(&[
        "crates/cli/tests/data/storage.expect",
        "--match",
        "socket",
        "--why",
    ]);
    assert_eq!(code, 0, "{out}{said}");
    for part in [
        "ctx->level (4660) != 4660: no",
        "bpf_sk_storage_delete(&of_sockets, bpf_sock of @socket)",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains("no packet"), "{out}");
    let tool = ["examples/tools/egress.expect", "--why"];
    let (code, out, said) = test(&tool);
    assert_eq!(code, 0, "{out}{said}");
    let (code, out, said) = test(&[
        "crates/cli/tests/data/model.expect",
        "--match",
        "connect goes",
        "--why",
    ]);
    assert_eq!(code, 0, "{out}{said}");
    assert!(out.contains("ctx->user_port: "), "{out}");
    let (code, _, said) = test(&["examples/tools", "--why", "--no-why"]);
    assert!(code == 2 && said.contains("--no-why"), "{said}");
}

#[oracle::test]
fn what_is_beside_what_was_given_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let objects = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let object = objects.join("model_casts.bpf.o");
    for (statements, part) in [
        (
            "run on_cast { sk: sock { sk_txhash: 7 } }",
            "tcp_sock.snd_cwnd",
        ),
        (
            "run on_bits { p: task_struct { no_cgroup_migration: 1 } }",
            "task_struct.in_execve of argument p was not given",
        ),
        (
            "run on_tcp { sk: sock { sk_type: 1 } }",
            "sock.__sk_common.skc_state of argument sk was not given",
        ),
        (
            "result bpf_send_signal = 0\nrun on_signal { }\nmemory @t.no_cgroup_migration = 0",
            "no_cgroup_migration was not given and not written",
        ),
        (
            "result bpf_send_signal = 0\nrun on_signal { }\ncall send_signal { arg1: 8 }",
            "arg1: expected 8, got 9 in bpf_send_signal {",
        ),
        (
            "result bpf_send_signal = 0\nrun on_signal { }\nmemory @t.comm = \"b\"",
            "comm: expected \"b\", got \"a\"",
        ),
    ] {
        let given = "given @t = task_struct { in_execve: 1, comm: \"a\" }";
        let object = object.display();
        let text = format!("object {object}\ntest a\n{given}\n{statements}\nretval 0\n");
        fs::write(directory.path().join("a.expect"), text).expect("a file");
        let (code, out, said) = test(&[&directory.path().display().to_string(), "--no-why"]);
        assert_eq!(code, 1, "{statements}: {out}{said}");
        assert!(out.contains(part), "{statements}: {out}");
    }
}

#[oracle::test]
fn expectations_of_a_run_are_those_of_tests() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.expect");
    fs::write(&path, "run on_any [0, 5]\nretval 1\n").expect("a file");
    let objects = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("run")
        .arg(objects.join("model_casts.bpf.o"))
        .arg("--expect")
        .arg(&path)
        .output()
        .expect("beebox starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[oracle::test]
fn what_was_not_given_is_named() {
    const TASK: &str = "given @t = task_struct { tgid: 7, comm: \"a\", real_parent: { pid: 1 } }\n";
    for (object, statements, part) in [
        (
            "tools/execsnoop.bpf.o",
            format!("{TASK}run on_exec {{ p: @t, bprm: {{ filename: \"x\" }} }}\nretval 0"),
            "task_struct.real_parent.tgid of @t was not given",
        ),
        (
            "tools/execsnoop.bpf.o",
            "run on_exec { p: null }\nretval 0".to_owned(),
            "argument bprm was not given",
        ),
        (
            "tools/execsnoop.bpf.o",
            "process { pid: 1, tgid: 1 }\nrun on_execve { args: [user \"x\"] }\nretval 0"
                .to_owned(),
            "the comm of the process was not given",
        ),
        (
            "tools/execsnoop.bpf.o",
            "process { pid: 1, tgid: 1, comm: \"a\" }\nrun on_execve { id: 5 }\nretval 0"
                .to_owned(),
            "trace_event_raw_sys_enter.args[0] was not given",
        ),
        (
            "tools/oomkill.bpf.o",
            "process { pid: 1, tgid: 1 }\nrun on_kill { oc: { totalpages: 1 } }\nretval 0"
                .to_owned(),
            "oom_control.chosen of argument oc was not given",
        ),
        (
            "tools/runqlat.bpf.o",
            "run on_wakeup { p: task_struct { pid: 4 } }\nretval 0".to_owned(),
            "the time was not given: `time 5s` in front of the run",
        ),
        (
            "tools/fifo.bpf.o",
            "run fifo_init []\nretval 0".to_owned(),
            "scx_bpf_create_dsq refuses: the result of scx_bpf_create_dsq was not given",
        ),
    ] {
        let (code, out, said) = run(object, &statements);
        assert_eq!(code, 1, "{statements}: {out}{said}");
        assert!(out.contains(part), "{statements}: {out}");
    }
}

#[oracle::test]
fn mistakes_are_named_with_their_line() {
    for (statements, part) in [
        (
            "given @a = task_strct {}",
            ":3: the kernel has no type task_strct; a similar one exists: 'task_struct'",
        ),
        (
            "given @a = task_struct { pdi: 7 }",
            ":3: column 26: task_struct has no member pdi; a similar one exists: 'pid'",
        ),
        (
            "given @a = task_struct { pid: \"x\" }",
            ":3: column 31: task_struct.pid, int, takes a number, not \"x\"",
        ),
        (
            "given @a = task_struct { pid: 99999999999 }",
            "does not fit into int (32 bits)",
        ),
        (
            "given @a = task_struct {\n pid: 1\n tgid: 2 }",
            ":5: column 2: a comma or } is expected",
        ),
        (
            "given @a = task_struct { real_parent: @b }\ngiven @b = file {}",
            ":3: column 39: task_struct.real_parent points to task_struct, and @b is a file",
        ),
        (
            "given @aa = task_struct {}\nrun on_exec { p: @ab }",
            ":4: column 18: argument p: @ab was not given",
        ),
        (
            "given @a = task_struct {}\ngiven @a = task_struct {}",
            ":4: @a was given before",
        ),
        (
            "given @a = task_struct { comm: \"a name that is too long\" }",
            "room for 15 bytes of text",
        ),
        (
            "given @a = task_struct {\n pid: 1,\n real_parent: sock { sk_hash: 7 } }",
            ":5: column 15: task_struct.real_parent points to task_struct, not to sock",
        ),
        (
            "run on_exec { p: sock { sk_hash: 7 } }",
            ":3: column 18: argument p: sock points to task_struct, not to sock",
        ),
        (
            "given @a = sock { __sk_common: { skc_daddr: 1, skc_addrpair: 0 } }",
            ":3: column 48: sock.__sk_common.skc_addrpair has bytes of sock.__sk_common.skc_daddr, which",
        ),
        (
            "given @a = task_struct { in_execve: 2 }",
            ":3: column 37: task_struct.in_execve: 2 does not fit into 1 bits",
        ),
        (
            "run on_exec { q: 1 }",
            ":3: column 15: sched_process_exec has no argument q; it has p, old_pid, bprm",
        ),
        (
            "run on_exec [1, 2, 3, 4]",
            ":3: sched_process_exec has 3 arguments, not 4",
        ),
        (
            "run on_exec zero:60",
            ":3: programs of type tracing take arguments or fields by name",
        ),
        (
            "process { pidd: 1 }",
            ":3: column 11: a process has no pidd; a similar one exists: 'pid'",
        ),
        (
            "result bpf_get_curent_comm = 0",
            ":3: there is no helper and no kfunc bpf_get_curent_comm; a similar one",
        ),
        (
            "run on_execve { args: [1, 2, 3, 4, 5, 6, 7] }",
            "args has 6 elements",
        ),
        (
            "call scx_bpf_dsq_insert none",
            ":3: it is about runs in a model of the kernel (run PROGRAM {NAME: VALUE}), and there is none",
        ),
    ] {
        let (code, out, said) = run("tools/execsnoop.bpf.o", &format!("{statements}\nretval 0"));
        assert_eq!(code, 2, "{statements}: {out}{said}");
        assert!(said.contains(part), "{statements}: {said}");
    }
}

#[oracle::test]
fn a_failing_run_in_a_model_is_told() {
    let statements =
        "given @t = task_struct { pid: 3 }\ntime 1s\nrun on_wakeup { p: @t }\nmap woken 3 = 5";
    let directory = tempfile::tempdir().expect("a directory");
    let object = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tools/runqlat.bpf.o");
    let text = format!("object {}\ntest a\n{statements}\n", object.display());
    fs::write(directory.path().join("a.expect"), text).expect("a file");
    let (code, out, _) = test(&[&directory.path().display().to_string()]);
    assert_eq!(code, 1);
    for part in ["expected 5, got 1000000000", "map_update_elem", "on_wakeup"] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

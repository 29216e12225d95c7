//! `beebox show` and `beebox dis` of objects: what they print, and what they say of
//! files that are no objects.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn example() -> String {
    let path = repository().join("examples/traffic/traffic.bpf.o");
    path.to_str().unwrap().to_owned()
}

fn beebox(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .output()
        .expect("beebox starts")
}

fn printed(words: &[&str]) -> String {
    let output = beebox(words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn as_json(words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["--format", "json"]).collect();
    serde_json::from_str(&printed(&words)).unwrap()
}

#[oracle::test]
fn an_object_fits_on_a_screen() {
    let text = printed(&["show", &example()]);
    assert!(text.lines().count() <= 50, "{text}");
    let first = text.lines().next().unwrap();
    assert_eq!(
        first,
        "traffic.bpf.o: 2 programs, 4 maps, licence Dual MIT/GPL; needs Linux 5.8"
    );
    for words in [
        "tp_btf/sched_process_exec",
        "percpu_hash",
        "task_struct.real_parent (byte_off)",
        "helper bpf_ringbuf_reserve",
        "commit 457f44363a88",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[oracle::test]
fn instructions_after_verification_have_the_kernels_numbers() {
    let text = printed(&["dis", &example(), "--prog", "count", "--xlated"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "count: section xdp, 79 instructions after verification"
    );
    // The lookup in a per-CPU hash is inlined, so that what follows moves.
    for line in [
        "  10: (85) call pc+51 <protocol>",
        "  16: (85) call bpf_map_lookup_elem#1  ; 5 instructions",
        "  21: (15) if r0 == 0x0 goto pc+7",
    ] {
        assert!(lines.contains(&line), "{line}: {text}");
    }
    let record = &as_json(&["dis", &example(), "--prog", "count", "--xlated"])["programs"][0];
    assert_eq!(record["xlated_insns"], 79);
    let call = record["insns"].as_array().unwrap();
    let call = call.iter().find(|insn| insn["index"] == 16).unwrap();
    assert_eq!(
        (&call["rewritten"], &call["insn_count"]),
        (&true.into(), &5.into())
    );
    let sourced = printed(&["dis", &example(), "--prog", "count", "--xlated", "--source"]);
    assert!(sourced.contains("; tally = map_lookup_elem(&tallies, &key); @ traffic.bpf.c:102"));
}

#[oracle::test]
fn programs_that_are_refused_have_no_instructions_after_verification() {
    let path = repository().join("examples/verify/slot.bpf.o");
    let output = beebox(&["dis", path.to_str().unwrap(), "--xlated"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.starts_with("slot: refused: math between map_value"),
        "{text}"
    );
    let output = beebox(&["dis", "--ebpf", "--xlated", "-"]);
    assert_eq!(output.status.code(), Some(2));
}

#[oracle::test]
fn several_objects_are_shown_one_after_the_other() {
    let file = example();
    let text = printed(&["show", &file, &file]);
    let titles = text
        .lines()
        .filter(|line| line.starts_with("traffic.bpf.o: "));
    assert_eq!(titles.count(), 2, "{text}");
    let lines = printed(&["show", &file, &file, "-j"]);
    let objects: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0], objects[1]);
    let output = beebox(&["show", &file, "absent.bpf.o"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("absent.bpf.o: "), "{said}");
}

#[oracle::test]
fn needs_are_held_to_a_release() {
    let fits = beebox(&["show", &example(), "--needs-at-most", "5.8"]);
    assert_eq!(fits.status.code(), Some(0));
    assert_eq!(
        String::from_utf8_lossy(&fits.stdout),
        "traffic.bpf.o: needs Linux 5.8\n"
    );
    let newer = beebox(&["show", &example(), "--needs-at-most", "5.4"]);
    assert_eq!(newer.status.code(), Some(1));
    let text = String::from_utf8_lossy(&newer.stdout).into_owned();
    assert!(
        text.starts_with("traffic.bpf.o: needs Linux 5.8, newer than 5.4\n"),
        "{text}"
    );
    assert!(text.contains("helper bpf_ringbuf_reserve"), "{text}");
    assert!(!text.contains("bpf_map_lookup_elem"), "{text}");
    let wrong = beebox(&["show", &example(), "--needs-at-most", "new"]);
    assert_eq!(wrong.status.code(), Some(2));
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        said.contains("\"new\" is no release of Linux: write two numbers, as 5.15"),
        "{said}"
    );
}

#[oracle::test]
fn json_has_everything() {
    let shown = as_json(&["show", &example(), "--link"]);
    assert_eq!(shown["linux"], "5.8");
    let programs = shown["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 2);
    assert_eq!(programs[0]["name"], "count");
    assert_eq!(programs[0]["type"], "xdp");
    assert_eq!(programs[0]["subprogs"][0], "protocol");
    assert_eq!(programs[1]["linux"], "5.5");
    assert_eq!(programs[1]["core_relocations"], 2);
    let maps = shown["map_definitions"].as_array().unwrap();
    assert_eq!(maps[0]["name"], "tallies");
    assert_eq!(maps[0]["bytes_value"], 16);
    assert_eq!(maps[0]["max_entries"], 256);
    let globals = shown["globals"].as_array().unwrap();
    let names: Vec<&str> = globals
        .iter()
        .filter_map(|global| global["name"].as_str())
        .collect();
    assert_eq!(names, ["reported_port", "watched", "started", "lost"]);
    let loop_need = |name: &str| {
        let needs = shown["needs"].as_array().unwrap().iter();
        needs.clone().find(|need| need["name"] == name).cloned()
    };
    let need = loop_need("bpf_ringbuf_submit").unwrap();
    assert_eq!(need["linux"], "5.8");
    assert_eq!(need["function"], "count");
    assert!(need["line"].as_u64().is_some());
    assert_eq!(shown["linked"]["error"], Value::Null);
    assert_eq!(
        shown["linked"]["programs"][1]["missing"],
        Value::Array(Vec::new())
    );
}

#[oracle::test]
fn what_a_kernel_lacks_is_named() {
    // The object's own types as the kernel's: they have no field of another name.
    let directory = tempfile::tempdir().unwrap();
    let other = directory.path().join("other.o");
    let object = fs::read(example()).unwrap();
    fs::write(
        &other,
        replaced(&object, b"\0real_parent\0", b"\0real_patent\0"),
    )
    .unwrap();
    let other = other.to_str().unwrap();
    let output = beebox(&["show", &example(), "--btf", other]);
    let text = String::from_utf8(output.stdout).unwrap();
    // They have no such tracepoint either.
    assert_eq!(output.status.code(), Some(1), "{text}");
    let line = "exec, instruction 1: task_struct.real_parent (byte_off): the kernel's struct \
                task_struct has no member real_parent: the verifier refuses the program";
    assert!(text.contains(line), "{text}");
    assert!(
        text.contains("1 of 2 programs linked with all references resolved"),
        "{text}"
    );
    let listing = printed(&["dis", &example(), "--btf", other, "--prog", "exec"]);
    assert!(
        listing.contains("call 195896080 <no task_struct.real_parent>"),
        "{listing}"
    );
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> = (0..bytes.len() - from.len())
        .filter(|&at| bytes[at..].starts_with(from))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

#[oracle::test]
fn instructions_have_the_names_of_what_they_refer_to() {
    let text = printed(&["dis", &example(), "--source"]);
    for words in [
        "count: xdp, section xdp, 75 instructions\n",
        "exec: tracing, section tp_btf/sched_process_exec, 13 instructions\n",
        "protocol:\n",
        "<protocol>",
        "<tallies>",
        "<bpf_map_lookup_elem>",
        "<traffic.bss lost>",
        "<traffic.rodata watched>",
        "<task_struct.tgid>",
        "; if (task->real_parent->tgid == watched) @ traffic.bpf.c:",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let bare = printed(&["dis", &example(), "--prog", "exec"]);
    assert!(!bare.contains("; ") && !bare.contains("count"), "{bare}");

    let log = printed(&["dis", &example(), "--prog", "count", "--format", "log"]);
    assert!(log.contains("(85) call bpf_ringbuf_reserve#131\n"), "{log}");

    let record = as_json(&["dis", &example(), "--prog", "exec"]);
    let program = &record["programs"][0];
    assert_eq!(program["insns"].as_array().unwrap().len(), 11);
    assert_eq!(program["insns"][1]["name"], "task_struct.real_parent");
    assert!(program["insns"][1]["source"]["line"].as_u64().is_some());
}

#[oracle::test]
fn native_code_stands_beside_its_source_line() {
    let words = ["dis", &example(), "--prog", "exec", "--jit", "--source"];
    let text = printed(&[&words[..], &["--processor", "plain"]].concat());
    let lines: Vec<&str> = text.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.starts_with("; __sync_fetch_and_add(&started, 1);"))
        .unwrap_or_else(|| panic!("{text}"));
    let below = &lines[at..(at + 4).min(lines.len())];
    assert!(below.iter().any(|line| line.contains("lock")), "{text}");
    assert!(text.contains("bytes of native code"), "{text}");
    let record = as_json(&words[..5]);
    assert!(record["programs"][0]["bytes"].as_u64().unwrap() > 20);
}

/// Message of both commands for a file, with exit code 2.
fn refused(name: &str, bytes: Option<&[u8]>, message: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    if let Some(bytes) = bytes {
        fs::write(&path, bytes).unwrap();
    }
    for words in [&["show"][..], &["dis", "--source"]] {
        let output = beebox(&[words, &[path.to_str().unwrap()]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?} {name}: {said}");
        assert!(output.stdout.is_empty());
        // A text may be a classic program, which has no source lines.
        if words[0] == "show" || !name.ends_with(".c") {
            assert!(said.contains(message), "{words:?} {name}: {said}");
        }
    }
}

#[oracle::test]
fn files_that_are_no_objects_are_refused_by_what_they_are() {
    let object = fs::read(example()).unwrap();
    refused("nowhere.o", None, "No such file");
    refused(
        "prog.c",
        Some(b"int main(void) { return 0; }\n"),
        "compile it with clang",
    );
    refused("cut.o", Some(&object[..1000]), "the ELF file is damaged");

    let mut foreign = object.clone();
    foreign[18..20].copy_from_slice(&62u16.to_le_bytes());
    refused(
        "x86.o",
        Some(&foreign),
        "not a relocatable 64-bit BPF object",
    );

    let mut big = object.clone();
    big[5] = 2;
    big[16..20].copy_from_slice(&[0, 1, 0, 247]);
    refused("big.o", Some(&big), "-target bpfel");

    let stripped = replaced(&object, b".BTF\0", b".XTF\0");
    refused("stripped.o", Some(&stripped), "compile with -g");

    let mut archive = b"!<arch>\n".to_vec();
    let header = format!(
        "{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
        "traffic.bpf.o/",
        0,
        0,
        0,
        644,
        object.len()
    );
    archive.extend_from_slice(header.as_bytes());
    archive.extend_from_slice(&object);
    refused(
        "lib.a",
        Some(&archive),
        "this is an archive; objects in it: traffic.bpf.o",
    );
}

#[oracle::test]
fn a_program_that_is_not_there_is_answered_with_those_that_are() {
    let output = beebox(&["dis", &example(), "--prog", "nothing"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("it has count, exec"), "{said}");
    let output = beebox(&["dis", &example(), "--format", "raw"]);
    assert_eq!(output.status.code(), Some(2));
    let raw = beebox(&["dis", &example(), "--prog", "exec", "--format", "raw"]);
    assert_eq!(raw.stdout.len(), 13 * 8);
}

/// The release of LLVM that the example was compiled with, if it is there.
fn tool(name: &str) -> Option<Command> {
    let name = format!("{name}-19");
    let found = Command::new(&name).arg("--version").output();
    found.ok().filter(|output| output.status.success())?;
    Some(Command::new(name))
}

#[oracle::test]
fn instructions_are_written_as_llvm_writes_them() {
    let Some(mut objdump) = tool("llvm-objdump") else {
        oracle::skip("text of llvm-objdump", "no llvm-objdump-19");
        return;
    };
    let words = [
        "-d",
        "--no-show-raw-insn",
        "--no-print-imm-hex",
        "-j",
        "xdp",
    ];
    let output = objdump.args(words).arg(example()).output().unwrap();
    let theirs = String::from_utf8(output.stdout).unwrap();
    let theirs: Vec<&str> = theirs.lines().filter_map(instruction).collect();
    let ours = printed(&["dis", &example(), "--prog", "count"]);
    let ours: Vec<&str> = ours.lines().filter_map(instruction).collect();
    assert!(theirs.len() > 40);
    let mut compared = 0;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        // What is linked has other numbers; jumps have names of their own.
        if !ours.contains('<') {
            assert_eq!(ours, theirs);
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}

/// The instruction on a line of a listing.
fn instruction(line: &str) -> Option<&str> {
    let (number, text) = line.split_once(':')?;
    number.trim().parse::<usize>().ok()?;
    Some(text.trim())
}

fn test_object(name: &str) -> String {
    let path = repository().join("crates/object/tests").join(name);
    path.to_str().unwrap().to_owned()
}

#[oracle::test]
fn big_endian_objects_and_legacy_maps_are_shown_and_not_linked() {
    const LIBBPF: [&str; 2] = ["--loader", "libbpf"];
    for (name, notes) in [
        ("objects/refused/big_endian.o", &["big-endian object"][..]),
        ("objects/refused/old_maps.o", &["legacy map definitions"]),
        ("objects/refused/gobpf.o", &["legacy map definitions"]),
        ("objects/refused/bcc.o", &["legacy map definitions"]),
        (
            "objects/refused/old_maps_big_endian.o",
            &["big-endian object", "legacy map definitions"],
        ),
    ] {
        let file = test_object(name);
        let shown = printed(&["show", &file, LIBBPF[0], LIBBPF[1]]);
        let record = as_json(&["show", &file, LIBBPF[0], LIBBPF[1]]);
        assert_eq!(record["not_linked"].as_array().unwrap().len(), notes.len());
        let dis = beebox(&["dis", &file, LIBBPF[0], LIBBPF[1]]);
        assert_eq!(dis.status.code(), Some(1), "not linked");
        let listed = String::from_utf8(dis.stdout).unwrap();
        for note in notes {
            assert!(
                shown.contains(note) && listed.contains(note),
                "{shown}{listed}"
            );
        }
        assert!(listed.contains("<bpf_map_lookup_elem>"), "{listed}");
        assert_eq!(
            beebox(&["show", &file, "--link", LIBBPF[0], LIBBPF[1]])
                .status
                .code(),
            Some(1)
        );
        let code = beebox(&[
            "show",
            &file,
            "--needs-at-most",
            "5.4",
            LIBBPF[0],
            LIBBPF[1],
        ])
        .status
        .code();
        assert_eq!(code, Some(2));
        assert_eq!(
            beebox(&["dis", &file, "--jit", LIBBPF[0], LIBBPF[1]])
                .status
                .code(),
            Some(2)
        );
        assert_eq!(
            beebox(&["dis", &file, "--prog", "absent", LIBBPF[0], LIBBPF[1]])
                .status
                .code(),
            Some(2)
        );
    }
    let old = test_object("objects/refused/old_maps.o");
    let shown = printed(&["show", &old, LIBBPF[0], LIBBPF[1]]);
    assert!(
        shown.contains("table  maps     hash  4B   8B              16    0x0"),
        "{shown}"
    );
    let listed = beebox(&["dis", &old, "--source", LIBBPF[0], LIBBPF[1]]).stdout;
    assert!(
        String::from_utf8(listed)
            .unwrap()
            .contains("; return map_lookup(&table")
    );
}

#[oracle::test]
fn an_extern_of_another_object_is_explained() {
    let [first, second, third, user] =
        ["first", "second", "third", "user"].map(|name| test_object(&format!("linker/{name}.o")));
    let said = |files: &[&str]| {
        let words: Vec<&str> = ["show"].iter().chain(files).copied().collect();
        let output = beebox(&words);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let hint = said(&[&first, &third, &second]);
    let expected = format!("{second} defines limit: beebox link -o linked.o {first} {second}");
    assert!(hint.contains(&expected), "{hint}");
    let hint = said(&[&third]);
    let expected =
        format!("beebox link -o linked.o {third} OTHER.o, if another object defines seen");
    assert!(hint.contains(&expected), "{hint}");
    // An object with an extern map is listed.
    let output = beebox(&["show", &user, &second]);
    assert_eq!(output.status.code(), Some(0));
    let hint = String::from_utf8(output.stderr).unwrap();
    assert!(
        hint.contains("defines counters") && hint.contains("beebox link"),
        "{hint}"
    );
}

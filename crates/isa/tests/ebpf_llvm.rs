//! Printing and assembling against LLVM's tools: every row of the table, and whole objects,
//! with every installed release. Without LLVM, objects are compared with recorded listings
//! (`llvm/objects.txt`, written by `cargo xtask listing`).

use beebox_isa::ebpf::table::ROWS;
use beebox_isa::ebpf::{
    AtomicOp, Insn, Op, RawInsn, assemble, decode, encode, from_bytes, to_bytes,
};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

const RECORDED: &str = include_str!("llvm/objects.txt");
const SOURCE: &str = "every.c";

/// Processor versions; true if their text names 32-bit registers.
const PROCESSORS: [(&str, bool); 4] = [("v1", false), ("v2", false), ("v3", true), ("v4", true)];

/// Instructions in the form for a processor.
fn text(insn: Insn, halves: bool) -> String {
    if halves {
        format!("{insn:#}")
    } else {
        insn.to_string()
    }
}

/// The installed releases of one of LLVM's programs, with their numbers.
fn releases(program: &str) -> Vec<(u32, PathBuf)> {
    let directories: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    let found: Vec<_> = (19..=40)
        .filter_map(|release| {
            let name = format!("{program}-{release}");
            let path = directories.iter().map(|dir| dir.join(&name));
            path.into_iter()
                .find(|path| path.exists())
                .map(|path| (release, path))
        })
        .collect();
    if found.is_empty() {
        let what = format!("text and encodings of {program}");
        oracle::skip(&what, format!("no {program}-19 or later is installed"));
    }
    found
}

/// Output of a program for an input.
fn output(program: &Path, args: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut stdin = child.stdin.take().expect("an input");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the program ends");
    writer
        .join()
        .expect("the writer ends")
        .expect("the program reads");
    assert!(
        output.status.success(),
        "{program:?} {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// Instructions printed by llvm-mc, with their bytes.
fn encodings(listing: &str) -> impl Iterator<Item = (&str, Vec<u8>)> {
    listing.lines().filter_map(|line| {
        let (text, rest) = line.split_once("encoding: [")?;
        let text = text.trim().trim_end_matches(['#', '@']).trim();
        let bytes = rest.trim_end_matches(']').split(',');
        let bytes = bytes.map(|byte| u8::from_str_radix(byte.trim_start_matches("0x"), 16));
        Some((text, bytes.collect::<Result<_, _>>().ok()?))
    })
}

/// Slots of every row with operands at the limits of their ranges, without those that this
/// LLVM release cannot print.
fn slots_of_rows(release: u32) -> Vec<Vec<RawInsn>> {
    let operands = [
        (1, 2, 4, 5),
        (3, 4, -4, -6),
        (0, 9, 0, 0),
        (10, 1, i16::MIN, i32::MIN + 1),
        (5, 5, i16::MAX, i32::MAX - 1),
    ];
    let mut all = Vec::new();
    for row in ROWS {
        for (dst, src, off, imm) in operands {
            let mut slots = vec![row.slot(dst, src, off, imm)];
            if row.is_wide() {
                slots.push(RawInsn {
                    imm: imm / 3,
                    ..RawInsn::default()
                });
            }
            let has_text = match row.op {
                Op::LoadMapFd
                | Op::LoadMapValue
                | Op::LoadBtfId
                | Op::LoadFuncAddress
                | Op::LoadMapIndex
                | Op::LoadMapIndexValue
                | Op::CallLocal
                | Op::CallKfunc => false,
                Op::PacketInd8 | Op::PacketInd16 | Op::PacketInd32 => imm == 0,
                Op::GotoReg => release >= 22,
                _ if row.llvm.contains("load_acquire") => release >= 21,
                _ if row.llvm.contains("store_release") => release >= 21,
                _ => true,
            };
            if has_text {
                all.push(slots);
            }
        }
    }
    assert!(all.len() > 800, "{}", all.len());
    all
}

#[oracle::test]
fn rows_print_as_llvm_prints_them() {
    for (release, program) in releases("llvm-mc") {
        for (processor, halves) in PROCESSORS {
            let rows = slots_of_rows(release);
            let bytes = |slots: &[RawInsn]| {
                let bytes = to_bytes(slots).into_iter();
                bytes
                    .map(|byte| format!("{byte:#04x} "))
                    .collect::<String>()
                    + "\n"
            };
            let input: String = rows.iter().map(|slots| bytes(slots)).collect();
            let mcpu = format!("-mcpu={processor}");
            let args = ["-triple=bpfel", &mcpu, "--disassemble", "-show-encoding"];
            let listing = output(&program, &args, &input);
            let printed: HashMap<Vec<u8>, &str> = encodings(&listing)
                .map(|(text, bytes)| (bytes, text))
                .collect();
            for slots in rows {
                let insn = decode(&slots)[0];
                let ours = text(insn, halves);
                // LLVM has these only with 32-bit registers.
                let narrow = match insn {
                    Insn::Atomic { op, size, .. } => {
                        size.bytes() < 8 && op != AtomicOp::Add { fetch: false }
                    }
                    Insn::LoadAcquire { size, .. } | Insn::StoreRelease { size, .. } => {
                        size.bytes() < 8
                    }
                    _ => false,
                };
                if narrow && !halves {
                    continue;
                }
                let theirs = printed.get(&to_bytes(&slots));
                let theirs = theirs.map(|text| in_our_form(text, &slots));
                assert_eq!(Some(ours), theirs, "{release} {processor} {slots:x?}");
            }
        }
    }
}

#[oracle::test]
fn llvm_encodes_the_text_of_rows_as_we_do() {
    for (release, program) in releases("llvm-mc") {
        for (processor, halves) in PROCESSORS {
            let mut rows = slots_of_rows(release);
            // Its assembler takes distances of 16 bits only.
            rows.retain(|slots| slots[0].code != 0x06 || i16::try_from(slots[0].imm).is_ok());
            let input: String = rows
                .iter()
                .map(|slots| text(decode(slots)[0], halves) + "\n")
                .collect();
            let mcpu = format!("-mcpu={processor}");
            let listing = output(
                &program,
                &["-triple=bpfel", &mcpu, "-show-encoding"],
                &input,
            );
            let theirs: Vec<Vec<u8>> = encodings(&listing).map(|(_, bytes)| bytes).collect();
            assert_eq!(theirs.len(), rows.len());
            for ((slots, theirs), line) in rows.iter().zip(theirs).zip(input.lines()) {
                assert_eq!(to_bytes(slots), theirs, "{release} {processor} {line}");
                let ours = assemble(line).expect("what we print");
                assert_eq!(encode(&ours), Ok(slots.clone()), "{line}");
            }
        }
    }
}

/// A section of an object: its slots and their listing.
struct Section {
    slots: Vec<RawInsn>,
    /// The index of the first slot of each instruction, and its text.
    lines: Vec<(usize, String)>,
}

/// LLVM's text of an instruction in our form, where it differs.
fn in_our_form(text: &str, slots: &[RawInsn]) -> String {
    let text = match text.rsplit_once(" <") {
        Some((text, label)) if label.ends_with('>') => text,
        _ => text,
    };
    if let Some((start, value)) = text
        .strip_suffix(" ll")
        .and_then(|text| text.split_once(" = "))
    {
        let value: i128 = value.parse().expect("a number");
        return format!("{start} = {:#x} ll", value as u64);
    }
    match (text.strip_prefix("call "), slots[0].src()) {
        (Some(distance), 1) => {
            let distance: i32 = distance.parse().expect("a distance");
            format!("call pc{distance:+}")
        }
        _ => text.to_owned(),
    }
}

/// The sections of a listing of llvm-objdump.
fn sections(listing: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in listing.lines() {
        if line.starts_with("Disassembly of section") {
            sections.push(Section {
                slots: Vec::new(),
                lines: Vec::new(),
            });
        }
        let mut columns = line.split('\t');
        let (Some(_index), Some(bytes), Some(text)) =
            (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        let section = sections.last_mut().expect("a section above its lines");
        let bytes: Vec<u8> = bytes
            .split_whitespace()
            .map(|byte| u8::from_str_radix(byte, 16).expect("a byte"))
            .collect();
        let slots = from_bytes(&bytes).expect("whole slots");
        let text = in_our_form(text.trim_end(), &slots);
        section.lines.push((section.slots.len(), text));
        section.slots.extend(slots);
    }
    sections
}

/// Compares a section with its listing line by line, and assembles both texts.
fn compare(section: &Section, halves: bool, what: &str) {
    let Section { slots, lines } = section;
    let insns = decode(slots);
    let mut theirs = String::new();
    let mut ours = String::new();
    for (index, line) in lines {
        assert_eq!(&text(insns[*index], halves), line, "{what}, slot {index}");
        theirs += &format!("{line}\n");
    }
    for insn in &insns {
        ours += &format!("{}\n", text(*insn, halves));
    }
    for text in [theirs, ours] {
        let back = assemble(&text).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(encode(&back).as_ref(), Ok(slots), "{what}");
    }
}

fn objdump(program: &Path, processor: &str, object: &Path) -> String {
    let mcpu = format!("--mcpu={processor}");
    let object = object.to_str().expect("a path in UTF-8");
    output(
        program,
        &["-d", "-z", "--no-print-imm-hex", &mcpu, object],
        "",
    )
}

/// The test source compiled for each processor version: name, true if its text names 32-bit
/// registers, object.
fn objects() -> Vec<(&'static str, bool, PathBuf)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/llvm");
    let mut objects = Vec::new();
    for (release, clang) in releases("clang") {
        for (processor, halves) in PROCESSORS {
            let object = Path::new(env!("CARGO_TARGET_TMPDIR"))
                .join(format!("{SOURCE}-{release}-{processor}.o"));
            let status = Command::new(&clang)
                .current_dir(&directory)
                .args([
                    "-O2", "-target", "bpf", "-Wall", "-Werror", "-c", SOURCE, "-o",
                ])
                .arg(&object)
                .arg(format!("-mcpu={processor}"))
                .status()
                .expect("clang can be started");
            assert!(status.success(), "{processor}");
            objects.push((processor, halves, object));
        }
    }
    objects
}

/// Objects in the tree, which are compiled for version 3.
fn committed_objects() -> Vec<(&'static str, bool, PathBuf)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/workloads");
    let entries = fs::read_dir(directory).expect("the workloads");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let objects: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "o"))
        .map(|path| ("v3", true, path))
        .collect();
    assert!(objects.len() > 10, "{}", objects.len());
    objects
}

#[oracle::test]
fn objects_print_as_llvm_objdump_prints_them() {
    let programs = releases("llvm-objdump");
    if programs.is_empty() {
        return;
    }
    for (processor, halves, object) in objects().into_iter().chain(committed_objects()) {
        for (release, program) in &programs {
            let what = format!("{}, {release}", object.display());
            let sections = sections(&objdump(program, processor, &object));
            assert!(!sections.is_empty(), "{what}");
            for section in &sections {
                compare(section, halves, &what);
            }
        }
    }
}

#[oracle::test]
fn llvm_encodes_the_text_of_objects_as_we_do() {
    let objdumps = releases("llvm-objdump");
    let assemblers = releases("llvm-mc");
    let (Some((_, lister)), false) = (objdumps.first(), assemblers.is_empty()) else {
        return;
    };
    for (processor, halves, object) in objects().into_iter().chain(committed_objects()) {
        for section in sections(&objdump(lister, processor, &object)) {
            let insns = decode(&section.slots);
            // LLVM has no text for the distance of a call within the program.
            let plain = |index: &usize| {
                section.slots[*index].code != 0x85 || section.slots[*index].src() == 0
            };
            let indices: Vec<usize> = section
                .lines
                .iter()
                .map(|(index, _)| *index)
                .filter(plain)
                .collect();
            let input: String = indices
                .iter()
                .map(|&index| text(insns[index], halves) + "\n")
                .collect();
            for (release, program) in &assemblers {
                let mcpu = format!("-mcpu={processor}");
                let listing = output(program, &["-triple=bpfel", &mcpu, "-show-encoding"], &input);
                let theirs: Vec<Vec<u8>> = encodings(&listing).map(|(_, bytes)| bytes).collect();
                assert_eq!(theirs.len(), indices.len(), "{}", object.display());
                for ((&index, theirs), line) in indices.iter().zip(theirs).zip(input.lines()) {
                    let end = index + theirs.len() / 8;
                    let ours = to_bytes(&section.slots[index..end]);
                    assert_eq!(ours, theirs, "{} {release} {line}", object.display());
                }
            }
        }
    }
}

#[oracle::test]
fn recorded_objects_print_and_assemble_as_llvm_said() {
    let mut compared = 0;
    for part in RECORDED.split("# processor ").skip(1) {
        let (processor, listing) = part.split_once('\n').expect("a line of its own");
        let halves = PROCESSORS
            .iter()
            .find(|(name, _)| *name == processor)
            .expect("a processor version")
            .1;
        for section in sections(listing) {
            compare(&section, halves, processor);
            compared += section.lines.len();
        }
    }
    assert!(compared > 1500, "{compared}");
}

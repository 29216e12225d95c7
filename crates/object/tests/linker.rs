//! Static linking compared with libbpf's linker.
//!
//! `linker/user.o`, `first.o`, `second.o` and `third.o` use every feature of linking, and
//! `linked.o` is the output of bpftool 7.8 (libbpf of Linux 7.2). The files in
//! `linker/refused` are incompatible with `second.o`; the first line of each is the
//! expected error. Where that bpftool is built, it links these again, every object of the
//! kernel's own tests and random sets of them; otherwise those tests are skipped.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use beebox_object::elf::{Elf, Section, SectionId};
use beebox_object::linker::{LinkFault, Linker, SectionMismatch};
use beebox_object::{Blame, Error, Problem};

/// Inputs of `linked.o`.
const FILES: [&str; 4] = ["user.o", "first.o", "second.o", "third.o"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/linker")
}

/// Files of a directory with this ending, sorted.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|why| panic!("{directory:?}: {why}"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(ending));
    files.sort();
    files
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn link(paths: &[PathBuf]) -> Result<Vec<u8>, Error> {
    let files: Vec<_> = paths.iter().map(|path| read(path)).collect();
    let mut linker = Linker::new();
    for (path, bytes) in paths.iter().zip(&files) {
        linker = linker.add(path.display().to_string(), bytes)?;
    }
    linker.finish()
}

fn link_bytes(object: &[u8]) -> Vec<u8> {
    let linker = Linker::new().add("it", object).unwrap();
    linker.finish().unwrap()
}

/// Own files, by name.
fn ours(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| directory().join(name)).collect()
}

#[oracle::test]
fn the_linked_object_is_that_of_libbpf() {
    let linked = link(&ours(&FILES)).unwrap();
    assert!(linked == read(&directory().join("linked.o")));
}

#[oracle::test]
fn linking_a_linked_object_reproduces_it() {
    let first = link(&ours(&["first.o"])).unwrap();
    assert!(link_bytes(&first) == first);
    // After linking several files, unused strings remain once.
    let linked = link_bytes(&read(&directory().join("linked.o")));
    assert!(link_bytes(&linked) == linked);
}

#[oracle::test]
fn incompatible_files_are_refused_with_the_reason() {
    let before = directory().join("second.o");
    let sources = files(&directory().join("refused"), ".c");
    assert!(sources.len() > 10);
    for source in sources {
        let text = fs::read_to_string(&source).unwrap();
        let (expected, _) = text.split_once("*/").unwrap();
        let expected = expected.trim_start_matches("/*").trim();
        let expected = expected.replace("DIR", &directory().display().to_string());
        let object = source.with_extension("o");
        let error = link(&[before.clone(), object.clone()]).unwrap_err();
        let expected = format!("{}, {expected}", object.display());
        // Windows has two separators of paths.
        let same = |text: &str| text.replace('\\', "/");
        assert_eq!(same(&error.to_string()), same(&expected));
    }
}

#[oracle::test]
fn files_that_are_no_objects_are_refused() {
    let first = read(&directory().join("first.o"));
    let refused = |bytes: &[u8]| match Linker::new().add("it", bytes) {
        Ok(_) => panic!("it is accepted"),
        Err(error) => error,
    };
    let changed = |at: usize, byte: u8| {
        let mut bytes = first.clone();
        bytes[at] = byte;
        refused(&bytes)
    };
    for (error, what) in [
        (refused(b""), "it: this file has no ELF magic number"),
        (
            refused(b"int main(void) {}"),
            "it: this file has no ELF magic number",
        ),
        (changed(4, 1), "it: this is no 64-bit ELF file"),
        (
            changed(5, 2),
            "it: ELF file has type 256: this is no object file",
        ),
        (
            refused(&big_endian(&first)),
            "it: this object is for big-endian machines: compile it with -target bpfel",
        ),
        (
            changed(16, 2),
            "it: this is an executable or shared library, no object file",
        ),
        (
            changed(18, 62),
            "it: this object is for x86-64, not for BPF: compile it with -target bpf",
        ),
    ] {
        assert_eq!(error.to_string(), what);
        assert_eq!(error.blame(), Blame::File);
    }
    let error = Linker::new().finish().unwrap_err();
    assert_eq!(error.problem(), &Problem::Linker(LinkFault::NoInput));
}

/// The object with a big-endian header.
fn big_endian(object: &[u8]) -> Vec<u8> {
    let mut bytes = object.to_vec();
    bytes[5] = 2;
    bytes[16..20].copy_from_slice(&[0, 1, 0, 247]);
    bytes
}

#[oracle::test]
fn errors_name_the_party_to_blame() {
    let with_second = |name: &str| link(&ours(&["second.o", name])).unwrap_err();
    for name in ["twice", "size", "terms", "untyped", "extern", "pointer"] {
        let name = format!("refused/{name}.o");
        assert_eq!(with_second(&name).blame(), Blame::User, "{name}");
    }
    let flags = LinkFault::SectionsDiffer(SectionMismatch::Flags);
    let error = with_second("refused/constant.o");
    assert_eq!(error.problem(), &Problem::Linker(flags));
    assert_eq!(error.place().section.as_deref(), Some("license"));
}

/// Prefixes of an object and objects with one changed byte are linked or refused without
/// a panic.
#[oracle::test]
fn damaged_objects_do_no_harm() {
    let first = read(&directory().join("first.o"));
    let second = read(&directory().join("second.o"));
    let try_both = |damaged: &[u8]| {
        for (one, other) in [(damaged, &second[..]), (&second[..], damaged)] {
            let linked = Linker::new()
                .add("one", one)
                .and_then(|linker| linker.add("other", other))
                .and_then(Linker::finish);
            drop(linked);
        }
    };
    for len in (0..first.len()).step_by(61) {
        try_both(&first[..len]);
    }
    for at in (0..first.len()).step_by(7) {
        for byte in [0, 1, 0x7f, 0xff, first[at].wrapping_add(1)] {
            let mut damaged = first.clone();
            damaged[at] = byte;
            try_both(&damaged);
        }
    }
}

/// A line longer than the strings that Linux accepts, said of every instruction.
#[oracle::test]
fn a_source_line_has_any_length() {
    const LONG: usize = 24 << 20;
    let mut object = read(&directory().join("first.o"));
    let section = |name: &str| {
        let elf = Elf::parse(&object).unwrap();
        let found = elf
            .sections()
            .iter()
            .find(|section| section.name == *name)
            .unwrap();
        (found.id, found.data().unwrap().to_vec())
    };
    let (mut types, mut info) = (section(".BTF"), section(".BTF.ext"));
    let word = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    };
    // All lines are one that is appended to the strings.
    let text = word(&types.1, 20) as u32;
    types.1.extend([vec![b'x'; LONG], vec![0]].concat());
    let strings = text + LONG as u32 + 1;
    types.1[20..24].copy_from_slice(&strings.to_le_bytes());
    let start = word(&info.1, 4) + word(&info.1, 16);
    let end = start + word(&info.1, 20);
    let (mut at, mut lines) = (start + 4, 0);
    while at < end {
        let count = word(&info.1, at + 4);
        for record in 0..count {
            let line = at + 8 + 16 * record + 8;
            info.1[line..line + 4].copy_from_slice(&text.to_le_bytes());
        }
        lines += count;
        at += 8 + 16 * count;
    }
    assert!(lines * LONG > 128 << 20, "{lines} lines");
    for (id, data) in [types, info] {
        let headers = u64::from_le_bytes(object[40..48].try_into().unwrap());
        object.resize(object.len().next_multiple_of(8), 0);
        let header = headers as usize + 64 * id.0 as usize;
        let place = [object.len() as u64, data.len() as u64].map(u64::to_le_bytes);
        object[header + 24..header + 40].copy_from_slice(place.as_flattened());
        object.extend(data);
    }
    let linked = Linker::new().add("it", &object).and_then(Linker::finish);
    let linked = linked.unwrap_or_else(|error| panic!("{error}"));
    assert!(
        linked.len() > LONG && linked.len() < 2 * LONG,
        "{}",
        linked.len()
    );
    let Some(bpftool) = Bpftool::find("linker-line") else {
        return;
    };
    let input = Path::new(env!("CARGO_TARGET_TMPDIR")).join("long-line.o");
    fs::write(&input, &object).unwrap();
    assert_eq!(bpftool.compare(&[input]), Ok(true));
}

/// Symbols whose names are suffixes of one long string.
#[oracle::test]
fn names_that_share_their_bytes_take_no_memory() {
    let mut object = read(&directory().join("third.o"));
    let (symbols, names) = {
        let elf = Elf::parse(&object).unwrap();
        let symbols = *elf.section(elf.symbol_table()).unwrap();
        let names = *elf.section(symbols.link).unwrap();
        let of = |section: Section<'_>| (section.id, section.data().unwrap().to_vec());
        (of(symbols), of(names))
    };
    let long = names.1.len() as u32;
    let mut replace = |(id, mut data): (SectionId, Vec<u8>), more: Vec<u8>| {
        data.extend(more);
        let headers = u64::from_le_bytes(object[40..48].try_into().unwrap());
        object.resize(object.len().next_multiple_of(8), 0);
        let header = headers as usize + 64 * id.0 as usize;
        let place = [object.len() as u64, data.len() as u64].map(u64::to_le_bytes);
        object[header + 24..header + 40].copy_from_slice(place.as_flattened());
        object.extend(data);
    };
    replace(names, [vec![b'a'; 4_000], vec![0]].concat());
    let local = |name: u32| {
        let mut symbol = [0; 24];
        symbol[..4].copy_from_slice(&name.to_le_bytes());
        // An absolute symbol.
        symbol[6..8].copy_from_slice(&[0xf1, 0xff]);
        symbol
    };
    let many = (0..40_000).flat_map(|index| local(long + index % 4_000));
    replace(symbols, many.collect());
    assert!(object.len() < 1_000_000);
    let error = Linker::new().add("it", &object).err().unwrap();
    assert_eq!(error.problem(), &Problem::Linker(LinkFault::TooMuchText));
}

/// libbpf's linker in bpftool of the kernel's tests.
struct Bpftool {
    program: PathBuf,
    output: PathBuf,
}

impl Bpftool {
    /// `name` distinguishes the outputs of tests.
    fn find(name: &str) -> Option<Bpftool> {
        let program = oracle::selftest_path("7.2/tools/bpftool");
        let program = oracle::found("objects linked by bpftool", program)?;
        Some(Bpftool {
            program,
            output: Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.o")),
        })
    }

    /// The program, and the directory of the objects of the kernel's tests.
    fn with_objects(name: &str) -> Option<(Bpftool, PathBuf)> {
        let objects = oracle::selftest_set("7.2/obj-v3");
        let objects = oracle::found("objects of the kernel's tests linked by bpftool", objects)?;
        Some((Bpftool::find(name)?, objects))
    }

    /// The linked object, or the error number.
    fn link(&self, files: &[PathBuf]) -> Result<Vec<u8>, i32> {
        let output = Command::new(&self.program)
            .args(["gen", "object"])
            .arg(&self.output)
            .args(files)
            .output()
            .unwrap();
        if output.status.success() {
            return Ok(read(&self.output));
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let number = text.rsplit_once('(').and_then(|(_, end)| {
            let (number, _) = end.split_once(')')?;
            number.parse().ok()
        });
        Err(number.unwrap_or_else(|| panic!("bpftool says: {text}")))
    }

    /// True if both link the files to the same bytes; false if both refuse them.
    fn compare(&self, files: &[PathBuf]) -> Result<bool, String> {
        let number = |error: &Error| match error.problem() {
            Problem::Linker(fault) => fault.errno().0,
            _ => 22,
        };
        match (link(files), self.link(files)) {
            (Ok(ours), Ok(theirs)) if ours == theirs => Ok(true),
            (Err(ours), Err(theirs)) if number(&ours) == theirs => Ok(false),
            (Ok(_), Ok(_)) => Err(format!("{files:?}: other bytes")),
            (Err(ours), theirs) => Err(format!("{files:?}: {ours}, {:?}", theirs.err())),
            (Ok(_), Err(theirs)) => Err(format!("{files:?}: only bpftool refuses: {theirs}")),
        }
    }
}

/// Permutations of some files.
fn orders(files: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let Some((last, others)) = files.split_last() else {
        return vec![Vec::new()];
    };
    let orders = orders(others).into_iter();
    orders
        .flat_map(|order| {
            (0..=order.len()).map(move |at| {
                let mut order = order.clone();
                order.insert(at, last.clone());
                order
            })
        })
        .collect()
}

#[oracle::test]
fn recorded_output_is_that_of_libbpf() {
    let Some(bpftool) = Bpftool::find("linker-ours") else {
        return;
    };
    let files = ours(&FILES);
    let linked = bpftool.link(&files).unwrap();
    let kept = directory().join("linked.o");
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&kept, &linked).unwrap();
    }
    assert!(linked == read(&kept));
    for order in orders(&files) {
        assert_eq!(bpftool.compare(&order), Ok(true));
        assert_eq!(bpftool.compare(&order[..2]), Ok(true));
        assert_eq!(bpftool.compare(&order[..3]), Ok(true));
    }
    for refused in self::files(&directory().join("refused"), ".o") {
        let files = [directory().join("second.o"), refused];
        assert_eq!(bpftool.compare(&files), Ok(false));
    }
}

#[oracle::test]
fn every_object_is_linked_as_libbpf_does() {
    let Some((bpftool, directory)) = Bpftool::with_objects("linker-each") else {
        return;
    };
    let objects = files(&directory, ".o");
    assert!(objects.len() > 900, "{}", objects.len());
    let mut linked = 0;
    for object in &objects {
        match bpftool.compare(std::slice::from_ref(object)) {
            Ok(is_linked) => linked += u32::from(is_linked),
            Err(difference) => panic!("{difference}"),
        }
    }
    eprintln!(
        "{linked} of {} objects linked, with the same bytes",
        objects.len()
    );
}

/// Sets of objects that the kernel's tests link, from their build.
fn sets(directory: &Path) -> Vec<(PathBuf, Vec<PathBuf>)> {
    let notes = fs::read_to_string(directory.join("build.json")).unwrap();
    let names = |text: &str| -> Vec<PathBuf> {
        let quoted = text.split('"').skip(1).step_by(2);
        quoted.map(|name| directory.join(name)).collect()
    };
    let mut parts = notes.split("\"linked\": [");
    let mut before = parts.next().unwrap();
    let mut sets = Vec::new();
    for part in parts {
        let mut names_before = names(before).into_iter();
        let linked = names_before.rfind(|name| name.to_string_lossy().ends_with(".linked.bpf.o"));
        let (files, rest) = part.split_once(']').unwrap();
        sets.push((linked.unwrap(), names(files)));
        before = rest;
    }
    sets
}

#[oracle::test]
fn the_sets_of_the_tests_are_linked_as_their_build_did() {
    let Some((bpftool, directory)) = Bpftool::with_objects("linker-sets") else {
        return;
    };
    let mut sets = sets(&directory);
    // Of some sets, the build keeps only the linked object.
    sets.retain(|(_, files)| files.iter().all(|file| file.exists()));
    assert!(sets.len() >= 4, "{}", sets.len());
    for (kept, files) in &sets {
        assert_eq!(bpftool.compare(files), Ok(true), "{kept:?}");
        assert!(link(files).unwrap() == read(kept), "{kept:?}");
        let again = link_bytes(&read(kept));
        assert!(link_bytes(&again) == again, "{kept:?} does not stay");
    }
    eprintln!("{} sets", sets.len());
}

#[oracle::test]
fn random_sets_are_linked_as_libbpf_does() {
    let Some((bpftool, directory)) = Bpftool::with_objects("linker-random") else {
        return;
    };
    let objects = files(&directory, ".o");
    let mut linked = 0;
    let mut differences = Vec::new();
    for seed in oracle::seeds(300) {
        let mut random = Random(seed);
        let size = [2, 2, 2, 3, 5][random.below(5)];
        let set: Vec<_> = (0..size)
            .map(|_| objects[random.below(objects.len())].clone())
            .collect();
        match bpftool.compare(&set) {
            Ok(is_linked) => linked += u32::from(is_linked),
            Err(difference) => differences.push(difference),
        }
    }
    eprintln!(
        "{} sets, {linked} of them linked, the others refused",
        oracle::seeds(300).count()
    );
    assert!(differences.is_empty(), "{differences:#?}");
}

/// Random numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) as usize % end
    }
}

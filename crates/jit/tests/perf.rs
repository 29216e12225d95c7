//! The interfaces to perf: the files are read back and, in an ignored test, given to it.

use std::borrow::BorrowMut;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use beebox_jit::memory::{Image, Pool};
use beebox_jit::perf::{CodeRegion, JitDump, Line, SymbolMap};
use beebox_jit::{Native, Options};
use isa::ebpf::assemble;
use lower::{Lowered, MemoryProgram};
use spec::SplitMix;
use vm::{Machine, Outcome, Unchecked};

/// `mov ecx, 0x20000000; again: dec ecx; jnz again; mov eax, ecx; ret`
const LOOP: [u8; 12] = [
    0xb9, 0, 0, 0, 0x20, 0xff, 0xc9, 0x75, 0xfc, 0x89, 0xc8, 0xc3,
];
const LINES: [Line<'static>; 3] = [
    Line {
        offset: 0,
        file: "loop.bpf",
        line: 1,
    },
    Line {
        offset: 5,
        file: "loop.bpf",
        line: 2,
    },
    Line {
        offset: 9,
        file: "loop.bpf",
        line: 4,
    },
];

fn image() -> Image {
    let made = Pool::new().install(LOOP.len(), 16, |bytes, _| bytes.copy_from_slice(&LOOP));
    made.expect("there is memory")
}

fn code<'a>(name: &'a str, image: &'a Image, lines: &'a [Line<'a>]) -> CodeRegion<'a> {
    CodeRegion {
        name,
        address: image.address() as u64,
        bytes: image.bytes(),
        lines,
    }
}

/// Reads a dump from its start.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes(&mut self, len: usize) -> &[u8] {
        let (head, rest) = self.0.split_at(len);
        self.0 = rest;
        head
    }

    fn word(&mut self) -> u32 {
        u32::from_ne_bytes(self.bytes(4).try_into().unwrap())
    }

    fn long(&mut self) -> u64 {
        u64::from_ne_bytes(self.bytes(8).try_into().unwrap())
    }

    fn name(&mut self) -> String {
        let len = self.0.iter().position(|&byte| byte == 0).unwrap();
        let name = String::from_utf8(self.bytes(len).to_vec()).unwrap();
        self.bytes(1);
        name
    }
}

#[test]
fn a_dump_contains_what_was_added() {
    let directory = tempfile::tempdir().unwrap();
    let image = image();
    let dump = JitDump::create(directory.path()).unwrap();
    dump.add(&code("with lines", &image, &LINES)).unwrap();
    dump.add(&code("without", &image, &[])).unwrap();
    let path = dump.path().to_owned();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let marker = maps
        .lines()
        .find(|line| line.contains(path.to_str().unwrap()));
    assert!(marker.unwrap().contains(" r-xp 00000000 "), "{marker:?}");
    drop(dump);

    let bytes = fs::read(&path).unwrap();
    let us = std::process::id();
    assert_eq!(
        path.file_name().unwrap().to_str().unwrap(),
        format!("jit-{us}.dump")
    );
    let mut reader = Reader(&bytes);
    let header: Vec<u32> = (0..6).map(|_| reader.word()).collect();
    assert_eq!(header, [0x4a69_5444, 1, 40, 62, 0, us]);
    let mut time = reader.long();
    assert_eq!(reader.long(), 0, "flags");
    let mut kinds = Vec::new();
    while !reader.0.is_empty() {
        let (kind, size, when) = (reader.word(), reader.word(), reader.long());
        assert!(when >= time);
        time = when;
        let mut body = Reader(reader.bytes(size as usize - 16));
        kinds.push(kind);
        match kind {
            0 => {
                assert_eq!(body.word(), us);
                assert!(body.word() > 0, "a thread");
                let address = image.address() as u64;
                assert_eq!([body.long(), body.long()], [address; 2]);
                assert_eq!(body.long(), LOOP.len() as u64);
                let number = body.long();
                assert_eq!(body.name(), ["with lines", "without"][number as usize]);
                assert_eq!(body.0, LOOP);
            }
            2 => {
                assert_eq!(body.long(), image.address() as u64);
                assert_eq!(body.long(), 3);
                for line in LINES {
                    assert_eq!(body.long(), image.address() as u64 + line.offset as u64);
                    assert_eq!([body.word(), body.word()], [line.line, 0]);
                    assert_eq!(body.name(), line.file);
                }
                assert!(body.0.is_empty());
            }
            3 => assert!(body.0.is_empty()),
            other => panic!("record {other}"),
        }
    }
    assert_eq!(kinds, [2, 0, 0, 3]);
}

#[test]
fn a_dump_replaces_that_of_an_earlier_process() {
    let directory = tempfile::tempdir().unwrap();
    let name = format!("jit-{}.dump", std::process::id());
    fs::write(directory.path().join(name), [1; 1000]).unwrap();
    let dump = JitDump::create(directory.path()).unwrap();
    assert_eq!(fs::metadata(dump.path()).unwrap().len(), 40);
    assert!(JitDump::create(&directory.path().join("nowhere")).is_err());
}

/// Set in the profiled process: the directory of its dump.
const PROFILED: &str = "BEEBOX_TEST_PROFILED";

/// File in that directory with the path of the process's map.
const MAP: &str = "map";

#[test]
#[ignore = "needs perf, which may count"]
fn the_profiler_names_the_program() {
    if let Some(directory) = env::var_os(PROFILED) {
        return be_profiled(Path::new(&directory));
    }
    let directory = tempfile::tempdir().unwrap();
    let recorded = directory.path().join("perf.data");
    let recorded = recorded.to_str().unwrap();
    let us = env::current_exe().unwrap();
    let output = perf(&["record", "-k", "mono", "-e", "cpu-clock", "-o", recorded])
        .arg(us)
        .args(["--exact", "--include-ignored"])
        .arg("perf::the_profiler_names_the_program")
        .env(PROFILED, directory.path())
        .output();
    let is_there = output.as_ref().is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout).contains("1 passed")
            && fs::metadata(recorded).is_ok_and(|data| data.len() > 0)
    });
    assert!(
        is_there,
        "perf is not installed or may not count: {output:?}"
    );

    // By the perf map.
    let report = run(perf(&["report", "--stdio", "-i", recorded]));
    let map = fs::read_to_string(directory.path().join(MAP)).unwrap();
    fs::remove_file(map).unwrap();
    assert!(report.contains("mapped_loop"), "{report}");

    // By the jitdump.
    let injected = directory.path().join("perf.jit.data");
    let injected = injected.to_str().unwrap();
    run(perf(&["inject", "--jit", "-i", recorded, "-o", injected]).current_dir(&directory));
    let report = run(perf(&["report", "--stdio", "-i", injected]));
    assert!(report.contains("dumped_loop"), "{report}");
    assert!(report.contains("program_loop"), "{report}");
    // The hot instructions, by source line.
    let lines = run(perf(&[
        "report",
        "--stdio",
        "-s",
        "sym,srcline",
        "-i",
        injected,
    ]));
    let hot = lines.lines().find(|line| line.contains("program_loop"));
    let in_loop = |line: &str| (3..=5).any(|slot| line.contains(&format!(".bpf:{slot}")));
    assert!(hot.is_some_and(in_loop), "{lines}");
}

/// A loop that spends all of its time in the third and fourth slot.
fn program() -> Lowered<MemoryProgram> {
    let source = "r0 = 0\nr3 = 0x10000000\nagain: r0 += r3\nr3 += -1\nif r3 != 0 goto again\nexit";
    let insns = assemble(source).unwrap();
    // SAFETY: it accesses no memory, calls nothing, and ends.
    let trusted = unsafe { Unchecked::assume_safe(insns) };
    Lowered::from_unchecked(trusted).unwrap()
}

/// Runs a loop for some tenths of a second, as three programs.
fn be_profiled(directory: &Path) {
    let map = SymbolMap::open().unwrap();
    let dump = JitDump::create(directory).unwrap();
    let [mapped, dumped] = [image(), image()];
    map.add(&code("mapped_loop", &mapped, &[])).unwrap();
    dump.add(&code("dumped_loop", &dumped, &LINES)).unwrap();
    for image in [&mapped, &dumped] {
        // SAFETY: the code counts down a caller-saved register and returns, by the
        // platform's convention; the image lives during the call.
        let count: extern "C" fn() -> u32 = unsafe { std::mem::transmute(image.address()) };
        assert_eq!(count(), 0);
    }
    let program = program();
    let options = Options {
        map: true,
        ..Options::default()
    };
    let native = Native::compile(&program, &options, &Pool::new()).unwrap();
    dump.add_program(
        &native.code_region("program_loop"),
        native.map(),
        program.insns(),
    )
    .unwrap();
    let outcome = native.run(&mut Machine::new(), &mut [], &mut SplitMix::new(0));
    assert_eq!(outcome, Outcome::Returned((1 << 55) + (1 << 27)));
    let path = map.path().to_str().unwrap();
    fs::write(directory.join(MAP), path).unwrap();
}

fn perf(words: &[&str]) -> Command {
    let mut command = Command::new("perf");
    command.args(words);
    command
}

fn run(mut command: impl BorrowMut<Command>) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.borrow_mut().output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{:?}: {said}", command.borrow());
    String::from_utf8_lossy(&stdout).into_owned()
}

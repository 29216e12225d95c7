//! What untrusted programs and untrusted descriptions of kernels reach (docs/security.md):
//! programs that search memory find nothing of the process, and native code refuses proofs that
//! rest on other prototypes, layouts or kfuncs than those of the code that runs.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use beebox::Engine;
use beebox::internal::object::Object;
use beebox::internal::run::{LoadOptions, LoadedObject};
use btf::{Btf, Builder, Encoding, Func, Int, Kind, Linkage, Param};
use lower::{UnsupportedConstruct, VerifiedProgram};
use program::Program;
use spec::Kernel;
use spec::kernel::{Mitigations, Privileges, Source};
use spec::kfuncs::KernelFunction;
use spec::programs::ProgramType;
use spec::registry::text;
use testkit::verifier::assembled;
use verifier::Proof;

const OBJECT: &str = "tests/run/search.bpf.o";
/// `enum reader` of the object.
const READERS: [&str; 8] = [
    "kernel",
    "kernel_str",
    "any",
    "any_str",
    "user",
    "user_str",
    "printed_str",
    "printed_ip",
];
const TC: [&str; 7] = [
    "stack", "context", "packet", "value", "map", "caller", "pointers",
];

/// What a search found: words by their distance from the starting point.
type Found = BTreeMap<i64, u64>;

struct Search {
    loaded: LoadedObject,
}

impl Search {
    fn load(engine: Engine) -> Search {
        let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(OBJECT))
            .expect("a committed object");
        let object = Object::open(&bytes).expect("an object");
        let options = LoadOptions {
            engine,
            ..LoadOptions::default()
        };
        let loaded = LoadedObject::load(&object, &kernel_data::linux_6_18(), &options);
        let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
        Search { loaded }
    }

    /// Runs a program with a reader; every word is compared with the memory of the process.
    fn run(&mut self, name: &str, reader: usize, engine: Engine) -> Found {
        self.loaded.set_global("reader", &(reader as u32)).unwrap();
        let mut program = self.loaded.program(name).expect(name);
        assert_eq!(
            program.engine(),
            engine,
            "{name}: {:?}",
            program.fallback_reason()
        );
        program.collect_records(true);
        let run = match name {
            "arguments" => program.test_run_with_context(&[], Some(&arguments()), 1),
            _ => program.test_run(&packet()),
        };
        let run = run.unwrap_or_else(|error| panic!("{name}: {error}"));
        let (mut found, mapped) = (Found::new(), mapped());
        for record in &run.records {
            let word = |at: usize| u64::from_le_bytes(record.bytes[at..at + 8].try_into().unwrap());
            let (distance, word, address) = (word(0) as i64, word(8), word(16));
            // The program itself keeps the address that it reads, and that where it begins.
            let begin = address.wrapping_sub_signed(distance);
            if [address, begin]
                .iter()
                .any(|own| word == as_read(*own, word, READERS[reader]))
            {
                continue;
            }
            // Digits of nothing.
            if READERS[reader] == "printed_ip" && word == u64::from_le_bytes([b'0'; 8]) {
                continue;
            }
            if READERS[reader] != "printed_ip" {
                assert!(
                    !is_mapped(&mapped, word),
                    "{name}, {}: {word:#x}",
                    READERS[reader]
                );
            }
            found.insert(distance, word);
        }
        found
    }
}

/// The word that a reader makes of an address: texts end at its first zero, as `word` does, and
/// addresses of IP are digits, of which the first is left out.
fn as_read(address: u64, word: u64, reader: &str) -> u64 {
    if reader == "printed_ip" {
        let digits: String = address
            .to_le_bytes()
            .map(|byte| format!("{byte:02x}"))
            .concat();
        return u64::from_le_bytes(digits.as_bytes()[1..9].try_into().unwrap());
    }
    let len = (64 - word.leading_zeros()).next_multiple_of(8);
    match word {
        0 => address,
        _ => address & u64::MAX >> (64 - len),
    }
}

fn packet() -> Vec<u8> {
    (0..64).map(|byte| byte | 0x80).collect()
}

fn arguments() -> Vec<u8> {
    (0..96).map(|byte| byte | 0x80).collect()
}

/// The addresses of this process.
fn mapped() -> Vec<Range<u64>> {
    let maps = fs::read_to_string("/proc/self/maps").expect("the maps of the process");
    let ranges = maps.lines().map(|line| {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let (start, end) = range.expect("a range");
        let [start, end] = [start, end].map(|end| u64::from_str_radix(end, 16).expect("a number"));
        start..end
    });
    ranges.collect()
}

fn is_mapped(mapped: &[Range<u64>], number: u64) -> bool {
    mapped.iter().any(|range| range.contains(&number))
}

/// Calls with deeper stacks leave other bytes and other addresses behind.
#[inline(never)]
fn deeper<R>(depth: usize, run: &mut dyn FnMut() -> R) -> R {
    let bytes = std::hint::black_box([depth as u8; 3000]);
    match depth {
        0 => run(),
        _ => {
            let result = deeper(depth - 1, run);
            std::hint::black_box(&bytes);
            result
        }
    }
}

/// The words of bytes at multiples of eight.
fn words(bytes: &[u8]) -> Found {
    let words = bytes.chunks_exact(8).zip(0..);
    let words = words.map(|(word, at)| (8 * at, u64::from_le_bytes(word.try_into().unwrap())));
    words.collect()
}

/// The distances of the frame around whose start a program searches. Below it, at distances that
/// depend on the engine, are the frames of the functions that search.
fn frame(name: &str) -> Option<Range<i64>> {
    match name {
        "stack" => Some(0..32),
        "caller" => Some(0..8),
        "pointers" => Some(0..24),
        _ => None,
    }
}

/// The distances at which the object lies around which a program searches, with what is in
/// front of it in its allocation.
fn object(name: &str) -> Option<Range<i64>> {
    match name {
        "context" => Some(-40..272),
        "packet" => Some(-16..64),
        "value" => Some(-24..16),
        "map" => Some(-16..16),
        "arguments" => Some(-40..96),
        _ => None,
    }
}

#[test]
fn programs_that_search_memory_find_nothing_of_the_process() {
    for (reader, reader_name) in READERS.iter().enumerate() {
        let programs = match *reader_name {
            "any" | "any_str" => &[][..],
            _ => &TC[..],
        };
        for name in programs.iter().chain(&["arguments"]) {
            // Maps keep what earlier runs left in them.
            let search = |engine| Search::load(engine).run(name, reader, engine);
            let run = &mut || search(Engine::Native);
            let (mut found, mut again) = (run(), deeper(reader + 1, run));
            let mut threaded = search(Engine::Interp);
            let mut theirs = search(Engine::Checked);
            if let Some(frame) = frame(name) {
                // The functions that search have nothing but zeros when they read, so that
                // nothing of the process is there; how far below they are is the engine's choice.
                for found in [&mut found, &mut again, &mut threaded] {
                    let below = found.extract_if(.., |distance, _| !frame.contains(distance));
                    let below: Found = below.collect();
                    let is_zero = |(distance, word): (&i64, &u64)| *distance < 0 && *word == 0;
                    assert!(
                        below.iter().all(is_zero),
                        "{name}, {reader_name}: {below:x?}"
                    );
                }
            }
            if let Some(object) = object(name) {
                // What lies behind is other memory of the run, where the allocator put it.
                for found in [&mut found, &mut again, &mut threaded, &mut theirs] {
                    found.retain(|distance, _| object.contains(distance));
                }
            }
            assert_eq!(found, again, "{name}, {reader_name}");
            assert_eq!(
                found, threaded,
                "{name}, {reader_name}: threaded interpreter"
            );
            match (*name, *reader_name) {
                (_, "user" | "user_str") => assert_eq!(found, Found::new(), "{name}"),
                // The structure of a map is there in the model alone.
                ("map", _) => assert_eq!(found, Found::new(), "{name}"),
                ("context", _) => {
                    assert_eq!((&found, &theirs), (&Found::new(), &Found::new()));
                }
                ("packet", _) => assert_eq!(found, theirs, "{reader_name}"),
                _ => {}
            }
            if !["kernel", "any"].contains(reader_name) {
                continue;
            }
            let expected = match *name {
                "stack" => words(&[[0x11; 8], [0x22; 8], [0x33; 8], [0x44; 8]].concat()),
                "packet" => words(&packet()),
                "value" => words(&[0x55; 8]),
                "caller" => words(&[0x66; 8]),
                "pointers" => words(&[[0x12; 8], [0; 8], [0x34; 8]].concat()),
                "arguments" => words(&arguments()),
                _ => Found::new(),
            };
            for (distance, word) in &expected {
                assert_eq!(found.get(distance), Some(word), "{name} at {distance}");
                // The checked engine has addresses of its model in place of those of the process.
                if *word != 0 {
                    assert_eq!(theirs.get(distance), Some(word), "{name} at {distance}");
                }
            }
            if let "packet" | "arguments" = *name {
                assert_eq!(found, expected);
            }
        }
    }
}

fn built_in() -> Kernel {
    kernel_data::linux_6_18()
}

/// The built-in kernel with a registry of other lines.
fn forged(change: impl Fn(&str) -> String) -> Kernel {
    let kernel = built_in();
    let lines = text::write(kernel.registry().expect("the registry"));
    let changed: String = lines.lines().map(|line| change(line) + "\n").collect();
    assert_ne!(lines, changed);
    let mut registry = text::parse(&changed).expect("lines of the same form");
    let types = kernel.btf().expect("the types").clone();
    let id = |kind, name: &str| types.find(kind, name).map(|ty| ty.id().0);
    registry.resolve(|name| id(Kind::Struct, name), |name| id(Kind::Func, name));
    kernel.with_registry(Box::new(move || registry), Source::Given)
}

/// What lowering says of a program that the verifier accepts.
fn lowered(kernel: &Kernel, kind: ProgramType, text: &str) -> Option<UnsupportedConstruct> {
    let slots = assembled(text).expect(text);
    let program = Program::builder(kind, slots).license("GPL").build();
    let program = program.expect("a program");
    let registry = kernel.registry().expect("a registry");
    let proof = Proof::of(&program, kernel, registry);
    let proof = proof.unwrap_or_else(|refused| panic!("{:?}", refused.verdict));
    VerifiedProgram::from_proof(&proof, &[], ::kernel::find_call).err()
}

#[test]
fn a_helper_with_another_prototype_does_not_run_as_native_code() {
    let text = "r1 = r10\nr1 += -16\nr2 = 16\ncall 16\nr0 = 0\nexit";
    assert_eq!(lowered(&built_in(), ProgramType::RawTracepoint, text), None);
    // The size is any number, so that nothing bounds what is written.
    let text = "r1 = r10\nr1 += -8\nr2 = 4096\ncall 16\nr0 = 0\nexit";
    let kernel = forged(|line| match line.starts_with("proto 16 ") {
        true => "proto 16 bpf_get_current_comm INTEGER: - ANYTHING ANYTHING".into(),
        false => line.into(),
    });
    let unfit = lowered(&kernel, ProgramType::RawTracepoint, text);
    assert_eq!(unfit, Some(UnsupportedConstruct::Signature(16)));
    // A number is returned as a socket.
    let text = "call 7\nr0 = *(u32 *)(r0 + 4)\nexit";
    let kernel = forged(|line| match line.starts_with("proto 7 ") {
        true => line.replace("INTEGER:", "PTR_TO_SOCKET:"),
        false => line.into(),
    });
    let unfit = lowered(&kernel, ProgramType::SchedCls, text);
    assert_eq!(unfit, Some(UnsupportedConstruct::Signature(7)));
}

#[test]
fn accesses_to_fields_that_contexts_lack_do_not_run_as_native_code() {
    let tc = ProgramType::SchedCls;
    assert_eq!(
        lowered(&built_in(), tc, "r0 = *(u32 *)(r1 + 8)\nexit"),
        None
    );
    let beyond = forged(|line| match line.strip_prefix("field 0-") {
        Some(rest) => match rest.split_once(['/', ' ']) {
            Some((_, rest)) => format!("field 0-4096/{rest}"),
            None => line.into(),
        },
        None => line.into(),
    });
    let text = "r0 = *(u32 *)(r1 + 4096)\nexit";
    assert_eq!(
        lowered(&beyond, tc, text),
        Some(UnsupportedConstruct::Field(0))
    );
    // A number of the context as the pointer to a socket.
    let socket = forged(|line| match line.starts_with("field 48-56/8 ") {
        true => "field 48-56/8 8 - 1248 PTR_TO_SOCK_COMMON|PTR_MAYBE_NULL 8".into(),
        false => line.into(),
    });
    let text = "r2 = *(u64 *)(r1 + 48)\nr0 = 0\nif r2 == 0 goto +1\nr0 = *(u32 *)(r2 + 4)\nexit";
    let unfit = lowered(&socket, tc, text);
    assert_eq!(unfit, Some(UnsupportedConstruct::Field(0)));
    // A socket that is longer.
    let longer = forged(
        |line| match line.starts_with("socket PTR_TO_SOCK_COMMON 55") {
            true => "socket PTR_TO_SOCK_COMMON 56-4096/4 4 - - SCALAR_VALUE 4".into(),
            false => line.into(),
        },
    );
    let text = "r2 = *(u64 *)(r1 + 168)\nr0 = 0\nif r2 == 0 goto +1\nr0 = *(u32 *)(r2 + 400)\nexit";
    assert_eq!(
        lowered(&longer, tc, text),
        Some(UnsupportedConstruct::Field(3))
    );
}

#[test]
fn tail_calls_of_other_maps_do_not_run_as_native_code() {
    let text = "r0 = 2\nexit";
    for (line, other) in [
        ("map array helpers=1,2,3,", "map array helpers=1,2,3,12,"),
        ("map prog_array helpers=12", "map prog_array helpers=1,12"),
    ] {
        let kernel = forged(|known| known.replace(line, other));
        let unfit = lowered(&kernel, ProgramType::Xdp, text);
        assert_eq!(unfit, Some(UnsupportedConstruct::Signature(12)), "{other}");
    }
}

#[test]
fn kfuncs_with_other_types_do_not_run_as_native_code() {
    let name = "bpf_map_sum_elem_count";
    // It takes a number in place of a map.
    let mut types = Builder::new();
    let long = types.string("unsigned long long");
    let int = Int {
        encoding: Encoding::NONE,
        size: 8,
        offset: 0,
        bits: 64,
    };
    let long = types.int(long, int);
    let map = types.string("map");
    let proto = types.proto(
        long,
        &[Param {
            name: map,
            ty: long,
        }],
    );
    let name_in_types = types.string(name);
    let func = Func {
        proto,
        linkage: Linkage::STATIC,
    };
    let id = types.func(name_in_types, func).0;
    let types = Arc::new(Btf::parse(types.finish()).expect("types"));
    let make = {
        let types = types.clone();
        move || kernel_data::linux_6_18_registry(&types)
    };
    let kernel = built_in()
        .with_btf(types, Source::Given)
        .with_registry(Box::new(make), Source::Given);
    let text = format!(
        "r1 = 4096\n.8byte {:#x}\nr0 = 0\nexit",
        0x2085_u64 | u64::from(id) << 32
    );
    let unfit = lowered(&kernel, ProgramType::Xdp, &text);
    let number = KernelFunction::of_linux(name)
        .expect("it has a release")
        .number();
    assert_eq!(unfit, Some(UnsupportedConstruct::Signature(number)));
}

#[test]
fn programs_that_need_barriers_do_not_run_as_native_code() {
    let privileges: Privileges = "bpf,net_admin".parse().expect("capabilities");
    let kernel = built_in().with_privileges(privileges, Source::Given);
    let text = "r0 = 2\nexit";
    let unfit = lowered(&kernel, ProgramType::Xdp, text);
    assert_eq!(unfit, Some(UnsupportedConstruct::Speculation));
    let unmitigated = kernel
        .clone()
        .with_mitigations(Mitigations::OFF, Source::Given);
    assert_eq!(lowered(&unmitigated, ProgramType::Xdp, text), None);
    // The checked engine runs them.
    let slots = assembled(text).expect(text);
    let program = Program::builder(ProgramType::Xdp, slots)
        .name("passes")
        .build();
    let program = program.expect("a program");
    let loaded = LoadedObject::from_program(program, &kernel, &LoadOptions::default());
    let mut loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    let mut program = loaded.program("passes").expect("it is loaded");
    assert_eq!(program.engine(), Engine::Checked);
    assert!(
        program
            .fallback_reason()
            .is_some_and(|why| why.to_string().contains("CAP_PERFMON"))
    );
    assert_eq!(program.test_run(&[0; 64]).expect("a run").retval, 2);
}

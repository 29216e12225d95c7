//! Bit operations as kfuncs: every engine computes what the definition says, and kernels
//! without them take the fallback or refuse.

use crate::support::{ENGINES, native_code};
use std::path::Path;

use beebox::internal::object::Object;
use beebox::internal::run::{LoadError, LoadOptions, LoadedObject};
use isa::ebpf::Insn;
use jit::memory::Pool;
use jit::{Features, Native, Options};
use kernel_client::load::{LoadRequest, load};
use lower::{ContextKind, Lowered, PacketProgram, VerifiedProgram};
use packet::{Metadata, Packet};
use spec::bits::BitOp;
use spec::{Kernel, SplitMix};
use sys::bpf::TestRun;
use verifier::Proof;
use vm::{DirectContext, PacketBuffer, RunContext, RunGuard, XDP};

const OBJECT: &str = "../../examples/bits/bits.bpf.o";
/// The ladder beside the kernel function.
const LADDER: &str = "tests/run/ffs.bpf.o";

/// Random words on which the ladder and the kernel function are compared.
const RANDOM_WORDS: usize = 10_000_000;

fn read(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read(path).expect("a committed object")
}

fn file() -> Vec<u8> {
    read(OBJECT)
}

fn kernel() -> Kernel {
    kernel_data::linux_6_18_minimal().with_bit_operations()
}

/// Packets with a word and a count: every bit, every pair of bits, random words.
fn words() -> Vec<(u64, u64)> {
    let bits = 0..64u32;
    let mut words: Vec<u64> = vec![0, u64::MAX];
    for low in bits.clone() {
        words.extend((low..64).map(|high| 1 << low | 1 << high));
    }
    let mut random = SplitMix::new(18);
    words.extend((0..2000).map(|_| random.next_u64() & random.next_u64()));
    let counted = words.into_iter().zip(0..);
    counted.map(|(word, at)| (word, at * 7)).collect()
}

fn packet(word: u64, count: u64) -> Vec<u8> {
    let mut packet = vec![0; 64];
    packet[..8].copy_from_slice(&word.to_le_bytes());
    packet[8..16].copy_from_slice(&count.to_le_bytes());
    packet
}

/// What the program `all` leaves in the packet.
fn expected(word: u64, count: u64) -> Vec<u8> {
    let results = BitOp::ALL.map(|op| op.eval(word, count));
    results.into_iter().flat_map(u64::to_le_bytes).collect()
}

#[oracle::test]
fn engines_match_the_definition() {
    let file = file();
    let object = Object::open(&file).expect("an object");
    for engine in ENGINES {
        let options = LoadOptions {
            engine,
            ..LoadOptions::default()
        };
        let mut loaded = LoadedObject::load(&object, &kernel(), &options).expect("it is loaded");
        let mut all = loaded.program("all").expect("it is loaded");
        assert_eq!(all.fallback_reason(), None);
        for (word, count) in words() {
            let run = all.test_run(&packet(word, count)).expect("it runs");
            assert_eq!(run.retval, 2);
            assert_eq!(run.data_out, expected(word, count), "{engine:?}: {word:#x}");
        }
    }
}

/// The program of a name with its proof, lowered.
fn lowered(file: &[u8], name: &str) -> Lowered<PacketProgram> {
    let mut object = Object::open(file).expect("an object");
    object.set_autoload(|program| program.name == name);
    let kernel = kernel();
    let linked = object.link(&kernel).expect("it links");
    let registry = kernel.registry().expect("the built-in kernel has one");
    let proof = Proof::of(&linked.programs[0].program, &kernel, registry).expect("it is accepted");
    let lowered = VerifiedProgram::from_proof(&proof, &[], ::kernel::find_call);
    let lowered = lowered.expect("it is lowered").packet();
    lowered.expect("an XDP program")
}

#[oracle::test]
fn processors_without_extensions_compute_the_same() {
    if !native_code("native code for processors without extensions") {
        return;
    }
    let lowered = lowered(&file(), "all");
    let native = plain(&lowered);
    let mut data = PacketBuffer::new(XDP, &[], 256, 256);
    for (word, count) in words() {
        data.refill(&packet(word, count), 256, 256);
        assert_eq!(run(&native, &mut data), 2);
        assert_eq!(data.to_vec(), expected(word, count), "{word:#x}");
    }
}

/// Native code for a processor without extensions.
fn plain(lowered: &Lowered<PacketProgram>) -> Native<PacketProgram> {
    let options = Options {
        features: Features::PLAIN,
        ..Options::default()
    };
    Native::compile(lowered, &options, &Pool::new()).expect("it compiles")
}

fn run(native: &Native<PacketProgram>, data: &mut PacketBuffer) -> u64 {
    let mut context = DirectContext::new(ContextKind::Xdp, &[0; 24]);
    let (mut random, mut clock) = (SplitMix::new(0), || 0);
    let metadata = Metadata::from_cpu(0);
    let no_packet = Packet::whole(&[], &metadata);
    let cx = RunContext::new(&no_packet, &mut random, Some(&mut clock));
    let result = native.run(data, &mut context, &RunGuard::new(), cx);
    result.expect("there are no maps")
}

/// Words that have a bit: each single bit, each pair, random ones of every density.
fn words_with_bits() -> impl Iterator<Item = u64> {
    let pairs = (0..64).flat_map(|low| (low..64).map(move |high| 1u64 << low | 1 << high));
    let mut random = SplitMix::new(64);
    let random = (0..RANDOM_WORDS).map(move |at| {
        let word = random.next_u64();
        let kept = match at % 4 {
            0 => u64::MAX,
            1 => random.next_u64(),
            2 => random.next_u64() & random.next_u64() & random.next_u64(),
            _ => u64::MAX << (random.next_u64() % 64),
        };
        match word & kept {
            0 => 1 << 63,
            word => word,
        }
    });
    pairs.chain(random)
}

/// Frames of 64 words, each with the words' lowest bits.
fn frames() -> impl Iterator<Item = (Vec<u8>, Vec<u64>)> {
    let mut words = words_with_bits();
    std::iter::from_fn(move || {
        let mut words: Vec<u64> = words.by_ref().take(64).collect();
        if words.is_empty() {
            return None;
        }
        words.resize(64, 1);
        let frame = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let found = words.iter().map(|word| word.trailing_zeros().into());
        Some((frame, found.collect()))
    })
}

/// What a program leaves in the packet, as words.
fn left(data: &[u8]) -> Vec<u64> {
    let words = data.as_chunks::<8>().0.iter();
    words.map(|word| u64::from_le_bytes(*word)).collect()
}

#[oracle::test]
fn the_ladder_and_the_kernel_function_find_the_same_bit() {
    if !native_code("native code for processors without extensions") {
        return;
    }
    let file = read(LADDER);
    let mut object = Object::open(&file).expect("an object");
    object.set_autoload(|program| program.name == "both");
    let mut loaded = ENGINES.map(|engine| {
        let options = LoadOptions {
            engine,
            ..LoadOptions::default()
        };
        LoadedObject::load(&object, &kernel(), &options).expect("it is loaded")
    });
    let mut programs = loaded
        .each_mut()
        .map(|loaded| loaded.program("both").expect("it is loaded"));
    assert_eq!(programs[0].fallback_reason(), None);
    let plain = plain(&lowered(&file, "both"));
    let mut data = PacketBuffer::new(XDP, &[], 256, 256);
    let mut compared = 0;
    for (frame, found) in frames() {
        let both: Vec<u64> = found.iter().map(|bit| bit | bit << 32).collect();
        for program in &mut programs {
            let run = program.test_run(&frame).expect("it runs");
            assert_eq!(left(&run.data_out), both, "{:?}", program.engine());
        }
        data.refill(&frame, 256, 256);
        assert_eq!(run(&plain, &mut data), 2);
        assert_eq!(left(&data.to_vec()), both, "without extensions");
        compared += frame.len() / 8;
    }
    assert!(compared >= RANDOM_WORDS + 64 + 2016);
}

#[oracle::test]
fn the_ladder_finds_the_same_bit_in_the_kernel() {
    let file = read(LADDER);
    let mut object = Object::open(&file).expect("an object");
    object.set_autoload(|program| program.name == "ladders");
    let linked = object
        .link(&kernel_data::linux_6_18_minimal())
        .expect("it links");
    let request = LoadRequest {
        log_level: 4,
        log_size: 1 << 20,
    };
    let loaded = load(&linked.programs[0].program, request).map_err(|fault| format!("{fault:?}"));
    let Some(loaded) = oracle::found("test runs of the kernel", loaded) else {
        return;
    };
    let Some(program) = oracle::found("test runs of the kernel", loaded.answer.result) else {
        return;
    };
    let mut out = [0; 512];
    for (frame, found) in frames() {
        let ran = program.test_run(&TestRun::on(&frame), &mut out, &mut []);
        assert_eq!(ran.map(|ran| ran.retval), Ok(2));
        assert_eq!(left(&out), found);
    }
}

#[oracle::test]
fn no_call_is_left_in_native_code() {
    let calls = |insn: &&Insn| matches!(insn, Insn::Call(_));
    // The reversal of bits is written out; the others are calls by a number that native
    // code has instructions for.
    assert_eq!(
        lowered(&file(), "all").insns().iter().filter(calls).count(),
        7
    );
    assert_eq!(
        lowered(&file(), "first")
            .insns()
            .iter()
            .filter(calls)
            .count(),
        1
    );
}

#[oracle::test]
fn kernels_without_them_take_the_fallback_or_refuse() {
    let file = file();
    let mut object = Object::open(&file).expect("an object");
    let plain = kernel_data::linux_6_18_minimal();
    object.set_autoload(|program| program.name == "first");
    let mut loaded =
        LoadedObject::load(&object, &plain, &LoadOptions::default()).expect("it is loaded");
    let mut first = loaded.program("first").expect("it is loaded");
    for (word, _) in words() {
        let run = first.test_run(&packet(word, 0)).expect("it runs");
        let index = BitOp::Ffs.eval(word, 0);
        assert_eq!(run.data_out[8..16], index.to_le_bytes(), "{word:#x}");
    }
    object.set_autoload(|program| program.name == "all");
    let refused = LoadedObject::load(&object, &plain, &LoadOptions::default());
    assert!(
        matches!(refused, Err(LoadError::Refused { .. })),
        "{refused:?}"
    );
}

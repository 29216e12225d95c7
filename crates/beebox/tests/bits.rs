//! Bit operations as kfuncs: every engine computes what the definition says, and kernels
//! without them take the fallback or refuse.

use std::path::Path;

use beebox::object::Object;
use beebox::run::{LoadOptions, LoadedObject, NotLoaded, RunEngine};
use isa::ebpf::Insn;
use jit::memory::Pool;
use jit::{Features, Native, Options};
use lower::{ContextKind, Lowered};
use packet::{Metadata, Packet};
use spec::bits::BitOp;
use spec::{Kernel, SplitMix};
use verifier::Proof;
use vm::{DirectContext, PacketBuffer, RunContext, RunGuard, XDP};

const OBJECT: &str = "examples/bits/bits.bpf.o";

fn file() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(OBJECT);
    std::fs::read(path).expect("a committed object")
}

fn kernel() -> Kernel {
    kernel_data::linux_6_18().with_bit_operations()
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

#[test]
fn engines_compute_what_the_definition_says() {
    let file = file();
    let object = Object::open(&file).expect("an object");
    for engine in [RunEngine::Native, RunEngine::Checked] {
        let options = LoadOptions {
            engine,
            ..LoadOptions::default()
        };
        let mut loaded = LoadedObject::load(&object, &kernel(), &options).expect("it is loaded");
        let mut all = loaded.program("all").expect("it is loaded");
        assert_eq!(all.not_native(), None);
        for (word, count) in words() {
            let run = all.test_run(&packet(word, count)).expect("it runs");
            assert_eq!(run.retval, 2);
            assert_eq!(run.data_out, expected(word, count), "{engine:?}: {word:#x}");
        }
    }
}

/// The program of a name with its proof, lowered.
fn lowered(name: &str) -> Lowered {
    let file = file();
    let mut object = Object::open(&file).expect("an object");
    object.set_autoload(|program| program.name == name);
    let kernel = kernel();
    let linked = object.link(&kernel).expect("it links");
    let registry = kernel.registry().expect("the built-in kernel has one");
    let proof = Proof::of(&linked.programs[0].program, &kernel, registry).expect("it is accepted");
    Lowered::from_verified(&proof, &[], ::kernel::helpers::find_call).expect("it is lowered")
}

#[test]
fn processors_without_extensions_compute_the_same() {
    let lowered = lowered("all");
    let options = Options {
        features: Features::PLAIN,
        ..Options::default()
    };
    let native = Native::compile(&lowered, &options, &Pool::new()).expect("it compiles");
    let program = native.on_context(ContextKind::Xdp).expect("an XDP program");
    let metadata = Metadata::of_cpu(0);
    for (word, count) in words() {
        let mut data = PacketBuffer::new(XDP, &packet(word, count), 256, 256);
        let mut context = DirectContext::new(ContextKind::Xdp, &[0; 24]);
        let (mut random, mut clock) = (SplitMix::new(0), || 0);
        let no_packet = Packet::whole(&[], &metadata);
        let cx = RunContext::new(&no_packet, &mut random, Some(&mut clock));
        let result = program.run(&mut data, &mut context, &RunGuard::new(), cx);
        assert_eq!(result, Ok(2));
        assert_eq!(data.to_vec(), expected(word, count), "{word:#x}");
    }
}

#[test]
fn no_call_is_left_in_native_code() {
    let calls = |insn: &&Insn| matches!(insn, Insn::Call(_));
    // The reversal of bits is written out; the others are calls by a number that native
    // code has instructions for.
    assert_eq!(lowered("all").insns().iter().filter(calls).count(), 7);
    assert_eq!(lowered("first").insns().iter().filter(calls).count(), 1);
}

#[test]
fn kernels_without_them_take_the_fallback_or_refuse() {
    let file = file();
    let mut object = Object::open(&file).expect("an object");
    let plain = kernel_data::linux_6_18();
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
        matches!(refused, Err(NotLoaded::Refused { .. })),
        "{refused:?}"
    );
}

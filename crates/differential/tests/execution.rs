//! Verified programs as native code, in the checked engine and in the running kernel: equal
//! results, packets, contexts and maps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::kernel::maps::{Host, Map, ValueLayout};
use beebox_differential::direct::DirectEngine;
use beebox_differential::execution::{
    Equal, Features, Machine, Setting, compare, create_maps, generate,
};
use jit::memory::Pool;
use jit::{Options, VerifiedNative};
use lower::{ContextKind, Pass, Passes, UnsupportedConstruct, VerifiedProgram};
use program::{MapDef, MapParams, Program};
use spec::Kernel;
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;
use spec::registry::Registry;
use testkit::ebpf::Choices;
use testkit::verifier::{assembled, program_with_array};
use verifier::Proof;
use vm::MapHandle;

const PROGRAMS: u64 = 600;

/// When the comparison ends: where `BEEBOX_EXECUTION_SECONDS` says it, after so many seconds,
/// whatever number of programs that is. Builds with a sanitizer use it.
fn end() -> Option<Instant> {
    let seconds = std::env::var("BEEBOX_EXECUTION_SECONDS").ok()?;
    let seconds = seconds.parse().expect("a number of seconds");
    Some(Instant::now() + Duration::from_secs(seconds))
}

fn kernel() -> (Kernel, Registry) {
    let kernel = kernel_data::linux_6_18_minimal();
    let types = kernel.btf().expect("the built-in kernel has types");
    let registry = kernel_data::linux_6_18_minimal_registry(types);
    (kernel, registry)
}

/// True if the running kernel takes programs from this process.
fn asks_kernel() -> bool {
    const WHAT: &str = "native code of verified programs and the running kernel";
    let request = sys::bpf::MapRequest {
        map_type: spec::maps::MapKind::Array.number(),
        key_size: 4,
        value_size: 4,
        max_entries: 1,
        ..sys::bpf::MapRequest::default()
    };
    oracle::found(WHAT, sys::bpf::Map::create(&request)).is_some()
}

#[oracle::test]
fn programs_with_maps_run_alike_with_every_pass_and_in_linux() {
    let (kernel, registry) = kernel();
    let setting = Setting {
        kernel: &kernel,
        registry: &registry,
    };
    let asks_kernel = asks_kernel();
    // The test has a thread of its own, which moves to a namespace.
    let machine = match asks_kernel {
        true => Machine::enter().expect("a network namespace with sockets"),
        false => Machine::model(),
    };
    let end = end();
    let (mut sum, mut programs) = (Equal::default(), 0);
    let goes_on = |programs: u64| match end {
        Some(end) => programs == 0 || Instant::now() < end,
        None => programs < PROGRAMS,
    };
    while goes_on(programs) {
        let seed = programs;
        // Half of the programs read the clock and random numbers.
        let equal = compare(setting, &machine, seed, asks_kernel && seed % 2 == 0);
        let equal = equal.unwrap_or_else(|difference| panic!("{difference}"));
        sum += equal;
        programs += 1;
    }
    assert_eq!(sum.runs, 12 * DirectEngine::ALL.len() as u64 * programs);
    let expected = if asks_kernel {
        4 * programs.div_ceil(2)
    } else {
        0
    };
    assert_eq!(sum.witnessed, expected);
    let reached = [sum.timers, sum.sockets, sum.tail_calls];
    assert!(reached.iter().all(|count| *count > programs / 12), "{sum}");
}

#[oracle::test]
fn every_pass_changes_some_program() {
    let (kernel, registry) = kernel();
    let lowered = |proof: &Proof, handles: &[Option<MapHandle>], passes| {
        let find_call = ::kernel::helpers::find_call;
        VerifiedProgram::from_proof_with(proof, handles, find_call, passes).unwrap()
    };
    let mut unused = Pass::ALL.to_vec();
    for seed in 0..100 {
        let programs = generate(&mut Choices::from_seed(seed), Features::ALL).programs;
        let program = programs.unwrap().remove(0);
        let proof = Proof::of(&program, &kernel, &registry).unwrap();
        let maps = create_maps(&program).into_iter();
        let handles: Vec<Option<MapHandle>> = maps.map(|map| Some(map.handle().clone())).collect();
        let changes = |one: Passes, other: Passes| {
            let [one, other] = [one, other].map(|passes| lowered(&proof, &handles, passes));
            one.insns() != other.insns()
        };
        unused.retain(|&pass| {
            // What one pass leaves another may find.
            !changes(Passes::ALL, Passes::ALL.without(pass))
                && !changes(Passes::NONE, Passes::NONE.with(pass))
        });
    }
    assert_eq!(unused, []);
}

#[oracle::test]
fn a_program_runs_only_as_what_it_was_verified_for() {
    let (kernel, registry) = kernel();
    let build = |kind, text: &str| {
        let slots = assembled(text).unwrap();
        Program::builder(kind, slots)
            .license("GPL")
            .build()
            .unwrap()
    };
    let find_call = ::kernel::helpers::find_call;
    let program = build(ProgramType::Xdp, "r0 = 2\nexit");
    let proof = Proof::of(&program, &kernel, &registry).unwrap();
    let lowered = VerifiedProgram::from_proof(&proof, &[], find_call).unwrap();
    let options = Options {
        features: jit::Features::detect(),
        ..Options::default()
    };
    let native = VerifiedNative::compile(&lowered, &options, &Pool::new()).unwrap();
    assert_eq!(native.context_kind(), ContextKind::Xdp);
    assert!(matches!(native, VerifiedNative::Packet(_)));
    let refused = build(ProgramType::Xdp, "r0 = *(u64 *)(r1 + 0)\nexit");
    assert!(Proof::of(&refused, &kernel, &registry).is_err());
    let alone = build(ProgramType::RawTracepoint, "r0 = *(u64 *)(r1 + 8)\nexit");
    let proof = Proof::of(&alone, &kernel, &registry).unwrap();
    assert_eq!(proof.facts().context_bytes, 16);
    let lowered = VerifiedProgram::from_proof(&proof, &[], find_call).unwrap();
    let native = VerifiedNative::compile(&lowered, &options, &Pool::new()).unwrap();
    assert_eq!(native.context_kind(), ContextKind::Arguments);
    assert!(matches!(native, VerifiedNative::Context(_)));
    let unfit = build(ProgramType::Kprobe, "r0 = 0\nexit");
    let proof = Proof::of(&unfit, &kernel, &registry).unwrap();
    let lowered = VerifiedProgram::from_proof(&proof, &[], find_call);
    assert!(matches!(lowered, Err(UnsupportedConstruct::ProgramType(_))));
    let text = "r0 = *(u64 *)(r1 + 168)\nr0 = 0\nexit";
    let program = build(ProgramType::SchedCls, text);
    let proof = Proof::of(&program, &kernel, &registry).unwrap();
    assert!(VerifiedProgram::from_proof(&proof, &[], find_call).is_ok());
    let reads_map = assembled(".8byte 0x5118\n.8byte 0\nr0 = *(u32 *)(r1 + 24)\nr0 = 2\nexit");
    let reads_map = program_with_array(ProgramType::Xdp, &reads_map.unwrap()).unwrap();
    let proof = Proof::of(&reads_map, &kernel, &registry).unwrap();
    let handle = |def: &Arc<MapDef>| {
        let value = ValueLayout::plain(def.params.value_size as usize);
        let map = Map::create(&def.params, value, &Host::new(4, 1)).unwrap();
        Some(map.handle().clone())
    };
    let handles: Vec<Option<MapHandle>> = reads_map.maps().iter().map(handle).collect();
    let lowered = VerifiedProgram::from_proof(&proof, &handles, find_call);
    assert!(matches!(
        lowered,
        Err(UnsupportedConstruct::KernelObject(2))
    ));
    let uses_map = assembled(".8byte 0x5118\n.8byte 0\nr0 = 2\nexit").unwrap();
    let with_maps = program_with_array(ProgramType::Xdp, &uses_map).unwrap();
    let proof = Proof::of(&with_maps, &kernel, &registry).unwrap();
    let lowered = VerifiedProgram::from_proof(&proof, &[], find_call);
    assert!(matches!(lowered, Err(UnsupportedConstruct::Map(0))));
    // Its map is an array of 4 values of 48 bytes; any other is refused.
    let lower = |params: MapParams| {
        let handle = handle(&Arc::new(MapDef::new("", params)));
        VerifiedProgram::from_proof(&proof, &[handle], find_call).map(drop)
    };
    let declared = with_maps.maps()[0].params;
    assert!(lower(declared).is_ok());
    let kind = |kind: MapKind| MapParams {
        map_type: kind.number(),
        ..declared
    };
    let others = [
        kind(MapKind::Hash),
        kind(MapKind::PercpuArray),
        MapParams {
            key_size: 8,
            ..kind(MapKind::Hash)
        },
        MapParams {
            value_size: 40,
            ..declared
        },
        MapParams {
            max_entries: 3,
            ..declared
        },
        MapParams {
            flags: MapFlags::INNER_MAP,
            ..declared
        },
    ];
    for other in others {
        let lowered = lower(other);
        assert!(
            matches!(lowered, Err(UnsupportedConstruct::Map(0))),
            "{other:?}"
        );
    }
}

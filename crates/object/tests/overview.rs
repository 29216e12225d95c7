//! Overviews of example objects and of programs assembled here.

use std::fs;
use std::path::Path;

use beebox_object::Object;
use beebox_object::overview::{RequiredFeature, oldest};
use spec::helpers;
use spec::maps::MapKind;
use spec::programs::{AttachType, ProgramType};
use spec::since::Feature;

fn example(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    fs::read(directory.join(name)).expect("an example")
}

#[oracle::test]
fn everything_that_is_used_is_needed() {
    let file = example("traffic/traffic.bpf.o");
    let object = Object::open(&file).expect("an object");
    let overview = object.overview();
    let [count, exec] = &overview.programs[..] else {
        panic!("{overview:?}");
    };

    assert_eq!(count.slots, 75);
    assert_eq!(count.functions.len(), 1);
    assert!(count.stack > 0 && count.stack <= 64, "{}", count.stack);
    assert_eq!((count.relocations, exec.relocations), (0, 2));
    let things = |needs: &[beebox_object::overview::Requirement]| -> Vec<RequiredFeature> {
        needs.iter().map(|need| need.feature).collect()
    };
    let of_count = things(&count.needs);
    for name in [
        "bpf_map_lookup_elem",
        "bpf_ringbuf_reserve",
        "bpf_ktime_get_ns",
    ] {
        let number = helpers::number(name).expect("a helper");
        assert!(
            of_count.contains(&RequiredFeature::Helper(number)),
            "{name}"
        );
    }
    assert!(of_count.contains(&RequiredFeature::Feature(Feature::LocalCalls)));
    assert!(of_count.contains(&RequiredFeature::Feature(Feature::GlobalData)));
    assert!(!of_count.contains(&RequiredFeature::Feature(Feature::Loops)));
    // libbpf omits this attach type where the kernel lacks it.
    assert!(!of_count.contains(&RequiredFeature::AttachType(AttachType::Xdp)));

    let of_exec = things(&exec.needs);
    assert!(of_exec.contains(&RequiredFeature::ProgramType(ProgramType::Tracing)));
    assert!(of_exec.contains(&RequiredFeature::AttachType(AttachType::TraceRawTp)));
    assert!(
        !of_exec
            .iter()
            .any(|feature| matches!(feature, RequiredFeature::Helper(_)))
    );

    let release = |needs| oldest(needs).map(|release| release.to_string());
    assert_eq!(release(&exec.needs).as_deref(), Some("5.5"));
    let all = overview.needs();
    assert_eq!(release(&all).as_deref(), Some("5.8"));
    assert!(
        all.iter()
            .any(|need| need.feature == RequiredFeature::MapKind(MapKind::Ringbuf))
    );
    assert!(all.is_sorted_by(|one, next| {
        one.since.map(|since| since.release) >= next.since.map(|since| since.release)
    }));
    for need in all
        .iter()
        .filter(|need| matches!(need.feature, RequiredFeature::Helper(_)))
    {
        assert!(need.site.is_some(), "{need:?}");
    }
}

#[oracle::test]
fn a_map_that_is_not_created_needs_nothing() {
    let file = example("traffic/traffic.bpf.o");
    let mut object = Object::open(&file).expect("an object");
    let events = object.maps().named("events").expect("a map");
    object.maps_mut().get_mut(events).expect("a map").autocreate = false;
    let overview = object.overview();
    assert!(overview.maps[events.0 as usize].is_empty());
}

#[oracle::test]
fn what_linux_checks_in_dead_code_is_never_guarded() {
    let file = include_bytes!("objects/guards.o");
    let object = Object::open(file).expect("an object");
    let overview = object.overview();
    let releases = overview.programs.iter().map(|program| {
        let name = object.program_defs().get(program.id).expect("a program");
        let release = oldest(&program.needs).expect("a release");
        (name.name.to_string(), release.to_string())
    });
    let releases: Vec<(String, String)> = releases.collect();
    let expected = [
        ("callback", "5.13"),
        ("atomic", "5.12"),
        ("signed_load", "6.6"),
        ("byte_swap", "6.6"),
        ("in_subprog", "6.6"),
        ("helper", "5.2"),
        ("signed_division", "5.2"),
        ("plain", "5.2"),
    ];
    let expected = expected.map(|(name, release)| (name.to_owned(), release.to_owned()));
    assert_eq!(releases, expected);
}

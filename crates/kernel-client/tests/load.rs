//! Loading into the running kernel.

use std::process::ExitCode;
use std::sync::Arc;

use beebox_kernel_client::load::{LoadFault, LoadRequest, load};
use program::{InitialContents, MapDef, MapParams, Program};
use spec::maps::MapKind;
use spec::programs::ProgramType;
use sys::Errno;

fn main() -> ExitCode {
    oracle::main()
}

#[oracle::test]
fn a_program_is_loaded_with_its_maps() {
    let text = "r1 = map_idx_value(0, high 8) ll\nr0 = *(u32 *)(r1 + 0)\nexit";
    let text = text.replace("high 8", "8");
    let insns = isa::ebpf::encode(&isa::ebpf::assemble(&text).unwrap()).unwrap();
    let params = MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size: 16,
        max_entries: 1,
        ..MapParams::default()
    };
    let mut map = MapDef::new("globals", params);
    let mut image = program::Image::zeros(16);
    assert!(image.write(8, &[7]));
    map.contents = InitialContents::Value {
        image,
        frozen: true,
    };
    let program = Program::builder(ProgramType::SocketFilter, insns)
        .name("reads")
        .license("GPL")
        .maps(vec![Arc::new(map)])
        .build()
        .unwrap();
    let request = LoadRequest {
        log_level: 2,
        log_size: 1 << 16,
    };
    let loaded = match load(&program, request) {
        Err(LoadFault::Map {
            errno: Errno(1 | 38),
            ..
        }) => {
            oracle::skip("a program with maps", "bpf(2) is not permitted");
            return;
        }
        loaded => loaded.expect("the kernel takes its map"),
    };
    let found = loaded.answer.result.expect("the kernel takes it");
    assert!(loaded.log.contains("processed 3 insns"), "{}", loaded.log);
    let packet = [0; 64];
    let run = sys::bpf::TestRun::on(&packet);
    let tested = found.test_run(&run, &mut [], &mut []).expect("a run");
    assert_eq!(tested.retval, 7);
}

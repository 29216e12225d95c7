//! Options of test runs, of programs of each type, here and in the running kernel: which are
//! refused, and with what error.

use std::collections::BTreeMap;

use beebox::Engine;
use beebox::{ErrorKind, Loader, Object, TestRun};
use kernel_client::object::ObjectInKernel;
use spec::programs::ProgramType;

use crate::support::file;

const OBJECT: &str = "tests/run/each_type.bpf.o";

/// Flags of `bpf_attr.test`: none, each that there is, two that are none, and two together.
const FLAGS: [u32; 7] = [0, 1, 2, 4, 8, 1 << 31, 3];
/// `BPF_F_TEST_RUN_ON_CPU`. Without it, and for types that do not have it, Linux takes CPU 0
/// alone, where an instance runs any program on any of its CPUs.
const ON_CPU: u32 = 1;
const BATCHES: [u32; 2] = [0, 8];
const REPEATS: [u32; 3] = [0, 1, 3];
const LENS: [usize; 3] = [0, 13, 64];

fn errno(kernels: Result<sys::bpf::TestRunResult, sys::Errno>) -> Result<(), i32> {
    kernels.map(drop).map_err(|errno| errno.0)
}

#[oracle::test]
fn options_are_refused_as_the_kernel_refuses_them() {
    let bytes = std::fs::read(file(OBJECT)).expect("a committed object");
    let object = beebox::internal::object::Object::open(&bytes).expect("an object");
    let linked = object
        .link(&kernel_data::linux_6_18_minimal())
        .expect("it links");
    let programs = linked.programs.iter().map(|linked| &linked.program);
    let theirs = ObjectInKernel::load(programs);
    let Some(theirs) = oracle::found("options of test runs of the kernel", theirs) else {
        return;
    };
    let ours = Object::from_bytes(&bytes).expect("an object");
    let ours = Loader::default()
        .engine(Engine::Checked)
        .cpus(2)
        .load(&ours);
    let ours = ours.expect("it loads");
    let packet = [0x45; 64];
    let (mut seen, mut differ) = (BTreeMap::new(), Vec::new());
    for ours in ours.programs() {
        let name = ours.name();
        let theirs = theirs.program(name).unwrap();
        for flags in FLAGS {
            for cpu in 0..=u32::from(flags == ON_CPU) {
                for (batch_size, repeat, len) in combinations() {
                    // An instance repeats what Linux runs once alone.
                    let runs_once = matches!(
                        ours.kind(),
                        ProgramType::RawTracepoint | ProgramType::Syscall
                    );
                    if runs_once && repeat != 0 {
                        continue;
                    }
                    let data_in = &packet[..len];
                    let run = TestRun::packet(data_in)
                        .flags(flags)
                        .cpu(cpu)
                        .batch_size(batch_size)
                        .repeat(repeat);
                    let own = match ours.test_run(&run) {
                        Ok(_) => Ok(()),
                        Err(error) if error.kind() == ErrorKind::Unsupported => {
                            *seen.entry("unsupported").or_insert(0) += 1;
                            continue;
                        }
                        Err(error) => Err(error.errno().map_or(0, |errno| errno.0)),
                    };
                    let run = sys::bpf::TestRun {
                        flags,
                        cpu,
                        batch_size,
                        repeat,
                        ..sys::bpf::TestRun::on(data_in)
                    };
                    let out = &mut [0; 128][..if len == 0 { 0 } else { 128 }];
                    let kernels = errno(theirs.test_run(&run, out, &mut []));
                    if own != kernels {
                        differ.push(format!("{name}: {own:?}, the kernel {kernels:?}: {run:?}"));
                    }
                    let what = if own.is_ok() { "run" } else { "refused" };
                    *seen.entry(what).or_insert(0) += 1;
                }
            }
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(seen["run"] > 30 && seen["refused"] > 1000, "{seen:?}");
}

/// Batches, repetitions and lengths of packets.
fn combinations() -> impl Iterator<Item = (u32, u32, usize)> {
    BATCHES.into_iter().flat_map(|batch| {
        REPEATS
            .into_iter()
            .flat_map(move |repeat| LENS.map(|len| (batch, repeat, len)))
    })
}

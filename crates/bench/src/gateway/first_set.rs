//! The first set bit of a word of the packet: by a ladder of halves, and by the kernel function
//! `bpf_ffs64`; once in a run, and 64 times in a loop.

use std::time::Instant;

use beebox::internal::object::Object;
use jit::memory::Pool;
use jit::{Features, Native, Options as Compiler};
use kernel_client::load::{LoadRequest, load};
use lower::{ContextKind, PacketProgram, VerifiedProgram};
use packet::{Metadata, Packet};
use program::Program;
use spec::{Kernel, SplitMix};
use sys::bpf::{LoadedProgram, TestRun};
use verifier::Proof;
use vm::{DirectContext, HEADROOM, PacketBuffer, RunContext, RunGuard, SKB};

use super::plane::failed;
use crate::Failure;
use crate::report::{Report, Target, Unit};

const OBJECT: &[u8] = include_bytes!("../../objects/ffs/ffs.bpf.o");

const BEEBOX: &str = "beebox";
const KERNEL: &str = "kernel";

/// Programs with their titles; the kernel has those without the kernel function.
const PROGRAMS: [(&str, &str, bool); 4] = [
    ("ladder_once", "ladder", true),
    ("kfunc_once", "kernel function", false),
    ("ladder_64", "ladder, 64 in a loop", true),
    ("kfunc_64", "kernel function, 64 in a loop", false),
];

/// The program that only reads the word: what a run costs by itself.
const NOTHING: (&str, &str, bool) = ("nothing", "no search", true);

/// Runs that are timed at once; the fastest part counts.
const PART: u32 = 100_000;

/// Adds the times of runs with bit 0 and bit 63, and the figures.
pub(super) fn measure(runs: u32, report: &mut Report) -> Result<(), Failure> {
    for (name, title, is_of_linux) in PROGRAMS.into_iter().chain([NOTHING]) {
        let ours = Ours::load(name)?;
        let theirs = is_of_linux.then(|| KernelProgram::load(name)).transpose();
        let theirs = theirs.unwrap_or_else(|failure| {
            report.notes.push(format!("{title}: no kernel: {failure}"));
            None
        });
        for bit in [0, 63] {
            let row = row(title, bit);
            let mut frame = [0; 64];
            frame[..8].copy_from_slice(&(1u64 << bit).to_le_bytes());
            let (mut here, mut there) = (f64::MAX, f64::MAX);
            for _ in 0..runs.div_ceil(PART) {
                let (result, time) = ours.run(&frame);
                here = here.min(time);
                let Some(theirs) = &theirs else { continue };
                let (expected, time) = theirs.run(&frame)?;
                there = there.min(time);
                if result != expected {
                    return Err(failed(format!("{row}: {result}, in the kernel {expected}")));
                }
            }
            report.add_row(&row, BEEBOX, Unit::NsPerRun, here);
            if theirs.is_some() {
                report.add_row(&row, KERNEL, Unit::NsPerRun, there);
            }
        }
    }
    add_figures(report);
    Ok(())
}

fn row(title: &str, bit: u32) -> String {
    format!("first set bit, bit {bit}, {title}")
}

fn add_figures(report: &mut Report) {
    let worst = |report: &Report, [one, other]: [(&str, &str); 2]| {
        let ratio = |bit| {
            let time = |(title, engine): (&str, &str)| {
                report.value(&row(title, bit), engine, Unit::NsPerRun)
            };
            Some(time(one)? / time(other)?)
        };
        Some([ratio(0)?, ratio(63)?])
    };
    let [ladder, kfunc] = [PROGRAMS[2].1, PROGRAMS[3].1];
    if let Some(ratios) = worst(report, [(ladder, BEEBOX), (kfunc, BEEBOX)]) {
        let meaning = "time of 64 ladders over that of 64 kernel functions, the smaller of bit 0 \
                       and bit 63";
        let value = ratios[0].min(ratios[1]);
        report.add_figure("ffs_speedup", meaning, value, Some(Target::AtLeast(2.0)));
    }
    if let Some(ratios) = worst(report, [(ladder, BEEBOX), (ladder, KERNEL)]) {
        let meaning = "time of 64 ladders over the kernel's, the greater of bit 0 and bit 63";
        let value = ratios[0].max(ratios[1]);
        report.add_figure(
            "ffs_ladder_vs_kernel",
            meaning,
            value,
            Some(Target::AtMost(1.0)),
        );
    }
}

fn link(name: &str, kernel: &Kernel) -> Result<Program, Failure> {
    let mut object = Object::open(OBJECT).map_err(failed)?;
    object.set_autoload(|program| program.name == name);
    let mut linked = object.link(kernel).map_err(failed)?;
    Ok(linked.programs.swap_remove(0).program)
}

/// A program as native code.
struct Ours(Native<PacketProgram>);

impl Ours {
    fn load(name: &str) -> Result<Ours, Failure> {
        let kernel = kernel_data::linux_6_18_minimal().with_bit_operations();
        let program = link(name, &kernel)?;
        let types = kernel.btf().ok_or_else(|| failed("no types"))?;
        let registry = kernel_data::linux_6_18_minimal_registry(types);
        let proof = Proof::of(&program, &kernel, &registry)
            .map_err(|refused| failed(format!("{:?}", refused.verdict)))?;
        let lowered = VerifiedProgram::from_proof(&proof, &[], ::kernel::find_call);
        let lowered = lowered.map_err(failed)?.packet();
        let lowered = lowered.ok_or_else(|| failed("a program without a packet"))?;
        let options = Compiler {
            features: Features::detect(),
            ..Compiler::default()
        };
        let native = Native::compile(&lowered, &options, &Pool::new());
        let native = native.map_err(|error| Failure::NotCompiled("first set bit", error))?;
        Ok(Ours(native))
    }

    /// The result, and nanoseconds of a run.
    fn run(&self, frame: &[u8]) -> (u32, f64) {
        let program = &self.0;
        let mut packet = PacketBuffer::new(SKB, frame, HEADROOM, 0);
        let mut context = DirectContext::new(ContextKind::SkBuff, &[0; SKB.size]);
        let (guard, metadata) = (RunGuard::new(), Metadata::from_cpu(0));
        let no_packet = Packet::whole(&[], &metadata);
        let mut random = SplitMix::new(1);
        let mut result = 0;
        let start = Instant::now();
        for _ in 0..PART {
            let cx = RunContext::new(&no_packet, &mut random, None);
            let ran = program.run(&mut packet, &mut context, &guard, cx);
            result = ran.expect("there are no maps") as u32;
        }
        (result, start.elapsed().as_nanos() as f64 / f64::from(PART))
    }
}

/// A program in the kernel.
struct KernelProgram(LoadedProgram);

impl KernelProgram {
    fn load(name: &str) -> Result<KernelProgram, Failure> {
        let program = link(name, &kernel_data::linux_6_18_minimal())?;
        let request = LoadRequest {
            log_level: 4,
            log_size: 1 << 20,
        };
        let loaded = load(&program, request).map_err(|fault| failed(format!("{fault:?}")))?;
        let log = loaded.log;
        let program = loaded.answer.result;
        Ok(KernelProgram(
            program.map_err(|errno| failed(format!("{errno}: {log}")))?,
        ))
    }

    fn run(&self, frame: &[u8]) -> Result<(u32, f64), Failure> {
        let request = TestRun {
            repeat: PART,
            ..TestRun::on(frame)
        };
        let ran = self
            .0
            .test_run(&request, &mut [0; 256], &mut [])
            .map_err(failed)?;
        Ok((ran.retval, ran.duration.as_nanos() as f64))
    }
}

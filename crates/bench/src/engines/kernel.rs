//! The running kernel: loads the workloads as XDP programs and runs them on data
//! that it is given (BPF_PROG_TEST_RUN). Nothing is attached to anything.

use std::time::Duration;

use isa::ebpf::RawInsn;
use spec::programs::ProgramType;
use sys::bpf::{LoadedProgram, LogLevel, ProgLoad, TestRun};

use crate::Failure;
use crate::race::{Contender, NO_ANSWER};

/// A workload in the kernel.
pub(super) struct Kernel {
    program: LoadedProgram,
    data: Vec<u8>,
}

/// Reason why this process cannot load programs; `None` if it can.
pub(super) fn obstacle(empty: &[RawInsn]) -> Option<String> {
    let request = ProgLoad::new(ProgramType::Xdp.number(), empty);
    request.load().err().map(|error| error.to_string())
}

impl Kernel {
    /// Loads a program that runs on these data.
    pub(super) fn load(name: &str, program: &[RawInsn], data: Vec<u8>) -> Result<Kernel, Failure> {
        let request = ProgLoad::new(ProgramType::Xdp.number(), program);
        let refused = match request.load() {
            Ok((program, _)) => return Ok(Kernel { program, data }),
            Err(refused) => refused,
        };
        // A second load with a log, for the reason.
        let request = request.with_log(LogLevel::LEVEL1);
        let reason = request.load().err().unwrap_or(refused);
        Err(Failure::Process {
            purpose: "asking the kernel to take a workload",
            said: format!("{name}: {reason}"),
        })
    }

    /// Its native code.
    pub(super) fn image(&self) -> Result<Vec<u8>, Failure> {
        let info = self.program.info().map_err(|error| Failure::Process {
            purpose: "reading the kernel's native code",
            said: error.to_string(),
        })?;
        Ok(info.native)
    }

    fn run(&self, repeat: u32) -> Option<(u32, Duration)> {
        let run = TestRun {
            repeat,
            ..TestRun::on(&self.data)
        };
        let tested = self.program.test_run(&run, &mut [], &mut []).ok()?;
        Some((tested.retval, tested.duration))
    }
}

impl Contender<()> for &Kernel {
    fn answer(&mut self, _: &()) -> u32 {
        self.run(1).map_or(NO_ANSWER, |(answer, _)| answer)
    }

    /// By the kernel's own clock, without what the system call costs.
    fn pass(&mut self, _: &[()], rounds: u32) -> Duration {
        let (_, mean) = self
            .run(rounds)
            .unwrap_or((NO_ANSWER, Duration::MAX / rounds));
        mean * rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::workload::WORKLOADS;

    #[test]
    fn the_verifier_accepts_every_workload() {
        let program = |at: usize| WORKLOADS[at].program().expect("a program");
        if let Some(obstacle) = obstacle(&program(0)) {
            eprintln!("skipped: the kernel takes no programs from us ({obstacle})");
            return;
        }
        for (at, workload) in WORKLOADS.iter().enumerate() {
            let loaded = Kernel::load(workload.key, &program(at), workload.input());
            if let Err(failure) = loaded {
                panic!("{failure}");
            }
        }
    }
}

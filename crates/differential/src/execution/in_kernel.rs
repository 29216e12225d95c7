//! Generated programs in the running kernel.

use std::thread;
use std::time::{Duration, Instant};

use program::Program;
use sys::bpf::{LoadedProgram, TestRun};
use sys::network::pin_to_cpu;

use super::engines::Left;
use super::maps::{self, Contents, PROGRAMS, TARGETS, TIMED};
use kernel_client::load::{LoadRequest, Resources};

/// Bytes by which programs make packets longer at most.
const ROOM: usize = 4096;

/// Most time between the start of a timer and its end.
const TIMERS: Duration = Duration::from_secs(2);

/// Programs, the first of which may call the others, with their maps.
pub(super) struct InKernel {
    programs: Vec<LoadedProgram>,
    resources: Resources,
}

impl InKernel {
    pub(super) fn load(programs: &[Program]) -> Result<InKernel, String> {
        let fault = |fault| format!("{fault:?}");
        let mut resources = Resources::of(&programs[0]).map_err(fault)?;
        resources.share_owned();
        let (mut loaded, mut log) = (Vec::new(), Vec::new());
        for program in programs {
            let mut load = |log_level, log_size| {
                let request = LoadRequest {
                    log_level,
                    log_size,
                };
                let answer = resources.load(program, request, &mut log);
                Ok::<_, String>(answer.map_err(fault)?.result)
            };
            match load(0, 0)? {
                Ok(program) => loaded.push(program),
                Err(errno) => {
                    let _ = load(1, 1 << 20)?;
                    let log = String::from_utf8_lossy(&log);
                    return Err(format!("the kernel: {errno}\n{log}"));
                }
            }
        }
        let in_kernel = InKernel {
            programs: loaded,
            resources,
        };
        in_kernel.fill()?;
        Ok(in_kernel)
    }

    /// Puts the programs into the program array, if there is one.
    fn fill(&self) -> Result<(), String> {
        let Some(array) = self.resources.map(PROGRAMS as usize) else {
            return Ok(());
        };
        for (index, number) in TARGETS {
            if let Some(program) = self.programs.get(*number) {
                let descriptor = program.descriptor().to_ne_bytes();
                let put = array.update(&index.to_ne_bytes(), &descriptor);
                put.map_err(|errno| format!("a program in the array: {errno}"))?;
            }
        }
        Ok(())
    }

    /// Runs the first program on a packet, on a CPU on which the thread stays, and compares what
    /// it leaves.
    pub(super) fn compare(&self, packet: &[u8], cpu: u32, ours: &Left) -> Result<(), String> {
        pin_to_cpu(cpu).map_err(|errno| format!("CPU {cpu}: {errno}"))?;
        let mut data = vec![0; packet.len() + ROOM];
        let result = self.programs[0].test_run(&TestRun::on(packet), &mut data, &mut []);
        let result = result.map_err(|errno| format!("the kernel's test run: {errno}"))?;
        data.truncate(result.data_len);
        match result.retval == ours.r0 as u32 && data == ours.data {
            true => Ok(()),
            false => Err(format!(
                "{ours:?}, in the kernel {} {data:02x?}",
                result.retval
            )),
        }
    }

    /// Waits until the functions of timers left what they leave here in the map of timers.
    pub(super) fn await_timers(&self, program: &Program, ours: &Contents) -> Result<(), String> {
        let Some(map) = self.resources.map(TIMED as usize) else {
            return Err("no map of timers".into());
        };
        let begin = Instant::now();
        loop {
            let theirs = maps::timed_in_kernel(program, map);
            if theirs == *ours {
                return Ok(());
            }
            if begin.elapsed() > TIMERS {
                return Err(format!("timers: {ours:?}, in the kernel {theirs:?}"));
            }
            thread::sleep(Duration::from_micros(50));
        }
    }

    /// Compares what the maps hold in the end.
    pub(super) fn compare_maps(
        &self,
        program: &Program,
        ours: &[Option<Contents>],
    ) -> Result<(), String> {
        let found = maps::contents_in_kernel(program, |at| self.resources.map(at));
        let found = found.map_err(|errno| format!("a ring buffer: {errno}"))?;
        let mut both = ours.iter().zip(&found).filter(|(_, it)| it.is_some());
        match both.find(|(ours, theirs)| ours != theirs) {
            Some((ours, theirs)) => Err(format!("maps: {ours:?}, in the kernel {theirs:?}")),
            None => Ok(()),
        }
    }
}

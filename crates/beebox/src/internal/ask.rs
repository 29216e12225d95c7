//! Asks another kernel: boots it under QEMU, without KVM and without root, and hands it programs.
//!
//! Programs are linked outside, for a description of that kernel. What goes in is the plan of calls of
//! bpf(2) with their attributes (`plan`), which a static program of a few kilobytes executes as the
//! first process (`sys::guest::LOADER`): the kernel boots to it and to nothing else, so that the time is
//! that of the boot and of the verifications. Answers come back through a port that QEMU writes to a
//! file, and the loader ends the machine.

mod answer;
mod compare;
mod image;
mod machine;
mod output;
mod plan;

use std::path::Path;
use std::time::Duration;

use program::Program;
use spec::Kernel;
use spec::kernel::{Release, Source};

pub use answer::GuestAnswer;
pub use compare::Asked;
pub use image::{image_in, image_version};
pub use machine::AskError;
pub use output::{records, text};
pub use plan::NotAsked;

/// How a kernel is asked.
#[derive(Clone, Copy, Debug)]
pub struct AskOptions {
    /// Log level: 0 for the reason and the counts alone.
    pub log_level: u32,
    /// Time until the machine is stopped.
    pub limit: Duration,
    /// Memory of the machine in MiB.
    pub memory: u32,
}

/// Processors of the machine.
const PROCESSORS: u32 = 1;

impl AskOptions {
    /// A kernel as it is in the machine, whose memory and processors decide some answers.
    pub fn in_machine(&self, kernel: Kernel) -> Kernel {
        kernel
            .with_memory(u64::from(self.memory) << 20, Source::Given)
            .with_cpus(PROCESSORS, Source::Given)
    }
}

impl Default for AskOptions {
    fn default() -> AskOptions {
        AskOptions {
            log_level: 0,
            limit: Duration::from_secs(600),
            memory: 2048,
        }
    }
}

/// The answers of the kernel of an image about programs, in their order; of some the reason why they
/// are not asked.
///
/// # Errors
/// If there is no QEMU, or the kernel does not come to an end.
pub fn ask(
    image: &Path,
    programs: &[&Program],
    options: &AskOptions,
) -> Result<Vec<Result<GuestAnswer, NotAsked>>, AskError> {
    let version = image_version(image).ok().flatten();
    let (plan, questions) = plan::make(programs, version.map(Release::from), options);
    let output = machine::run(image, &plan, options)?;
    let mut answers = answer::read(&output, programs);
    let each = questions.into_iter().enumerate();
    Ok(each
        .map(|(at, question)| {
            question?;
            answers.remove(&(at as u32)).ok_or(NotAsked::NoAnswer)
        })
        .collect())
}

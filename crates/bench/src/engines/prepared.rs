//! One workload on every engine: made ready, raced, and its native code.

use std::array;
use std::fs;
use std::io;
use std::path::Path;

use interp::ThreadedProgram;
use isa::ebpf::{self, RawInsn};
use jit::memory::Pool;
use lower::MemoryProgram;
use spec::SplitMix;
use vm::{Machine, Outcome};

use super::checked::Checked;
use super::clang::{Clang, Native};
use super::kernel::Kernel;
use super::region::{CONTEXT, Region};
use super::solana::{Mode, Solana};
use super::workload::Workload;
use super::{
    CHECKED, COMPILED, INTERP, KERNEL, NATIVE, RBPF, RBPF_JIT, SOLANA, SOLANA_JIT, object,
    unchecked,
};
use crate::race::{NO_ANSWER, Race};
use crate::report::{Report, Unit};
use crate::{Failure, peer};

/// A workload, ready to run.
pub(super) struct Prepared<'w> {
    workload: &'w Workload,
    /// As engines that give it pointers take it, and the bytes of that.
    pub(super) program: Vec<RawInsn>,
    bytes: Vec<u8>,
    code: ThreadedProgram<MemoryProgram>,
    jit: jit::Native<MemoryProgram>,
    native: Option<Native>,
    kernel: Option<Kernel>,
}

impl<'w> Prepared<'w> {
    /// Prepares a workload for all engines; native code needs clang, and the kernel is
    /// included on request.
    pub(super) fn new(
        workload: &'w Workload,
        clang: Option<&Clang>,
        ask_kernel: bool,
        pool: &Pool,
    ) -> Result<Prepared<'w>, Failure> {
        let key = workload.key;
        let original = workload
            .program()
            .map_err(|unreadable| Failure::Unreadable(key, unreadable))?;
        let program = object::widened(&original);
        let lowered =
            unchecked::lowered(&program).map_err(|malformed| Failure::Malformed(key, malformed))?;
        let options = jit::Options::default();
        Ok(Prepared {
            code: ThreadedProgram::compile(&lowered)
                .map_err(|unsupported| Failure::Unsupported(key, unsupported))?,
            jit: jit::Native::compile(&lowered, &options, pool)
                .map_err(|error| Failure::NotCompiled(key, error))?,
            native: clang.map(|clang| clang.compile(workload)).transpose()?,
            kernel: ask_kernel
                .then(|| Kernel::load(key, &original, workload.input()))
                .transpose()?,
            bytes: ebpf::to_bytes(&program),
            program,
            workload,
        })
    }

    /// True if clang vectorised the workload.
    pub(super) fn is_vectorised(&self) -> bool {
        self.native.as_ref().is_some_and(|native| native.vectorised)
    }

    /// All engines against one another; native code comes first, which is taken
    /// to be right.
    pub(super) fn race(&self, samples: u32) -> Result<Vec<(&'static str, f64)>, Failure> {
        let unfit = |unfit| Failure::UnsupportedConstruct(self.workload.key, unfit);
        let input = self.workload.input();
        let (mut data, mut context) = (input.clone(), [0; CONTEXT]);
        let mut checked = Checked::new(&self.program, &mut data, &mut context);
        let compiled = peer::compiled(&self.bytes).map_err(unfit)?;
        let machine = peer::machine(&self.bytes).map_err(unfit)?;
        let solana = Solana::new(&self.bytes)
            .map_err(|said| Failure::RefusedBySolana(self.workload.key, said))?;
        let expected = checked
            .run()
            .outcome
            .map_or(NO_ANSWER, |value| value as u32);
        let mut places = [(SOLANA_JIT, Mode::Compiled), (SOLANA, Mode::Interpreted)]
            .map(|(name, mode)| (name, mode, solana.place(&input)));
        // Cut before the clock starts: finding their places takes longer than the
        // empty program.
        let mut regions = array::from_fn(|_| Region::new(&input));
        let [
            native_region,
            jit_region,
            interp_region,
            rbpf_jit_region,
            rbpf_region,
        ] = &mut regions;

        let mut race = Race::new(self.workload.title(), &[()]);
        if let Some(native) = &self.native {
            let memory = native_region.memory();
            race.add(COMPILED, move |_| unchecked::native(&native.entry, memory));
        }
        let memory = jit_region.memory();
        match self.jit.on_memory() {
            Some(code) => race.add(NATIVE, move |_| code.run(memory) as u32),
            None => {
                let mut random = SplitMix::new(0);
                race.add(
                    NATIVE,
                    on_memory(memory, move |machine, memory| {
                        self.jit.run(machine, memory, &mut random)
                    }),
                );
            }
        }
        let mut random = SplitMix::new(0);
        race.add(
            INTERP,
            on_memory(interp_region.memory(), move |machine, memory| {
                self.code.run(machine, memory, &mut random)
            }),
        );
        if let Some(kernel) = &self.kernel
            && !self.workload.is_empty()
        {
            race.add_contender(KERNEL, kernel);
        }
        if let Some(machine) = &compiled {
            let (context, data) = rbpf_jit_region.parts();
            race.add(RBPF_JIT, move |_| {
                unchecked::rbpf_jit(machine, context, data)
            });
        }
        race.add(CHECKED, move |_| {
            let outcome = checked.run().outcome;
            outcome.map_or(NO_ANSWER, |value| value as u32)
        });
        let (context, data) = rbpf_region.parts();
        race.add(RBPF, move |_| {
            machine
                .execute_program(data, context)
                .map_or(NO_ANSWER, |value| value as u32)
        });
        for (name, mode, place) in &mut places {
            if solana.gives(expected, &input, *mode) {
                let mut machine = solana.machine(place);
                race.add(name, move |_| machine.run(*mode));
            }
        }
        Ok(race.run(samples)?)
    }

    /// Number of executed instructions of a run.
    pub(super) fn executed(&self) -> u64 {
        let (mut data, mut context) = (self.workload.input(), [0; CONTEXT]);
        Checked::new(&self.program, &mut data, &mut context)
            .run()
            .executed
    }

    /// Adds how large the native code is.
    pub(super) fn measure_images(&self, report: &mut Report) -> Result<(), Failure> {
        for (engine, image) in self.images()? {
            let each = image.len() as f64 / self.program.len() as f64;
            report.add_row(self.workload.title(), engine, Unit::BytesPerInsn, each);
        }
        Ok(())
    }

    /// Writes native code where a disassembler finds it: machine code alone, and
    /// a shared object of clang's.
    pub(super) fn leave(&self, directory: &Path) -> Result<(), Failure> {
        let place = |what: &str| directory.join(format!("{}-{what}", self.workload.file));
        let images = self.images()?;
        let write = || -> io::Result<()> {
            fs::create_dir_all(directory)?;
            if let Some(native) = &self.native {
                fs::copy(&native.file, place("native.so"))?;
            }
            images
                .iter()
                .try_for_each(|(engine, image)| fs::write(place(&format!("{engine}.bin")), image))
        };
        write().map_err(|error| Failure::System("leaving native code", error))
    }

    fn images(&self) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
        let mut images = vec![(NATIVE, self.jit.image().to_vec())];
        if let Some(kernel) = &self.kernel {
            images.push((KERNEL, kernel.image()?));
        }
        Ok(images)
    }
}

/// One of our engines, with memory of its own.
fn on_memory<R>(memory: &mut [u8], mut run: R) -> impl FnMut(&()) -> u32 + use<'_, R>
where
    R: FnMut(&mut Machine, &mut [u8]) -> Outcome,
{
    let mut machine = Machine::new();
    move |_| match run(&mut machine, memory) {
        Outcome::Returned(value) => value as u32,
        Outcome::BudgetExhausted | Outcome::DeadlinePassed => NO_ANSWER,
    }
}

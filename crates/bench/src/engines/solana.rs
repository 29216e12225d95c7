//! solana-sbpf, given the programs that our own engines run.
//!
//! It runs a dialect of eBPF: of its versions the third has 32-bit jumps and
//! local calls as eBPF has them. That version extends the sign of what 32-bit
//! additions, subtractions and multiplications compute, where eBPF fills with
//! zeros. Where that matters to a program its answer differs, and solana-sbpf does
//! not race ([`Solana::gives`]).
//!
//! It is set as fast as it can be, as our own native code and rbpf's are: without
//! the translation of addresses (which is its check of memory), the count of
//! instructions, and the no-ops and blinded constants that it puts into the code
//! of untrusted programs. Blockchains that use it switch all of them on.

use std::ptr::NonNull;
use std::sync::Arc;

use solana_sbpf::elf::Executable;
use solana_sbpf::error::EbpfError;
use solana_sbpf::memory_region::MemoryMapping;
use solana_sbpf::program::{BuiltinProgram, FunctionRegistry, SBPFVersion};
use solana_sbpf::verifier::RequisiteVerifier;
use solana_sbpf::vm::{CallFrame, Config, ContextObject, EbpfVm, ExecutionMode};

use super::region::Region;
use super::unchecked;
use crate::race::NO_ANSWER;

/// The dialect whose jumps and calls are eBPF's.
const DIALECT: SBPFVersion = SBPFVersion::V3;

/// Address of the context, and of the end of the first frame.
const CONTEXT: usize = 1;
const FRAME: usize = 10;

/// The engine: interpreter or compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Compiled,
    Interpreted,
}

/// A program that it has checked and compiled.
pub(super) struct Solana {
    executable: Executable<Host>,
}

impl Solana {
    /// Hands it the bytes of a program; what it says if it refuses them.
    pub(super) fn new(program: &[u8]) -> Result<Solana, String> {
        let config = Config {
            enable_address_translation: false,
            enable_instruction_meter: false,
            noop_instruction_rate: 0,
            sanitize_user_provided_values: false,
            ..Config::default()
        };
        let loader = Arc::new(BuiltinProgram::new_loader(config));
        let functions = FunctionRegistry::default();
        let refused = |error: EbpfError| error.to_string();
        let executable =
            Executable::from_text_bytes(program, loader, DIALECT, functions).map_err(refused)?;
        executable.verify::<RequisiteVerifier>().map_err(refused)?;
        // Elsewhere it has no compiler, and runs of what was not compiled fail.
        #[cfg(all(target_arch = "x86_64", not(windows)))]
        executable.jit_compile().map_err(refused)?;
        Ok(Solana { executable })
    }

    /// True if the program returns this value for these data.
    pub(super) fn gives(&self, answer: u32, input: &[u8], mode: Mode) -> bool {
        self.machine(&mut self.place(input)).run(mode) == answer
    }

    /// A place for runs on these data.
    pub(super) fn place(&self, input: &[u8]) -> Place {
        Place {
            region: Region::new(input),
            stack: vec![0; self.executable.get_config().stack_size()],
            host: Host(unchecked::no_mapping(self.executable.get_config(), DIALECT)),
        }
    }

    /// A machine that runs the program in a place.
    pub(super) fn machine<'m>(&'m self, place: &'m mut Place) -> SolanaMachine<'m> {
        let config = self.executable.get_config();
        let loader = Arc::clone(self.executable.get_loader());
        let context = place.region.memory().as_mut_ptr().expose_provenance();
        let stack = place.stack.as_mut_ptr().expose_provenance();
        let mut machine = EbpfVm::new(loader, DIALECT, &mut place.host, config.stack_size());
        machine.registers[CONTEXT] = context as u64;
        machine.registers[FRAME] = (stack + config.stack_frame_size) as u64;
        SolanaMachine {
            executable: &self.executable,
            registers: machine.registers,
            frames: vec![CallFrame::default(); config.max_call_depth],
            machine,
        }
    }
}

/// The memory of runs.
pub(super) struct Place {
    region: Region,
    stack: Vec<u8>,
    host: Host,
}

/// A machine ready to run.
pub(super) struct SolanaMachine<'m> {
    executable: &'m Executable<Host>,
    machine: EbpfVm<'m, Host>,
    /// With which each run begins.
    registers: [u64; 12],
    /// Of the interpreter.
    frames: Vec<CallFrame>,
}

impl SolanaMachine<'_> {
    /// Runs the program. It is safe (see `unchecked`) and is given a place that
    /// nothing else uses as long as the machine is there.
    #[inline(always)]
    pub(super) fn run(&mut self, mode: Mode) -> u32 {
        let mut mode = match mode {
            Mode::Compiled => ExecutionMode::Jit,
            Mode::Interpreted => ExecutionMode::Interpreted,
        };
        self.machine.registers = self.registers;
        let (_, result) =
            self.machine
                .execute_program(self.executable, &mut mode, &mut self.frames);
        Result::from(result).map_or(NO_ANSWER, |value: u64| value as u32)
    }
}

/// solana-sbpf's host interface, without instruction counting.
pub(super) struct Host(MemoryMapping);

impl ContextObject for Host {
    fn consume(&mut self, _: u64) {}

    fn get_remaining(&self) -> u64 {
        u64::MAX / 2
    }

    fn active_mapping_ptr(&mut self) -> NonNull<MemoryMapping> {
        NonNull::from_mut(&mut self.0)
    }
}

#[cfg(all(test, target_arch = "x86_64", not(windows)))]
mod tests {
    use isa::ebpf;

    use super::*;
    use crate::engines::checked::Checked;
    use crate::engines::object::widened;
    use crate::engines::region::CONTEXT;
    use crate::engines::workload::WORKLOADS;

    #[test]
    fn it_computes_what_we_compute_where_no_sign_matters() {
        let mut others = Vec::new();
        for workload in WORKLOADS {
            let program = widened(&workload.program().expect("a program"));
            let (mut data, mut context) = (workload.input(), [0; CONTEXT]);
            let finish = Checked::new(&program, &mut data, &mut context).run();
            let answer = finish.outcome.expect("a workload ends well") as u32;
            let solana = Solana::new(&ebpf::to_bytes(&program)).expect("it takes it");
            let [compiled, interpreted] = [Mode::Compiled, Mode::Interpreted]
                .map(|mode| solana.gives(answer, &workload.input(), mode));
            assert_eq!(compiled, interpreted, "{}", workload.key);
            if !compiled {
                others.push(workload.key);
            }
        }
        // It multiplies a sum of 32 bits as a 64-bit number.
        assert_eq!(others, ["W3a"]);
    }
}

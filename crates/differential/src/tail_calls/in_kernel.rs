//! A chain in the running kernel.

use std::time::Duration;

use isa::ebpf::PseudoLoad;
use spec::programs::ProgramType;
use sys::Errno;
use sys::bpf::{BtfObject, LoadedProgram, Map, MapRequest, ProgLoad, TestRun};

use super::{Code, Left, maps};
use crate::registry::fields::with_callback;

/// A chain in the running kernel.
#[derive(Debug)]
pub struct InKernel {
    programs: Vec<LoadedProgram>,
    array: Map,
    counter: Map,
}

impl InKernel {
    /// Loads the programs; none is in the array.
    ///
    /// # Errors
    /// The kernel's, with its reason on standard error if it is one of the verifier.
    pub fn load(codes: &[Code]) -> Result<InKernel, Errno> {
        let [array, counter] = maps().map(|params| {
            Map::create(&MapRequest {
                map_type: params.map_type,
                key_size: params.key_size,
                value_size: params.value_size,
                max_entries: params.max_entries,
                ..MapRequest::default()
            })
        });
        let maps = [array?, counter?];
        let (blob, [main, callee]) = with_callback();
        let btf = BtfObject::load(&blob)?;
        let mut programs = Vec::new();
        for code in codes {
            let mut slots = code.slots.clone();
            for slot in slots.iter_mut() {
                let source = match slot.pseudo_load() {
                    Some(PseudoLoad::MapIdx) => PseudoLoad::MapFd,
                    Some(PseudoLoad::MapIdxValue) => PseudoLoad::MapValue,
                    _ => continue,
                };
                slot.set_src(source.number());
                slot.imm = maps[slot.imm as usize].descriptor() as i32;
            }
            let types = [main].into_iter().chain(std::iter::repeat(callee));
            let functions = code.functions.iter().zip(types);
            let func_info: Vec<[u32; 2]> = functions.map(|(at, ty)| [*at, ty.0]).collect();
            let request = ProgLoad {
                btf: Some(&btf),
                func_info: &func_info,
                ..ProgLoad::new(ProgramType::SchedCls.number(), &slots)
            };
            let loaded = request.load().map_err(|refused| refused.errno);
            programs.push(loaded?.0);
        }
        let [array, counter] = maps;
        Ok(InKernel {
            programs,
            array,
            counter,
        })
    }

    /// Puts the program of that number into a slot, or empties the slot.
    pub fn set(&self, index: u32, program: Option<u32>) -> Result<(), i32> {
        let key = index.to_ne_bytes();
        let done = match program {
            Some(program) => {
                let descriptor = self.programs[program as usize].descriptor();
                self.array.update(&key, &descriptor.to_ne_bytes())
            }
            None => self.array.delete(&key),
        };
        done.map_err(|errno| errno.0)
    }

    /// Runs the first program.
    ///
    /// # Panics
    /// If the kernel refuses the run.
    pub fn run(&self) -> Left {
        let (retval, _) = self.run_repeated(1);
        let mut counter = [0; 8];
        let read = self.counter.lookup(&[0; 4], &mut counter);
        read.expect("the counter is there");
        Left {
            retval,
            counter: u64::from_le_bytes(counter),
        }
    }

    /// Runs the first program so many times; its last result and the mean time by the
    /// kernel's clock.
    ///
    /// # Panics
    /// If the kernel refuses the run.
    pub fn run_repeated(&self, rounds: u32) -> (u32, Duration) {
        let mut out = [0; 256];
        let request = TestRun {
            repeat: rounds,
            ..TestRun::on(&[0; 64])
        };
        let run = self.programs[0].test_run(&request, &mut out, &mut []);
        let run = run.expect("the kernel runs the program");
        (run.retval, run.duration)
    }
}

//! An object on all engines and in the running kernel, all of which have to agree.

use beebox::Engine;
use beebox::Kernel;
use beebox::internal::object::{Global, Object};
use beebox::internal::run::{LoadOptions, LoadedObject, RunError};
use kernel_client::object::ObjectInKernel;
use spec::programs::ProgramType;
use sys::bpf::{LoadedProgram, TestRun};

use super::{ENGINES, INTERP, NATIVE, file};

const WHAT: &str = "test runs of the kernel";

/// An object on all engines and, if it can be asked, in the kernel.
pub(crate) struct Three {
    pub(crate) native: LoadedObject,
    pub(crate) interp: LoadedObject,
    pub(crate) checked: LoadedObject,
    pub(crate) theirs: Option<ObjectInKernel>,
    globals: Vec<Global>,
}

impl Three {
    pub(crate) fn load(path: &str) -> Three {
        Three::load_for(path, &kernel_data::linux_6_18_minimal())
    }

    /// An object that is linked for a kernel.
    pub(crate) fn load_for(path: &str, kernel: &Kernel) -> Three {
        let bytes = std::fs::read(file(path)).expect("a committed object");
        let object = Object::open(&bytes).expect("an object");
        let linked = object.link(kernel).expect("it links");
        let programs = linked.programs.iter().map(|linked| &linked.program);
        let theirs = oracle::found(WHAT, ObjectInKernel::load(programs));
        let ours = |engine| {
            let options = LoadOptions {
                engine,
                ..LoadOptions::default()
            };
            let loaded = LoadedObject::load(&object, kernel, &options);
            loaded.unwrap_or_else(|error| panic!("{path}: {error}"))
        };
        Three {
            native: ours(NATIVE),
            interp: ours(INTERP),
            checked: ours(Engine::Checked),
            theirs,
            globals: object.globals().collect(),
        }
    }

    /// Changes a slot everywhere.
    pub(crate) fn set(&self, array: &str, index: u32, program: Option<&str>) {
        let done = self.native.set_tail_call(array, index, program);
        for ours in [&self.interp, &self.checked] {
            assert_eq!(ours.set_tail_call(array, index, program), done);
        }
        if let Some(theirs) = &self.theirs {
            let kernels = theirs.set_tail_call(array, index, program);
            assert_eq!(done.map_err(|errno| errno.0), kernels, "{array} {index}");
        }
    }

    /// Runs a program everywhere on a packet and a context, either empty for none. The result,
    /// or the error number; what comes out is the same everywhere too.
    pub(crate) fn run_on(&mut self, name: &str, packet: &[u8], context: &[u8]) -> Result<u32, i32> {
        self.run_in(ENGINES, name, packet, context)
    }

    /// As [`Three::run_on`], of a program that only the checked engine supports.
    pub(crate) fn run_checked_on(
        &mut self,
        name: &str,
        packet: &[u8],
        context: &[u8],
    ) -> Result<u32, i32> {
        self.run_in([Engine::Checked; 3], name, packet, context)
    }

    fn run_in(
        &mut self,
        expected: [Engine; 3],
        name: &str,
        packet: &[u8],
        context: &[u8],
    ) -> Result<u32, i32> {
        let kind = self.native.program(name).expect(name).kind();
        let ours = [&mut self.native, &mut self.interp, &mut self.checked];
        let [native, interp, checked] = ours.map(|loaded| {
            let mut program = loaded.program(name).expect(name);
            let given = (!context.is_empty()).then_some(context);
            let run = program.test_run_with_context(packet, given, repeat(kind));
            let run = run.map(|run| {
                // Without a context none is returned.
                let context_out = match context {
                    [] => Vec::new(),
                    _ => run.ctx_out,
                };
                (run.retval, run.data_out, context_out)
            });
            let why = program
                .fallback_reason()
                .map(ToString::to_string)
                .unwrap_or_default();
            (program.engine(), run.map_err(|error| errno(&error)), why)
        });
        let engines = [native.0, interp.0, checked.0];
        let (why, about) = (native.2, format!("{name} on {packet:02x?}, {context:02x?}"));
        assert_eq!(engines, expected, "{name}: {why}");
        let (own, checked) = (native.1, checked.1);
        assert_eq!(
            own, interp.1,
            "{about}: native code, the threaded interpreter"
        );
        assert_eq!(own, checked, "{about}: native code, the checked engine");
        if let Some(theirs) = &self.theirs {
            let program = theirs.program(name).expect(name);
            let theirs = in_kernel(program, kind, packet, context);
            assert_eq!(own, theirs, "{about}: native code, the kernel");
        }
        own.map(|(retval, ..)| retval)
    }

    /// A variable, which is the same everywhere.
    pub(crate) fn number(&self, name: &str) -> u64 {
        let own = self.native.global::<u64>(name).expect(name);
        for ours in [&self.interp, &self.checked] {
            assert_eq!(ours.global::<u64>(name).expect(name), own, "{name}");
        }
        if let Some(theirs) = &self.theirs {
            let (map, place) = self.place(name);
            let map = theirs.map_at(map).expect(name);
            let mut value = vec![0; map.value_len()];
            map.lookup(&[0; 4], &mut value).expect(name);
            let bytes = value[place..place + 8].try_into().expect("8 bytes");
            assert_eq!(u64::from_le_bytes(bytes), own, "{name}: the kernel");
        }
        own
    }

    /// Index of the map that holds a variable, and the variable's offset.
    fn place(&self, name: &str) -> (usize, usize) {
        let global = self.globals.iter().find(|global| global.name == name);
        let global = global.expect(name);
        (global.map.0 as usize, global.offset as usize)
    }

    /// Sets a variable of 4 bytes everywhere.
    pub(crate) fn set_number(&self, name: &str, number: u32) {
        for ours in [&self.native, &self.interp, &self.checked] {
            ours.set_global(name, &number).expect(name);
        }
        self.set_kernels(name, &number.to_le_bytes());
    }

    /// Sets a variable of 8 bytes everywhere.
    pub(crate) fn set_word(&self, name: &str, number: u64) {
        for ours in [&self.native, &self.interp, &self.checked] {
            ours.set_global(name, &number).expect(name);
        }
        self.set_kernels(name, &number.to_le_bytes());
    }

    fn set_kernels(&self, name: &str, bytes: &[u8]) {
        if let Some(theirs) = &self.theirs {
            let (map, place) = self.place(name);
            let map = theirs.map_at(map).expect(name);
            let mut value = vec![0; map.value_len()];
            map.lookup(&[0; 4], &mut value).expect(name);
            value[place..place + bytes.len()].copy_from_slice(bytes);
            map.update(&[0; 4], &value).expect(name);
        }
    }

    /// The bytes from a variable on to the end of its map in the kernel.
    pub(crate) fn kernels_bytes(&self, name: &str) -> Option<Vec<u8>> {
        let theirs = self.theirs.as_ref()?;
        let (map, place) = self.place(name);
        let map = theirs.map_at(map).expect(name);
        let mut value = vec![0; map.value_len()];
        map.lookup(&[0; 4], &mut value).expect(name);
        Some(value.split_off(place))
    }
}

/// Number of runs: of flow dissectors, whose packets do not change, several.
fn repeat(kind: ProgramType) -> u32 {
    match kind {
        ProgramType::FlowDissector => 3,
        _ => 1,
    }
}

/// The result of a test run, its data and its context; or the error number.
type Run = Result<(u32, Vec<u8>, Vec<u8>), i32>;

fn in_kernel(program: &LoadedProgram, kind: ProgramType, packet: &[u8], context: &[u8]) -> Run {
    let (mut data, mut out) = (vec![0; 1 << 16], vec![0; 256]);
    let run = TestRun {
        context,
        repeat: repeat(kind),
        ..TestRun::on(packet)
    };
    let mut in_place = context.to_vec();
    let run = match kind {
        ProgramType::Syscall => {
            data.clear();
            let run = program.test_run_in_place(&mut in_place);
            out = in_place;
            run
        }
        ProgramType::RawTracepoint => {
            data.clear();
            out.clear();
            program.test_run(&TestRun { repeat: 0, ..run }, &mut [], &mut [])
        }
        ProgramType::SkLookup => {
            data.clear();
            program.test_run(&run, &mut [], &mut out)
        }
        // Nothing is written there.
        ProgramType::Netfilter => {
            out.clear();
            program.test_run(&run, &mut data, &mut [])
        }
        _ => {
            out.truncate(if context.is_empty() { 0 } else { out.len() });
            program.test_run(&run, &mut data, &mut out)
        }
    };
    let run = run.map_err(|errno| errno.0)?;
    data.truncate(run.data_len);
    out.truncate(match kind {
        ProgramType::Syscall => context.len(),
        _ => run.context_len,
    });
    Ok((run.retval, data, out))
}

fn errno(error: &RunError) -> i32 {
    match error {
        RunError::Size { errno, .. } | RunError::Context { errno, .. } => errno.0,
        other => panic!("{other}"),
    }
}

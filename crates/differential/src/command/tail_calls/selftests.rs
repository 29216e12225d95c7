//! `cargo differential compare tail-calls`: the kernel's own tests of tail calls, as native code in two
//! forms, in the checked engine and in the running kernel.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::fs;

use beebox::Engine;
use beebox::internal::object::{Global, Object};
use beebox::internal::run::{LoadError, LoadOptions, LoadedObject};
use beebox_differential::objects::selftests::{SETS, Set};
use beebox_differential::tail_calls::selftests::{ARRAY, LEFT_OUT, SELFTESTS, Selftest, Step};
use kernel_client::object::ObjectInKernel;
use spec::Errno;
use sys::bpf::TestRun;

use crate::command::Outcome;
use beebox_differential::page;

const PAGE: &str = "docs/tail-calls.md";

/// What runs the tests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    Ours(Engine),
    /// Native code with retpolines, slots at entries and deadline checks.
    Guarded,
    Kernel,
}

const SETTINGS: [(Setting, &str); 5] = [
    (Setting::Ours(Engine::Native), "native code"),
    (Setting::Guarded, "with retpolines, slots and deadlines"),
    (Setting::Ours(Engine::Interp), "threaded interpreter"),
    (Setting::Ours(Engine::Checked), "checked engine"),
    (Setting::Kernel, "running kernel"),
];

/// Runs all tests, prints which fail, and writes the table.
pub(crate) fn compare() -> Outcome {
    let mut table = String::from("| tests |");
    for (_, name) in SETTINGS {
        write!(table, " {name} |")?;
    }
    table += "\n|---|---:|---:|---:|---:|\n";
    let mut failures = 0;
    for set in SETS {
        let mut passed = [0; SETTINGS.len()];
        let mut unsupported = [0; SETTINGS.len()];
        let mut there = 0;
        for test in SELFTESTS {
            let Some(bytes) = object_of(set, test.object)? else {
                continue;
            };
            there += 1;
            let counts = passed.iter_mut().zip(&mut unsupported);
            for ((setting, name), (passed, unsupported)) in SETTINGS.into_iter().zip(counts) {
                let why = match run(test, &bytes, setting) {
                    Ok(()) => {
                        *passed += 1;
                        continue;
                    }
                    Err(why) => why,
                };
                match why.is::<Unsupported>() {
                    true => *unsupported += 1,
                    false => failures += 1,
                }
                println!("{}, {}, {name}: {why}", set.title(), test.name);
            }
        }
        write!(table, "| {} |", set.title())?;
        for (passed, unsupported) in passed.into_iter().zip(unsupported) {
            write!(table, " {passed} of {there}")?;
            if unsupported > 0 {
                write!(table, ", {unsupported} unsupported")?;
            }
            table += " |";
        }
        table.push('\n');
    }
    table += "\nLeft out:\n\n| tests | what they need |\n|---|---|\n";
    for (tests, why) in LEFT_OUT {
        writeln!(table, "| {tests} | {why} |")?;
    }
    println!("{table}");
    match failures {
        0 => page::write_part(PAGE, "selftests", &table),
        _ => Err(format!("{failures} runs of tests fail").into()),
    }
}

/// A program that the verifier does not support, with the reason.
#[derive(Debug)]
struct Unsupported(String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Unsupported {}

/// The object of this name in a set, if it is there.
fn object_of(set: &Set, name: &str) -> Outcome<Option<Vec<u8>>> {
    let file = format!("{name}.bpf.o");
    let mut objects = set.objects()?.into_iter();
    let found = objects.find(|path| path.file_name().is_some_and(|of| *of == *file));
    Ok(found.map(fs::read).transpose()?)
}

/// Runs a test on an engine; what is otherwise than expected.
fn run(test: &Selftest, bytes: &[u8], setting: Setting) -> Outcome {
    let refused = |step: &Step| match *step {
        Step::IsRefused(program, why) => Some((program, why)),
        _ => None,
    };
    for (program, why) in test.steps.iter().filter_map(refused) {
        let said = match Subject::load(bytes, setting, Some(program)) {
            Err(said) if said.is::<Unsupported>() => return Err(said),
            Err(said) => said.to_string(),
            Ok(_) => return Err(format!("{program} is not refused").into()),
        };
        if !said.contains(why) {
            return Err(format!("{program}: {said}").into());
        }
    }
    if test.steps.iter().all(|step| refused(step).is_some()) {
        return Ok(());
    }
    let mut subject = Subject::load(bytes, setting, None)?;
    for (at, step) in test.steps.iter().enumerate() {
        subject
            .take(step)
            .map_err(|why| format!("step {at}, {step:?}: {why}"))?;
    }
    Ok(())
}

/// A loaded object.
struct Subject {
    sides: Side,
    globals: Vec<Global>,
}

enum Side {
    Ours(Box<LoadedObject>),
    Kernel(Box<ObjectInKernel>),
}

impl Subject {
    /// Loads all programs, or one.
    fn load(bytes: &[u8], setting: Setting, only: Option<&str>) -> Outcome<Subject> {
        let mut object = Object::open(bytes)?;
        if let Some(only) = only {
            object.set_autoload(|program| program.name == only);
        }
        let sides = match setting {
            Setting::Kernel => {
                let kernel = sys::kernel::running()?;
                let linked = object.link(&kernel)?;
                let programs = linked.programs.iter().map(|linked| &linked.program);
                Side::Kernel(Box::new(ObjectInKernel::load(programs)?))
            }
            Setting::Ours(_) | Setting::Guarded => {
                let kernel = kernel_data::linux_6_18_minimal();
                let is_guarded = setting == Setting::Guarded;
                let options = LoadOptions {
                    engine: match setting {
                        Setting::Ours(engine) => engine,
                        _ => Engine::Native,
                    },
                    retpoline: is_guarded,
                    entry_slots: is_guarded,
                    checks_deadline: is_guarded,
                    ..LoadOptions::default()
                };
                let loaded = LoadedObject::load(&object, &kernel, &options);
                Side::Ours(Box::new(loaded.map_err(|error| match error {
                    LoadError::Refused { refusal, .. } => Box::from(refusal.message()),
                    LoadError::Unsupported { .. } => {
                        Box::<dyn Error>::from(Unsupported(error.to_string()))
                    }
                    other => Box::from(other),
                })?))
            }
        };
        Ok(Subject {
            sides,
            globals: object.globals().collect(),
        })
    }

    fn take(&mut self, step: &Step) -> Outcome {
        match *step {
            Step::Fill(slots) => {
                for slot in 0..slots {
                    let program = format!("classifier_{slot}");
                    self.set(slot, Some(&program)).map_err(errno)?;
                }
                Ok(())
            }
            Step::Set(slot, program) => Ok(self.set(slot, program).map_err(errno)?),
            Step::IsEmpty(slot) => match self.set(slot, None) {
                Err(found) if found == Errno::ENOENT.0 => Ok(()),
                other => Err(format!("{other:?}").into()),
            },
            Step::Run(program, frame, expected) => {
                let found = self.run(program, &frame.bytes())?;
                is_equal(found as i32, expected as i32)
            }
            Step::SetGlobal(name, value) => self.set_global(name, value),
            Step::Global(name, expected) => is_equal(self.global(name)?, expected),
            // Of another load.
            Step::IsRefused(..) => Ok(()),
        }
    }

    fn set(&self, slot: u32, program: Option<&str>) -> Result<(), i32> {
        match &self.sides {
            Side::Ours(ours) => {
                let set = ours.set_tail_call(ARRAY, slot, program);
                set.map_err(|errno| errno.0)
            }
            Side::Kernel(theirs) => theirs.set_tail_call(ARRAY, slot, program),
        }
    }

    fn run(&mut self, name: &str, frame: &[u8]) -> Outcome<u32> {
        match &mut self.sides {
            Side::Ours(ours) => {
                let mut program = ours.program(name).ok_or("no such program")?;
                if let Some(why) = program.fallback_reason() {
                    return Err(format!("no native code: {why}").into());
                }
                Ok(program.test_run(frame)?.retval)
            }
            Side::Kernel(theirs) => {
                let program = theirs.program(name).ok_or("no such program")?;
                let mut out = vec![0; frame.len()];
                let run = program.test_run(&TestRun::on(frame), &mut out, &mut []);
                Ok(run.map_err(|refused| errno(refused.0))?.retval)
            }
        }
    }

    /// The value of the map that holds a variable, and the variable's offset.
    fn in_kernel(&self, name: &str) -> Outcome<(Vec<u8>, usize)> {
        let mut globals = self.globals.iter();
        let global = globals.find(|global| global.name == name);
        let global = global.ok_or("no such variable")?;
        let Side::Kernel(theirs) = &self.sides else {
            return Err("the object is not in the kernel".into());
        };
        let map = theirs.map_at(global.map.0 as usize).ok_or("no such map")?;
        let mut value = vec![0; map.value_len()];
        map.lookup(&[0; 4], &mut value)
            .map_err(|refused| errno(refused.0))?;
        Ok((value, global.offset as usize))
    }

    fn global(&self, name: &str) -> Outcome<i32> {
        match &self.sides {
            Side::Ours(ours) => Ok(ours.global::<u32>(name)? as i32),
            Side::Kernel(_) => {
                let (value, at) = self.in_kernel(name)?;
                Ok(i32::from_le_bytes(value[at..at + 4].try_into()?))
            }
        }
    }

    fn set_global(&self, name: &str, number: i32) -> Outcome {
        match &self.sides {
            Side::Ours(ours) => Ok(ours.set_global(name, &(number as u32))?),
            Side::Kernel(theirs) => {
                let (mut value, at) = self.in_kernel(name)?;
                value[at..at + 4].copy_from_slice(&number.to_le_bytes());
                let global = self.globals.iter().find(|global| global.name == name);
                let map = global.and_then(|global| theirs.map_at(global.map.0 as usize));
                let map = map.ok_or("no such map")?;
                Ok(map
                    .update(&[0; 4], &value)
                    .map_err(|refused| errno(refused.0))?)
            }
        }
    }
}

fn errno(number: i32) -> String {
    format!("errno {number}")
}

fn is_equal(found: i32, expected: i32) -> Outcome {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{found} instead of {expected}").into()),
    }
}

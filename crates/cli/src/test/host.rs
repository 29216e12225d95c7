//! The objects of tests, and what is said of them.

use beebox::internal::loading::Guess;
use beebox::internal::test_files::{TestFault, TestFile, TestHost};

use crate::answer::Failure;
use crate::input::name;
use crate::loading::{failure, load_failure, note_guessed};
use crate::object_input::{ObjectFile, refused_beside};
use crate::run::expect;

/// Objects in the files that tests name.
pub(super) struct Objects;

impl TestHost for Objects {
    type Error = Failure;

    fn read(&self, file: &TestFile) -> Result<Vec<u8>, Failure> {
        let read = ObjectFile::read(&file.object);
        let read = read.map_err(|failure| failure.within(file.path.display()))?;
        Ok(read.into_bytes())
    }

    fn fault(&self, file: &TestFile, fault: TestFault) -> Failure {
        let (path, object) = (file.path.display(), file.object.display());
        match fault {
            TestFault::NoObject => {
                Failure::new(format_args!("{object}: this file is not a BPF object")).within(path)
            }
            TestFault::Open(error) => refused_beside(error, None, &file.object, &[]),
            TestFault::Loading(error) => failure(error).within(object),
            TestFault::NoProgram { line, name, known } => {
                let what = format_args!("{object} has no program {name:?}");
                let failure = Failure::new(what).within(format_args!("{path}:{line}"));
                failure.hint(format_args!("run with one of {}", known.join(", ")))
            }
            TestFault::Load(error) => load_failure(error, &object.to_string()),
            TestFault::PerfBuffers(errno) => {
                Failure::new(format_args!("{object}: perf buffers: {errno}"))
            }
            TestFault::Expect(test, error) => {
                expect::failure(*error).within(format_args!("test {test:?}"))
            }
        }
    }

    fn guessed(&self, file: &TestFile, guess: &Guess) {
        note_guessed(guess, &name(&file.object));
    }
}

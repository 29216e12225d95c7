//! The matrix of an object, for programs that embed the library.

use report::veristat::{Filters, ResultVerdict};
use spec::programs::LoadFlags;
use verifier::Options;

use super::super::results::{FileContents, FileFault, Files, Job, Logs};
use super::{ProgramAnswers, verify_files};
use crate::failure::{Cause, Error};
use crate::internal::loading::ObjectLoading;
use crate::{Kernel, Object};

/// The answers of several kernels about a program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProgramMatrix {
    /// Its name.
    pub name: String,
    /// An answer for each kernel, in their order.
    pub answers: Vec<KernelVerdict>,
}

/// The answer of a kernel about a program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KernelVerdict {
    /// True if the kernel takes the program, false if it refuses it; `None` if nothing is known: the
    /// program cannot be linked, or uses what is not supported.
    pub is_accepted: Option<bool>,
    /// Processed instructions.
    pub insns: u64,
    /// States that were kept.
    pub states: u64,
    /// Why the kernel does not take it: the last line of its log.
    pub reason: String,
    /// What decides that, if another of the kernels takes the program: names of behaviours of the
    /// verifier, helpers, kfuncs, map kinds, types or fields.
    pub decided_by: Vec<String>,
}

impl ProgramMatrix {
    /// The first kernel that takes it, by index.
    pub fn first(&self) -> Option<usize> {
        self.answers
            .iter()
            .position(|answer| answer.is_accepted == Some(true))
    }

    /// The last kernel that takes it, by index.
    pub fn last(&self) -> Option<usize> {
        self.answers
            .iter()
            .rposition(|answer| answer.is_accepted == Some(true))
    }

    /// True if every kernel takes it.
    pub fn is_taken_by_all(&self) -> bool {
        self.answers
            .iter()
            .all(|answer| answer.is_accepted == Some(true))
    }
}

impl Object {
    /// Verifies its programs for several kernels, each loaded alone. Kernels are best given oldest first:
    /// what decides a refusal is searched beside the next kernel that takes the program, else the last
    /// before it.
    #[cfg_attr(
        feature = "kernel-data",
        doc = r#"
```
use beebox::kernel::Kernels as _;
use beebox::{Kernel, Object};

let object = Object::open("../../examples/packets/firewall.bpf.o")?;
for program in object.verify_matrix(&Kernel::all_lts())? {
    assert!(program.is_taken_by_all(), "{:?}", program.answers);
}
# Ok::<(), beebox::Error>(())
```
"#
    )]
    ///
    /// # Errors
    /// If the object cannot be opened, or a kernel has no registry.
    pub fn verify_matrix(&self, kernels: &[Kernel]) -> Result<Vec<ProgramMatrix>, Error> {
        let files = OneObject {
            object: self,
            names: [self.place().to_owned()],
        };
        let filters = Filters::default();
        let job = Job {
            programs: &[],
            filters: &filters,
            flags: LoadFlags::default(),
            test_tags: false,
            options: Options::default(),
            explains: false,
            loading: ObjectLoading::default(),
            target: None,
            logs: Logs::new(0, None, None),
            threads: 1,
        };
        let matrix = verify_files(&files, &job, kernels, &|_| true).ok_or(Cause::NoRegistry)?;
        match matrix.failures.into_iter().flatten().next() {
            Some(error) => Err(error),
            None => Ok(matrix.programs.into_iter().map(of_program).collect()),
        }
    }
}

fn of_program(program: ProgramAnswers) -> ProgramMatrix {
    let answers = program.cells.into_iter().map(|cell| {
        let Some(cell) = cell else {
            return KernelVerdict {
                is_accepted: None,
                insns: 0,
                states: 0,
                reason: String::new(),
                decided_by: Vec::new(),
            };
        };
        let deciders = cell.cause.into_iter().flat_map(|cause| cause.deciders);
        KernelVerdict {
            is_accepted: match cell.row.verdict {
                ResultVerdict::Success => Some(true),
                ResultVerdict::Failure => Some(false),
                ResultVerdict::Unsupported => None,
            },
            insns: cell.row.total_insns,
            states: cell.row.total_states,
            reason: cell.row.reason.trim().to_owned(),
            decided_by: deciders.map(|decider| decider.name).collect(),
        }
    });
    ProgramMatrix {
        name: program.name,
        answers: answers.collect(),
    }
}

/// An object in memory as the only file.
struct OneObject<'a> {
    object: &'a Object,
    names: [String; 1],
}

impl Files for OneObject<'_> {
    /// None for an object without programs.
    type Error = Option<Error>;

    fn names(&self) -> &[String] {
        &self.names
    }

    fn read(&self, _: usize) -> Result<FileContents, Self::Error> {
        Ok(FileContents::Object(self.object.bytes().to_vec()))
    }

    fn fault(&self, _: usize, fault: FileFault) -> Self::Error {
        match fault {
            FileFault::Object(error, _) => Some(Cause::Object(Box::new(error)).into()),
            // Nothing is set, and a map kind that is missing refuses programs of objects.
            FileFault::Loading(_) | FileFault::NoPrograms | FileFault::MapKind(_) => None,
        }
    }
}

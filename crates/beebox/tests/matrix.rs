//! Verdicts of several kernels beside each other, as data.

use std::fs;
use std::path::Path;

use beebox::internal::kernel::linux_6_18;
use beebox::internal::loading::ObjectLoading;
use beebox::internal::program::LoadFlags;
use beebox::internal::verify::matrix::{DeciderKind, Matrix, verify_files};
use beebox::internal::verify::results::{FileContents, FileFault, Files, Job, Logs};
use beebox::internal::verify::veristat::Filters;
use beebox::verify::Options;
use beebox::{Kernel, Object};
use program::Program;
use spec::kernel::Source;
use spec::programs::ProgramType;
use testkit::verifier::assembled;

/// A negated number has a range from 6.17 on.
const NEGATED: &str = "call 7\nr6 = r0\nr6 &= 7\nr6 = -r6\nr6 += 7\nr1 = r10\nr1 += -8\nr1 += r6\n\
                       r2 = 0\n*(u8 *)(r1 + 0) = r2\nr0 = 2\nexit";
const PLAIN: &str = "r0 = 2\nexit";

/// A program as the only file.
struct One(&'static str, [String; 1]);

impl Files for One {
    type Error = String;

    fn names(&self) -> &[String] {
        &self.1
    }

    fn read(&self, _: usize) -> Result<FileContents, String> {
        let program = Program::builder(ProgramType::Xdp, assembled(self.0).unwrap());
        let program = program.license("GPL").build().unwrap();
        Ok(FileContents::Program(Box::new(program), Vec::new()))
    }

    fn fault(&self, _: usize, fault: FileFault) -> String {
        fault.to_string()
    }
}

/// The built-in kernel with the rules of a version.
fn of(version: &str) -> Kernel {
    linux_6_18().with_version(version.parse().unwrap(), Source::Given)
}

fn answers(text: &'static str, kernels: &[Kernel]) -> Matrix<String> {
    let filters = Filters::default();
    let job = Job {
        programs: &[],
        filters: &filters,
        flags: LoadFlags::default(),
        test_tags: false,
        options: Options::default(),
        explains: true,
        loading: ObjectLoading::default(),
        target: None,
        logs: Logs::new(0, None, None),
        threads: 1,
    };
    verify_files(&One(text, ["one".to_owned()]), &job, kernels, &|_| true).unwrap()
}

#[oracle::test]
fn the_behaviour_that_decides_is_named() {
    let kernels = ["6.12.43", "6.12.117", "6.18.44"].map(of);
    let matrix = answers(NEGATED, &kernels);
    let program = &matrix.programs[0];
    assert_eq!(program.taken_by().text(|at| at.to_string()), "2 on");
    for at in 0..2 {
        let cause = program.cells[at].as_ref().unwrap().cause.as_ref().unwrap();
        assert_eq!((cause.accepting, cause.is_tried), (Some(2), true));
        let names: Vec<&str> = cause.deciders.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["NegatedRanges"]);
        assert_eq!(cause.deciders[0].kind, DeciderKind::Behaviour);
        assert_eq!(cause.deciders[0].since.unwrap().to_string(), "6.17");
    }
    let taken = answers(PLAIN, &kernels);
    let cells = taken.programs[0].cells.iter().flatten();
    assert!(cells.map(|cell| &cell.cause).all(Option::is_none));
}

#[oracle::test]
fn what_a_kernel_lacks_is_guarded_and_tried() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bits/bits.bpf.o");
    let object = Object::from_bytes(fs::read(path).unwrap()).unwrap();
    let kernels = [linux_6_18(), linux_6_18().with_bit_operations()];
    let programs = object.verify_matrix(&kernels).unwrap();
    assert!(!programs.is_empty());
    for program in &programs {
        let verdicts: Vec<_> = program
            .answers
            .iter()
            .map(|answer| answer.is_accepted)
            .collect();
        if verdicts == [Some(true); 2] {
            assert!(program.is_taken_by_all());
            continue;
        }
        assert_eq!(verdicts, [Some(false), Some(true)], "{program:?}");
        assert_eq!((program.first(), program.last()), (Some(1), Some(1)));
        let decided = &program.answers[0].decided_by;
        assert!(
            decided.iter().any(|name| name.starts_with("bpf_")),
            "{program:?}"
        );
    }
    assert!(programs.iter().any(|program| !program.is_taken_by_all()));
}

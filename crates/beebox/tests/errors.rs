//! Every error type of the library implements `Error`.

use std::error::Error;

use beebox::captures::{CaptureError, Input, Stop};
use beebox::{btf, kernel, object, program, raw, seccomp, text};

fn is_error<E: Error>() {}

/// A `main` that returns an error prints it by `Debug`.
#[test]
fn errors_are_printed_as_text_by_main() {
    let capture = Input::open_path("no/such.pcap").err().expect("no file");
    let told = capture.to_string();
    assert!(told.starts_with("no/such.pcap: No such file"), "{told}");
    let object = object::Object::open(b"").expect_err("no object");
    let program = text::read(b"", None).expect_err("no program");
    let errors: [&dyn Error; 3] = [&capture, &object, &program];
    for error in errors {
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}

#[test]
fn errors_implement_error() {
    is_error::<beebox::FilterError>();
    is_error::<beebox::JumpLimitExceeded>();
    is_error::<beebox::Refusal>();
    is_error::<beebox::UnknownEngine>();
    is_error::<text::ReadError>();
    is_error::<CaptureError>();
    is_error::<Stop>();
    is_error::<seccomp::TooComplex>();
    is_error::<seccomp::ExpectationError>();
    is_error::<seccomp::profile::ProfileError>();
    is_error::<seccomp::profile::CompileError>();
    is_error::<raw::ProgramReadError>();
    is_error::<raw::ElfError>();
    is_error::<raw::NoRoom>();
    is_error::<raw::Trap>();
    is_error::<raw::Reason>();
    is_error::<raw::CallFault>();
    is_error::<raw::BadAccess>();
    is_error::<object::Error>();
    is_error::<object::Problem>();
    is_error::<object::elf::ElfFault>();
    is_error::<object::AttachFault>();
    is_error::<object::BtfFault>();
    is_error::<object::ContainerFault>();
    is_error::<object::DatasecFault>();
    is_error::<object::ExternFault>();
    is_error::<object::LinkFault>();
    is_error::<object::MapFault>();
    is_error::<object::ProgramDefFault>();
    is_error::<object::ProgramFault>();
    is_error::<object::RelocationFault>();
    is_error::<object::SectionFault>();
    is_error::<object::StructOpsFault>();
    is_error::<program::InvalidProgram>();
    is_error::<btf::ParseError>();
    is_error::<btf::DumpError>();
    is_error::<btf::DedupError>();
    is_error::<<kernel::KernelVersion as std::str::FromStr>::Err>();
}

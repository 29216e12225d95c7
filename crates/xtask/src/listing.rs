//! Records how LLVM lists a compiled source, for machines without LLVM: there the
//! tests of the text of eBPF (`crates/isa/tests/ebpf_llvm.rs`) read the recording.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{self, Command};

use crate::Outcome;

/// The release whose listings are recorded.
const RELEASE: u32 = 19;
const SOURCE: &str = "every.c";
const RECORDING: &str = "objects.txt";

/// Processor versions that the source is compiled for.
const PROCESSORS: [&str; 4] = ["v1", "v2", "v3", "v4"];

/// Compiles the source for each processor version and writes how it is listed.
pub(crate) fn record() -> Outcome {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../isa/tests/llvm");
    let object = env::temp_dir().join(format!("beebox-listing-{}.o", process::id()));
    let mut text = format!(
        "# {SOURCE} compiled by clang {RELEASE} at -O2, as llvm-objdump lists it with\n\
         # `-d -z --no-print-imm-hex --mcpu=` each processor version.\n"
    );
    let mut add = |processor| -> Outcome {
        let mut clang = Command::new(format!("clang-{RELEASE}"));
        clang
            .current_dir(&directory)
            .args(["-O2", "-target", "bpf", "-Wall", "-Werror", "-c", SOURCE])
            .arg(format!("-mcpu={processor}"))
            .arg("-o")
            .arg(&object);
        said_by(&mut clang)?;
        let mut objdump = Command::new(format!("llvm-objdump-{RELEASE}"));
        objdump
            .args(["-d", "-z", "--no-print-imm-hex"])
            .arg(format!("--mcpu={processor}"))
            .arg(&object);
        text += &format!("# processor {processor}\n");
        for line in said_by(&mut objdump)?.lines() {
            let is_insn = line.contains('\t') && !line.contains("file format");
            if is_insn || line.starts_with("Disassembly") {
                text += &format!("{line}\n");
            }
        }
        Ok(())
    };
    let outcome = PROCESSORS.into_iter().try_for_each(&mut add);
    // It may not have come to be.
    let _ = fs::remove_file(&object);
    outcome?;
    fs::write(directory.join(RECORDING), text)?;
    Ok(())
}

/// Standard output of a program, if it succeeds.
fn said_by(command: &mut Command) -> Outcome<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{program}: {said}").into())
    }
}

//! The kernel's log form: what the verifier prints of every instruction that it
//! looks at, compared with what we print, on whole programs. It needs a kernel that
//! can be asked (root); elsewhere single slots are compared with what is recorded of
//! them (`isa`).

use isa::ebpf::{Callee, Insn, encode};
use kernel_client::kernel_release;
use spec::calls;
use spec::programs::ProgramType;
use std::collections::BTreeSet;
use sys::Errno;
use sys::bpf::{LogLevel, ProgLoad};
use testkit::ebpf::{Choices, Dialect, Entry, Generator};

const PROGRAMS: u64 = 400;
/// Bytes for a log of all that the verifier walks.
const LOG_BYTES: usize = 16 << 20;

/// The index of an instruction that a line of the log prints, and its text.
fn printed(line: &str) -> Option<(usize, &str)> {
    let (index, rest) = line.split_once(": (")?;
    let index = index.parse().ok()?;
    let text = &line[line.len() - rest.len() - 1..];
    let text = text.split(" ; ").next().unwrap_or(text);
    Some((index, text.trim_end()))
}

fn in_log_form(insn: Insn) -> String {
    let name = |callee| match callee {
        Callee::Helper(number) => calls::name(number),
        _ => None,
    };
    insn.kernel_form(&name).to_string()
}

#[oracle::test]
fn the_log_of_whole_programs_is_ours() {
    let what = "the kernel's log of whole programs";
    if oracle::found(what, kernel_release()).is_none() {
        return;
    }
    let generator = Generator::new(Dialect::Kernel);
    let (mut lines, mut rows) = (0, BTreeSet::new());
    for seed in 0..PROGRAMS {
        let program = generator.program(&mut Choices::from_seed(seed));
        let insns = program.code(Entry::Xdp);
        let slots = encode(&insns).expect("what is generated has an encoding");
        let request = ProgLoad {
            log_level: LogLevel::LEVEL2,
            log_size: LOG_BYTES,
            ..ProgLoad::new(ProgramType::Xdp.number(), &slots)
        };
        let log = match request.load() {
            Ok((_, log)) => log,
            Err(refused) if refused.errno == Errno::EPERM => {
                return oracle::skip(what, refused);
            }
            // The instructions before that are compared.
            Err(refused) => refused.log,
        };
        for (index, text) in log.lines().filter_map(printed) {
            let insn = insns[index];
            assert_eq!(in_log_form(insn), text, "seed {seed}, slot {index}");
            rows.extend(insn.row().map(|row| row.op));
            lines += 1;
        }
    }
    assert!(lines > 20_000, "{lines} lines");
    assert!(rows.len() > 120, "{} rows: {rows:?}", rows.len());
}

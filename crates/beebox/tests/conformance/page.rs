//! docs/conformance.md: each instruction, and how many cases of it each engine
//! gets right.

use expect_test::expect_file;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use isa::ebpf::table::ROWS;
use isa::ebpf::{Group, Op};

use super::engines::ENGINES;

/// What came of one case on one engine.
pub(crate) enum Verdict {
    Right,
    Wrong(String),
    /// The engine does not take the program.
    Refused,
    /// The case is a trap, and the engine does not check.
    NotAsked,
}

/// Counts for the page.
pub(crate) struct Page {
    counts: BTreeMap<(Op, &'static str), Count>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    right: usize,
    refused: usize,
}

impl Page {
    pub(crate) fn new() -> Page {
        Page {
            counts: BTreeMap::new(),
        }
    }

    /// Counts a case for the rows of the table that it is about.
    pub(crate) fn count(&mut self, engine: &'static str, ops: &[Op], verdict: &Verdict) {
        for op in ops {
            let count = self.counts.entry((*op, engine)).or_default();
            match verdict {
                Verdict::Right => count.right += 1,
                Verdict::Refused => count.refused += 1,
                Verdict::Wrong(_) | Verdict::NotAsked => {}
            }
        }
    }

    /// Every row of the table has cases, and the checked interpreter takes them
    /// all.
    pub(crate) fn check_coverage(&self) {
        for row in ROWS {
            let count = self.of(row.op, "checked");
            assert!(count.right >= 1, "{:?} has no case", row.op);
            assert_eq!(count.refused, 0, "{:?}", row.op);
        }
    }

    fn of(&self, op: Op, engine: &'static str) -> Count {
        self.counts.get(&(op, engine)).copied().unwrap_or_default()
    }

    /// Compares with the committed page, which `UPDATE_EXPECT=1` writes.
    pub(crate) fn compare(&self) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
        expect_file![path].assert_eq(&self.markdown());
    }

    fn markdown(&self) -> String {
        let mut page = String::from(HEAD);
        for (group, title) in GROUPS {
            let _ = write!(page, "\n## {title}\n\n| instruction | opcode |");
            for engine in ENGINES {
                let _ = write!(page, " {} |", engine.name);
            }
            page += "\n|---|---|";
            page += &"---|".repeat(ENGINES.len());
            page.push('\n');
            for row in ROWS.iter().filter(|row| row.group == *group) {
                let text = example(row.op).replace('|', "\\|");
                let _ = write!(page, "| `{text}` | {:#04x} |", row.code);
                for engine in ENGINES {
                    let Count { right, refused } = self.of(row.op, engine.name);
                    let _ = match (right, refused) {
                        (0, 0) => write!(page, " – |"),
                        (0, _) => write!(page, " refused |"),
                        (_, 0) => write!(page, " {right} |"),
                        _ => write!(page, " {right}, {refused} refused |"),
                    };
                }
                page.push('\n');
            }
        }
        page
    }
}

/// An instruction of the row, as text.
fn example(op: Op) -> String {
    let insn = isa::ebpf::Insn::decode_one(
        op.row().slot(1, 2, 4, 16),
        Some(isa::ebpf::RawInsn::default()),
    );
    insn.to_string()
}

const HEAD: &str = "\
# Conformance

For every instruction, the number of cases that each engine passes. A case is one
instruction with its operands and the expected registers and memory, or a small program.
Expected values come from arithmetic independent of Beebox and from the running kernel, as
the head of each file of cases states (`crates/beebox/tests/conformance`).

- **checked**, the checked interpreter, runs any program and checks every access
  (`beebox exec`). An operation that it must refuse, such as a call of an unknown
  kernel function, is a case too: the run must end there with a trap.
- **interp** and **native**, the threaded interpreter and native code, run programs whose
  safety the caller asserts. A dash: the only cases are traps, which these engines do not
  check. Refused: the engine does not support the instruction and refuses the program.

This page is written by `cargo xtask conformance`; a test compares it.

`conformance-plugin` of `crates/xtask` runs the public suite of
[bpf_conformance](https://github.com/Alan-Jowett/bpf_conformance): see CONTRIBUTING.md.
";

const GROUPS: &[(Group, &str)] = &[
    (Group::Base32, "base32 (RFC 9669)"),
    (Group::Base64, "base64 (RFC 9669)"),
    (Group::Divmul32, "divmul32 (RFC 9669)"),
    (Group::Divmul64, "divmul64 (RFC 9669)"),
    (Group::Atomic32, "atomic32 (RFC 9669)"),
    (Group::Atomic64, "atomic64 (RFC 9669)"),
    (Group::Packet, "packet (RFC 9669)"),
    (Group::Linux, "Linux beyond RFC 9669"),
    (Group::Later, "Later kernels"),
];

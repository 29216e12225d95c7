//! The kernel's own tests of tail calls: what their user space does, and what it expects.
//!
//! The table is written from the descriptions of the tests (`prog_tests/tailcalls.c` of Linux
//! 7.2): which slots are filled and emptied between runs, results, and global variables
//! afterwards.

/// A test on one object.
#[derive(Clone, Copy, Debug)]
pub struct Selftest {
    /// Name of the test.
    pub name: &'static str,
    /// Name of the object, without its suffix.
    pub object: &'static str,
    /// Steps, in order.
    pub steps: &'static [Step],
}

/// A step of a test.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Puts `classifier_N` into slot N of the array, for all slots below a number.
    Fill(u32),
    /// Puts a program into a slot, or empties the slot.
    Set(u32, Option<&'static str>),
    /// Emptying the slot fails with ENOENT.
    IsEmpty(u32),
    /// Runs a program, on a frame of zeros or of TCP; the result.
    Run(&'static str, Frame, u32),
    /// Sets a variable.
    SetGlobal(&'static str, i32),
    /// A variable has this value.
    Global(&'static str, i32),
    /// A program is refused, with this in the last line of the reason.
    IsRefused(&'static str, &'static str),
}

/// Frames of the tests.
#[derive(Clone, Copy, Debug)]
pub enum Frame {
    /// 128 bytes of zeros.
    Zeros,
    /// The headers of a TCP segment over IPv4, [`TCP_LEN`] bytes.
    Tcp,
}

/// Bytes of [`Frame::Tcp`].
pub const TCP_LEN: u32 = 54;

/// The name of the array that steps change.
pub const ARRAY: &str = "jmp_table";

impl Frame {
    /// The bytes.
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Frame::Zeros => vec![0; 128],
            Frame::Tcp => {
                let mut frame = vec![0; TCP_LEN as usize];
                frame[12] = 0x08;
                frame[14] = 0x45;
                frame[17] = 20;
                frame[23] = 6;
                frame[46] = 0x50;
                frame[53] = 123;
                frame
            }
        }
    }
}

use Frame::{Tcp, Zeros};
use Step::{Fill, Global, IsEmpty, IsRefused, Run, Set, SetGlobal};

const ENTRY: &str = "entry";

/// A run of `entry` on zeros.
const fn entry(result: u32) -> Step {
    Run(ENTRY, Zeros, result)
}

/// A run of `entry` on the TCP segment.
const fn on_tcp(result: u32) -> Step {
    Run(ENTRY, Tcp, result)
}

const COUNT: &[Step] = &[
    Set(0, Some("classifier_0")),
    entry(1),
    Global("count", 33),
    Set(0, None),
    entry(0),
];

/// The tests that need neither trampolines nor attached programs.
pub const SELFTESTS: &[Selftest] = &[
    Selftest {
        name: "tailcall_1",
        object: "tailcall1",
        steps: &[
            Fill(3),
            entry(0),
            Set(0, None),
            entry(1),
            Set(1, None),
            entry(2),
            Set(2, None),
            entry(3),
            Fill(3),
            entry(0),
            Fill(3),
            Set(2, Some("classifier_0")),
            Set(1, Some("classifier_1")),
            Set(0, Some("classifier_2")),
            entry(2),
            Set(0, None),
            entry(1),
            Set(1, None),
            entry(0),
            Set(2, None),
            entry(3),
            IsEmpty(0),
            entry(3),
            IsEmpty(1),
            entry(3),
            IsEmpty(2),
            entry(3),
        ],
    },
    Selftest {
        name: "tailcall_2",
        object: "tailcall2",
        steps: &[
            Fill(5),
            entry(2),
            Set(2, None),
            entry(1),
            Set(0, None),
            entry(3),
        ],
    },
    Selftest {
        name: "tailcall_3",
        object: "tailcall3",
        steps: COUNT,
    },
    Selftest {
        name: "tailcall_4",
        object: "tailcall4",
        steps: &[
            Fill(3),
            SetGlobal("selector", 0),
            entry(0),
            SetGlobal("selector", 1),
            entry(1),
            SetGlobal("selector", 2),
            entry(2),
            SetGlobal("selector", 0),
            Set(0, None),
            entry(3),
            SetGlobal("selector", 1),
            Set(1, None),
            entry(3),
            SetGlobal("selector", 2),
            Set(2, None),
            entry(3),
        ],
    },
    Selftest {
        name: "tailcall_5",
        object: "tailcall5",
        steps: &[
            Fill(3),
            SetGlobal("selector", 1111),
            entry(0),
            SetGlobal("selector", 1234),
            entry(1),
            SetGlobal("selector", 5678),
            entry(2),
            SetGlobal("selector", 1111),
            Set(0, None),
            entry(3),
            SetGlobal("selector", 1234),
            Set(1, None),
            entry(3),
            SetGlobal("selector", 5678),
            Set(2, None),
            entry(3),
        ],
    },
    Selftest {
        name: "tailcall_6",
        object: "tailcall6",
        steps: COUNT,
    },
    Selftest {
        name: "tailcall_bpf2bpf_1",
        object: "tailcall_bpf2bpf1",
        steps: &[
            Fill(2),
            on_tcp(1),
            Set(1, None),
            on_tcp(0),
            Set(0, None),
            on_tcp(2 * TCP_LEN),
        ],
    },
    Selftest {
        name: "tailcall_bpf2bpf_2",
        object: "tailcall_bpf2bpf2",
        steps: COUNT,
    },
    Selftest {
        name: "tailcall_bpf2bpf_3",
        object: "tailcall_bpf2bpf3",
        steps: &[
            Fill(2),
            on_tcp(3 * TCP_LEN),
            Set(1, None),
            on_tcp(TCP_LEN),
            Set(0, None),
            on_tcp(2 * TCP_LEN),
        ],
    },
    Selftest {
        name: "tailcall_bpf2bpf_4",
        object: "tailcall_bpf2bpf4",
        steps: &[
            Fill(3),
            SetGlobal("noise", 0),
            on_tcp(3 * TCP_LEN),
            Global("count", 31),
        ],
    },
    Selftest {
        name: "tailcall_bpf2bpf_5",
        object: "tailcall_bpf2bpf4",
        steps: &[
            Fill(3),
            SetGlobal("noise", 1),
            on_tcp(3 * TCP_LEN),
            Global("count", 31),
        ],
    },
    Selftest {
        name: "tailcall_bpf2bpf_6",
        object: "tailcall_bpf2bpf6",
        steps: &[Set(0, Some("classifier_0")), on_tcp(0), Global("done", 1)],
    },
    Selftest {
        name: "tailcall_bpf2bpf_hierarchy_1",
        object: "tailcall_bpf2bpf_hierarchy1",
        steps: &[
            Set(0, Some(ENTRY)),
            entry(1),
            Global("count", 34),
            Set(0, None),
            entry(1),
            Global("count", 35),
        ],
    },
    Selftest {
        name: "tailcall_bpf2bpf_hierarchy_2",
        object: "tailcall_bpf2bpf_hierarchy2",
        steps: &[Run("tailcall_bpf2bpf_hierarchy_2", Zeros, 33)],
    },
    Selftest {
        name: "tailcall_bpf2bpf_hierarchy_3",
        object: "tailcall_bpf2bpf_hierarchy3",
        steps: &[Run("tailcall_bpf2bpf_hierarchy_3", Zeros, 33)],
    },
    Selftest {
        name: "tailcall_failure/reject_tail_call_spin_lock",
        object: "tailcall_fail",
        steps: &[IsRefused(
            "reject_tail_call_spin_lock",
            "function calls are not allowed while holding a lock",
        )],
    },
    Selftest {
        name: "tailcall_failure/reject_tail_call_rcu_lock",
        object: "tailcall_fail",
        steps: &[IsRefused(
            "reject_tail_call_rcu_lock",
            "tail_call cannot be used inside bpf_rcu_read_lock-ed region",
        )],
    },
    Selftest {
        name: "tailcall_failure/reject_tail_call_preempt_lock",
        object: "tailcall_fail",
        steps: &[IsRefused(
            "reject_tail_call_preempt_lock",
            "tail_call cannot be used inside bpf_preempt_disable-ed region",
        )],
    },
    Selftest {
        name: "tailcall_failure/reject_tail_call_ref",
        object: "tailcall_fail",
        steps: &[IsRefused(
            "reject_tail_call_ref",
            "tail_call would lead to reference leak",
        )],
    },
    Selftest {
        name: "verifier_tailcall",
        object: "verifier_tailcall",
        steps: &[IsRefused(
            "invalid_map_for_tail_call",
            "expected prog array map for tail call",
        )],
    },
];

/// Tests that are left out, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[
    (
        "tailcall_bpf2bpf_fentry, _fexit, _fentry_fexit, _fentry_entry, the same of _hierarchy, \
         tailcall_poke",
        "trampolines: fentry and fexit programs cannot be test-run",
    ),
    (
        "tailcall_freplace, tailcall_bpf2bpf_freplace",
        "programs that replace functions of others cannot be loaded",
    ),
    (
        "tailcall_cgrp_storage, _diff_storage, _no_storage, _leaf, _bridge",
        "several objects share maps by descriptor",
    ),
    (
        "tailcall_sleepable, lsm_tailcall, epilogue_tailcall, xdp_devmap_tailcall, \
         prog_array_init",
        "attached programs: uprobes, LSM, struct_ops, devmap, raw tracepoints",
    ),
];

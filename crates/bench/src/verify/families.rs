//! Families of generated programs that grow in one respect each: how verification
//! time grows with program size, number of branches and depth of history.
//!
//! Every program is accepted by Linux 6.18 and needs no map.

use std::fmt::Write as _;

use std::collections::BTreeSet;
use std::sync::Arc;

use btf::{Btf, Builder, Encoding, Func, Int, Kind, Linkage};
use isa::ebpf::{Imm64, Insn, assemble, encode};
use program::{FuncInfo, Program};
use spec::programs::{LoadFlags, ProgramType};

use crate::Failure;

/// A family of programs.
pub(super) struct Family {
    /// Name in reports.
    pub(super) name: &'static str,
    /// Smaller and larger size whose time is measured.
    pub(super) sizes: [u32; 2],
    /// The size whose peak memory is measured, if it grows with checkpoints: the kernel
    /// takes up to half a minute for it.
    pub(super) largest: Option<u32>,
    /// Flags that the program is loaded with.
    pub(super) flags: LoadFlags,
    /// Text of the program of a size. Calls of kfuncs are written by name.
    text: fn(u32) -> String,
}

/// All families.
pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "straight arithmetic",
        sizes: [2_000, 20_000],
        largest: None,
        flags: LoadFlags(0),
        text: straight,
    },
    Family {
        name: "spills and fills before one precise use",
        sizes: [200, 2_000],
        largest: None,
        flags: LoadFlags(0),
        text: spills,
    },
    Family {
        name: "branches on one value that join again",
        sizes: [100, 1_000],
        largest: None,
        flags: LoadFlags(0),
        text: branches,
    },
    Family {
        name: "calls of one subprogram",
        sizes: [100, 1_000],
        largest: None,
        flags: LoadFlags(0),
        text: calls,
    },
    Family {
        name: "rounds of a bounded loop",
        sizes: [1_000, 10_000],
        largest: None,
        flags: LoadFlags(0),
        text: rounds,
    },
    Family {
        name: "checkpoints with the whole stack in use",
        sizes: [2_000, 20_000],
        largest: Some(200_000),
        flags: LoadFlags(0),
        text: full_stack,
    },
    Family {
        name: "rounds of a loop with the whole stack in use",
        sizes: [2_000, 20_000],
        largest: Some(240_000),
        flags: LoadFlags(0),
        text: full_stack_rounds,
    },
    Family {
        name: "the same, BPF_F_TEST_STATE_FREQ",
        sizes: [2_000, 20_000],
        largest: Some(240_000),
        flags: LoadFlags::TEST_STATE_FREQ,
        text: full_stack_rounds,
    },
    Family {
        name: "iterators, each within another",
        sizes: [4, 12],
        largest: None,
        flags: LoadFlags(0),
        text: iterators,
    },
    Family {
        name: "iterators, one after another",
        sizes: [20, 200],
        largest: None,
        flags: LoadFlags(0),
        text: iterators_in_turn,
    },
    Family {
        name: "callbacks, each within another",
        sizes: [2, 6],
        largest: None,
        flags: LoadFlags(0),
        text: callbacks,
    },
    Family {
        name: "callbacks, one after another",
        sizes: [20, 200],
        largest: None,
        flags: LoadFlags(0),
        text: callbacks_in_turn,
    },
];

impl Family {
    /// True if every prune point becomes a checkpoint.
    pub(super) fn has_dense_checkpoints(&self) -> bool {
        self.flags.has(LoadFlags::TEST_STATE_FREQ)
    }

    /// The instructions of the program of a size for a kernel with these types.
    fn insns(&self, size: u32, types: &Btf<'_>) -> Vec<Insn> {
        let mut text = (self.text)(size);
        for name in [
            "bpf_iter_num_new",
            "bpf_iter_num_next",
            "bpf_iter_num_destroy",
        ] {
            let id = types.find(Kind::Func, name).map_or(0, |ty| ty.id().0);
            text = text.replace(&format!("({name})"), &format!("({id})"));
        }
        assemble(&text).expect("generated text follows the grammar")
    }

    /// The program of a size for a kernel with these types.
    pub(super) fn program(&self, size: u32, types: &Btf<'_>) -> Result<Program, Failure> {
        let insns = self.insns(size, types);
        let (btf, func_info) = functions(&insns);
        let insns = encode(&insns).expect("assembled instructions have an encoding");
        Program::builder(ProgramType::SchedCls, insns)
            .btf(btf)
            .func_info(func_info)
            .license("Dual MIT/GPL")
            .flags(self.flags)
            .build()
            .map_err(|error| Failure::Process {
                purpose: "building a generated program",
                said: error.to_string(),
            })
    }
}

/// Types of the functions of a program whose callbacks need them; none for other programs.
fn functions(insns: &[Insn]) -> (Option<Arc<Btf<'static>>>, Vec<FuncInfo>) {
    let mut starts = BTreeSet::new();
    for (slot, insn) in (0u32..).zip(insns) {
        if let Insn::LoadImm64 { imm, .. } = insn
            && let Imm64::Func { off, .. } = imm
        {
            starts.extend([0, (slot + 1).wrapping_add_signed(*off)]);
        }
    }
    if starts.is_empty() {
        return (None, Vec::new());
    }
    let mut builder = Builder::new();
    let name = builder.string("int");
    let int = Int {
        size: 4,
        offset: 0,
        bits: 32,
        encoding: Encoding::SIGNED,
    };
    let returns = builder.int(name, int);
    let proto = builder.proto(returns, &[]);
    let function = |(number, insn): (usize, u32)| {
        let name = builder.string(format!("function{number}"));
        let linkage = Linkage::STATIC;
        let type_id = builder.func(name, Func { proto, linkage });
        FuncInfo { insn, type_id }
    };
    let func_info = starts.into_iter().enumerate().map(function).collect();
    let btf = Btf::parse(builder.finish()).expect("types as they were built");
    (Some(Arc::new(btf)), func_info)
}

/// A random number in r6.
const START: &str = "call 7\nr6 = r0\n";
const END: &str = "r0 = 0\nexit\n";

/// Arithmetic on an unknown number, `size` instructions.
fn straight(size: u32) -> String {
    let mut text = String::from(START);
    for n in 0..size {
        let line = match n % 4 {
            0 => "r6 += 1",
            1 => "r6 *= 2",
            2 => "r6 ^= 85",
            _ => "r6 >>= 1",
        };
        let _ = writeln!(text, "{line}");
    }
    text + END
}

/// `size` spills and fills of a number, which then becomes an offset into the stack:
/// each of the last uses requests precision for the whole history.
fn spills(size: u32) -> String {
    let mut text = String::from(START);
    text += "r6 &= 7\n";
    for n in 0..size {
        let slot = 8 + 8 * (n % 32);
        let _ = writeln!(text, "*(u64 *)(r10 - {slot}) = r6");
        let _ = writeln!(text, "r6 = *(u64 *)(r10 - {slot})");
    }
    text += "r7 = r10\nr7 += -300\nr7 += r6\n*(u8 *)(r7 + 0) = 0\n";
    text + END
}

/// `size` comparisons of one number whose branches join again.
fn branches(size: u32) -> String {
    let mut text = String::from(START);
    for n in 0..size {
        let _ = writeln!(text, "if r6 != {} goto +1\nr6 += 1", 2 * n + 1);
    }
    text + END
}

/// `size` calls of a subprogram that branches on its argument.
fn calls(size: u32) -> String {
    let mut text = String::from(START);
    for _ in 0..size {
        text += "r1 = r6\ncall clamp\nr6 = r0\n";
    }
    text += END;
    text + "clamp:\nr0 = r1\nif r0 < 64 goto +1\nr0 = 63\nexit\n"
}

/// A loop with a known number of rounds, each of which is walked.
fn rounds(size: u32) -> String {
    let mut text = String::from(START);
    text += "r7 = 0\nhead:\nr6 += r7\nr7 += 1\n";
    let _ = writeln!(text, "if r7 != {size} goto head");
    text + END
}

/// A random number in r6, copied to all 64 slots of the stack.
fn filled_stack() -> String {
    let mut text = String::from(START);
    for slot in 1..=64 {
        let _ = writeln!(text, "*(u64 *)(r10 - {}) = r6", 8 * slot);
    }
    text
}

/// `size` instructions without a loop: in each eight, one of which writes a slot, two
/// jumps let the verifier keep a state.
fn full_stack(size: u32) -> String {
    let mut text = filled_stack();
    for n in 0..size / 8 {
        let slot = 8 + 8 * (n % 64);
        let _ = writeln!(
            text,
            "*(u64 *)(r10 - {slot}) = r6\nr6 += 1\nr6 *= 2\ngoto +0"
        );
        text += "r6 ^= 85\nr6 >>= 1\nr7 = r6\ngoto +0\n";
    }
    text + END
}

/// A loop of four instructions, one of which writes a slot, with `size` rounds.
fn full_stack_rounds(size: u32) -> String {
    let mut text = filled_stack();
    text += "r7 = 0\nhead:\nr6 += r7\nr7 += 1\n*(u64 *)(r10 - 8) = r7\n";
    let _ = writeln!(text, "if r7 != {size} goto head");
    text + END
}

/// A loop of `bpf_for` over ten numbers, the iterator in the stack slot of a number.
fn iterator(slot: u32, label: &str, body: &str) -> String {
    let iterator = format!("r1 = r10\nr1 += -{}\n", 8 * slot);
    format!(
        "{iterator}r2 = 0\nr3 = 10\ncall kfunc(bpf_iter_num_new)\n\
         next{label}:\n{iterator}call kfunc(bpf_iter_num_next)\nif r0 == 0 goto done{label}\n\
         r6 += 1\n{body}goto next{label}\n\
         done{label}:\n{iterator}call kfunc(bpf_iter_num_destroy)\n"
    )
}

/// `size` loops of iterators, each in the body of another.
fn iterators(size: u32) -> String {
    let nest = |body: String, depth| iterator(depth, &depth.to_string(), &body);
    START.to_owned() + &(1..=size).fold(String::new(), nest) + END
}

/// `size` loops of iterators, one after another.
fn iterators_in_turn(size: u32) -> String {
    let loops: String = (0..size).map(|n| iterator(1, &n.to_string(), "")).collect();
    START.to_owned() + &loops + END
}

/// A call of `bpf_loop` with ten rounds of a function.
fn bpf_loop(function: u32) -> String {
    format!("r1 = 10\nr2 = func(round{function}) ll\nr3 = 0\nr4 = 0\ncall 181\n")
}

/// Callbacks of `bpf_loop`, `size` deep: each but the last makes a loop of the next.
fn callbacks(size: u32) -> String {
    let round = |n: u32| {
        let body = if n < size {
            bpf_loop(n + 1)
        } else {
            String::new()
        };
        format!("round{n}:\n{body}{END}")
    };
    let rounds: String = (1..=size).map(round).collect();
    START.to_owned() + &bpf_loop(1) + END + &rounds
}

/// `size` calls of `bpf_loop`, one after another.
fn callbacks_in_turn(size: u32) -> String {
    let calls = bpf_loop(1).repeat(size as usize);
    START.to_owned() + &calls + END + "round1:\n" + END
}

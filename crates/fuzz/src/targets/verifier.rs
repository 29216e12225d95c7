//! Any bytes as a program with maps and types: the verifier answers, its answer does not
//! depend on whether precision requests are skipped, and every refusal has an explanation.
//!
//! The input: bytes for the program type, the load flags, the kind and flags of its
//! map and the numbers of types and of function records, then BTF, then function
//! records, then instructions. An input that is text of a case is read as that.

use std::sync::Arc;

use btf::{Btf, TypeId};
use isa::ebpf::from_bytes;
use program::case::Case;
use program::{FuncInfo, MapDef, MapParams, Program};
use spec::Kernel;
use spec::maps::MapFlags;
use spec::programs::{LoadFlags, ProgramType};
use verifier::{Options, Verdict, explain, verify};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "verifier",
    property: "any program, maps and types get an answer; if it is short, the same with and without skips, refusals an explanation",
    words: &[
        ".program",
        ".type",
        ".license",
        ".map",
        ".end",
        ".subprog",
        "map_idx(0) ll",
        "exit",
    ],
    run,
};

/// Instructions of a program at most, so that one input takes no seconds.
const MOST: usize = 96;

/// Instructions of a verification at most that is repeated: a million, Linux's limit, take half a
/// second each time.
const MOST_REPEATED: u32 = 100_000;

thread_local! {
    static KERNEL: Kernel = kernel_data::linux_6_18();
}

fn run(input: &[u8]) -> Signature {
    let text = std::str::from_utf8(input).ok();
    let case = text.and_then(|text| Case::parse(text).ok());
    let Some(program) = case.map(|case| case.program).or_else(|| program(input)) else {
        return Signature::of(());
    };
    if program.insns().len() > MOST {
        return Signature::of(());
    }
    let verdict_of = |precision_skip| {
        let options = Options {
            precision_skip,
            ..Options::default()
        };
        KERNEL.with(|kernel| {
            let registry = kernel.registry().expect("the built-in kernel has one");
            verify(&program, kernel, registry, &options)
        })
    };
    let with = verdict_of(true);
    let is_repeated = with.statistics.insns_processed <= MOST_REPEATED;
    if is_repeated {
        let without = verdict_of(false);
        assert_eq!(with.verdict, without.verdict);
        assert_eq!(with.statistics, without.statistics);
    }
    let reason = match &with.verdict {
        Verdict::Accepted => "accepted".to_owned(),
        Verdict::Refused(refusal) if !is_repeated => refusal.message(),
        Verdict::Refused(refusal) => {
            let explanation = KERNEL.with(|kernel| {
                let registry = kernel.registry().expect("the built-in kernel has one");
                explain(&program, kernel, registry, &Options::default())
            });
            let explained = explanation.map(|explanation| explanation.refusal);
            assert_eq!(explained.as_ref(), Some(refusal));
            let is_digit = |letter: char| letter.is_ascii_digit();
            refusal.message().replace(is_digit, "")
        }
        Verdict::Unsupported(what) => what.clone(),
        Verdict::Bug(what) => panic!("{what}"),
    };
    Signature::of(reason)
}

/// The program that bytes say.
fn program(input: &[u8]) -> Option<Program> {
    let (head, rest) = input.split_first_chunk::<8>()?;
    let kinds = [
        ProgramType::SocketFilter,
        ProgramType::SchedCls,
        ProgramType::Xdp,
        ProgramType::Kprobe,
        ProgramType::CgroupSkb,
        ProgramType::Tracepoint,
        ProgramType::SkLookup,
        ProgramType::FlowDissector,
    ];
    let kind = kinds[usize::from(head[0]) % kinds.len()];
    let btf_len = (usize::from(head[4]) * 4).min(rest.len());
    let (types, rest) = rest.split_at(btf_len);
    let btf = Btf::parse(types.to_vec()).ok().map(Arc::new);
    let records_len = (usize::from(head[5] % 8) * 4).min(rest.len());
    let (records, code) = rest.split_at(records_len);
    let records = records.chunks_exact(4).map(|record| FuncInfo {
        insn: record[0].into(),
        type_id: TypeId(record[2].into()),
    });
    let insns = from_bytes(&code[..code.len() / 8 * 8]).ok()?;
    let map = MapDef::new(
        "map",
        MapParams {
            map_type: u32::from(head[2]) % 36,
            key_size: 4,
            value_size: 24,
            max_entries: 4,
            flags: MapFlags(u32::from(head[3]) << 4 & 0x180),
            ..MapParams::default()
        },
    );
    let builder = Program::builder(kind, insns)
        .flags(LoadFlags(u32::from(head[1]) & 0x8b))
        .maps(vec![Arc::new(map)])
        .license("GPL");
    match btf {
        Some(btf) => builder
            .btf(Some(btf))
            .func_info(records.collect())
            .build()
            .ok(),
        None => builder.build().ok(),
    }
}

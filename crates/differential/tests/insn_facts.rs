//! Facts for a compiler: exact ones of small programs, and those that pruning takes away.

use isa::ebpf::{Insn, Reg};
use program::Program;
use spec::programs::{LoadFlags, ProgramType};
use verifier::{Branch, InsnFact, Options, PointerKind, ProgramFacts, Value, Verdict, verify};

use testkit::verifier::{assembled, program_with_array};

fn facts_of(program: &Program) -> ProgramFacts {
    let kernel = kernel_data::linux_6_18_minimal();
    let registry = kernel.registry().expect("the built-in registry");
    let options = Options {
        collect_facts: true,
        ..Options::default()
    };
    let done = verify(program, &kernel, registry, &options);
    assert_eq!(done.verdict, Verdict::Accepted, "{}", done.log);
    let plain = verify(program, &kernel, registry, &Options::default());
    assert_eq!(done.statistics, plain.statistics);
    assert!(plain.facts.is_none());
    done.facts.expect("facts of an accepted program")
}

fn facts(text: &str) -> ProgramFacts {
    facts_of(&program_with_array(ProgramType::SchedCls, &assembled(text).unwrap()).unwrap())
}

fn constant(fact: &InsnFact, reg: Reg) -> Option<u64> {
    fact.operand(reg).and_then(Value::constant)
}

#[oracle::test]
fn dead_code_branches_and_constants() {
    let facts = facts(
        "
        r2 = 7
        if r2 == 8 goto never
        r3 = *(u32 *)(r1 + 0)
        r3 &= 15
        if r3 > 3 goto out
        r2 += r3
        out:
        r0 = r2
        exit
        never:
        r0 = 1
        exit
        ",
    );
    let reached: Vec<bool> = facts.insns.iter().map(|fact| fact.is_reached).collect();
    assert_eq!(
        reached,
        [true, true, true, true, true, true, true, true, false, false]
    );
    assert_eq!(facts.insns[1].branch, Some(Branch::Never));
    assert_eq!(facts.insns[4].branch, Some(Branch::Both));
    assert_eq!(constant(&facts.insns[5], Reg::R2), Some(7));
    let Some(Value::Scalar(sum)) = facts.insns[6].operand(Reg::R2) else {
        panic!("{:?}", facts.insns[6]);
    };
    assert_eq!((sum.umin, sum.umax), (7, 10));
    // The context is read, and its low half alone is used.
    let access = facts.insns[2].access.unwrap();
    let pointer = access.pointer().unwrap();
    assert_eq!(
        (pointer.kind, pointer.offset.constant()),
        (PointerKind::Context, Some(0))
    );
    assert_eq!(facts.insns[2].needs_zero_extension, Some(false));
}

#[oracle::test]
fn stack_offsets_map_keys_and_packet_checks() {
    let facts = facts(
        "
        r6 = r1
        *(u32 *)(r10 - 8) = 3
        r2 = r10
        r2 += -8
        .8byte 0x0000000000005118
        .8byte 0
        call 1
        r7 = *(u8 *)(r0 + 40)
        r2 = *(u32 *)(r6 + 76)
        r3 = *(u32 *)(r6 + 80)
        r4 = r2
        r4 += 20
        if r4 > r3 goto out
        r5 = *(u32 *)(r2 + 12)
        r8 = *(u16 *)(r2 + 18)
        out:
        r0 = 0
        exit
        ",
    );
    let call = facts.insns[6].call.unwrap();
    assert_eq!((call.map.map(|map| map.0), call.key), (Some(0), Some(3)));
    assert!(call.is_key_in_bounds);
    let stored = facts.insns[1].access.unwrap();
    let stored = stored.pointer().unwrap();
    assert_eq!(stored.kind, PointerKind::Stack { frames_up: 0 });
    assert_eq!(stored.offset.constant(), Some(-8));
    let (_, found) = facts.insns[6].result.unwrap();
    assert!(!found.pointer().unwrap().may_be_null);
    assert_eq!(facts.packet_checks.len(), 1);
    let check = &facts.packet_checks[0];
    assert_eq!(
        (check.insn, check.proven, &check.accesses[..]),
        (12, 20, &[13, 14][..])
    );
}

/// Two paths meet with different numbers in r6, which nothing needs precisely. With a
/// checkpoint at every prune point the second one is pruned.
fn meeting(spill: &str) -> Program {
    let text = format!(
        "
        r6 = 1
        call 7
        if r0 == 0 goto meet
        r6 = 2
        meet:
        {spill}
        r0 = r6
        exit
        "
    );
    Program::builder(ProgramType::SchedCls, assembled(&text).unwrap())
        .license("GPL")
        .flags(LoadFlags::TEST_STATE_FREQ)
        .build()
        .unwrap()
}

#[oracle::test]
fn pruned_scalars_have_no_range() {
    for spill in ["", "*(u64 *)(r10 - 8) = r6\nr6 = 0\nr6 = *(u64 *)(r10 - 8)"] {
        let program = meeting(spill);
        let facts = facts_of(&program);
        let insns = program.decode();
        let last = insns.len() - 2;
        assert!(matches!(insns[last], Insn::Alu { .. }));
        let Some(Value::Scalar(number)) = facts.insns[last].operand(Reg::R6) else {
            panic!("{:?}", facts.insns[last]);
        };
        assert!(number.is_unknown(), "{spill}: {number:?}");
        let (_, result) = facts.insns[last].result.unwrap();
        assert_eq!(result.constant(), None);
    }
    // What is computed anew is known again.
    let facts = facts_of(&meeting("r6 = 9"));
    let last = facts.insns.len() - 2;
    assert_eq!(constant(&facts.insns[last], Reg::R6), Some(9));
}

#[oracle::test]
fn upper_halves_that_matter() {
    let facts = facts(
        "
        r6 = r1
        r7 = *(u32 *)(r6 + 0)
        w8 = w7
        r8 += 1
        w0 = w8
        w9 = 5
        r9 >>= 1
        w0 += w9
        exit
        ",
    );
    let needed: Vec<Option<bool>> = facts
        .insns
        .iter()
        .map(|fact| fact.needs_zero_extension)
        .collect();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(needed, [None, no, no, None, no, yes, None, yes, None]);
}

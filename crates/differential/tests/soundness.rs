//! Runs of accepted programs stay inside what the verifier recorded of them.

use beebox_differential::verifier::soundness::{self, Escape, Evidence, Outcome};
use isa::ebpf::Reg;
use spec::Kernel;
use spec::programs::ProgramType;
use spec::registry::Registry;
use testkit::verifier::{assembled, program_with_array};
use verifier::domain::Scalar;
use verifier::state::{RegKind, RegState, TypeFlags};
use verifier::{Branch, InsnFact, Value};

fn kernel() -> (Kernel, Registry) {
    let kernel = kernel_data::linux_6_18_minimal();
    let types = kernel.btf().expect("the built-in kernel has types");
    let registry = kernel_data::linux_6_18_minimal_registry(types);
    (kernel, registry)
}

#[oracle::test]
fn runs_of_generated_programs_stay_inside_recorded_states() {
    let (kernel, registry) = kernel();
    let tally = soundness::check_generated(&kernel, &registry, 0, 240, 10, |_| ()).unwrap();
    for found in &tally.found {
        eprintln!("{}\n{:?}", found.case, found.escape);
    }
    assert_eq!(tally.escaped, 0);
    assert!(tally.steps > 30_000, "{tally:?}");
    assert!(tally.all_precise > 160, "{tally:?}");
    // Rounds of bpf_loop and may_goto, which numbers of the input count.
    assert!(tally.unfinished < tally.runs / 8, "{tally:?}");
    // Nearly every kind of the grammar's maps is used.
    assert!(tally.used.maps.len() > 10, "{:?}", tally.used);
    assert!(tally.used.helpers.len() > 40, "{:?}", tally.used);
}

/// A program with a packet access behind a variable offset, a map value, a spill, a loop
/// and a function.
const RICH: &str = "
r6 = r1
r7 = *(u32 *)(r6 + 16)
r7 &= 15
*(u64 *)(r10 - 8) = r7
r2 = *(u32 *)(r6 + 76)
r3 = *(u32 *)(r6 + 80)
r2 += r7
r4 = r2
r4 += 8
if r4 > r3 goto out
r5 = *(u64 *)(r2 + 0)
out:
*(u32 *)(r10 - 12) = r7
r2 = r10
r2 += -12
.8byte 0x0000000000005118
.8byte 0
call 1
if r0 == 0 goto none
r0 += r7
r1 = *(u8 *)(r0 + 3)
none:
w8 = 0
again:
r8 += 1
if r8 < 5 goto again
r1 = r8
call twice
r9 = *(u64 *)(r10 - 8)
r0 += r9
exit
twice:
r0 = r1
r0 += r1
exit
";

/// Runs [`RICH`], with evidence changed.
fn changed(change: impl FnOnce(&mut Evidence)) -> Outcome {
    let (kernel, registry) = kernel();
    let insns = assembled(RICH).unwrap();
    let program = program_with_array(ProgramType::SchedCls, &insns).unwrap();
    soundness::check_changed(&program, &kernel, &registry, 30, change)
}

#[oracle::test]
fn a_rich_program_is_contained() {
    match changed(|_| ()) {
        Outcome::Contained(runs) => assert!(runs.all_precise && runs.runs == 30),
        other => panic!("{other:?}"),
    }
}

fn escape(outcome: Outcome) -> Escape {
    match outcome {
        Outcome::Escaped(escape) => escape,
        other => panic!("{other:?}"),
    }
}

/// Which recording is changed.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Normal,
    AllPrecise,
}

/// Narrows registers and slots in all states of an instruction, and returns the escape.
fn narrowed(at: usize, mode: Mode, narrow: impl Fn(&mut RegState)) -> Escape {
    escape(changed(|evidence| {
        let states = match mode {
            Mode::Normal => &mut evidence.normal,
            Mode::AllPrecise => evidence.all_precise.as_mut().unwrap(),
        };
        for recorded in states.at_mut(at) {
            let frame = recorded.state.cur_mut();
            (0..Reg::COUNT).for_each(|reg| narrow(&mut frame.regs[reg]));
            (0..frame.stack.len()).for_each(|spi| narrow(&mut frame.stack.slot_mut(spi).reg));
        }
    }))
}

#[oracle::test]
fn states_that_are_too_narrow_are_found() {
    // The scalar in r7, masked by 15.
    let found = narrowed(3, Mode::AllPrecise, |reg| {
        if reg.is_scalar() && reg.num.umax == 15 {
            (reg.num.umax, reg.num.smax) = (14, 14);
        }
    });
    assert!(
        found.at == 3 && found.what.contains("r7 of frame 0 is 0xf"),
        "{found:?}"
    );
    // Known bits of the spilled copy.
    let found = narrowed(25, Mode::AllPrecise, |reg| {
        if reg.is_scalar() && reg.num.umax == 15 {
            reg.num.var_off.mask &= !1;
        }
    });
    assert!(
        found.at == 25 && found.what.contains("slot 0 of frame 0"),
        "{found:?}"
    );
    // More of the packet than the comparison proves.
    let found = narrowed(10, Mode::Normal, |reg| {
        if let RegKind::Packet { range } = &mut reg.kind {
            *range += 100;
        }
    });
    assert!(found.at == 10 && found.what.contains("Packet"), "{found:?}");
    // A fixed offset of a pointer.
    let found = narrowed(13, Mode::Normal, |reg| {
        if let RegKind::Stack { .. } = reg.kind {
            reg.off += 1;
        }
    });
    assert_eq!(found.at, 13);
    // A map value that may be null.
    let found = narrowed(17, Mode::Normal, |reg| reg.flags = TypeFlags::NONE);
    assert!(
        found.at == 17 && found.what.contains("r0 of frame 0 is 0x0"),
        "{found:?}"
    );
    // The loop's counter is never above 1.
    let found = narrowed(22, Mode::AllPrecise, |reg| {
        if reg.is_scalar()
            && reg
                .num
                .as_const()
                .is_some_and(|value| (2..5).contains(&value))
        {
            reg.num = Scalar::constant(1);
        }
    });
    assert_eq!(found.at, 22);
}

/// Changes the facts of an instruction, and returns the escape.
fn claimed(at: usize, claim: impl FnOnce(&mut InsnFact)) -> Escape {
    escape(changed(|evidence| claim(&mut evidence.facts.insns[at])))
}

#[oracle::test]
fn facts_that_are_wrong_are_found() {
    let found = claimed(18, |fact| fact.is_reached = false);
    assert_eq!((found.at, &*found.what), (18, "fact: it is never reached"));
    let found = claimed(9, |fact| fact.branch = Some(Branch::Never));
    assert!(
        found.what.contains("instruction 9 never jumps"),
        "{found:?}"
    );
    let found = claimed(22, |fact| fact.branch = Some(Branch::Always));
    assert!(
        found.what.contains("instruction 22 always jumps"),
        "{found:?}"
    );
    let found = claimed(2, |fact| {
        fact.result = Some((Reg::R7, Value::Scalar(Scalar::constant(3))));
    });
    assert!(found.what.contains("fact after 2: r7 is"), "{found:?}");
    let found = claimed(19, |fact| {
        for (_, value) in &mut fact.operands {
            if let Value::Pointer(pointer) = value {
                pointer.offset.max = 1;
            }
        }
    });
    assert!(found.what.contains("fact before: r0 is"), "{found:?}");
    let found = claimed(16, |fact| {
        let call = fact.call.as_mut().unwrap();
        assert_eq!(call.key, None);
        call.key = Some(1);
    });
    assert!(found.what.contains("fact: the key is 1"), "{found:?}");
    // The sum that is returned needs the upper half of what was filled.
    let found = claimed(20, |fact| fact.needs_zero_extension = Some(false));
    assert!(found.what.contains("upper halves"), "{found:?}");
    let found = escape(changed(|evidence| {
        let checks = &mut evidence.facts.packet_checks;
        assert_eq!((checks.len(), checks[0].insn), (1, 9));
        assert_eq!((checks[0].proven, &checks[0].accesses[..]), (8, &[10][..]));
        checks[0].insn = 17;
    }));
    assert!(found.what.contains("instruction 17 proves"), "{found:?}");
}

/// Programs with allocated objects, lists, trees and locks run with what was proven of them.
#[oracle::test]
fn runs_with_objects_stay_inside_recorded_states() {
    let (kernel, registry) = kernel();
    let mut contained = 0;
    for file in crate::verifier_programs::case_files("cases/objects") {
        let text = std::fs::read_to_string(&file).expect("a case");
        let text = crate::verifier_programs::with_ids(&text, &kernel);
        let case = program::case::Case::parse(&text).expect("a case");
        match soundness::check(&case.program, &kernel, &registry, 20) {
            Outcome::Contained(_) => contained += 1,
            // What a load of null gives is the kernel's matter.
            Outcome::Refused | Outcome::Uncovered(_) => {}
            Outcome::Escaped(escape) => panic!("{}: {escape:?}", file.display()),
        }
    }
    assert!(contained >= 12, "{contained} programs");
}

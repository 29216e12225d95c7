//! Instructions of a program replaced by others, with every jump, call and func_info
//! record still at the instruction that it was about.

use std::ops::Range;

use isa::ebpf::{PseudoCall, PseudoLoad, RawInsn};
use program::{FuncInfo, Program};

/// Ranges of slots of the program's instructions, two for a 64-bit load.
pub(super) fn instructions(program: &Program) -> Vec<Range<usize>> {
    let insns = program.insns();
    let mut ranges = Vec::with_capacity(insns.len());
    let mut at = 0;
    while let Some(insn) = insns.get(at) {
        let end = (at + 1 + usize::from(insn.is_wide_load())).min(insns.len());
        ranges.push(at..end);
        at = end;
    }
    ranges
}

/// Classes of instructions: jumps on 64 and on 32 bits.
const JMP: u8 = 5;
const JMP32: u8 = 6;
/// Operations of jumps that name no instruction by their offset.
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
/// `gotol`: the unconditional jump of the 32-bit class, whose distance is the immediate.
const GOTOL: u8 = 0x06;
/// `gotox`: a jump to an address.
const GOTOX: u8 = 0x0d;

/// The program with `new` in place of the slots `range`. What pointed into the range
/// points at what follows it, what pointed at its first slot at the first new one. It has
/// no line_info. `None` if a distance does not fit its field or the result is no program.
pub(super) fn splice(program: &Program, range: Range<usize>, new: &[RawInsn]) -> Option<Program> {
    let moved = |at: usize| match at {
        at if at <= range.start => at,
        at if at < range.end => range.start + new.len(),
        at => at - range.len() + new.len(),
    };
    let old = program.insns();
    let mut insns = Vec::with_capacity(old.len() - range.len() + new.len());
    let mut is_high = false;
    for (at, insn) in old.iter().enumerate() {
        if at == range.start {
            insns.extend_from_slice(new);
        }
        let is_second = is_high;
        is_high = insn.is_wide_load() && !is_second;
        if range.contains(&at) {
            continue;
        }
        let here = insns.len();
        insns.push(match is_second {
            true => *insn,
            false => retarget(*insn, at, here, moved)?,
        });
    }
    if range.start == old.len() {
        insns.extend_from_slice(new);
    }
    let mut func_info: Vec<FuncInfo> = program.func_info().to_vec();
    for record in &mut func_info {
        record.insn = moved(record.insn as usize) as u32;
    }
    // A function that is gone leaves its record at the start of the next.
    func_info.reverse();
    func_info.dedup_by_key(|record| record.insn);
    func_info.reverse();
    let edited = program
        .to_builder()
        .insns(insns)
        .subprogs(Vec::new())
        .line_info(Vec::new())
        .func_info(func_info);
    edited.build().ok()
}

/// Takes out instructions as long as `shows` finds in what is left what it found in the
/// program, `shown`; asks it at most so many times.
pub fn reduce<T>(
    program: &Program,
    mut shown: T,
    mut questions: u32,
    mut shows: impl FnMut(&Program) -> Option<T>,
) -> (Program, T) {
    let mut least = program.clone();
    let mut chunk = instructions(&least).len() / 2;
    while chunk > 0 {
        let mut at = 0;
        loop {
            let all = instructions(&least);
            let (Some(first), Some(last)) = (all.get(at), all.get(at + chunk - 1)) else {
                break;
            };
            if questions == 0 {
                break;
            }
            questions -= 1;
            let fewer = splice(&least, first.start..last.end, &[]);
            match fewer.and_then(|fewer| Some((shows(&fewer)?, fewer))) {
                Some((found, fewer)) => (least, shown) = (fewer, found),
                None => at += 1,
            }
        }
        chunk /= 2;
    }
    (least, shown)
}

/// The program without the maps that no instruction refers to.
pub fn without_unused_maps(program: &Program) -> Program {
    let mut used = program.used_maps();
    used.sort_by_key(|map| map.0);
    let mut insns = program.insns().to_vec();
    for (at, map, _) in program.map_loads() {
        let number = used.partition_point(|before| before.0 < map.0);
        insns[at].imm = number as i32;
    }
    let maps: Vec<_> = used
        .iter()
        .map(|map| program.maps()[map.0 as usize].clone())
        .collect();
    let fewer = program.to_builder().insns(insns).maps(maps).build();
    fewer.unwrap_or_else(|_| program.clone())
}

/// The instruction that was at `at` and is at `here`, with its distance changed to where
/// its target has moved.
fn retarget(
    mut insn: RawInsn,
    at: usize,
    here: usize,
    moved: impl Fn(usize) -> usize,
) -> Option<RawInsn> {
    let change = |distance: i64| {
        let target = usize::try_from(at as i64 + 1 + distance).ok()?;
        Some(moved(target) as i64 - here as i64 - 1)
    };
    let is_local = insn.pseudo_call() == Some(PseudoCall::Local)
        || insn.pseudo_load() == Some(PseudoLoad::Func);
    if is_local || insn.code == GOTOL {
        // A target outside the program stays outside it.
        insn.imm = change(insn.imm.into()).map_or(Some(insn.imm), |it| it.try_into().ok())?;
    } else if matches!(insn.code & 7, JMP | JMP32)
        && !matches!(insn.code & 0xf0, CALL | EXIT)
        && insn.code != GOTOX
    {
        insn.off = change(insn.off.into()).map_or(Some(insn.off), |it| it.try_into().ok())?;
    }
    Some(insn)
}

#[cfg(test)]
mod tests {
    use isa::ebpf::{assemble, encode};
    use spec::programs::ProgramType;

    use super::*;

    fn slots(text: &str) -> Vec<RawInsn> {
        encode(&assemble(text).unwrap()).unwrap()
    }

    fn program(text: &str) -> Program {
        let builder = Program::builder(ProgramType::Xdp, slots(text));
        builder.license("GPL").build().unwrap()
    }

    const TEXT: &str = "r1 = 5 ll\nif r1 == 0 goto out\nr2 = 1\ncall sub\nout:\nr0 = 0\n\
                        gotol end\nend:\nexit\nsub:\nr0 = func(sub) ll\nexit";

    #[test]
    fn distances_follow_what_moves() {
        let expected = TEXT.replace("r2 = 1", "");
        let program = program(TEXT);
        let edited = splice(&program, 3..4, &[]).unwrap();
        assert_eq!(edited.insns(), slots(&expected));
        let back = splice(&edited, 3..3, &slots("r2 = 1")).unwrap();
        assert_eq!(back.insns(), program.insns());
    }

    #[test]
    fn jumps_into_what_is_gone_lead_behind_it() {
        let program = program("if r1 == 0 goto out\nr0 = 1\nout:\nr0 = 2\nr0 = 3\nexit");
        let edited = splice(&program, 2..3, &[]).unwrap();
        assert_eq!(
            edited.insns(),
            slots("if r1 == 0 goto out\nr0 = 1\nout:\nr0 = 3\nexit")
        );
    }
}

//! Families of objects with a copy for each CPU, in pointers of map values, in runs on several
//! CPUs.

use program::MapParams;
use spec::maps::MapKind;
use spec::programs::ProgramType;

use super::call;
use crate::helpers::Family;
use crate::helpers::case::{Case, MAP, Setup};
use crate::helpers::cpus::{number, some_cpus};
use crate::helpers::program_types::{TYPES, counted};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("objects of CPUs", objects)];

/// Mixes both numbers of the copy at `r0`, and adds to them.
fn change(choices: &mut Choices<'_>) -> String {
    let (first, second) = (choices.below(100), choices.below(100));
    format!(
        "r1 = *(u64 *)(r0 + 0)\nr9 *= 31\nr9 += r1\nr1 += {first}\n*(u64 *)(r0 + 0) = r1\n\
         r1 = *(u64 *)(r0 + 8)\nr9 *= 31\nr9 += r1\nr1 += {second}\n*(u64 *)(r0 + 8) = r1\n"
    )
}

/// The copy of the object at `r7` on the CPU of the run or on some CPU, changed.
fn copy(choices: &mut Choices<'_>, at: u32) -> String {
    let change = change(choices);
    match choices.one_in(2) {
        true => format!("r1 = r7\ncall 154\n{change}"),
        false => {
            let cpu = number(choices);
            format!(
                "r1 = r7\nw2 = {cpu}\ncall 153\nif r0 == 0 goto no_cpu{at}\n{change}\
                 no_cpu{at}:\n"
            )
        }
    }
}

/// A new object in the value, in place of what it held. All copies are set: their memory is
/// what was there before.
fn put(choices: &mut Choices<'_>, at: u32) -> String {
    let pointer = counted::POINTER;
    let mut text = format!(
        "r1 = {} ll\nr2 = 0\n{}if r0 == 0 goto out\nr2 = r0\nr1 = r6\nr1 += {pointer}\n\
         call 194\nif r0 == 0 goto first{at}\nr9 += 7\n{}first{at}:\n\
         r7 = *(u64 *)(r6 + {pointer})\nif r7 == 0 goto out\n",
        TYPES.counters.0,
        call("bpf_percpu_obj_new_impl"),
        drop_result()
    );
    for cpu in 0..sys::bpf::possible_cpus() {
        let (first, second) = (choices.below(1000), choices.below(1000));
        text += &format!(
            "r1 = r7\nr2 = {cpu}\ncall 153\nif r0 == 0 goto unset{at}x{cpu}\n\
             *(u64 *)(r0 + 0) = {first}\n*(u64 *)(r0 + 8) = {second}\nunset{at}x{cpu}:\n"
        );
    }
    text
}

/// Drops the object at `r0`.
fn drop_result() -> String {
    let drop = call("bpf_percpu_obj_drop_impl");
    format!("r1 = r0\nr2 = 0\n{drop}")
}

/// One operation; `at` numbers its labels.
fn operation(choices: &mut Choices<'_>, at: u32) -> String {
    let pointer = counted::POINTER;
    match choices.below(8) {
        // An object that the value never holds.
        0 => format!(
            "r1 = {} ll\nr2 = 0\n{}if r0 == 0 goto out\n{}",
            TYPES.counters.0,
            call("bpf_percpu_obj_new_impl"),
            drop_result()
        ),
        1 | 2 => put(choices, at),
        3 => format!(
            "r1 = r6\nr1 += {pointer}\nr2 = 0\ncall 194\nif r0 == 0 goto none{at}\nr9 += 9\n{}\
             none{at}:\n",
            drop_result()
        ),
        // The one that the value holds.
        _ => format!(
            "r7 = *(u64 *)(r6 + {pointer})\nif r7 == 0 goto empty{at}\n{}r9 += 5\nempty{at}:\n",
            copy(choices, at)
        ),
    }
}

fn objects(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[MapKind::Array, MapKind::Hash, MapKind::PercpuArray]);
    let params = MapParams {
        map_type: kind.number(),
        key_size: 4,
        value_size: counted::SIZE,
        value_type: TYPES.counted,
        max_entries: 1,
        ..MapParams::default()
    };
    // A hash has its value from the first run on.
    let fill = format!(
        "r1 = 0\n*(u64 *)(r10 - 24) = r1\n*(u64 *)(r10 - 16) = r1\nr1 = {MAP:#x} ll\nr2 = r10\n\
         r2 += -8\nr3 = r10\nr3 += -24\nr4 = {}\ncall 2\nr9 += r0\n",
        choices.pick(&[0, 1, 1])
    );
    let fill = match kind {
        MapKind::PercpuArray => String::new(),
        _ => fill,
    };
    let count = 1 + choices.below(8);
    let operations: String = (0..count).map(|at| operation(choices, at)).collect();
    let text = format!(
        "r9 = 1\n*(u64 *)(r10 - 8) = 0\n{fill}r1 = {MAP:#x} ll\nr2 = r10\nr2 += -8\ncall 1\n\
         if r0 == 0 goto out\nr6 = r0\n{operations}out:\nr0 = r9\nr0 &= 0x7fff\nexit\n"
    );
    let program = choices.pick(&[ProgramType::SchedCls, ProgramType::Xdp]);
    Case {
        kind: program,
        has_types: true,
        cpus: some_cpus(choices),
        ..Case::tc(choices, text)
    }
    .with_map(Setup(params, None))
}

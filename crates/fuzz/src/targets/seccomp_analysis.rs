//! Tables of seccomp filters hold for every call.
//!
//! The input: two bytes that give the lengths of two filters, the filters, four
//! bytes to an instruction, and the rest as calls to try. The bytes of an
//! instruction choose from what seccomp takes, so that most inputs are filters.

use classic::SeccompData;
use isa::classic::SockFilter;
use seccomp::{Action, Analysis, Arch, FilterProgram, Stack, Table, calls, diff};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "seccomp-analysis",
    property: "tables and differences of filters hold for every call that is tried",
    words: &[],
    run,
};

/// Instructions of a filter: an analysis may take long where a filter is made
/// to take long, and says so; these are not.
const MOST: usize = 48;

fn run(input: &[u8]) -> Signature {
    let [len, other_len, rest @ ..] = input else {
        return Signature::of(());
    };
    let (Some((first, rest)), other_len) = (
        rest.split_at_checked(4 * (usize::from(*len) % MOST)),
        4 * (usize::from(*other_len) % MOST),
    ) else {
        return Signature::of(());
    };
    let Some((second, rest)) = rest.split_at_checked(other_len) else {
        return Signature::of(());
    };
    let (Some(first), Some(second)) = (stack(first), stack(second)) else {
        return Signature::of(0);
    };
    let tried: Vec<_> = rest.chunks_exact(12).take(64).map(call).collect();
    let shown = check_tables(&first, &tried);
    let differences = check_differences(&first, &second, &tried);
    Signature::of((shown, differences))
}

fn stack(bytes: &[u8]) -> Option<Stack> {
    let mut stack = Stack::default();
    stack
        .install(FilterProgram::new(&program(bytes)).ok()?)
        .ok()?;
    Some(stack)
}

/// Checks every table; gives how many cases there are.
fn check_tables(stack: &Stack, tried: &[SeccompData]) -> Option<usize> {
    let mut analysis = Analysis::new(stack).ok()?;
    for (filter, unreachable) in stack.filters().iter().zip(analysis.unreachable()) {
        for call in tried {
            filter.trace(call, &mut |step| {
                assert!(
                    !unreachable.contains(&step.at),
                    "{} is reached by {call:?}",
                    step.at
                );
            });
        }
    }
    let mut shown = 0;
    for &arch in Arch::ALL {
        let table = analysis.table(arch).ok()?;
        let cases = table.groups.iter().flat_map(|group| &group.cases);
        let cases = cases.chain(table.others.iter().flat_map(|others| &others.cases));
        for case in cases {
            shown += 1;
            if let Some(example) = &case.example {
                let action = stack.run(example);
                assert!(
                    is_such(case.action, case.data.is_some(), action),
                    "{case:?} does {action:?}"
                );
            }
        }
        for call in tried.iter().filter(|call| arch_of(call) == Some(arch)) {
            check_call(stack, &table, call);
        }
    }
    Some(shown)
}

/// The action of a call is that of exactly one case of its number.
fn check_call(stack: &Stack, table: &Table, call: &SeccompData) {
    let holds = |&(nr, _): &(u32, _)| nr == call.nr as u32;
    let Some(group) = table
        .groups
        .iter()
        .find(|group| group.calls.iter().any(holds))
    else {
        return;
    };
    let action = stack.run(call);
    let case = group
        .cases
        .iter()
        .find(|case| is_such(case.action, case.data.is_some(), action));
    let case = case.unwrap_or_else(|| panic!("{call:?} does {action:?}, which {group:?} lacks"));
    assert!(group.cases.len() > 1 || case.when.is_always());
}

/// Checks where two stacks differ; gives how many ways.
fn check_differences(first: &Stack, second: &Stack, tried: &[SeccompData]) -> Option<usize> {
    let differences = diff(first, second).ok()?;
    for contrast in differences
        .iter()
        .flat_map(|difference| &difference.contrasts)
    {
        if let Some(example) = &contrast.example {
            assert_eq!(
                first.run(example).effect(),
                contrast.first.effect(),
                "{contrast:?}"
            );
            assert_eq!(
                second.run(example).effect(),
                contrast.second.effect(),
                "{contrast:?}"
            );
            assert_ne!(contrast.first.effect(), contrast.second.effect());
        }
    }
    for call in tried {
        if first.run(call).effect() == second.run(call).effect() {
            continue;
        }
        let covers = |difference: &seccomp::Difference| {
            let holds = |&(nr, _): &(u32, _)| nr == call.nr as u32;
            match difference.arch {
                Some(arch) if arch.audit() != call.arch => false,
                Some(_) => difference.others.is_some() || difference.calls.iter().any(holds),
                None => Arch::ALL.iter().all(|arch| arch.audit() != call.arch),
            }
        };
        assert!(
            differences.iter().any(covers),
            "{call:?} differs and is not covered"
        );
    }
    Some(differences.len())
}

fn is_such(shown: Action, computed: bool, found: Action) -> bool {
    shown.effect() == found.effect() || computed && shown.rank() == found.rank()
}

/// The architecture whose table holds a call.
fn arch_of(call: &SeccompData) -> Option<Arch> {
    Arch::ALL
        .iter()
        .copied()
        .find(|&arch| arch.audit() == call.arch && calls::name(arch, call.nr as u32).is_some())
}

/// Numbers at which filters decide.
const NUMBERS: &[u32] = &[
    0,
    1,
    2,
    3,
    16,
    41,
    59,
    60,
    231,
    0x4000_0000,
    0x4000_0001,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0xc000_003e,
    0x4000_0003,
    0xc000_00b7,
    0x4000_0028,
    0xc000_00f3,
    0x5413,
    0xff,
    7,
    0x10000,
    0xffff,
];

const RETURNS: &[u32] = &[
    0x7fff_0000,
    0x0005_0001,
    0x0005_0026,
    0x8000_0000,
    0,
    0x0003_0007,
    0x7ff0_0009,
    0x7ffc_0000,
    0x7fc0_0000,
    0x0005_ffff,
    0x1234_5678,
];

fn number(choice: u8) -> u32 {
    NUMBERS[usize::from(choice) % NUMBERS.len()]
}

/// A filter: what seccomp takes, and a return at the end.
fn program(bytes: &[u8]) -> Vec<SockFilter> {
    let count = bytes.len() / 4;
    let instruction = |(at, raw): (usize, &[u8])| {
        let (choice, jt, jf, k) = (raw[0], raw[1], raw[2], raw[3]);
        // The last instruction made here is followed by a return.
        let reach = |skip: u8| (usize::from(skip) % (count - at)).min(255) as u8;
        let jump = |code| SockFilter::new(code, reach(jt), reach(jf), number(k));
        let plain = |code, k| SockFilter::new(code, 0, 0, k);
        match choice % 32 {
            0..=8 => plain(0x20, u32::from(k % 16) * 4),
            9..=16 => jump([0x15, 0x15, 0x35, 0x25, 0x45][usize::from(choice / 32) % 5]),
            17 => jump([0x1d, 0x2d, 0x3d, 0x4d][usize::from(choice / 32) % 4]),
            18 | 19 => plain(0x54, number(k)),
            20 => plain(
                [0x04, 0x14, 0x44, 0xa4][usize::from(choice / 32) % 4],
                number(k),
            ),
            21 => plain(
                [0x64, 0x74][usize::from(choice / 32) % 2],
                u32::from(k % 32),
            ),
            22 => plain(0x02, u32::from(k % 4)),
            23 => plain([0x60, 0x61][usize::from(choice / 32) % 2], u32::from(k % 4)),
            24 => plain(0x07, 0),
            25 => plain(0x87, 0),
            26 => plain([0x0c, 0x5c, 0x4c, 0xac][usize::from(choice / 32) % 4], 0),
            27 => plain([0x00, 0x01][usize::from(choice / 32) % 2], number(k)),
            28 => plain([0x80, 0x81, 0x84, 0x16][usize::from(choice / 32) % 4], 0),
            _ => plain(0x06, RETURNS[usize::from(k) % RETURNS.len()]),
        }
    };
    let mut program: Vec<_> = bytes.chunks_exact(4).enumerate().map(instruction).collect();
    program.push(SockFilter::new(0x06, 0, 0, RETURNS[0]));
    program
}

/// A call to try.
fn call(raw: &[u8]) -> SeccompData {
    let arch = Arch::ALL
        .get(usize::from(raw[0] % 8))
        .map_or(number(raw[1]), |arch| arch.audit());
    let nr = if raw[2] & 1 == 0 {
        u32::from(raw[3])
    } else {
        number(raw[3])
    };
    let wide = |high: u8, low: u8| u64::from(number(high)) << 32 | u64::from(number(low));
    SeccompData {
        nr: nr as i32,
        arch,
        instruction_pointer: wide(raw[4], raw[5]),
        args: [
            wide(raw[6], raw[7]),
            wide(raw[8], raw[9]),
            wide(raw[10], raw[11]),
            wide(raw[5], raw[6]),
            wide(raw[7], raw[8]),
            wide(raw[9], raw[10]),
        ],
    }
}

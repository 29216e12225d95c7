//! `cargo differential soak soundness`: runs of accepted programs, held to the states and facts of
//! their verification.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use beebox_differential::verifier::soundness::{self, FactCounts, Outcome as Checked, Tally};

use spec::kfuncs::KernelFunction;

use super::PAGE;
use super::selftests::{Options, Target, name_of};
use crate::command::Outcome;
use beebox_differential::page::write_part;

/// Accepted programs that are run if no number is given.
const PROGRAMS: u64 = 10_000;
/// Runs of each.
const INPUTS: u64 = 100;
/// The objects that are run beside generated programs.
const SET: &str = "7.2/v3";

/// Programs that Linux 6.18 accepts wrongly, as its own later tests say: marks of a callback
/// loop are incomplete when a state is compared, what a comparison says of a packet pointer
/// outlives arithmetic on the pointer, a slot counts as dead although a path through a tail
/// call reads it, a slice of a record outlives the record, an exception in a global function leaves
/// a reference of its caller, another reference is taken by the address of a node.
const WRONGLY_ACCEPTED: &[&str] = &[
    "dynptr_fail.bpf.o/dynptr_slice_commuted_invalidate",
    "exceptions_fail.bpf.o/reject_global_subprog_throw_with_reference",
    "iters.bpf.o/absent_mark_in_the_middle_state4",
    "refcounted_kptr_fail.bpf.o/refcount_acquire_list_node_offset",
    "verifier_direct_packet_access.bpf.o/pkt_range_clear_after_add",
    "verifier_direct_packet_access.bpf.o/pkt_range_clear_after_sub",
    "verifier_live_stack.bpf.o/caller_stack_write_tail_call",
];

/// Runs so many generated programs, from a seed on. Without a number also the programs of the
/// selftests, and the tables are written.
pub(crate) fn check(number: Option<u64>, seed: u64) -> Outcome {
    let programs = number.unwrap_or(PROGRAMS);
    let mut rows = vec![("generated".to_owned(), generated(programs, seed)?)];
    if number.is_none() {
        rows.push((format!("selftests {SET}"), selftests()?));
    }
    let text = format!(
        "{}\n{}\n{}",
        runs_table(&rows),
        facts_table(&rows),
        used_table(&rows)
    );
    print!("{text}");
    let escaped: u64 = rows.iter().map(|(_, tally)| tally.escaped).sum();
    if escaped > 0 {
        return Err(format!("runs of {escaped} programs escaped").into());
    }
    match number.is_none() {
        true => write_part(PAGE, "soundness", &text),
        false => Ok(()),
    }
}

fn generated(programs: u64, seed: u64) -> Outcome<Tally> {
    let kernel = kernel_data::linux_6_18_minimal();
    let types = kernel.btf().ok_or("the built-in kernel has no BTF")?;
    let registry = kernel_data::linux_6_18_minimal_registry(types);
    let begin = Instant::now();
    let progress = |tally: &Tally| {
        if tally.programs.is_multiple_of(1_000) {
            let seconds = begin.elapsed().as_secs();
            eprintln!(
                "{} accepted, {} runs, {seconds} s",
                tally.accepted, tally.runs
            );
        }
    };
    let tally = soundness::check_generated(&kernel, &registry, seed, programs, INPUTS, progress)?;
    for found in &tally.found {
        println!("seed {}\n{}", found.seed, found.case);
        print_escape(&found.escape);
    }
    print_uncovered(&tally, begin);
    Ok(tally)
}

fn selftests() -> Outcome<Tally> {
    let options = Options::of_set(SET)?;
    let target = Target::running()?;
    let begin = Instant::now();
    let mut tally = Tally::default();
    let mut found = 0;
    for set in &options.sets {
        for path in options.objects(set)? {
            target.load_each(&path, &mut |loaded| {
                let Ok(program) = &loaded.program else {
                    return;
                };
                // A panic is one program's missing answer.
                let run = AssertUnwindSafe(|| {
                    soundness::check(program, &target.kernel, &target.registry, INPUTS)
                });
                let checked =
                    catch_unwind(run).unwrap_or_else(|_| Checked::Uncovered("panic".to_owned()));
                let name = format!("{}/{}", name_of(&path), loaded.name);
                let is_expected = WRONGLY_ACCEPTED.contains(&&*name);
                match (checked, is_expected) {
                    (Checked::Escaped(_), true) => found += 1,
                    (checked, _) => {
                        if let Some(escape) = tally.count(checked) {
                            println!("{name}");
                            print_escape(&escape);
                        }
                    }
                }
            })?;
        }
    }
    print_uncovered(&tally, begin);
    let expected = WRONGLY_ACCEPTED.len();
    match found == expected {
        true => Ok(tally),
        false => {
            let text = "programs that Linux accepts wrongly escaped";
            Err(format!("{found} of {expected} {text}").into())
        }
    }
}

fn print_escape(escape: &soundness::Escape) {
    println!(
        "  input {}, instruction {}: {}\n",
        escape.input, escape.at, escape.what
    );
}

fn print_uncovered(tally: &Tally, begin: Instant) {
    for (what, count) in &tally.uncovered {
        println!("{count:8}  not run: {what}");
    }
    println!(
        "{} programs, {} accepted and run, {:.0} s",
        tally.programs,
        tally.accepted,
        begin.elapsed().as_secs_f64()
    );
}

fn runs_table(rows: &[(String, Tally)]) -> String {
    let mut table = String::from(
        "| programs | accepted and run | with every scalar precise, too | runs | \
         to the limit of 20,000 instructions | instructions checked | upper halves filled | \
         escapes |\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for (name, tally) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "| {name} | {} | {} | {} | {} | {} | {} | {} |",
            tally.accepted,
            tally.all_precise,
            tally.runs,
            tally.unfinished,
            tally.steps,
            tally.filled,
            tally.escaped
        );
    }
    table
}

fn facts_table(rows: &[(String, Tally)]) -> String {
    type Share = fn(&FactCounts) -> (u64, u64);
    const SHARES: &[(&str, Share)] = &[
        ("instructions never reached", |it| (it.dead, it.insns)),
        ("branches with one outcome", |it| (it.decided, it.branches)),
        ("accesses through one kind of pointer", |it| {
            (it.of_one_kind, it.accesses)
        }),
        ("accesses at one offset", |it| {
            (it.at_one_offset, it.accesses)
        }),
        ("numbers read with a range", |it| (it.ranges, it.numbers)),
        ("numbers read that are constant", |it| {
            (it.constants, it.numbers)
        }),
        ("32-bit writes whose upper half matters", |it| {
            (it.needed, it.zero_extensions)
        }),
        ("packet accesses that one comparison proves", |it| {
            (it.grouped, it.packet_accesses)
        }),
        ("calls on a known map with a known key", |it| {
            (it.keys, it.map_calls)
        }),
    ];
    let mut table = String::from("| facts");
    for (name, _) in rows {
        let _ = write!(table, " | {name}");
    }
    table.push_str(" |\n|---");
    table.push_str(&"|---:".repeat(rows.len()));
    table.push_str("|\n");
    for (what, share) in SHARES {
        let _ = write!(table, "| {what}");
        for (_, tally) in rows {
            let (part, whole) = share(&tally.facts);
            let _ = write!(table, " | {part} of {whole}");
        }
        table.push_str(" |\n");
    }
    table
}

/// Calls on each kind of map, and of each helper.
fn used_table(rows: &[(String, Tally)]) -> String {
    let mut table = String::from("| calls in runs");
    for (name, _) in rows {
        let _ = write!(table, " | {name}");
    }
    table.push_str(" |\n|---");
    table.push_str(&"|---:".repeat(rows.len()));
    table.push_str("|\n");
    let mut line = |what: &str, count: &dyn Fn(&Tally) -> u64| {
        let _ = write!(table, "| {what}");
        for (_, tally) in rows {
            let _ = write!(table, " | {}", count(tally));
        }
        table.push_str(" |\n");
    };
    let used = rows.iter().map(|(_, tally)| &tally.used);
    let kinds: BTreeSet<&str> = used
        .clone()
        .flat_map(|used| used.maps.keys())
        .copied()
        .collect();
    for kind in kinds {
        line(&format!("on maps of type {kind}"), &|tally| {
            tally.used.maps.get(kind).copied().unwrap_or(0)
        });
    }
    let helpers: BTreeSet<i32> = used.flat_map(|used| used.helpers.keys()).copied().collect();
    for helper in &helpers {
        let kfunc = || KernelFunction::from_number(*helper).and_then(KernelFunction::name);
        let name = spec::calls::name(*helper)
            .or_else(kfunc)
            .unwrap_or("unknown");
        line(&format!("`{name}`"), &|tally| {
            tally.used.helpers.get(helper).copied().unwrap_or(0)
        });
    }
    table
}

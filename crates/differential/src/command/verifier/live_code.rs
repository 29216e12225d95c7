//! `cargo differential compare live-code`: the kernel's form of the selftests' programs beside the
//! instructions that the running kernel has of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use beebox::internal::verify::StandaloneProgram;
use beebox_differential::verifier::live_code;
use kernel_client::load::{LoadRequest, load};
use verifier::{Proof, Spills};

use super::PAGE;
use super::selftests::{Options, Selection, Target, name_of};
use crate::command::Outcome;
use beebox_differential::page::write_part;

/// Counts of one set.
#[derive(Default)]
struct Counts {
    programs: usize,
    equal: usize,
    insns: usize,
    removed: usize,
    rewritten: usize,
    unchanged: usize,
    /// Instructions of which the kernel makes others, and those whose number was compared.
    open: usize,
    counted: usize,
    /// Programs that were not compared, by reason.
    left_out: BTreeMap<&'static str, usize>,
}

/// Result of the comparison of one program.
struct Compared {
    insns: usize,
    left: usize,
    rewritten: usize,
    open: usize,
    counted: usize,
    /// Instructions that were compared one by one, or the first one that differs.
    answer: Result<usize, usize>,
}

/// Compares sets of the kernel's selftests and writes the table.
pub(crate) fn compare(selection: Selection) -> Outcome {
    let options = Options::from_selection(selection, &["7.2/v3", "7.2/v4", "6.12/v3"])?;
    let target = Target::running()?;
    let mut table = String::from(
        "| set | accepted programs | same instructions | instructions | removed | added | compared one by one | rewritten in the kernel's own way | number compared |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for set in &options.sets {
        let mut counts = Counts::default();
        for path in options.objects(set)? {
            let file = name_of(&path);
            target.load_each(&path, &mut |loaded| {
                let name = format!("{file}/{}", loaded.name);
                if options.includes(&name) {
                    counts.add(&name, compare_program(&loaded, &target), options.list);
                }
            })?;
        }
        let title = options.title(set);
        println!("{title}: not compared: {:?}", counts.left_out);
        let _ = writeln!(
            table,
            "| {title} | {} | {} | {} | {} | {} | {} | {} | {} |",
            counts.programs,
            counts.equal,
            counts.insns,
            counts.removed,
            counts.rewritten,
            counts.unchanged,
            counts.open,
            counts.counted
        );
    }
    print!("{table}");
    match options.is_whole() {
        true => write_part(PAGE, "live-code", &table),
        false => Ok(()),
    }
}

impl Counts {
    fn add(&mut self, name: &str, compared: Result<Compared, &'static str>, list: bool) {
        let compared = match compared {
            Ok(compared) => compared,
            Err(why) => {
                *self.left_out.entry(why).or_default() += 1;
                return;
            }
        };
        self.programs += 1;
        self.insns += compared.insns;
        self.removed += compared.insns - compared.left;
        self.rewritten += compared.rewritten;
        match compared.answer {
            Ok(unchanged) => {
                self.equal += 1;
                self.unchanged += unchanged;
                self.open += compared.open;
                self.counted += compared.counted;
            }
            Err(slot) if list => println!("{name}: differs from instruction {slot} on"),
            Err(_) => {}
        }
    }
}

fn compare_program(loaded: &StandaloneProgram, target: &Target) -> Result<Compared, &'static str> {
    let program = loaded.program.as_ref().map_err(|_| "not linked")?;
    let proof = Proof::of(program, &target.kernel, &target.registry);
    let proof = proof.map_err(|_| "not accepted")?;
    let request = LoadRequest {
        log_level: 0,
        log_size: 0,
    };
    let asked = load(program, request).map_err(|_| "not loaded")?;
    let kernel = asked.answer.result.map_err(|_| "refused by the kernel")?;
    let info = kernel.info().map_err(|_| "without information")?;
    let live = proof.live_code(Spills::Dropped);
    let form = proof.kernel_code();
    let open = || form.slots.iter().filter(|slot| slot.is_open);
    Ok(Compared {
        open: open().count(),
        counted: open().filter(|slot| slot.insns.is_some()).count(),
        insns: program.insns().len(),
        left: live.insns.len(),
        rewritten: form.slots.len() - live.insns.len(),
        answer: live_code::compare(&form, &info.translated),
    })
}

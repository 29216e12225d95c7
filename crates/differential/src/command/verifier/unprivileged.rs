//! `cargo differential compare unprivileged`: programs of the kernel's selftests, given to the
//! running kernel and to the verifier by callers without some capabilities.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use beebox_differential::verifier::{Agreement, VerifierPair};
use spec::kernel::{Privileges, Source};

use super::PAGE;
use super::selftests::{Options, Selection, Target, name_of};
use crate::command::Outcome;
use beebox_differential::page::write_part;

/// Callers by name.
const CALLERS: [(&str, &str); 2] = [
    ("no capability", "none"),
    ("CAP_BPF and CAP_NET_ADMIN", "bpf,net_admin"),
];

/// Compares sets of the kernel's selftests and writes the table.
pub(crate) fn compare(selection: Selection) -> Outcome {
    let options = Options::from_selection(selection, &["7.2/v3", "7.2/v4", "6.12/v3"])?;
    let mut table = String::from(
        "| set | caller | programs | accepted | unsupported | same verdict, counts and last line | differ |\n\
         |---|---|---:|---:|---:|---:|---:|\n",
    );
    let mut differ = 0;
    for set in &options.sets {
        for (caller, privileges) in CALLERS {
            let counts = compare_set(&options, &options.objects(set)?, privileges.parse()?)?;
            let title = options.title(set);
            println!("{title}, {caller}: not compared: {:?}", counts.left_out);
            differ += counts.differing();
            let _ = writeln!(
                table,
                "| {title} | {caller} | {} | {} | {} | {} | {} |",
                counts.compared(),
                counts.accepted,
                counts.of(Agreement::Unsupported),
                counts.of(Agreement::Equal),
                counts.differing(),
            );
        }
    }
    print!("{table}");
    if options.is_whole() {
        write_part(PAGE, "unprivileged", &table)?;
    }
    match differ {
        0 => Ok(()),
        _ => Err(format!("{differ} answers differ").into()),
    }
}

/// Counts of the programs of a set.
#[derive(Default)]
struct Counts {
    agreements: BTreeMap<Agreement, usize>,
    accepted: usize,
    /// Programs that were not compared, by reason.
    left_out: BTreeMap<String, usize>,
}

impl Counts {
    fn of(&self, agreement: Agreement) -> usize {
        self.agreements.get(&agreement).copied().unwrap_or(0)
    }

    fn compared(&self) -> usize {
        self.agreements.values().sum()
    }

    fn differing(&self) -> usize {
        self.compared() - self.of(Agreement::Equal) - self.of(Agreement::Unsupported)
    }
}

fn compare_set(
    options: &Options,
    objects: &[std::path::PathBuf],
    privileges: Privileges,
) -> Outcome<Counts> {
    let target = Target::running()?;
    let kernel = (target.kernel.clone()).with_privileges(privileges, Source::Given);
    let verifiers = VerifierPair::new(&kernel, &target.registry);
    let mut verifiers = verifiers.ok_or("this kernel lets no such caller load programs")?;
    let mut counts = Counts::default();
    for path in objects {
        let file = name_of(path);
        target.load_each(path, &mut |loaded| {
            let name = format!("{file}/{}", loaded.name);
            let Ok(program) = &loaded.program else {
                return;
            };
            if !options.includes(&name) {
                return;
            }
            match verifiers.compare(program) {
                Err(why) => *counts.left_out.entry(why).or_default() += 1,
                Ok(found) => {
                    *counts.agreements.entry(found.agreement).or_default() += 1;
                    counts.accepted += usize::from(found.kernel.is_accepted());
                    let is_listed = options.list || found.agreement != Agreement::Unsupported;
                    if is_listed && found.agreement != Agreement::Equal {
                        let ours = match &found.ours {
                            Ok(ours) => ours.to_string(),
                            Err(why) => format!("unsupported: {why}"),
                        };
                        println!(
                            "{name}: {:?}\n  kernel {}\n  beebox {ours}",
                            found.agreement, found.kernel
                        );
                    }
                }
            }
        })?;
    }
    Ok(counts)
}

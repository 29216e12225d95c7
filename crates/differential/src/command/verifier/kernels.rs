//! `cargo differential compare kernels`: verdicts, counts and last lines of the kernel's selftests for
//! other kernels, each by its own types, registry and behaviours, beside the answers that it gave.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::score::{HEADING, answers_as, count, differences, unanswered};
use super::selftests::{Options, Target, name_of};
use super::sides::{self, Sides};
use super::truth;
use crate::command::Outcome;
use beebox::internal::ask::image_in;
use beebox_differential::page::write_part;
use spec::behaviour::{Behaviour, is_compared};

/// The page with the tables.
pub(super) const PAGE: &str = "docs/kernels.md";
/// The set of which the kernels' answers are recorded.
const SET: &str = "7.2/v3";

/// A kernel that is described, with its answers.
struct Described {
    /// Its version.
    version: String,
    target: Target,
    /// The file with its answers.
    truth: PathBuf,
}

/// Compares the kernels of these names, or all.
pub(crate) fn compare(names: &[String], only: Option<&str>, list: bool) -> Outcome {
    let options = Options::of_set(SET)?;
    let set = &options.sets[0];
    let mut objects = options.objects(set)?;
    if let Some(only) = only {
        objects.retain(|path| name_of(path).contains(only));
    }
    let homes = match names.is_empty() {
        true => homes()?,
        false => names
            .iter()
            .map(|name| described(&kernels().join(name)))
            .collect(),
    };
    let mut table = String::from(HEADING).replace("| set |", "| kernel |");
    for home in &homes {
        let kernel = describe(home, |version| set.truth_on(version))?;
        let version = &kernel.version;
        let truth = truth::read(&kernel.truth)?;
        let of_objects: BTreeSet<String> = objects.iter().map(|path| name_of(path)).collect();
        let is_asked = |name: &&str| {
            let file = name.split_once('/').map_or(*name, |(file, _)| file);
            of_objects.contains(file)
        };
        let programs: BTreeSet<&str> = truth.keys().map(String::as_str).filter(is_asked).collect();
        let mine = answers_as(&objects, &kernel.target, &truth)?;
        for difference in differences(&programs, &truth, &mine) {
            println!("{version}: {difference}");
        }
        if list {
            for program in unanswered(&programs, &truth, &mine) {
                println!("{version}: {program} is not answered");
            }
        }
        let _ = writeln!(table, "| {version} {}", count(&programs, &truth, &mine));
    }
    print!("{table}");
    match names.is_empty() && only.is_none() {
        true => {
            write_part(PAGE, "kernels", &table)?;
            write_part(PAGE, "behaviours", &behaviours(&sides::read()?))
        }
        false => Ok(()),
    }
}

/// The table of behaviours, with what shows each.
pub(super) fn behaviours(sides: &Sides) -> String {
    let mut table = sides::summary(sides);
    table += "\n\n| behaviour | area | Linux | and | where a kernel has it | answered otherwise without it by | and with it by |\n\
        |---|---|---|---|---|---|---|\n";
    for behaviour in Behaviour::ALL {
        let backports = behaviour.backports().iter().map(ToString::to_string);
        let shown = sides.get(behaviour).cloned().unwrap_or_default();
        let [without, with] = shown.map(|shown| match shown {
            Some(shown) => format!("{}: `{}`", shown.kernel, shown.program),
            None => String::new(),
        });
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {without} | {with} |",
            behaviour.name(),
            behaviour.area().name(),
            behaviour.since(),
            backports.collect::<Vec<_>>().join(", "),
            behaviour.title(),
        );
    }
    table
}

/// The place of the kernels that `tools/kernels/vm` keeps.
pub(super) fn kernels() -> PathBuf {
    let cache = oracle::selftests();
    let inside = cache.join("kernels");
    match inside.is_dir() {
        true => inside,
        false => cache.with_file_name("kernels"),
    }
}

/// The description of a kernel that is kept, by its name.
pub(crate) fn described_kernel(name: &str) -> PathBuf {
    described(&kernels().join(name))
}

/// The description of a kernel that is kept.
pub(super) fn described(home: &Path) -> PathBuf {
    home.join("described")
}

/// Names of the kernels of releases with rules that are kept, oldest first.
pub(crate) fn kept() -> Outcome<Vec<String>> {
    let homes = homes()?.into_iter();
    Ok(homes
        .filter_map(|home| home.parent().map(name_of))
        .collect())
}

/// The descriptions of the kernels of releases with rules that are kept, oldest first.
fn homes() -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(kernels())?.filter_map(|entry| Some(entry.ok()?.path()));
    let has_rules = |home: &Path| name_of(home).parse().is_ok_and(is_compared);
    let mut homes: Vec<PathBuf> = entries
        .filter(|home| has_rules(home) && image_in(&described(home)).is_some())
        .collect();
    homes.sort_by_key(|home| {
        let name = name_of(home);
        let numbers = name
            .split('.')
            .map(|number| number.parse::<u32>().unwrap_or(0));
        numbers.collect::<Vec<_>>()
    });
    Ok(homes.iter().map(|home| described(home)).collect())
}

fn describe(home: &Path, truth: impl Fn(&str) -> PathBuf) -> Outcome<Described> {
    let target = Target::described(home)?;
    let version = target.kernel.version().ok_or("a kernel without version")?;
    let version = version.to_string();
    Ok(Described {
        truth: truth(&version),
        version,
        target,
    })
}

#[cfg(test)]
mod tests {
    use beebox_differential::page::part;

    use super::*;

    #[test]
    fn the_page_has_the_table_of_behaviours() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(PAGE);
        let page = std::fs::read_to_string(path).unwrap();
        let table = behaviours(&sides::read().unwrap());
        assert_eq!(part(&page, "behaviours"), Some(&*table));
    }
}

//! The page that says on how much libbpf and Beebox agree.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::compare::{Aspect, ObjectComparison};
use super::selftests::{RELEASE, Set};

/// Results of several sets.
#[derive(Debug, Default)]
pub struct Page {
    /// Each set with how many objects it has, and what was found.
    pub sets: Vec<(&'static Set, usize, ObjectComparison)>,
}

impl Page {
    /// Total number of differences.
    pub fn differences(&self) -> usize {
        let sets = self.sets.iter();
        sets.map(|(_, _, found)| found.differences.len()).sum()
    }

    /// The page in Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# Loading compared with libbpf\n\n\
             <!-- Written by `cargo differential compare objects`. -->\n\n\
             Every object of the kernel's own tests is loaded by libbpf of Linux {RELEASE} and linked\n\
             by Beebox, whole, and once for each of its programs with that program alone. A\n\
             stand-in for the kernel records the `bpf(2)` calls of libbpf, which are compared with\n\
             the linked programs and maps, field by field. If libbpf refuses an object or a\n\
             program, Beebox must refuse it with the same class of error. Both link for the\n\
             running kernel (Linux 6.18): its BTF, configuration and symbols.\n\n\
             Each cell: equal of compared. A program counts each time that it is loaded: with its\n\
             object, and alone. Objects with externs that this kernel lacks are loaded once more\n\
             with all externs weak.\n\n\
             | compared |"
        );
        let mut line = String::from("\n| --- |");
        for (set, objects, _) in &self.sets {
            let _ = write!(text, " {} ({objects} objects) |", set.title());
            line.push_str(" ---: |");
        }
        text.push_str(&line);
        text.push('\n');
        for &aspect in Aspect::ALL {
            let _ = write!(text, "| {} |", aspect.title());
            for (_, _, found) in &self.sets {
                let count = found.counts.get(&aspect).copied().unwrap_or_default();
                let _ = write!(text, " {} of {} |", count.equal, count.compared);
            }
            text.push('\n');
        }
        self.ends(&mut text);
        text
    }

    /// Results of libbpf by set.
    fn ends(&self, text: &mut String) {
        text.push_str(
            "\n## Results of libbpf\n\n\
             Objects as a whole / programs alone, by class of error with libbpf's error number.\n\n\
             | result |",
        );
        let mut line = String::from("\n| --- |");
        let mut ends = BTreeSet::new();
        for (set, _, found) in &self.sets {
            let _ = write!(text, " {} |", set.title());
            line.push_str(" ---: |");
            ends.extend(found.ends.keys().copied());
        }
        text.push_str(&line);
        text.push('\n');
        for end in ends {
            let (class, errno) = end;
            let number = match errno {
                0 => String::new(),
                errno => format!(" ({errno})"),
            };
            let _ = write!(text, "| {class}{number} |");
            for (_, _, found) in &self.sets {
                let [whole, alone] = found.ends.get(&end).copied().unwrap_or_default();
                let _ = write!(text, " {whole} / {alone} |");
            }
            text.push('\n');
        }
    }
}

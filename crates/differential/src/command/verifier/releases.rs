//! `cargo differential compare releases`: what the tables of releases refuse on older kernels, beside the
//! recorded answers of these kernels (tools/kernels).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use beebox::Kernel;
use beebox::internal::kernel::files;
use beebox::internal::program::Program;
use beebox::internal::verify::StandaloneProgram;
use spec::kernel::Source;
use verifier::{RefusalKind, Verdict, verify};

use super::selftests::{Options, Selection, Target, name_of};
use super::truth::{self, Answer};
use crate::command::Outcome;
use beebox_differential::page::write_part;

/// Kernels older than the rules whose answers are recorded.
const KERNELS: &[&str] = &["5.10.262", "6.1.192", "6.12.117"];

/// Answers of a kernel to the programs that the tables refuse.
#[derive(Default)]
struct Answers {
    refused: u32,
    /// Loading failed before the verifier, or the kernel could not be asked.
    without_verdict: u32,
    accepted: Vec<String>,
}

/// Verifies the kernel's selftests for older releases and writes the table in docs/kernels.md.
pub(crate) fn compare(selection: Selection) -> Outcome {
    let options = Options::from_selection(selection, &["7.2/v3"])?;
    let files = options.objects(&options.sets[0])?;
    let mut table = String::from(
        "| kernel | refused by the tables | refused by the kernel | no verdict of the kernel | accepted by the kernel |\n\
         |---|---:|---:|---:|---:|\n",
    );
    let mut wrong = 0;
    for version in KERNELS {
        let (release, _) = version
            .rsplit_once('.')
            .ok_or("a version has three numbers")?;
        let answers = answers(&files, version, &image(release)?)?;
        let accepted = answers.accepted.len();
        let all = answers.refused as usize + answers.without_verdict as usize + accepted;
        let _ = writeln!(
            table,
            "| {version} | {all} | {} | {} | {accepted} |",
            answers.refused, answers.without_verdict,
        );
        for program in &answers.accepted {
            println!("{version} accepts {program}");
        }
        wrong += accepted;
    }
    print!("{table}");
    if options.is_whole() {
        write_part("docs/kernels.md", "releases", &table)?;
    }
    match wrong {
        0 => Ok(()),
        _ => Err(format!("{wrong} programs are refused that kernels accept").into()),
    }
}

/// The kernel of a release that `tools/kernels/vm` keeps.
fn image(release: &str) -> Outcome<Kernel> {
    let cache = oracle::selftests();
    let beside = cache.with_file_name("kernels");
    let homes = [cache.join("kernels"), beside];
    let mut images = homes
        .map(|home| home.join(release).join("vmlinuz"))
        .into_iter();
    let image = images.find(|image| image.is_file());
    let image = image.ok_or_else(|| format!("no kernel: tools/kernels/vm fetch {release}"))?;
    Ok(files::open(image)?)
}

fn answers(files: &[PathBuf], version: &str, kernel: &Kernel) -> Outcome<Answers> {
    let recorded = format!("../../tools/kernels/truth/truth-7.2-v3-on-{version}.csv.gz");
    let recorded = truth::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(recorded))?;
    let target = Target {
        registry: kernel_data::linux_6_18_minimal_registry(
            kernel.btf().ok_or("a kernel without BTF")?,
        ),
        kernel: kernel.clone().with_version(version.parse()?, Source::Given),
        keeps_names: false,
    };
    let mut answers = Answers::default();
    for path in files {
        let mut visit = |loaded: StandaloneProgram| {
            let name = format!("{}/{}", name_of(path), loaded.name);
            let Ok(program) = &loaded.program else {
                return;
            };
            if let Some(reason) = refusal(program, &target) {
                answers.add(&recorded, name, &reason);
            }
        };
        target.load_each(path, &mut visit)?;
    }
    Ok(answers)
}

/// The reason, if the tables of releases refuse a program.
fn refusal(program: &Program, target: &Target) -> Option<String> {
    let Target {
        kernel, registry, ..
    } = target;
    match verify(program, kernel, registry, &Default::default()).verdict {
        Verdict::Refused(refusal) => {
            (refusal.kind == RefusalKind::Release).then_some(refusal.message())
        }
        Verdict::Accepted | Verdict::Unsupported(_) | Verdict::Bug(_) => None,
    }
}

impl Answers {
    fn add(&mut self, recorded: &HashMap<String, Answer>, name: String, reason: &str) {
        match recorded.get(&name).and_then(|answer| answer.accepted) {
            Some(true) => self.accepted.push(format!("{name}: {reason}")),
            Some(false) => self.refused += 1,
            None => self.without_verdict += 1,
        }
    }
}

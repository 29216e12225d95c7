//! `cargo differential soak kernels`: generated programs, and real ones with one instruction changed,
//! beside kernels that are booted under QEMU.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use beebox::internal::ask::image_in;
use beebox_differential::verifier::{Agreement, BootedKernel, BootedSoak, Found, Question};
use btf::Btf;
use clap::Args;
use program::case::{Case, KernelAnswer};
use program::{InitialContents, Program};
use testkit::ebpf::Choices;
use testkit::verifier::{generated_case, generated_plain_case, mutate};

use super::{AT_ONCE, OWN};
use crate::command::Outcome;
use crate::command::verifier::{described_kernel, kept_kernels, selftests};
use selftests::{Options, Target, name_of};

/// Programs of one boot.
const BOOT: usize = 2_500;
/// Bytes in maps of a mutated program: each mutation has them in the memory of the machine.
const MOST_CONTENTS: usize = 1 << 16;

/// Kernels and numbers of programs.
#[derive(Args)]
pub(crate) struct KernelSoak {
    /// Kernels by the names that `tools/kernels/vm` has for them; without names all that are kept
    names: Vec<String>,
    /// Generated programs for each
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    programs: u64,
    /// Mutations for each, of the selftests and of our own objects
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    mutations: u64,
    /// First seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Ask about these cases alone
    #[arg(long, value_name = "CASE", num_args = 1..)]
    from: Vec<PathBuf>,
    /// Write each reduced difference as a case, with the answers of every kernel that is described
    #[arg(long, value_name = "DIRECTORY")]
    cases: Option<PathBuf>,
    /// Print differences as they are found
    #[arg(long)]
    whole: bool,
}

/// Where programs come from.
#[derive(Clone, Copy)]
enum Source {
    Generated,
    Mutations,
    Cases,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Generated => "generated",
            Source::Mutations => "mutations",
            Source::Cases => "cases",
        })
    }
}

impl KernelSoak {
    fn sources(&self) -> Vec<Source> {
        if !self.from.is_empty() {
            return vec![Source::Cases];
        }
        let counts = [
            (Source::Generated, self.programs),
            (Source::Mutations, self.mutations),
        ];
        let asked = counts.into_iter().filter(|(_, count)| *count > 0);
        asked.map(|(source, _)| source).collect()
    }
}

/// A kernel that is kept.
pub(super) struct Kept {
    /// Its release, as 6.12.117.
    pub(super) version: String,
    target: Target,
    pub(super) booted: BootedKernel,
}

/// Compares kernels one after the other.
pub(crate) fn compare(soak: &KernelSoak) -> Outcome {
    let names = match soak.names.is_empty() {
        true => kept_kernels()?,
        false => soak.names.clone(),
    };
    if names.is_empty() {
        return Err("no kernel is kept: tools/kernels/vm fetch NAME".into());
    }
    let kernels: Vec<Kept> = names
        .iter()
        .map(|name| kept(name))
        .collect::<Result<_, _>>()?;
    let mut rows = String::from(
        "| kernel | programs | accepted | unsupported | not asked | false accepts | false refusals | other counts | other last line |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut differ = 0;
    for kernel in &kernels {
        let mut found = Vec::new();
        for what in soak.sources() {
            let mut comparison = BootedSoak::new(&kernel.booted);
            match what {
                Source::Generated => {
                    ask_generated(kernel, &mut comparison, soak.seed, soak.programs)?;
                }
                Source::Mutations => {
                    ask_mutations(kernel, &mut comparison, soak.seed, soak.mutations)?;
                }
                Source::Cases => comparison.compare(questions_of(&soak.from)?)?,
            }
            let tally = &comparison.tally;
            for (why, count) in tally.unanswered.iter().chain(&tally.unsupported) {
                println!("{count:8}  {why}");
            }
            let of = |agreement| tally.count(agreement);
            let _ = writeln!(
                rows,
                "| {}, {what} | {} | {} | {} | {} | {} | {} | {} | {} |",
                kernel.version,
                tally.compared(),
                tally.accepted(),
                of(Agreement::Unsupported),
                tally.unanswered.values().sum::<u64>(),
                of(Agreement::FalseAccept),
                of(Agreement::FalseReject),
                of(Agreement::Counts),
                of(Agreement::Reason),
            );
            differ += tally.differing();
            let began = Instant::now();
            if !soak.whole {
                comparison.reduce()?;
                eprintln!("reduced in {:.0} s", began.elapsed().as_secs_f64());
            }
            for ((agreement, ..), (count, kept)) in comparison.found {
                for of in kept {
                    print_difference(kernel, agreement, count, &of);
                    found.push(of);
                }
            }
        }
        if let Some(directory) = &soak.cases {
            write_cases(directory, kernel, &found)?;
        }
    }
    print!("{rows}");
    match differ {
        0 => Ok(()),
        differ => Err(format!("{differ} answers differ").into()),
    }
}

fn print_difference(kernel: &Kept, agreement: Agreement, count: u64, found: &Found) {
    let case = Case::new(found.program.clone());
    println!(
        "{agreement:?}, Linux {}, {} ({count} alike)\n{case}\n  kernel  {}",
        kernel.version, found.origin, found.comparison.kernel
    );
    match &found.comparison.ours {
        Ok(ours) => println!("  beebox  {ours}\n"),
        Err(unsupported) => println!("  beebox  unsupported: {unsupported}\n"),
    }
}

/// A kernel by its name.
pub(super) fn kept(name: &str) -> Outcome<Kept> {
    let directory = described_kernel(name);
    let image = image_in(&directory)
        .ok_or_else(|| format!("no kernel {name} is kept: tools/kernels/vm fetch {name}"))?;
    let target = Target::described(&directory)?;
    let version = target.kernel.version().ok_or("a kernel without version")?;
    Ok(Kept {
        version: version.to_string(),
        booted: BootedKernel::new(image, target.kernel.clone())?,
        target,
    })
}

/// The programs of cases.
fn questions_of(paths: &[PathBuf]) -> Outcome<Vec<Question>> {
    let questions = paths.iter().map(|path| {
        let text = fs::read_to_string(path)?;
        let case = Case::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let comment = text.lines().next().and_then(|line| line.strip_prefix("# "));
        Ok(Question {
            origin: comment.map_or_else(|| name_of(path), str::to_owned),
            kind: Some(Source::Cases.to_string()),
            program: case.program,
        })
    });
    questions.collect()
}

fn ask_generated(kernel: &Kept, soak: &mut BootedSoak<'_>, seed: u64, count: u64) -> Outcome {
    let types: &Btf<'_> = kernel.target.kernel.btf().ok_or("the kernel has no BTF")?;
    let mut seeds = seed..seed + count;
    let began = Instant::now();
    loop {
        let mut questions = Vec::new();
        for seed in seeds.by_ref().take(BOOT) {
            // Older kernels take little of what needs BTF and capabilities.
            let (kind, text) = match seed % 2 {
                0 => generated_case(seed, types),
                _ => generated_plain_case(seed, types),
            };
            let case =
                Case::parse(&text).map_err(|error| format!("seed {seed}: {error}\n{text}"))?;
            questions.push(Question {
                origin: format!("seed {seed}"),
                kind: Some(kind.to_owned()),
                program: case.program,
            });
        }
        if questions.is_empty() {
            return Ok(());
        }
        soak.compare(questions)?;
        report_progress(kernel, "generated", soak, count, began);
    }
}

fn ask_mutations(kernel: &Kept, soak: &mut BootedSoak<'_>, seed: u64, count: u64) -> Outcome {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut objects: Vec<PathBuf> = OWN.map(|path| repository.join(path)).into();
    match oracle::selftest_path("7.2/obj-v3") {
        Ok(_) => {
            let options = Options::of_set("7.2/v3")?;
            for set in &options.sets {
                objects.extend(options.objects(set)?);
            }
        }
        Err(why) => oracle::skip("mutations of the kernel's selftests", why),
    }
    let mut choices = Choices::from_seed(seed);
    let began = Instant::now();
    while soak.tally.compared() < count {
        let left = (count - soak.tally.compared()) as usize;
        let mut questions: Vec<Question> = Vec::new();
        while questions.len() < left.clamp(AT_ONCE as usize, BOOT) {
            let path = &objects[choices.below(objects.len() as u32) as usize];
            kernel.target.load_each(path, &mut |loaded| {
                let Ok(program) = &loaded.program else {
                    return;
                };
                let name = format!("{}/{}", name_of(path), loaded.name);
                questions.extend(mutations(kernel, &mut choices, &name, program));
            })?;
        }
        soak.compare(questions)?;
        report_progress(kernel, "mutations", soak, count, began);
    }
    Ok(())
}

/// A program that we judge soon, and mutations of it.
fn mutations(
    kernel: &Kept,
    choices: &mut Choices<'_>,
    name: &str,
    program: &Program,
) -> Vec<Question> {
    // Those of other programs and of modules cannot be asked about.
    let target = program.attach_target();
    let is_asked = program.modules().is_empty() && target.is_none_or(|it| it.program.is_none());
    let is_asked = is_asked && contents_of(program) <= MOST_CONTENTS;
    let counts = |program: &Program| kernel.booted.ours(program).ok()?.counts;
    if !is_asked || counts(program).is_none_or(|of| !(1..=5_000).contains(&of.insns)) {
        return Vec::new();
    }
    let mut questions = vec![Question {
        origin: name.to_owned(),
        kind: None,
        program: program.clone(),
    }];
    for _ in 0..AT_ONCE {
        if let Some((mutation, slot, mutated)) = mutate(choices, program) {
            questions.push(Question {
                origin: format!("{name}: {mutation} at {slot}"),
                kind: Some(mutation.to_string()),
                program: mutated,
            });
        }
    }
    questions
}

/// Bytes that the maps of a program hold at first.
fn contents_of(program: &Program) -> usize {
    let contents = program.maps().iter().map(|map| match &map.contents {
        InitialContents::Value { .. } => map.params.value_size as usize,
        InitialContents::Arena { image, .. } => image.to_vec().len(),
        InitialContents::Entries(_)
        | InitialContents::JumpTable(_)
        | InitialContents::StructOps { .. } => 0,
    });
    contents.sum()
}

fn report_progress(kernel: &Kept, what: &str, soak: &BootedSoak<'_>, count: u64, began: Instant) {
    let compared = soak.tally.compared();
    let speed = compared as f64 / began.elapsed().as_secs_f64();
    eprintln!(
        "Linux {}: {compared} of {count} {what}, {} differ, {speed:.0} a second: {:?}",
        kernel.version,
        soak.tally.differing(),
        soak.tally.agreements
    );
}

/// Writes the differences as cases, with the answers of every kernel that is described.
fn write_cases(directory: &Path, kernel: &Kept, found: &[Found]) -> Outcome {
    fs::create_dir_all(directory)?;
    let programs: Vec<&Program> = found.iter().map(|of| &of.program).collect();
    let mut answers: Vec<Vec<KernelAnswer>> = vec![Vec::new(); found.len()];
    for name in kept_kernels()? {
        let other = kept(&name)?;
        let given = other.booted.answers(&programs)?;
        for (to, answer) in answers.iter_mut().zip(given) {
            let Ok(answer) = answer else {
                continue;
            };
            let counts = answer.counts.map(|counts| counts.to_string());
            let reason = Some(answer.reason.clone()).filter(|reason| !reason.is_empty());
            to.push(KernelAnswer {
                release: other.version.clone(),
                errno: (!answer.is_accepted()).then_some(answer.errno),
                log: reason.into_iter().chain(counts).collect(),
                returns: None,
            });
        }
    }
    for (at, (of, answers)) in found.iter().zip(answers).enumerate() {
        let name = format!("{}_{at}", kernel.version);
        let program = of.program.to_builder().name(name.clone()).build()?;
        let text = format!("# {}\n{}", of.origin, Case { program, answers });
        fs::write(directory.join(name).with_added_extension("case"), text)?;
    }
    Ok(())
}

//! Fuzzes on stable Rust for a bounded time.
#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use beebox_fuzz::runner::{self, Broken, Until};
use beebox_fuzz::{TARGETS, Target};
use clap::Parser;

/// Fuzz for a bounded time
#[derive(Parser)]
#[command(
    name = "beebox-fuzz",
    after_help = "Exit codes: 0 every promise held, 1 an input broke one, 2 could not run."
)]
struct Arguments {
    /// Targets to fuzz; all of them when none is named
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Time for each target
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,
    /// Inputs for each target, however long they take
    #[arg(long, value_name = "NUMBER", conflicts_with = "seconds")]
    inputs: Option<u64>,
    /// Time after which an input counts as endless (a sanitizer needs more)
    #[arg(long, value_name = "SECONDS", default_value_t = runner::SLOW.as_secs())]
    slow: u64,
    /// Seed of the generated inputs; a new one for each run if it is not given. It is
    /// printed, so that a run can be repeated
    #[arg(long)]
    seed: Option<u64>,
    /// Try this one input instead
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// List the targets
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        for target in TARGETS {
            println!("{:<14}{}", target.name, target.property);
        }
        return ExitCode::SUCCESS;
    }
    let outcome = select(&arguments.targets).and_then(|targets| match &arguments.input {
        Some(file) => replay(&targets, file, &arguments),
        None => fuzz(&targets, &arguments),
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("beebox-fuzz: {message}");
            ExitCode::from(2)
        }
    }
}

fn select(names: &[String]) -> Result<Vec<&'static Target>, String> {
    if names.is_empty() {
        return Ok(TARGETS.iter().collect());
    }
    let find = |name: &String| {
        Target::named(name).ok_or_else(|| format!("no target {name:?}; see --list"))
    };
    names.iter().map(find).collect()
}

fn replay(targets: &[&Target], file: &PathBuf, arguments: &Arguments) -> Result<bool, String> {
    let [target] = targets else {
        return Err("name the one target that is to try the input".into());
    };
    let input = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let outcome = runner::attempt(target, &input, slow(arguments));
    match outcome {
        Ok(_) => println!("{}: holds", target.name),
        Err(how) => println!("{}: {how:?}", target.name),
    }
    Ok(outcome.is_ok())
}

fn slow(arguments: &Arguments) -> Duration {
    Duration::from_secs(arguments.slow)
}

fn fuzz(targets: &[&Target], arguments: &Arguments) -> Result<bool, String> {
    let until = match arguments.inputs {
        Some(inputs) => Until::Inputs(inputs),
        None => Until::Elapsed(Duration::from_secs(arguments.seconds)),
    };
    let seed = arguments.seed.unwrap_or_else(new_seed);
    println!("seed {seed}");
    let mut all_held = true;
    for target in targets {
        let seeds = runner::seeds(target)
            .map_err(|error| format!("{}: {error}", target.seed_directory().display()))?;
        match runner::fuzz(target, seeds, seed, until, slow(arguments)) {
            Ok(tally) => println!(
                "{:<14}{:>10} inputs from {} seeds, {} signatures: holds",
                target.name, tally.inputs, tally.seeds, tally.signatures
            ),
            Err(broken) => {
                all_held = false;
                report(target, &broken, seed)?;
            }
        }
    }
    Ok(all_held)
}

/// A seed that no run before had.
fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as u64)
}

/// Keeps the input and prints how to try it again.
fn report(target: &Target, broken: &Broken, seed: u64) -> Result<(), String> {
    let file = std::env::temp_dir().join(format!("beebox-fuzz-{}", target.name));
    fs::write(&file, &broken.input).map_err(|error| format!("{}: {error}", file.display()))?;
    println!(
        "{}: {:?} with seed {seed}, on an input of {} bytes",
        target.name,
        broken.how,
        broken.input.len()
    );
    println!(
        "  again: cargo run -p beebox-fuzz -- {} --input {}",
        target.name,
        file.display()
    );
    Ok(())
}

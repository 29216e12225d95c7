//! The command that tells the run on a packet, with the options of the run that it is of.

use std::path::Path;

use report::run::shell_word;

use super::Args;

/// Options of a run that `--why` does not take, or that choose among its packets, with their values.
const OTHERS: [(&str, bool); 23] = [
    ("--expect", true),
    ("--against", true),
    ("--verdicts", false),
    ("--only", true),
    ("--limit", true),
    ("-c", true),
    ("--output", true),
    ("--write", true),
    ("-o", true),
    ("-w", true),
    ("--dump-maps", false),
    ("--jobs", true),
    ("-J", true),
    ("--share-maps", false),
    ("--format", true),
    ("-j", false),
    ("--json", false),
    ("--why", true),
    ("--prog", true),
    ("--pcap", true),
    ("--repeat", true),
    ("--coverage", true),
    ("--profile", true),
];

/// The command that tells the run on a packet of the capture.
pub(super) fn command(args: &Args, program: &str, packet: u64) -> String {
    let pcap = args.inputs.pcap.as_deref().unwrap_or(Path::new("-"));
    let options = format!(
        "--prog {} --pcap {} --why {packet}",
        shell_word(program),
        quoted_path(pcap)
    );
    of_options(args, &options)
}

/// The command with options that name program, capture and packet, and the other options of this run.
pub(super) fn of_options(args: &Args, options: &str) -> String {
    let mut command = format!("beebox run {} {options}", quoted_path(&args.inputs.file));
    for word in kept(std::env::args().skip(1).collect(), &args.inputs.file) {
        command.push(' ');
        command.push_str(&shell_word(&word));
    }
    command
}

/// The words of a command line that say how a program runs.
fn kept(words: Vec<String>, file: &Path) -> Vec<String> {
    let mut words = words.into_iter();
    // Options of all commands may stand in front of the command.
    let in_front = words.by_ref().take_while(|word| word != "run");
    let mut kept: Vec<String> = in_front.collect();
    let mut has_file = false;
    while let Some(word) = words.next() {
        let (name, has_value) = match word.split_once('=') {
            Some((name, _)) if word.starts_with("--") => (name, true),
            _ => (&word[..], false),
        };
        let is_short = |short: &str| word.starts_with(short) && !word.starts_with("--");
        if word.len() > 2 && ["-o", "-w", "-c", "-J"].into_iter().any(is_short) {
            continue;
        }
        if let Some((_, takes)) = OTHERS.iter().find(|(other, _)| *other == name) {
            if *takes && !has_value {
                words.next();
            }
            continue;
        }
        if !has_file && Path::new(&word) == file {
            has_file = true;
            continue;
        }
        // Of two kernels that are compared the new object is for the second one.
        if word == "--kernel" {
            kept.push(word);
            kept.extend(words.next().map(|names| last_of(&names).to_owned()));
            continue;
        }
        kept.push(match word.strip_prefix("--kernel=") {
            Some(names) => format!("--kernel={}", last_of(names)),
            None => word,
        });
    }
    kept
}

/// The last of several names.
fn last_of(names: &str) -> &str {
    names.rsplit(',').next().unwrap_or(names)
}

fn quoted_path(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_run_are_kept_and_quoted() {
        let words = "run a.o --expect e --maps r.json --set=x=1 --kernel=6.12,6.18 -w DROP=y --why 3 --cpu 2 -j";
        let words = words.split(' ').map(str::to_owned).collect();
        let kept = kept(words, Path::new("a.o"));
        assert_eq!(
            kept,
            [
                "--maps",
                "r.json",
                "--set=x=1",
                "--kernel=6.18",
                "--cpu",
                "2"
            ]
        );
        assert_eq!(shell_word("a b's"), r"'a b'\''s'");
    }
}

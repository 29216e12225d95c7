//! Completion scripts of a command, and the man pages that packages install.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;

use crate::answer::{Answer, Failure};
use crate::output_file::write_whole;
use crate::stdout::write_bytes;

/// Print a completion script for a shell
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox completions bash > ~/.local/share/bash-completion/completions/beebox
  beebox completions zsh > ~/.zfunc/_beebox
  beebox completions fish > ~/.config/fish/completions/beebox.fish")]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Write man pages, one for each command
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The directory that they are written to
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,

    /// Write one page of Markdown instead, for the documents
    #[arg(long, hide = true)]
    markdown: bool,
}

/// Prints the completion script.
pub fn run(args: Args, mut command: Command) -> Result<Answer, Failure> {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    write_bytes(&script, None)?;
    Ok(Answer::Yes)
}

/// Writes the man pages of a command, as beebox.1, and of those below it, as beebox-filter.1.
pub fn write_man_pages(args: ManArgs, mut command: Command) -> Result<Answer, Failure> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new("this is a file, not a directory")
            .within(args.directory.display())
            .hint("another DIRECTORY"),
        _ => Failure::of_file(&args.directory, &error),
    };
    fs::create_dir_all(&args.directory).map_err(failed)?;
    if args.markdown {
        command = command.term_width(100);
        command.build();
        let path = args.directory.join(format!("{}.md", command.get_name()));
        let mut text = String::new();
        add_reference(&mut text, &mut command);
        write_whole(&path, text.as_bytes())?;
        return Ok(Answer::Yes);
    }
    command.build();
    write_page(&args.directory, &command)?;
    Ok(Answer::Yes)
}

/// Adds the help of the commands below a command that is built, each under its name.
fn add_reference(text: &mut String, command: &mut Command) {
    for inner in command.get_subcommands_mut() {
        if inner.is_hide_set() || inner.get_name() == "help" {
            continue;
        }
        if inner.get_subcommands().next().is_none() {
            let name = inner.get_bin_name().unwrap_or(inner.get_name()).to_owned();
            let help = inner.render_long_help().to_string();
            let lines = help.lines().map(str::trim_end).collect::<Vec<_>>();
            let help = lines.join("\n");
            text.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", help.trim()));
        }
        add_reference(text, inner);
    }
}

/// Writes the page of a command that is built, and those of its subcommands.
fn write_page(directory: &Path, command: &Command) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let path = directory.join(format!("{name}.1"));
    let failed = |error| Failure::of_file(&path, &error);
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(command.clone());
    page.render(&mut text).map_err(failed)?;
    write_whole(&path, &text)?;
    let shown = |inner: &&Command| !inner.is_hide_set() && inner.get_name() != "help";
    for inner in command.get_subcommands().filter(shown) {
        write_page(directory, inner)?;
    }
    Ok(())
}

//! The form of a command's answer: text for people, JSON for programs.

pub use report::count;

/// The form of an answer.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AnswerFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

/// The options of a command whose answer is text or JSON.
#[derive(Clone, Copy, clap::Args)]
pub struct FormatArgs {
    /// Format of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: AnswerFormat,

    /// Same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,
}

impl FormatArgs {
    /// The format that was chosen.
    pub fn format(self) -> AnswerFormat {
        match self.json {
            true => AnswerFormat::Json,
            false => self.format,
        }
    }
}

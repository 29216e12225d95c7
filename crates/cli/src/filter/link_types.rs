//! The list of link types.

use beebox::captures::LinkType;
use serde::Serialize;

use crate::answer::{Answer, Failure};
use crate::answer_format::AnswerFormat;
use crate::stdout::{json, print_answer};

#[derive(Serialize)]
struct Record {
    number: u32,
    name: &'static str,
}

/// Prints every link type that libpcap names: number and name.
pub(super) fn list(format: AnswerFormat) -> Result<Answer, Failure> {
    let records = LinkType::all().map(|(link_type, name)| Record {
        number: link_type.0,
        name,
    });
    let records: Vec<Record> = records.collect();
    let text = match format {
        AnswerFormat::Json => json(&serde_json::json!({ "link_types": records })),
        AnswerFormat::Text => {
            let line = |Record { number, name }: &Record| format!("{number:3}  {name}\n");
            records.iter().map(line).collect::<String>().into_bytes()
        }
    };
    print_answer(format, &text)?;
    Ok(Answer::Yes)
}

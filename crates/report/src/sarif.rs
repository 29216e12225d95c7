//! Results of verification as SARIF 2.1.0, which code scanning of GitHub and editors read: a result for
//! each program that is refused or has no verdict, at its source line.

use serde_json::{Value as Json, json};

use crate::veristat::{ResultRow, ResultVerdict};

/// The rule of results without an explanation that names a cause.
const REFUSED: &str = "refused";
/// The rule of programs without a verdict.
const UNSUPPORTED: &str = "unsupported";

/// The log of a run of a version of the command: of each program its results, and as JSON the
/// [explanation](crate::explain::json) if it is refused.
pub fn sarif<'r>(
    version: &str,
    results: impl Iterator<Item = (&'r ResultRow, Option<&'r Json>)>,
) -> Json {
    let mut rules: Vec<Json> = Vec::new();
    let mut found = Vec::new();
    for (row, explanation) in results {
        if row.verdict == ResultVerdict::Success {
            continue;
        }
        let (id, about) = rule(row, explanation);
        let known = rules.iter().position(|rule| rule["id"] == id);
        let index = known.unwrap_or_else(|| {
            rules.push(json!({ "id": id, "shortDescription": { "text": about } }));
            rules.len() - 1
        });
        found.push(result(row, explanation, &id, index));
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "beebox", "semanticVersion": version, "rules": rules } },
            "columnKind": "utf16CodeUnits",
            "results": found,
        }],
    })
}

/// The rule that a program breaks: the cause of its refusal, and what that is in general.
fn rule(row: &ResultRow, explanation: Option<&Json>) -> (String, String) {
    let cause = explanation.and_then(|it| Some((it["cause"].as_str()?, it["class"].as_str()?)));
    let (id, about) = match (row.verdict, cause) {
        (ResultVerdict::Unsupported, _) => (
            UNSUPPORTED,
            "the program uses what Beebox does not support: no verdict".to_owned(),
        ),
        (_, Some((cause, class))) => (
            cause,
            format!(
                "the verifier of Linux refuses the program: {}",
                class.replace('-', " ")
            ),
        ),
        (_, None) => (
            REFUSED,
            "the verifier of Linux refuses the program".to_owned(),
        ),
    };
    (id.to_owned(), about)
}

fn result(row: &ResultRow, explanation: Option<&Json>, rule: &str, index: usize) -> Json {
    let place = explanation.map_or(&Json::Null, |it| &it["place"]);
    let mut location = location(place).unwrap_or_else(
        || json!({ "physicalLocation": { "artifactLocation": { "uri": uri(&row.file_name) } } }),
    );
    location["logicalLocations"] = json!([{ "name": row.prog_name, "kind": "function" }]);
    let notes = explanation.and_then(|it| it["provenance"].as_array());
    let related = notes.into_iter().flatten().filter_map(|note| {
        let mut related = self::location(&note["place"])?;
        related["message"] = json!({ "text": note["text"] });
        Some(related)
    });
    let related = related.enumerate().map(|(id, mut related)| {
        related["id"] = json!(id + 1);
        related
    });
    let level = match row.verdict {
        ResultVerdict::Unsupported => "warning",
        ResultVerdict::Failure | ResultVerdict::Success => "error",
    };
    json!({
        "ruleId": rule,
        "ruleIndex": index,
        "level": level,
        "message": { "text": message(row, explanation) },
        "locations": [location],
        "relatedLocations": related.collect::<Vec<_>>(),
        // The same refusal in the next run, wherever its line is then.
        "partialFingerprints": { "program/v1": format!("{}:{}:{rule}", row.file_name, row.prog_name) },
    })
}

/// What is wrong, the kernel's reason, what is needed and the usual edit.
fn message(row: &ResultRow, explanation: Option<&Json>) -> String {
    let mut lines = Vec::new();
    let (program, file) = (&row.prog_name, &row.file_name);
    match explanation.and_then(|it| it["headline"].as_str()) {
        Some(headline) => lines.push(format!("{program} is refused: {headline}.")),
        None => lines.push(format!("{program} of {file} is {}.", row.verdict.name())),
    }
    if !row.reason.is_empty() {
        lines.push(format!("Reason: {}", row.reason));
    }
    if let Some(needed) = explanation.and_then(|it| it["needed"].as_str()) {
        lines.push(format!("Needed: {needed}"));
    }
    let help = explanation.and_then(|it| it["help"].as_array());
    let help = help.into_iter().flatten().filter_map(Json::as_str);
    lines.extend(help.map(|help| format!("Help: {help}")));
    lines.join("\n")
}

/// The source line of an instruction, if line_info has it.
fn location(place: &Json) -> Option<Json> {
    let source = &place["source"];
    let (file, line) = (source["file"].as_str()?, source["line"].as_u64()?);
    if file.is_empty() || line == 0 {
        return None;
    }
    let mut region = json!({ "startLine": line });
    if let Some(column) = source["column"].as_u64().filter(|column| *column > 0) {
        region["startColumn"] = json!(column);
    }
    if let Some(text) = source["text"].as_str().filter(|text| !text.is_empty()) {
        region["snippet"] = json!({ "text": text });
    }
    Some(json!({
        "physicalLocation": { "artifactLocation": { "uri": uri(file) }, "region": region },
    }))
}

/// A path as an URI reference: relative as it is, else a URL of a file.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for (at, byte) in path.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        match is_plain || (byte == b':' && path[..at].contains('/')) {
            true => uri.push(char::from(byte)),
            false => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(file: &str, program: &str, verdict: ResultVerdict, reason: &str) -> ResultRow {
        let mut row = ResultRow::empty(file, program);
        (row.verdict, row.reason) = (verdict, reason.to_owned());
        row
    }

    #[test]
    fn refusals_are_at_their_lines_and_accepted_programs_are_none() {
        let explanation = json!({
            "cause": "packet-check-other",
            "class": "out-of-bounds",
            "headline": "packet bytes 16 to 17 are read",
            "needed": "a comparison",
            "help": ["compare it"],
            "place": { "source": { "file": "./src/port map.c", "line": 48, "column": 11, "text": "if (x)" } },
            "provenance": [
                { "place": { "source": null }, "text": "no line" },
                { "place": { "source": { "file": "/usr/a.h", "line": 3, "column": 0 } }, "text": "reads it" },
            ],
        });
        let rows = [
            (row("a.o", "good", ResultVerdict::Success, ""), None),
            (
                row("a.o", "port", ResultVerdict::Failure, "R2 offset"),
                Some(&explanation),
            ),
            (
                row("b.o", "port", ResultVerdict::Failure, "R2 offset"),
                Some(&explanation),
            ),
            (
                row("a.o", "odd", ResultVerdict::Unsupported, "an arena"),
                None,
            ),
        ];
        let log = sarif(
            "0.1.0",
            rows.iter().map(|(row, explanation)| (row, *explanation)),
        );
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
        assert_eq!(rules.len(), 2, "{rules:?}");
        let results = run["results"].as_array().expect("results");
        assert_eq!(results.len(), 3);
        assert_eq!(
            results[0]["locations"],
            json!([{
                "physicalLocation": {
                    "artifactLocation": { "uri": "src/port%20map.c" },
                    "region": { "startLine": 48, "startColumn": 11, "snippet": { "text": "if (x)" } },
                },
                "logicalLocations": [{ "name": "port", "kind": "function" }],
            }])
        );
        assert_eq!(
            results[0]["relatedLocations"],
            json!([{
                "id": 1,
                "message": { "text": "reads it" },
                "physicalLocation": {
                    "artifactLocation": { "uri": "file:///usr/a.h" },
                    "region": { "startLine": 3 },
                },
            }])
        );
        let message = results[0]["message"]["text"].as_str().expect("a message");
        let lines = [
            "port is refused: packet bytes 16 to 17 are read.",
            "Reason: R2 offset",
            "Needed: a comparison",
            "Help: compare it",
        ];
        assert_eq!(message, lines.join("\n"));
        assert_eq!(results[1]["ruleIndex"], 0);
        let fingerprints = results
            .iter()
            .map(|it| &it["partialFingerprints"]["program/v1"]);
        let fingerprints: std::collections::BTreeSet<String> =
            fingerprints.map(Json::to_string).collect();
        assert_eq!(fingerprints.len(), 3);
        let unsupported = &results[2];
        assert_eq!(
            (&unsupported["ruleId"], &unsupported["level"]),
            (&json!("unsupported"), &json!("warning"))
        );
        let uri = &unsupported["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(uri, "a.o");
    }
}

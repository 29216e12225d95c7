//! `beebox bench`: what programs that read its JSON rely on.

use std::process::{Command, Output};

use serde_json::Value;

fn beebox(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .output()
        .expect("the command starts")
}

#[test]
fn json_has_rows_and_a_summary() {
    let output = beebox(&["bench", "classic", "--quick", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"", "progress is for terminals");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert!(rows.len() > 40, "{} rows", rows.len());
    for row in rows {
        assert!(
            row["workload"].is_string() && row["engine"].is_string() && row["unit"].is_string()
        );
        assert!(row["value"].as_f64().expect("a value") > 0.0, "{row}");
        assert!(row["spread"].as_f64().expect("a spread") >= 0.0, "{row}");
    }
    let summary = report["summary"].as_object().expect("a summary");
    assert!(summary["interp_vs_rbpf"].as_f64().expect("a figure") > 0.0);
}

#[test]
fn an_unknown_benchmark_could_not_be_run() {
    let output = beebox(&["bench", "nothing"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("classic"), "it says what there is: {said}");
}

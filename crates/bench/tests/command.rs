//! The `beebox-bench` command: what programs that read its JSON rely on.

use std::process::{Command, Output};

use serde_json::Value;

fn bench(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox-bench"))
        .args(words)
        .output()
        .expect("the command starts")
}

#[test]
fn json_has_rows_and_a_summary() {
    let output = bench(&["classic", "--quick", "--format", "json"]);
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
fn the_summary_of_the_engines_holds_what_it_could_measure() {
    let output = bench(&["engines", "--quick", "--format", "json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let ran = |engine: &str| {
        let is_of_workload = |row: &&Value| row["workload"].as_str().unwrap().starts_with('W');
        rows.iter()
            .filter(is_of_workload)
            .any(|row| row["engine"] == engine)
    };
    assert!(ran("native") && ran("interp") && ran("rbpf") && ran("rbpf jit"));
    let with_clang = ["clang-19", "clang"]
        .iter()
        .any(|name| Command::new(name).arg("--version").output().is_ok());
    assert_eq!(ran("compiled"), with_clang);
    let summary = report["summary"].as_object().expect("a summary");
    for (name, expected) in [
        ("interp_vs_rbpf", true),
        ("compile_vs_rbpf", true),
        ("native_vs_compiled_geomean", true),
        ("native_vs_compiled_worst", true),
        ("native_vs_kernel_worst", ran("kernel")),
        ("image_vs_kernel_worst", ran("kernel")),
    ] {
        let value = summary.get(name).and_then(Value::as_f64);
        assert_eq!(value.is_some_and(|value| value > 0.0), expected, "{name}");
    }
}

#[test]
fn an_unknown_benchmark_could_not_be_run() {
    let output = bench(&["nothing"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("classic"), "it says what there is: {said}");
}

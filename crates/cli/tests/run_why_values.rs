//! Values that `beebox run --why` shows: as they are, or not at all.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const VALUES: &str = "crates/cli/tests/data/values.bpf.o";
const STRIPPED: &str = "crates/cli/tests/data/values_stripped.bpf.o";
const COMPRESSED: &str = "crates/cli/tests/data/values_compressed.bpf.o";
/// Bytes 0 to 5 of the packet: 3, 1, 254, 2, 0, 0.
const PACKET: &str = "hex:0301fe0200000000000000000000";

/// The run of a program on [`PACKET`].
fn why(object: &str, program: &str) -> Value {
    let words = [
        "run", object, "--prog", program, "--packet", PACKET, "--why", "-j",
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("beebox starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Events of a kind, in their order; of loops those of the first and the last iteration.
fn events<'v>(why: &'v Value, kind: &str) -> Vec<&'v Value> {
    let mut found = Vec::new();
    for key in ["steps", "first_steps", "last_steps"] {
        for step in why[key].as_array().into_iter().flatten() {
            found.extend(events(step, kind));
            let own = step["events"].as_array().into_iter().flatten();
            found.extend(own.filter(|event| event["event"] == kind));
        }
    }
    found
}

/// The texts of a variable in their order.
fn texts<'v>(why: &'v Value, name: &str) -> Vec<&'v str> {
    let variables = events(why, "variable").into_iter();
    variables
        .filter(|event| event["name"] == name)
        .filter_map(|event| event["text"].as_str())
        .collect()
}

#[oracle::test]
fn variables_are_read_where_the_compiler_put_them() {
    let frame = why(VALUES, "frame");
    assert_eq!(texts(&frame, "before"), ["11", "22"]);
    // Compressed debug information says the same.
    assert_eq!(why(COMPRESSED, "frame")["steps"], frame["steps"]);
    assert_eq!(frame["lacks_debug_info"], false);
    // Without it nothing is told.
    let stripped = why(STRIPPED, "frame");
    assert_eq!(stripped["lacks_debug_info"], true);
    assert!(texts(&stripped, "before").is_empty());
}

#[oracle::test]
fn numbers_have_their_signs_and_widths() {
    let numbers = why(VALUES, "numbers");
    for (name, text) in [
        ("small", "-4"),
        ("character", "-1"),
        ("single", "1.5"),
        ("twice", "-2.25"),
        ("yes", "true"),
        ("sign", "MINUS"),
        ("wide", "-5"),
        ("last", "-6"),
    ] {
        assert_eq!(texts(&numbers, name), [text], "{name}");
    }
    let fields = texts(&numbers, "fields");
    let last = "{ .first = 3, .second = -2, .third = 77 }";
    assert_eq!(fields.last(), Some(&last), "{fields:?}");
}

#[oracle::test]
fn arguments_and_results_are_known_or_not_told() {
    let results = |why: &Value| -> Vec<String> {
        let results = events(why, "return").into_iter();
        results
            .map(|event| event["result_operand"]["text"].as_str().unwrap().to_owned())
            .collect()
    };
    for object in [VALUES, STRIPPED] {
        let calls = why(object, "calls");
        // whole(7, -1), dropped(9, 0, 257) and narrow(203).
        let mut found = results(&calls);
        found.sort();
        assert_eq!(found, ["-8", "1", "47", "5"], "{object}");
        assert_eq!(texts(&calls, "used"), ["-1"], "{object}");
        assert_eq!(texts(&calls, "more"), ["7"], "{object}");
    }
    let unseen = |why: &Value| -> Vec<String> {
        let unseen = why["unseen_variables"].as_array().unwrap().iter();
        unseen
            .map(|unseen| format!("{} of {}", unseen["name"], unseen["function"]).replace('"', ""))
            .collect()
    };
    let stripped = why(STRIPPED, "calls");
    for argument in ["first of dropped", "second of dropped", "unused of dropped"] {
        let unseen = unseen(&stripped);
        assert!(
            unseen.iter().any(|it| it == argument),
            "{argument}: {unseen:?}"
        );
    }
    assert!(texts(&stripped, "first").is_empty());
    assert_eq!(texts(&why(VALUES, "calls"), "first"), ["0"]);
}

#[oracle::test]
fn writes_name_the_part_and_the_entry() {
    let writes = |why: &Value| -> Vec<String> {
        let writes = events(why, "write").into_iter();
        writes
            .map(|event| {
                let key = match &event["map_key"] {
                    Value::Null => String::new(),
                    key => key["value"].to_string(),
                };
                let (before, after) = (&event["before"]["value"], &event["after"]["value"]);
                let name = event["target_name"].as_str().unwrap();
                format!("{name} [{key}] {before} {after}")
            })
            .collect()
    };
    let mut found = writes(&why(STRIPPED, "calls"));
    found.sort();
    assert_eq!(
        found,
        [
            "global.high [] 0 33",
            "table.either.bytes[2] [1] 0 9",
            "table.high [1] 0 5",
            "table.number [1] 0 44",
            "table.small [1] 0 -7",
        ]
    );
    let skb = why(STRIPPED, "skb");
    assert_eq!(
        writes(&skb),
        [
            "skb->mark [] 0 77",
            "table.middle [0] 0 -2",
            "table.middle [3] 0 1",
            "held [0] 0 41",
        ]
    );
    let calls = events(&skb, "call");
    let text = |call: &Value, pointer: &str| call.pointer(pointer).cloned();
    let outer = calls
        .iter()
        .find(|call| call["operands"][0]["text"] == "&outer")
        .unwrap();
    assert_eq!(text(outer, "/operands/1/content/value"), Some(1.into()));
    assert_eq!(text(outer, "/result_operand/text"), Some("&held".into()));
}

//! An explanation as JSON.

use serde_json::{Value as Json, json};
use verifier::domain::Scalar;
use verifier::reason::{
    Capability, Decision, Explanation, InsnPlace, KnownValue, MissingCapabilities,
};

use super::text::decision_words;
use super::words::words;
use super::{note, value};

/// The explanation as data, with the same words as the text.
pub fn json(explanation: &Explanation) -> Json {
    let words = words(explanation);
    let known = explanation.known.iter().map(|known| {
        json!({
            "holder": known.holder,
            "known_value": value_json(&known.value),
            "text": value::known(&known.value),
        })
    });
    let notes = explanation
        .notes
        .iter()
        .map(|note| json!({ "place": place_json(&note.place), "text": note::words(&note.kind) }));
    let decisions = explanation.path.decisions.iter().map(|decision| {
        let (at, text) = decision_words(decision);
        let kind = match decision {
            Decision::Branch { .. } => "branch",
            Decision::Call { .. } => "call",
            Decision::Return { .. } => "return",
        };
        let to = match decision {
            Decision::Branch { to, .. } => place_json(to),
            _ => Json::Null,
        };
        json!({ "kind": kind, "place": place_json(at), "to": to, "text": text })
    });
    let refusal = &explanation.refusal;
    json!({
        "program": explanation.program,
        "program_type": explanation.program_type.name(),
        "class": class_name(&format!("{:?}", refusal.kind)),
        "cause": words.name,
        "errno": refusal.errno.0,
        "reason": refusal.message(),
        "log_lines": explanation.log,
        "missing_capabilities": explanation.missing.as_ref().map(missing_json),
        "headline": words.headline,
        "place": explanation.place.as_ref().map(place_json),
        "known": known.collect::<Vec<_>>(),
        "needed": words.needed,
        "provenance": notes.collect::<Vec<_>>(),
        "path": {
            "insn_count": explanation.path.steps,
            "decisions": decisions.collect::<Vec<_>>(),
            "omitted": explanation.path.omitted.map_or(0, |(_, count)| count),
        },
        "help": words.help,
    })
}

fn missing_json(missing: &MissingCapabilities) -> Json {
    let names = |capabilities: &[Capability]| -> Vec<&str> {
        capabilities.iter().map(|one| one.name()).collect()
    };
    json!({
        "required": names(&missing.needed),
        "accepted_with": missing.accepted_with.as_deref().map(names),
    })
}

/// The name of a variant, as in `out-of-bounds`.
fn class_name(variant: &str) -> String {
    let mut name = String::new();
    for (at, letter) in variant.char_indices() {
        if letter.is_uppercase() && at > 0 {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

fn place_json(place: &InsnPlace) -> Json {
    let mut json = json!({
        "insn": place.insn,
        "text": place.text,
        "function": place.function,
    });
    if let Some(source) = &place.source {
        json["source"] = json!({
            "file": source.file,
            "line": source.line,
            "column": source.column,
            "text": source.text.trim(),
        });
    }
    json
}

fn number_json(num: &Scalar) -> Json {
    json!({
        "smin": num.smin,
        "smax": num.smax,
        "umin": num.umin,
        "umax": num.umax,
        "tnum_value": num.var_off.value,
        "tnum_mask": num.var_off.mask,
    })
}

fn value_json(value: &KnownValue) -> Json {
    match value {
        KnownValue::Unwritten => Json::Null,
        KnownValue::Number(num) => json!({ "type": "scalar", "scalar": number_json(num) }),
        KnownValue::Pointer {
            offset,
            variable,
            maybe_null,
            acquired,
            ty,
            ..
        } => json!({
            "type": ty.to_string(),
            "offset": offset,
            "variable": variable.as_ref().map(number_json),
            "maybe_null": maybe_null,
            "acquired": acquired,
        }),
    }
}

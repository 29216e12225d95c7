//! The file format of speedscope.

use serde_json::json;

use super::{Profile, ProfileFrame};

/// The document, with a sample for each chain of calls, whose weight is its instructions.
pub fn speedscope(profile: &Profile) -> String {
    let mut frames: Vec<&ProfileFrame> = Vec::new();
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    for sample in profile.samples.iter().filter(|it| it.instructions > 0) {
        let stack = sample.stack.iter().map(|frame| {
            let known = frames.iter().position(|known| *known == frame);
            known.unwrap_or_else(|| {
                frames.push(frame);
                frames.len() - 1
            })
        });
        samples.push(stack.collect::<Vec<usize>>());
        weights.push(sample.instructions);
    }
    let frames = frames.iter().map(|frame| {
        let mut value = json!({ "name": frame.to_string() });
        if let (Some(file), Some(line)) = (&frame.file, frame.line) {
            value["file"] = json!(file);
            value["line"] = json!(line);
        }
        value
    });
    let document = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": format!("beebox {}", env!("CARGO_PKG_VERSION")),
        "shared": { "frames": frames.collect::<Vec<_>>() },
        "profiles": [{
            "type": "sampled",
            "name": "instructions",
            "unit": "none",
            "startValue": 0,
            "endValue": profile.instructions(),
            "samples": samples,
            "weights": weights,
        }],
    });
    crate::json::pretty(&document)
}

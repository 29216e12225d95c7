//! What a blob has: the number of types of each kind, and whether Linux accepts it as it is.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ::btf::validate::{BlobPlace, Refusal, validate};
use ::btf::{Btf, BtfExt};
use serde::Serialize;

use crate::count;

/// The number of types of each kind, and Linux's answer to the blob.
#[derive(Serialize)]
pub struct BtfSummary {
    bytes: usize,
    type_count: usize,
    string_bytes: usize,
    kinds: BTreeMap<&'static str, usize>,
    pointer_size: u32,
    btf_check: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    ext: Option<ExtSummary>,
}

/// Linux's answer to the unchanged BTF.
#[derive(Serialize)]
struct Verdict {
    accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize)]
struct ExtSummary {
    func_infos: usize,
    line_infos: usize,
    core_relocations: usize,
}

impl BtfSummary {
    /// Counts the types of a blob, and records of its `.BTF.ext`.
    pub fn new(btf: &Btf<'_>, ext: Option<&BtfExt<'_>>) -> BtfSummary {
        let mut kinds = BTreeMap::new();
        for ty in btf.types() {
            *kinds.entry(ty.kind().name()).or_insert(0) += 1;
        }
        let refusal = validate(btf.as_bytes(), None).err();
        BtfSummary {
            bytes: btf.as_bytes().len(),
            type_count: btf.len() - 1,
            string_bytes: btf.strings().len(),
            kinds,
            pointer_size: btf.pointer_size(),
            btf_check: Verdict {
                accepted: refusal.is_none(),
                errno: refusal.map(|refusal| refusal.errno()),
                message: refusal.map(|refusal| explain(btf, &refusal)),
            },
            ext: ext.map(|ext| ExtSummary {
                func_infos: ext.functions().map(|group| group.records().len()).sum(),
                line_infos: ext.lines().map(|group| group.records().len()).sum(),
                core_relocations: ext.relocations().map(|group| group.records().len()).sum(),
            }),
        }
    }

    /// The summary as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{}, {} bytes, {} of them strings\n",
            count(self.type_count, "type"),
            self.bytes,
            self.string_bytes
        );
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        for (kind, count) in kinds {
            let _ = writeln!(text, "{count:>8}  {kind}");
        }
        if let Some(ext) = &self.ext {
            let _ = writeln!(
                text,
                "{}, {}, {} in .BTF.ext",
                count(ext.func_infos, "function"),
                count(ext.line_infos, "line"),
                count(ext.core_relocations, "relocation")
            );
        }
        let _ = match &self.btf_check.message {
            None => writeln!(text, "Linux accepts it as it is"),
            Some(message) => writeln!(
                text,
                "Linux refuses it as it is (a loader completes it): {message}"
            ),
        };
        text
    }
}

/// The kernel's message and its place.
fn explain(btf: &Btf<'_>, refusal: &Refusal) -> String {
    let message = refusal.reason.to_string();
    let id = match refusal.place {
        BlobPlace::Blob => return message,
        BlobPlace::Type(of)
        | BlobPlace::Member { of, .. }
        | BlobPlace::VarSecinfo { of, .. }
        | BlobPlace::Value { of, .. } => of,
    };
    let Some(ty) = btf.get(id) else {
        return format!("type {id}: {message}");
    };
    format!("[{id}] {} {}: {message}", ty.kind().name(), ty.name())
}

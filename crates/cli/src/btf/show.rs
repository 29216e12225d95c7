//! `beebox btf show`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use beebox::internal::btf::diff::describe;
use beebox::internal::btf::validate::{Refusal, validate};
use beebox::internal::btf::{Btf, Kind, Shape, Type, TypeFile, TypeId};
use serde::Serialize;

use super::input::{FileArg, find};
use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs, count};
use crate::input::name;
use crate::stdout::{json, print_answer};
use crate::type_file::read_types;

/// Show how many types there are, or the layout of one
///
/// Without TYPE: the number of types of each kind, their size, and whether Linux accepts
/// them as they are. With TYPE: its members with their offsets and sizes in
/// bytes, and the holes between them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox btf show prog.bpf.o
  beebox btf show /sys/kernel/btf/vmlinux task_struct
  beebox btf show prog.bpf.o 'struct event' --format json | jq '.types[0].size'")]
pub(crate) struct Args {
    #[command(flatten)]
    file: FileArg,

    /// A name (with or without `struct` and the like) or a number
    #[arg(value_name = "TYPE")]
    ty: Option<String>,

    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let types = read_types(&args.file.file)?;
    let text = match (&args.ty, args.format.format()) {
        (None, AnswerFormat::Text) => Summary::new(&types).text().into_bytes(),
        (None, AnswerFormat::Json) => json(&Summary::new(&types)),
        (Some(word), format) => {
            let found = find(&types.btf, word);
            let found = found.map_err(|failure| failure.within(name(&args.file.file)))?;
            let layouts: Vec<Layout> = found
                .into_iter()
                .map(|id| Layout::new(types.btf.at(id)))
                .collect();
            match format {
                AnswerFormat::Json => json(&Layouts { types: layouts }),
                AnswerFormat::Text => layouts
                    .iter()
                    .map(Layout::text)
                    .collect::<Vec<_>>()
                    .join("\n")
                    .into_bytes(),
            }
        }
    };
    print_answer(args.format.format(), &text)?;
    Ok(Answer::Yes)
}

/// The number of types of each kind.
#[derive(Serialize)]
struct Summary {
    bytes: usize,
    types: usize,
    string_bytes: usize,
    kinds: BTreeMap<&'static str, usize>,
    pointer_size: u32,
    linux: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    ext: Option<ExtSummary>,
}

/// Linux's answer to the unchanged BTF.
#[derive(Serialize)]
struct Verdict {
    takes: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize)]
struct ExtSummary {
    functions: usize,
    lines: usize,
    relocations: usize,
}

impl Summary {
    fn new(types: &TypeFile) -> Summary {
        let btf = &types.btf;
        let mut kinds = BTreeMap::new();
        for ty in btf.types() {
            *kinds.entry(ty.kind().name()).or_insert(0) += 1;
        }
        let refusal = validate(btf.as_bytes(), None).err();
        Summary {
            bytes: btf.as_bytes().len(),
            types: btf.len() - 1,
            string_bytes: btf.strings().len(),
            kinds,
            pointer_size: btf.pointer_size(),
            linux: Verdict {
                takes: refusal.is_none(),
                errno: refusal.map(|refusal| refusal.errno()),
                message: refusal.map(|refusal| explain(btf, &refusal)),
            },
            ext: types.ext.as_ref().map(|ext| ExtSummary {
                functions: ext.functions().map(|group| group.records().len()).sum(),
                lines: ext.lines().map(|group| group.records().len()).sum(),
                relocations: ext.relocations().map(|group| group.records().len()).sum(),
            }),
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{}, {} bytes, {} of them strings\n",
            count(self.types, "type"),
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
                count(ext.functions, "function"),
                count(ext.lines, "line"),
                count(ext.relocations, "relocation")
            );
        }
        let _ = match &self.linux.message {
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
    use beebox::internal::btf::validate::BlobPlace;
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

#[derive(Serialize)]
struct Layouts {
    types: Vec<Layout>,
}

/// The layout of a type.
#[derive(Serialize)]
struct Layout {
    id: u32,
    kind: &'static str,
    name: String,
    is: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    align: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<MemberLayout>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<(String, i128)>,
}

#[derive(Serialize)]
struct MemberLayout {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    bit_offset: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<u32>,
}

impl Layout {
    fn new(ty: Type<'_>) -> Layout {
        let btf = ty.btf();
        let members = ty
            .as_composite()
            .into_iter()
            .flat_map(|composite| composite.members())
            .map(|member| MemberLayout {
                name: btf.string(member.name).to_string(),
                ty: describe(btf, member.ty),
                bit_offset: member.bit_offset,
                size: btf.size_of(member.ty),
                bits: (member.bits != 0).then_some(member.bits),
            })
            .collect();
        let values = match ty.shape() {
            Shape::Enum(of) => of
                .values()
                .map(|value| {
                    let number = match of.signed {
                        true => i128::from(value.value as i64),
                        false => i128::from(value.value),
                    };
                    (btf.string(value.name).to_string(), number)
                })
                .collect(),
            _ => Vec::new(),
        };
        Layout {
            id: ty.id().0,
            kind: ty.kind().name(),
            name: ty.name().to_string(),
            is: is(btf, ty.id()),
            size: btf.size_of(ty.id()),
            align: btf.align_of(ty.id()),
            members,
            values,
        }
    }

    fn text(&self) -> String {
        let mut text = format!("[{}] {}", self.id, self.is);
        if let Some(size) = self.size {
            let _ = write!(text, ", {size} bytes");
        }
        if let Some(align) = self.align {
            let _ = write!(text, ", aligned to {align}");
        }
        text.push('\n');
        let mut end = 0u64;
        for member in &self.members {
            let start = u64::from(member.bit_offset);
            if self.kind == Kind::Struct.name() && start > end {
                let _ = writeln!(text, "{:>17}  (hole of {})", "", bits(start - end));
            }
            let width = match (member.bits, member.size) {
                (Some(bits), _) => bits.into(),
                (None, size) => 8 * u64::from(size.unwrap_or(0)),
            };
            end = end.max(start + width);
            let at = match start % 8 {
                0 => (start / 8).to_string(),
                bit => format!("{}.{bit}", start / 8),
            };
            let size = match member.bits {
                Some(bits) => format!(":{bits}"),
                None => member.size.map_or(String::new(), |size| size.to_string()),
            };
            let (name, ty) = (&member.name, &member.ty);
            let _ = writeln!(text, "{at:>8} {size:>8}  {name:<24} {ty}");
        }
        for (name, value) in &self.values {
            let _ = writeln!(text, "{value:>17}  {name}");
        }
        text
    }
}

fn bits(count: u64) -> String {
    match count % 8 {
        0 => format!("{} bytes", count / 8),
        _ => format!("{count} bits"),
    }
}

/// The declaration of a type; a typedef with its target.
fn is(btf: &Btf<'_>, id: TypeId) -> String {
    match btf.at(id).shape() {
        Shape::Typedef(to) => format!("{} = {}", describe(btf, id), describe(btf, to)),
        _ => describe(btf, id),
    }
}

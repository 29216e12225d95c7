//! `beebox gen header` and `beebox gen rust`.

use std::path::{Path, PathBuf};

use beebox::internal::object::Object;
use report::bindings::{BindingsError, BindingsOptions, header, rust_bindings};

use crate::answer::{Answer, Failure};
use crate::btf::find;
use crate::input::name;
use crate::object_input::ObjectFile;
use crate::output_path::OutputPath;
use crate::stdout::write_output;

/// Write a C header: types of keys and values, names of maps and programs, global variables
///
/// A program in user space that includes it reads and writes the maps of the object with
/// the layout that the object has; the header asserts sizes and offsets.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox gen header prog.bpf.o -o prog.bpf.h
  beebox gen header prog.bpf.o --type 'struct event'    a type of no map, as of a ring buffer
  beebox gen header prog.bpf.o --omit-types             types are those of your header")]
pub(crate) struct HeaderArgs {
    #[command(flatten)]
    input: Input,

    /// Prefix of names; by default the name of the file, up to the first dot
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Define no types: include the header that defines them first
    #[arg(long, conflicts_with = "types")]
    omit_types: bool,
}

/// Write Rust bindings: types of keys and values, names of maps and programs, global variables
///
/// The output is the content of a module: mod bindings; or include!. Maps of the library beebox
/// take the types as keys and values (`beebox::Pod`). Sizes and offsets are asserted at compile
/// time, and every bit pattern is a value of each type.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox gen rust prog.bpf.o -o tests/bindings.rs
  beebox gen rust prog.bpf.o --no-pod -o src/bindings.rs  for a crate without the library
  beebox gen rust prog.bpf.o --type 'struct event'        a type of no map, as of a ring buffer")]
pub(crate) struct RustArgs {
    #[command(flatten)]
    input: Input,

    /// Implement no `beebox::Pod`, so that the file needs no crate
    #[arg(long)]
    no_pod: bool,
}

#[derive(clap::Args)]
struct Input {
    /// The object
    #[arg(value_name = "OBJECT")]
    file: PathBuf,

    /// Output file; standard output by default, or for `-`
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Define this type of the object, too (a name or a number)
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
}

pub(super) fn write_header(args: HeaderArgs) -> Result<Answer, Failure> {
    let options = BindingsOptions {
        name: args.name.unwrap_or_default(),
        omit_types: args.omit_types,
        ..BindingsOptions::default()
    };
    write(&args.input, options, header)
}

pub(super) fn write_rust(args: RustArgs) -> Result<Answer, Failure> {
    let options = BindingsOptions {
        pod: !args.no_pod,
        ..BindingsOptions::default()
    };
    write(&args.input, options, rust_bindings)
}

fn write(
    input: &Input,
    options: BindingsOptions,
    render: impl Fn(&Object<'_>, &BindingsOptions) -> Result<String, BindingsError>,
) -> Result<Answer, Failure> {
    let path: &Path = &input.file;
    let output = OutputPath::optional(input.output.as_deref(), [path])?;
    let file = ObjectFile::read(path)?;
    let object = file.open()?;
    let mut options = BindingsOptions {
        file: path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into(),
        ..options
    };
    for word in &input.types {
        let btf = object.btf().ok_or(BindingsError::NoBtf);
        let btf = btf.map_err(|error| refused(path, error))?;
        options
            .types
            .extend(find(btf, word).map_err(|failure| failure.within(name(path)))?);
    }
    let text = render(&object, &options).map_err(|error| refused(path, error))?;
    write_output(text.as_bytes(), output)?;
    Ok(Answer::Yes)
}

fn refused(path: &Path, error: BindingsError) -> Failure {
    let failure = Failure::new(&error).within(name(path));
    match error {
        BindingsError::NoBtf => failure.hint("clang -target bpf -g writes it"),
        _ => failure,
    }
}

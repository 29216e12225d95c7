//! `beebox gen min-core-btf`.

use std::path::{Path, PathBuf};

use beebox::internal::btf::core::{CoreError, MinimalBtf};
use beebox::internal::btf::ext::{CoreKind, CoreSpec};
use beebox::internal::btf::{Btf, BtfExt};
use beebox::internal::kernel::KernelField;

use crate::answer::{Answer, Failure};
use crate::kernel_input::{KernelArgs, note_assumed};
use crate::output_path::OutputPath;
use crate::stdout::write_bytes;
use crate::type_file::read_types;

/// Write the part of a kernel's BTF that the CO-RE relocations of objects need
///
/// The result serves as --core-btf of beebox and btf_custom_path of libbpf, for machines
/// whose kernel has no BTF: the objects are relocated as by the kernel's whole BTF.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox gen min-core-btf --btf vmlinux-5.4.btf -o prog-5.4.btf prog.bpf.o
  beebox gen min-core-btf --kernel running -o min.btf *.bpf.o
  beebox show prog.bpf.o --link --core-btf min.btf    try the result")]
pub(crate) struct Args {
    /// Output file of the minimal BTF (`-` is standard output)
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// The objects
    #[arg(value_name = "OBJECT", required = true)]
    objects: Vec<PathBuf>,

    #[command(flatten)]
    kernel: KernelArgs,
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let inputs = args.objects.iter().map(PathBuf::as_path);
    let output = OutputPath::new(&args.output, inputs.chain(args.kernel.files()))?;
    if !args.kernel.is_given() {
        return Err(Failure::new("no kernel is named")
            .hint("--btf FILE with the kernel's BTF, or --kernel running"));
    }
    let kernel = args.kernel.read()?;
    let Some(btf) = kernel.core_btf().or(kernel.btf()) else {
        return Err(Failure::new("its BTF is unknown").within(kernel.name()));
    };
    note_assumed(&kernel, &[KernelField::Btf], "written");
    let mut minimal = MinimalBtf::new(btf);
    let mut relocations = 0;
    let mut by_id = 0;
    for path in &args.objects {
        let types = read_types(path)?;
        let Some(ext) = &types.ext else {
            return Err(Failure::new("no section .BTF.ext, so no CO-RE relocations")
                .within(path.display())
                .hint("clang -target bpf -g writes it"));
        };
        minimal
            .add(&types.btf, ext)
            .map_err(|(spec, error)| refused(path, &types.btf, spec, error))?;
        relocations += count(ext, |_| true);
        by_id += count(ext, |kind| kind == CoreKind::TYPE_ID_TARGET);
    }
    write_bytes(&minimal.finish().blob, Some(output))?;
    if relocations == 0 {
        diagnostic!("beebox: the objects have no CO-RE relocations: the BTF is empty");
    }
    if by_id > 0 {
        let reads = match by_id {
            1 => "1 relocation reads the id of a kernel type".to_owned(),
            _ => format!("{by_id} relocations read ids of kernel types"),
        };
        diagnostic!(
            "beebox: {reads} (bpf_core_type_id_kernel): minimal BTF has other ids than the kernel"
        );
    }
    Ok(Answer::Yes)
}

fn count(ext: &BtfExt<'_>, fits: impl Fn(CoreKind) -> bool) -> usize {
    let groups = ext.relocations();
    let of_group = groups.flat_map(|group| group.records().map(|relo| relo.spec.kind));
    of_group.filter(|&kind| fits(kind)).count()
}

fn refused(path: &Path, btf: &Btf<'_>, spec: CoreSpec, error: CoreError) -> Failure {
    let name = btf.get(spec.ty).map(|ty| ty.name().to_string());
    let kind = spec.kind.name().unwrap_or("unknown");
    let relocation = format!(
        "CO-RE relocation {kind} of {}:{}",
        name.unwrap_or_default(),
        btf.string(spec.access)
    );
    Failure::new(error)
        .within(relocation)
        .within(path.display())
}

//! Kernel functions as a list and as the page docs/kfuncs.md.

use std::fmt::Write as _;

use spec::bits::BitOp;
use spec::programs::ProgramType;
use spec::registry::{Kfunc, KfuncFlags, Registry};

use crate::table::{Side, Table};

/// The kernel functions of a registry, and the bit operations if the kernel has them, as a
/// table.
pub fn list(registry: &Registry, has_bits: bool) -> String {
    let mut table = Table::new(&[
        ("name", Side::Left),
        ("linux", Side::Left),
        ("runs", Side::Left),
        ("flags", Side::Left),
        ("program types", Side::Left),
    ]);
    for op in BitOp::ALL.iter().filter(|_| has_bits) {
        table.row(
            [
                op.name(),
                "none: a bit operation of Beebox",
                "yes",
                "-",
                "all",
            ]
            .map(str::to_owned),
        );
    }
    for kfunc in registry.kfuncs.values() {
        let since = spec::since::kfunc(&kfunc.name);
        table.row([
            kfunc.name.to_string(),
            since.map_or("-".to_owned(), |since| since.release.to_string()),
            "no".to_owned(),
            flags(kfunc),
            types(kfunc),
        ]);
    }
    let mut text = String::new();
    table.write(&mut text, usize::MAX);
    text
}

/// The page docs/kfuncs.md.
pub fn page(registry: &Registry) -> String {
    let mut page = format!(
        "# Kernel functions\n\n\
         Kernel functions (kfuncs) are called by BTF id: a program declares an extern function in\n\
         `.ksyms`, and linking finds it in the kernel's BTF or in that of a module. The page is\n\
         made by `cargo xtask kfuncs`; `beebox kfuncs` prints the list.\n\n\
         ## Bit operations\n\n\
         Linux has none of these. Programs that call them load by default, `beebox show` names them,\n\
         and `--kernel 6.18` or `--kernel running` refuses them as that kernel refuses any unknown\n\
         function: linking fails, or a weak declaration resolves to none, and code behind\n\
         `bpf_ksym_exists(bpf_ffs64)` is dead. `beebox kfuncs --header` prints the header\n\
         `{}`. In native code they are instructions: no call, no saved register.\n\n\
         | function | returns | native code |\n|---|---|---|\n",
        spec::bits::HEADER
    );
    for op in BitOp::ALL {
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| `{}` | {} | {} |",
            op.prototype(),
            op.summary(),
            native(op)
        );
    }
    let _ = write!(
        page,
        "\nA later kernel may count `bpf_ffs64` from 1, with 0 for 0; here it counts from 0, as the\n\
         kernel's `__ffs`, with 64 for 0. `bpf_fls64` counts from 1, as the kernel's `fls64`.\n\n\
         ## Functions of Linux 6.18\n\n\
         The {} functions of the built-in kernel. Calls are verified as docs/verifier.md says; a run\n\
         that comes to one ends with an error that names it.\n\n\
         | function | since | flags | program types |\n|---|---|---|---|\n",
        registry.kfuncs.len()
    );
    for kfunc in registry.kfuncs.values() {
        let since = spec::since::kfunc(&kfunc.name);
        let since = since.map_or("-".to_owned(), |since| since.release.to_string());
        let (flags, types) = (flags(kfunc), types(kfunc));
        let _ = writeln!(page, "| `{}` | {since} | {flags} | {types} |", kfunc.name);
    }
    page
}

fn native(op: BitOp) -> &'static str {
    match op {
        BitOp::Ffs | BitOp::Ctz => "`tzcnt`; `bsf` and `cmove` without BMI1",
        BitOp::Clz => "`lzcnt`; `bsr`, `cmove` and `xor` without LZCNT",
        BitOp::Fls => "`bsr`, `cmove`, `add`",
        BitOp::Popcnt => "`popcnt`; sums of masked bits without POPCNT",
        BitOp::Bitrev => "three steps of shifts and masks, `bswap`",
        BitOp::Rol => "`rol` by `cl`",
        BitOp::Ror => "`ror` by `cl`",
    }
}

fn flags(kfunc: &Kfunc) -> String {
    let flags = KfuncFlags::ALL.iter();
    let names = flags.filter(|(flag, _)| kfunc.flags.has(*flag));
    let names: Vec<String> = names.map(|(_, name)| name.to_ascii_lowercase()).collect();
    match names.is_empty() {
        true => "-".to_owned(),
        false => names.join(", "),
    }
}

fn types(kfunc: &Kfunc) -> String {
    let of = |kind: &ProgramType| kfunc.program_types.has(*kind);
    let all: Vec<ProgramType> = (1..64).filter_map(ProgramType::from_number).collect();
    let users: Vec<&str> = all
        .iter()
        .filter(|kind| of(kind))
        .map(|kind| kind.name())
        .collect();
    match users.len() {
        0 => "some hooks".to_owned(),
        len if len + 1 >= all.len() => "all".to_owned(),
        _ => users.join(", "),
    }
}

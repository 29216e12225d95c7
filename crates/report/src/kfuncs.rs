//! Kernel functions as a list and as the page docs/kfuncs.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use btf::{Btf, CDump, Kind, TypeId};
use spec::bits::{self, BitOp};
use spec::kernel::Module;
use spec::kfuncs::CallState;
use spec::programs::ProgramType;
use spec::registry::{Kfunc, KfuncFlags, Registry};
use spec::since::Release;

use crate::table::{Side, Table};

/// Support state of each function, from the library that runs programs; `None` for unknown
/// functions.
pub type StateOf = fn(&str) -> Option<CallState>;

/// What is listed of a function.
const COLUMNS: [&str; 7] = [
    "name",
    "linux",
    "module",
    "calls",
    "flags",
    "program types",
    "prototype",
];

/// What a kernel has of kernel functions.
#[derive(Clone, Copy)]
pub struct Listed<'k> {
    /// Their flags and program types.
    pub registry: &'k Registry,
    /// Types of the kernel.
    pub types: &'k Btf<'static>,
    /// Modules whose types are known; bit operations are one.
    pub modules: &'k [Module],
    /// The kernel's release, if the functions are those of another one: those not known to be there are left
    /// out.
    pub release: Option<Release>,
}

impl<'k> Listed<'k> {
    /// The types that have a kfunc, and its id there: those of the kernel, or of the module.
    fn place(&self, kfunc: &Kfunc) -> (&'k Btf<'static>, TypeId) {
        let of_module = kfunc.module().and_then(|module| {
            let module = self.modules.iter().find(|given| given.name == module)?;
            Some((&*module.btf, module.btf.find(Kind::Func, &kfunc.name)?.id()))
        });
        of_module.unwrap_or((self.types, TypeId(kfunc.btf_id)))
    }

    /// Modules of which no kernel function is known.
    pub fn without_functions(&self) -> impl Iterator<Item = &'k str> {
        let kfuncs = &self.registry.kfuncs;
        let is_known = |module: &&Module| {
            let of_module = |kfunc: &Kfunc| kfunc.module() == Some(module.name.as_str());
            module.kfuncs.is_some() || kfuncs.values().any(of_module)
        };
        let unknown = self.modules.iter().filter(move |module| !is_known(module));
        unknown.map(|module| module.name.as_str())
    }
}

/// The kernel functions of a kernel, and the bit operations if it has them.
fn rows(listed: Listed<'_>, state: StateOf) -> Vec<[String; 7]> {
    let mut modules = listed.modules.iter();
    let has_bits = modules.any(|module| module.name == bits::MODULE);
    let bits = BitOp::ALL.iter().filter(|_| has_bits).map(|op| {
        [
            op.name().to_owned(),
            "none: a bit operation of Beebox".to_owned(),
            "-".to_owned(),
            "runs".to_owned(),
            "-".to_owned(),
            "all".to_owned(),
            op.prototype(),
        ]
    });
    // One of unknown release is newer than the table of releases, or for tests of the kernel's own.
    let after_table = Release { major: 7, minor: 2 };
    let is_known_there = |kfunc: &Kfunc| {
        let since = spec::since::kfunc(&kfunc.name);
        let since = since.map_or(after_table, |since| since.release);
        let is_in = |own| since <= own;
        listed.release.is_none_or(is_in)
    };
    let kfuncs = listed.registry.kfuncs.values();
    let kfuncs = kfuncs.filter(|kfunc| is_known_there(kfunc)).map(|kfunc| {
        let (types, id) = listed.place(kfunc);
        [
            kfunc.name.to_string(),
            release(kfunc),
            kfunc.module().unwrap_or("-").to_owned(),
            state(&kfunc.name).map_or("-", CallState::name).to_owned(),
            flags(kfunc),
            program_types(kfunc),
            prototype(kfunc, types, id),
        ]
    });
    bits.chain(kfuncs).collect()
}

/// The kernel functions of a kernel, and the bit operations if it has them, as a table with the
/// prototype of each below its line.
pub fn list(listed: Listed<'_>, state: StateOf) -> String {
    let [columns @ .., _] = COLUMNS;
    let mut table = Table::new(&columns.map(|column| (column, Side::Left)));
    let mut prototypes = Vec::new();
    for [cells @ .., prototype] in rows(listed, state) {
        table.row(cells);
        prototypes.push(prototype);
    }
    let mut text = String::new();
    table.write(&mut text, usize::MAX, "");
    let mut lines = text.lines();
    let mut list: String = lines
        .next()
        .map(|line| format!("{line}\n"))
        .into_iter()
        .collect();
    for (line, prototype) in lines.zip(prototypes) {
        // Writing to a string cannot fail.
        let _ = writeln!(list, "{line}\n    {prototype}");
    }
    list
}

/// The same as JSON: an object for each function, with the columns as keys, flags and program types
/// as lists, and `null` for what is not there.
pub fn list_json(listed: Listed<'_>, state: StateOf) -> serde_json::Value {
    let rows = rows(listed, state);
    let is_there = |text: &String| text != "-";
    let list = |text: String| -> Vec<String> {
        let words = text.split(", ").map(str::to_owned);
        words.filter(is_there).collect()
    };
    let record = |[name, linux, module, state, flags, types, prototype]: [String; 7]| {
        serde_json::json!({
            "name": name,
            "linux": Some(linux).filter(is_there),
            "module": Some(module).filter(is_there),
            "call_state": Some(state).filter(is_there),
            "flag_names": list(flags),
            "program_types": list(types),
            "prototype": prototype,
        })
    };
    serde_json::json!({ "functions": rows.into_iter().map(record).collect::<Vec<_>>() })
}

/// The page docs/kfuncs.md.
pub fn page(registry: &Registry, types: &Btf<'_>, state: StateOf) -> String {
    let mut page = format!(
        "# Kernel functions\n\n\
         Kernel functions (kfuncs) are called by BTF id: a program declares an extern function in\n\
         `.ksyms`, and linking finds it in the kernel's BTF or in that of a module. The page is\n\
         made by `cargo xtask kfuncs`; `beebox kfuncs` prints the list. Functions of your own\n\
         program are kernel functions too: [embed.md](embed.md); so are the\n\
         [bit operations](#bit-operations-of-beebox), if you ask for them.\n\n\
         ## Functions of Linux 6.18\n\n\
         The {} functions of the built-in kernel, by what a call does in a run. The verifier checks\n\
         calls as docs/verifier.md says. Program types:\n\n",
        registry.kfuncs.len()
    );
    let sets = sets(registry);
    for (at, types) in sets.iter().enumerate() {
        let _ = writeln!(page, "- **{}**: {types}", letter(at));
    }
    for (name, about) in STATES {
        let is_so = |kfunc: &&Kfunc| state(&kfunc.name).is_some_and(|state| state.name() == *name);
        let mut listed: Vec<&Kfunc> = registry.kfuncs.values().filter(is_so).collect();
        let why = |kfunc: &Kfunc| state(&kfunc.name).and_then(CallState::why_not);
        listed.sort_by_key(|kfunc| why(kfunc));
        let _ = write!(
            page,
            "\n### {} of {}: {name}\n\n{about}\n\n",
            listed.len(),
            registry.kfuncs.len()
        );
        let has_reason = listed.iter().any(|kfunc| why(kfunc).is_some());
        let (head, rule) = match has_reason {
            true => (" for |", "---|"),
            false => ("", ""),
        };
        let _ = write!(
            page,
            "| function |{head} since | flags | types |\n|---|{rule}---|---|---|\n"
        );
        for kfunc in listed {
            let reason = why(kfunc).map_or(String::new(), |why| format!(" {why} |"));
            let set = program_types(kfunc);
            let set = sets
                .iter()
                .position(|known| *known == set)
                .map_or('-', letter);
            let _ = writeln!(
                page,
                "| `{}` |{reason} {} | {} | {set} |",
                prototype(kfunc, types, TypeId(kfunc.btf_id)).replace('|', "\\|"),
                release(kfunc),
                flags(kfunc)
            );
        }
    }
    write_bit_operations(&mut page);
    page
}

/// The part of the page about functions that no Linux has.
fn write_bit_operations(page: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "\n## Bit operations of Beebox\n\n\
         Linux has none of these. `--host-functions bits` adds them to the kernel of a command,\n\
         `Kernel::with_bit_operations` in the library; `beebox-gateway run` has them. Without, a\n\
         program that calls them is refused as Linux refuses any unknown function: linking fails,\n\
         or a weak declaration resolves to none, and code behind `bpf_ksym_exists(bpf_ffs64)` is\n\
         dead. `beebox show` names them, `beebox kfuncs --header` prints the header `{}`. In\n\
         native code they are instructions: no call, no saved register.\n\n\
         | function | returns | native code |\n|---|---|---|\n",
        spec::bits::HEADER
    );
    for op in BitOp::ALL {
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
         kernel's `__ffs`, with 64 for 0. `bpf_fls64` counts from 1, as the kernel's `fls64`.\n"
    );
}

/// States with what they mean.
const STATES: &[(&str, &str)] = &[
    (
        "runs",
        "With the results of Linux, which random calls compare with the running kernel\n\
         (`cargo differential compare kfuncs`). String functions follow pointers that nothing verified, and\n\
         iterators, exceptions, objects, dynptrs, resilient locks and streams need what only the\n\
         checked engine records, so that programs with them run there. What Linux's verifier would\n\
         refuse is a trap in a program that nothing verified: an iterator that is not destroyed, an\n\
         object that is not dropped, a list without its lock.",
    ),
    (
        "absent",
        "They answer that what they are about does not exist, as Linux does where it does not\n\
         exist either: tasks, cgroups, keys, ciphers, transformations, tracked connections.",
    ),
    (
        "unreached",
        "They take an object that those above return, and so no run comes to one.",
    ),
    (
        "refused",
        "Programs that they are for run in a model of the kernel ([test-tracing.md](test-tracing.md)): those about\n\
         given tasks, control groups and files do what Linux does, calls of the others are recorded and return\n\
         what a test gives. `beebox run` on a packet refuses a program that comes to one, by its name.",
    ),
    (
        "unsupported",
        "`beebox run` refuses a program that comes to one, by its name, with exit code 2; the\n\
         table names what is missing.",
    ),
];

/// The different sets of program types, the most frequent first.
fn sets(registry: &Registry) -> Vec<String> {
    let mut counts = BTreeMap::<String, usize>::new();
    for kfunc in registry.kfuncs.values() {
        *counts.entry(program_types(kfunc)).or_default() += 1;
    }
    let mut sets: Vec<(String, usize)> = counts.into_iter().collect();
    sets.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sets.into_iter().map(|(set, _)| set).collect()
}

fn letter(at: usize) -> char {
    char::from(b'A' + at.min(25) as u8)
}

/// The declaration in C, by the BTF that has the function of this id.
fn prototype(kfunc: &Kfunc, types: &Btf<'_>, id: TypeId) -> String {
    let func = types.get(id).and_then(|ty| ty.referred());
    let mut dump = CDump::new(types).without_type_tags();
    match func.map(|proto| dump.declare(proto, &kfunc.name)) {
        Some(Ok(())) => String::from_utf8_lossy(dump.as_bytes()).into_owned(),
        Some(Err(_)) | None => kfunc.name.to_string(),
    }
}

fn release(kfunc: &Kfunc) -> String {
    let since = spec::since::kfunc(&kfunc.name);
    since.map_or("-".to_owned(), |since| since.release.to_string())
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

fn program_types(kfunc: &Kfunc) -> String {
    // All but those of hardware that hosts rarely have, and `ext`, which has those of its target.
    let is_common = |kind: &ProgramType| !matches!(kind, ProgramType::LircMode2 | ProgramType::Ext);
    let of = |kind: &ProgramType| kfunc.program_types.has(*kind);
    let all = (1..64).filter_map(ProgramType::from_number);
    let all: Vec<ProgramType> = all.filter(is_common).collect();
    let users: Vec<&str> = all
        .iter()
        .filter(|kind| of(kind))
        .map(|kind| kind.name())
        .collect();
    match users.len() {
        0 => "some hooks".to_owned(),
        len if len == all.len() => "all".to_owned(),
        _ => users.join(", "),
    }
}

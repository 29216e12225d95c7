//! The page that lists helpers: those that Linux offers and those that run here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kernel::helpers::{NUMBERS, is_about_absent};
use spec::programs::ProgramType;
use spec::registry::Registry;

/// `bpf_tail_call`
const TAIL_CALL: i32 = 12;

/// Program types that Linux test-runs.
const TYPES: [ProgramType; 13] = [
    ProgramType::Xdp,
    ProgramType::SchedCls,
    ProgramType::SchedAct,
    ProgramType::SocketFilter,
    ProgramType::CgroupSkb,
    ProgramType::FlowDissector,
    ProgramType::Netfilter,
    ProgramType::SkLookup,
    ProgramType::LwtIn,
    ProgramType::LwtOut,
    ProgramType::LwtXmit,
    ProgramType::Syscall,
    ProgramType::RawTracepoint,
];

/// docs/helpers.md: every helper that a kernel offers to the types that it test-runs, with the
/// table of runs of the kernel's own tests.
pub fn page(registry: &Registry, runs: &str) -> String {
    let mut users: BTreeMap<u32, Vec<ProgramType>> = BTreeMap::new();
    for (kind, rules) in TYPES.iter().flat_map(|wanted| {
        let programs = registry.programs.iter();
        programs.filter_map(move |((kind, _), rules)| (kind == wanted).then_some((wanted, rules)))
    }) {
        for entry in &registry.helper_sets[rules.helpers as usize] {
            let kinds = users.entry(entry.id).or_default();
            if !kinds.contains(kind) {
                kinds.push(*kind);
            }
        }
    }
    // Engines make tail calls themselves.
    let is_built = |id: u32| NUMBERS.contains(&(id as i32)) || id as i32 == TAIL_CALL;
    let built = users.keys().filter(|id| is_built(**id)).count();
    let absent = users.keys().filter(|id| is_about_absent(**id as i32));
    let absent = absent.count();
    let (working, all) = (built - absent, users.len());
    let mut page = format!(
        "# Helpers\n\n\
         Helpers that Linux 6.18 offers to the {} program types that it test-runs: Beebox runs\n\
         {built} of {all}, of which {absent} are stubs that return what Linux\n\
         returns where it does not exist; {working} work as in Linux.\n\n\
         Results, error numbers, packets and contexts are compared with the running kernel's\n\
         (`cargo differential compare helpers`). The page is made by `cargo xtask helpers`, from the\n\
         registry of the built-in kernel and the table of what is built.\n\n\
         ## Runs of the kernel's own tests\n\n\
         `cargo differential compare runs` runs every program of the kernel's selftests that the running\n\
         kernel accepts and test-runs, here and there: results, data, contexts, error numbers and\n\
         the entries of all maps. What runs of one side leave different is not compared: several\n\
         runs of the kernel (times, addresses, random numbers), and runs here as native code at\n\
         several addresses and in the checked engine on another stack (addresses, random numbers,\n\
         bytes of the stack that the program has not written). Nor is what the kernel's own stack decides (`bpf_get_stack`,\n\
         `bpf_get_stackid`, `bpf_get_task_stack`). Programs in which only that differs are counted\n\
         as not comparable.\n\n\
         What differs else has these reasons: the cookie of the machine's first network namespace,\n\
         which is 1 here and another number where namespaces were made before; kfuncs about objects\n\
         that do not exist here (ciphers, control groups, slab caches) and references to tasks; members\n\
         of the kernel's map structures that maps here do not have; how long a lock is waited for; and\n\
         the upper bits of addresses, which are those of a process here.\n\n\
         <!-- runs -->\n{runs}<!-- /runs -->\n\n\
         ## Helpers by number\n\n\
         | number | helper | state | program types |\n|---:|---|---|---|\n",
        TYPES.len(),
    );
    for (id, kinds) in &users {
        let name = spec::helpers::helper(*id as i32).map_or("?", |helper| helper.name);
        let state = match (is_built(*id), is_about_absent(*id as i32)) {
            (true, true) => "answers absence",
            (true, false) => "runs",
            (false, _) => panic!("{name} is not built"),
        };
        let kinds = match kinds.len() {
            len if len == TYPES.len() => "all".to_owned(),
            _ => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                names.join(", ")
            }
        };
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| {id} | `{name}` | {state} | {kinds} |");
    }
    page
}

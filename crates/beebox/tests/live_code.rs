//! Dead code removal beside the running kernel's: the instructions that it keeps of our own
//! objects, of generated programs and of a few written for the purpose.

use std::fs;
use std::path::{Path, PathBuf};

use beebox::Kernel;
use beebox::program::Program;
use beebox::verify::{Loader, Registry};
use testkit::kernel::load::{LoadRequest, load};
use testkit::verifier::{Target, assembled, generated, generated_program, live_code};
use verifier::{LiveCode, Proof, Spills};

const ORACLE: &str = "the kernel's removal of dead code";

/// The running kernel with its registry.
struct Running {
    kernel: Kernel,
    registry: Registry,
}

fn running() -> Option<Running> {
    let kernel = oracle::found(ORACLE, sys::kernel::running())?;
    let types = oracle::found(ORACLE, kernel.btf().ok_or("it has no BTF"))?;
    let registry = kernel_data::linux_6_18_registry(types);
    Some(Running { kernel, registry })
}

impl Running {
    /// Number of removed instructions, if both accept the program. Fails if the kernel
    /// keeps other instructions.
    fn compare(&self, name: &str, program: &Program) -> Option<usize> {
        let proof = Proof::of(program, &self.kernel, &self.registry).ok()?;
        let request = LoadRequest {
            log_level: 0,
            log_size: 0,
        };
        let loaded = load(program, request).ok()?.answer.result.ok()?;
        let info = loaded.info().expect("information about a loaded program");
        let live = proof.live_code(Spills::Dropped);
        let answer = live_code::compare(&live, &info.translated);
        assert!(answer.is_ok(), "{name}: from instruction {answer:?} on");
        Some(program.insns().len() - live.insns.len())
    }
}

fn live(text: &str) -> (Program, LiveCode) {
    let program = generated_program(Target::SchedCls, &assembled(text).unwrap()).unwrap();
    let kernel = kernel_data::linux_6_18();
    let registry = kernel.registry().expect("the built-in registry");
    let proof = Proof::of(&program, &kernel, registry).unwrap();
    (program, proof.live_code(Spills::Dropped))
}

/// Programs, and by slot whether the instruction stays.
const CASES: &[(&str, &str)] = &[
    // A branch that is never taken goes with what it leads to.
    (
        "r0 = 1\nif r0 == 2 goto out\nexit\nout:\nr0 = 3\nexit\n",
        "#.#..",
    ),
    // One that is always taken becomes a jump, which then leads to the next instruction.
    ("r0 = 1\nif r0 == 1 goto out\nr0 = 2\nout:\nexit\n", "#..#"),
    // A jump that becomes one to the next instruction only later stays.
    (
        "call 7\nif r0 == 3 goto a\nr1 = 1\ngoto b\na:\ngoto +0\nb:\nr0 = 0\nexit\n",
        "####.##",
    ),
    // But not in front of a may_goto that goes.
    ("r0 = 1\nmay_goto +1\nmay_goto +0\nexit\n", "#..#"),
    // Both slots of a wide load go.
    (
        "r0 = 1\nif r0 == 1 goto out\nr0 = 5 ll\nout:\nexit\n",
        "#...#",
    ),
    // Spills around a call that keeps registers go, those around others stay.
    (
        "r1 = 7\n*(u64 *)(r10 - 8) = r1\ncall 8\nr1 = *(u64 *)(r10 - 8)\nr0 = r1\nexit\n",
        "#.#.##",
    ),
    (
        "r6 = 7\n*(u64 *)(r10 - 8) = r6\ncall 7\nr6 = *(u64 *)(r10 - 8)\nr0 = r6\nexit\n",
        "######",
    ),
];

#[test]
fn what_is_removed_is_what_the_kernel_removes() {
    let running = running();
    for (text, kept) in CASES {
        let (program, live) = live(text);
        let found: String = live
            .new_slots
            .iter()
            .map(|slot| slot.map_or('.', |_| '#'))
            .collect();
        assert_eq!(found, *kept, "{text}");
        if let Some(running) = &running {
            let removed = kept.matches('.').count();
            assert_eq!(running.compare(text, &program), Some(removed), "{text}");
        }
    }
}

#[test]
fn the_kernel_keeps_the_same_of_our_objects() {
    let Some(running) = running() else { return };
    let mut compared = 0;
    for path in objects() {
        let bytes = fs::read(&path).expect("a committed object");
        let name = path.display().to_string();
        let loaded = Loader::new(&running.kernel).load_each(&bytes, &name, &mut |loaded| {
            if let Ok(program) = &loaded.program {
                compared += usize::from(running.compare(&name, program).is_some());
            }
        });
        loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert!(compared >= 10, "{compared} programs");
}

#[test]
fn the_kernel_keeps_the_same_of_generated_programs() {
    let Some(running) = running() else { return };
    let mut removed = 0;
    for seed in oracle::seeds(300) {
        let (target, text) = generated(seed);
        let program = generated_program(target, &assembled(&text).unwrap()).unwrap();
        removed += running
            .compare(&format!("seed {seed}"), &program)
            .unwrap_or(0);
    }
    assert!(removed > 300, "{removed} instructions");
}

/// Committed objects of programs.
fn objects() -> Vec<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directories = [
        "crates/testkit/cases/explain/c",
        "crates/beebox/tests/run",
        "examples/packets",
        "examples/traffic",
        "examples/verify",
    ];
    let mut paths: Vec<PathBuf> = directories
        .iter()
        .flat_map(|directory| fs::read_dir(repository.join(directory)).expect("a directory"))
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.to_string_lossy().ends_with(".bpf.o"))
        .collect();
    paths.sort();
    paths
}

//! Dead code removal beside the running kernel's: the instructions that it keeps of our own
//! objects, of generated programs and of a few written for the purpose.

use std::fs;
use std::path::{Path, PathBuf};

use beebox::Kernel;
use beebox::internal::ebpf::RawInsn;
use beebox::internal::program::Program;
use beebox::internal::verify::{ProgramLoader, Registry};
use beebox_differential::verifier::live_code;
use kernel_client::load::{LoadRequest, load, may_load};
use spec::programs::ProgramType;
use testkit::verifier::{assembled, generated_runnable, program_with_array};
use verifier::{KernelCode, LiveCode, Proof, Spills};

const ORACLE: &str = "the kernel's removal of dead code";

/// The running kernel with its registry.
struct Running {
    kernel: Kernel,
    registry: Registry,
}

fn running() -> Option<Running> {
    oracle::found(ORACLE, may_load())?;
    let kernel = oracle::found(ORACLE, sys::kernel::running())?;
    let types = oracle::found(ORACLE, kernel.btf().ok_or("it has no BTF"))?;
    let registry = kernel_data::linux_6_18_minimal_registry(types);
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
        let form = proof.kernel_code();
        let answer = live_code::compare(&form, &info.translated);
        assert!(
            answer.is_ok(),
            "{name}: from instruction {answer:?} on, {:#x?}\nkernel {:#x?}",
            form.slots,
            info.translated
        );
        if form.insns().is_some() {
            compare_places(name, &form, &info.translated);
        }
        Some(program.insns().len() - live.insns.len())
    }
}

/// Fails if an instruction that is not left open has another place in the kernel's program, or
/// leads elsewhere.
fn compare_places(name: &str, form: &KernelCode, kernel: &[RawInsn]) {
    const CALL: u8 = 0x85;
    let places = form.places();
    // To programs that throw the kernel adds a callback of two instructions.
    let end = places.last().map_or(0, |&end| end as usize);
    assert!(
        [end, end + 2].contains(&kernel.len()),
        "{name}: {end} instructions"
    );
    for (slot, own) in form.slots.iter().enumerate() {
        let (ours, theirs) = (form.placed(slot, &places), kernel[places[slot] as usize]);
        // Wide loads and calls hold addresses.
        if own.is_open || [0, 0x18, CALL].contains(&ours.code) {
            continue;
        }
        assert_eq!(
            ours, theirs,
            "{name}: slot {slot}, the kernel's {}",
            places[slot]
        );
    }
}

fn live(text: &str) -> (Program, LiveCode) {
    let program = program_with_array(ProgramType::SchedCls, &assembled(text).unwrap()).unwrap();
    let kernel = kernel_data::linux_6_18_minimal();
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

#[oracle::test]
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

#[oracle::test]
fn the_kernel_keeps_the_same_of_our_objects() {
    let Some(running) = running() else { return };
    let mut compared = 0;
    for path in objects() {
        let bytes = fs::read(&path).expect("a committed object");
        let name = path.display().to_string();
        let loaded = ProgramLoader::new(&running.kernel).load_each(&bytes, &name, &mut |loaded| {
            if let Ok(program) = &loaded.program {
                compared += usize::from(running.compare(&name, program).is_some());
            }
        });
        loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert!(compared >= 10, "{compared} programs");
}

#[oracle::test]
fn the_kernel_has_the_same_of_generated_programs() {
    let Some(running) = running() else { return };
    let types = running.kernel.btf().expect("types of the kernel");
    let mut removed = 0;
    for seed in oracle::seeds(600) {
        let program = generated_runnable(seed, types).unwrap();
        let found = running.compare(&format!("seed {seed}"), &program);
        removed += found.unwrap_or(0);
    }
    assert!(removed > 600, "{removed} instructions");
}

/// Instructions that the kernel guards, after r6 and r7 were set to unknown numbers.
const GUARDED: &[&str] = &[
    "r6 /= r7",
    "w6 /= w7",
    "r6 %= r7",
    "w6 %= w7",
    "r6 s/= r7",
    "w6 s/= w7",
    "r6 s%= r7",
    "w6 s%= w7",
    "r6 s/= -1",
    "w6 s/= -1",
    "r6 s%= -1",
    "w6 s%= -1",
    "r6 /= 3",
    "w6 s%= 3",
    "r6 s/= r6",
    "r6 %= r6",
];

#[oracle::test]
fn guarded_divisions_are_the_kernels() {
    let mut added = 0;
    for guarded in GUARDED {
        let text = format!("call 7\nr6 = r0\ncall 7\nr7 = r0\n{guarded}\nr0 = 0\nexit\n");
        let program =
            program_with_array(ProgramType::SchedCls, &assembled(&text).unwrap()).unwrap();
        added += check_form(guarded, &program);
    }
    // Unsigned ones, then signed ones, then those by their own register.
    assert_eq!(added, (3 + 3 + 1 + 3) + (7 + 7 + 6 + 8) + (7 + 1));
}

/// Loops of `may_goto` in the main function and in another, beside divisions and spills.
const LOOPS: &[&str] = &[
    "r0 = 0\nl:\nmay_goto +1\ngoto l\nexit\n",
    "l:\nmay_goto out\nr0 = 0\ngoto l\nout:\nr0 = 1\nexit\n",
    "r6 = 3\n*(u64 *)(r10 - 8) = r6\nl:\nr6 = *(u64 *)(r10 - 8)\nmay_goto out\nr0 = 7\nr0 /= r6\n\
     goto l\nout:\nr0 = 1\nexit\n",
    "call f\nl:\nmay_goto +2\ncall f\ngoto l\nr0 = 0\nexit\nf:\nr0 = 0\n*(u64 *)(r10 - 24) = r0\n\
     m:\nmay_goto +1\ngoto m\nexit\n",
    "may_goto +0\nr0 = 0\nexit\n",
];

#[oracle::test]
fn loops_of_may_goto_are_the_kernels() {
    for text in LOOPS {
        let program = program_with_array(ProgramType::SchedCls, &assembled(text).unwrap()).unwrap();
        check_form(text, &program);
    }
}

/// Compares the kernel's form of a program with what the running kernel has of it, slot by
/// slot where it is not open; the number of slots that rewriting adds.
fn check_form(name: &str, program: &Program) -> usize {
    let kernel = kernel_data::linux_6_18_minimal();
    let registry = kernel.registry().expect("the built-in registry");
    let proof =
        Proof::of(program, &kernel, registry).unwrap_or_else(|why| panic!("{name}: {why:?}"));
    if let Some(running) = running() {
        assert!(
            running.compare(name, program).is_some(),
            "{name}: the kernel refuses it"
        );
    }
    let live = proof.live_code(Spills::Dropped);
    proof.kernel_code().slots.len() - live.insns.len()
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

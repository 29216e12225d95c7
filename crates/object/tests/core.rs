//! CO-RE relocations compared with libbpf, field by field.
//!
//! `core/questions.o` has relocations of every kind; `core/targets/*.o` are kernels with
//! moved, renamed, resized and removed fields; `core/answers/*.txt` are libbpf's recorded
//! results, for machines without it (`UPDATE_EXPECT=1` records them again). Where that
//! libbpf is built, it is run on these, on the running kernel and on every object of the
//! kernel's own tests; otherwise those tests are skipped.
//! tests, too; where it is not, the tests say so and pass.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

use btf::core::{Access, Resolution, Resolver};
use btf::{Btf, BtfExt};
use elf_file::{Object as _, ObjectSection as _};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/core")
}

/// Files of a directory with this ending, sorted.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|why| panic!("{directory:?}: {why}"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(ending));
    files.sort();
    files
}

/// BTF and BTF.ext.
struct Types {
    btf: Btf<'static>,
    ext: Option<BtfExt<'static>>,
}

fn read(path: &Path) -> Option<Types> {
    let bytes = fs::read(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    if !bytes.starts_with(b"\x7fELF") {
        let btf = Btf::parse(bytes).ok()?;
        return Some(Types { btf, ext: None });
    }
    let file = elf_file::File::parse(&bytes[..]).ok()?;
    let section = |name| Some(file.section_by_name(name)?.data().ok()?.to_vec());
    Some(Types {
        btf: Btf::parse(section(".BTF")?).ok()?,
        ext: section(".BTF.ext").and_then(|ext| BtfExt::parse(ext).ok()),
    })
}

/// Our results, in the form of `differential/libbpf/relocations.c`.
fn answers(object: &Path, target: &Btf<'_>) -> Vec<String> {
    let Some(Types {
        btf,
        ext: Some(ext),
    }) = read(object)
    else {
        return Vec::new();
    };
    let mut resolver = Resolver::new(&btf, target);
    let mut lines = Vec::new();
    for group in ext.relocations() {
        for relo in group.records() {
            let mut line = format!("{}+{}: ", btf.string(group.section), relo.offset);
            match resolver.resolve(&relo.spec) {
                Err(why) => write!(line, "error {}", why.errno()),
                Ok(Resolution::Poison) => write!(line, "poison"),
                Ok(Resolution::Value {
                    expected,
                    value,
                    access,
                }) => {
                    let expected = expected.map_or("any".into(), |number| number.to_string());
                    let access = match access {
                        Access::AsIs => "as is".into(),
                        Access::Resize { from, to } => format!("{from} -> {to}"),
                        Access::Refuse => "refuse".into(),
                    };
                    write!(line, "{expected} -> {value} {access}")
                }
            }
            .unwrap();
            let text = resolver.describe(&relo.spec).unwrap_or_default();
            lines.push(format!("{line} | {text}"));
        }
    }
    lines
}

/// libbpf's results for many objects.
struct Libbpf {
    program: PathBuf,
    objects: PathBuf,
}

impl Libbpf {
    /// Program that runs libbpf, if its sources are present; built once.
    fn find() -> Option<&'static Libbpf> {
        static BUILT: OnceLock<Option<Libbpf>> = OnceLock::new();
        BUILT.get_or_init(Libbpf::build).as_ref()
    }

    fn build() -> Option<Libbpf> {
        let library = oracle::selftest_path("7.2/tools/libbpf.a");
        let library = oracle::found("relocations by libbpf", library)?;
        let tools = oracle::selftests().join("7.2/linux/tools");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libbpf-relocations");
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../differential/libbpf/relocations.c");
        let built = Command::new("cc")
            .args(["-O1", "-o"])
            .arg(&program)
            .arg(source)
            .arg("-I")
            .arg(tools.join("lib/bpf"))
            .arg("-I")
            .arg(tools.join("include"))
            .arg("-I")
            .arg(tools.join("include/uapi"))
            .arg(library)
            .args(["-lelf", "-lz"])
            .status();
        assert!(built.is_ok_and(|status| status.success()), "no {program:?}");
        Some(Libbpf {
            program,
            objects: oracle::selftests().join("7.2/obj-v3"),
        })
    }

    /// Results for each object.
    fn answers(&self, target: &Path, objects: &[PathBuf]) -> Vec<Vec<String>> {
        let output = Command::new(&self.program)
            .arg(target)
            .args(objects)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}: {:?}",
            target.display(),
            output
        );
        let text = String::from_utf8_lossy(&output.stdout);
        let mut answers: Vec<Vec<String>> = Vec::new();
        for line in text.lines() {
            match line.strip_prefix("= ") {
                Some(_) => answers.push(Vec::new()),
                None => answers.last_mut().unwrap().push(line.into()),
            }
        }
        assert_eq!(answers.len(), objects.len());
        answers
    }

    /// Compares all relocations of the objects; returns their number.
    fn compare(&self, target: &Path, objects: &[PathBuf]) -> usize {
        let types = read(target).expect("types of the target");
        let mut count = 0;
        for (object, theirs) in objects.iter().zip(self.answers(target, objects)) {
            let ours = answers(object, &types.btf);
            let place = format!("{} on {}", object.display(), target.display());
            assert_eq!(ours.len(), theirs.len(), "{place}");
            for (ours, theirs) in ours.iter().zip(&theirs) {
                assert_eq!(ours, theirs, "{place}");
            }
            count += ours.len();
        }
        count
    }
}

#[oracle::test]
fn results_are_the_recorded_ones_of_libbpf() {
    let questions = directory().join("questions.o");
    let targets = files(&directory().join("targets"), ".o");
    assert_eq!(targets.len(), 6);
    let libbpf = Libbpf::find();
    for target in targets {
        let name = target.file_stem().unwrap().to_string_lossy().into_owned();
        let kept = directory().join(format!("answers/{name}.txt"));
        if let Some(libbpf) = &libbpf
            && env::var_os("UPDATE_EXPECT").is_some()
        {
            let answers = &libbpf.answers(&target, std::slice::from_ref(&questions))[0];
            fs::write(&kept, answers.join("\n") + "\n").unwrap();
        }
        let kept = fs::read_to_string(&kept).unwrap_or_else(|why| panic!("{kept:?}: {why}"));
        let ours = answers(&questions, &read(&target).unwrap().btf);
        assert!(ours.len() > 150, "{name}");
        for (ours, kept) in ours.iter().zip(kept.lines()) {
            assert_eq!(ours, kept, "{name}");
        }
        assert_eq!(ours.len(), kept.lines().count(), "{name}");
        if let Some(libbpf) = &libbpf {
            libbpf.compare(&target, std::slice::from_ref(&questions));
        }
    }
}

#[oracle::test]
fn every_selftest_object_gets_libbpfs_results() {
    let Some(libbpf) = Libbpf::find() else {
        return;
    };
    let kernel = Path::new("/sys/kernel/btf/vmlinux");
    let mut count = 0;
    if kernel.exists() {
        count += libbpf.compare(kernel, &files(&libbpf.objects, ".bpf.o"));
    }
    let mut askers = files(&libbpf.objects, ".bpf.o");
    askers.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("test_core_") || name.starts_with("core_kern")
    });
    for target in files(&libbpf.objects, ".bpf.o") {
        let name = target.file_name().unwrap().to_string_lossy();
        if name.starts_with("btf__core_reloc_") {
            count += libbpf.compare(&target, &askers);
        }
    }
    eprintln!("{count} relocations");
    assert!(count > 10_000);
}

//! Sets of the kernel's selftests, and the kernel that their programs are loaded for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use beebox::Kernel;
use beebox::internal::ask::{image_in, image_version};
use beebox::internal::object::Object;
use beebox::internal::program::Program;
use beebox::internal::verify::{ProgramLoader, Registry, StandaloneProgram};
use beebox::kernel::Kernels;
use beebox_differential::recorded::read_text;
use beebox_differential::verifier::{VerifierPair, registry_of};
use btf::Btf;
use clap::Args;
use spec::kernel::Source;
use spec::programs::{AttachType, ProgramType};

use crate::command::Outcome;

/// Arguments that select programs of the selftests.
#[derive(Args, Default)]
pub(crate) struct Selection {
    /// A set of the selftests, such as 7.2/v3
    #[arg(long, value_name = "RELEASE/CPU")]
    set: Vec<Set>,
    /// Split the programs by a list of names (FILE/PROGRAM, one a line)
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Directory of recorded answers, in place of tools/selftests
    #[arg(long, value_name = "DIRECTORY")]
    truth: Option<PathBuf>,
    /// Objects whose name has this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Programs of these types, such as tracing,lsm,struct_ops,ext
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = read_type)]
    types: Vec<ProgramType>,
    /// Name every program that differs, or is not answered
    #[arg(long)]
    list: bool,
}

/// The program type of a name.
fn read_type(name: &str) -> Result<ProgramType, String> {
    ProgramType::from_name(name).ok_or_else(|| format!("{name} is no program type"))
}

/// The compared programs and sets.
#[derive(Debug)]
pub(crate) struct Options {
    /// RELEASE/CPU.
    pub(crate) sets: Vec<Set>,
    /// True if these are the sets that count if none is named.
    are_usual: bool,
    /// Names of programs that need nothing but the core of a verifier, as FILE/PROGRAM.
    pub(super) core: Option<BTreeSet<String>>,
    /// Directory of recorded answers, if it is not the repository's `tools/selftests`.
    truth: Option<PathBuf>,
    /// Text in the name of an object.
    only: Option<String>,
    /// Program types, if not all.
    types: Vec<ProgramType>,
    /// True if every difference is printed.
    pub(super) list: bool,
}

/// The objects of one release for one instruction set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    release: String,
    cpu: String,
}

impl Set {
    /// Its name in tables.
    pub(super) fn title(&self) -> String {
        format!("{}/{}", self.release, self.cpu)
    }

    /// The file with the answers of a kernel of Debian.
    pub(super) fn truth_on(&self, release: &str) -> PathBuf {
        let name = format!("truth-{}-{}-on-{release}.csv.gz", self.release, self.cpu);
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/kernels/truth");
        directory.join(name)
    }

    fn home(&self) -> PathBuf {
        oracle::selftests().join(&self.release)
    }
}

impl Options {
    /// Options of a selection; `sets` are those that count if none is named.
    pub(crate) fn from_selection(selection: Selection, sets: &[&str]) -> Outcome<Options> {
        let usual = sets.iter().map(|set| set.parse());
        let usual: Vec<Set> = usual.collect::<Result<_, _>>()?;
        let named = match selection.set.is_empty() {
            true => usual.clone(),
            false => selection.set,
        };
        let core = selection.names.map(|path| read_list(&path)).transpose()?;
        Ok(Options {
            are_usual: named == usual,
            sets: named,
            core,
            truth: selection.truth,
            only: selection.only,
            types: selection.types,
            list: selection.list,
        })
    }

    /// Options for all programs of one set.
    pub(crate) fn of_set(set: &str) -> Outcome<Options> {
        Options::from_selection(Selection::default(), &[set])
    }

    /// True if the program FILE/PROGRAM is compared.
    pub(crate) fn includes(&self, name: &str) -> bool {
        self.core.as_ref().is_none_or(|core| core.contains(name))
    }

    /// True if programs of a type are compared.
    pub(crate) fn includes_type(&self, kind: Option<ProgramType>) -> bool {
        self.types.is_empty() || kind.is_some_and(|kind| self.types.contains(&kind))
    }

    /// True if the programs are not chosen by a list.
    pub(crate) fn core_is_all(&self) -> bool {
        self.core.is_none()
    }

    /// True if every difference is printed.
    pub(crate) fn lists(&self) -> bool {
        self.list
    }

    /// The name of a set with the choice of its programs.
    pub(crate) fn title(&self, set: &Set) -> String {
        let mut title = set.title();
        if self.core.is_some() {
            title += ", core";
        }
        for kind in &self.types {
            title = format!("{title}, {}", kind.name());
        }
        title
    }

    /// True if tables of these programs speak for all sets that a page has, each of them whole.
    pub(crate) fn is_whole(&self) -> bool {
        self.are_usual && self.only.is_none() && self.types.is_empty()
    }

    /// The file with a kernel's recorded answers to a set.
    pub(super) fn truth(&self, set: &Set) -> PathBuf {
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/selftests");
        let directory = self.truth.as_ref().unwrap_or(&ours);
        directory.join(format!("truth-{}-{}.csv.gz", set.release, set.cpu))
    }

    /// The objects of a set, in order of their names.
    pub(crate) fn objects(&self, set: &Set) -> Outcome<Vec<PathBuf>> {
        let mut files = objects_in(&set.home().join(format!("obj-{}", set.cpu)))?;
        if let Some(only) = &self.only {
            files.retain(|path| name_of(path).contains(only.as_str()));
        }
        Ok(files)
    }
}

impl FromStr for Set {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Set, &'static str> {
        let (release, cpu) = text
            .split_once('/')
            .ok_or("a set is RELEASE/CPU, such as 7.2/v3")?;
        Ok(Set {
            release: release.to_owned(),
            cpu: cpu.to_owned(),
        })
    }
}

/// The objects (`*.bpf.o`) in a directory, in order of their names.
pub(crate) fn objects_in(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let entries =
        fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths
        .filter(|path| name_of(path).ends_with(".bpf.o"))
        .collect();
    files.sort();
    Ok(files)
}

/// The name of a file.
pub(crate) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The built-in kernel of the release whose image lies beside a directory.
fn built_in_beside(directory: &Path) -> Outcome<Kernel> {
    let image = image_in(directory).ok_or_else(|| {
        let home = directory.parent().unwrap_or(directory);
        format!(
            "no kernel is kept in {}: tools/kernels/vm fetch",
            home.display()
        )
    })?;
    let version = image_version(&image)?.ok_or("an image without version")?;
    let built_in = Kernel::presets().iter().find(|it| it.version() == version);
    let built_in = built_in.ok_or_else(|| {
        format!("Linux {version} is not built in and not described: tools/kernels/vm describe")
    })?;
    Ok(built_in.kernel())
}

/// The running kernel, as the recorded answers had it.
pub(crate) struct Target {
    pub(crate) kernel: Kernel,
    pub(crate) registry: Registry,
    /// Objects are opened from memory with the names of their files, which name their data.
    pub(crate) keeps_names: bool,
}

impl Target {
    /// Reads the running kernel.
    pub(crate) fn running() -> Outcome<Target> {
        let kernel = kernel_client::running_kernel()?;
        let types = kernel.btf().ok_or("the running kernel has no BTF")?;
        let registry = registry_of(types);
        let types = Arc::clone(types);
        let make = move || registry_of(&types);
        let kernel = kernel.with_registry(Box::new(make), Source::Given);
        Ok(Target {
            kernel,
            registry,
            keeps_names: false,
        })
    }

    /// Reads the description of another kernel. Without a registry of its own it has that of the
    /// built-in kernel. A kernel that is kept and not described is the built-in one of its release.
    pub(crate) fn described(directory: &Path) -> Outcome<Target> {
        let kernel = match directory.is_dir() {
            true => beebox::internal::kernel::files::open(directory)?,
            false => built_in_beside(directory)?,
        };
        let registry = kernel.registry().ok_or("the kernel has no BTF")?.clone();
        Ok(Target {
            kernel,
            registry,
            keeps_names: false,
        })
    }

    /// The built-in kernel that commands take without an option.
    pub(crate) fn built_in() -> Outcome<Target> {
        let kernel = kernel_data::linux_6_18();
        let registry = kernel
            .registry()
            .ok_or("the kernel has no registry")?
            .clone();
        Ok(Target {
            kernel,
            registry,
            keeps_names: false,
        })
    }

    /// Loads each program of an object as the kernel was given it. An object that cannot
    /// be opened has none.
    pub(crate) fn load_each(
        &self,
        path: &Path,
        visit: &mut dyn FnMut(StandaloneProgram),
    ) -> Outcome {
        self.load_each_for(path, None, visit)
    }

    /// As [`Target::load_each`], for a program whose functions those of the object replace.
    pub(crate) fn load_each_for(
        &self,
        path: &Path,
        replaced: Option<&Arc<Program>>,
        visit: &mut dyn FnMut(StandaloneProgram),
    ) -> Outcome {
        self.load_each_as(path, &|_| None, replaced, visit)
    }

    /// As [`Target::load_each_for`], with the types of some programs.
    pub(crate) fn load_each_as(
        &self,
        path: &Path,
        kinds: &KindsByName<'_>,
        replaced: Option<&Arc<Program>>,
        visit: &mut dyn FnMut(StandaloneProgram),
    ) -> Outcome {
        let bytes = fs::read(path)?;
        let read_btf = |name: &str| types_of(&path.with_file_name(name));
        let change = |object: &mut Object<'_>| {
            if let Some(replaced) = replaced {
                object.set_target(replaced);
            }
            let names: Vec<String> = { object.programs() }
                .map(|(_, code)| code.name.to_string())
                .collect();
            for name in names {
                if let Some((kind, attach)) = kinds(&name)
                    && let Some(code) = object.program_mut(&name)
                {
                    code.set_kind(kind);
                    code.attach = attach;
                }
            }
        };
        let loader = ProgramLoader::new(&self.kernel)
            .with_test_tags(&read_btf)
            .with_whole_names(self.keeps_names)
            .with_change(&change);
        let _ = loader.load_each(&bytes, &name_of(path), visit);
        Ok(())
    }
}

/// The type and attach type that a program of a name is loaded as, if not those of its section.
pub(crate) type KindsByName<'k> = dyn Fn(&str) -> Option<(ProgramType, Option<AttachType>)> + 'k;

/// The programs of a set by name with what `work` makes of each, in the order of their names.
/// Every thread takes the next object.
pub(super) fn for_each_program<T: Send>(
    options: &Options,
    set: &Set,
    target: &Target,
    verifiers: &VerifierPair<'_>,
    work: impl Fn(&StandaloneProgram, &mut VerifierPair<'_>) -> T + Sync,
) -> Outcome<Vec<(String, T)>> {
    let paths = options.objects(set)?;
    let next = AtomicUsize::new(0);
    let take_objects = |mut verifiers: VerifierPair<'_>| {
        let mut done = Vec::new();
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            let file = name_of(path);
            let loaded = target.load_each(path, &mut |loaded| {
                let name = format!("{file}/{}", loaded.name);
                if options.includes(&name) && options.includes_type(loaded.kind) {
                    done.push((name, work(&loaded, &mut verifiers)));
                }
            });
            loaded.map_err(|error| error.to_string())?;
        }
        Ok::<_, String>(done)
    };
    let threads = thread::available_parallelism()?.get();
    let done = thread::scope(|scope| {
        let start = |_| {
            let verifiers = verifiers.for_thread();
            scope.spawn(|| take_objects(verifiers))
        };
        let threads: Vec<_> = (0..threads).map(start).collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect::<Result<Vec<_>, String>>()
    })?;
    let mut done: Vec<_> = done.into_iter().flatten().collect();
    done.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(done)
}

/// The types of an object.
fn types_of(path: &Path) -> Option<Arc<Btf<'static>>> {
    let bytes = fs::read(path).ok()?;
    let object = Object::open(&bytes).ok()?;
    Some(Arc::new(object.btf()?.to_owned()))
}

/// Names of programs, one a line, perhaps packed.
fn read_list(path: &Path) -> Outcome<BTreeSet<String>> {
    Ok(read_text(path)?.lines().map(str::to_owned).collect())
}

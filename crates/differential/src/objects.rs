//! libbpf as oracle: what it hands to the kernel for the objects of the kernel's own
//! tests, and what Beebox does, field by field.
//!
//! libbpf runs as it is, with a stand-in for the kernel behind it (see `harness`);
//! so what is compared is a loader with a loader, and no kernel has a say.
//!
//! # Modules
//!
//! Libbpf with a stand-in for the kernel beside our loader, field by field.

pub mod class;
pub mod compare;
pub mod harness;
pub mod ours;
pub mod page;
pub mod selftests;
pub mod syscall_record;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use compare::{ObjectComparison, compare};
use harness::{Harness, Request, Unavailable};
use kernel_client::running_kernel;
use spec::Kernel;

/// Both loaders.
pub struct Oracle {
    harness: Harness,
    kernel: Kernel,
}

impl Oracle {
    /// Builds the harness and reads the running kernel's description.
    pub fn open() -> Result<Oracle, Unavailable> {
        Ok(Oracle {
            harness: Harness::open()?,
            kernel: running_kernel()?,
        })
    }

    /// Compares one object: the whole, and every program alone. Where the kernel lacks
    /// something, that is done again with an object that can do without.
    pub fn compare(&self, object: &Path) -> Result<ObjectComparison, Unavailable> {
        let mut file = fs::read(object)?;
        let mut found = self.ask(object, &file, false)?;
        let lacks = |&(class, _): &(&'static str, i32)| class == class::NO_SYMBOL;
        if found.ends.keys().any(lacks) {
            object::make_undefined_symbols_weak(&mut file);
            found.add(self.ask(object, &file, true)?);
        }
        Ok(found)
    }

    fn ask(&self, object: &Path, file: &[u8], weak: bool) -> Result<ObjectComparison, Unavailable> {
        let request = Request {
            each: true,
            weak,
            ..Request::default()
        };
        let (path, name) = (object.to_string_lossy(), name(object, weak));
        let mut found = ObjectComparison::default();
        for libbpf in self.harness.ask(object, &request)? {
            let prog = &libbpf.scope.prog;
            let ours = ours::load(file, &path, prog, &self.kernel);
            found.add(compare(&name, &libbpf, &ours));
        }
        Ok(found)
    }

    /// Compares many objects, on as many threads as there are processors. After each
    /// object `progress` is told how many are done.
    pub fn compare_all(
        &self,
        objects: &[PathBuf],
        progress: impl Fn(usize) + Sync,
    ) -> Result<ObjectComparison, Unavailable> {
        let next = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(object) = objects.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let result = self.compare(object);
                        let mut results = results.lock().expect("no thread panics with it");
                        results.push((object.clone(), result));
                        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
                    }
                });
            }
        });
        let mut results = results.into_inner().expect("all threads have ended");
        results.sort_by(|one, other| one.0.cmp(&other.0));
        let mut all = ObjectComparison::default();
        for (_, result) in results {
            all.add(result?);
        }
        Ok(all)
    }
}

/// Name of a file.
fn name(path: &Path, weak: bool) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match weak {
        true => format!("{name} (weak)"),
        false => name.into_owned(),
    }
}

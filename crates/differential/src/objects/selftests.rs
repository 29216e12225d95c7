//! Location of the built kernel selftests, outside the tree.

use std::fs;
use std::io;
use std::path::PathBuf;

/// The release whose libbpf answers for all sets.
pub const RELEASE: &str = "7.2";

/// Objects that one compiler made of one release's tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set {
    /// By what name it is chosen and counted.
    pub name: &'static str,
    /// The release of the kernel that the tests belong to.
    pub release: &'static str,
    /// The instruction set that they were compiled for.
    pub cpu: &'static str,
}

/// The sets whose answers are counted.
pub const SETS: &[Set] = &[
    Set {
        name: "v3",
        release: RELEASE,
        cpu: "v3",
    },
    Set {
        name: "v4",
        release: RELEASE,
        cpu: "v4",
    },
    Set {
        name: "6.12",
        release: "6.12",
        cpu: "v3",
    },
];

impl Set {
    /// The set with this name.
    pub fn find(name: &str) -> Option<&'static Set> {
        SETS.iter().find(|set| set.name == name)
    }

    /// Description for tables.
    pub fn title(&self) -> String {
        format!("Linux {}, cpu {}", self.release, self.cpu)
    }

    /// Its objects, by name; none where the set was not built.
    pub fn objects(&self) -> io::Result<Vec<PathBuf>> {
        let directory = oracle::selftests()
            .join(self.release)
            .join(format!("obj-{}", self.cpu));
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut objects = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.to_string_lossy().ends_with(".bpf.o") {
                objects.push(path);
            }
        }
        objects.sort();
        Ok(objects)
    }
}

/// The tools that were built with [`RELEASE`]: libbpf, its headers, bpftool.
pub fn tools() -> PathBuf {
    oracle::selftests().join(RELEASE).join("tools")
}

/// The kernel's `tools` directory of [`RELEASE`], where libbpf's source is.
pub fn sources() -> PathBuf {
    oracle::selftests().join(RELEASE).join("linux/tools")
}

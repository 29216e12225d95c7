//! The committed objects of the workloads are what clang makes of the sources
//! beside them.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The release that made them: another one orders instructions differently.
const CLANG: &str = "clang-19";

#[test]
fn the_objects_are_made_of_the_sources() {
    if Command::new(CLANG).arg("--version").output().is_err() {
        eprintln!("skipped: no {CLANG}");
        return;
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut sources = 0;
    for entry in fs::read_dir(&directory).expect("the workloads") {
        let source = entry.expect("an entry").path();
        if source.extension().is_none_or(|extension| extension != "c") {
            continue;
        }
        sources += 1;
        let name = source.file_name().expect("a name");
        let object = made.join(name).with_extension("o");
        // Relative, so that no path of this machine is in the object.
        let status = Command::new(CLANG)
            .current_dir(&directory)
            .args([
                "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror", "-c",
            ])
            .arg(name)
            .arg("-o")
            .arg(&object)
            .status()
            .expect("clang can be started");
        assert!(status.success(), "{name:?}");
        let committed = fs::read(source.with_extension("o")).expect("a committed object");
        let again = fs::read(&object).expect("what clang made");
        assert!(
            committed == again,
            "{name:?} was changed, its object was not"
        );
    }
    assert_eq!(sources, 13);
}

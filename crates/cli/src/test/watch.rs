//! `--watch`: runs tests again when a file changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

use beebox::Kernel;
use beebox::internal::loading::ObjectLoading;

use super::{Args, find};
use crate::answer::{Answer, Failure};

/// Time between two looks at the files.
const PAUSE: Duration = Duration::from_millis(300);

type Times = BTreeMap<PathBuf, Option<SystemTime>>;

/// Runs tests until the process ends.
pub(super) fn run(
    args: &Args,
    kernel: &Kernel,
    loading: &ObjectLoading,
) -> Result<Answer, Failure> {
    loop {
        let found = find(args);
        let mut times = Times::new();
        for path in args.paths.iter().chain(&args.object) {
            note(&mut times, path.clone());
        }
        for file in found.iter().flatten() {
            note(&mut times, file.path.clone());
            note(&mut times, file.object.clone());
        }
        let ran = found.and_then(|found| super::once(args, kernel, loading, &found));
        if let Err(failure) = ran {
            failure.report();
        }
        diagnostic!("beebox: waiting for a change");
        while times.iter().all(|(path, time)| *time == changed(path)) {
            thread::sleep(PAUSE);
        }
    }
}

fn note(times: &mut Times, path: PathBuf) {
    let time = changed(&path);
    times.insert(path, time);
}

/// When a file was changed last; of a directory, when files came and went.
fn changed(path: &PathBuf) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

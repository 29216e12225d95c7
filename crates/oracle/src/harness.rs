//! The test harness of executables whose tests compare with oracles: a test whose oracle is
//! absent is reported as ignored, with the reason, never as passed.
//!
//! Such an executable has `harness = false`, [`main`] as its main function, and
//! `#[oracle::test]` in place of `#[test]`. It takes the arguments that `cargo test` hands to
//! tests; output is not captured.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// A registered test.
pub struct Test {
    /// Path of the function, from its crate on.
    pub path: &'static str,
    /// True if it runs with `--ignored` and `--include-ignored` only.
    pub is_ignored: bool,
    /// The function, which panics if the test fails.
    pub run: fn(),
}

inventory::collect!(Test);

thread_local! {
    /// What the running test has reported to [`note`]; `None` outside of a test.
    static SKIPPED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Notes that the running test skips a comparison; false outside of this harness.
pub(crate) fn note(reason: &str) -> bool {
    SKIPPED.with_borrow_mut(|skipped| match skipped {
        Some(skipped) => {
            skipped.push(reason.to_owned());
            true
        }
        None => false,
    })
}

/// Runs the registered tests.
pub fn main() -> ExitCode {
    let mut tests: Vec<&Test> = inventory::iter::<Test>().collect();
    tests.sort_by_key(|test| test.path);
    let trials = tests.into_iter().map(|test| {
        let (_, name) = test.path.split_once("::").unwrap_or(("", test.path));
        Trial::ignorable_test(name, || run(test)).with_ignored_flag(test.is_ignored)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn run(test: &Test) -> Result<Completion, Failed> {
    SKIPPED.set(Some(Vec::new()));
    let result = catch_unwind(AssertUnwindSafe(test.run));
    let skipped = SKIPPED.take().unwrap_or_default();
    match result {
        Err(panic) => Err(message(&*panic).into()),
        Ok(()) if skipped.is_empty() => Ok(Completion::Completed),
        Ok(()) => Ok(Completion::ignored_with(skipped.join("; "))),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the test panicked").to_owned()
}

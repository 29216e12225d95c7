//! Expectation files with named tests: found in directories, run in threads, and their results as
//! text, JSON and XML of JUnit.

mod files;
mod report;
mod run;

pub use files::{NamedTest, NetworkFault, TestFile, TestFilesError, WantedTests};
pub use report::{TestResults, list_json, list_text};
pub use run::{TestFault, TestHost, TestOutcome, TestPlan, load_tested};

//! Comparison of the registry and the verifier's answers with the kernel's, written into the
//! tables of docs/verifier.md: `cargo differential compare registry`, `compare verifier` and
//! `compare log`; the answers for kernels that are described, into docs/kernels.md (`compare kernels`); what
//! changed between two releases (`drift`); and how far runs of accepted programs stay inside what was proven:
//! `cargo differential soak soundness`.

mod drift;
mod kernels;
mod live_code;
mod logs;
mod messages;
mod registry;
mod reports;
mod score;
pub(crate) mod selftests;
mod sides;
mod soundness;
mod truth;
mod unprivileged;

/// The page that the tables are in.
pub(super) const PAGE: &str = "docs/verifier.md";

pub(crate) use drift::write as write_drift;
pub(crate) use kernels::{compare as compare_kernels, described_kernel, kept as kept_kernels};
pub(crate) use live_code::compare as compare_live_code;
pub(crate) use logs::{LogSelection, compare as compare_logs};
pub(crate) use messages::compare as compare_messages;
pub(crate) use registry::compare_registry;
pub(crate) use reports::compare as compare_reports;
pub(crate) use score::{score, score_trampolines};
pub(crate) use sides::search as search_sides;
pub(crate) use soundness::check as check_soundness;
pub(crate) use unprivileged::compare as compare_unprivileged;

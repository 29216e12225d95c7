//! Presets: kernels of several series, each with what it offers as the kernel itself was asked, and
//! the rules of its release ([`spec::behaviour`]).
//!
//! Linux 6.18 is in `kernel-data`; what the other kernels have is kept as the difference to it: types
//! ([`types`]), configuration, symbols and registry ([`data`]), a file for each kernel, with the cargo
//! feature of its series. `cargo xtask kernel-presets` writes the files from the directories that
//! `tools/kernels/vm describe` makes.
//!
//! A preset without a kernel of its own is *derived*: it has the types and the registry of the next
//! release that was asked, without what is newer than its own, and the rules by the table of behaviours.
//! Its answers were not compared with a kernel.
//!
//! ```
//! use beebox_kernel_presets::Preset;
//!
//! let preset = Preset::named("6.18").expect("built in");
//! assert_eq!(preset.kernel().version(), Some(preset.version()));
//! ```
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`preset`] | the presets, their names, and which of them words mean |
//! | [`data`] | the data of a kernel in one file |
//! | [`derived`] | what an older release has of a registry |
//! | [`types`] | types as the difference to others |
#![forbid(unsafe_code)]

pub mod data;
pub mod derived;
pub mod preset;
pub mod types;

pub use preset::{Preset, UnknownPreset, select};

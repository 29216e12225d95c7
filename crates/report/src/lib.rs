//! Renders objects, seccomp tables, findings and explanations as text and JSON, and
//! bindings of objects as C and Rust.
//!
//! # Modules
//!
//! `object/` is an object as text and as JSON, `explain/` explanations of refusals (`words/` by
//! cause), `bindings/` C headers and Rust bindings of objects, `value.rs` values of a type as JSON
//! and back, `veristat/` results of verification (columns, filters, order, comparison), `btf/`
//! layouts, summaries and differences of types, `why/` the paths of runs, `coverage/` and `profile/` what
//! they executed, `html/` pages of runs and verifications (`page.js` and `page.css` are shared),
//! `table.rs` aligned columns,
//! `json.rs` JSON in lines, `xml.rs` text in XML, `sarif.rs` refusals for code scanning.
#![forbid(unsafe_code)]

pub mod bindings;
pub mod btf;
pub mod coverage;
pub mod explain;
pub mod html;
pub mod json;
pub mod kfuncs;
pub mod object;
pub mod profile;
pub mod run;
pub mod sarif;
pub mod seccomp;
mod table;
pub mod terminal;
pub mod value;
pub mod veristat;
pub mod why;
pub mod xml;

pub use table::aligned;

/// A number of things, which are one or many.
pub fn count(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        many if thing.ends_with('s') => format!("{many} {thing}es"),
        many => format!("{many} {thing}s"),
    }
}

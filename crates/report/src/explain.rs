//! Explanations of refused programs, as text and as JSON.
//!
//! The verifier says what is wrong as data ([`verifier::reason`]); here are the words:
//! `words` has headline, need and edit for each cause, `value` what is known of a value,
//! `note` what happened to it, `text` and `json` put them together.

mod json;
mod note;
mod text;
mod value;
mod words;

pub use json::json;
pub use text::{plain_text, text};

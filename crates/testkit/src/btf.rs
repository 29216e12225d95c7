//! Blobs of type information: generated from a seed, and damaged.

pub mod damage;
pub mod generate;

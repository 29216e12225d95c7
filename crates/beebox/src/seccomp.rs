//! Seccomp filters: run them on single calls, or compute what they do with all calls.
//!
//! A [`SeccompFilter`] has the shape of a packet [`Filter`](crate::Filter): immutable,
//! shared between threads, run through a [`SeccompRunner`] of each thread. Filters that
//! a process installs one after the other are a [`FilterStack`]. An [`Analysis`]
//! computes the exact table of a stack's actions for every call and argument (decision
//! diagrams over the bits of `struct seccomp_data`).

pub use crate::internal::seccomp::{
    Action, Analysis, Arch, Case, Condition, FilterStack, Group, Others, SeccompBuilder,
    SeccompData, SeccompFilter, SeccompRunner, Table,
};

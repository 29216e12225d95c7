//! Seccomp filters: decisions, symbolic tables, differences, profiles.
#![forbid(unsafe_code)]

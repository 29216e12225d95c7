//! Program generators, case files and the running kernel as oracle.
#![forbid(unsafe_code)]

//! Fuzz targets, bounded and unbounded.
#![forbid(unsafe_code)]

//! The checked interpreter: what it computes, and how each trap reads.

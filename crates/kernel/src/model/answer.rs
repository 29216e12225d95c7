//! Results of functions that a test gives, and the calls that programs made.

use spec::kfuncs::KernelFunction;

/// A result that calls of a function return.
#[derive(Clone, Debug)]
pub struct GivenResult {
    /// Name of the helper or kfunc.
    pub function: String,
    /// Which of its calls, from 1; all without it.
    pub at: Option<u64>,
    /// What it returns.
    pub result: u64,
    /// Bytes that it writes through arguments, by their number.
    pub fills: Vec<(usize, Vec<u8>)>,
}

/// A call that a program made of a function that is not modelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// Name of the helper or kfunc.
    pub function: String,
    /// The registers of its arguments.
    pub arguments: [u64; 5],
    /// Text that arguments pointed to.
    pub texts: [Option<String>; 5],
}

/// The name of a helper or kfunc in resolved code.
pub(super) fn name_of(number: i32) -> Option<&'static str> {
    match KernelFunction::from_number(number) {
        Some(function) => function.name(),
        None => spec::helpers::helper(number).map(|helper| helper.name),
    }
}

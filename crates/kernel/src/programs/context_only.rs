//! Programs that get a context of the caller and no packet: syscall and raw tracepoints.

use std::ops::RangeInclusive;

use spec::Errno;

use super::test_run::{Rules, TestInput};

/// Most bytes of the arguments of a raw tracepoint, 12 numbers.
pub(super) const MOST_ARGUMENTS: usize = 12 * 8;

/// The program's context is what is given. EINVAL for data, and for a context of another size
/// than these.
pub(super) fn test_input(
    data: &[u8],
    context: &[u8],
    sizes: RangeInclusive<usize>,
    is_returned: bool,
) -> Result<TestInput, Errno> {
    if !data.is_empty() || !sizes.contains(&context.len()) {
        return Err(Errno::EINVAL);
    }
    Ok(TestInput {
        rules: Rules::ContextOnly {
            most: *sizes.end(),
            is_returned,
        },
        packet: None,
        context: context.to_vec(),
        flow_keys: None,
        packet_socket: None,
        hook: None,
        initial_keys: None,
        given: Vec::new(),
    })
}

//! Programs that get a context of the caller and no packet: syscall and raw tracepoints.

use spec::programs::TestRunKind;
use spec::{Errno, Result};

use super::test_run::TestInput;

/// Most bytes of the context of a program, and of the arguments of a raw tracepoint, 12 numbers.
const MOST_CONTEXT: usize = u16::MAX as usize;
const MOST_ARGUMENTS: usize = 12 * 8;

/// The program's context is what is given. EINVAL for data, and for a context of more bytes than the
/// type takes or fewer than the program accesses.
pub(super) fn test_input(
    data: &[u8],
    context: &[u8],
    rules: TestRunKind,
    accessed: u32,
) -> Result<TestInput> {
    let most = match rules {
        TestRunKind::RawTracepoint => MOST_ARGUMENTS,
        TestRunKind::Xdp
        | TestRunKind::Skb(_)
        | TestRunKind::FlowDissector
        | TestRunKind::Netfilter
        | TestRunKind::SkLookup
        | TestRunKind::Syscall
        | TestRunKind::Model => MOST_CONTEXT,
    };
    if !data.is_empty() || !(accessed as usize..=most).contains(&context.len()) {
        return Err(Errno::EINVAL);
    }
    Ok(TestInput {
        rules,
        packet: None,
        context: context.to_vec(),
        flow_keys: None,
        packet_socket: None,
        hook: None,
        initial_keys: None,
        given: Vec::new(),
    })
}

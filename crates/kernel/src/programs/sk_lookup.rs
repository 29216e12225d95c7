//! sk_lookup: a context that describes a connection, no packet.

use spec::programs::TestRunKind;
use spec::{Errno, Result};
use vm::network::{AF_INET, AF_INET6, Sockets};

use super::test_run::{TestInput, copy, get, put, sized};

use field::{FAMILY, PROTOCOL, SELECTED, SOCKET};

/// Offsets of fields of `struct bpf_sk_lookup` that helpers access.
pub(crate) mod field {
    /// The pointer to the socket that was selected.
    pub(crate) const SOCKET: usize = 0;
    pub(crate) const FAMILY: usize = 8;
    pub(crate) const PROTOCOL: usize = 12;
    /// Behind the last field: the number of the socket that was selected, counted from 1, and
    /// [`NO_REUSEPORT`]. No program reads it.
    pub(crate) const SELECTED: usize = 68;
    /// No socket of the group takes the place of the one that was selected.
    pub(crate) const NO_REUSEPORT: u32 = 1 << 31;
}

/// Offsets of the other fields; a context that is given has a cookie in place of the socket.
const COOKIE: usize = SOCKET;
const REMOTE_IP4: usize = 16;
const REMOTE_IP6: usize = 20;
const LOCAL_IP4: usize = 40;
const LOCAL_IP6: usize = 44;
const LOCAL_PORT: usize = 60;
const INGRESS_IFINDEX: usize = 64;
/// Bytes of the structure.
const SIZE: usize = 72;

/// The context describes a connection: addresses of its family, ports, protocol.
///
/// # Errors
/// EINVAL for data, no context, or fields that are not given; ERANGE for a port above
/// 65,535; EAFNOSUPPORT for other families than IPv4 and IPv6.
pub(super) fn test_input(data: &[u8], given: &[u8]) -> Result<TestInput> {
    Errno::EINVAL.when(!data.is_empty() || given.is_empty())?;
    let given = sized(given, SIZE)?;
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    if !is_zero(&given[COOKIE..FAMILY]) || !is_zero(&given[INGRESS_IFINDEX..]) {
        return Err(Errno::EINVAL);
    }
    Errno::ERANGE.when(get(&given, LOCAL_PORT) > u32::from(u16::MAX))?;
    let mut context = given.clone();
    let family = get(&given, FAMILY) & u32::from(u16::MAX);
    put(&mut context, FAMILY, family);
    put(
        &mut context,
        PROTOCOL,
        u32::from(get(&given, PROTOCOL) as u16),
    );
    match family {
        AF_INET => {
            copy(&mut context, REMOTE_IP6, &[0; 16]);
            copy(&mut context, LOCAL_IP6, &[0; 16]);
        }
        AF_INET6 => {
            put(&mut context, REMOTE_IP4, 0);
            put(&mut context, LOCAL_IP4, 0);
        }
        _ => return Err(Errno::EAFNOSUPPORT),
    }
    Ok(TestInput {
        rules: TestRunKind::SkLookup,
        packet: None,
        context,
        flow_keys: None,
        packet_socket: None,
        hook: None,
        initial_keys: None,
        given,
    })
}

/// Forgets the socket that a run before selected.
pub(super) fn begin_run(context: &mut [u8]) {
    copy(context, SOCKET, &[0; 8]);
    put(context, SELECTED, 0);
}

/// Puts the cookie of the socket that was selected into the context that a test run returns, if
/// the program lets the connection pass.
///
/// # Errors
/// EOPNOTSUPP for a socket of a group, of which another one may take the connection.
pub(super) fn end_run(
    context: &[u8],
    returned: &mut [u8],
    result: u32,
    sockets: &Sockets,
) -> Result {
    let selected = get(context, SELECTED);
    let number = (selected & !field::NO_REUSEPORT).checked_sub(1);
    let number = number.filter(|_| result == SK_PASS);
    let socket = number.and_then(|number| sockets.list().get(number as usize));
    if socket.is_some_and(|socket| socket.group.is_some()) && selected & field::NO_REUSEPORT == 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let cookie = socket.map_or(0, |socket| socket.cookie);
    copy(returned, COOKIE, &cookie.to_le_bytes());
    Ok(())
}

/// The value that lets the connection pass.
const SK_PASS: u32 = 1;

/// Programs that return another value than `SK_DROP` let the connection pass.
pub(super) fn retval(result: u32) -> u32 {
    u32::from(result != 0)
}

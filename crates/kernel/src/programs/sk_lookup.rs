//! sk_lookup: a context that describes a connection, no packet.

use spec::Errno;

use super::test_run::{Rules, TestInput, copy, get, put, sized};

/// Offsets in `struct bpf_sk_lookup`.
const COOKIE: usize = 0;
const FAMILY: usize = 8;
const PROTOCOL: usize = 12;
const REMOTE_IP4: usize = 16;
const REMOTE_IP6: usize = 20;
const LOCAL_IP4: usize = 40;
const LOCAL_IP6: usize = 44;
const LOCAL_PORT: usize = 60;
const INGRESS_IFINDEX: usize = 64;
/// Bytes of the structure.
const SIZE: usize = 72;

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// The context describes a connection: addresses of its family, ports, protocol.
///
/// # Errors
/// EINVAL for data, no context, or fields that are not given; ERANGE for a port above
/// 65,535; EAFNOSUPPORT for other families than IPv4 and IPv6.
pub(super) fn test_input(data: &[u8], given: &[u8]) -> Result<TestInput, Errno> {
    if !data.is_empty() || given.is_empty() {
        return Err(Errno::EINVAL);
    }
    let given = sized(given, SIZE)?;
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    if !is_zero(&given[COOKIE..FAMILY]) || !is_zero(&given[INGRESS_IFINDEX..]) {
        return Err(Errno::EINVAL);
    }
    if get(&given, LOCAL_PORT) > u32::from(u16::MAX) {
        return Err(Errno::ERANGE);
    }
    let mut context = given.clone();
    let family = get(&given, FAMILY) as u16;
    put(&mut context, FAMILY, family.into());
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
        rules: Rules::SkLookup,
        packet: None,
        context,
        flow_keys: None,
        initial_keys: None,
        given,
    })
}

/// Programs that return another value than `SK_DROP` let the connection pass.
pub(super) fn retval(result: u32) -> u32 {
    u32::from(result != 0)
}

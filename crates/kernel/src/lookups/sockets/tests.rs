//! Lookups by the rules of Linux; the comparison with a running kernel is in `testkit`.

use super::*;

fn at(text: &str) -> SocketAddr {
    text.parse().expect(text)
}

fn find(sockets: &[NetSocket], protocol: SocketProtocol, ends: [&str; 2]) -> Option<usize> {
    let [source, destination] = ends.map(at);
    let query = SocketQuery {
        protocol,
        namespace: None,
        source,
        destination,
        device: 2,
        vrf_device: 0,
        cpu: 0,
    };
    query.find(sockets)
}

#[test]
fn connections_come_before_listeners() {
    let sockets = [
        NetSocket::connection(at("10.0.0.1:80"), at("10.0.0.2:5000")),
        NetSocket::listener(at("0.0.0.0:80")),
        NetSocket::listener(at("[::]:80")),
        NetSocket {
            device: 2,
            ..NetSocket::listener(at("[::]:80"))
        },
    ];
    let tcp = |from, to| find(&sockets, SocketProtocol::Tcp, [from, to]);
    assert_eq!(tcp("10.0.0.2:5000", "10.0.0.1:80"), Some(0));
    assert_eq!(tcp("10.0.0.2:5001", "10.0.0.1:80"), Some(3));
    assert_eq!(tcp("[2001:db8::2]:5001", "[2001:db8::1]:80"), Some(3));
    assert_eq!(tcp("10.0.0.2:5001", "10.0.0.1:81"), None);
    let tcp = |from, to| find(&sockets[..3], SocketProtocol::Tcp, [from, to]);
    assert_eq!(tcp("10.0.0.2:5001", "10.0.0.1:80"), Some(1));
    assert_eq!(tcp("[2001:db8::2]:5001", "[2001:db8::1]:80"), Some(2));
}

#[test]
fn sockets_of_a_group_share_the_senders() {
    let member = |address| NetSocket {
        group: Some(1),
        ..NetSocket::udp(at(address))
    };
    let sockets = [
        member("10.0.0.1:53"),
        member("10.0.0.1:53"),
        member("[::]:53"),
    ];
    let mut counts = [0; 3];
    for port in 1000..1100 {
        let from = format!("10.0.0.2:{port}");
        let found = find(&sockets, SocketProtocol::Udp, [&from, "10.0.0.1:53"]);
        counts[found.expect("a member")] += 1;
    }
    assert!(
        counts[0] > 20 && counts[1] > 20 && counts[2] == 0,
        "{counts:?}"
    );
}

#[test]
fn namespaces_have_sockets_of_their_own() {
    let sockets = [
        NetSocket::listener(at("10.0.0.1:80")),
        NetSocket {
            namespace: Some(4),
            ..NetSocket::listener(at("10.0.0.1:80"))
        },
    ];
    let query = SocketQuery {
        protocol: SocketProtocol::Tcp,
        namespace: Some(4),
        source: at("10.0.0.2:5000"),
        destination: at("10.0.0.1:80"),
        device: 1,
        vrf_device: 0,
        cpu: 0,
    };
    assert_eq!(query.find(&sockets), Some(1));
    let own = SocketQuery {
        namespace: None,
        ..query
    };
    assert_eq!(own.find(&sockets), Some(0));
    let other = SocketQuery {
        namespace: Some(5),
        ..query
    };
    assert_eq!(other.find(&sockets), None);
}

#[test]
fn a_socket_of_ipv6_takes_ipv4_only_at_addresses_that_have_it() {
    let sockets = [
        NetSocket::udp(at("[2001:db8::1]:53")),
        NetSocket::udp(at("[::ffff:10.0.0.1]:53")),
        NetSocket {
            is_ipv6_only: true,
            ..NetSocket::udp(at("[::]:53"))
        },
    ];
    let udp = |from, to| find(&sockets, SocketProtocol::Udp, [from, to]);
    assert_eq!(udp("10.0.0.2:5000", "10.0.0.1:53"), Some(1));
    assert_eq!(udp("10.0.0.2:5000", "10.0.0.3:53"), None);
    assert_eq!(udp("10.0.0.2:5000", "127.0.0.6:53"), None);
    assert_eq!(udp("[2001:db8::2]:5000", "[2001:db8::1]:53"), Some(0));
    assert_eq!(udp("[2001:db8::2]:5000", "[2001:db8::3]:53"), Some(2));
}

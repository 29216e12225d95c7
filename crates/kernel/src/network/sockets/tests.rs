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

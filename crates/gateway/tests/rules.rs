//! Rule files: what is wrong with them, and where; what exceeds the capacity.

use beebox_gateway::{Action, Compiled, Rule, RuleSet, is_state, read_state, write_state};

#[oracle::test]
fn errors_name_line_column_and_what_was_expected() {
    for (text, expected) in [
        (
            "allow from any",
            "line 1, column 1: `allow`; expected default, other, malformed, pass, drop, redirect, count or sample",
        ),
        (
            "# x\n\npass form any",
            "line 3, column 6: `form`; expected proto, header, from, to, port, type, code or the end of the line",
        ),
        (
            "drop from 10.0.0.1/8",
            "line 1, column 11: `10.0.0.1/8`; expected no bits behind the prefix length: 10.0.0.0/8",
        ),
        (
            "drop from 10.0.0.0/33",
            "line 1, column 11: `10.0.0.0/33`; expected a prefix length from 0 to 32",
        ),
        (
            "drop from 10.0.0.0/8,bad to any",
            "line 1, column 22: `bad`; expected any, or prefixes of IPv4 or IPv6 with commas between them",
        ),
        (
            "drop proto tcp from any port 1-70000",
            "line 1, column 30: `1-70000`; expected any, or numbers to 65535, ranges A-B or unknown with commas between them",
        ),
        (
            "drop proto tcp port 5",
            "line 1, column 16: `port`; expected from or to before port",
        ),
        (
            "drop from any port 5",
            "line 1, column 15: `port`; expected proto tcp, udp, dccp, sctp or udplite before port",
        ),
        (
            "drop proto tcp type 5",
            "line 1, column 16: `type`; expected proto icmp or icmpv6 before type and code",
        ),
        (
            "drop proto nosuch",
            "line 1, column 12: `nosuch`; expected any, or names or numbers of protocols with commas between them",
        ),
        (
            "drop proto tcp proto udp",
            "line 1, column 16: `proto`; expected proto once",
        ),
        (
            "redirect",
            "line 1, column 9: the line ends; expected the index of an interface, or its name: at most 15 bytes of letters, digits and ._-@+%=,",
        ),
        (
            "sample 1/0",
            "line 1, column 8: `1/0`; expected 1/N with N from 1 to 536870911",
        ),
        (
            "redirect eth0;rm",
            "line 1, column 10: `eth0;rm`; expected the index of an interface, or its name: at most 15 \
             bytes of letters, digits and ._-@+%=,",
        ),
        (
            "redirect an-interface-too-long",
            "line 1, column 10: `an-interface-too-long`; expected the index of an interface, or its \
             name: at most 15 bytes of letters, digits and ._-@+%=,",
        ),
        (
            "pass from 10.0.0.0/08",
            "line 1, column 11: `10.0.0.0/08`; expected a prefix length from 0 to 32",
        ),
        (
            "default drop now",
            "line 1, column 14: `now`; expected the end of the line",
        ),
        (
            "drop from",
            "line 1, column 10: the line ends; expected any, or prefixes of IPv4 or IPv6 with commas between them",
        ),
    ] {
        let error = RuleSet::parse(text).unwrap_err().to_string();
        assert_eq!(error, expected, "{text}");
    }
}

#[oracle::test]
fn what_exceeds_the_capacity_is_refused_with_the_limit() {
    let mut set = RuleSet::default();
    set.rules.resize(65_537, Rule::new(Action::Drop));
    let error = Compiled::new(&set).unwrap_err().to_string();
    assert_eq!(error, "65537 rules; a set has at most 65536");
    set.rules.pop();
    let compiled = Compiled::new(&set).unwrap();
    assert!(compiled.sizes().table <= 64 << 20);
    let set = RuleSet::parse("redirect nosuch0 from any").unwrap();
    let error = Compiled::with_interfaces(&set, &|_| None).unwrap_err();
    assert!(
        error.to_string().starts_with("interface nosuch0: "),
        "{error}"
    );
}

#[oracle::test]
fn compiled_sets_are_read_as_they_were_written() {
    let set =
        RuleSet::parse("default drop\npass proto tcp to 192.0.2.0/24 port 80 # web\n").unwrap();
    let compiled = Compiled::new(&set).unwrap();
    let bytes = write_state(&set, compiled.table());
    assert!(is_state(&bytes));
    let (read, table) = read_state(&bytes).unwrap();
    assert_eq!(read, set);
    assert_eq!(table.to_bytes(), compiled.table().to_bytes());
    for cut in [0, 7, 8, 16, 24, 60, bytes.len() - 1] {
        assert!(read_state(&bytes[..cut]).is_err(), "{cut}");
    }
    for at in [3, 9, 30, 70, bytes.len() - 2] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(read_state(&damaged).is_err(), "{at}");
    }
}

#[oracle::test]
fn general_lines_are_given_once() {
    assert!(RuleSet::parse("default pass\nother drop\nmalformed drop\n").is_ok());
    for line in ["default", "other", "malformed"] {
        let error = RuleSet::parse(&format!("{line} pass\n{line} drop\n")).unwrap_err();
        assert!(error.to_string().contains("an earlier line"), "{error}");
    }
}

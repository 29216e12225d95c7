//! Rules of iptables and nftables: what they become, and what is left out.

use beebox_gateway::import::{
    Assumptions, Fate, ImportError, Imported, Variant, iptables_save, nft_json,
};
use beebox_gateway::{Compiled, RuleSet};

const IPTABLES: &str = include_str!("import/filter.iptables-save");
const NFT: &str = include_str!("import/ruleset.nft.json");

fn rules(imported: &Imported) -> Vec<String> {
    assert!(Compiled::new(&imported.set).is_ok());
    let text = imported.set.to_string();
    assert_eq!(RuleSet::parse(&text).as_ref(), Ok(&imported.set), "{text}");
    imported.set.rules.iter().map(|it| it.to_string()).collect()
}

fn remarks(imported: &Imported) -> Vec<(&str, &str, Fate)> {
    let remarks = imported.remarks.iter();
    remarks
        .map(|it| (&*it.place, &*it.reason, it.fate))
        .collect()
}

#[oracle::test]
fn iptables_chains_become_rules() {
    let imported = iptables_save(IPTABLES, None, Variant::Nft, &Assumptions::default()).unwrap();
    assert_eq!(imported.chain, "INPUT");
    assert_eq!(
        rules(&imported),
        [
            "drop proto tcp header cut from 10.0.0.0/8 port unknown to 0.0.0.0/0 # header cut off",
            "pass proto tcp from 10.0.0.0/8 to 0.0.0.0/0 port 80,443,8000-8010",
            "pass proto udp from not 192.0.2.0/24 to 0.0.0.0/0 port 53 # dns, \"ours\"",
            "drop proto icmp header cut to 0.0.0.0/0 # header cut off",
            "pass proto icmp to 0.0.0.0/0 type 8 code 0",
            "drop proto tcp from 10.0.0.3,10.0.0.4/30,10.0.0.8 to 0.0.0.0/0",
            "drop to 0.0.0.0/0 # policy of INPUT",
        ]
    );
    assert_eq!(
        remarks(&imported),
        [
            (
                "line 10",
                "the interface by which packets arrive is unknown; state it with --in-interface",
                Fate::LeftOut
            ),
            (
                "line 11",
                "the connection's state is unknown; state it with --ct-state",
                Fate::LeftOut
            ),
            (
                "line 15",
                "REJECT becomes drop: no answer is sent",
                Fate::Kept
            ),
        ]
    );
    let forward = iptables_save(
        IPTABLES,
        Some("FORWARD"),
        Variant::Nft,
        &Assumptions::default(),
    )
    .unwrap();
    assert_eq!(rules(&forward), ["pass to 0.0.0.0/0 # policy of FORWARD"]);
    let missing = iptables_save(IPTABLES, Some("WEB"), Variant::Nft, &Assumptions::default());
    let known = vec!["FORWARD".to_owned(), "INPUT".to_owned()];
    assert_eq!(missing, Err(ImportError::NoChain("WEB".into(), known)));
    let error = iptables_save(
        "*filter\n:INPUT DROP [0:0]\n-X\n",
        None,
        Variant::Nft,
        &Assumptions::default(),
    );
    assert_eq!(error.unwrap_err().to_string(), "line 3: expected -A CHAIN");
}

#[oracle::test]
fn circles_of_chains_are_refused() {
    let import = |rules: &str| {
        let text = format!("*filter\n:INPUT DROP [0:0]\n:A - [0:0]\n:B - [0:0]\n{rules}COMMIT\n");
        let refused = iptables_save(&text, None, Variant::Nft, &Assumptions::default());
        refused.unwrap_err().to_string()
    };
    assert_eq!(
        import("-A INPUT -j A\n-A A -j A\n"),
        "chain A jumps to itself"
    );
    assert_eq!(
        import("-A INPUT -j A\n-A A -j B\n-A B -p tcp -j A\n"),
        "the jumps of chains are circular: A → B → A"
    );
}

#[oracle::test]
fn nftables_has_at_most_16_chains_in_each_other() {
    let import = |chains: usize, variant| {
        let names = (1..chains).map(|number| format!(":C{number} - [0:0]\n"));
        let jumps = (2..chains).map(|number| format!("-A C{} -j C{number}\n", number - 1));
        let last = chains - 1;
        let text = format!(
            "*filter\n:INPUT DROP [0:0]\n{}-A INPUT -j C1\n{}-A C{last} -j ACCEPT\nCOMMIT\n",
            names.collect::<String>(),
            jumps.collect::<String>()
        );
        iptables_save(&text, None, variant, &Assumptions::default())
            .map(|found| found.set.rules.len())
    };
    // The rule, and the policy.
    assert_eq!(import(16, Variant::Nft).unwrap(), 2);
    let refused = import(17, Variant::Nft).unwrap_err().to_string();
    assert_eq!(refused, "chain C16: jumps lead through more than 16 chains");
    assert_eq!(import(256, Variant::Legacy).unwrap(), 2);
    let refused = import(257, Variant::Legacy);
    assert!(
        matches!(refused, Err(ImportError::Depth(..))),
        "{refused:?}"
    );
}

#[oracle::test]
fn nftables_chains_become_rules() {
    let imported = nft_json(NFT, None, &Assumptions::default()).unwrap();
    assert_eq!(imported.chain, "inet filter input");
    assert_eq!(
        rules(&imported),
        [
            "pass proto tcp from 192.0.2.1,198.51.100.0/24,10.0.0.4/30 to any port 80,443,8000-8010",
            "drop from 192.0.2.1,198.51.100.0/24,10.0.0.4/30 to 2001:db8::/32",
            "drop from 192.0.2.1,198.51.100.0/24,10.0.0.4/30",
            "pass proto tcp,udp to any port not 0-1023",
            "pass proto icmpv6 from ::/0 type 135,136",
            "drop # policy of input",
        ]
    );
    assert_eq!(
        remarks(&imported),
        [
            (
                "handle 5",
                "the connection's state is unknown; state it with --ct-state",
                Fate::LeftOut
            ),
            (
                "handle 11",
                "reject becomes drop: no answer is sent",
                Fate::Kept
            ),
            ("handle 8", "log: nothing is logged", Fate::Kept),
        ]
    );
    let error = nft_json("{\"nftables\": [", None, &Assumptions::default())
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "line 1, column 14: expected JSON, as `nft -j list ruleset` prints it"
    );
}

#[oracle::test]
fn comparisons_of_nftables_become_ranges() {
    let rule = |order: &str, number: u32| {
        format!(
            r#"{{"rule": {{"family": "inet", "table": "t", "chain": "input", "handle": 2, "expr": [
                {{"match": {{"op": "{order}", "left": {{"payload":
                    {{"protocol": "tcp", "field": "dport"}}}}, "right": {number}}}}},
                {{"accept": null}}]}}}}"#
        )
    };
    let asked = [
        ("<", 1024),
        ("<=", 80),
        (">", 60_000),
        (">=", 65_535),
        ("<", 0),
        (">", 65_535),
    ];
    let asked: Vec<String> = asked.map(|(order, number)| rule(order, number)).into();
    let text = format!(
        r#"{{"nftables": [
            {{"table": {{"family": "inet", "name": "t", "handle": 1}}}},
            {{"chain": {{"family": "inet", "table": "t", "name": "input", "handle": 1,
                "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}}}},
            {}]}}"#,
        asked.join(",")
    );
    let imported = nft_json(&text, None, &Assumptions::default()).unwrap();
    assert_eq!(
        rules(&imported),
        [
            "pass proto tcp to any port 0-1023",
            "pass proto tcp to any port 0-80",
            "pass proto tcp to any port 60001-65535",
            "pass proto tcp to any port 65535",
            "drop # policy of input",
        ]
    );
    assert_eq!(imported.remarks.len(), 2);
}

/// `nft -j` prints codes by name, whatever the type.
#[oracle::test]
fn icmp_codes_are_read_by_name() {
    let rule = |protocol: &str, code: &str| {
        format!(
            r#"{{"rule": {{"family": "inet", "table": "t", "chain": "input", "handle": 3, "expr": [
            {{"match": {{"op": "==", "left": {{"payload": {{"protocol": "{protocol}", "field": "type"}}}}, "right": "echo-request"}}}},
            {{"match": {{"op": "==", "left": {{"payload": {{"protocol": "{protocol}", "field": "code"}}}}, "right": {code}}}}},
            {{"accept": null}}]}}}}"#
        )
    };
    let text = format!(
        r#"{{"nftables": [
            {{"chain": {{"family": "inet", "table": "t", "name": "input", "handle": 1,
                "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}}}},
            {}, {}, {}]}}"#,
        rule("icmp", r#""net-unreachable""#),
        rule("icmp", r#"{"set": ["admin-prohibited", "frag-needed", 7]}"#),
        rule("icmpv6", r#""reject-route""#),
    );
    let imported = nft_json(&text, None, &Assumptions::default()).unwrap();
    assert!(imported.remarks.is_empty(), "{:?}", imported.remarks);
    assert_eq!(
        rules(&imported),
        [
            "pass proto icmp from 0.0.0.0/0 type 8 code 0",
            "pass proto icmp from 0.0.0.0/0 type 8 code 13,4,7",
            "pass proto icmpv6 from ::/0 type 128 code 6",
            "drop # policy of input",
        ]
    );
    assert!(!imported.reads_ports_of_fragments);
}

/// nftables reads ports of later fragments, for rules of iptables-nft too.
#[oracle::test]
fn rules_with_ports_that_nftables_reads_are_noted() {
    let reads = |rule: &str, variant| {
        let text = format!("*filter\n:INPUT DROP [0:0]\n-A INPUT {rule} -j ACCEPT\nCOMMIT\n");
        let imported = iptables_save(&text, None, variant, &Assumptions::default());
        imported.unwrap().reads_ports_of_fragments
    };
    let ports = "-p tcp -m tcp --dport 80";
    assert!(reads(ports, Variant::Nft));
    assert!(!reads(ports, Variant::Legacy));
    assert!(!reads("-p tcp", Variant::Nft));
    assert!(!reads("-p icmp -m icmp --icmp-type 8", Variant::Nft));
}

/// A rule that names no protocol with ports, which iptables refuses, would become one that the rule
/// file cannot express.
#[oracle::test]
fn ports_without_a_protocol_are_left_out() {
    let text = "*filter\n:INPUT DROP [0:0]\n-A INPUT ! -p tcp -j ACCEPT\n\
        -A INPUT -m multiport --dports 80 -j ACCEPT\n-A INPUT -m multiport -j ACCEPT\nCOMMIT\n";
    let imported = iptables_save(text, None, Variant::Legacy, &Assumptions::default()).unwrap();
    assert_eq!(
        rules(&imported),
        [
            "pass proto not tcp to 0.0.0.0/0",
            "drop to 0.0.0.0/0 # policy of INPUT"
        ]
    );
    let reason = "ports without a protocol that has them";
    assert_eq!(
        remarks(&imported),
        [
            ("line 4", reason, Fate::LeftOut),
            ("line 5", reason, Fate::LeftOut)
        ]
    );
    let written = imported.set.to_string();
    assert_eq!(RuleSet::parse(&written).as_ref(), Ok(&imported.set));
}

#[oracle::test]
fn tables_that_were_cut_off_are_refused() {
    let text = "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n";
    let read = |text: &str| iptables_save(text, None, Variant::Nft, &Assumptions::default());
    let error = read(text).unwrap_err().to_string();
    assert_eq!(error, "the file ends in table filter: expected COMMIT");
    let error = read(&format!("*raw\n{text}COMMIT\n")).unwrap_err();
    let expected = "line 2: expected COMMIT of table raw before";
    assert_eq!(error.to_string(), expected);
    assert!(read(&format!("{text}COMMIT\n")).is_ok());
}

#[oracle::test]
fn what_drops_packets_elsewhere_is_remarked() {
    let text = "*raw\n:OUTPUT DROP [0:0]\n-A OUTPUT -d 10.0.0.0/8 -j DROP\nCOMMIT\n";
    let rules = "*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n";
    let of = |chain| {
        let text = format!("{text}{rules}");
        let found = iptables_save(&text, Some(chain), Variant::Nft, &Assumptions::default());
        found.unwrap().remarks.len()
    };
    assert_eq!((of("INPUT"), of("OUTPUT")), (0, 2));
    let text = "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -s 10.0.0.0/8 -j DROP\n\
                -A PREROUTING -j ACCEPT\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\n\
                -A INPUT -s 192.0.2.1/32 -j ACCEPT\nCOMMIT\n";
    let found = iptables_save(text, None, Variant::Legacy, &Assumptions::default()).unwrap();
    let reason = "of table raw, which is not imported";
    assert_eq!(remarks(&found), [("line 3", reason, Fate::LeftOut)]);

    let chain = |name: &str, hook: &str, family: &str, policy: &str| {
        format!(
            r#"{{"chain": {{"family": "{family}", "table": "x", "name": "{name}",
                "type": "filter", "hook": "{hook}", "prio": 0, "policy": "{policy}"}}}}"#
        )
    };
    let rule = r#"{"rule": {"family": "ip", "table": "x", "chain": "a", "handle": 4,
        "expr": [{"accept": null}]}}"#;
    let chains = [
        chain("a", "input", "ip", "accept"),
        chain("b", "input", "inet", "drop"),
        chain("c", "output", "ip", "drop"),
        chain("d", "input", "ip6", "drop"),
        chain("e", "prerouting", "ip", "accept"),
    ];
    let text = format!(r#"{{"nftables": [{}, {rule}]}}"#, chains.join(", "));
    let found = nft_json(&text, None, &Assumptions::default()).unwrap();
    let reason = "another chain that packets pass, which is not imported";
    assert_eq!(remarks(&found), [("chain inet x b", reason, Fate::LeftOut)]);
    // Who names a chain means that one.
    let found = nft_json(&text, Some("a"), &Assumptions::default()).unwrap();
    assert_eq!(remarks(&found), []);
}

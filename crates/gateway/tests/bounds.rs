//! Bombs of every format end within limits; an executable of its own, whose memory is small.

use command_tests::Executable;
use command_tests::bounds::{Bomb, bomb, check_bombs, check_endless, repeated};

const EXECUTABLE: Executable = Executable {
    name: "beebox-gateway",
    path: env!("CARGO_BIN_EXE_beebox-gateway"),
};

fn bombs() -> Vec<Bomb> {
    vec![
        bomb(
            "chains.rules",
            &["import --from iptables-save FILE"],
            format!(
                "*filter\n:INPUT ACCEPT [0:0]\n{}-A INPUT -j C0\n{}-A C63 -j DROP\nCOMMIT\n",
                repeated(64, |number| format!(":C{number} - [0:0]")),
                repeated(63, |number| {
                    let next = number + 1;
                    format!(
                        "-A C{number} -s 10.0.0.1 -j C{next}\n-A C{number} -d 10.0.0.2 -j C{next}"
                    )
                })
            ),
        ),
        bomb(
            "many.rules",
            &["import --from iptables-save FILE"],
            format!(
                "*filter\n:INPUT ACCEPT [0:0]\n{}COMMIT\n",
                repeated(30_000, |number| {
                    format!("-A INPUT -s 10.{}.{}.1 -j DROP", number >> 8, number & 255)
                })
            ),
        ),
        bomb(
            "deep.nft",
            &["import --from nft-json FILE"],
            format!("{{\"nftables\":{}", "[".repeat(100_000)),
        ),
    ]
}

#[test]
fn bombs_end_within_limits() {
    check_bombs(EXECUTABLE, &bombs());
}

#[test]
fn endless_and_silent_files_end_with_a_limit() {
    let commands = ["compile FILE -o /dev/null", "import --from nft-json FILE"];
    check_endless(EXECUTABLE, &commands);
}

//! Redirect targets of packets, as text and JSON.

use serde_json::{Map, Value, json};
use vm::Redirect;

/// Flags of redirects: the target receives the packet (`BPF_F_INGRESS`); of maps all targets get
/// it (`BPF_F_BROADCAST`).
const INGRESS: u64 = 1;
const BROADCAST: u64 = 8;

/// The target in words.
pub fn redirect_text(redirect: Redirect) -> String {
    match redirect {
        Redirect::Interface { index, flags } if flags & INGRESS != 0 => {
            format!("interface {index}, which receives it")
        }
        Redirect::Interface { index, .. } => format!("interface {index}"),
        Redirect::Neighbour { index } => format!("a neighbour on interface {index}"),
        Redirect::Peer { index } => format!("the peer of interface {index}"),
        Redirect::Map { flags, .. } if flags & BROADCAST != 0 => "all targets of a map".to_owned(),
        Redirect::Map { key, .. } => format!("the target of key {key} in a map"),
        Redirect::Socket {
            cookie,
            is_delivered: true,
        } => format!("socket {cookie}"),
        Redirect::Socket {
            cookie,
            is_delivered: false,
        } => format!("socket {cookie}, which drops it: it is not bound to the packet's queue"),
    }
}

/// The target as members of JSON.
pub fn redirect_json(redirect: Redirect) -> Map<String, Value> {
    let members = match redirect {
        Redirect::Interface { index, flags } => vec![
            ("ifindex", json!(index)),
            ("ingress", json!(flags & INGRESS != 0)),
        ],
        Redirect::Neighbour { index } => vec![("neighbour_on", json!(index))],
        Redirect::Peer { index } => vec![("peer_of", json!(index))],
        Redirect::Map { flags, .. } if flags & BROADCAST != 0 => vec![("broadcast", json!(true))],
        Redirect::Map { key, .. } => vec![("key", json!(key))],
        Redirect::Socket {
            cookie,
            is_delivered,
        } => vec![
            ("socket", json!(cookie)),
            ("delivered", json!(is_delivered)),
        ],
    };
    let members = members.into_iter();
    members
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

//! Local storage of objects that a test gives: known by their addresses, sockets and inodes as tasks and control
//! groups are.

use spec::Errno;
use spec::helpers::HelperId;
use vm::ModelPort;

use super::functions::is_full;
use super::model_calls::Model;
use crate::helpers::{owned_delete, owned_get};

/// Helpers that want a socket of the network, for which the one that a test gives is none.
const OF_SOCKETS: [HelperId; 6] = [
    HelperId::SkFullsock,
    HelperId::TcpSock,
    HelperId::GetListenerSock,
    HelperId::SkRelease,
    HelperId::SkCgroupId,
    HelperId::SkAncestorCgroupId,
];

impl Model {
    /// What a helper about the storage of a given socket or inode returns; `None` for other helpers and objects.
    pub(super) fn storage<M: ModelPort>(
        &self,
        helper: HelperId,
        arguments: [u64; 5],
        memory: &mut M,
    ) -> Option<Result<u64, M::Fault>> {
        let (is_socket, is_get) = match helper {
            HelperId::SkStorageGet => (true, true),
            HelperId::SkStorageDelete => (true, false),
            HelperId::InodeStorageGet => (false, true),
            HelperId::InodeStorageDelete => (false, false),
            _ => return None,
        };
        let object = arguments[1];
        let is_null = !is_socket && object == 0;
        if !is_null && !self.memory.is_object(object) {
            return None;
        }
        let has_storage = !is_null && (!is_socket || self.is_whole_socket(object));
        Some(match (has_storage, is_get) {
            (true, true) => owned_get(arguments, memory),
            (true, false) => owned_delete(arguments, memory),
            (false, true) => Ok(0),
            (false, false) => Ok(Errno::EINVAL.negated()),
        })
    }

    /// False for a socket that is a request or waits for its end, as its state says, if that was given.
    fn is_whole_socket(&self, socket: u64) -> bool {
        if self.memory.is_of(socket, "sock_common") != Some(true) {
            return true;
        }
        let state = self.memory.member_of(socket, "sock_common", &["skc_state"]);
        state.map_or(true, is_full)
    }

    /// True if a helper is about sockets of the network and is called with one that is given.
    pub(super) fn wants_other_socket(&self, helper: HelperId, [first, ..]: [u64; 5]) -> bool {
        OF_SOCKETS.contains(&helper) && self.memory.is_object(first)
    }
}

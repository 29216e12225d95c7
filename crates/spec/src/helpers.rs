//! Helper functions of Linux: numbers, names and first releases.
//!
//! One row for each helper, by number. `enum bpf_func_id` (`include/uapi/linux/bpf.h`)
//! only grows at its end, so numbers are in order of introduction. Linux 7.2 has the
//! same helpers as 6.2; newer functions are kfuncs ([`crate::since::kfunc`]).

use isa::ebpf::Callee;

use crate::callback::CallbackKind;
use crate::since::{IntroducedBy, Release, Since};

/// A helper: a function of the kernel that programs call by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Helper {
    /// Name, with the prefix `bpf_`.
    pub name: &'static str,
    /// Release that introduced the helper.
    pub since: Since,
}

/// Helper with this number; number 0 is no helper.
pub const fn helper(number: i32) -> Option<&'static Helper> {
    if number >= 1 && (number as usize) <= HELPERS.len() {
        Some(&HELPERS[number as usize - 1])
    } else {
        None
    }
}

/// Number of the helper with this name; evaluated at compile time for constants.
pub const fn number(name: &str) -> Option<i32> {
    let mut at = 0;
    while at < HELPERS.len() {
        if is_same(HELPERS[at].name, name) {
            return Some(at as i32 + 1);
        }
        at += 1;
    }
    None
}

/// Every helper with its number, starting with 1.
pub fn all() -> impl Iterator<Item = (i32, &'static Helper)> {
    (1..).zip(HELPERS)
}

/// True if two names are equal; for constants.
pub(crate) const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// What the verifier notes of the map that a helper is given (`record_func_map`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum MapRule {
    /// Nothing.
    Mapless,
    /// Which one it is.
    NamesMap,
    /// Likewise, and the helper changes its elements.
    ChangesMap,
}

/// What becomes of the packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PacketRule {
    /// Its bytes stay where they are.
    KeepsPacket,
    /// They may move, so that pointers to them become invalid.
    MovesPacket,
}

/// What a helper returns, beside its prototype.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResultRule {
    /// What its prototype says.
    Plain,
    /// A reference that must be released.
    Acquires,
    /// Its argument under another type.
    Casts,
    /// An element of local storage, found or created.
    GetsStorage,
    /// An error, or at most the size that it is given (`do_refine_retval_range`).
    ReturnsSize,
    /// The time.
    Time,
    /// A random number.
    Random,
}

/// Where it may be called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LockRule {
    /// While no lock is held.
    Unlocked,
    /// While a lock is held, too.
    UnderLock,
}

/// How the kernel calls it on x86-64.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CodeRule {
    /// By a call.
    Called,
    /// By instructions in its place, which keep registers.
    Inlined,
}

/// Rule of the verifier beside the prototype of a helper, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelperRule {
    /// None: the prototype says all.
    Prototype,
    /// It takes or releases the lock that its argument points to.
    Lock,
    /// It leaves the program: nothing may be held.
    TailCall,
    /// Flags of local storage must be 0.
    LocalStorage,
    /// Its argument may be an object that is allocated for each CPU.
    PercpuObject,
    /// Its arguments are those of a format.
    Format,
    /// The memory of its dynptr is the value of a map.
    DynptrFromMem,
    /// It depends on the kind of a dynptr (`get_dynptr_arg_reg`).
    #[doc(alias = "get_dynptr_arg_reg")]
    Dynptr,
    /// It sets the value that the hook returns.
    SetsReturn,
}

/// Properties of a helper beside its prototype: a column each.
#[derive(Clone, Copy)]
struct Row {
    map: MapRule,
    packet: PacketRule,
    result: ResultRule,
    lock: LockRule,
    code: CodeRule,
    filling: Filling,
    rule: HelperRule,
}

macro_rules! helpers {
    ($($id:ident $name:literal $major:literal $minor:literal $commit:literal
        $map:ident $packet:ident $result:ident $lock:ident $code:ident $filling:ident $rule:ident
        $(calls $callback:ident)?;)*) => {
        /// Number of a helper of Linux (`enum bpf_func_id`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[doc(alias = "bpf_func_id")]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum HelperId {
            $($id,)*
        }

        impl HelperId {
            /// Every helper, by number.
            pub const ALL: &'static [HelperId] = &[$(HelperId::$id,)*];

            const fn row(self) -> Row {
                match self {
                    $(HelperId::$id => Row {
                        map: MapRule::$map,
                        packet: PacketRule::$packet,
                        result: ResultRule::$result,
                        lock: LockRule::$lock,
                        code: CodeRule::$code,
                        filling: Filling::$filling,
                        rule: HelperRule::$rule,
                    },)*
                }
            }

            /// The function of the program that it is given, if it is given one.
            pub fn callback(self) -> Option<CallbackKind> {
                match self {
                    $(HelperId::$id => None$(.or(Some(CallbackKind::$callback)))?,)*
                }
            }
        }

        const HELPERS: &[Helper] = &[$(Helper {
            name: $name,
            since: Since {
                release: Release { major: $major, minor: $minor },
                source: IntroducedBy::Commit($commit),
            },
        },)*];
    };
}

// Name, release, the commit that brought it; map, packet, result, lock, code, filling of memory that
// need not be initialised, rule; by number.
helpers! {
    MapLookupElem "bpf_map_lookup_elem" 3 19 "d0003ec01c66" NamesMap KeepsPacket Plain Unlocked Called Whole Prototype;
    MapUpdateElem "bpf_map_update_elem" 3 19 "d0003ec01c66" ChangesMap KeepsPacket Plain Unlocked Called Whole Prototype;
    MapDeleteElem "bpf_map_delete_elem" 3 19 "d0003ec01c66" ChangesMap KeepsPacket Plain Unlocked Called Whole Prototype;
    ProbeRead "bpf_probe_read" 4 1 "2541517c32be" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    KtimeGetNs "bpf_ktime_get_ns" 4 1 "d9847d310ab4" Mapless KeepsPacket Time Unlocked Called Whole Prototype;
    TracePrintk "bpf_trace_printk" 4 1 "9c959c863f82" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetPrandomU32 "bpf_get_prandom_u32" 4 1 "03e69b508b6f" Mapless KeepsPacket Random Unlocked Called Whole Prototype;
    GetSmpProcessorId "bpf_get_smp_processor_id" 4 1 "c04167ce2ca0" Mapless KeepsPacket Plain Unlocked Inlined Whole Prototype;
    SkbStoreBytes "bpf_skb_store_bytes" 4 1 "608cd71a9c7c" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    L3CsumReplace "bpf_l3_csum_replace" 4 1 "91bc4822c3d6" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    L4CsumReplace "bpf_l4_csum_replace" 4 1 "91bc4822c3d6" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    TailCall "bpf_tail_call" 4 2 "04fd61ab36ec" NamesMap MovesPacket Plain Unlocked Called Whole TailCall;
    CloneRedirect "bpf_clone_redirect" 4 2 "3896d655f4d4" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    GetCurrentPidTgid "bpf_get_current_pid_tgid" 4 2 "ffeedafbf023" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetCurrentUidGid "bpf_get_current_uid_gid" 4 2 "ffeedafbf023" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetCurrentComm "bpf_get_current_comm" 4 2 "ffeedafbf023" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetCgroupClassid "bpf_get_cgroup_classid" 4 3 "8d20aabe1c76" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbVlanPush "bpf_skb_vlan_push" 4 3 "4e10df9a60d9" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    SkbVlanPop "bpf_skb_vlan_pop" 4 3 "4e10df9a60d9" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    SkbGetTunnelKey "bpf_skb_get_tunnel_key" 4 3 "d3aa45ce6b94" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbSetTunnelKey "bpf_skb_set_tunnel_key" 4 3 "d3aa45ce6b94" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    PerfEventRead "bpf_perf_event_read" 4 3 "35578d798400" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    Redirect "bpf_redirect" 4 4 "27b29f63058d" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetRouteRealm "bpf_get_route_realm" 4 4 "c46646d0484f" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    PerfEventOutput "bpf_perf_event_output" 4 4 "a43eec304259" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbLoadBytes "bpf_skb_load_bytes" 4 5 "05c74e5e53f6" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetStackid "bpf_get_stackid" 4 6 "d5a3b1f69186" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    CsumDiff "bpf_csum_diff" 4 6 "7d672345ed29" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbGetTunnelOpt "bpf_skb_get_tunnel_opt" 4 6 "14ca0751c96f" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbSetTunnelOpt "bpf_skb_set_tunnel_opt" 4 6 "14ca0751c96f" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbChangeProto "bpf_skb_change_proto" 4 8 "6578171a7ff0" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    SkbChangeType "bpf_skb_change_type" 4 8 "d2485c4242a8" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbUnderCgroup "bpf_skb_under_cgroup" 4 8 "4a482f34afcc" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetHashRecalc "bpf_get_hash_recalc" 4 8 "13c5c240f789" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetCurrentTask "bpf_get_current_task" 4 8 "606274c5abd8" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    ProbeWriteUser "bpf_probe_write_user" 4 8 "96ae52279594" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    CurrentTaskUnderCgroup "bpf_current_task_under_cgroup" 4 9 "60d20f9195b2" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbChangeTail "bpf_skb_change_tail" 4 9 "5293efe62df8" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    SkbPullData "bpf_skb_pull_data" 4 9 "36bbef52c7eb" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    CsumUpdate "bpf_csum_update" 4 9 "36bbef52c7eb" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SetHashInvalid "bpf_set_hash_invalid" 4 9 "7a4b28c6cc9f" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetNumaNodeId "bpf_get_numa_node_id" 4 10 "2d0e30c30f84" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbChangeHead "bpf_skb_change_head" 4 10 "3a0af8fd61f9" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    XdpAdjustHead "bpf_xdp_adjust_head" 4 10 "17bedab27231" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    ProbeReadStr "bpf_probe_read_str" 4 11 "a5e8c07059d0" Mapless KeepsPacket ReturnsSize Unlocked Called Text Prototype;
    GetSocketCookie "bpf_get_socket_cookie" 4 12 "91b8270f2a4d" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetSocketUid "bpf_get_socket_uid" 4 12 "6acc5c291068" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SetHash "bpf_set_hash" 4 13 "ded092cd73c2" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    Setsockopt "bpf_setsockopt" 4 13 "8c4b4c7e9ff0" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbAdjustRoom "bpf_skb_adjust_room" 4 13 "2be7e212d541" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    RedirectMap "bpf_redirect_map" 4 14 "97f91a7cf04f" NamesMap KeepsPacket Plain Unlocked Called Whole Prototype;
    SkRedirectMap "bpf_sk_redirect_map" 4 14 "174a79ff9515" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SockMapUpdate "bpf_sock_map_update" 4 14 "174a79ff9515" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    XdpAdjustMeta "bpf_xdp_adjust_meta" 4 15 "de8f3a83b0a0" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    PerfEventReadValue "bpf_perf_event_read_value" 4 15 "908432ca84fc" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    PerfProgReadValue "bpf_perf_prog_read_value" 4 15 "4bebdc7a85aa" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    Getsockopt "bpf_getsockopt" 4 15 "cd86d1fd2102" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    OverrideReturn "bpf_override_return" 4 16 "9802d86585db" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SockOpsCbFlagsSet "bpf_sock_ops_cb_flags_set" 4 16 "b13d88072172" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    MsgRedirectMap "bpf_msg_redirect_map" 4 17 "4f738adba30a" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    MsgApplyBytes "bpf_msg_apply_bytes" 4 17 "2a100317c9eb" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    MsgCorkBytes "bpf_msg_cork_bytes" 4 17 "91843d540a13" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    MsgPullData "bpf_msg_pull_data" 4 17 "015632bb30da" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    Bind "bpf_bind" 4 17 "d74bad4e74ee" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    XdpAdjustTail "bpf_xdp_adjust_tail" 4 18 "b32cc5b9a346" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    SkbGetXfrmState "bpf_skb_get_xfrm_state" 4 18 "12bed760a78d" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetStack "bpf_get_stack" 4 18 "c195651e565a" Mapless KeepsPacket ReturnsSize Unlocked Called Whole Prototype;
    SkbLoadBytesRelative "bpf_skb_load_bytes_relative" 4 18 "4e1ec56cdc59" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    FibLookup "bpf_fib_lookup" 4 18 "87f5fc7e48dd" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SockHashUpdate "bpf_sock_hash_update" 4 18 "81110384441a" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    MsgRedirectHash "bpf_msg_redirect_hash" 4 18 "81110384441a" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkRedirectHash "bpf_sk_redirect_hash" 4 18 "81110384441a" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    LwtPushEncap "bpf_lwt_push_encap" 4 18 "fe94cc290f53" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    LwtSeg6StoreBytes "bpf_lwt_seg6_store_bytes" 4 18 "fe94cc290f53" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    LwtSeg6AdjustSrh "bpf_lwt_seg6_adjust_srh" 4 18 "fe94cc290f53" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    LwtSeg6Action "bpf_lwt_seg6_action" 4 18 "fe94cc290f53" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    RcRepeat "bpf_rc_repeat" 4 18 "f4364dcfc86d" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    RcKeydown "bpf_rc_keydown" 4 18 "f4364dcfc86d" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbCgroupId "bpf_skb_cgroup_id" 4 18 "cb20b08ead40" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetCurrentCgroupId "bpf_get_current_cgroup_id" 4 18 "bf6fa2c893c5" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetLocalStorage "bpf_get_local_storage" 4 19 "cd3394317653" Mapless KeepsPacket Plain Unlocked Called Whole LocalStorage;
    SkSelectReuseport "bpf_sk_select_reuseport" 4 19 "2dbb9b9e6df6" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbAncestorCgroupId "bpf_skb_ancestor_cgroup_id" 4 19 "7723628101aa" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkLookupTcp "bpf_sk_lookup_tcp" 4 20 "6acc9b432e67" Mapless KeepsPacket Acquires Unlocked Called Whole Prototype;
    SkLookupUdp "bpf_sk_lookup_udp" 4 20 "6acc9b432e67" Mapless KeepsPacket Acquires Unlocked Called Whole Prototype;
    SkRelease "bpf_sk_release" 4 20 "6acc9b432e67" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    MapPushElem "bpf_map_push_elem" 4 20 "f1a2e44a3aec" ChangesMap KeepsPacket Plain Unlocked Called Whole Prototype;
    MapPopElem "bpf_map_pop_elem" 4 20 "f1a2e44a3aec" ChangesMap KeepsPacket Plain Unlocked Called Whole Prototype;
    MapPeekElem "bpf_map_peek_elem" 4 20 "f1a2e44a3aec" NamesMap KeepsPacket Plain Unlocked Called Whole Prototype;
    MsgPushData "bpf_msg_push_data" 4 20 "6fff607e2f14" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    MsgPopData "bpf_msg_pop_data" 5 0 "7246d8ed4dcc" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    RcPointerRel "bpf_rc_pointer_rel" 5 0 "01d3240a04f4" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SpinLock "bpf_spin_lock" 5 1 "d83525ca62cf" Mapless KeepsPacket Plain Unlocked Called Whole Lock;
    SpinUnlock "bpf_spin_unlock" 5 1 "d83525ca62cf" Mapless KeepsPacket Plain UnderLock Called Whole Lock;
    SkFullsock "bpf_sk_fullsock" 5 1 "46f8bc92758c" Mapless KeepsPacket Casts Unlocked Called Whole Prototype;
    TcpSock "bpf_tcp_sock" 5 1 "655a51e536c0" Mapless KeepsPacket Casts Unlocked Called Whole Prototype;
    SkbEcnSetCe "bpf_skb_ecn_set_ce" 5 1 "f7c917ba11a6" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetListenerSock "bpf_get_listener_sock" 5 1 "dbafd7ddd623" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkcLookupTcp "bpf_skc_lookup_tcp" 5 2 "edbf8c01de5a" Mapless KeepsPacket Acquires Unlocked Called Whole Prototype;
    TcpCheckSyncookie "bpf_tcp_check_syncookie" 5 2 "399040847084" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SysctlGetName "bpf_sysctl_get_name" 5 2 "808649fb787d" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SysctlGetCurrentValue "bpf_sysctl_get_current_value" 5 2 "1d11b3016cec" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SysctlGetNewValue "bpf_sysctl_get_new_value" 5 2 "4e63acdff864" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SysctlSetNewValue "bpf_sysctl_set_new_value" 5 2 "4e63acdff864" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    Strtol "bpf_strtol" 5 2 "d7a4cb9b6705" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    Strtoul "bpf_strtoul" 5 2 "d7a4cb9b6705" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkStorageGet "bpf_sk_storage_get" 5 2 "6ac99e8f23d4" Mapless KeepsPacket GetsStorage Unlocked Called Whole Prototype;
    SkStorageDelete "bpf_sk_storage_delete" 5 2 "6ac99e8f23d4" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SendSignal "bpf_send_signal" 5 3 "8b401f9ed244" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    TcpGenSyncookie "bpf_tcp_gen_syncookie" 5 4 "70d66244317e" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbOutput "bpf_skb_output" 5 5 "a7658e1a4164" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    ProbeReadUser "bpf_probe_read_user" 5 5 "6ae08ae3dea2" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    ProbeReadKernel "bpf_probe_read_kernel" 5 5 "6ae08ae3dea2" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    ProbeReadUserStr "bpf_probe_read_user_str" 5 5 "6ae08ae3dea2" Mapless KeepsPacket ReturnsSize Unlocked Called Text Prototype;
    ProbeReadKernelStr "bpf_probe_read_kernel_str" 5 5 "6ae08ae3dea2" Mapless KeepsPacket ReturnsSize Unlocked Called Text Prototype;
    TcpSendAck "bpf_tcp_send_ack" 5 6 "206057fe020a" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SendSignalThread "bpf_send_signal_thread" 5 6 "8482941f0906" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    Jiffies64 "bpf_jiffies64" 5 6 "5576b991e9c1" Mapless KeepsPacket Time Unlocked Called Whole Prototype;
    ReadBranchRecords "bpf_read_branch_records" 5 7 "fff7b64355ea" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetNsCurrentPidTgid "bpf_get_ns_current_pid_tgid" 5 7 "b4490c5c4e02" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    XdpOutput "bpf_xdp_output" 5 7 "d831ee84bfc9" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetNetnsCookie "bpf_get_netns_cookie" 5 7 "f318903c0bf4" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetCurrentAncestorCgroupId "bpf_get_current_ancestor_cgroup_id" 5 7 "0f09abd105da" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkAssign "bpf_sk_assign" 5 7 "cf7fbe660f2d" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    KtimeGetBootNs "bpf_ktime_get_boot_ns" 5 8 "71d19214776e" Mapless KeepsPacket Time Unlocked Called Whole Prototype;
    SeqPrintf "bpf_seq_printf" 5 8 "492e639f0c22" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SeqWrite "bpf_seq_write" 5 8 "492e639f0c22" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkCgroupId "bpf_sk_cgroup_id" 5 8 "f307fa2cb4c9" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkAncestorCgroupId "bpf_sk_ancestor_cgroup_id" 5 8 "f307fa2cb4c9" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    RingbufOutput "bpf_ringbuf_output" 5 8 "457f44363a88" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    RingbufReserve "bpf_ringbuf_reserve" 5 8 "457f44363a88" Mapless KeepsPacket Acquires Unlocked Called Whole Prototype;
    RingbufSubmit "bpf_ringbuf_submit" 5 8 "457f44363a88" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    RingbufDiscard "bpf_ringbuf_discard" 5 8 "457f44363a88" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    RingbufQuery "bpf_ringbuf_query" 5 8 "457f44363a88" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    CsumLevel "bpf_csum_level" 5 8 "7cdec54f9713" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkcToTcp6Sock "bpf_skc_to_tcp6_sock" 5 9 "af7ec1383361" Mapless KeepsPacket Casts Unlocked Called Whole Prototype;
    SkcToTcpSock "bpf_skc_to_tcp_sock" 5 9 "478cfbdf5f13" Mapless KeepsPacket Casts Unlocked Called Whole Prototype;
    SkcToTcpTimewaitSock "bpf_skc_to_tcp_timewait_sock" 5 9 "478cfbdf5f13" Mapless KeepsPacket Casts Unlocked Called Whole Prototype;
    SkcToTcpRequestSock "bpf_skc_to_tcp_request_sock" 5 9 "478cfbdf5f13" Mapless KeepsPacket Casts Unlocked Called Whole Prototype;
    SkcToUdp6Sock "bpf_skc_to_udp6_sock" 5 9 "0d4fad3e57df" Mapless KeepsPacket Casts Unlocked Called Whole Prototype;
    GetTaskStack "bpf_get_task_stack" 5 9 "fa28dcb82a38" Mapless KeepsPacket ReturnsSize Unlocked Called OnSuccess Prototype;
    LoadHdrOpt "bpf_load_hdr_opt" 5 10 "0813a841566f" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    StoreHdrOpt "bpf_store_hdr_opt" 5 10 "0813a841566f" Mapless MovesPacket Plain Unlocked Called Whole Prototype;
    ReserveHdrOpt "bpf_reserve_hdr_opt" 5 10 "0813a841566f" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    InodeStorageGet "bpf_inode_storage_get" 5 10 "8ea636848aca" Mapless KeepsPacket GetsStorage Unlocked Called Whole Prototype;
    InodeStorageDelete "bpf_inode_storage_delete" 5 10 "8ea636848aca" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    DPath "bpf_d_path" 5 10 "6e22ab9da793" Mapless KeepsPacket Plain Unlocked Called Part Prototype;
    CopyFromUser "bpf_copy_from_user" 5 10 "07be4c4a3e7a" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SnprintfBtf "bpf_snprintf_btf" 5 10 "c4d0bfb45068" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SeqPrintfBtf "bpf_seq_printf_btf" 5 10 "eb411377aed9" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkbCgroupClassid "bpf_skb_cgroup_classid" 5 10 "b426ce83baa7" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    RedirectNeigh "bpf_redirect_neigh" 5 10 "b4ab31414970" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    PerCpuPtr "bpf_per_cpu_ptr" 5 10 "eaa6bcb71ef6" Mapless KeepsPacket Plain Unlocked Called Whole PercpuObject;
    ThisCpuPtr "bpf_this_cpu_ptr" 5 10 "63d9b80dcf2c" Mapless KeepsPacket Plain Unlocked Called Whole PercpuObject;
    RedirectPeer "bpf_redirect_peer" 5 10 "9aa1206e8f48" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    TaskStorageGet "bpf_task_storage_get" 5 11 "4cf1bc1f1045" Mapless KeepsPacket GetsStorage Unlocked Called Whole Prototype;
    TaskStorageDelete "bpf_task_storage_delete" 5 11 "4cf1bc1f1045" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetCurrentTaskBtf "bpf_get_current_task_btf" 5 11 "3ca1032ab7ab" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    BprmOptsSet "bpf_bprm_opts_set" 5 11 "3f6719c7b62f" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    KtimeGetCoarseNs "bpf_ktime_get_coarse_ns" 5 11 "d05512618056" Mapless KeepsPacket Time Unlocked Called Whole Prototype;
    ImaInodeHash "bpf_ima_inode_hash" 5 11 "27672f0d280a" Mapless KeepsPacket Plain Unlocked Called Part Prototype;
    SockFromFile "bpf_sock_from_file" 5 11 "4f19cab76136" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    CheckMtu "bpf_check_mtu" 5 12 "34b2021cc616" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    ForEachMapElem "bpf_for_each_map_elem" 5 13 "69c087ba6225" NamesMap KeepsPacket Plain Unlocked Called Whole Prototype calls MapElement;
    Snprintf "bpf_snprintf" 5 13 "7b15523a989b" Mapless KeepsPacket Plain Unlocked Called Whole Format;
    SysBpf "bpf_sys_bpf" 5 14 "79a7f8bdb159" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    BtfFindByNameKind "bpf_btf_find_by_name_kind" 5 14 "3d78417b60fb" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SysClose "bpf_sys_close" 5 14 "3abea089246f" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    TimerInit "bpf_timer_init" 5 15 "b00628b1c7d5" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    TimerSetCallback "bpf_timer_set_callback" 5 15 "b00628b1c7d5" Mapless KeepsPacket Plain Unlocked Called Whole Prototype calls Timer;
    TimerStart "bpf_timer_start" 5 15 "b00628b1c7d5" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    TimerCancel "bpf_timer_cancel" 5 15 "b00628b1c7d5" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetFuncIp "bpf_get_func_ip" 5 15 "9b99edcae5c8" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetAttachCookie "bpf_get_attach_cookie" 5 15 "7adfc6c9b315" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    TaskPtRegs "bpf_task_pt_regs" 5 15 "dd6e10fbd9fb" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetBranchSnapshot "bpf_get_branch_snapshot" 5 16 "856c02dbce4f" Mapless KeepsPacket Plain Unlocked Called Part Prototype;
    TraceVprintk "bpf_trace_vprintk" 5 16 "10aceb629e19" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SkcToUnixSock "bpf_skc_to_unix_sock" 5 16 "9eeb3aa33ae0" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    KallsymsLookupName "bpf_kallsyms_lookup_name" 5 16 "d6aef08a872b" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    FindVma "bpf_find_vma" 5 17 "7c7e3d31e785" Mapless KeepsPacket Plain Unlocked Called Whole Prototype calls FindVma;
    Loop "bpf_loop" 5 17 "e6f2dd0f8067" Mapless KeepsPacket Plain Unlocked Called Whole Prototype calls Loop;
    Strncmp "bpf_strncmp" 5 17 "c5fb19937455" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetFuncArg "bpf_get_func_arg" 5 17 "f92c1e183604" Mapless KeepsPacket Plain Unlocked Called OnSuccess Prototype;
    GetFuncRet "bpf_get_func_ret" 5 17 "f92c1e183604" Mapless KeepsPacket Plain Unlocked Called OnSuccess Prototype;
    GetFuncArgCnt "bpf_get_func_arg_cnt" 5 17 "f92c1e183604" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    GetRetval "bpf_get_retval" 5 18 "b44123b4a3dc" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    SetRetval "bpf_set_retval" 5 18 "b44123b4a3dc" Mapless KeepsPacket Plain Unlocked Called Whole SetsReturn;
    XdpGetBuffLen "bpf_xdp_get_buff_len" 5 18 "0165cc817075" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    XdpLoadBytes "bpf_xdp_load_bytes" 5 18 "3f364222d032" Mapless KeepsPacket Plain Unlocked Called OnSuccess Prototype;
    XdpStoreBytes "bpf_xdp_store_bytes" 5 18 "3f364222d032" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    CopyFromUserTask "bpf_copy_from_user_task" 5 18 "376040e47334" Mapless KeepsPacket Plain Unlocked Called OnSuccess Prototype;
    SkbSetTstamp "bpf_skb_set_tstamp" 5 18 "9bb984f28d5b" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    ImaFileHash "bpf_ima_file_hash" 5 18 "174b16946e39" Mapless KeepsPacket Plain Unlocked Called Part Prototype;
    KptrXchg "bpf_kptr_xchg" 5 19 "c0a5a21c25f3" Mapless KeepsPacket Acquires Unlocked Called Whole Prototype;
    MapLookupPercpuElem "bpf_map_lookup_percpu_elem" 5 19 "07343110b293" NamesMap KeepsPacket Plain Unlocked Called Whole Prototype;
    SkcToMptcpSock "bpf_skc_to_mptcp_sock" 5 19 "3bc253c2e652" Mapless KeepsPacket Casts Unlocked Called Whole Prototype;
    DynptrFromMem "bpf_dynptr_from_mem" 5 19 "263ae152e962" Mapless KeepsPacket Plain Unlocked Called Whole DynptrFromMem;
    RingbufReserveDynptr "bpf_ringbuf_reserve_dynptr" 5 19 "bc34dee65a65" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    RingbufSubmitDynptr "bpf_ringbuf_submit_dynptr" 5 19 "bc34dee65a65" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    RingbufDiscardDynptr "bpf_ringbuf_discard_dynptr" 5 19 "bc34dee65a65" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    DynptrRead "bpf_dynptr_read" 5 19 "13bbbfbea759" Mapless KeepsPacket Plain Unlocked Called OnSuccess Prototype;
    DynptrWrite "bpf_dynptr_write" 5 19 "13bbbfbea759" Mapless KeepsPacket Plain Unlocked Called Whole Dynptr;
    DynptrData "bpf_dynptr_data" 5 19 "34d4ef5775f7" Mapless KeepsPacket Plain Unlocked Called Whole Dynptr;
    TcpRawGenSyncookieIpv4 "bpf_tcp_raw_gen_syncookie_ipv4" 6 0 "33bf9885040c" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    TcpRawGenSyncookieIpv6 "bpf_tcp_raw_gen_syncookie_ipv6" 6 0 "33bf9885040c" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    TcpRawCheckSyncookieIpv4 "bpf_tcp_raw_check_syncookie_ipv4" 6 0 "33bf9885040c" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    TcpRawCheckSyncookieIpv6 "bpf_tcp_raw_check_syncookie_ipv6" 6 0 "33bf9885040c" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
    KtimeGetTaiNs "bpf_ktime_get_tai_ns" 6 1 "c8996c98f703" Mapless KeepsPacket Time Unlocked Called Whole Prototype;
    UserRingbufDrain "bpf_user_ringbuf_drain" 6 1 "205715673844" Mapless KeepsPacket Plain Unlocked Called Whole Prototype calls UserRingbuf;
    CgrpStorageGet "bpf_cgrp_storage_get" 6 2 "c4bcfb38a95e" Mapless KeepsPacket GetsStorage Unlocked Called Whole Prototype;
    CgrpStorageDelete "bpf_cgrp_storage_delete" 6 2 "c4bcfb38a95e" Mapless KeepsPacket Plain Unlocked Called Whole Prototype;
}

impl HelperId {
    /// The helper with this number; `None` for helpers of a host and for numbers of none.
    pub const fn from_number(number: i32) -> Option<HelperId> {
        match helper(number) {
            Some(_) => Some(HelperId::ALL[number as usize - 1]),
            None => None,
        }
    }

    /// The helper of Linux that a call calls.
    pub const fn of_call(callee: Callee) -> Option<HelperId> {
        match callee {
            Callee::Helper(number) => HelperId::from_number(number),
            Callee::Kfunc { .. } | Callee::Local(_) => None,
        }
    }

    /// Its name and first release.
    pub const fn entry(self) -> &'static Helper {
        &HELPERS[self as usize]
    }

    /// Number in `enum bpf_func_id`.
    pub const fn number(self) -> i32 {
        self as i32 + 1
    }

    /// True if it may move the packet's bytes, so that pointers to them become invalid
    /// (`bpf_helper_changes_pkt_data`).
    #[doc(alias = "bpf_helper_changes_pkt_data")]
    pub const fn changes_packet(self) -> bool {
        matches!(self.row().packet, PacketRule::MovesPacket)
    }

    /// True if it returns a reference that must be released; lookups in maps of sockets do too
    /// (`is_acquire_function`).
    #[doc(alias = "is_acquire_function")]
    pub const fn acquires(self) -> bool {
        matches!(self.row().result, ResultRule::Acquires)
    }

    /// True if it returns its argument under another type (`is_ptr_cast_function`).
    #[doc(alias = "is_ptr_cast_function")]
    pub const fn casts_pointer(self) -> bool {
        matches!(self.row().result, ResultRule::Casts)
    }

    /// True if it finds or creates an element of local storage (`is_storage_get_function`).
    #[doc(alias = "is_storage_get_function")]
    pub const fn gets_storage(self) -> bool {
        matches!(self.row().result, ResultRule::GetsStorage)
    }

    /// True if the verifier notes which map it is given.
    pub const fn names_map(self) -> bool {
        !matches!(self.row().map, MapRule::Mapless)
    }

    /// True if it changes elements of the map that it is given.
    pub const fn changes_map(self) -> bool {
        matches!(self.row().map, MapRule::ChangesMap)
    }

    /// True if it returns an error or at most the size that it is given.
    pub const fn returns_size(self) -> bool {
        matches!(self.row().result, ResultRule::ReturnsSize)
    }

    /// True if it returns the time.
    pub const fn returns_time(self) -> bool {
        matches!(self.row().result, ResultRule::Time)
    }

    /// True if it returns a random number.
    pub const fn returns_random(self) -> bool {
        matches!(self.row().result, ResultRule::Random)
    }

    /// True if it may be called while a lock is held.
    pub const fn is_allowed_under_lock(self) -> bool {
        matches!(self.row().lock, LockRule::UnderLock)
    }

    /// True if the kernel inlines it on x86-64 and keeps the registers that its prototype does not
    /// name (`verifier_inlines_helper_call`, `bpf_verifier_inlines_helper_call`).
    #[doc(alias = "verifier_inlines_helper_call")]
    #[doc(alias = "bpf_verifier_inlines_helper_call")]
    pub const fn is_inlined(self) -> bool {
        matches!(self.row().code, CodeRule::Inlined)
    }

    /// The part of memory that need not be initialised which it writes.
    pub const fn filling(self) -> Filling {
        self.row().filling
    }

    /// True if it takes or releases a lock.
    pub const fn is_of_lock(self) -> bool {
        matches!(self.row().rule, HelperRule::Lock)
    }

    /// Its rule beside the prototype.
    pub const fn rule(self) -> HelperRule {
        self.row().rule
    }
}

/// Part of its uninitialised memory that a helper writes, as Linux has it. Helpers that fill the
/// memory with zeros where they fail write all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// All of it.
    Whole,
    /// All of it, or nothing if the helper returns a negative number.
    OnSuccess,
    /// A text with a final zero byte.
    Text,
    /// Any part of it, none too.
    Part,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_inverse() {
        for (at, helper) in all() {
            assert_eq!(number(helper.name), Some(at));
            assert_eq!(self::helper(at), Some(helper));
            assert!(helper.name.starts_with("bpf_"));
        }
        assert_eq!(helper(0), None);
        assert_eq!(helper(212), None);
        assert_eq!(helper(i32::MIN), None);
        assert_eq!(number("bpf_unspec"), None);
    }

    #[test]
    fn a_later_number_never_has_an_earlier_release() {
        let releases: Vec<Release> = all().map(|(_, helper)| helper.since.release).collect();
        assert!(releases.is_sorted());
    }

    #[test]
    fn identifiers_are_numbers_and_names() {
        assert_eq!(HelperId::ALL.len(), HELPERS.len());
        for (number, helper) in all() {
            let id = HelperId::from_number(number).unwrap();
            assert_eq!(id.number(), number);
            let name = helper.name.strip_prefix("bpf_").unwrap().replace('_', "");
            assert_eq!(format!("{id:?}").to_lowercase(), name);
        }
        assert_eq!(HelperId::from_number(0), None);
        assert_eq!(HelperId::from_number(212), None);
    }

    #[test]
    fn well_known_numbers() {
        let known = [
            (1, "bpf_map_lookup_elem"),
            (5, "bpf_ktime_get_ns"),
            (12, "bpf_tail_call"),
            (51, "bpf_redirect_map"),
            (113, "bpf_probe_read_kernel"),
            (131, "bpf_ringbuf_reserve"),
            (181, "bpf_loop"),
            (211, "bpf_cgrp_storage_delete"),
        ];
        for (number, name) in known {
            assert_eq!(helper(number).map(|helper| helper.name), Some(name));
        }
    }
}

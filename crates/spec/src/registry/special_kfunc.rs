//! kfuncs with rules of their own in the verifier (`enum special_kfunc_type`): one row for
//! each.

use crate::callback::CallbackKind;

/// Where a kfunc may be called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LockRule {
    /// While no lock is held.
    Unlocked,
    /// While a lock is held, too.
    UnderLock,
}

/// What a call does, beside the flags of the kfunc.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// What its flags and arguments say.
    Plain,
    /// It may move the packet's bytes.
    MovesPacket,
    /// It is for programs that are bound to a network device.
    DeviceBound,
    /// It takes a lock, or fails to.
    TriesLock,
    /// It puts its second argument into a list or tree.
    GivesAway,
    /// It takes a node out of a list or tree, or finds one there.
    FindsNode,
    /// It returns a new object of a type of the program.
    Allocates,
    /// It returns one more reference of such an object.
    Shares,
    /// It means something to the verifier only; its call does nothing.
    Nothing,
    /// It means something to the verifier only; its call returns the first argument
    /// (`fixup_kfunc_call`).
    Cast,
}

/// Arguments that Linux sets by instructions in front of a call (`fixup_kfunc_call`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inserted {
    /// None.
    NoArgument,
    /// The special fields of an object, whose address takes two slots.
    Fields,
    /// Likewise, and the size of an object, or the offset of a node.
    FieldsAndNumber,
}

macro_rules! special_kfuncs {
    ($($id:ident $name:literal $lock:ident $effect:ident $inserted:ident
        $(calls $callback:ident)?;)*) => {
        /// kfunc with rules of its own (`enum special_kfunc_type`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[doc(alias = "special_kfunc_type")]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum SpecialKfunc {
            $($id,)*
        }

        impl SpecialKfunc {
            /// Every one with its name.
            #[cfg(test)]
            const ALL: &'static [(SpecialKfunc, &'static str)] =
                &[$((SpecialKfunc::$id, $name),)*];

            /// The one with this name.
            pub fn named(name: &str) -> Option<SpecialKfunc> {
                Some(match name {
                    $($name => SpecialKfunc::$id,)*
                    _ => return None,
                })
            }

            const fn row(self) -> (LockRule, Effect, Inserted) {
                match self {
                    $(SpecialKfunc::$id =>
                        (LockRule::$lock, Effect::$effect, Inserted::$inserted),)*
                }
            }

            /// The function of the program that it is given, if it is given one.
            pub fn callback(self) -> Option<CallbackKind> {
                match self {
                    $(SpecialKfunc::$id => None$(.or(Some(CallbackKind::$callback)))?,)*
                }
            }
        }
    };
}

// Name; lock, effect, arguments that Linux sets.
special_kfuncs! {
    Trap "__bpf_trap" Unlocked Plain NoArgument;
    Throw "bpf_throw" Unlocked Plain NoArgument;
    RcuReadLock "bpf_rcu_read_lock" Unlocked Nothing NoArgument;
    RcuReadUnlock "bpf_rcu_read_unlock" Unlocked Nothing NoArgument;
    PreemptDisable "bpf_preempt_disable" Unlocked Nothing NoArgument;
    PreemptEnable "bpf_preempt_enable" Unlocked Nothing NoArgument;
    CastToKernCtx "bpf_cast_to_kern_ctx" Unlocked Cast NoArgument;
    RdonlyCast "bpf_rdonly_cast" Unlocked Cast NoArgument;
    GetKmemCache "bpf_get_kmem_cache" Unlocked Plain NoArgument;
    XdpPullData "bpf_xdp_pull_data" Unlocked MovesPacket NoArgument;
    XdpMetadataRxTimestamp "bpf_xdp_metadata_rx_timestamp" Unlocked DeviceBound NoArgument;
    XdpMetadataRxHash "bpf_xdp_metadata_rx_hash" Unlocked DeviceBound NoArgument;
    XdpMetadataRxVlanTag "bpf_xdp_metadata_rx_vlan_tag" Unlocked DeviceBound NoArgument;
    ObjNew "bpf_obj_new_impl" Unlocked Allocates FieldsAndNumber;
    ObjDrop "bpf_obj_drop_impl" Unlocked Plain Fields;
    PercpuObjNew "bpf_percpu_obj_new_impl" Unlocked Allocates FieldsAndNumber;
    PercpuObjDrop "bpf_percpu_obj_drop_impl" Unlocked Plain Fields;
    RefcountAcquire "bpf_refcount_acquire_impl" UnderLock Shares Fields;
    ListPushFront "bpf_list_push_front_impl" UnderLock GivesAway FieldsAndNumber;
    ListPushBack "bpf_list_push_back_impl" UnderLock GivesAway FieldsAndNumber;
    ListPopFront "bpf_list_pop_front" UnderLock FindsNode NoArgument;
    ListPopBack "bpf_list_pop_back" UnderLock FindsNode NoArgument;
    ListFront "bpf_list_front" UnderLock Plain NoArgument;
    ListBack "bpf_list_back" UnderLock Plain NoArgument;
    RbtreeAdd "bpf_rbtree_add_impl" UnderLock GivesAway FieldsAndNumber calls RbtreeAdd;
    RbtreeRemove "bpf_rbtree_remove" UnderLock FindsNode NoArgument;
    RbtreeFirst "bpf_rbtree_first" UnderLock FindsNode NoArgument;
    RbtreeRoot "bpf_rbtree_root" UnderLock Plain NoArgument;
    RbtreeLeft "bpf_rbtree_left" UnderLock Plain NoArgument;
    RbtreeRight "bpf_rbtree_right" UnderLock Plain NoArgument;
    IterNumNew "bpf_iter_num_new" UnderLock Plain NoArgument;
    IterNumNext "bpf_iter_num_next" UnderLock Plain NoArgument;
    IterNumDestroy "bpf_iter_num_destroy" UnderLock Plain NoArgument;
    IterCssTaskNew "bpf_iter_css_task_new" Unlocked Plain NoArgument;
    DynptrFromSkb "bpf_dynptr_from_skb" Unlocked Plain NoArgument;
    DynptrFromXdp "bpf_dynptr_from_xdp" Unlocked Plain NoArgument;
    DynptrFromSkbMeta "bpf_dynptr_from_skb_meta" Unlocked Plain NoArgument;
    DynptrSlice "bpf_dynptr_slice" Unlocked Plain NoArgument;
    DynptrSliceRdwr "bpf_dynptr_slice_rdwr" Unlocked Plain NoArgument;
    DynptrClone "bpf_dynptr_clone" Unlocked Plain NoArgument;
    LocalIrqSave "bpf_local_irq_save" Unlocked Plain NoArgument;
    LocalIrqRestore "bpf_local_irq_restore" Unlocked Plain NoArgument;
    ResSpinLock "bpf_res_spin_lock" UnderLock TriesLock NoArgument;
    ResSpinUnlock "bpf_res_spin_unlock" UnderLock Plain NoArgument;
    ResSpinLockIrqsave "bpf_res_spin_lock_irqsave" UnderLock TriesLock NoArgument;
    ResSpinUnlockIrqrestore "bpf_res_spin_unlock_irqrestore" UnderLock Plain NoArgument;
    WqSetCallback "bpf_wq_set_callback_impl" Unlocked Plain NoArgument calls Workqueue;
    TaskWorkScheduleSignal "bpf_task_work_schedule_signal_impl" Unlocked Plain NoArgument calls TaskWork;
    TaskWorkScheduleResume "bpf_task_work_schedule_resume_impl" Unlocked Plain NoArgument calls TaskWork;
    SessionCookie "bpf_session_cookie" Unlocked Plain NoArgument;
}

impl SpecialKfunc {
    /// True if it may be called while a lock is held (`kfunc_spin_allowed`).
    #[doc(alias = "kfunc_spin_allowed")]
    pub const fn is_allowed_under_lock(self) -> bool {
        matches!(self.row().0, LockRule::UnderLock)
    }

    /// True if it puts objects into lists and trees, takes them out, or counts one more reference of
    /// them.
    pub const fn changes_graph(self) -> bool {
        match self.row().1 {
            Effect::GivesAway | Effect::FindsNode | Effect::Shares => true,
            Effect::Plain
            | Effect::MovesPacket
            | Effect::DeviceBound
            | Effect::TriesLock
            | Effect::Allocates
            | Effect::Nothing
            | Effect::Cast => false,
        }
    }

    /// True if it may move the packet's bytes (`is_kfunc_pkt_changing`).
    #[doc(alias = "is_kfunc_pkt_changing")]
    pub const fn changes_packet(self) -> bool {
        matches!(self.row().1, Effect::MovesPacket)
    }

    /// True if it is for programs that are bound to a network device
    /// (`bpf_dev_bound_kfunc_id`).
    #[doc(alias = "bpf_dev_bound_kfunc_id")]
    pub const fn is_device_bound(self) -> bool {
        matches!(self.row().1, Effect::DeviceBound)
    }

    /// True if it takes a lock, or fails to.
    pub const fn may_fail_to_lock(self) -> bool {
        matches!(self.row().1, Effect::TriesLock)
    }

    /// True if it puts its second argument into a list or tree.
    pub const fn gives_away(self) -> bool {
        matches!(self.row().1, Effect::GivesAway)
    }

    /// True if it returns an object of a type of the program.
    pub const fn returns_allocated(self) -> bool {
        matches!(self.row().1, Effect::Allocates | Effect::Shares)
    }

    /// Instructions that Linux puts in front of a call, which set arguments of its own: the size
    /// of an object, its special fields, the offset of a node (`fixup_kfunc_call`).
    #[doc(alias = "fixup_kfunc_call")]
    pub const fn argument_insns(self) -> u32 {
        match self.row().2 {
            Inserted::NoArgument => 0,
            Inserted::Fields => 2,
            Inserted::FieldsAndNumber => 3,
        }
    }

    /// What a call does in a run, if it means something to the verifier only.
    pub const fn erased(self) -> Option<Erased> {
        match self.row().1 {
            Effect::Nothing => Some(Erased::Nothing),
            Effect::Cast => Some(Erased::Argument),
            Effect::Plain
            | Effect::MovesPacket
            | Effect::DeviceBound
            | Effect::TriesLock
            | Effect::GivesAway
            | Effect::FindsNode
            | Effect::Allocates
            | Effect::Shares => None,
        }
    }
}

/// What is left in a run of a call that means something to the verifier only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erased {
    /// Nothing; it returns nothing.
    Nothing,
    /// It returns its first argument.
    Argument,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::since;

    #[test]
    fn names_are_those_of_linux() {
        for &(kfunc, name) in SpecialKfunc::ALL {
            assert_eq!(SpecialKfunc::named(name), Some(kfunc));
            assert!(since::kfunc_index(name).is_some(), "{name}");
        }
    }
}

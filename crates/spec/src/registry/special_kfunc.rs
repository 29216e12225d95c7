//! kfuncs with rules of their own in the verifier (`enum special_kfunc_type`): one row for
//! each.

use crate::callback::CallbackKind;

/// Where a kfunc may be called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LockRule {
    /// While no lock is held.
    Unlocked,
    /// While a lock is held, too, where calls under locks are allowed
    /// ([`Behaviour::CallsUnderLock`](crate::behaviour::Behaviour::CallsUnderLock))
    /// (`is_bpf_iter_num_api_kfunc`, `is_bpf_res_spin_lock_kfunc`).
    #[doc(alias = "is_bpf_iter_num_api_kfunc")]
    #[doc(alias = "is_bpf_res_spin_lock_kfunc")]
    UnderLock,
    /// While a lock is held, in every kernel: calls of lists and trees (`is_bpf_graph_api_kfunc`,
    /// `is_bpf_list_api_kfunc`, `is_bpf_rbtree_api_kfunc`).
    #[doc(alias = "is_bpf_graph_api_kfunc")]
    #[doc(alias = "is_bpf_list_api_kfunc")]
    #[doc(alias = "is_bpf_rbtree_api_kfunc")]
    UnderAnyLock,
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
    /// It means something to the verifier only; its call does nothing.
    Nothing,
    /// It means something to the verifier only; its call returns the first argument
    /// (`fixup_kfunc_call`).
    Cast,
}

/// What a kfunc returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KfuncResult {
    /// What its prototype says.
    ByType,
    /// Likewise; the object is not trusted.
    Untrusted,
    /// Likewise; the number behind the pointer is a cookie.
    Cookie,
    /// A new object of a type of the program (`is_bpf_obj_new_kfunc`,
    /// `is_bpf_percpu_obj_new_kfunc`).
    #[doc(alias = "is_bpf_obj_new_kfunc")]
    #[doc(alias = "is_bpf_percpu_obj_new_kfunc")]
    Allocated,
    /// One more reference of such an object (`is_bpf_refcount_acquire_kfunc`).
    #[doc(alias = "is_bpf_refcount_acquire_kfunc")]
    Shared,
    /// The kernel's structure behind the context.
    KernelContext,
    /// An object of the type that its constant names, which is only read.
    ReadOnly,
    /// A part of a dynptr.
    Slice,
}

/// Arguments that Linux sets by instructions in front of a call (`fixup_kfunc_call`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inserted {
    /// None.
    NoArgument,
    /// The special fields of an object, whose address takes two slots.
    Fields,
    /// Likewise, and the size of an object, or the offset of a node
    /// (`__fixup_collection_insert_kfunc`).
    #[doc(alias = "__fixup_collection_insert_kfunc")]
    FieldsAndNumber,
}

/// Properties of a kfunc beside its flags: a column each.
struct Row {
    lock: LockRule,
    effect: Effect,
    result: KfuncResult,
    inserted: Inserted,
}

macro_rules! special_kfuncs {
    ($($id:ident $name:literal $lock:ident $effect:ident $result:ident $inserted:ident
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

            const fn row(self) -> Row {
                match self {
                    $(SpecialKfunc::$id => Row {
                        lock: LockRule::$lock,
                        effect: Effect::$effect,
                        result: KfuncResult::$result,
                        inserted: Inserted::$inserted,
                    },)*
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

// Name; lock, effect, result, arguments that Linux sets.
special_kfuncs! {
    Trap "__bpf_trap" Unlocked Plain ByType NoArgument;
    Throw "bpf_throw" Unlocked Plain ByType NoArgument;
    RcuReadLock "bpf_rcu_read_lock" Unlocked Nothing ByType NoArgument;
    RcuReadUnlock "bpf_rcu_read_unlock" Unlocked Nothing ByType NoArgument;
    PreemptDisable "bpf_preempt_disable" Unlocked Nothing ByType NoArgument;
    PreemptEnable "bpf_preempt_enable" Unlocked Nothing ByType NoArgument;
    CastToKernCtx "bpf_cast_to_kern_ctx" Unlocked Cast KernelContext NoArgument;
    RdonlyCast "bpf_rdonly_cast" Unlocked Cast ReadOnly NoArgument;
    GetKmemCache "bpf_get_kmem_cache" Unlocked Plain Untrusted NoArgument;
    XdpPullData "bpf_xdp_pull_data" Unlocked MovesPacket ByType NoArgument;
    XdpMetadataRxTimestamp "bpf_xdp_metadata_rx_timestamp" Unlocked DeviceBound ByType NoArgument;
    XdpMetadataRxHash "bpf_xdp_metadata_rx_hash" Unlocked DeviceBound ByType NoArgument;
    XdpMetadataRxVlanTag "bpf_xdp_metadata_rx_vlan_tag" Unlocked DeviceBound ByType NoArgument;
    ObjNew "bpf_obj_new_impl" Unlocked Plain Allocated FieldsAndNumber;
    ObjDrop "bpf_obj_drop_impl" Unlocked Plain ByType Fields;
    PercpuObjNew "bpf_percpu_obj_new_impl" Unlocked Plain Allocated FieldsAndNumber;
    PercpuObjDrop "bpf_percpu_obj_drop_impl" Unlocked Plain ByType Fields;
    RefcountAcquire "bpf_refcount_acquire_impl" UnderAnyLock Plain Shared Fields;
    ListPushFront "bpf_list_push_front_impl" UnderAnyLock GivesAway ByType FieldsAndNumber;
    ListPushBack "bpf_list_push_back_impl" UnderAnyLock GivesAway ByType FieldsAndNumber;
    ListPopFront "bpf_list_pop_front" UnderAnyLock Plain ByType NoArgument;
    ListPopBack "bpf_list_pop_back" UnderAnyLock Plain ByType NoArgument;
    ListFront "bpf_list_front" UnderLock Plain ByType NoArgument;
    ListBack "bpf_list_back" UnderLock Plain ByType NoArgument;
    RbtreeAdd "bpf_rbtree_add_impl" UnderAnyLock GivesAway ByType FieldsAndNumber calls RbtreeAdd;
    RbtreeRemove "bpf_rbtree_remove" UnderAnyLock Plain ByType NoArgument;
    RbtreeFirst "bpf_rbtree_first" UnderAnyLock Plain ByType NoArgument;
    RbtreeRoot "bpf_rbtree_root" UnderLock Plain ByType NoArgument;
    RbtreeLeft "bpf_rbtree_left" UnderLock Plain ByType NoArgument;
    RbtreeRight "bpf_rbtree_right" UnderLock Plain ByType NoArgument;
    IterNumNew "bpf_iter_num_new" UnderLock Plain ByType NoArgument;
    IterNumNext "bpf_iter_num_next" UnderLock Plain ByType NoArgument;
    IterNumDestroy "bpf_iter_num_destroy" UnderLock Plain ByType NoArgument;
    IterCssTaskNew "bpf_iter_css_task_new" Unlocked Plain ByType NoArgument;
    DynptrFromSkb "bpf_dynptr_from_skb" Unlocked Plain ByType NoArgument;
    DynptrFromXdp "bpf_dynptr_from_xdp" Unlocked Plain ByType NoArgument;
    DynptrFromSkbMeta "bpf_dynptr_from_skb_meta" Unlocked Plain ByType NoArgument;
    DynptrSlice "bpf_dynptr_slice" Unlocked Plain Slice NoArgument;
    DynptrSliceRdwr "bpf_dynptr_slice_rdwr" Unlocked Plain Slice NoArgument;
    DynptrClone "bpf_dynptr_clone" Unlocked Plain ByType NoArgument;
    LocalIrqSave "bpf_local_irq_save" Unlocked Plain ByType NoArgument;
    LocalIrqRestore "bpf_local_irq_restore" Unlocked Plain ByType NoArgument;
    ResSpinLock "bpf_res_spin_lock" UnderLock TriesLock ByType NoArgument;
    ResSpinUnlock "bpf_res_spin_unlock" UnderLock Plain ByType NoArgument;
    ResSpinLockIrqsave "bpf_res_spin_lock_irqsave" UnderLock TriesLock ByType NoArgument;
    ResSpinUnlockIrqrestore "bpf_res_spin_unlock_irqrestore" UnderLock Plain ByType NoArgument;
    WqSetCallback "bpf_wq_set_callback_impl" Unlocked Plain ByType NoArgument calls Workqueue;
    TaskWorkScheduleSignal "bpf_task_work_schedule_signal_impl" Unlocked Plain ByType NoArgument calls TaskWork;
    TaskWorkScheduleResume "bpf_task_work_schedule_resume_impl" Unlocked Plain ByType NoArgument calls TaskWork;
    SessionCookie "bpf_session_cookie" Unlocked Plain Cookie NoArgument;
}

impl SpecialKfunc {
    /// True if it may be called while a lock is held (`kfunc_spin_allowed`); `more` in kernels that
    /// allow other calls than those of lists and trees.
    #[doc(alias = "kfunc_spin_allowed")]
    pub const fn is_allowed_under_lock(self, more: bool) -> bool {
        match self.row().lock {
            LockRule::Unlocked => false,
            LockRule::UnderLock => more,
            LockRule::UnderAnyLock => true,
        }
    }

    /// True if it may move the packet's bytes (`is_kfunc_pkt_changing`,
    /// `bpf_is_kfunc_pkt_changing`).
    #[doc(alias = "is_kfunc_pkt_changing")]
    #[doc(alias = "bpf_is_kfunc_pkt_changing")]
    pub const fn changes_packet(self) -> bool {
        matches!(self.row().effect, Effect::MovesPacket)
    }

    /// True if it is for programs that are bound to a network device
    /// (`bpf_dev_bound_kfunc_id`).
    #[doc(alias = "bpf_dev_bound_kfunc_id")]
    pub const fn is_device_bound(self) -> bool {
        matches!(self.row().effect, Effect::DeviceBound)
    }

    /// True if it takes a lock, or fails to.
    pub const fn may_fail_to_lock(self) -> bool {
        matches!(self.row().effect, Effect::TriesLock)
    }

    /// True if it puts its second argument into a list or tree (`is_bpf_list_push_kfunc`,
    /// `is_bpf_rbtree_add_kfunc`).
    #[doc(alias = "is_bpf_list_push_kfunc")]
    #[doc(alias = "is_bpf_rbtree_add_kfunc")]
    pub const fn gives_away(self) -> bool {
        matches!(self.row().effect, Effect::GivesAway)
    }

    /// True if it returns an object of a type of the program.
    pub const fn returns_allocated(self) -> bool {
        matches!(
            self.row().result,
            KfuncResult::Allocated | KfuncResult::Shared
        )
    }

    /// What it returns.
    pub const fn result(self) -> KfuncResult {
        self.row().result
    }

    /// Instructions that Linux puts in front of a call, which set arguments of its own: the size of
    /// an object, its special fields, the offset of a node (`fixup_kfunc_call`,
    /// `bpf_fixup_kfunc_call`).
    #[doc(alias = "fixup_kfunc_call")]
    #[doc(alias = "bpf_fixup_kfunc_call")]
    pub const fn argument_insns(self) -> u32 {
        match self.row().inserted {
            Inserted::NoArgument => 0,
            Inserted::Fields => 2,
            Inserted::FieldsAndNumber => 3,
        }
    }

    /// What a call does in a run, if it means something to the verifier only.
    pub const fn erased(self) -> Option<Erased> {
        match self.row().effect {
            Effect::Nothing => Some(Erased::Nothing),
            Effect::Cast => Some(Erased::Argument),
            Effect::Plain
            | Effect::MovesPacket
            | Effect::DeviceBound
            | Effect::TriesLock
            | Effect::GivesAway => None,
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

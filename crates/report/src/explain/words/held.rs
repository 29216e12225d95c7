//! Wording of causes: references, locks, RCU and preemption sections.

use verifier::reason::{Acquired, Cause, Explanation, LockFault, NoteKind};

use super::{Words, list};

pub(super) fn words(explanation: &Explanation) -> Words {
    match &explanation.cause {
        Cause::Leak { acquired, end } => leak(acquired, end),
        Cause::NotAcquired {
            callee,
            number,
            released_by,
        } => match released_by {
            Some(other) => Words::new(
                "released-twice",
                format!("`{callee}` releases what `{other}` already released"),
            )
            .needed("one release for each acquired reference")
            .help("release on one path only, or return right behind the first release"),
            None => Words::new(
                "not-acquired",
                format!("argument {number} of `{callee}` was not acquired, so it cannot be released"),
            )
            .needed("the unmodified result of a call that acquires a reference")
            .help("release only what a lookup or reserve call returned, and only once"),
        },
        Cause::TwoReferences { callee } => Words::new(
            "two-references",
            format!("two arguments of `{callee}` belong to acquired references"),
        )
        .needed("one acquired pointer among the arguments")
        .help("copy one of them to a variable on the stack, and pass its address"),
        Cause::Lock { fault } => lock(explanation, fault),
        Cause::SectionOpen { section, end } => {
            let section = begun_by(explanation, section);
            let unlock = end_of(section);
            Words::new(
                "section-open",
                format!("the path reaches `{end}` inside a section that `{section}` began"),
            )
            .needed(format!("`{unlock}` on every path before it"))
            .help(match &**end {
                "exit" => format!("call `{unlock}` before each return, error paths included"),
                end => format!("call `{unlock}` before `{end}`"),
            })
        }
        Cause::SectionCall {
            callee,
            section,
            is_nested: true,
        } => Words::new(
            "section-nested",
            format!("`{callee}` is called in a section that `{section}` began"),
        )
        .needed("one such section at a time")
        .help(format!("remove the inner `{callee}` and the call that ends it, or end the outer section first")),
        Cause::SectionCall {
            callee, section, ..
        } => Words::new(
            "section-not-open",
            format!("`{callee}` is called outside of a section that `{section}` begins"),
        )
        .needed(format!("`{section}` on every path before it"))
        .help(match end_of(section) == callee {
            true => format!("call `{section}` first, and `{callee}` once for each of them"),
            false => format!("call `{section}` before, and `{}` behind its last use", end_of(section)),
        }),
        Cause::Sleeps { callee, section } => match section {
            Some(section) => {
                let section = begun_by(explanation, section);
                Words::new(
                    "sleeps",
                    format!(
                        "`{callee}` may sleep, and is called in a section that `{section}` began"
                    ),
                )
                .needed("a call outside of the section")
                .help(format!(
                    "call `{}` before it, or use a call that does not sleep",
                    end_of(section)
                ))
            }
            None => Words::new(
                "sleeps",
                format!("`{callee}` may sleep, and this program must not"),
            )
            .needed("a sleepable program")
            .help("mark it sleepable where the type allows it: SEC(\"fentry.s/…\"), SEC(\"lsm.s/…\"), SEC(\"uprobe.s\"), SEC(\"syscall\")"),
        },
        _ => Words::new("other", "the program holds something that it must not hold here"),
    }
}

/// The call that began the section: one of several that begin sections of the kind.
fn begun_by<'e>(explanation: &'e Explanation, section: &'e str) -> &'e str {
    let begun = explanation.notes.iter().find_map(|note| match &note.kind {
        NoteKind::SectionBegun { callee } if !callee.is_empty() => Some(&**callee),
        _ => None,
    });
    begun.unwrap_or(section)
}

/// The call that ends what a call begins.
fn end_of(begin: &str) -> &'static str {
    match begin {
        "bpf_local_irq_save" => "bpf_local_irq_restore",
        "bpf_rcu_read_lock" => "bpf_rcu_read_unlock",
        "bpf_preempt_disable" => "bpf_preempt_enable",
        "bpf_spin_lock" => "bpf_spin_unlock",
        "bpf_res_spin_lock" => "bpf_res_spin_unlock",
        "bpf_res_spin_lock_irqsave" => "bpf_res_spin_unlock_irqrestore",
        _ => "the call that ends it",
    }
}

/// The calls that release what a call acquires.
fn release_of(callee: &str) -> Option<&'static str> {
    Some(match callee {
        "bpf_sk_lookup_tcp" | "bpf_sk_lookup_udp" | "bpf_skc_lookup_tcp" => "bpf_sk_release",
        "bpf_ringbuf_reserve" => "bpf_ringbuf_submit or bpf_ringbuf_discard",
        "bpf_ringbuf_reserve_dynptr" => "bpf_ringbuf_submit_dynptr or bpf_ringbuf_discard_dynptr",
        "bpf_task_acquire" | "bpf_task_from_pid" | "bpf_task_from_vpid" => "bpf_task_release",
        "bpf_cgroup_acquire"
        | "bpf_cgroup_from_id"
        | "bpf_cgroup_ancestor"
        | "bpf_task_get_cgroup1"
        | "scx_bpf_task_cgroup" => "bpf_cgroup_release",
        "bpf_cpumask_create" | "bpf_cpumask_acquire" => "bpf_cpumask_release",
        "bpf_get_task_exe_file" => "bpf_put_file",
        "bpf_lookup_user_key" | "bpf_lookup_system_key" => "bpf_key_put",
        "bpf_crypto_ctx_create" | "bpf_crypto_ctx_acquire" => "bpf_crypto_ctx_release",
        "bpf_skb_ct_lookup" | "bpf_xdp_ct_lookup" => "bpf_ct_release",
        "bpf_obj_new_impl" => "bpf_obj_drop, or a list, tree or kptr that takes it,",
        "bpf_percpu_obj_new_impl" => "bpf_percpu_obj_drop, or a kptr that takes it,",
        "bpf_refcount_acquire_impl" => "bpf_obj_drop, or a list, tree or kptr that takes it,",
        "bpf_list_pop_front" | "bpf_list_pop_back" | "bpf_rbtree_remove" => {
            "bpf_obj_drop, or a list, tree or kptr that takes it,"
        }
        "bpf_kptr_xchg" => "bpf_obj_drop, its release function or bpf_kptr_xchg",
        _ => return None,
    })
}

fn leak(acquired: &[Acquired], end: &str) -> Words {
    let origins = acquired.iter().map(|origin| match origin {
        Acquired::Call(callee) => format!("what `{callee}` returned"),
        Acquired::Argument(name) => format!("the argument `{name}`"),
    });
    let mut origins: Vec<String> = origins.collect();
    origins.dedup();
    let what = list(&origins);
    let is_end = end == "exit";
    let first = acquired.first();
    if let Some(Acquired::Argument(name)) = first {
        return Words::new(
            "leak",
            match is_end {
                true => format!("the path ends without giving {what} away"),
                false => format!("`{end}` is called while {what} is not given away"),
            },
        )
        .needed(format!(
            "a call on every path that takes `{name}`, which the kernel gives with a reference"
        ))
        .help("store it, return it or release it on every path, error paths included");
    }
    let first = match first {
        Some(Acquired::Call(callee)) => &**callee,
        _ => "",
    };
    let iterator = { first.strip_prefix("bpf_iter_") }.and_then(|name| name.strip_suffix("_new"));
    if let Some(name) = iterator {
        let destroy = format!("bpf_iter_{name}_destroy");
        let headline = match is_end {
            true => format!("the path ends with the iterator that `{first}` began"),
            false => format!("`{end}` is called inside the iterator that `{first}` began"),
        };
        return Words::new("leak", headline)
            .needed(format!("{destroy} on every path"))
            .help(format!(
                "call {destroy} before each return and jump out of the loop (bpf_for_each does)"
            ));
    }
    let words = Words::new(
        "leak",
        match is_end {
            true => format!("the path ends without releasing {what}"),
            false => format!("`{end}` is called while {what} is not released"),
        },
    );
    let release = release_of(first).unwrap_or("the call that releases it");
    if first == "bpf_ringbuf_reserve_dynptr" {
        return words
            .needed(format!("{release} on every path"))
            .help(format!(
                "call {release} before each return, also where the reservation failed"
            ));
    }
    words
        .needed(format!(
            "{release} on every path on which the result is not null"
        ))
        .help(match is_end {
            true => format!(
                "call {release} before each return behind the check for null, error paths included"
            ),
            false => format!("call {release} before `{end}`"),
        })
}

fn lock(explanation: &Explanation, fault: &LockFault) -> Words {
    const NAME: &str = "lock";
    let held = explanation
        .notes
        .iter()
        .rev()
        .find_map(|note| match &note.kind {
            NoteKind::Locked { callee } => Some(&**callee),
            _ => None,
        });
    let held = held.unwrap_or("bpf_spin_lock");
    let unlock = end_of(held);
    match fault {
        LockFault::Held { end } => Words::new(
            NAME,
            format!("the path reaches `{end}` while a lock is held"),
        )
        .needed(format!("{unlock} on every path before it"))
        .help("unlock before each return, error paths included"),
        LockFault::Second => Words::new(NAME, "a second lock is taken while one is held")
            .needed("one lock at a time")
            .help("unlock the first before the second is taken"),
        LockFault::Other => Words::new(NAME, "the lock that is released is not the one held")
            .needed("the lock of the same map value, from the same lookup")
            .help("a second lookup of the same key is another value to the verifier: keep the pointer"),
        LockFault::Order => Words::new(
            NAME,
            format!("a lock is released before the one that `{held}` took behind it"),
        )
        .needed("the lock that was taken last")
        .help("unlock in the reverse order of locking"),
        LockFault::NotHeld => Words::new(NAME, "a lock is released that is not held")
            .needed("bpf_spin_lock on this path before")
            .help("the lock is taken on another path only, or was released before"),
        LockFault::Call { callee } => Words::new(
            NAME,
            format!("`{callee}` is called while a lock is held"),
        )
        .needed("only plain instructions, static functions and the unlock inside the lock")
        .help("call it before the lock is taken or behind the unlock; copy what it needs"),
        LockFault::NotLock => Words::new(NAME, "the argument is not at the offset of a lock")
            .needed("the address of a `struct bpf_spin_lock` in a map value: `&value->lock`"),
    }
}

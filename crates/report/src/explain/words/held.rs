//! Wording of causes: references, locks, RCU and preemption sections.

use verifier::reason::{Cause, Explanation, LockFault};

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
        Cause::Lock { fault } => lock(fault),
        Cause::SectionOpen { section, end } => {
            let unlock = match *section {
                "bpf_local_irq_save" => "bpf_local_irq_restore",
                "bpf_rcu_read_lock" => "bpf_rcu_read_unlock",
                "bpf_preempt_disable" => "bpf_preempt_enable",
                _ => "the call that ends it",
            };
            Words::new(
                "section-open",
                format!("the path reaches `{end}` inside a section that `{section}` began"),
            )
            .needed(format!("`{unlock}` on every path before it"))
            .help(format!("call `{unlock}` before each return"))
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
        .help(format!("call `{section}` first; a section ends once")),
        Cause::Sleeps { callee, section } => match section {
            Some(section) => Words::new(
                "sleeps",
                format!("`{callee}` may sleep, and is called in a section that `{section}` began"),
            )
            .needed("a call outside of the section")
            .help("end the section first, or use a call that does not sleep"),
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

/// The calls that release what a call acquires.
fn release_of(callee: &str) -> Option<&'static str> {
    Some(match callee {
        "bpf_sk_lookup_tcp" | "bpf_sk_lookup_udp" | "bpf_skc_lookup_tcp" => "bpf_sk_release",
        "bpf_ringbuf_reserve" => "bpf_ringbuf_submit or bpf_ringbuf_discard",
        "bpf_ringbuf_reserve_dynptr" => "bpf_ringbuf_submit_dynptr or bpf_ringbuf_discard_dynptr",
        "bpf_task_acquire" | "bpf_task_from_pid" | "bpf_task_from_vpid" => "bpf_task_release",
        "bpf_cgroup_acquire" | "bpf_cgroup_from_id" | "bpf_cgroup_ancestor" => "bpf_cgroup_release",
        "bpf_cpumask_create" | "bpf_cpumask_acquire" => "bpf_cpumask_release",
        "bpf_obj_new_impl" => "bpf_obj_drop",
        "bpf_kptr_xchg" => "bpf_obj_drop, its release function or bpf_kptr_xchg",
        _ => return None,
    })
}

fn leak(acquired: &[String], end: &str) -> Words {
    let callees = acquired.iter().map(|callee| format!("`{callee}`"));
    let callees: Vec<String> = callees.collect();
    let words = Words::new(
        "leak",
        match end {
            "exit" => format!(
                "the path ends without releasing what {} returned",
                list(&callees)
            ),
            end => format!(
                "`{end}` is called while what {} returned is not released",
                list(&callees)
            ),
        },
    );
    let first = acquired.first().map_or("", String::as_str);
    let iterator = first.strip_prefix("bpf_iter_");
    if let Some(name) = iterator.and_then(|name| name.strip_suffix("_new")) {
        let end = format!("bpf_iter_{name}_destroy");
        return words.needed(format!("{end} on every path")).help(format!(
            "call {end} before each return and jump out of the loop"
        ));
    }
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
        .help(format!(
            "call {release} before each return behind the check for null, error paths included"
        ))
}

fn lock(fault: &LockFault) -> Words {
    const NAME: &str = "lock";
    match fault {
        LockFault::Held { end } => Words::new(
            NAME,
            format!("the path reaches `{end}` while a lock is held"),
        )
        .needed("bpf_spin_unlock on every path before it")
        .help("unlock before each return, error paths included"),
        LockFault::Second => Words::new(NAME, "a second lock is taken while one is held")
            .needed("one lock at a time")
            .help("unlock the first before the second is taken"),
        LockFault::Other => Words::new(NAME, "the lock that is released is not the one held")
            .needed("the lock of the same map value, from the same lookup")
            .help("a second lookup of the same key is another value to the verifier: keep the pointer"),
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

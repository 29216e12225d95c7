//! Wording of causes: references, locks, RCU and preemption sections.

use verifier::reason::{Acquired, Cause, Explanation, LockFault, NoteKind};

use super::{Words, any_of, list};

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
fn release_of(callee: &str, releases: &[String]) -> String {
    const OBJECT: &str = "bpf_obj_drop, or a list, tree or kptr that takes it,";
    match (callee, releases) {
        ("bpf_ringbuf_reserve", _) => "bpf_ringbuf_submit or bpf_ringbuf_discard".into(),
        ("bpf_ringbuf_reserve_dynptr", _) => {
            "bpf_ringbuf_submit_dynptr or bpf_ringbuf_discard_dynptr".into()
        }
        ("bpf_percpu_obj_new_impl", _) => "bpf_percpu_obj_drop, or a kptr that takes it,".into(),
        ("bpf_kptr_xchg", []) => "bpf_obj_drop or bpf_kptr_xchg".into(),
        ("bpf_kptr_xchg", releases) => format!("{} or bpf_kptr_xchg", releases.join(", ")),
        (_, [_, ..]) => any_of(releases),
        (callee, [])
            if callee.starts_with("bpf_obj_new")
                || callee.starts_with("bpf_refcount_acquire")
                || callee.starts_with("bpf_list_pop")
                || callee.starts_with("bpf_rbtree_remove") =>
        {
            OBJECT.into()
        }
        _ => "the function that releases such an object".into(),
    }
}

fn leak(acquired: &[Acquired], end: &str) -> Words {
    let origins = acquired.iter().map(|origin| match origin {
        Acquired::Call { callee, .. } => format!("what `{callee}` returned"),
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
    let (first, releases): (&str, &[String]) = match first {
        Some(Acquired::Call { callee, releases }) => (callee, releases),
        _ => ("", &[]),
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
    let release = release_of(first, releases);
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
        .help(match &**end {
            "exit" => String::from("unlock before each return, error paths included"),
            end => format!("unlock before `{end}`, or leave it for behind the unlock"),
        }),
        LockFault::Second => Words::new(NAME, "a second lock is taken while one is held")
            .needed("one lock at a time")
            .help("unlock the first before the second is taken"),
        LockFault::Other { callee } if callee != unlock && held != "bpf_spin_lock" => Words::new(
            NAME,
            format!("`{callee}` does not release what `{held}` took"),
        )
        .needed(format!("`{unlock}`"))
        .help(format!("release the lock by `{unlock}`, or take it by the call that belongs to `{callee}`")),
        LockFault::Other { .. } => Words::new(NAME, "the lock that is released is not the one held")
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
        LockFault::Call { callee, is_own } => Words::new(
            NAME,
            format!("`{callee}` is called while a lock is held"),
        )
        .needed("only plain instructions, static functions and the unlock inside the lock")
        .help(match (&**callee, held) {
            _ if *is_own => "declare the function `static`, so that it is verified with the lock held; or call it before the lock is taken or behind the unlock",
            ("bpf_local_irq_restore", "bpf_res_spin_lock_irqsave") => {
                "flags that `bpf_res_spin_lock_irqsave` saved are restored by \
                 `bpf_res_spin_unlock_irqrestore`; restore others behind the unlock"
            }
            _ => "call it before the lock is taken or behind the unlock; copy what it needs",
        }),
        LockFault::NotLock => Words::new(NAME, "the argument is not at the offset of a lock")
            .needed("the address of a `struct bpf_spin_lock` in a map value: `&value->lock`")
            .help("pass the address of the member itself"),
    }
}

//! Wording of causes: references, locks, RCU and preemption sections.

use spec::helpers::HelperId;
use spec::registry::{KfuncFlags, SpecialKfunc};
use verifier::reason::{
    Acquired, Called, Cause, Explanation, LockFault, NoteKind, PathEnd, Section,
};

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
            let (section, unlock) = begun(explanation, *section);
            Words::new(
                "section-open",
                format!("the path reaches `{end}` inside a section that `{section}` began"),
            )
            .needed(format!("`{unlock}` on every path before it"))
            .help(match end {
                PathEnd::Exit => format!("call `{unlock}` before each return, error paths included"),
                end => format!("call `{unlock}` before `{end}`"),
            })
        }
        Cause::SectionCall {
            callee,
            section,
            is_nested: true,
        } => Words::new(
            "section-nested",
            format!("`{callee}` is called in a section that `{}` began", section.calls().0),
        )
        .needed("one such section at a time")
        .help(format!("remove the inner `{callee}` and the call that ends it, or end the outer section first")),
        Cause::SectionCall {
            callee, section, ..
        } => {
            let (begin, end) = section.calls();
            Words::new(
                "section-not-open",
                format!("`{callee}` is called outside of a section that `{begin}` begins"),
            )
            .needed(format!("`{begin}` on every path before it"))
            .help(match end == callee.name {
                true => format!("call `{begin}` first, and `{callee}` once for each of them"),
                false => format!("call `{begin}` before, and `{end}` behind its last use"),
            })
        }
        Cause::Sleeps { callee, section } => match section {
            Some(section) => {
                let (section, end) = begun(explanation, *section);
                Words::new(
                    "sleeps",
                    format!(
                        "`{callee}` may sleep, and is called in a section that `{section}` began"
                    ),
                )
                .needed("a call outside of the section")
                .help(format!(
                    "call `{end}` before it, or use a call that does not sleep"
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

/// The call that began the section, one of several that begin sections of the kind, and the call that
/// ends it.
fn begun(explanation: &Explanation, section: Section) -> (&str, &'static str) {
    let begun = explanation.notes.iter().find_map(|note| match &note.kind {
        NoteKind::SectionBegun { callee } if !callee.name.is_empty() => Some(callee),
        _ => None,
    });
    pair(begun, section)
}

/// A call that begins a section, the usual one if it is not known, and the call that ends it.
fn pair(begun: Option<&Called>, section: Section) -> (&str, &'static str) {
    let (usual, end) = section.calls();
    let end = match begun.and_then(|callee| callee.kfunc) {
        Some(SpecialKfunc::ResSpinLock) => "bpf_res_spin_unlock",
        Some(SpecialKfunc::ResSpinLockIrqsave) => "bpf_res_spin_unlock_irqrestore",
        _ => end,
    };
    (begun.map_or(usual, |callee| &callee.name), end)
}

/// The calls that release what a call acquires.
fn release_of(callee: &Called, releases: &[String]) -> String {
    use SpecialKfunc::{
        ListPopBack, ListPopFront, ObjNew, PercpuObjNew, RbtreeRemove, RefcountAcquire,
    };
    const OBJECT: &str = "bpf_obj_drop, or a list, tree or kptr that takes it,";
    match (callee.helper, callee.kfunc) {
        (Some(HelperId::RingbufReserve), _) => "bpf_ringbuf_submit or bpf_ringbuf_discard".into(),
        (Some(HelperId::RingbufReserveDynptr), _) => {
            "bpf_ringbuf_submit_dynptr or bpf_ringbuf_discard_dynptr".into()
        }
        (_, Some(PercpuObjNew)) => "bpf_percpu_obj_drop, or a kptr that takes it,".into(),
        (Some(HelperId::KptrXchg), _) => match releases {
            [] => "bpf_obj_drop or bpf_kptr_xchg".into(),
            releases => format!("{} or bpf_kptr_xchg", releases.join(", ")),
        },
        _ if !releases.is_empty() => any_of(releases),
        (_, Some(ObjNew | RefcountAcquire | ListPopFront | ListPopBack | RbtreeRemove)) => {
            OBJECT.into()
        }
        _ => "the function that releases such an object".into(),
    }
}

fn leak(acquired: &[Acquired], end: &PathEnd) -> Words {
    let origins = acquired.iter().map(|origin| match origin {
        Acquired::Call { callee, .. } => format!("what `{callee}` returned"),
        Acquired::Argument(name) => format!("the argument `{name}`"),
    });
    let mut origins: Vec<String> = origins.collect();
    origins.dedup();
    let what = list(&origins);
    let is_end = *end == PathEnd::Exit;
    let (first, releases) = match acquired.first() {
        Some(Acquired::Call { callee, releases }) => (callee, releases),
        Some(Acquired::Argument(name)) => {
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
        None => (&Called::default(), &Vec::new()),
    };
    if first.flags.has(KfuncFlags::ITER_NEW) {
        let begin = first.name.strip_suffix("_new");
        let destroy = format!("{}_destroy", begin.unwrap_or(&first.name));
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
    if first.helper == Some(HelperId::RingbufReserveDynptr) {
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
            NoteKind::Locked { callee } => Some(callee),
            _ => None,
        });
    let of_kfunc = held.and_then(|callee| callee.kfunc);
    let (held, unlock) = pair(held, Section::Lock);
    match fault {
        LockFault::Held { end } => Words::new(
            NAME,
            format!("the path reaches `{end}` while a lock is held"),
        )
        .needed(format!("{unlock} on every path before it"))
        .help(match end {
            PathEnd::Exit => String::from("unlock before each return, error paths included"),
            end => format!("unlock before `{end}`, or leave it for behind the unlock"),
        }),
        LockFault::Second => Words::new(NAME, "a second lock is taken while one is held")
            .needed("one lock at a time")
            .help("unlock the first before the second is taken"),
        LockFault::Other { callee } if callee.name != unlock && of_kfunc.is_some() => Words::new(
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
        .help(match (callee.kfunc, of_kfunc) {
            _ if *is_own => "declare the function `static`, so that it is verified with the lock held; or call it before the lock is taken or behind the unlock",
            (Some(SpecialKfunc::LocalIrqRestore), Some(SpecialKfunc::ResSpinLockIrqsave)) => {
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

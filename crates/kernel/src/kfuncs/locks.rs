//! Resilient locks, which report deadlocks in place of waiting for ever, and the state of
//! interrupts, which runs here do not have.

use std::fmt::Write;

use spec::Errno;
use vm::{ModelPort, Opened, Stream};

use super::int;
use crate::call::{Call, Return};

/// `void bpf_local_irq_save(unsigned long *flags__irq_flag)`.
pub(super) fn local_irq_save<M: ModelPort>(Call([flags, ..], memory, _): Call<M>) -> Return<M> {
    save(memory, flags, Opened::IrqFlags)?;
    Ok(0)
}

/// `void bpf_local_irq_restore(unsigned long *flags__irq_flag)`: the last state that was saved
/// and is not restored.
pub(super) fn local_irq_restore<M: ModelPort>(Call([flags, ..], memory, _): Call<M>) -> Return<M> {
    restore(memory, flags, Opened::IrqFlags)?;
    Ok(0)
}

fn save<M: ModelPort>(
    memory: &mut M,
    flags: u64,
    opened: fn(usize) -> Opened,
) -> Result<(), M::Fault> {
    let before = memory.saved_flags();
    memory.open(flags, opened(before))
}

fn restore<M: ModelPort>(
    memory: &mut M,
    flags: u64,
    opened: fn(usize) -> Opened,
) -> Result<(), M::Fault> {
    let last = opened(memory.saved_flags().saturating_sub(1));
    if *memory.opened(flags, last.name())? != last {
        return Err(memory.refuse(format!("{flags:#x} is not the last state that was saved")));
    }
    memory.close(flags, last.name())?;
    Ok(())
}

/// `int bpf_res_spin_lock(struct bpf_res_spin_lock *lock)`: 0; `-EDEADLK` if the run holds it,
/// `-ETIMEDOUT` if another one does not free it. The standard error of the program says which.
pub(super) fn res_spin_lock<M: ModelPort>(Call([lock, ..], memory, _): Call<M>) -> Return<M> {
    take(memory, lock, "bpf_res_spin_lock")
}

/// `void bpf_res_spin_unlock(struct bpf_res_spin_lock *lock)`: frees the lock that was taken
/// last.
pub(super) fn res_spin_unlock<M: ModelPort>(Call([lock, ..], memory, _): Call<M>) -> Return<M> {
    memory.unlock_resilient(lock)?;
    Ok(0)
}

/// `int bpf_res_spin_lock_irqsave(lock, unsigned long *flags__irq_flag)`: as [`res_spin_lock`];
/// saves the state of interrupts with the lock.
pub(super) fn res_spin_lock_irqsave<M: ModelPort>(
    Call([lock, flags, ..], memory, _): Call<M>,
) -> Return<M> {
    let result = take(memory, lock, "bpf_res_spin_lock_irqsave")?;
    if result == 0 {
        save(memory, flags, Opened::LockFlags)?;
    }
    Ok(result)
}

/// `void bpf_res_spin_unlock_irqrestore(lock, unsigned long *flags__irq_flag)`.
pub(super) fn res_spin_unlock_irqrestore<M: ModelPort>(
    Call([lock, flags, ..], memory, _): Call<M>,
) -> Return<M> {
    restore(memory, flags, Opened::LockFlags)?;
    memory.unlock_resilient(lock)?;
    Ok(0)
}

/// Takes a lock, or reports why not; what the function returns.
fn take<M: ModelPort>(memory: &mut M, lock: u64, function: &str) -> Return<M> {
    let Err(errno) = memory.lock_resilient(lock)? else {
        return Ok(0);
    };
    let what = match errno {
        Errno::ETIMEDOUT => "Timeout",
        _ => "AA or ABBA deadlock",
    };
    let held = memory.resilient_locks();
    let mut report = format!(
        "ERROR: {what} detected for {function}\nAttempted lock   = {lock:#x}\n\
         Total held locks = {}\n",
        held.len()
    );
    for (number, held) in held.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(report, "Held lock[{number:2}] = {held:#x}");
    }
    // A full stream loses reports, as in Linux 6.18.
    for line in report.split_inclusive('\n') {
        let _ = memory.streams()?.push(Stream::Error, line.as_bytes());
    }
    Ok(int(errno.negated()))
}

//! Runs a program in an asynchronous task, which owns its handles.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use beebox::{Error, Loader, Map, Object, Program, TestRun};

/// Runs the program on packets; the number of entries of the map then. Nothing in it blocks, and
/// it is `Send + 'static`, so that every executor can spawn it.
async fn watch(program: Program, map: Map, packets: Vec<Vec<u8>>) -> Result<usize, Error> {
    for packet in packets {
        program.test_run(&TestRun::packet(&packet))?;
        give_way().await;
    }
    Ok(map.entries_bytes()?.len())
}

/// Lets other tasks run: a run of a program takes no turn of its executor longer than itself.
fn give_way() -> impl Future<Output = ()> + Send {
    let mut was_here = false;
    std::future::poll_fn(move |cx| match std::mem::replace(&mut was_here, true) {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
}

/// Number of senders that the firewall knows after these packets.
pub(crate) fn senders(path: &str, packets: Vec<Vec<u8>>) -> Result<usize, Error> {
    // Reading the file is all that blocks.
    let instance = Loader::default().load(&Object::open(path)?)?;
    let (program, map) = (instance.program("firewall")?, instance.map("senders")?);
    run(watch(program, map, packets))
}

/// An executor of one task, for which any other can stand.
fn run<T>(task: impl Future<Output = T> + Send + 'static) -> T {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut task = pin!(task);
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1);
    let path = path.ok_or("usage: run_task firewall.bpf.o")?;
    println!("{} senders", senders(&path, vec![vec![0; 64]; 3])?);
    Ok(())
}

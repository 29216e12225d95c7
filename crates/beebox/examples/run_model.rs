//! Runs a tracing program on a task that is given, in a model of the kernel.

use beebox::{Error, KernelModel, Loader, Object, RunClock, TestRun};

/// The number of tasks that waited 64 to 127 microseconds for a processor, of one that waits 100.
pub(crate) fn waited(object: &Object) -> Result<Option<u64>, Error> {
    let instance = Loader::default().models(true).load(object)?;
    let mut model = KernelModel::new(&instance)?;
    model.give("worker", "task_struct { pid: 31 }")?;
    let (wakeup, switch) = (
        instance.program("on_wakeup")?,
        instance.program("on_switch")?,
    );
    wakeup.model_run(&mut model, "{ p: @worker }", &TestRun::default())?;
    let later = TestRun::default().clock(RunClock::Fixed(100_000));
    switch.model_run(&mut model, "{ next: @worker }", &later)?;
    instance.map("latency")?.lookup::<u32, u64>(&6)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1);
    let path = path.ok_or("usage: run_model runqlat.bpf.o")?;
    println!("{:?}", waited(&Object::open(path)?)?);
    Ok(())
}

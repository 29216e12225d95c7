//! Measures calls of the C library beside the same calls in Rust: the loop of a runner, and the test
//! run. They take turns; ratios are those of each round. The entry points of C are called by pointers,
//! as a program in C calls them: nothing is inlined.

use std::ffi::c_int;
use std::hint::black_box;
use std::mem::zeroed;
use std::time::Instant;

use beebox::{Loader, Object, Program, Runner, TestRun};
use beebox_capi::{
    beebox_object__find_program_by_name, beebox_object__load, beebox_object__open,
    beebox_prog_test_run_opts, beebox_program__fd, beebox_runner, beebox_runner__new,
    beebox_runner__run, bpf_test_run_opts,
};

/// Calls of one measurement.
const CALLS: u32 = 20_000;

/// Rounds of measurements.
const ROUNDS: usize = 50;

/// Object of both, and its program.
const OBJECT: &std::ffi::CStr = c"examples/packets/firewall.bpf.o";
const PROGRAM: &std::ffi::CStr = c"firewall";

/// The sides that are measured.
struct Sides {
    program: Program,
    /// A handle of C.
    fd: c_int,
    /// A runner of C.
    runner: *mut beebox_runner,
}

impl Sides {
    fn load() -> Result<Sides, Box<dyn std::error::Error>> {
        let object = Object::open(OBJECT.to_str()?)?;
        let program = Loader::default()
            .load(&object)?
            .program(PROGRAM.to_str()?)?;
        // SAFETY: the texts end with zero bytes, and the object is used until the process ends.
        let (fd, runner) = unsafe {
            let object = beebox_object__open(OBJECT.as_ptr());
            beebox_object__load(object);
            let program = beebox_object__find_program_by_name(object, PROGRAM.as_ptr());
            (beebox_program__fd(program), beebox_runner__new(program, 0))
        };
        if fd < 0 || runner.is_null() {
            return Err("the object is not loaded: run it in the root of the repository".into());
        }
        Ok(Sides {
            program,
            fd,
            runner,
        })
    }

    /// Nanoseconds per call: a runner in Rust and in C, a test run in Rust and in C.
    fn measure(&self, rust: &mut Runner<'_>, packet: &[u8]) -> Result<[f64; 4], beebox::Error> {
        let mut sum = 0_u64;
        let start = Instant::now();
        for _ in 0..CALLS {
            sum += u64::from(rust.run(black_box(packet))?.retval);
        }
        let runner_in_rust = start.elapsed();

        let call: unsafe extern "C" fn(_, _, _, _) -> c_int = black_box(beebox_runner__run);
        let start = Instant::now();
        for _ in 0..CALLS {
            let mut retval = 0;
            let data = black_box(packet).as_ptr().cast();
            // SAFETY: the runner is that of this thread; packet and number live during the call.
            let failed = unsafe { call(self.runner, data, packet.len(), &raw mut retval) };
            sum += u64::from(retval) + failed.unsigned_abs() as u64;
        }
        let runner_in_c = start.elapsed();

        let start = Instant::now();
        for _ in 0..CALLS {
            let run = TestRun::packet(black_box(packet));
            sum += u64::from(self.program.test_run(&run)?.retval);
        }
        let test_in_rust = start.elapsed();

        let call: unsafe extern "C" fn(_, _) -> c_int = black_box(beebox_prog_test_run_opts);
        let mut room = vec![0_u8; packet.len()];
        let start = Instant::now();
        for _ in 0..CALLS {
            // SAFETY: zeros are values of all fields.
            let mut opts: bpf_test_run_opts = unsafe { zeroed() };
            opts.sz = size_of::<bpf_test_run_opts>();
            opts.data_in = black_box(packet).as_ptr().cast();
            opts.data_size_in = packet.len() as u32;
            opts.data_out = room.as_mut_ptr().cast();
            opts.data_size_out = room.len() as u32;
            // SAFETY: what the fields point to lives during the call, and has the sizes beside it.
            let failed = unsafe { call(self.fd, &raw mut opts) };
            sum += u64::from(opts.retval) + failed.unsigned_abs() as u64;
        }
        let test_in_c = start.elapsed();
        black_box(sum);
        let times = [runner_in_rust, runner_in_c, test_in_rust, test_in_c];
        Ok(times.map(|time| time.as_nanos() as f64 / f64::from(CALLS)))
    }
}

/// The median of some numbers.
fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (sides, packet) = (Sides::load()?, [0; 64]);
    let mut runner = sides.program.runner();
    sides.measure(&mut runner, &packet)?;
    let rounds = (0..ROUNDS).map(|_| sides.measure(&mut runner, &packet));
    let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
    println!("{ROUNDS} rounds of {CALLS} calls with 64 bytes, medians:");
    for (what, rust, c) in [("runner", 0, 1), ("test run", 2, 3)] {
        let in_rust = median(rounds.iter().map(|round| round[rust]));
        let in_c = median(rounds.iter().map(|round| round[c]));
        let ratio = median(rounds.iter().map(|round| round[c] / round[rust]));
        println!("{what:8} {in_rust:7.1} ns in Rust, {in_c:7.1} ns in C, {ratio:.2} times");
    }
    Ok(())
}

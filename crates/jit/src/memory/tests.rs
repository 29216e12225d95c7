//! Executable memory: several threads, forked children, resource limits.

use super::regions::{LARGEST_REGION, SMALLEST_REGION};
use super::*;
#[cfg(not(miri))]
use std::arch::asm;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;

use spec::SplitMix;

const ALL: [Writing; 3] = [
    Writing::PersistentView,
    Writing::TemporaryView,
    Writing::OwnPages,
];

fn pool(writing: Writing) -> Pool {
    Pool::with(PoolOptions {
        writing,
        ..PoolOptions::default()
    })
}

/// `mov eax, value; ret`, and then traps up to `size` bytes.
fn constant(pool: &Pool, value: u32, size: usize) -> Image {
    let made = pool.install(size, 16, |bytes, _| write_constant(bytes, value));
    made.expect("there is memory")
}

fn write_constant(bytes: &mut [u8], value: u32) {
    bytes[0] = 0xb8;
    bytes[1..5].copy_from_slice(&value.to_le_bytes());
    bytes[5] = 0xc3;
}

/// Calls an image made by `constant`.
#[cfg(not(miri))]
fn run(image: &Image) -> u32 {
    let value: u64;
    // SAFETY: the code sets eax and returns; the image lives during the call.
    unsafe {
        asm!("call {}", in(reg) image.address(), out("rax") value, clobber_abi("C"));
    }
    value as u32
}

/// Reads an image made by `constant`, as a processor would.
#[cfg(miri)]
fn run(image: &Image) -> u32 {
    let code = image.bytes();
    assert!(code[0] == 0xb8 && code[5] == 0xc3);
    u32::from_le_bytes(code[1..5].try_into().unwrap())
}

/// The mappings of this process: start, end, permissions.
fn mappings() -> Vec<(usize, usize, String)> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let parse = |line: &str| {
        let mut words = line.split(' ');
        let (start, end) = words.next().unwrap().split_once('-').unwrap();
        let number = |digits| usize::from_str_radix(digits, 16).unwrap();
        (number(start), number(end), words.next().unwrap().to_owned())
    };
    maps.lines().map(parse).collect()
}

fn permissions(address: usize) -> Option<String> {
    let mut all = mappings().into_iter();
    all.find(|&(start, end, _)| (start..end).contains(&address))
        .map(|(_, _, permissions)| permissions)
}

/// Set in a process that runs one test.
const ALONE: &str = "BEEBOX_TEST_ALONE";

/// Runs a test of this file in a process of its own, because it changes or inspects the
/// whole process.
fn alone(name: &str, test: impl FnOnce()) {
    if env::var_os(ALONE).is_some() {
        return test();
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("memory::tests::{name}")])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

#[test]
fn code_runs_at_its_final_address() {
    for writing in ALL {
        let pool = pool(writing);
        let mut told = 0;
        let image = pool
            .install(300, 64, |bytes, address| {
                assert!(bytes.len() == 300 && bytes.iter().all(|&byte| byte == TRAP));
                write_constant(bytes, 7);
                told = address;
            })
            .unwrap();
        assert_eq!(told, image.address() as u64);
        assert_eq!(image.len(), 300);
        assert_eq!(&image.bytes()[..6], [0xb8, 7, 0, 0, 0, 0xc3]);
        assert_eq!(image.bytes()[6..], [TRAP; 294]);
        assert_eq!(run(&image), 7, "{writing:?}");
    }
}

#[test]
fn no_address_is_writable_and_executable() {
    for writing in ALL {
        let pool = pool(writing);
        let mut during = Vec::new();
        let image = pool.install(100, 16, |bytes, _| {
            write_constant(bytes, 1);
            during = mappings();
        });
        let image = image.unwrap();
        for (start, end, permissions) in during.into_iter().chain(mappings()) {
            let both = permissions.contains('w') && permissions.contains('x');
            assert!(!both, "{writing:?}: {start:x}-{end:x} {permissions}");
        }
        let found = permissions(image.address() as usize).unwrap();
        assert!(found.starts_with("r-x"), "{writing:?}: {found}");
    }
}

#[test]
fn small_programs_share_pages() {
    for writing in [Writing::PersistentView, Writing::TemporaryView] {
        let pool = pool(writing);
        let images: Vec<Image> = (0..200).map(|value| constant(&pool, value, 60)).collect();
        let pages: BTreeSet<usize> = images
            .iter()
            .map(|image| image.address() as usize / 4096)
            .collect();
        assert_eq!(pages.len(), 200_usize.div_ceil(4096 / 64));
        for (value, image) in (0..).zip(&images) {
            assert_eq!(run(image), value);
        }
    }
}

#[test]
fn what_is_freed_traps_and_is_used_again() {
    for writing in [Writing::PersistentView, Writing::TemporaryView] {
        let pool = pool(writing);
        let first = constant(&pool, 1, 200);
        let hole = constant(&pool, 2, 200);
        let last = constant(&pool, 3, 200);
        let address = hole.address();
        drop(hole);
        // SAFETY: the pages of the hole are those of the images around it.
        let freed = unsafe { slice::from_raw_parts(address, 200) };
        assert!(freed.iter().all(|&byte| byte == TRAP), "{writing:?}");
        let again = constant(&pool, 4, 150);
        assert_eq!(again.address(), address);
        assert_eq!([run(&first), run(&again), run(&last)], [1, 4, 3]);
    }
}

#[test]
fn memory_goes_back_to_the_system() {
    alone("memory_goes_back_to_the_system", watch_memory_go_back);
}

fn watch_memory_go_back() {
    for writing in ALL {
        let pool = pool(writing);
        let keep = constant(&pool, 1, 10);
        let large = constant(&pool, 2, 3 << 20);
        let many: Vec<Image> = (0..300).map(|value| constant(&pool, value, 4000)).collect();
        let addresses: Vec<usize> = many.iter().map(|image| image.address() as usize).collect();
        let at = large.address() as usize;
        assert_eq!(run(&large), 2);
        drop(many);
        drop(large);
        let is_code = |&&address: &&usize| permissions(address).is_some_and(|it| it.contains('x'));
        let held = || {
            let state = pool.0.regions();
            let regions = state.live.iter().flatten();
            regions.map(|region| region.run.len()).sum::<usize>()
        };
        assert!(!is_code(&&at), "{writing:?}");
        // One region may stay beside that of `keep`.
        assert!(held() <= SMALLEST_REGION + LARGEST_REGION);
        assert_eq!(run(&keep), 1);
        drop(keep);
        assert!(held() <= SMALLEST_REGION);
        drop(pool);
        assert_eq!(addresses.iter().filter(is_code).count(), 0, "{writing:?}");
    }
}

#[test]
fn every_alignment_up_to_a_page_is_kept() {
    for writing in ALL {
        let pool = pool(writing);
        let mut held = Vec::new();
        for size in [1, 17, 64, 65, 1000, 4096, 5000] {
            for align in (0..=12).map(|shift| 1 << shift) {
                let image = pool.install(size, align, |_, _| ()).unwrap();
                assert!((image.address() as usize).is_multiple_of(align));
                held.push(image);
            }
        }
        for align in [0, 3, 8192] {
            let refused = pool.install(10, align, |_, _| ()).unwrap_err();
            assert_eq!(refused, MemoryError::BadAlignment { align });
        }
    }
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for writing in ALL {
        let pool = pool(writing);
        assert!(pool.install(0, 16, |_, _| ()).unwrap().is_empty());
        for size in [LARGEST_IMAGE + 1, usize::MAX] {
            let refused = pool.install(size, 16, |_, _| ()).unwrap_err();
            assert_eq!(refused, MemoryError::TooLarge { size });
        }
    }
}

#[test]
fn a_writer_that_panics_frees_what_it_had() {
    for writing in [Writing::PersistentView, Writing::TemporaryView] {
        let pool = pool(writing);
        let first = constant(&pool, 1, 64).address();
        let panics =
            std::panic::AssertUnwindSafe(|| pool.install(64, 64, |_, _| panic!("no code")));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(constant(&pool, 2, 64).address(), first);
    }
}

#[test]
fn images_keep_their_pool() {
    for writing in ALL {
        let image = constant(&pool(writing), 9, 64);
        assert_eq!(run(&image), 9);
    }
}

#[test]
fn threads_install_and_drop_while_others_run() {
    for writing in ALL {
        let pool = pool(writing);
        let steady: Vec<Image> = (0..32).map(|value| constant(&pool, value, 64)).collect();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        for (value, image) in (0..).zip(&steady) {
                            assert_eq!(run(image), value);
                        }
                    }
                });
            }
            let churning: Vec<_> = (0..4)
                .map(|seed| {
                    let pool = pool.clone();
                    scope.spawn(move || churn(&pool, seed))
                })
                .collect();
            for thread in churning {
                thread.join().unwrap();
            }
            done.store(true, Relaxed);
        });
        assert_eq!(
            pool.0.regions().images,
            if writing == Writing::OwnPages { 0 } else { 32 }
        );
    }
}

/// Installs and drops images at random and runs the ones that are left.
fn churn(pool: &Pool, seed: u64) {
    let mut random = SplitMix::new(seed);
    let mut held: Vec<(u32, Image)> = Vec::new();
    let rounds = if cfg!(miri) { 20 } else { 500 };
    for _ in 0..rounds {
        let draw = random.next_u64();
        if held.len() > 20 || draw.is_multiple_of(3) && !held.is_empty() {
            held.swap_remove((draw >> 32) as usize % held.len());
        } else {
            let size = 6 + (draw >> 16) as usize % 3000;
            held.push((draw as u32, constant(pool, draw as u32, size)));
        }
        for (value, image) in &held {
            assert_eq!(run(image), *value);
        }
    }
}

#[test]
fn regions_lie_near_what_code_calls() {
    for writing in ALL {
        let target = run as *const () as usize;
        let pool = Pool::with(PoolOptions {
            writing,
            near: Some(target),
        });
        let held: Vec<Image> = (0..100).map(|_| constant(&pool, 1, 9000)).collect();
        for image in &held {
            let distance = (image.address() as usize).abs_diff(target);
            assert!(distance < 1 << 31, "{writing:?}: {distance:x}");
        }
    }
}

#[test]
fn a_child_has_nothing_and_harms_nothing() {
    let shared = pool(Writing::PersistentView);
    let own = pool(Writing::OwnPages);
    let image = constant(&shared, 1, 64);
    let inherited = constant(&own, 2, 64);
    let writable = shared.0.regions().live[0].unwrap().write.unwrap().start() as usize;
    assert!(permissions(writable).is_some_and(|it| it.contains('w')));
    // SAFETY: the child waits for no other thread of its parent, the allocator aside, which
    // glibc prepares for fork.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let views = [image.address() as usize, writable];
        let is_absent = views.into_iter().all(|view| permissions(view).is_none());
        let is_kept = run(&inherited) == 2;
        drop(image);
        drop(inherited);
        // New images are the child's own, in both pools.
        let anew = [constant(&shared, 3, 64), constant(&own, 4, 64)];
        let runs = [run(&anew[0]), run(&anew[1])] == [3, 4];
        drop(anew);
        drop((shared, own));
        let wrong = [is_absent, is_kept, runs].iter().filter(|&&it| !it).count();
        // SAFETY: it ends the child at once, which has nothing to clean up.
        unsafe { libc::_exit(wrong as i32) };
    }
    let mut status = 0;
    // SAFETY: the pointer is to room of the right type.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
    assert_eq!([run(&image), run(&inherited)], [1, 2]);
    assert_eq!(run(&constant(&shared, 5, 64)), 5);
}

#[test]
fn exhaustion_is_an_error() {
    alone("exhaustion_is_an_error", use_up_the_address_space);
}

fn use_up_the_address_space() {
    for writing in ALL {
        let pool = pool(writing);
        let first = constant(&pool, 1, 64);
        let used = {
            let statm = fs::read_to_string("/proc/self/statm").unwrap();
            let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
            pages * page_size() as u64
        };
        let limit = |bytes| {
            let limit = libc::rlimit {
                rlim_cur: bytes,
                rlim_max: libc::RLIM_INFINITY,
            };
            // SAFETY: the structure is read during the call.
            let answer = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
            assert_eq!(answer, 0);
        };
        limit(used + (16 << 20));
        let mut held = Vec::new();
        let refused = loop {
            match pool.install(100_000, 16, |bytes, _| write_constant(bytes, 2)) {
                Ok(image) => held.push(image),
                Err(error) => break error,
            }
            assert!(held.len() < 10_000);
        };
        let MemoryError::Refused { errno, .. } = refused else {
            panic!("{refused}");
        };
        assert_eq!(errno, libc::ENOMEM, "{writing:?}");
        assert!(refused.to_string().contains("no executable memory"));
        // What is there still runs, and what is freed can be had again.
        assert!(held.len() > 20, "{writing:?}: {}", held.len());
        assert_eq!(run(&first), 1);
        assert!(held.iter().all(|image| run(image) == 2));
        held.truncate(held.len() / 2);
        let again = pool.install(100_000, 16, |bytes, _| write_constant(bytes, 3));
        assert_eq!(run(&again.unwrap()), 3);
        limit(libc::RLIM_INFINITY);
    }
}

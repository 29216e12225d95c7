//! The cost of installing and freeing executable memory: `cargo test -p beebox-jit
//! --release --test it install_cost:: -- --ignored --nocapture`.

use std::time::Instant;

use beebox_jit::memory::{Pool, PoolOptions, Writing};

/// Nanoseconds to install an image of `size` bytes and drop it, in a pool with other
/// images.
fn cost(pool: &Pool, code: &[u8], rounds: u32) -> f64 {
    let install = || pool.install(code.len(), 16, |bytes, _| bytes.copy_from_slice(code));
    let _others: Vec<_> = (0..100).map(|_| install().unwrap()).collect();
    let best = (0..5).map(|_| {
        let start = Instant::now();
        for _ in 0..rounds {
            drop(install().unwrap());
        }
        start.elapsed().as_nanos() as f64 / f64::from(rounds)
    });
    best.fold(f64::INFINITY, f64::min)
}

/// Nanoseconds to install and drop an image in a new pool.
fn cost_alone(options: PoolOptions, code: &[u8], rounds: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..rounds {
        let pool = Pool::with(options);
        let made = pool.install(code.len(), 16, |bytes, _| bytes.copy_from_slice(code));
        drop(made.unwrap());
    }
    start.elapsed().as_nanos() as f64 / f64::from(rounds)
}

#[test]
#[ignore = "measures"]
fn a_persistent_view_is_the_cheapest() {
    println!("ns to install and free an image, by size in bytes");
    for size in [128, 1024, 4096, 65536] {
        let code = vec![0x90; size];
        let of = |writing| {
            let options = PoolOptions {
                writing,
                ..PoolOptions::default()
            };
            cost(&Pool::with(options), &code, 500)
        };
        let kept = of(Writing::PersistentView);
        let passing = of(Writing::TemporaryView);
        let own = of(Writing::OwnPages);
        println!(
            "{size:6}: persistent view {kept:7.0}, temporary view {passing:7.0}, own pages {own:7.0}"
        );
        assert!(kept < passing && kept < own);
        let alone = cost_alone(PoolOptions::default(), &code, 500);
        println!("{:6}  in a new pool each: {alone:7.0}", "");
    }
}

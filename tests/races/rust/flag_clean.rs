// A value is handed over by a flag, there and back: stores with release order are plain `mov`.
// CLEAN
// BUILD rust-O2 rust-O2-nodebug rust-O2-stripped
// TSAN-DIFFERS rustc has no such option in its releases
// TAGS fast
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::thread;

struct Shared {
    value: UnsafeCell<[u64; 6]>,
    ready: AtomicBool,
    answers: AtomicU32,
}
unsafe impl Sync for Shared {}

fn main() {
    let shared = Arc::new(Shared {
        value: UnsafeCell::new([0; 6]),
        ready: AtomicBool::new(false),
        answers: AtomicU32::new(0),
    });
    let gives = {
        let shared = shared.clone();
        thread::spawn(move || {
            for round in 1..=50u32 {
                unsafe { *shared.value.get() = [u64::from(round); 6] };
                shared.ready.store(true, Ordering::Release);
                while shared.answers.load(Ordering::Acquire) != round {
                    thread::yield_now();
                }
            }
        })
    };
    let mut sum = 0;
    for round in 1..=50u32 {
        while !shared.ready.load(Ordering::Acquire) {
            thread::yield_now();
        }
        shared.ready.store(false, Ordering::Relaxed);
        sum += unsafe { (*shared.value.get()).iter().sum::<u64>() };
        shared.answers.store(round, Ordering::Release);
    }
    gives.join().unwrap();
    println!("{sum}");
}

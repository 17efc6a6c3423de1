// A spin lock and a sequence lock of the program's own, in several threads.
// CLEAN
// BUILD rust-O2 rust-O2-nodebug rust-O2-stripped
// TSAN-DIFFERS rustc has no such option in its releases
use std::cell::UnsafeCell;
use std::sync::atomic::{fence, AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

struct Shared {
    taken: AtomicBool,
    total: UnsafeCell<[u64; 4]>,
    sequence: AtomicUsize,
    pair: [AtomicU64; 2],
}
unsafe impl Sync for Shared {}

impl Shared {
    fn add(&self, what: u64) {
        while self
            .taken
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            thread::yield_now();
        }
        unsafe { (*self.total.get()).iter_mut().for_each(|part| *part += what) };
        self.taken.store(false, Ordering::Release);
    }

    // One thread writes.
    fn write(&self, what: u64) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.pair.iter().for_each(|half| half.store(what, Ordering::Relaxed));
        self.sequence.store(sequence + 2, Ordering::Release);
    }

    fn read(&self) -> u64 {
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let pair = [self.pair[0].load(Ordering::Relaxed), self.pair[1].load(Ordering::Relaxed)];
            fence(Ordering::Acquire);
            if before % 2 == 0 && self.sequence.load(Ordering::Relaxed) == before {
                assert!(pair[0] == pair[1]);
                return pair[0];
            }
            thread::yield_now();
        }
    }
}

fn main() {
    let shared = Shared {
        taken: AtomicBool::new(false),
        total: UnsafeCell::new([0; 4]),
        sequence: AtomicUsize::new(0),
        pair: [AtomicU64::new(0), AtomicU64::new(0)],
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..200 {
                    shared.add(round);
                    assert!(shared.read() <= 200);
                }
            });
        }
        (1..=200).for_each(|round| shared.write(round));
    });
    println!("{} {}", unsafe { (*shared.total.get())[3] }, shared.read());
}

// Words for which loops wait that do nothing but yield or sleep, without debug info: the function is
// the program's own, at an address that is loaded ahead of the loop.
// CLEAN
// BUILD rust-O2-nodebug rust-O2-stripped
// OPTIONS --explain
// SAYS     no debug info: a loop that does nothing else waits for the word
// TSAN-DIFFERS rustc has no such option in its releases
// TAGS fast
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

static READY: AtomicBool = AtomicBool::new(false);
static mut VALUE: [u64; 4] = [0; 4];

fn main() {
    let gives = thread::spawn(|| {
        for index in 0..4 {
            unsafe { VALUE[index] = index as u64 };
        }
        READY.store(true, Ordering::Release);
    });
    let takes = thread::spawn(|| {
        while !READY.load(Ordering::Acquire) {
            thread::yield_now();
        }
        (0..4).map(|index| unsafe { VALUE[index] }).sum::<u64>()
    });
    println!("{}", takes.join().unwrap());
    gives.join().unwrap();
}

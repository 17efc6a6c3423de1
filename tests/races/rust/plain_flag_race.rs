// Unsafe code tells another thread something by a variable that is no atomic one. Without debug info
// a plain load and a plain store of Rust count as atomic operations where they meet, but for --plain.
// RACE read-write global:plain_flag_race::READY a b
// BUILD rust-O2 rust-O2-nodebug
// OPTIONS --plain=plain_flag_race::READY
// TSAN-DIFFERS rustc has no such option in its releases
use std::thread;
include!("meet.inc");

static mut READY: u32 = 0;

#[inline(never)]
fn give(value: u32) {
    unsafe { READY = value };  // [a]
}

#[inline(never)]
fn take() -> u32 {
    unsafe { READY }  // [b]
}

fn main() {
    let gives = thread::spawn(|| {
        meet(0);
        give(std::process::id()) // no constant, or the variable would become a bool
    });
    let takes = thread::spawn(|| {
        meet(1);
        assert_ne!(take(), 1);
    });
    gives.join().unwrap();
    takes.join().unwrap();
    println!("done");
}

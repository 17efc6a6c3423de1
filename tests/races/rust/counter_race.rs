// Unsafe code counts without a lock: no atomic operation is compiled to one instruction that reads
// and writes and has no lock prefix.
// RACE any global:counter_race::COUNTER a a
// BUILD rust-O2 rust-O2-nodebug
// TSAN-DIFFERS rustc has no such option in its releases
// TAGS fast
use std::thread;
include!("meet.inc");

static mut COUNTER: u64 = 0;

#[inline(never)]
fn count() {
    unsafe { COUNTER += 1 }  // [a]
}

fn main() {
    let threads: Vec<_> = (0..2)
        .map(|number| {
            thread::spawn(move || {
                meet(number);
                count()
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    println!("done");
}

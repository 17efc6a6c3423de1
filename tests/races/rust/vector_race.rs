// Two threads write the same 32 bytes, 16 at a time, which no plain instruction does atomically.
// RACE write-write global:vector_race::CELL a a
// BUILD rust-O2 rust-O2-nodebug
// TSAN-DIFFERS rustc has no such option in its releases
use std::cell::UnsafeCell;
use std::thread;
include!("meet.inc");

#[repr(align(16))]
struct Cell(UnsafeCell<[u8; 32]>);
unsafe impl Sync for Cell {}
static CELL: Cell = Cell(UnsafeCell::new([0; 32]));

#[inline(never)]
fn fill(what: u8) {
    unsafe { *CELL.0.get() = [what; 32] };  // [a]
}

fn main() {
    let threads: Vec<_> = (0..2)
        .map(|number| {
            thread::spawn(move || {
                meet(number);
                fill(number as u8)
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    println!("{}", unsafe { (*CELL.0.get())[31] } < 2);
}

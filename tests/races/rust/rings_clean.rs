// Rings in memory that goes from one thread to the other and back while both are in the code cache:
// what they store again after that is no repetition. Nothing is known yet of any ring's code and
// memory.
// CLEAN
// BUILD rust-O2-nodebug rust-O2-stripped
// OPTIONS --hot-after=20
// TSAN-DIFFERS rustc has no such option in its releases
include!("ring.inc");

fn anew<const WHICH: u64>() -> u64 {
    exchange::<WHICH>(Box::leak(Box::default()))
}

fn main() {
    let exchanges = [anew::<1>, anew::<2>, anew::<3>, anew::<4>, anew::<5>, anew::<6>];
    println!("{}", exchanges.iter().map(|exchange| exchange()).sum::<u64>());
}

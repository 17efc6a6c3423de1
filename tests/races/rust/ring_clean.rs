// A ring on the stack of its reader.
// CLEAN
// BUILD rust-O2 rust-O2-nodebug rust-O2-stripped
// TSAN-DIFFERS rustc has no such option in its releases
// TAGS fast
include!("ring.inc");

fn main() {
    println!("{}", exchange::<0>(&Ring::default()));
}

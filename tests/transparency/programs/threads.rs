use std::sync::{mpsc, Arc, Mutex};
use std::thread;

fn main() {
    let sum = Arc::new(Mutex::new(0u64));
    let handles: Vec<_> = (0..8u64)
        .map(|i| {
            let sum = Arc::clone(&sum);
            thread::spawn(move || (0..1000).for_each(|_| *sum.lock().unwrap() += i))
        })
        .collect();
    handles.into_iter().for_each(|h| h.join().unwrap());
    println!("sum {}", sum.lock().unwrap());
    let (tx, rx) = mpsc::channel();
    thread::scope(|s| {
        for i in 0..4u64 {
            let tx = tx.clone();
            s.spawn(move || (0..100).for_each(|k| tx.send(i * k).unwrap()));
        }
        drop(tx);
        println!("channel {}", rx.iter().sum::<u64>());
    });
    println!("panicked {}", thread::spawn(|| std::panic::resume_unwind(Box::new(1))).join().is_err());
}

// The standard library's channels, locks, lazy values and parking, inlined into the program.
// CLEAN
// BUILD rust-O2 rust-O2-nodebug rust-O2-stripped
// TSAN-DIFFERS rustc has no such option in its releases
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, Once, RwLock};
use std::thread;

static COUNT: AtomicUsize = AtomicUsize::new(0);
static ONCE: Once = Once::new();
static STARTED: AtomicUsize = AtomicUsize::new(0);

fn main() {
    let (sender, receiver) = mpsc::channel::<Box<u64>>();
    let (short_sender, short_receiver) = mpsc::sync_channel::<String>(3);
    let (meeting_sender, meeting_receiver) = mpsc::sync_channel::<[u64; 5]>(0);
    let map = Arc::new(Mutex::new(HashMap::new()));
    let table = Arc::new(RwLock::new(vec![0u32; 8]));
    let all = Arc::new((Mutex::new(0), Condvar::new(), Barrier::new(3)));
    let mut threads = vec![];
    for number in 0..3u64 {
        let (sender, short_sender) = (sender.clone(), short_sender.clone());
        let meeting_sender = meeting_sender.clone();
        let (map, table, all) = (map.clone(), table.clone(), all.clone());
        threads.push(thread::spawn(move || {
            all.2.wait();
            ONCE.call_once(|| STARTED.store(1, Ordering::Relaxed));
            for round in 0..40u64 {
                map.lock().unwrap().insert(round, number);
                table.write().unwrap()[round as usize % 8] += 1;
                assert!(table.read().unwrap()[round as usize % 8] > 0);
                sender.send(Box::new(round)).unwrap();
                COUNT.fetch_add(1, Ordering::Relaxed);
            }
            short_sender.send(format!("thread {number}")).unwrap();
            drop((sender, short_sender));
            meeting_sender.send([number; 5]).unwrap();
            *all.0.lock().unwrap() += 1;
            all.1.notify_all();
        }));
    }
    drop((sender, short_sender, meeting_sender));
    let sum: u64 = receiver.iter().map(|value| *value).sum();
    let length: usize = short_receiver.iter().map(|text| text.len()).sum();
    let met: u64 = meeting_receiver.iter().map(|numbers| numbers[4]).sum();
    let mut done = all.0.lock().unwrap();
    while *done < 3 {
        done = all.1.wait(done).unwrap();
    }
    drop(done);
    let (main, woken) = (thread::current(), Arc::new(AtomicBool::new(false)));
    let wakes = woken.clone();
    threads.push(thread::spawn(move || {
        wakes.store(true, Ordering::Release);
        main.unpark();
    }));
    while !woken.load(Ordering::Acquire) {
        thread::park();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    println!("{sum} {length} {met} {} {}", COUNT.load(Ordering::Relaxed), STARTED.load(Ordering::Relaxed));
}

// Clean: the Rust standard library's ways of synchronising, each guarding plain data.
use std::cell::UnsafeCell;
use std::sync::atomic::{fence, AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, Once, RwLock, Weak};
use std::thread;

struct Plain<T>(UnsafeCell<T>);
unsafe impl<T> Sync for Plain<T> {}
impl<T> Plain<T> {
    const fn new(value: T) -> Self { Plain(UnsafeCell::new(value)) }
    #[allow(clippy::mut_from_ref)]
    fn get(&self) -> &mut T { unsafe { &mut *self.0.get() } }
}

static ONCE: Once = Once::new();
static SET_ONCE: Plain<u64> = Plain::new(0);
static FLAG: AtomicBool = AtomicBool::new(false);
static PUBLISHED: Plain<u64> = Plain::new(0);
static SPIN: AtomicBool = AtomicBool::new(false);
static SPUN: Plain<u64> = Plain::new(0);
static NEXT: AtomicUsize = AtomicUsize::new(0);
static SERVING: AtomicUsize = AtomicUsize::new(0);
static TICKETED: Plain<u64> = Plain::new(0);
static HEAD: AtomicPtr<Node> = AtomicPtr::new(std::ptr::null_mut());
static FENCED: AtomicBool = AtomicBool::new(false);
static BEHIND_FENCE: Plain<u64> = Plain::new(0);

struct Node { value: u64, next: *mut Node }

fn mutex_and_condvar() -> u64 {
    let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
    let producers: Vec<_> = (0..3u64).map(|i| {
        let shared = shared.clone();
        thread::spawn(move || for k in 0..50 {
            shared.0.lock().unwrap().push(i * 100 + k);
            shared.1.notify_one();
        })
    }).collect();
    let mut sum = 0;
    for _ in 0..150 {
        let mut queue = shared.0.lock().unwrap();
        while queue.is_empty() { queue = shared.1.wait(queue).unwrap(); }
        sum += queue.pop().unwrap();
    }
    producers.into_iter().for_each(|p| p.join().unwrap());
    sum
}

fn rwlock() -> u64 {
    let map = RwLock::new(std::collections::HashMap::new());
    thread::scope(|s| {
        for i in 0..2u64 {
            let map = &map;
            s.spawn(move || for k in 0..40 { map.write().unwrap().insert(i * 40 + k, k); });
        }
        for _ in 0..2 {
            s.spawn(|| for k in 0..80u64 { let _ = map.read().unwrap().get(&k).copied(); });
        }
    });
    let map = map.read().unwrap();
    map.values().sum()
}

fn once() -> u64 {
    let threads: Vec<_> = (0..4).map(|_| thread::spawn(|| {
        ONCE.call_once(|| *SET_ONCE.get() = 7);
        *SET_ONCE.get()
    })).collect();
    threads.into_iter().map(|t| t.join().unwrap()).sum()
}

fn channels() -> u64 {
    let (tx, rx) = mpsc::channel::<Box<[u64; 4]>>();
    let (stx, srx) = mpsc::sync_channel::<Vec<u64>>(2);
    let (rtx, rrx) = mpsc::sync_channel::<String>(0);
    thread::scope(|s| {
        for i in 0..3u64 {
            let tx = tx.clone();
            s.spawn(move || (0..100).for_each(|k| tx.send(Box::new([i, k, i * k, 1])).unwrap()));
        }
        drop(tx);
        let mid = s.spawn(move || {
            for array in rx { stx.send(array.to_vec()).unwrap(); }
        });
        let end = s.spawn(move || srx.iter().map(|v| v.iter().sum::<u64>()).sum::<u64>());
        s.spawn(move || (0..20).for_each(|k| rtx.send(format!("{k}")).unwrap()));
        let strings: u64 = rrx.iter().map(|t| t.parse::<u64>().unwrap()).sum();
        mid.join().unwrap();
        end.join().unwrap() + strings
    })
}

fn park() -> u64 {
    let cell = Arc::new(Plain::new(0u64));
    let ready = Arc::new(AtomicBool::new(false));
    let (c, r) = (cell.clone(), ready.clone());
    let sleeper = thread::spawn(move || {
        while !r.load(Acquire) { thread::park(); }
        *c.get()
    });
    *cell.get() = 11;
    ready.store(true, Release);
    sleeper.thread().unpark();
    sleeper.join().unwrap()
}

fn barrier() -> u64 {
    let barrier = Barrier::new(3);
    let cells: Vec<Plain<u64>> = (0..3).map(|_| Plain::new(0)).collect();
    let sum = AtomicU64::new(0);
    thread::scope(|s| for me in 0..3 {
        let (barrier, cells, sum) = (&barrier, &cells, &sum);
        s.spawn(move || for round in 0..10u64 {
            *cells[me].get() = round + me as u64;
            barrier.wait();
            sum.fetch_add(*cells[(me + 1) % 3].get(), Relaxed);
            barrier.wait();
        });
    });
    sum.load(Relaxed)
}

fn atomics() -> u64 {
    thread::scope(|s| {
        s.spawn(|| { *PUBLISHED.get() = 5; FLAG.store(true, Release); });
        s.spawn(|| { *BEHIND_FENCE.get() = 6; fence(Release); FENCED.store(true, Relaxed); });
        for _ in 0..3 {
            s.spawn(|| for _ in 0..50 {
                while SPIN.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() { thread::yield_now(); }
                *SPUN.get() += 1;
                SPIN.store(false, Release);
                let ticket = NEXT.fetch_add(1, Relaxed);
                while SERVING.load(Acquire) != ticket { thread::yield_now(); }
                *TICKETED.get() += 1;
                SERVING.store(ticket + 1, Release);
            });
        }
        for i in 0..2u64 {
            s.spawn(move || for k in 0..50 {
                let node = Box::into_raw(Box::new(Node { value: i * 50 + k, next: std::ptr::null_mut() }));
                let mut head = HEAD.load(Relaxed);
                loop {
                    unsafe { (*node).next = head };
                    match HEAD.compare_exchange_weak(head, node, Release, Relaxed) { Ok(_) => break, Err(now) => head = now }
                }
            });
        }
        let popper = s.spawn(|| {
            let (mut sum, mut seen) = (0, 0);
            while seen < 100 {
                let mut node = HEAD.swap(std::ptr::null_mut(), Acquire);
                if node.is_null() { thread::yield_now(); }
                while !node.is_null() {
                    let owned = unsafe { Box::from_raw(node) };
                    sum += owned.value;
                    seen += 1;
                    node = owned.next;
                }
            }
            sum
        });
        while !FLAG.load(Acquire) { thread::yield_now(); }
        while !FENCED.load(Relaxed) { thread::yield_now(); }
        fence(Acquire);
        *PUBLISHED.get() + *BEHIND_FENCE.get() + popper.join().unwrap()
    }) + *SPUN.get() + *TICKETED.get()
}

fn counts() -> u64 {
    let object = Arc::new(vec![1u64, 2, 3]);
    let weak: Weak<Vec<u64>> = Arc::downgrade(&object);
    let threads: Vec<_> = (0..4).map(|_| {
        let object = object.clone();
        let weak = weak.clone();
        thread::spawn(move || {
            let sum: u64 = object.iter().sum();
            drop(object);
            sum + weak.upgrade().map_or(0, |o| o.len() as u64 * 0)
        })
    }).collect();
    drop(object);
    threads.into_iter().map(|t| t.join().unwrap()).sum()
}

fn thread_locals() -> u64 {
    thread_local!(static LOCAL: std::cell::RefCell<Vec<u64>> = std::cell::RefCell::new(Vec::new()));
    let threads: Vec<_> = (0..3u64).map(|i| thread::Builder::new().name(format!("local {i}")).spawn(move || {
        for k in 0..10 { LOCAL.with(|l| l.borrow_mut().push(i * k)); }
        LOCAL.with(|l| l.borrow().iter().sum::<u64>())
    }).unwrap()).collect();
    threads.into_iter().map(|t| t.join().unwrap()).sum()
}

fn poison() -> bool {
    let mutex = Arc::new(Mutex::new(0));
    let other = mutex.clone();
    let _ = thread::spawn(move || { let _guard = other.lock().unwrap(); std::panic::resume_unwind(Box::new(1)) }).join();
    let poisoned = mutex.lock().is_err();
    poisoned
}

fn main() {
    println!("condvar {}", mutex_and_condvar());
    println!("rwlock {}", rwlock());
    println!("once {}", once());
    println!("channels {}", channels());
    println!("park {}", park());
    println!("barrier {}", barrier());
    println!("atomics {}", atomics());
    println!("counts {}", counts());
    println!("locals {}", thread_locals());
    println!("poisoned {}", poison());
}

// Rings with one writer and one reader, whose two places are only ever loaded and stored, in memory
// that goes from one thread to the other and back while both are in the code cache: what they store
// again after that is no repetition.
// CLEAN
// BUILD rust-O2-nodebug rust-O2-stripped
// OPTIONS --hot-after=20
// TSAN-DIFFERS rustc has no such option in its releases
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const SLOTS: usize = 8;

#[derive(Clone, Copy, Default)]
struct Message {
    number: u64,
    text: [u8; 24],
}

struct Ring {
    slots: [UnsafeCell<Message>; SLOTS],
    written: AtomicUsize,
    read: AtomicUsize,
}
unsafe impl Sync for Ring {}

impl Ring {
    fn push(&self, message: Message) -> bool {
        let written = self.written.load(Ordering::Relaxed);
        if written - self.read.load(Ordering::Acquire) == SLOTS {
            return false;
        }
        unsafe { *self.slots[written % SLOTS].get() = message };
        self.written.store(written + 1, Ordering::Release);
        true
    }

    fn pop(&self) -> Option<Message> {
        let read = self.read.load(Ordering::Relaxed);
        if self.written.load(Ordering::Acquire) == read {
            return None;
        }
        let message = unsafe { *self.slots[read % SLOTS].get() };
        self.read.store(read + 1, Ordering::Release);
        Some(message)
    }
}

// Each WHICH has code of its own, of which nothing is known yet.
fn exchange<const WHICH: u64>() -> u64 {
    // Nor of the memory.
    let ring: &'static Ring = Box::leak(Box::new(Ring {
        slots: Default::default(),
        written: AtomicUsize::new(0),
        read: AtomicUsize::new(0),
    }));
    const MESSAGES: u64 = 1000;
    let mut sum = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..MESSAGES {
                let message = Message { number: number ^ WHICH, text: [number as u8; 24] };
                while !ring.push(message) {
                    thread::yield_now();
                }
            }
        });
        for number in 0..MESSAGES {
            let message = loop {
                match ring.pop() {
                    Some(message) => break message,
                    None => thread::yield_now(),
                }
            };
            assert!(message.number == number ^ WHICH && message.text[23] == number as u8);
            sum += message.number;
        }
    });
    sum
}

fn main() {
    let exchanges = [
        exchange::<1>, exchange::<2>, exchange::<3>,
        exchange::<4>, exchange::<5>, exchange::<6>,
    ];
    println!("{}", exchanges.iter().map(|exchange| exchange()).sum::<u64>());
}

// A ring with one writer and one reader, whose two places are only ever loaded and stored.
// CLEAN
// BUILD rust-O2 rust-O2-nodebug rust-O2-stripped
// TSAN-DIFFERS rustc has no such option in its releases
// TAGS fast
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

fn main() {
    let ring = Ring {
        slots: Default::default(),
        written: AtomicUsize::new(0),
        read: AtomicUsize::new(0),
    };
    const MESSAGES: u64 = 1000;
    let mut sum = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..MESSAGES {
                let message = Message { number, text: [number as u8; 24] };
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
            assert!(message.number == number && message.text[23] == number as u8);
            sum += message.number;
        }
    });
    println!("{sum}");
}

"""Locks, conditions, queues, events, barriers, thread-local data and many short threads."""
import concurrent.futures
import hashlib
import queue
import threading

total = 0
lock = threading.Lock()


def add(n):
    global total
    for _ in range(n):
        with lock:
            total += 1


threads = [threading.Thread(target=add, args=(3000,)) for _ in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("total", total)

q, out = queue.Queue(10), []


def worker():
    while (item := q.get()) is not None:
        digest = hashlib.sha256(bytes([item % 256]) * 100000).hexdigest()  # without the interpreter lock
        with lock:
            out.append((item, digest[:8]))


threads = [threading.Thread(target=worker) for _ in range(4)]
for t in threads:
    t.start()
for i in range(200):
    q.put(i)
for _ in threads:
    q.put(None)
for t in threads:
    t.join()
print("digests", hashlib.md5(repr(sorted(out)).encode()).hexdigest())

barrier, local, seen = threading.Barrier(5), threading.local(), []


def meet(i):
    local.x = i
    for _ in range(20):
        barrier.wait()
    with lock:
        seen.append(local.x)


threads = [threading.Thread(target=meet, args=(i,)) for i in range(5)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("barrier", sorted(seen))

with concurrent.futures.ThreadPoolExecutor(6) as pool:
    print("pool", sum(pool.map(lambda x: x * x, range(500))))

event = threading.Event()
print("event", event.wait(0.05))
timer = threading.Timer(0.02, event.set)
timer.start()
print("timer", event.wait(20))

for _ in range(200):
    t = threading.Thread(target=lambda: None)
    t.start()
    t.join()
print("short threads", threading.active_count())

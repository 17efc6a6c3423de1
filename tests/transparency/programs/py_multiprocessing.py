"""Pools, queues, shared memory and all three start methods."""
import multiprocessing as mp
from multiprocessing import shared_memory


def square(x):
    return x * x


def fill(name, start):
    memory = shared_memory.SharedMemory(name)
    for i in range(start, start + 100):
        memory.buf[i] = i % 256
    memory.close()


def feed(q):
    for i in range(10):
        q.put(i * "x")


if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = mp.get_context(method)
        with context.Pool(2) as pool:
            print(method, sum(pool.map(square, range(200))))
    context = mp.get_context("fork")
    memory = shared_memory.SharedMemory(create=True, size=400)
    processes = [context.Process(target=fill, args=(memory.name, i * 100)) for i in range(4)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    print("shared", bytes(memory.buf[:400]) == bytes(i % 256 for i in range(400)), [p.exitcode for p in processes])
    memory.close()
    memory.unlink()
    q = context.Queue()
    p = context.Process(target=feed, args=(q,))
    p.start()
    print("queue", [len(q.get()) for _ in range(10)])
    p.join()
    with context.Manager() as manager:
        table = manager.dict()
        table["k"] = [1, 2]
        print("manager", dict(table))

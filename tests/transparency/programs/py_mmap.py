"""Mappings of files and of nothing, shared over fork, resized, protected, advised."""
import mmap
import os

with open("mapped", "w+b") as file:
    file.write(b"0123456789" * 1000)
    file.flush()
    with mmap.mmap(file.fileno(), 0) as m:
        m[10:20] = b"abcdefghij"
        print(m.find(b"fgh"), m[:30])
        m.flush()
        m.resize(20000)
        m[19990:] = b"z" * 10
        m.move(0, 10, 10)
    file.seek(0)
    print(file.read(20), os.fstat(file.fileno()).st_size)
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as m:
        m[0] = 33
        print(m[0], os.pread(file.fileno(), 1, 0))
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as m:
        try:
            m[0] = 1
        except TypeError as error:
            print(error)
anonymous = mmap.mmap(-1, 8192)
if os.fork() == 0:
    anonymous[:6] = b"shared"
    os._exit(0)
os.wait()
print(anonymous[:6].decode())
private = mmap.mmap(-1, 8192, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
private[:3] = b"own"
if os.fork() == 0:
    private[:3] = b"not"
    os._exit(0)
os.wait()
print(private[:3])
private.madvise(mmap.MADV_DONTNEED)
print(private[:3])
huge = mmap.mmap(-1, 1 << 38, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE
huge[1 << 37] = 7
print(huge[1 << 37], huge[(1 << 38) - 1])

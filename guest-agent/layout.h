// Guest address-space layout and entry points shared by the agent's assembly and the monitor.
// Only preprocessor constants here, so that agent.S can include it.
#pragma once

// The agent lies in the low 2 GiB, so that its code reaches its data with absolute 32-bit operands.
// The monitor reserves [TRAPLINE_AGENT_BASE, TRAPLINE_AGENT_END) in its own address space: the
// program can never map memory there.
// Ends below 0x7fff7000, where programs built with AddressSanitizer must have their shadow.
#define TRAPLINE_AGENT_BASE 0x7fe00000
#define TRAPLINE_AGENT_END 0x7fff0000

// Code: readable and executable in ring 3, the same page in every page table.
#define TRAPLINE_AGENT_CODE 0x7fe00000
#define TRAPLINE_AGENT_REPEATS 0x7fe02000  // behind it: repeats.cpp, elements.cpp

// One page all threads share, writable: the sequence number of the next event.
#define TRAPLINE_SHARED_PAGE 0x7fe80000
// And futexes (hypervisor/futexes.h): whether threads may wait that are not counted there; how many
// do in the kernel, for each hash of a futex's address.
#define TRAPLINE_FUTEX_UNKNOWN_WAITERS (TRAPLINE_SHARED_PAGE + 0x400)
// Threads that are in no system call, less the processors there are; signed.
#define TRAPLINE_FUTEX_CROWD (TRAPLINE_SHARED_PAGE + 0x440)
#define TRAPLINE_FUTEX_WAITERS (TRAPLINE_SHARED_PAGE + 0x800)
#define TRAPLINE_FUTEX_WAITERS_MASK 0x7fc  // of the address: the offset in bytes

// The thread page region: one virtual address, other memory in each thread's page table.
#define TRAPLINE_THREAD_PAGE 0x7fe90000
#define TRAPLINE_FAULT_STACK_TOP (TRAPLINE_THREAD_PAGE + 0x2000)      // IST 1: #PF
#define TRAPLINE_EXCEPTION_STACK_TOP (TRAPLINE_THREAD_PAGE + 0x3000)  // IST 2: every other vector
// What uses that stack otherwise begins below what an exception pushes.
#define TRAPLINE_AGENT_STACK_TOP (TRAPLINE_EXCEPTION_STACK_TOP - 256)
#define TRAPLINE_VECTOR_STATE (TRAPLINE_THREAD_PAGE + 0x4000)  // XSAVE image, 64-byte aligned
#define TRAPLINE_VECTOR_STATE_SIZE 0x4000
// Events of the thread that the monitor has not seen yet: a ring of TRAPLINE_QUEUE_ENTRIES (a power
// of two) entries.
#define TRAPLINE_EVENT_QUEUE (TRAPLINE_THREAD_PAGE + 0x8000)
#define TRAPLINE_QUEUE_ENTRIES 16384
#define TRAPLINE_QUEUE_ENTRY_SIZE 40
// The code cache's part (translator/cache_thread.h); the monitor checks the offsets.
#define TRAPLINE_CACHE_THREAD (TRAPLINE_THREAD_PAGE + 0xb0000)
#define TRAPLINE_CACHE_FILTER (TRAPLINE_CACHE_THREAD + 0x10000)  // reads; writes follow
#define TRAPLINE_CACHE_FILTER_PLANE 0x40000                      // bytes of each
#define TRAPLINE_CACHE_FS_BASE (TRAPLINE_CACHE_THREAD + 0x900b0)
#define TRAPLINE_CACHE_PROGRAM_RSP (TRAPLINE_CACHE_THREAD + 0x90080)
#define TRAPLINE_CACHE_ACCESS_ADDRESS (TRAPLINE_CACHE_THREAD + 0x90088)
#define TRAPLINE_CACHE_SIGNATURE (TRAPLINE_CACHE_THREAD + 0x900c0)
#define TRAPLINE_CACHE_NEXT_FRAME (TRAPLINE_CACHE_THREAD + 0x90100)
#define TRAPLINE_CACHE_LEAVE_REQUESTED (TRAPLINE_CACHE_THREAD + 0x90108)
#define TRAPLINE_CACHE_LEAVE_AFTER (TRAPLINE_CACHE_THREAD + 0x90110)
#define TRAPLINE_FRAME_BITS 12  // log2 of the number of frames, of 16 bytes each
#define TRAPLINE_THREAD_PAGES 0x150
// Of an access site (translator/code_cache.h).
#define TRAPLINE_SITE_SIZE 8
#define TRAPLINE_SITE_READ 12
#define TRAPLINE_SITE_WRITE 13
#define TRAPLINE_SITE_ATOMIC 14
#define TRAPLINE_SITE_REPORT 18
#define TRAPLINE_SITE_REPEATED 19
#define TRAPLINE_SITE_ELEMENTS 255  // there: AccessSite::kElements
#define TRAPLINE_SITE_PLAIN 20
#define TRAPLINE_SITE_LEAVES_OUT 21
#define TRAPLINE_SITE_COLD 22
// Of a register file (translator/memory_access.h).
#define TRAPLINE_FILE_RCX 8
#define TRAPLINE_FILE_RDX 16
#define TRAPLINE_FILE_RSI 48
#define TRAPLINE_FILE_RDI 56
#define TRAPLINE_FILE_RFLAGS 136
// A wake that found nobody waiting at `address`: queued like the kinds of events.h.
#define TRAPLINE_QUEUED_WAKE 63
// A lock that is biased to its thread (biased_locks.h) was given back; `sequence` is all it says.
#define TRAPLINE_QUEUED_TICK 62
// A release of the lock `address` by another thread, or by the thread itself, that was number
// `size` (its lower half); `ip` is that thread's number and one.
#define TRAPLINE_QUEUED_LATE_RELEASE 61
// What the slow path queues, beside the kinds of events.h. A frame: `address` is the return
// address, `size` the number of the frame, `ip` that of its caller's or -1. An access: `size` is
// the number of the innermost frame or -1, `ip` the site. The runtime's TRAPLINE_READ and
// TRAPLINE_WRITE have the number of the innermost frame or -1 in the upper half of their kind.
// A long access, of an instruction that is repeated, has the frame there too, its bytes in `size`
// and the site in `ip`.
#define TRAPLINE_QUEUED_FRAME 64
#define TRAPLINE_QUEUED_ACCESS 65
#define TRAPLINE_QUEUED_LONG_READ 66
#define TRAPLINE_QUEUED_LONG_WRITE 67
// A repeat: `address` and `ip` as those of an access, `size` its moment; in the upper half of
// `kind` the thread's number, and above what is named here.
#define TRAPLINE_QUEUED_REPEAT 68
#define TRAPLINE_QUEUED_REPEAT_SIZE 56
#define TRAPLINE_QUEUED_REPEAT_WRITE (1ull << 63)
#define TRAPLINE_QUEUED_REPEAT_LOCKED (1ull << 62)
// The most of them that one access usually ends: those of each thread's line, and of one line more.
#define TRAPLINE_MOST_REPEATS_AT_ONCE 136
#define TRAPLINE_MOST_FRAMES_AT_ONCE 64

// The code cache: the monitor and all threads have it at the same addresses.
#define TRAPLINE_CACHE_BASE 0x6e000000
// Of partial code (hypervisor/guest_code_cache.h): as for full code, which follows.
#define TRAPLINE_PARTIAL_CODE TRAPLINE_CACHE_BASE
#define TRAPLINE_PARTIAL_CODE_SIZE 0x1000000
#define TRAPLINE_PARTIAL_TABLE 0x6f000000
#define TRAPLINE_PARTIAL_SITES 0x6f400000
#define TRAPLINE_PARTIAL_DATA_END 0x6fc00000
#define TRAPLINE_CACHE_CODE 0x70000000
#define TRAPLINE_CACHE_CODE_SIZE 0x2000000
// For each half of the code: its lookup table, and behind both its access sites.
#define TRAPLINE_CACHE_TABLE 0x72000000
#define TRAPLINE_CACHE_TABLE_STRIDE 0x200000
#define TRAPLINE_CACHE_SITES 0x72400000
#define TRAPLINE_CACHE_DATA_END 0x72c00000
// Between the two lookup tables: redirects (redirect.h).
#define TRAPLINE_REDIRECTS 0x72180000
#define TRAPLINE_REDIRECTS_END 0x72200000
#define TRAPLINE_REDIRECT_GENERATION (TRAPLINE_REDIRECTS + 8)
#define TRAPLINE_REDIRECT_READS_FS_BASE (TRAPLINE_REDIRECTS + 16)
#define TRAPLINE_REDIRECT_SETS (TRAPLINE_REDIRECTS + 128)
#define TRAPLINE_REDIRECT_SET_BITS 10      // log2 of the number of sets
#define TRAPLINE_REDIRECT_SET_SIZE_BITS 7  // log2 of the bytes of one
#define TRAPLINE_REDIRECT_WAYS 4
#define TRAPLINE_REDIRECT_SIZE 32
#define TRAPLINE_REDIRECT_CACHED 8
#define TRAPLINE_REDIRECT_FRAMES 12
#define TRAPLINE_REDIRECT_FRAME_COUNT 16
#define TRAPLINE_REDIRECT_HITS 20
// What need not be told of again (repeats.h), and its words, one for each block of memory.
#define TRAPLINE_REPEATS 0x72c00000
#define TRAPLINE_REPEAT_THREADS (TRAPLINE_REPEATS + 16)
#define TRAPLINE_REPEAT_USE (TRAPLINE_REPEATS + 0x200000)
#define TRAPLINE_REPEAT_BLOCK_BITS 20
#define TRAPLINE_REPEAT_USE_BITS 5
#define TRAPLINE_REPEAT_LINE_BITS 17   // log2 of the most lines that a table has, of 64 bytes each
#define TRAPLINE_REPEAT_TOLD_SHIFT 48  // in the first word of one
#define TRAPLINE_REPEAT_BYTEWISE_BIT 47
#define TRAPLINE_REPEAT_LINE_USE 8
#define TRAPLINE_REPEAT_LINE_MOMENTS 16
#define TRAPLINE_REPEAT_LINE_READ_SITES 48
// What memory is used for (sector_use.h), and whether that is kept.
#define TRAPLINE_KEEPS_SECTOR_USE (TRAPLINE_REPEATS + 8)
#define TRAPLINE_SECTOR_USE (TRAPLINE_REPEATS + 0x800000)
#define TRAPLINE_SECTOR_BITS 9  // log2 of a sector's size
#define TRAPLINE_SECTOR_USE_BITS 5
#define TRAPLINE_SECTOR_OF_READERS 18
#define TRAPLINE_SECTOR_SHARED 19
#define TRAPLINE_SUBSECTOR_USE 0x74000000
#define TRAPLINE_SUBSECTOR_BITS 6  // log2 of a subsector's size
#define TRAPLINE_SECTOR_SETTLED 0x40
// Locks that one thread alone takes (biased_locks.h), between sectors and subsectors.
#define TRAPLINE_LOCKS 0x73d00000
#define TRAPLINE_LOCKS_BIASED 1  // its first word: locks that are taken may be biased
#define TRAPLINE_LOCKS_ENDED 2   // ... are not any more; 0: not yet
#define TRAPLINE_LOCK_TABLE_COUNT (TRAPLINE_LOCKS + 4)
#define TRAPLINE_LOCK_TABLES_USED (TRAPLINE_LOCKS + 64)
#define TRAPLINE_LOCK_USE (TRAPLINE_LOCKS + 0x1000)
#define TRAPLINE_LOCK_TABLES (TRAPLINE_LOCKS + 0x80000)
#define TRAPLINE_LOCK_TABLE_SIZE 0x20000
#define TRAPLINE_LOCK_FACTOR 0x9e3779b1u  // of the hash, which is the upper bits of the product
#define TRAPLINE_LOCK_HASH_BITS 16
#define TRAPLINE_LOCK_LINE_BITS 13  // of the hash, the lower ones: which line
#define TRAPLINE_LOCK_LINE_SIZE_BITS 4
#define TRAPLINE_LOCK_LINE_USE 8
#define TRAPLINE_LOCK_LINE_NOTE 12
#define TRAPLINE_MOST_HELD 4  // locks at a time of which a thread does not tell
// As many entries of the queue as an event takes at most: what is held, what others have noted.
#define TRAPLINE_MOST_LOCK_ENTRIES 24
#define TRAPLINE_CACHE_END 0x78000000
// The threads' tables of it: where hardly a program has memory of its own.
#define TRAPLINE_REPEAT_TABLES 0x2f0000000000
#define TRAPLINE_REPEAT_TABLES_END 0x2f000a000000
// From this kind on (TRAPLINE_ALLOCATE in events.h) an event matters later even if there is one
// thread only.
#define TRAPLINE_FIRST_LASTING_EVENT 11
// The kinds in events.h, a bit each, that leave the thread in its epoch: what it did before and
// does after them is ordered likewise for all others, so it need not tell of an access again. Those
// that take in what others gave away are among them (FastTrack, section 3: only releases begin an
// epoch), those that end a history or let accesses count again are not. Of TRAPLINE_ALLOCATE, the
// agent forgets the block if it is small.
#define TRAPLINE_IN_EPOCH_EVENTS                                                                  \
  (1 << 1 | 1 << 3 | 1 << 6 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 14 | 1 << 16 | 1 << 18 | \
   1 << 19 | 1 << 21 | 1 << 27 | 1 << 28 | 1 << 29)
#define TRAPLINE_SMALL_BLOCK 128  // bytes
#define TRAPLINE_EVENT_ACQUIRE 1
#define TRAPLINE_EVENT_RELEASE 2
#define TRAPLINE_EVENT_RELEASE_SHARED 4  // and before it TRAPLINE_ACQUIRE_SHARED
#define TRAPLINE_EVENT_SYNC_DESTROYED 10
#define TRAPLINE_EVENT_SYNC_CREATED 27
// TRAPLINE_READ and TRAPLINE_WRITE.
#define TRAPLINE_EVENT_READ 22
#define TRAPLINE_EVENT_WRITE 23
#define TRAPLINE_EVENT_ALLOCATE 11
#define TRAPLINE_EVENT_CLEAR_HISTORY 13
#define TRAPLINE_EVENT_IGNORE_BEGIN 14
#define TRAPLINE_EVENT_IGNORE_SYNC_END 17
#define TRAPLINE_EVENT_UNTRACK 19
#define TRAPLINE_EVENT_COPY_HISTORY 40
#define TRAPLINE_EVENT_FIBER_CREATE 43

// Fields of the thread page that the agent's code reads and writes; agent.h checks them.
#define TRAPLINE_THREAD_NUMBER (TRAPLINE_THREAD_PAGE + 8)
#define TRAPLINE_THREAD_TRACKING (TRAPLINE_THREAD_PAGE + 40)
#define TRAPLINE_THREAD_EVENTS (TRAPLINE_THREAD_PAGE + 48)
#define TRAPLINE_QUEUE_HEAD (TRAPLINE_THREAD_PAGE + 56)
#define TRAPLINE_QUEUE_TAIL (TRAPLINE_THREAD_PAGE + 64)
#define TRAPLINE_THREAD_NATIVE (TRAPLINE_THREAD_PAGE + 72)
// There, other than 0: whether code meets a page fault where it comes to a shared page.
#define TRAPLINE_NATIVE_CODE 1
#define TRAPLINE_NATIVE_PARTIAL_CODE 2  // only as far as it is not checked
#define TRAPLINE_THREAD_REPEAT_USER (TRAPLINE_THREAD_PAGE + 80)
#define TRAPLINE_THREAD_REPEAT_TABLE (TRAPLINE_THREAD_PAGE + 88)
#define TRAPLINE_THREAD_REPEAT_WRITE_SITES (TRAPLINE_THREAD_PAGE + 96)
#define TRAPLINE_THREAD_REPEATS (TRAPLINE_THREAD_PAGE + 104)
#define TRAPLINE_THREAD_NEED_NOT_TELL (TRAPLINE_THREAD_PAGE + 0x400)
#define TRAPLINE_THREAD_REPEAT_LINE_MASK (TRAPLINE_THREAD_PAGE + 0x480)
#define TRAPLINE_THREAD_COUNTED_WRITES (TRAPLINE_THREAD_PAGE + 0x490)
#define TRAPLINE_THREAD_REDIRECT (TRAPLINE_THREAD_PAGE + 0x4c0)  // RedirectState, field by field
#define TRAPLINE_THREAD_REDIRECT_ENTERED (TRAPLINE_THREAD_REDIRECT + 8)
#define TRAPLINE_THREAD_REDIRECT_RIP (TRAPLINE_THREAD_REDIRECT + 16)
#define TRAPLINE_THREAD_REDIRECT_RFLAGS (TRAPLINE_THREAD_REDIRECT + 24)
#define TRAPLINE_THREAD_REDIRECT_RSP (TRAPLINE_THREAD_REDIRECT + 32)
#define TRAPLINE_THREAD_REDIRECT_BY (TRAPLINE_THREAD_REDIRECT + 40)
#define TRAPLINE_THREAD_REDIRECT_TIME (TRAPLINE_THREAD_REDIRECT + 48)
#define TRAPLINE_THREAD_REDIRECT_STAY (TRAPLINE_THREAD_REDIRECT + 56)
#define TRAPLINE_THREAD_LOCK_TABLE (TRAPLINE_THREAD_PAGE + 0x500)
#define TRAPLINE_THREAD_HELD_COUNT (TRAPLINE_THREAD_PAGE + 0x508)
#define TRAPLINE_THREAD_HELD (TRAPLINE_THREAD_PAGE + 0x510)
#define TRAPLINE_THREAD_LOCK_WORD (TRAPLINE_THREAD_PAGE + 0x570)
#define TRAPLINE_FUTEX_ANSWERS (TRAPLINE_THREAD_PAGE + 112)
#define TRAPLINE_FUTEX_SPINS (TRAPLINE_THREAD_PAGE + 116)
#define TRAPLINE_FUTEX_SKIP (TRAPLINE_THREAD_PAGE + 120)
#define TRAPLINE_FUTEX_PENALTY (TRAPLINE_THREAD_PAGE + 124)
#define TRAPLINE_FUTEX_RETURN (TRAPLINE_THREAD_PAGE + 128)
#define TRAPLINE_FUTEX_RSP (TRAPLINE_THREAD_PAGE + 136)
#define TRAPLINE_FUTEX_RESULT (TRAPLINE_THREAD_PAGE + 144)
#define TRAPLINE_FUTEX_WAITS (TRAPLINE_THREAD_PAGE + 152)
#define TRAPLINE_FUTEX_WAKES (TRAPLINE_THREAD_PAGE + 160)

// Of futex(2), checked in hypervisor/futexes.cpp.
#define TRAPLINE_FUTEX_CALL 202
#define TRAPLINE_FUTEX_WAIT 0
#define TRAPLINE_FUTEX_WAKE 1
#define TRAPLINE_FUTEX_WAIT_BITSET 9
#define TRAPLINE_FUTEX_WAKE_BITSET 10
#define TRAPLINE_FUTEX_PRIVATE 128
#define TRAPLINE_FUTEX_REALTIME 256
#define TRAPLINE_FUTEX_EAGAIN 11
// After waits that were not over soon, so many at most are not tried (a power of two, less one).
#define TRAPLINE_FUTEX_MOST_SKIPPED 63

// Supervisor-only tables, upper half. The GDT is per thread (its CPU-number segment differs), IDT
// and TSS are shared: the IST stacks they name are per thread.
// Below all mirrors, which begin at kMirrorOffset (hypervisor/machine.h).
#define TRAPLINE_GDT 0xffff900000000000
#define TRAPLINE_IDT 0xffff900000001000
#define TRAPLINE_TSS 0xffff900000002000

// Selectors, the values Linux gives a 64-bit process.
#define TRAPLINE_KERNEL_CS 0x10
#define TRAPLINE_USER_SS 0x2b
#define TRAPLINE_USER_CS 0x33
#define TRAPLINE_TSS_SELECTOR 0x40
#define TRAPLINE_CPU_NUMBER_SELECTOR \
  0x7b  // limit = node << 12 | cpu, read with LSL by getcpu in the vDSO

// Exit ports: an `out` to one of them leaves the guest. The TSS I/O bitmap opens just these to
// ring 3.
#define TRAPLINE_PORT_FIRST 0x80
#define TRAPLINE_PORT_SYSTEM_CALL 0x80
#define TRAPLINE_PORT_EXCEPTION 0x81
#define TRAPLINE_PORT_VECTOR_SAVED 0x82
#define TRAPLINE_PORT_PROBE 0x83
#define TRAPLINE_PORT_QUEUE_FULL 0x84
#define TRAPLINE_PORT_ACCESS 0x85
#define TRAPLINE_PORT_CACHE 0x86       // the code cache is left
#define TRAPLINE_PORT_CACHE_CALL 0x87  // its slow path needs the monitor
#define TRAPLINE_PORT_COUNT 8

#define TRAPLINE_SLOT_SIZE 16
#define TRAPLINE_VECTORS 32

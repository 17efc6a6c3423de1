// Entry points that run inside the guest: nothing but exits to the monitor and context restores.
// Linked nowhere: the monitor copies [trapline_agent_begin, trapline_agent_end) to TRAPLINE_AGENT_CODE.
#include "guest-agent/layout.h"

// What the code cache's filter has seen need not hold any longer. Changes flags and `scratch`.
    .macro END_OF_EPOCH scratch
    mov $(1 << 50), \scratch
    .set index, 0
    .rept 8
    add \scratch, TRAPLINE_CACHE_SIGNATURE + 8 * index
    .set index, index + 1
    .endr
    .endm

// rax = the queue's head; goes to `full` if no more than `kept` entries are free. Changes flags and r8.
    .macro QUEUE_HEAD full, kept = 0
    mov TRAPLINE_QUEUE_HEAD, %rax
    mov %rax, %r8
    sub TRAPLINE_QUEUE_TAIL, %r8
    cmp $(TRAPLINE_QUEUE_ENTRIES - \kept), %r8
    jae \full
    .endm

// Where entry rax of the queue lies, in words from its start. Changes flags and `register`.
    .macro QUEUE_ENTRY register
    mov %eax, %\register\()d
    and $(TRAPLINE_QUEUE_ENTRIES - 1), %\register\()d
    lea (%\register, %\register, 4), %\register
    .endm

// Locks (biased_locks.h). register\()d = the hash of the lock at `address`, a register of 64 bits. Changes flags.
    .macro LOCK_HASH address, register
    mov \address, %\register
    shr $2, %\register
    imul $TRAPLINE_LOCK_FACTOR, %\register\()d, %\register\()d
    shr $(32 - TRAPLINE_LOCK_HASH_BITS), %\register\()d
    .endm

// Adds to `register` the place of the line of hash r8 in a table. Changes flags and `scratch`.
    .macro ADD_LOCK_LINE register, scratch
    mov %r8d, %\scratch\()d
    and $((1 << TRAPLINE_LOCK_LINE_BITS) - 1), %\scratch\()d
    shl $TRAPLINE_LOCK_LINE_SIZE_BITS, %\scratch\()d
    add %\scratch, %\register
    .endm

// Tells of the release that the line at `line` has noted, of the thread that is in `threads` at `index`, behind
// entry rax of the queue. If it is told and interrupted before the note is taken, it is told twice, which does no harm. Changes
// flags, r8 and r11; rax is the new head.
    .macro TELL_NOTE line, threads, index
    QUEUE_ENTRY r8
    mov (%\line), %r11
    mov %r11, TRAPLINE_EVENT_QUEUE + 16(, %r8, 8)
    mov TRAPLINE_LOCK_LINE_NOTE(%\line), %r11d
    test %r11, %r11
    jz 100f
    mov %r11, TRAPLINE_EVENT_QUEUE + 24(, %r8, 8)
    mov \threads(, %\index, 8), %r11
    mov %r11, TRAPLINE_EVENT_QUEUE + 32(, %r8, 8)
    movq $TRAPLINE_QUEUED_LATE_RELEASE, TRAPLINE_EVENT_QUEUE + 8(, %r8, 8)
    mov $1, %r11d
    lock xadd %r11, TRAPLINE_SHARED_PAGE
    mov %r11, TRAPLINE_EVENT_QUEUE(, %r8, 8)
    mov (%\line), %r11             // its thread may have put another lock there
    cmp %r11, TRAPLINE_EVENT_QUEUE + 16(, %r8, 8)
    jne 100f
    inc %rax
    mov %rax, TRAPLINE_QUEUE_HEAD
    mov TRAPLINE_EVENT_QUEUE + 24(, %r8, 8), %eax
    xor %r11d, %r11d
    lock cmpxchg %r11d, TRAPLINE_LOCK_LINE_NOTE(%\line)
    mov TRAPLINE_QUEUE_HEAD, %rax
100:
    .endm

// Tells of the locks that the thread holds untold, behind entry rax of the queue, which is its head. If interrupted at the
// end they stay untold. Changes flags and r8 to r11; rax is the new head.
    .macro TELL_HELD
    mov TRAPLINE_THREAD_HELD_COUNT, %r11
    lea (%r11, %r11, 2), %r11
    xor %r10d, %r10d
101: QUEUE_ENTRY r8
    mov TRAPLINE_THREAD_HELD(, %r10, 8), %r9
    mov %r9, TRAPLINE_EVENT_QUEUE + 16(, %r8, 8)
    mov TRAPLINE_THREAD_HELD + 8(, %r10, 8), %r9
    mov %r9, TRAPLINE_EVENT_QUEUE + 24(, %r8, 8)
    mov TRAPLINE_THREAD_HELD + 16(, %r10, 8), %r9
    mov %r9, TRAPLINE_EVENT_QUEUE + 32(, %r8, 8)
    movq $TRAPLINE_EVENT_ACQUIRE, TRAPLINE_EVENT_QUEUE + 8(, %r8, 8)
    mov $1, %r9d
    lock xadd %r9, TRAPLINE_SHARED_PAGE
    mov %r9, TRAPLINE_EVENT_QUEUE(, %r8, 8)
    inc %rax
    add $3, %r10
    cmp %r11, %r10
    jb 101b
    movq $0, TRAPLINE_THREAD_HELD_COUNT
    mov %rax, TRAPLINE_QUEUE_HEAD
    .endm

    .section .rodata.trapline_agent, "a", @progbits
    .balign 4096
    .globl trapline_agent_begin, trapline_agent_end
trapline_agent_begin:

// Exception entries, one slot a vector. Gates name the ring-3 code segment and an IST stack, so a slot runs in
// ring 3. Vectors that push an error code drop it before iretq. The monitor tells the vector from RIP.
    .globl trapline_agent_exceptions
trapline_agent_exceptions:
    .set vector, 0
    .rept TRAPLINE_VECTORS
    .balign TRAPLINE_SLOT_SIZE
    out %al, $TRAPLINE_PORT_EXCEPTION
    .if vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21 || vector == 29 || vector == 30
    lea 8(%rsp), %rsp
    .endif
    iretq
    .set vector, vector + 1
    .endr
    .balign TRAPLINE_SLOT_SIZE

// #PF's gate where native code that meets shared pages goes over to the code cache by itself (redirect.h). The frame lies
// at FRAME. The program's stack may not be in view: who faults here, or is interrupted, is put back to where it was
// (GuestThread::AbandonRedirect), which up to `saved` takes its registers as they are, and rsi for the redirect.
    .set FRAME, TRAPLINE_FAULT_STACK_TOP - 48           // error code, rip, cs, rflags, rsp, ss
    .macro REDIRECT_REGISTERS operation, registers:vararg
    .irp register, \registers
    \operation %\register
    .endr
    .endm
    .balign 64
    .globl trapline_agent_redirect, trapline_agent_redirect_saved, trapline_agent_redirect_end
trapline_agent_redirect:
    cmpq $0, TRAPLINE_THREAD_REDIRECT
    je trapline_agent_exceptions + 14 * TRAPLINE_SLOT_SIZE
    REDIRECT_REGISTERS push, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11
    pushq FRAME + 8
    popq TRAPLINE_THREAD_REDIRECT_RIP
    pushq FRAME + 24
    popq TRAPLINE_THREAD_REDIRECT_RFLAGS
    pushq FRAME + 32
    popq TRAPLINE_THREAD_REDIRECT_RSP
    movq $0, TRAPLINE_THREAD_REDIRECT
trapline_agent_redirect_saved:
    testl $0x100, TRAPLINE_THREAD_REDIRECT_RFLAGS       // single-stepped
    jnz 6f
    mov TRAPLINE_REDIRECTS, %r11                        // version
    mov TRAPLINE_REDIRECT_GENERATION, %rax
    xchg %rax, TRAPLINE_THREAD_REDIRECT_ENTERED         // before the look, for whoever empties the cache
    mov TRAPLINE_THREAD_REDIRECT_RIP, %rax
    mov %rax, %rsi
    shr $10, %rsi
    xor %eax, %esi
    and $((1 << TRAPLINE_REDIRECT_SET_BITS) - 1), %esi
    shl $TRAPLINE_REDIRECT_SET_SIZE_BITS, %esi
    add $TRAPLINE_REDIRECT_SETS, %esi
1:  cmp %rax, (%rsi)
    je 3f
2:  add $TRAPLINE_REDIRECT_SIZE, %esi
    test $((1 << TRAPLINE_REDIRECT_SET_SIZE_BITS) - 1), %esi
    jnz 1b
    jmp 6f
3:  cmpl $0, TRAPLINE_REDIRECT_CACHED(%rsi)
    je 2b
    mov TRAPLINE_REDIRECT_FRAMES(%rsi), %edi
    mov TRAPLINE_REDIRECT_FRAME_COUNT(%rsi), %r10d
    mov TRAPLINE_THREAD_REDIRECT_RSP, %rdx
    mov %r10d, %r8d
    shl $4, %r8d
    add $(TRAPLINE_CACHE_THREAD + 16), %r8d             // behind the innermost frame
    jmp 5f
4:  mov (%rdi), %r9
    add %rdx, %r9
    mov 8(%rdi), %rcx
    cmp %rcx, (%r9)
    jne 2b
    not %r9
    sub $16, %r8d
    mov %r9, (%r8)
    mov %rcx, 8(%r8)
    add $16, %edi
5:  dec %r10d
    jns 4b
    movq $0, TRAPLINE_CACHE_THREAD                      // nothing is known of what called the outermost one
    movq $0, TRAPLINE_CACHE_THREAD + 8
    mov TRAPLINE_REDIRECT_FRAME_COUNT(%rsi), %r8d
    shl $4, %r8d
    add $(TRAPLINE_CACHE_THREAD + 16), %r8d
    mov TRAPLINE_REDIRECT_CACHED(%rsi), %ecx
    jrcxz 6f                                            // given up meanwhile
    cmp %r11, TRAPLINE_REDIRECTS
    jne 6f
    mov %r8, TRAPLINE_CACHE_NEXT_FRAME
    mov %rsi, TRAPLINE_THREAD_REDIRECT_BY
    incl TRAPLINE_REDIRECT_HITS(%rsi)
    rdtsc
    shl $32, %rdx
    or %rdx, %rax
    mov %rax, TRAPLINE_THREAD_REDIRECT_TIME
    cmpq $0, TRAPLINE_REDIRECT_READS_FS_BASE
    je 1f
    rdfsbase %rax
    mov %rax, TRAPLINE_CACHE_FS_BASE
1:  mov TRAPLINE_THREAD_REDIRECT_STAY, %rax
    mov %rax, TRAPLINE_CACHE_LEAVE_AFTER
    mov %rcx, FRAME + 8
    movq $0, TRAPLINE_THREAD_NATIVE
    REDIRECT_REGISTERS pop, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax
    lea 8(%rsp), %rsp
    iretq
6:  movq $0, TRAPLINE_THREAD_REDIRECT_ENTERED
    REDIRECT_REGISTERS pop, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax
    movq $1, TRAPLINE_THREAD_REDIRECT
    jmp trapline_agent_exceptions + 14 * TRAPLINE_SLOT_SIZE
trapline_agent_redirect_end:

// SYSCALL entries. Which of the two LSTAR names depends on the ring SYSCALL arrives in.
// RCX = return address, R11 = flags, all other registers the program's.
    .balign 64
    .globl trapline_agent_syscall_ring0, trapline_agent_syscall_ring3
trapline_agent_syscall_ring0:
    out %al, $TRAPLINE_PORT_SYSTEM_CALL
    sysretq
    .balign 64
    .globl trapline_agent_syscall_cached
// In SYSCALL's place in the code cache, where that would stay in ring 3: KVM is left once, not twice. RCX = return
// address. Once here, the thread gets as far as the exit (GuestThread::HandleInterruption), unless its call is a futex's
// that is answered below. Flags are left alone.
trapline_agent_syscall_cached:
    mov %rcx, TRAPLINE_FUTEX_RETURN
    lea -TRAPLINE_FUTEX_CALL(%rax), %rcx
    jrcxz 2f
    mov TRAPLINE_FUTEX_RETURN, %rcx
trapline_agent_syscall_leave:
    mov %rsp, %r11
    mov $TRAPLINE_AGENT_STACK_TOP, %rsp
    push %r11
    pushfq
    pop %r11
    pop %rsp
trapline_agent_syscall_ring3:
    out %al, $TRAPLINE_PORT_SYSTEM_CALL
    jmp *%rcx

// Futex calls that need not leave, as docs/monitor.md says. Registers but r11 are the program's at the end.
2:  mov TRAPLINE_FUTEX_RETURN, %rcx
    mov %rsp, TRAPLINE_FUTEX_RSP
    mov $TRAPLINE_AGENT_STACK_TOP, %rsp
    pushfq
    push %rax
    push %r8
    push %r9
    .globl trapline_agent_futex, trapline_agent_futex_leave, trapline_agent_futex_answer, trapline_agent_futex_answered
// From here on to `leave` nothing has happened yet: a thread that is interrupted goes on there.
trapline_agent_futex:
    cmpl $0, TRAPLINE_FUTEX_ANSWERS
    je trapline_agent_futex_leave
    test $3, %dil
    jnz trapline_agent_futex_leave
    mov %rdi, %rax
    shr $47, %rax
    jnz trapline_agent_futex_leave
    mov %esi, %eax
    and $~TRAPLINE_FUTEX_PRIVATE, %eax
    cmp $TRAPLINE_FUTEX_WAIT, %eax
    je 3f
    cmp $TRAPLINE_FUTEX_WAKE, %eax
    je 7f
    test %r9d, %r9d                 // the others' set of bits: none is an error
    jz trapline_agent_futex_leave
    cmp $TRAPLINE_FUTEX_WAKE_BITSET, %eax
    je 7f
    and $~TRAPLINE_FUTEX_REALTIME, %eax
    cmp $TRAPLINE_FUTEX_WAIT_BITSET, %eax
    jne trapline_agent_futex_leave

    // A wait: for as long as a way out takes, the word may change first.
3:  test %r10, %r10                 // with a timeout
    jnz trapline_agent_futex_leave
    mov TRAPLINE_FUTEX_SPINS, %eax
    mov TRAPLINE_FUTEX_SKIP, %r8d
    sub $1, %r8d
    jb 4f
    mov %r8d, TRAPLINE_FUTEX_SKIP
    xor %eax, %eax
4:  cmp %edx, %gs:(%rdi)            // may fault: GuestThread::HandlePageFault
    jne 6f
    cmpl $0, TRAPLINE_FUTEX_CROWD
    jg trapline_agent_futex_leave   // others have no processor
    sub $1, %eax
    jb trapline_agent_futex_leave   // one look only
    jz 5f
    pause
    jmp 4b
5:  mov TRAPLINE_FUTEX_PENALTY, %eax
    lea 1(%rax, %rax), %eax
    and $(TRAPLINE_FUTEX_MOST_SKIPPED), %eax
    mov %eax, TRAPLINE_FUTEX_PENALTY
    mov %eax, TRAPLINE_FUTEX_SKIP
    jmp trapline_agent_futex_leave
6:  test %eax, %eax
    jz 1f
    movl $0, TRAPLINE_FUTEX_PENALTY
1:  incq TRAPLINE_FUTEX_WAITS
    movq $-TRAPLINE_FUTEX_EAGAIN, TRAPLINE_FUTEX_RESULT
    jmp trapline_agent_futex_answer

    // A wake: what the program has done so far is seen by whoever begins to wait after this look.
7:  test $TRAPLINE_FUTEX_PRIVATE, %esi
    jz trapline_agent_futex_leave
    cmpq $0, TRAPLINE_THREAD_TRACKING
    je trapline_agent_futex_leave
    QUEUE_HEAD trapline_agent_futex_leave
    mov %edi, %r8d
    and $TRAPLINE_FUTEX_WAITERS_MASK, %r8d
    mfence
    cmpl $0, TRAPLINE_FUTEX_WAITERS(%r8)
    jne trapline_agent_futex_leave
    cmpl $0, TRAPLINE_FUTEX_UNKNOWN_WAITERS
    jne trapline_agent_futex_leave
    END_OF_EPOCH %r9
    QUEUE_ENTRY r9
    mov $1, %r8d
    lock xadd %r8, TRAPLINE_SHARED_PAGE
    mov %r8, TRAPLINE_EVENT_QUEUE(, %r9, 8)
    movq $TRAPLINE_QUEUED_WAKE, TRAPLINE_EVENT_QUEUE + 8(, %r9, 8)
    mov %rdi, TRAPLINE_EVENT_QUEUE + 16(, %r9, 8)
    movq $0, TRAPLINE_EVENT_QUEUE + 24(, %r9, 8)
    movq $0, TRAPLINE_EVENT_QUEUE + 32(, %r9, 8)
    incq TRAPLINE_FUTEX_WAKES
    movq $0, TRAPLINE_FUTEX_RESULT
    inc %rax
    mov %rax, TRAPLINE_QUEUE_HEAD
    jmp trapline_agent_futex_answer
trapline_agent_futex_leave:
    pop %r9
    pop %r8
    pop %rax
    popfq
    mov TRAPLINE_FUTEX_RSP, %rsp
    jmp trapline_agent_syscall_leave
// The call has its result: a thread that is interrupted has what is left done for it.
trapline_agent_futex_answer:
    pop %r9
    pop %r8
    pop %rax
    mov (%rsp), %r11
    popfq
    mov TRAPLINE_FUTEX_RSP, %rsp
    mov TRAPLINE_FUTEX_RESULT, %rax
trapline_agent_futex_answered:
    jmp *%rcx

// Context restores. RSP points to a frame in the thread page; works from ring 0 and from ring 3.
    .balign 64
    .globl trapline_agent_resume, trapline_agent_resume_vector
trapline_agent_resume_vector:       // rdi = XSAVE image, rdx:rax = mask; frame: rdi rdx rax, then as below
    xrstor64 (%rdi)
    pop %rdi
    pop %rdx
    pop %rax
trapline_agent_resume:              // frame: rip cs rflags rsp ss
    iretq

    .balign 64
    .globl trapline_agent_save_vector
trapline_agent_save_vector:         // rdi = XSAVE image, rdx:rax = mask
    xsave64 (%rdi)
    out %al, $TRAPLINE_PORT_VECTOR_SAVED

// The interface of events.h: C calling convention, general registers only, no stack but the caller's.
//
// trapline_agent_event queues {sequence, kind, address, size, ip}. Everything before the store at `commit` can be done
// again from the start without harm, arguments are left alone: a thread that is interrupted there starts over
// (GuestThread), so that a signal handler may queue events of its own. Of locks that are not told of, to the end: then it is told.

    .balign 64
    .globl trapline_agent_event, trapline_agent_event_commit, trapline_agent_event_full, trapline_agent_event_fiber, trapline_agent_event_held
trapline_agent_event:               // rdi = kind, rsi = address, rdx = size, rcx = ip
    cmpq $0, TRAPLINE_THREAD_EVENTS
    je 2f
    cmpq $0, TRAPLINE_THREAD_TRACKING
    jne 1f
    cmp $TRAPLINE_FIRST_LASTING_EVENT, %rdi     // with one thread, synchronisation means nothing
    jb 2f
1:  QUEUE_HEAD trapline_agent_event_full, TRAPLINE_MOST_LOCK_ENTRIES
    cmpq $0, TRAPLINE_THREAD_TRACKING
    je 9f                           // nothing is a repeat, and not all is in view
    cmpq $0, TRAPLINE_THREAD_REPEAT_USER
    je 9f
    cmp $TRAPLINE_EVENT_RELEASE_SHARED, %rdi
    jbe trapline_agent_event_lock
    cmp $TRAPLINE_EVENT_SYNC_DESTROYED, %rdi
    je trapline_agent_event_lock
    cmp $TRAPLINE_EVENT_SYNC_CREATED, %rdi
    je trapline_agent_event_lock
    cmp $TRAPLINE_EVENT_COPY_HISTORY, %rdi
    jae 6f
    cmp $TRAPLINE_EVENT_UNTRACK, %rdi
    je 6f
    lea -TRAPLINE_EVENT_IGNORE_BEGIN(%rdi), %r9
    cmp $(TRAPLINE_EVENT_IGNORE_SYNC_END - TRAPLINE_EVENT_IGNORE_BEGIN), %r9
    ja 10f
6:  movq $0, TRAPLINE_REPEATS       // the thread is not always itself, or not watched: no repeats
    movl $TRAPLINE_LOCKS_ENDED, TRAPLINE_LOCKS
    jmp 9f
10: lea -TRAPLINE_EVENT_ALLOCATE(%rdi), %r9
    cmp $(TRAPLINE_EVENT_CLEAR_HISTORY - TRAPLINE_EVENT_ALLOCATE), %r9
    ja 9f
    cmpq $0, TRAPLINE_REPEATS
    je 9f
    test %rdx, %rdx
    jz 9f
    // A block that is given out or back, or cleared: nobody uses its bytes, nothing there is a repeat.
    mov %rsi, %r10
    and $-16, %r10
    lea (%rsi, %rdx), %r11
    mov $(16 << TRAPLINE_REPEAT_BLOCK_BITS), %r9d
    cmp %r9, %rdx
    jbe 7f
    lea (%r10, %r9), %r11
7:  mov %r10, %r8
    mov %r10, %r9
    shr $4, %r8
    shr $24, %r9
    xor %r9, %r8
    and $((1 << TRAPLINE_REPEAT_BLOCK_BITS) - 1), %r8d
    mov TRAPLINE_REPEAT_USE(, %r8, 4), %eax
13: test $((1 << TRAPLINE_REPEAT_USE_BITS) - 1), %eax
    jz 8f
    mov %eax, %r9d
    or $((1 << TRAPLINE_REPEAT_USE_BITS) - 1), %r9d
    inc %r9d
    lock cmpxchg %r9d, TRAPLINE_REPEAT_USE(, %r8, 4)
    jne 13b
8:  add $16, %r10
    cmp %r11, %r10
    jb 7b
    mov TRAPLINE_QUEUE_HEAD, %rax
9:
trapline_agent_event_tell:          // behind entry rax of the queue
    cmpq $0, TRAPLINE_THREAD_HELD_COUNT
    je 1f
    TELL_HELD
1:  cmp $32, %rdi
    jae 4f
    mov $TRAPLINE_IN_EPOCH_EVENTS, %r9d
    bt %edi, %r9d
    jc 5f
    cmp $TRAPLINE_FIRST_LASTING_EVENT, %rdi
    jne 4f
    cmp $TRAPLINE_SMALL_BLOCK, %rdx
    ja 4f
    lea 7(%rsi, %rdx), %r9          // a new block: what was seen there need not hold any longer
    mov %rsi, %r10
    and $-8, %r10
    .macro CLEAR_CELLS shift, count // of the accesses of one size to the word at r10
    mov %r10d, %r8d
    .if \shift > 0
    shl $\shift, %r8d
    .endif
    .set cell, 0
    .rept \count
    and $(TRAPLINE_CACHE_FILTER_PLANE - 8), %r8d
    movq $0, TRAPLINE_CACHE_FILTER(%r8)
    movq $0, TRAPLINE_CACHE_FILTER + TRAPLINE_CACHE_FILTER_PLANE(%r8)
    .set cell, cell + 1
    .if cell < \count
    add $8, %r8d
    .endif
    .endr
    .endm
3:  CLEAR_CELLS 0, 1
    CLEAR_CELLS 1, 2
    CLEAR_CELLS 2, 4
    CLEAR_CELLS 3, 8
    add $8, %r10
    cmp %r9, %r10
    jb 3b
    jmp 5f
4:  END_OF_EPOCH %r9
5:  QUEUE_ENTRY r9
    mov $1, %r8d
    lock xadd %r8, TRAPLINE_SHARED_PAGE
    mov %r8, TRAPLINE_EVENT_QUEUE(, %r9, 8)
    mov %rdi, TRAPLINE_EVENT_QUEUE + 8(, %r9, 8)
    mov %rsi, TRAPLINE_EVENT_QUEUE + 16(, %r9, 8)
    mov %rdx, TRAPLINE_EVENT_QUEUE + 24(, %r9, 8)
    mov %rcx, TRAPLINE_EVENT_QUEUE + 32(, %r9, 8)
    inc %rax
trapline_agent_event_commit:
    mov %rax, TRAPLINE_QUEUE_HEAD
    cmp $TRAPLINE_EVENT_FIBER_CREATE, %rdi
    je 3f
2:  ret
3:  cmpq $0, TRAPLINE_THREAD_TRACKING           // the first fiber of a program with one thread
    jne 2b
trapline_agent_event_fiber:
    out %al, $TRAPLINE_PORT_QUEUE_FULL
    ret
trapline_agent_event_full:
    out %al, $TRAPLINE_PORT_QUEUE_FULL
    jmp trapline_agent_event

    // Of a lock: whether it is told (biased_locks.h).
    .set LOCK_USER, (1 << TRAPLINE_REPEAT_USE_BITS) - 1
trapline_agent_event_lock:
    cmpl $0, TRAPLINE_LOCK_TABLE_COUNT
    je trapline_agent_event_tell
    mov TRAPLINE_QUEUE_HEAD, %rax   // this may be begun anew
    LOCK_HASH %rsi, r8
    mov TRAPLINE_LOCK_USE(, %r8, 4), %r9d
    mov TRAPLINE_THREAD_LOCK_TABLE, %r10
    test %r10, %r10
    jz 2f
    ADD_LOCK_LINE r10, r11
    cmp $TRAPLINE_EVENT_RELEASE, %rdi
    je 5f
    ja 2f
    // Taken: if it is biased, it is held untold.
    cmp %r9d, TRAPLINE_LOCK_LINE_USE(%r10)
    jne 1f
    cmp %rsi, (%r10)
    jne 1f
    cmpl $TRAPLINE_LOCKS_BIASED, TRAPLINE_LOCKS
    jne 1f
    mov TRAPLINE_THREAD_HELD_COUNT, %r11
    cmp $TRAPLINE_MOST_HELD, %r11
    jae 1f
    lea (%r11, %r11, 2), %r11
    mov %rsi, TRAPLINE_THREAD_HELD(, %r11, 8)
    mov %rdx, TRAPLINE_THREAD_HELD + 8(, %r11, 8)
    mov %rcx, TRAPLINE_THREAD_HELD + 16(, %r11, 8)
    jmp 9f
1:  mov %r9d, %r11d
    and $LOCK_USER, %r11d
    cmp %r11, TRAPLINE_THREAD_REPEAT_USER
    je trapline_agent_event_tell

    // The word is nobody's from here on; what was noted of its locks is told. If it was before, whoever changed it may not have
    // looked yet.
2:  test $LOCK_USER, %r9d
    jz 3f
    mov %r9d, %eax
    or $LOCK_USER, %r9d
    inc %r9d
    lock cmpxchg %r9d, TRAPLINE_LOCK_USE(, %r8, 4)
    jne trapline_agent_event_lock
3:  mov %r9d, TRAPLINE_THREAD_LOCK_WORD
    mov TRAPLINE_QUEUE_HEAD, %rax
    mov $TRAPLINE_LOCK_TABLES, %r9d
    ADD_LOCK_LINE r9, r11
    xor %r10d, %r10d
4:  cmp %r10d, TRAPLINE_LOCK_TABLE_COUNT
    jbe 7f
    cmpl $0, TRAPLINE_LOCK_LINE_NOTE(%r9)
    je 6f
    mov (%r9), %r11
    test %r11, %r11
    jz 6f
    LOCK_HASH %r11, r11
    cmp %r11d, %r8d
    jne 6f
    TELL_NOTE r9, TRAPLINE_REPEAT_THREADS, r10
    LOCK_HASH %rsi, r8
6:  add $TRAPLINE_LOCK_TABLE_SIZE, %r9
    inc %r10d
    jmp 4b
7:  cmp $TRAPLINE_EVENT_ACQUIRE, %rdi
    jne trapline_agent_event_tell
    cmpq $0, TRAPLINE_THREAD_LOCK_TABLE
    je trapline_agent_event_tell
    // The thread's own, unless somebody has changed it meanwhile, and may have something to tell.
    mov TRAPLINE_THREAD_LOCK_WORD, %eax
    mov TRAPLINE_THREAD_REPEAT_USER, %r11
    add %eax, %r11d
    lock cmpxchg %r11d, TRAPLINE_LOCK_USE(, %r8, 4)
    mov TRAPLINE_QUEUE_HEAD, %rax
    jmp trapline_agent_event_tell

    // Given back: untold, if it is the last one of those held so, and biased still.
5:  mov TRAPLINE_THREAD_HELD_COUNT, %r11
    test %r11, %r11
    jz 8f
    lea (%r11, %r11, 2), %r11
    cmp %rsi, TRAPLINE_THREAD_HELD - 24(, %r11, 8)
    jne 8f
    cmp %r9d, TRAPLINE_LOCK_LINE_USE(%r10)
    jne 8f
    cmp %rsi, (%r10)
    jne 8f
    END_OF_EPOCH %r11
    decq TRAPLINE_THREAD_HELD_COUNT // begun anew from here on, it is told after all
    mov $1, %r9d
    lock xadd %r9, TRAPLINE_SHARED_PAGE
    QUEUE_ENTRY r11
    mov %r9, TRAPLINE_EVENT_QUEUE(, %r11, 8)
    movq $TRAPLINE_QUEUED_TICK, TRAPLINE_EVENT_QUEUE + 8(, %r11, 8)
    inc %rax
    mov %rax, TRAPLINE_QUEUE_HEAD
    cmp $1, %r9d
    adc $0, %r9d                    // not 0; a little too late
    xchg %r9d, TRAPLINE_LOCK_LINE_NOTE(%r10)
    mov TRAPLINE_LOCK_USE(, %r8, 4), %r11d
    cmp %r11d, TRAPLINE_LOCK_LINE_USE(%r10)
    jne trapline_agent_event        // who has changed that may not have seen the note
    ret
8:  mov %r9d, %r11d
    and $LOCK_USER, %r11d
    cmp %r11, TRAPLINE_THREAD_REPEAT_USER
    jne 2b
    // It is the thread's: biased from now on, in place of another one perhaps.
    cmpl $TRAPLINE_LOCKS_BIASED, TRAPLINE_LOCKS
    jne trapline_agent_event_tell
    cmp %rsi, (%r10)
    jne 1f
    cmp %r9d, TRAPLINE_LOCK_LINE_USE(%r10)
    je trapline_agent_event_tell
1:  cmpl $0, TRAPLINE_LOCK_LINE_NOTE(%r10)
    je 2f
    cmpq $0, (%r10)
    je 2f
    mov TRAPLINE_THREAD_REPEAT_USER, %r9
    TELL_NOTE r10, (TRAPLINE_REPEAT_THREADS - 8), r9
    jmp trapline_agent_event_lock
2:  cmpb $0, TRAPLINE_LOCK_TABLES_USED - 1(%r11)
    jne 1f
    movb $1, TRAPLINE_LOCK_TABLES_USED - 1(%r11)
1:  movl $0, TRAPLINE_LOCK_LINE_USE(%r10)
    movl $0, TRAPLINE_LOCK_LINE_NOTE(%r10)
    mov %rsi, (%r10)
    mov %r9d, TRAPLINE_LOCK_LINE_USE(%r10)
    jmp trapline_agent_event_tell
9:  incq TRAPLINE_THREAD_HELD_COUNT
trapline_agent_event_held:
    ret

    .balign 16
    .globl trapline_agent_access, trapline_agent_access_out
trapline_agent_access:
    cmpq $0, TRAPLINE_THREAD_TRACKING
    je 3f
    cmpq $TRAPLINE_NATIVE_CODE, TRAPLINE_THREAD_NATIVE
    jne trapline_agent_access_out
    // Hot code: what lies on its own pages does not count. A shared page sends the thread to the code cache,
    // and the access is reported there.
    mov %rsi, %r8
    lea (%rsi, %rdx), %r9
    cmp $TRAPLINE_EVENT_READ, %rdi
    je 1f
    cmp $TRAPLINE_EVENT_WRITE, %rdi
    jne trapline_agent_access_out
2:  lock orb $0, (%r8)
    or $0xfff, %r8
    inc %r8
    cmp %r9, %r8
    jb 2b
    jmp 4f
1:  testb $0, (%r8)
    or $0xfff, %r8
    inc %r8
    cmp %r9, %r8
    jb 1b
4:  cmpq $TRAPLINE_NATIVE_CODE, TRAPLINE_THREAD_NATIVE
    je 3f
trapline_agent_access_out:
    out %al, $TRAPLINE_PORT_ACCESS
3:  ret

// The code cache's slow path: an access is about to be made, or (a site that says so) has just been made.
// C calling convention, the cache's own stack, general registers only. See docs/translator.md.
    .balign 64
    .globl trapline_agent_cache_access, trapline_agent_cache_full, trapline_agent_cache_many
trapline_agent_cache_access:        // rdi = site, rsi = address, rdx = registers or 0
    cmpq $0, TRAPLINE_THREAD_TRACKING
    je 9f
    QUEUE_HEAD trapline_agent_cache_full, (TRAPLINE_MOST_FRAMES_AT_ONCE + TRAPLINE_MOST_REPEATS_AT_ONCE + TRAPLINE_MOST_HELD + 2)

    decq TRAPLINE_CACHE_LEAVE_AFTER
    jnz 1f
    movq $1, TRAPLINE_CACHE_LEAVE_REQUESTED
1:  cmpq $0, TRAPLINE_THREAD_REPEAT_USER
    je 1f
    cmpq $0, TRAPLINE_REPEATS       // enabled
    jne 2f
    cmpq $0, TRAPLINE_KEEPS_SECTOR_USE
    je 1f
2:  push %rdi
    push %rsi
    push %rdx
    call trapline_agent_to_repeats
    pop %rdx
    pop %rsi
    pop %rdi
    test %al, %al
    jnz 12f                         // nothing to tell
    mov TRAPLINE_QUEUE_HEAD, %rax
1:  cmpq $0, TRAPLINE_THREAD_HELD_COUNT
    je 1f
    TELL_HELD
1:
    // The innermost frame: those below the stack pointer are left over from a longjmp or the like.
    mov TRAPLINE_CACHE_PROGRAM_RSP, %r9
    mov TRAPLINE_CACHE_NEXT_FRAME, %r10
    mov $(1 << TRAPLINE_FRAME_BITS), %ecx
1:  mov %r10, %r8
    lea -16(%r10), %r10w
    mov (%r10), %r11
    not %r11
    cmp %r9, %r11
    jae 2f
    dec %ecx
    jnz 1b
    movq $0, (%r10)                 // they all are: no frame is known
2:  mov %r8, TRAPLINE_CACHE_NEXT_FRAME

    // Frames that the monitor does not know yet, outermost first.
    mov %r10, %r11
    xor %ecx, %ecx
    mov $-1, %r9
3:  cmpq $0, (%r11)
    je 5f
    cmpq $0, 8(%r11)
    js 4f
    cmp $TRAPLINE_MOST_FRAMES_AT_ONCE, %ecx
    je 5f
    inc %ecx
    lea -16(%r11), %r11w
    jmp 3b
4:  movzwl %r11w, %r9d
    shr $4, %r9d
5:  test %ecx, %ecx
    jz 6f
    lea 16(%r11), %r11w
    QUEUE_ENTRY r8
    push %rdx
    mov TRAPLINE_SHARED_PAGE, %rdx
    mov %rdx, TRAPLINE_EVENT_QUEUE(, %r8, 8)
    movq $TRAPLINE_QUEUED_FRAME, TRAPLINE_EVENT_QUEUE + 8(, %r8, 8)
    mov 8(%r11), %rdx
    mov %rdx, TRAPLINE_EVENT_QUEUE + 16(, %r8, 8)
    mov %r9, TRAPLINE_EVENT_QUEUE + 32(, %r8, 8)
    movzwl %r11w, %r9d
    shr $4, %r9d
    mov %r9, TRAPLINE_EVENT_QUEUE + 24(, %r8, 8)
    btsq $63, 8(%r11)
    pop %rdx
    inc %rax
    dec %ecx
    jmp 5b

6:  mov $-1, %r9
    cmpq $0, (%r10)
    je 7f
    movzwl %r10w, %r9d
    shr $4, %r9d
7:  mov %rax, TRAPLINE_QUEUE_HEAD
    test %rdx, %rdx
    jnz 10f
    mov TRAPLINE_SHARED_PAGE, %rcx
    cmpb $0, TRAPLINE_SITE_ATOMIC(%rdi)
    je 8f
    cmpb $0, TRAPLINE_SITE_WRITE(%rdi)
    je 1f
    END_OF_EPOCH %r8
1:  mov $1, %ecx
    lock xadd %rcx, TRAPLINE_SHARED_PAGE
8:  QUEUE_ENTRY r8
    mov %rcx, TRAPLINE_EVENT_QUEUE(, %r8, 8)
    movq $TRAPLINE_QUEUED_ACCESS, TRAPLINE_EVENT_QUEUE + 8(, %r8, 8)
    mov %rsi, TRAPLINE_EVENT_QUEUE + 16(, %r8, 8)
    mov %r9, TRAPLINE_EVENT_QUEUE + 24(, %r8, 8)
    mov %rdi, TRAPLINE_EVENT_QUEUE + 32(, %r8, 8)
    inc %rax
    mov %rax, TRAPLINE_QUEUE_HEAD
    mov TRAPLINE_SITE_ATOMIC(%rdi), %al
    or TRAPLINE_SITE_WRITE(%rdi), %al
    jnz 14f

    // The filter: not again in this epoch. What atomic operations do says nothing of plain ones to come.
15: cmpb $0, TRAPLINE_SITE_ATOMIC(%rdi)
    jne 9f
12: mov TRAPLINE_SITE_SIZE(%rdi), %eax
    lea -1(%rax), %edx
    mov $7, %ecx
    test %eax, %edx
    jnz 1f
    bsf %eax, %edx
    cmp %ecx, %edx
    cmovb %edx, %ecx
1:  mov TRAPLINE_CACHE_SIGNATURE(, %rcx, 8), %rax
    add %rsi, %rax
    mov $3, %edx                    // CacheThread::FilterShift
    sub %ecx, %edx
    mov $0, %ecx
    cmovns %edx, %ecx
    mov %esi, %edx
    shl %cl, %edx
    mov %edx, %ecx
    and $(TRAPLINE_CACHE_FILTER_PLANE - 8), %ecx
    cmpb $0, TRAPLINE_SITE_WRITE(%rdi)
    jne 2f
    mov %rax, TRAPLINE_CACHE_FILTER(%rcx)
    ret
2:  mov %rax, TRAPLINE_CACHE_FILTER + TRAPLINE_CACHE_FILTER_PLANE(%rcx)
9:  ret
14: cmpq $0, TRAPLINE_THREAD_REPEAT_USER
    je 15b
    cmpq $0, TRAPLINE_REPEATS
    je 15b
    push %rdi
    push %rsi
    call trapline_agent_to_queued
    pop %rsi
    pop %rdi
    jmp 15b
    .globl trapline_agent_to_repeats, trapline_agent_to_queued, trapline_agent_to_elements
trapline_agent_to_repeats:          // jumps to the functions of repeats.cpp, where they are copied to
    .byte 0xe9
    .long 0
trapline_agent_to_queued:
    .byte 0xe9
    .long 0

    // A long access at the program's \register, of %r10 bytes, the frame being in the upper half of %r9.
    .macro QUEUE_LONG kind, register
    QUEUE_ENTRY r8
    mov TRAPLINE_SHARED_PAGE, %rcx
    mov %rcx, TRAPLINE_EVENT_QUEUE(, %r8, 8)
    lea \kind(%r9), %rcx
    mov %rcx, TRAPLINE_EVENT_QUEUE + 8(, %r8, 8)
    mov \register(%rdx), %rcx
    mov %rcx, TRAPLINE_EVENT_QUEUE + 16(, %r8, 8)
    mov %r10, TRAPLINE_EVENT_QUEUE + 24(, %r8, 8)
    mov %rdi, TRAPLINE_EVENT_QUEUE + 32(, %r8, 8)
    inc %rax
    .endm

    // With registers: an instruction that only they tell of, or what the runtime reports of its caller.
10: cmpb $0, TRAPLINE_SITE_REPORT(%rdi)
    jne 13f
    movzbl TRAPLINE_SITE_REPEATED(%rdi), %ecx
    cmp $TRAPLINE_SITE_ELEMENTS, %ecx
    je 16f
    dec %ecx
    js trapline_agent_cache_many
    testl $0x400, TRAPLINE_FILE_RFLAGS(%rdx)        // downwards: seldom
    jnz trapline_agent_cache_many
    mov TRAPLINE_FILE_RCX(%rdx), %r10
    mov %r10, %r11
    shr $40, %r11                   // so many elements there cannot be
    jnz trapline_agent_cache_many
    test %r10, %r10
    jz 9b
    shl %cl, %r10
    shl $32, %r9
    cmpb $0, TRAPLINE_SITE_READ(%rdi)
    je 1f
    QUEUE_LONG TRAPLINE_QUEUED_LONG_READ, TRAPLINE_FILE_RSI
1:  cmpb $0, TRAPLINE_SITE_WRITE(%rdi)
    je 1f
    QUEUE_LONG TRAPLINE_QUEUED_LONG_WRITE, TRAPLINE_FILE_RDI
1:  mov %rax, TRAPLINE_QUEUE_HEAD
    shr $3, %r10                    // as much work as so many accesses of a word
    sub %r10, TRAPLINE_CACHE_LEAVE_AFTER
    jg 9b
    movq $1, TRAPLINE_CACHE_LEAVE_REQUESTED
    ret
13:
    mov TRAPLINE_FILE_RDI(%rdx), %r10
    cmp $TRAPLINE_EVENT_READ, %r10
    je 11f
    cmp $TRAPLINE_EVENT_WRITE, %r10
    jne trapline_agent_cache_many
11: QUEUE_ENTRY r8
    mov TRAPLINE_SHARED_PAGE, %rcx
    mov %rcx, TRAPLINE_EVENT_QUEUE(, %r8, 8)
    shl $32, %r9
    or %r9, %r10
    mov %r10, TRAPLINE_EVENT_QUEUE + 8(, %r8, 8)
    mov TRAPLINE_FILE_RSI(%rdx), %rcx
    mov %rcx, TRAPLINE_EVENT_QUEUE + 16(, %r8, 8)
    mov TRAPLINE_FILE_RDX(%rdx), %rcx
    mov %rcx, TRAPLINE_EVENT_QUEUE + 24(, %r8, 8)
    shr $3, %rcx                    // as much work as so many accesses of a word
    sub %rcx, TRAPLINE_CACHE_LEAVE_AFTER
    jg 1f
    movq $1, TRAPLINE_CACHE_LEAVE_REQUESTED
1:  mov TRAPLINE_FILE_RCX(%rdx), %rcx
    mov %rcx, TRAPLINE_EVENT_QUEUE + 32(, %r8, 8)
    inc %rax
    mov %rax, TRAPLINE_QUEUE_HEAD
    ret
16: mov %rdx, %rsi                  // tells of each element as of other accesses
    lea trapline_agent_cache_access(%rip), %rdx
trapline_agent_to_elements:
    .byte 0xe9
    .long 0
trapline_agent_cache_full:
    out %al, $TRAPLINE_PORT_QUEUE_FULL
    jmp trapline_agent_cache_access
trapline_agent_cache_many:          // r9 = number of the innermost frame or -1
    out %al, $TRAPLINE_PORT_CACHE_CALL
    ret

    .balign 16
trapline_agent_thread:
    mov TRAPLINE_THREAD_NUMBER, %rax
    ret
    .balign 16
trapline_agent_tracking:
    mov TRAPLINE_THREAD_TRACKING, %rax
    ret

    .balign 16
    .globl trapline_agent_interface_table
trapline_agent_interface_table:     // struct trapline_agent_interface
    .long 1, 40
    .quad TRAPLINE_AGENT_CODE + trapline_agent_event - trapline_agent_begin
    .quad TRAPLINE_AGENT_CODE + trapline_agent_access - trapline_agent_begin
    .quad TRAPLINE_AGENT_CODE + trapline_agent_thread - trapline_agent_begin
    .quad TRAPLINE_AGENT_CODE + trapline_agent_tracking - trapline_agent_begin

// Start-up probes: does a ring-3 `out` exit, does the guest see the host's time stamp counter?
    .balign 64
    .globl trapline_agent_probe_out, trapline_agent_probe_tsc, trapline_agent_probe_syscall
trapline_agent_probe_out:
    out %al, $TRAPLINE_PORT_PROBE
    jmp trapline_agent_probe_out
trapline_agent_probe_tsc:
    rdtsc
    out %al, $TRAPLINE_PORT_PROBE
trapline_agent_probe_syscall:
    syscall
    out %al, $TRAPLINE_PORT_PROBE
    .globl trapline_agent_probe_fault, trapline_agent_probe_skip
trapline_agent_probe_fault:         // rdi = how many faults to take
    movabs 0, %al                   // 9 bytes; nothing is ever mapped there in a table without a program
trapline_agent_probe_next:
    dec %rdi
    jnz trapline_agent_probe_fault
    out %al, $TRAPLINE_PORT_PROBE
trapline_agent_probe_skip:          // #PF entry: goes on after the faulting instruction
    addq $(trapline_agent_probe_next - trapline_agent_probe_fault), 8(%rsp)
    lea 8(%rsp), %rsp
    iretq
    .globl trapline_agent_probe_fs_base
trapline_agent_probe_fs_base:
    rdfsbase %rax
    out %al, $TRAPLINE_PORT_PROBE
    .globl trapline_agent_probe_redirect, trapline_agent_probe_redirect_fault, trapline_agent_probe_redirected
trapline_agent_probe_redirect:      // rdi = how many faults to redirect
    movq $1, TRAPLINE_THREAD_REDIRECT
trapline_agent_probe_redirect_fault:
    movabs 0, %al
trapline_agent_probe_redirected:
    dec %rdi
    jnz trapline_agent_probe_redirect
    out %al, $TRAPLINE_PORT_PROBE
    .balign 16
trapline_agent_end:
    .section .note.GNU-stack, "", @progbits

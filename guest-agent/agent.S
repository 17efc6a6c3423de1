// Entry points that run inside the guest: nothing but exits to the monitor and context restores.
// Linked nowhere: the monitor copies [trapline_agent_begin, trapline_agent_end) to TRAPLINE_AGENT_CODE.
#include "guest-agent/layout.h"

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

// SYSCALL entries. Which of the two LSTAR names depends on the ring SYSCALL arrives in.
// RCX = return address, R11 = flags, all other registers the program's.
    .balign 64
    .globl trapline_agent_syscall_ring0, trapline_agent_syscall_ring3
trapline_agent_syscall_ring0:
    out %al, $TRAPLINE_PORT_SYSTEM_CALL
    sysretq
    .balign 64
trapline_agent_syscall_ring3:
    out %al, $TRAPLINE_PORT_SYSTEM_CALL
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
// (GuestThread), so that a signal handler may queue events of its own.
    .balign 64
    .globl trapline_agent_event, trapline_agent_event_commit, trapline_agent_event_full
trapline_agent_event:               // rdi = kind, rsi = address, rdx = size, rcx = ip
    cmpq $0, TRAPLINE_THREAD_EVENTS
    je 2f
    cmpq $0, TRAPLINE_THREAD_TRACKING
    jne 1f
    cmp $TRAPLINE_FIRST_LASTING_EVENT, %rdi     // with one thread, synchronisation means nothing
    jb 2f
1:  mov TRAPLINE_QUEUE_HEAD, %rax
    mov %rax, %r8
    sub TRAPLINE_QUEUE_TAIL, %r8
    cmp $TRAPLINE_QUEUE_ENTRIES, %r8
    jae trapline_agent_event_full
    mov %rax, %r9
    and $(TRAPLINE_QUEUE_ENTRIES - 1), %r9
    lea (%r9, %r9, 4), %r9
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
2:  ret
trapline_agent_event_full:
    out %al, $TRAPLINE_PORT_QUEUE_FULL
    jmp trapline_agent_event

    .balign 16
    .globl trapline_agent_access, trapline_agent_access_out
trapline_agent_access:
    cmpq $0, TRAPLINE_THREAD_TRACKING
    je 3f
trapline_agent_access_out:
    out %al, $TRAPLINE_PORT_ACCESS
3:  ret

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
    .balign 16
trapline_agent_end:
    .section .note.GNU-stack, "", @progbits

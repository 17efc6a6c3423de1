// Host-side entry points that C++ cannot express.
    .text

// long trapline_interruptible_syscall(long number, const uint64_t arguments[6], const volatile uint8_t* pending)
//
// Makes the system call unless *pending is set. A signal handler that finds RIP in [begin, call] moves it to
// `interrupted`: either the call has not begun, or the kernel has decided to restart it after the handler. The
// result is then -ERESTARTSYS (512), which no system call returns. No stack is used in between.
    .globl trapline_interruptible_syscall
    .globl trapline_syscall_begin, trapline_syscall_call, trapline_syscall_interrupted
    .type trapline_interruptible_syscall, @function
trapline_interruptible_syscall:
    mov %rdi, %rax
    mov %rdx, %rcx
    mov %rsi, %r11
    mov (%r11), %rdi
    mov 8(%r11), %rsi
    mov 16(%r11), %rdx
    mov 24(%r11), %r10
    mov 32(%r11), %r8
    mov 40(%r11), %r9
trapline_syscall_begin:
    cmpb $0, (%rcx)
    jne trapline_syscall_interrupted
trapline_syscall_call:
    syscall
    ret
trapline_syscall_interrupted:
    mov $-512, %rax
    ret
    .size trapline_interruptible_syscall, . - trapline_interruptible_syscall

// long trapline_clone_with_stack(uint64_t flags, void* stack_top, void (*entry)(void*), void* argument, uint64_t pidfd,
//                                uint32_t* clear_tid)
//
// clone(2) with `pidfd` and `clear_tid` as third and fourth argument whose child runs entry(argument) on a stack of its own and never returns from it.
    .globl trapline_clone_with_stack
    .type trapline_clone_with_stack, @function
trapline_clone_with_stack:
    and $-16, %rsi
    lea -16(%rsi), %rsi
    mov %rdx, (%rsi)
    mov %rcx, 8(%rsi)
    mov %r8, %rdx
    mov %r9, %r10
    xor %r8d, %r8d
    mov $56, %eax
    syscall
    test %rax, %rax
    jnz 1f
    xor %ebp, %ebp
    pop %rax
    pop %rdi
    call *%rax
    ud2
1:  ret
    .size trapline_clone_with_stack, . - trapline_clone_with_stack

    .globl trapline_signal_return
    .type trapline_signal_return, @function
trapline_signal_return:
    mov $15, %eax
    syscall
    .size trapline_signal_return, . - trapline_signal_return

    .section .note.GNU-stack, "", @progbits

// The usual repeat (repeats.h), found without a call of the slow path: copied into the code cache, before its own slow
// path, so position-independent. It is jumped to on the slow path's stack, with the return address and the site there,
// and either returns itself or reaches its end with all registers as they were. It does what
// trapline_agent_repeats does first, and fills the filter.
#include "guest-agent/layout.h"

    .section .rodata.trapline_fast_repeats, "a", @progbits

    // log2 of the bytes: 2, 3 or 4.
    .macro FAST_REPEAT log2, write
    .set words, 1 << (\log2 - 2)
    .set bits, ((1 << words) - 1) << (4 * \write)
    .balign 16
    .globl trapline_fast_repeat_\log2\()_\write, trapline_fast_repeat_\log2\()_\write\()_end
trapline_fast_repeat_\log2\()_\write:
    push %rax
    lahf
    seto %al
    push %rax
    push %rcx
    push %rdx
    push %rsi
    push %rdi
    push %r8
    mov TRAPLINE_CACHE_ACCESS_ADDRESS, %rsi
    mov TRAPLINE_THREAD_REPEAT_TABLE, %rdi
    test %rdi, %rdi
    jz 9f
    cmpq $0, TRAPLINE_REPEATS       // enabled
    je 9f
    cmpq $1, TRAPLINE_CACHE_LEAVE_AFTER
    je 9f                           // the handler sees to that
    // MayRepeat
    .if \log2 == 4
    test $15, %sil
    .else
    test $3, %sil
    .endif
    jnz 9f
    .if \log2 == 3
    mov %esi, %eax
    not %eax
    test $12, %al
    jz 9f
    .endif
    mov %rsi, %rdx                  // block
    shr $4, %rdx
    mov %rdx, %rax
    shr $TRAPLINE_REPEAT_BLOCK_BITS, %rax
    xor %edx, %eax
    and $((1 << TRAPLINE_REPEAT_BLOCK_BITS) - 1), %eax
    mov %eax, %r8d                  // IndexOf
    and $((1 << TRAPLINE_REPEAT_LINE_BITS) - 1), %eax
    shl $6, %eax                    // LineOf
    mov TRAPLINE_REPEAT_USE(, %r8, 4), %ecx
    cmp %ecx, TRAPLINE_REPEAT_LINE_USE(%rdi, %rax)
    jne 9f
    mov %esi, %ecx
    shr $2, %ecx
    and $3, %ecx                    // first word
    mov (%rdi, %rax), %rsi
    xor %rdx, %rsi
    shl $(64 - TRAPLINE_REPEAT_TOLD_SHIFT), %rsi
    jnz 9f                          // another block's line
    mov $((bits | bits << 8) << (TRAPLINE_REPEAT_TOLD_SHIFT - 32)), %edx
    shl %cl, %edx
    mov 4(%rdi, %rax), %esi
    not %esi
    test %edx, %esi
    jnz 9f                          // not told, or not granted
    mov 64(%rsp), %rdx              // site
    cmpb $0, TRAPLINE_SITE_PLAIN(%rdx)
    je 9f
    decq TRAPLINE_CACHE_LEAVE_AFTER
    // Note
    mov TRAPLINE_SHARED_PAGE, %esi
    cmp $1, %esi
    sbb $0, %esi
    add %rax, %rdi
    shr $1, %eax
    add TRAPLINE_THREAD_REPEAT_SITES, %rax
    .set word, 0
    .rept words
    mov %edx, 16 * \write + 4 * word(%rax, %rcx, 4)
    .set word, word + 1
    .endr
    .set word, 0
    .rept words - 1
    mov %esi, TRAPLINE_REPEAT_LINE_MOMENTS + 16 * \write + 4 * word(%rdi, %rcx, 4)
    .set word, word + 1
    .endr
    xchg %esi, TRAPLINE_REPEAT_LINE_MOMENTS + 16 * \write + 4 * word(%rdi, %rcx, 4)
    // Who has ended the peace meanwhile may not have seen the note.
    mov TRAPLINE_REPEAT_USE(, %r8, 4), %eax
    cmp %eax, TRAPLINE_REPEAT_LINE_USE(%rdi)
    jne 9f
    incq TRAPLINE_THREAD_REPEATS
    // Not again in this epoch.
    mov TRAPLINE_CACHE_ACCESS_ADDRESS, %rsi
    mov TRAPLINE_CACHE_SIGNATURE + 8 * \log2, %rax
    add %rsi, %rax
    .if \log2 == 2
    shl $1, %esi                    // CacheThread::FilterShift
    .endif
    and $(TRAPLINE_CACHE_FILTER_PLANE - 8), %esi
    mov %rax, TRAPLINE_CACHE_FILTER + \write * TRAPLINE_CACHE_FILTER_PLANE(%rsi)
    .macro BACK
    pop %r8
    pop %rdi
    pop %rsi
    pop %rdx
    pop %rcx
    pop %rax
    add $0x7f, %al
    sahf
    pop %rax
    .endm
    BACK
    ret $8
9:  BACK
    .purgem BACK
trapline_fast_repeat_\log2\()_\write\()_end:
    .endm

    FAST_REPEAT 2, 0
    FAST_REPEAT 2, 1
    FAST_REPEAT 3, 0
    FAST_REPEAT 3, 1
    FAST_REPEAT 4, 0
    FAST_REPEAT 4, 1

    .section .note.GNU-stack, "", @progbits

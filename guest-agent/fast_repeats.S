// The usual repeat (repeats.h), found without a call of the slow path: copied into the code cache, before its own slow
// path, so position-independent. It is jumped to on the slow path's stack, with the return address and the site there,
// and either returns itself or reaches its end with all registers as they were, but not the flags. It does what
// trapline_agent_repeats does first, and fills the filter.
#include "guest-agent/layout.h"

    .section .rodata.trapline_fast_repeats, "a", @progbits

    // log2 of the bytes, 0 to 4.
    .macro FAST_REPEAT log2, write
    .if \log2 < 2
    .set pieces, 1 << \log2
    .else
    .set pieces, 1 << (\log2 - 2)
    .endif
    .set told, ((1 << pieces) - 1) << (4 * \write)
    .balign 16
    .globl trapline_fast_repeat_\log2\()_\write, trapline_fast_repeat_\log2\()_\write\()_end
trapline_fast_repeat_\log2\()_\write:
    push %rax
    push %rcx
    push %rdx
    push %rsi
    push %rdi
    mov TRAPLINE_CACHE_ACCESS_ADDRESS, %rsi
    mov %esi, %eax
    shr $TRAPLINE_SUBSECTOR_BITS, %eax
    movzbl TRAPLINE_SUBSECTOR_USE(%rax), %eax
    .if \write
    // Settled, and left out but for being counted? The use is in bits that are left alone.
    xor $TRAPLINE_SECTOR_SETTLED, %eax
    cmp TRAPLINE_THREAD_REPEAT_USER, %eax
    jne 4f
    mov 48(%rsp), %rdx              // site
    cmpb $0, TRAPLINE_SITE_LEAVES_OUT(%rdx)
    je 4f
    decq TRAPLINE_THREAD_COUNTED_WRITES
    jg 8f
    movq $1, TRAPLINE_CACHE_LEAVE_AFTER
    jmp 9f
4:
    .endif
    mov TRAPLINE_THREAD_REPEAT_TABLE, %rdi
    test %rdi, %rdi
    jz 9f
    cmpq $0, TRAPLINE_REPEATS       // enabled
    je 9f
    cmpq $1, TRAPLINE_CACHE_LEAVE_AFTER
    je 9f                           // the handler sees to that
    // NoteSectorUse: only where the subsector is used as before.
    cmpq $0, TRAPLINE_KEEPS_SECTOR_USE
    je 1f
    and $((1 << TRAPLINE_SECTOR_USE_BITS) - 1), %eax
    cmp TRAPLINE_THREAD_REPEAT_USER, %eax
    je 1f
    .if \write
    cmp $TRAPLINE_SECTOR_SHARED, %eax
    .else
    cmp $TRAPLINE_SECTOR_OF_READERS, %eax
    .endif
    jb 9f
1:  // MayRepeat
    .if \log2 == 4
    test $15, %sil
    jnz 9f
    .elseif \log2 >= 2
    test $3, %sil
    jnz 9f
    .elseif \log2 == 1
    mov %esi, %eax
    not %eax
    test $3, %al
    jz 9f
    .endif
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
    and $((1 << TRAPLINE_REPEAT_BLOCK_BITS) - 1), %eax  // IndexOf
    mov %esi, %ecx
    .if \log2 < 2
    mov %rsi, %rdx
    shr $2, %rdx
    mov %edx, %esi
    and $3, %esi
    lea (%rsi, %rax, 4), %esi       // BytewiseLineOf
    bts $TRAPLINE_REPEAT_BYTEWISE_BIT, %rdx
    .else
    mov %eax, %esi
    shr $2, %ecx
    .endif
    and $3, %ecx                    // first piece
    and TRAPLINE_THREAD_REPEAT_LINE_MASK, %esi
    shl $6, %esi                    // LineOf
    add %rsi, %rdi
    // The line must be that of these bytes, no bit of which is left, with all bits that are wanted.
    xor (%rdi), %rdx
    rol $(64 - TRAPLINE_REPEAT_TOLD_SHIFT), %rdx
    cmp $((1 << (64 - TRAPLINE_REPEAT_TOLD_SHIFT)) - 1), %rdx
    ja 9f
    shr %cl, %edx
    not %edx
    test $(told | \write * told << 4), %edx
    jnz 9f                          // not told, or not granted
    mov TRAPLINE_REPEAT_USE(, %rax, 4), %edx
    cmp %edx, TRAPLINE_REPEAT_LINE_USE(%rdi)
    jne 9f
    mov 48(%rsp), %rdx              // site
    .if \write
    cmpb $0, TRAPLINE_SITE_PLAIN(%rdx)
    je 9f
    .endif
    cmpw $0, TRAPLINE_SITE_COLD(%rdx)
    jle 2f
    decw TRAPLINE_SITE_COLD(%rdx)   // several threads may do so at a time
    jle 9f                          // it may leave something out from now on
2:  decq TRAPLINE_CACHE_LEAVE_AFTER
    // Note
    .if \write
    shr $2, %esi
    add TRAPLINE_THREAD_REPEAT_WRITE_SITES, %rsi
    .endif
    .set piece, 0
    .rept pieces
    .if \write
    mov %edx, 4 * piece(%rsi, %rcx, 4)
    .else
    mov %edx, TRAPLINE_REPEAT_LINE_READ_SITES + 4 * piece(%rdi, %rcx, 4)
    .endif
    .set piece, piece + 1
    .endr
    mov TRAPLINE_SHARED_PAGE, %esi
    cmp $1, %esi
    sbb $0, %esi
    .set piece, 0
    .rept pieces - 1
    mov %esi, TRAPLINE_REPEAT_LINE_MOMENTS + 16 * \write + 4 * piece(%rdi, %rcx, 4)
    .set piece, piece + 1
    .endr
    xchg %esi, TRAPLINE_REPEAT_LINE_MOMENTS + 16 * \write + 4 * piece(%rdi, %rcx, 4)
    // Who has ended the peace meanwhile may not have seen the note.
    mov TRAPLINE_REPEAT_USE(, %rax, 4), %eax
    cmp %eax, TRAPLINE_REPEAT_LINE_USE(%rdi)
    jne 9f
    incq TRAPLINE_THREAD_REPEATS
    // Not again in this epoch.
    mov TRAPLINE_CACHE_ACCESS_ADDRESS, %rsi
    mov TRAPLINE_CACHE_SIGNATURE + 8 * \log2, %rax
    add %rsi, %rax
    .if \log2 < 3
    shl $(3 - \log2), %esi          // CacheThread::FilterShift
    .endif
    and $(TRAPLINE_CACHE_FILTER_PLANE - 8), %esi
    mov %rax, TRAPLINE_CACHE_FILTER + \write * TRAPLINE_CACHE_FILTER_PLANE(%rsi)
    .macro BACK
    pop %rdi
    pop %rsi
    pop %rdx
    pop %rcx
    pop %rax
    .endm
8:  BACK
    ret $8
9:  BACK
    .purgem BACK
trapline_fast_repeat_\log2\()_\write\()_end:
    .endm

    FAST_REPEAT 0, 0
    FAST_REPEAT 0, 1
    FAST_REPEAT 1, 0
    FAST_REPEAT 1, 1
    FAST_REPEAT 2, 0
    FAST_REPEAT 2, 1
    FAST_REPEAT 3, 0
    FAST_REPEAT 3, 1
    FAST_REPEAT 4, 0
    FAST_REPEAT 4, 1

    .section .note.GNU-stack, "", @progbits

/* Functions of the C++ runtime, which have no C header. */
#ifndef TRAPLINE_GUEST_AGENT_PRELOAD_DECLARATIONS_H_
#define TRAPLINE_GUEST_AGENT_PRELOAD_DECLARATIONS_H_

#include <stddef.h>
#include <stdint.h>

/* operator new, new[], delete, delete[] in the variants of [new.delete]: plain, nothrow, aligned,
 * sized (Itanium C++ ABI names; size_t is m, std::align_val_t and std::nothrow_t by name). */
void* _Znwm(size_t size);
void* _Znam(size_t size);
void* _ZnwmRKSt9nothrow_t(size_t size, const void* nothrow);
void* _ZnamRKSt9nothrow_t(size_t size, const void* nothrow);
void* _ZnwmSt11align_val_t(size_t size, size_t alignment);
void* _ZnamSt11align_val_t(size_t size, size_t alignment);
void* _ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void* nothrow);
void* _ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void* nothrow);
void _ZdlPv(void* block);
void _ZdaPv(void* block);
void _ZdlPvm(void* block, size_t size);
void _ZdaPvm(void* block, size_t size);
void _ZdlPvRKSt9nothrow_t(void* block, const void* nothrow);
void _ZdaPvRKSt9nothrow_t(void* block, const void* nothrow);
void _ZdlPvSt11align_val_t(void* block, size_t alignment);
void _ZdaPvSt11align_val_t(void* block, size_t alignment);
void _ZdlPvmSt11align_val_t(void* block, size_t size, size_t alignment);
void _ZdaPvmSt11align_val_t(void* block, size_t size, size_t alignment);
void _ZdlPvSt11align_val_tRKSt9nothrow_t(void* block, size_t alignment, const void* nothrow);
void _ZdaPvSt11align_val_tRKSt9nothrow_t(void* block, size_t alignment, const void* nothrow);

/* Guards of static locals (Itanium C++ ABI 3.3.3). */
int __cxa_guard_acquire(uint64_t* guard);
void __cxa_guard_release(uint64_t* guard);

#endif

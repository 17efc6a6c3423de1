/* Functions that no C header declares: of the C++ runtime, and those of libc that only the compiler
 * calls. */
#ifndef TRAPLINE_GUEST_AGENT_PRELOAD_DECLARATIONS_H_
#define TRAPLINE_GUEST_AGENT_PRELOAD_DECLARATIONS_H_

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

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

/* Checked variants (_FORTIFY_SOURCE): `capacity` is the size of the object written to, `flag`
 * says whether %n must be in read-only memory. */
void* __memcpy_chk(void* restrict to, const void* restrict from, size_t size, size_t capacity);
void* __memmove_chk(void* to, const void* from, size_t size, size_t capacity);
void* __mempcpy_chk(void* restrict to, const void* restrict from, size_t size, size_t capacity);
void* __memset_chk(void* to, int value, size_t size, size_t capacity);
char* __strcpy_chk(char* restrict to, const char* restrict from, size_t capacity);
char* __stpcpy_chk(char* restrict to, const char* restrict from, size_t capacity);
char* __strncpy_chk(char* restrict to, const char* restrict from, size_t limit, size_t capacity);
char* __stpncpy_chk(char* restrict to, const char* restrict from, size_t limit, size_t capacity);
char* __strcat_chk(char* restrict to, const char* restrict from, size_t capacity);
char* __strncat_chk(char* restrict to, const char* restrict from, size_t limit, size_t capacity);
int __printf_chk(int flag, const char* restrict format, ...);
int __fprintf_chk(FILE* restrict stream, int flag, const char* restrict format, ...);
int __dprintf_chk(int file, int flag, const char* restrict format, ...);
int __sprintf_chk(char* restrict buffer, int flag, size_t capacity, const char* restrict format,
                  ...);
int __snprintf_chk(char* restrict buffer, size_t size, int flag, size_t capacity,
                   const char* restrict format, ...);
int __asprintf_chk(char** restrict block, int flag, const char* restrict format, ...);
int __vprintf_chk(int flag, const char* restrict format, va_list arguments);
int __vfprintf_chk(FILE* restrict stream, int flag, const char* restrict format, va_list arguments);
int __vdprintf_chk(int file, int flag, const char* restrict format, va_list arguments);
int __vsprintf_chk(char* restrict buffer, int flag, size_t capacity, const char* restrict format,
                   va_list arguments);
int __vsnprintf_chk(char* restrict buffer, size_t size, int flag, size_t capacity,
                    const char* restrict format, va_list arguments);
int __vasprintf_chk(char** restrict block, int flag, const char* restrict format,
                    va_list arguments);
size_t __fread_chk(void* restrict block, size_t capacity, size_t size, size_t count,
                   FILE* restrict stream);
size_t __fread_unlocked_chk(void* restrict block, size_t capacity, size_t size, size_t count,
                            FILE* restrict stream);
char* __fgets_chk(char* restrict buffer, size_t capacity, int size, FILE* restrict stream);
char* __fgets_unlocked_chk(char* restrict buffer, size_t capacity, int size, FILE* restrict stream);
ssize_t __getdelim(char** restrict buffer, size_t* restrict capacity, int delimiter,
                   FILE* restrict stream);
char* __strdup(const char* text);

#endif

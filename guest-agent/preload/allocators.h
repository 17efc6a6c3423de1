/* What allocators call their own functions, those by which programs use them beside malloc, or
 * instead of it: mimalloc (mimalloc.h), jemalloc (jemalloc(3), also built with the prefix je_),
 * tcmalloc (gperftools/tcmalloc.h), and OpenMP's allocation (5.2, 18.13) with LLVM's of the same.
 * Those that resize a block in place or give a whole heap back are not here: what is allocated
 * there next counts as new anyway.
 *
 * Listed by what they do, each with the number of its arguments, which all fit a register and are
 * called a, b, c, ...: ALLOCATE(name, arguments, size of the new block), FREE(name, arguments) of
 * block a, REALLOCATE(name, arguments, block, new size), POSIX(name) as posix_memalign. SIZE_OF: by
 * the allocator's own function. */
#ifndef TRAPLINE_GUEST_AGENT_PRELOAD_ALLOCATORS_H_
#define TRAPLINE_GUEST_AGENT_PRELOAD_ALLOCATORS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MIMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX) \
  ALLOCATE(mi_malloc, 1, a)                                         \
  ALLOCATE(mi_malloc_small, 1, a)                                   \
  ALLOCATE(mi_zalloc, 1, a)                                         \
  ALLOCATE(mi_zalloc_small, 1, a)                                   \
  ALLOCATE(mi_calloc, 2, (a) * (b))                                 \
  ALLOCATE(mi_mallocn, 2, (a) * (b))                                \
  ALLOCATE(mi_malloc_aligned, 2, a)                                 \
  ALLOCATE(mi_malloc_aligned_at, 3, a)                              \
  ALLOCATE(mi_zalloc_aligned, 2, a)                                 \
  ALLOCATE(mi_zalloc_aligned_at, 3, a)                              \
  ALLOCATE(mi_calloc_aligned, 3, (a) * (b))                         \
  ALLOCATE(mi_calloc_aligned_at, 4, (a) * (b))                      \
  ALLOCATE(mi_heap_malloc, 2, b)                                    \
  ALLOCATE(mi_heap_malloc_small, 2, b)                              \
  ALLOCATE(mi_heap_zalloc, 2, b)                                    \
  ALLOCATE(mi_heap_calloc, 3, (b) * (c))                            \
  ALLOCATE(mi_heap_mallocn, 3, (b) * (c))                           \
  ALLOCATE(mi_heap_malloc_aligned, 3, b)                            \
  ALLOCATE(mi_heap_malloc_aligned_at, 4, b)                         \
  ALLOCATE(mi_heap_zalloc_aligned, 3, b)                            \
  ALLOCATE(mi_heap_zalloc_aligned_at, 4, b)                         \
  ALLOCATE(mi_heap_calloc_aligned, 4, (b) * (c))                    \
  ALLOCATE(mi_heap_calloc_aligned_at, 5, (b) * (c))                 \
  ALLOCATE(mi_heap_alloc_new, 2, b)                                 \
  ALLOCATE(mi_heap_alloc_new_n, 3, (b) * (c))                       \
  ALLOCATE(mi_new, 1, a)                                            \
  ALLOCATE(mi_new_nothrow, 1, a)                                    \
  ALLOCATE(mi_new_aligned, 2, a)                                    \
  ALLOCATE(mi_new_aligned_nothrow, 2, a)                            \
  ALLOCATE(mi_new_n, 2, (a) * (b))                                  \
  ALLOCATE(mi_memalign, 2, b)                                       \
  ALLOCATE(mi_aligned_alloc, 2, b)                                  \
  ALLOCATE(mi_valloc, 1, a)                                         \
  ALLOCATE(mi_pvalloc, 1, a)                                        \
  ALLOCATE(mi_strdup, 1, SIZE_OF(block))                            \
  ALLOCATE(mi_strndup, 2, SIZE_OF(block))                           \
  ALLOCATE(mi_heap_strdup, 2, SIZE_OF(block))                       \
  ALLOCATE(mi_heap_strndup, 3, SIZE_OF(block))                      \
  POSIX(mi_posix_memalign)                                          \
  REALLOCATE(mi_realloc, 2, a, b)                                   \
  REALLOCATE(mi_reallocf, 2, a, b)                                  \
  REALLOCATE(mi_reallocn, 3, a, (b) * (c))                          \
  REALLOCATE(mi_reallocarray, 3, a, (b) * (c))                      \
  REALLOCATE(mi_rezalloc, 2, a, b)                                  \
  REALLOCATE(mi_recalloc, 3, a, (b) * (c))                          \
  REALLOCATE(mi_realloc_aligned, 3, a, b)                           \
  REALLOCATE(mi_realloc_aligned_at, 4, a, b)                        \
  REALLOCATE(mi_rezalloc_aligned, 3, a, b)                          \
  REALLOCATE(mi_rezalloc_aligned_at, 4, a, b)                       \
  REALLOCATE(mi_recalloc_aligned, 4, a, (b) * (c))                  \
  REALLOCATE(mi_recalloc_aligned_at, 5, a, (b) * (c))               \
  REALLOCATE(mi_aligned_recalloc, 4, a, (b) * (c))                  \
  REALLOCATE(mi_aligned_offset_recalloc, 5, a, (b) * (c))           \
  REALLOCATE(mi_new_realloc, 2, a, b)                               \
  REALLOCATE(mi_new_reallocn, 3, a, (b) * (c))                      \
  REALLOCATE(mi_heap_realloc, 3, b, c)                              \
  REALLOCATE(mi_heap_reallocf, 3, b, c)                             \
  REALLOCATE(mi_heap_reallocn, 4, b, (c) * (d))                     \
  REALLOCATE(mi_heap_rezalloc, 3, b, c)                             \
  REALLOCATE(mi_heap_recalloc, 4, b, (c) * (d))                     \
  REALLOCATE(mi_heap_realloc_aligned, 4, b, c)                      \
  REALLOCATE(mi_heap_realloc_aligned_at, 5, b, c)                   \
  REALLOCATE(mi_heap_rezalloc_aligned, 4, b, c)                     \
  REALLOCATE(mi_heap_rezalloc_aligned_at, 5, b, c)                  \
  REALLOCATE(mi_heap_recalloc_aligned, 5, b, (c) * (d))             \
  REALLOCATE(mi_heap_recalloc_aligned_at, 6, b, (c) * (d))          \
  FREE(mi_free, 1)                                                  \
  FREE(mi_cfree, 1)                                                 \
  FREE(mi_free_size, 2)                                             \
  FREE(mi_free_aligned, 2)                                          \
  FREE(mi_free_size_aligned, 3)

#define JEMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX) \
  ALLOCATE(mallocx, 2, a)                                           \
  REALLOCATE(rallocx, 3, a, b)                                      \
  FREE(dallocx, 2)                                                  \
  FREE(sdallocx, 3)

#define PREFIXED_JEMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX) \
  ALLOCATE(je_malloc, 1, a)                                                  \
  ALLOCATE(je_calloc, 2, (a) * (b))                                          \
  ALLOCATE(je_memalign, 2, b)                                                \
  ALLOCATE(je_aligned_alloc, 2, b)                                           \
  ALLOCATE(je_valloc, 1, a)                                                  \
  ALLOCATE(je_mallocx, 2, a)                                                 \
  POSIX(je_posix_memalign)                                                   \
  REALLOCATE(je_realloc, 2, a, b)                                            \
  REALLOCATE(je_rallocx, 3, a, b)                                            \
  FREE(je_free, 1)                                                           \
  FREE(je_dallocx, 2)                                                        \
  FREE(je_sdallocx, 3)

#define TCMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX) \
  ALLOCATE(tc_malloc, 1, a)                                         \
  ALLOCATE(tc_malloc_skip_new_handler, 1, a)                        \
  ALLOCATE(tc_calloc, 2, (a) * (b))                                 \
  ALLOCATE(tc_memalign, 2, b)                                       \
  ALLOCATE(tc_valloc, 1, a)                                         \
  ALLOCATE(tc_pvalloc, 1, a)                                        \
  ALLOCATE(tc_new, 1, a)                                            \
  ALLOCATE(tc_new_nothrow, 2, a)                                    \
  ALLOCATE(tc_new_aligned, 2, a)                                    \
  ALLOCATE(tc_new_aligned_nothrow, 3, a)                            \
  ALLOCATE(tc_newarray, 1, a)                                       \
  ALLOCATE(tc_newarray_nothrow, 2, a)                               \
  ALLOCATE(tc_newarray_aligned, 2, a)                               \
  ALLOCATE(tc_newarray_aligned_nothrow, 3, a)                       \
  POSIX(tc_posix_memalign)                                          \
  REALLOCATE(tc_realloc, 2, a, b)                                   \
  FREE(tc_free, 1)                                                  \
  FREE(tc_free_sized, 2)                                            \
  FREE(tc_cfree, 1)                                                 \
  FREE(tc_delete, 1)                                                \
  FREE(tc_delete_sized, 2)                                          \
  FREE(tc_delete_nothrow, 2)                                        \
  FREE(tc_delete_aligned, 2)                                        \
  FREE(tc_delete_sized_aligned, 3)                                  \
  FREE(tc_delete_aligned_nothrow, 3)                                \
  FREE(tc_deletearray, 1)                                           \
  FREE(tc_deletearray_sized, 2)                                     \
  FREE(tc_deletearray_nothrow, 2)                                   \
  FREE(tc_deletearray_aligned, 2)                                   \
  FREE(tc_deletearray_sized_aligned, 3)                             \
  FREE(tc_deletearray_aligned_nothrow, 3)

/* Nothing says how large a block of theirs is: giving it back is not told. */
#define OPENMP_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX) \
  ALLOCATE(omp_alloc, 2, a)                                       \
  ALLOCATE(omp_calloc, 3, (a) * (b))                              \
  ALLOCATE(omp_aligned_alloc, 3, b)                               \
  ALLOCATE(omp_aligned_calloc, 4, (b) * (c))                      \
  ALLOCATE(omp_realloc, 4, b)

#define KMP_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX) \
  ALLOCATE(kmp_malloc, 1, a)                                   \
  ALLOCATE(kmp_calloc, 2, (a) * (b))                           \
  ALLOCATE(kmp_aligned_malloc, 2, a)                           \
  ALLOCATE(kmp_realloc, 2, b)

#define BLOCK_PARAMETERS_1 size_t a
#define BLOCK_PARAMETERS_2 size_t a, size_t b
#define BLOCK_PARAMETERS_3 size_t a, size_t b, size_t c
#define BLOCK_PARAMETERS_4 size_t a, size_t b, size_t c, size_t d
#define BLOCK_PARAMETERS_5 size_t a, size_t b, size_t c, size_t d, size_t e
#define BLOCK_PARAMETERS_6 size_t a, size_t b, size_t c, size_t d, size_t e, size_t f
#define BLOCK_ARGUMENTS_1 a
#define BLOCK_ARGUMENTS_2 a, b
#define BLOCK_ARGUMENTS_3 a, b, c
#define BLOCK_ARGUMENTS_4 a, b, c, d
#define BLOCK_ARGUMENTS_5 a, b, c, d, e
#define BLOCK_ARGUMENTS_6 a, b, c, d, e, f
#define DECLARE_ALLOCATE(name, count, size) void* name(BLOCK_PARAMETERS_##count);
#define DECLARE_FREE(name, count) void name(BLOCK_PARAMETERS_##count);
#define DECLARE_REALLOCATE(name, count, block, size) void* name(BLOCK_PARAMETERS_##count);
#define DECLARE_POSIX(name) int name(void** result, size_t alignment, size_t size);
#define DECLARE_BLOCK_FUNCTIONS(list) \
  list(DECLARE_ALLOCATE, DECLARE_FREE, DECLARE_REALLOCATE, DECLARE_POSIX)

DECLARE_BLOCK_FUNCTIONS(MIMALLOC_BLOCK_FUNCTIONS)
DECLARE_BLOCK_FUNCTIONS(JEMALLOC_BLOCK_FUNCTIONS)
DECLARE_BLOCK_FUNCTIONS(PREFIXED_JEMALLOC_BLOCK_FUNCTIONS)
DECLARE_BLOCK_FUNCTIONS(TCMALLOC_BLOCK_FUNCTIONS)
DECLARE_BLOCK_FUNCTIONS(OPENMP_BLOCK_FUNCTIONS)
DECLARE_BLOCK_FUNCTIONS(KMP_BLOCK_FUNCTIONS)
/* How large a block is. */
size_t mi_usable_size(const void* block);
size_t sallocx(const void* block, int flags);
size_t je_sallocx(const void* block, int flags);
size_t tc_malloc_size(void* block);

#ifdef __cplusplus
}
#endif

#endif

// Atomic operations behind macros, one of which names another one.
#pragma once

#define STORE_WITH(pointer, value, order)        \
  do {                                           \
    __typeof__(*(pointer)) stored = (value);     \
    __atomic_store((pointer), &stored, (order)); \
  } while (0)
#define STORE_RELEASE(pointer, value) STORE_WITH(pointer, value, __ATOMIC_RELEASE)
#define LOAD_ACQUIRE(pointer)                            \
  ({                                                     \
    __typeof__(*(pointer)) loaded;                       \
    __atomic_load((pointer), &loaded, __ATOMIC_ACQUIRE); \
    loaded;                                              \
  })

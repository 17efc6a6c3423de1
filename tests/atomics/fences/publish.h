// A fence that only the preprocessor sees.
#define PUBLISH() __atomic_thread_fence(__ATOMIC_RELEASE)

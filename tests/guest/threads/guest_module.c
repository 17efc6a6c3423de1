// Loaded by tls_dynamic and misc/dlopen_module.
static __thread int counter = 77;

int* GuestCounter(void);
int GuestAdd(int a, int b);

int* GuestCounter(void) { return &counter; }
int GuestAdd(int a, int b) { return a + b; }

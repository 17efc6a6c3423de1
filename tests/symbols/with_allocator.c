// A program with an allocator in it, as far as the names of its functions go.
#define FUNCTION(name) \
  void name(void);     \
  void name(void) {}

FUNCTION(je_arena_boot)
FUNCTION(je_base_boot)
FUNCTION(je_ctl_bymib)
FUNCTION(je_large_dalloc)

int main(void) { return 0; }

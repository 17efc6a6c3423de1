// C code of the program symbolizer_test looks at.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

int CFunction(int value);

#ifdef __cplusplus
}

#ifdef __cplusplus
namespace names {

// Parts of objects that share bytes, or lie where others would end.
struct Flags {
  unsigned a : 3, b : 5;
  unsigned long wide : 40;
  unsigned last : 1;
};
struct Base {
  Base() : word(1), tail('t') {}
  long word;
  char tail;
};
struct Derived : Base {
  char reused;  // padding of Base's
};
struct Root {
  long root[4];
};
struct Left : virtual Root {
  int left;
};
struct Right : virtual Root {
  int right;
};
struct Diamond : Left, Right {
  int own;
};
struct Parts {
  Flags flags;
  char text[200];  // more than a signed byte counts
  Derived derived;
  Diamond diamond;
};

}  // namespace names
#endif

#endif

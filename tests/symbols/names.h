// C code of the program symbolizer_test looks at.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

int CFunction(int value);

#ifdef __cplusplus
}
#endif

#include <stdio.h>
int main(void) { puts("built"); return 3; }
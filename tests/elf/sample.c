// A program with code, constants, data and bss: one of each kind of segment.
const char constant[] = "constant";
int data = 42;
int bss[5000];

int main(void) { return data - 42 + bss[4999] + constant[8]; }

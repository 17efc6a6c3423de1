// The program's function that qsort calls is the program's code.
// RACE any global:calls a a
// MAY-MISS shared: the second thread may come late
#include "race.h"

volatile int calls;

static int Compare(const void* left, const void* right) {
  calls++;  // [a]
  return *(const int*)left - *(const int*)right;
}

static void* Sorter(void* argument) {
  int numbers[4] = {4, 3, 2, 1};
  qsort(numbers, 4, sizeof(int), Compare);
  Check(numbers[0] == 1);
  return argument;
}

int main(void) {
  RunTwo(Sorter, Sorter);
  return Done();
}

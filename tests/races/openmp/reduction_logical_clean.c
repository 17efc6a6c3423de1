// What gcc makes of reductions by && and || of a float is a loop around a compare-and-exchange that
// begins with a load far before it.
// CLEAN
// BUILD O0 O2
// NEEDS openmp
// FLAGS -fopenmp
// TSAN-DIFFERS libgomp is not instrumented
#include "race.h"

enum { kThreads = 3, kElements = 256, kRounds = 20 };
static float elements[kElements];
static int factors[kElements];

__attribute__((noinline)) static float Any(void) {
  float any = 0;
#pragma omp parallel for reduction(|| : any) num_threads(kThreads)
  for (int i = 0; i < kElements; i++) any = any || elements[i];
  return any;
}

__attribute__((noinline)) static float All(void) {
  float all = 1;
#pragma omp parallel for reduction(&& : all) num_threads(kThreads)
  for (int i = 0; i < kElements; i++) all = all && elements[i];
  return all;
}

__attribute__((noinline, optimize("O3"))) static int Product(void) {
  int product = 1;
#pragma omp parallel for reduction(* : product) num_threads(kThreads)
  for (int i = 0; i < kElements; i++) product *= factors[i];
  return product;
}

int main(void) {
  elements[100] = 1;
  for (int i = 0; i < kElements; i++) factors[i] = i % 100 == 0 ? 2 : 1;
  int wrong = 0;
  for (int i = 0; i < kRounds; i++) wrong += Any() != 1 || All() != 0 || Product() != 8;
  return wrong == 0 ? Done() : 1;
}

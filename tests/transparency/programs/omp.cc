#include <cstdio>
#include <vector>

int main() {
  std::vector<double> v(1 << 20);
#pragma omp parallel for
  for (int i = 0; i < 1 << 20; ++i) v[i] = i * 0.5;
  double sum = 0;
  for (int round = 0; round < 20; ++round) {
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 1 << 20; ++i) sum += v[i];
  }
  int tasks = 0;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 100; ++i) {
#pragma omp task
#pragma omp atomic
    ++tasks;
  }
  std::printf("sum %.1f tasks %d\n", sum, tasks);
}

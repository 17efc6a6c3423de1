// A plug-in of plugin_host.c that brings libgomp in with it.
extern "C" int plugin_run() {
  int sum = 0;
#pragma omp parallel num_threads(3)
  {
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < 100; ++i) sum += i;
#pragma omp single
    for (int i = 0; i < 10; ++i) {
#pragma omp task shared(sum)
      {
#pragma omp critical
        ++sum;
      }
    }
  }
  return sum;
}

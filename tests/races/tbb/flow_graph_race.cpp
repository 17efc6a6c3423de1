// A node that takes messages as they come has state of its own.
// RACE any global:seen counts counts
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD O0 O2 gcc-O2-nodebug stripped
#include <tbb/flow_graph.h>

#include "tbb_race.h"

static int seen;

int main() {
  InArena([] {
    tbb::flow::graph graph;
    tbb::flow::function_node<int> node(graph, tbb::flow::unlimited, [](int i) {
      Meet(i);
      seen = seen + 1;  // [counts]
    });
    node.try_put(0);
    node.try_put(1);
    graph.wait_for_all();
  });
  Use(seen);
  return Done();
}

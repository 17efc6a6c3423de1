// Messages of a flow graph carry what they point to; serial nodes have their state to themselves.
// CLEAN
// SECONDS 90
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD gcc-O0 gcc-O0-nodebug O2 gcc-O2-nodebug clang-O2-nodebug
#include <tbb/flow_graph.h>

#include <memory>

#include "tbb_race.h"

int main() {
  long total = 0, started = 0;
  InArena([&] {
    using Message = std::shared_ptr<long>;
    tbb::flow::graph graph;
    tbb::flow::function_node<int, Message> square(
        graph, tbb::flow::unlimited, [](int i) { return std::make_shared<long>(long{i} * i); });
    tbb::flow::queue_node<Message> queue(graph);
    tbb::flow::function_node<Message> sum(graph, tbb::flow::serial, [&](const Message& message) {
      total += (*message)++;
      return tbb::flow::continue_msg();
    });
    tbb::flow::make_edge(square, queue);
    tbb::flow::make_edge(queue, sum);
    for (int i = 0; i < 100; ++i) square.try_put(i);
    graph.wait_for_all();
    using tbb::flow::continue_msg;
    tbb::flow::continue_node<continue_msg> start(graph, [&](const continue_msg&) { started = 1; });
    tbb::flow::continue_node<continue_msg> left(graph,
                                                [&](const continue_msg&) { Check(started == 1); });
    tbb::flow::continue_node<continue_msg> right(graph,
                                                 [&](const continue_msg&) { Check(started == 1); });
    tbb::flow::continue_node<continue_msg> end(graph, [&](const continue_msg&) { started = 2; });
    tbb::flow::make_edge(start, left);
    tbb::flow::make_edge(start, right);
    tbb::flow::make_edge(left, end);
    tbb::flow::make_edge(right, end);
    start.try_put({});
    graph.wait_for_all();
  });
  Check(total == 328350 && started == 2);
  return Done();
}

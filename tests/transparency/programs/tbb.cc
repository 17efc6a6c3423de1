// Clean: oneTBB's algorithms, containers, graphs, arenas and allocators, each handing plain data
// over.
#include <tbb/tbb.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

long ParallelFor() {
  std::vector<long> in(20000), out(20000);
  tbb::parallel_for(std::size_t{0}, in.size(),
                    [&](std::size_t i) { in[i] = static_cast<long>(i); });
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, in.size(), 500), [&](const auto& r) {
    for (std::size_t i = r.begin(); i != r.end(); ++i) out[i] = in[in.size() - 1 - i] * 2;
  });
  return std::accumulate(out.begin(), out.end(), 0L);
}

long ParallelReduce() {
  std::vector<int> data(30000, 3);
  const long sum = tbb::parallel_reduce(
      tbb::blocked_range<std::size_t>(0, data.size()), 0L,
      [&](const auto& r, long part) {
        for (auto i = r.begin(); i != r.end(); ++i) part += data[i];
        return part;
      },
      std::plus<>());
  std::vector<long> scan(data.size());
  const long total = tbb::parallel_scan(
      tbb::blocked_range<std::size_t>(0, data.size()), 0L,
      [&](const auto& r, long part, bool final) {
        for (auto i = r.begin(); i != r.end(); ++i) {
          part += data[i];
          if (final) scan[i] = part;
        }
        return part;
      },
      std::plus<>());
  return sum + total + scan.back();
}

long Sorted() {
  std::vector<unsigned> data(20000);
  unsigned x = 1;
  for (auto& d : data) d = x = x * 1664525 + 1013904223;
  tbb::parallel_sort(data.begin(), data.end());
  return std::is_sorted(data.begin(), data.end());
}

long HashMap() {
  using Map = tbb::concurrent_hash_map<int, std::string>;
  Map map;
  tbb::parallel_for(0, 2000, [&](int i) {
    Map::accessor a;
    map.insert(a, i % 300);
    a->second += 'x';
  });
  tbb::parallel_for(0, 300, [&](int i) {
    if (i % 3 == 0) map.erase(i);
  });
  long length = 0;
  for (const auto& [key, text] : map) length += static_cast<long>(text.size());
  return length;
}

long Containers() {
  tbb::concurrent_vector<std::unique_ptr<int>> vector;
  tbb::concurrent_queue<std::unique_ptr<int>> queue;
  tbb::concurrent_bounded_queue<std::string> bounded;
  tbb::concurrent_unordered_map<int, long> map;
  bounded.set_capacity(8);
  std::atomic<long> sum{0};
  tbb::parallel_for(0, 500, [&](int i) {
    vector.push_back(std::make_unique<int>(i));
    queue.push(std::make_unique<int>(i));
    map.emplace(i % 50, i % 50);
    std::unique_ptr<int> got;
    if (queue.try_pop(got)) sum += *got;
  });
  std::thread producer([&] {
    for (int i = 0; i < 200; ++i) bounded.push(std::to_string(i));
  });
  std::thread consumer([&] {
    std::string s;
    for (int i = 0; i < 200; ++i) {
      bounded.pop(s);
      sum += std::stol(s);
    }
  });
  producer.join();
  consumer.join();
  std::unique_ptr<int> got;
  while (queue.try_pop(got)) sum += *got;
  for (const auto& p : vector) sum += *p;
  for (const auto& [k, v] : map) sum += v;
  return sum;
}

long Graph() {
  tbb::flow::graph graph;
  long total = 0;
  std::vector<long> seen;
  tbb::flow::function_node<int, std::shared_ptr<long>> square(
      graph, tbb::flow::unlimited, [](int i) { return std::make_shared<long>(long{i} * i); });
  tbb::flow::function_node<std::shared_ptr<long>> sum(graph, tbb::flow::serial,
                                                      [&](const std::shared_ptr<long>& v) {
                                                        total += *v;
                                                        seen.push_back(*v);
                                                        return tbb::flow::continue_msg{};
                                                      });
  tbb::flow::queue_node<std::shared_ptr<long>> queue(graph);
  tbb::flow::make_edge(square, queue);
  tbb::flow::make_edge(queue, sum);
  for (int i = 0; i < 200; ++i) square.try_put(i);
  graph.wait_for_all();
  return total + static_cast<long>(seen.size());
}

long Fibonacci(int n) {
  if (n < 2) return n;
  long a = 0, b = 0;
  tbb::task_group group;
  group.run([&] { a = Fibonacci(n - 1); });
  b = Fibonacci(n - 2);
  group.wait();
  return a + b;
}

long Pipeline() {
  long sum = 0;
  int next = 0;
  tbb::parallel_pipeline(
      8, tbb::make_filter<void, std::string*>(tbb::filter_mode::serial_in_order,
                                              [&](tbb::flow_control& fc) -> std::string* {
                                                if (next == 150) {
                                                  fc.stop();
                                                  return nullptr;
                                                }
                                                return new std::string(std::to_string(next++));
                                              }) &
             tbb::make_filter<std::string*, std::string*>(tbb::filter_mode::parallel,
                                                          [](std::string* s) {
                                                            *s += "0";
                                                            return s;
                                                          }) &
             tbb::make_filter<std::string*, void>(tbb::filter_mode::serial_in_order,
                                                  [&](std::string* s) {
                                                    sum += std::stol(*s);
                                                    delete s;
                                                  }));
  return sum;
}

long Locals() {
  tbb::enumerable_thread_specific<std::vector<int>> local;
  tbb::combinable<long> combined([] { return 0L; });
  tbb::parallel_for(0, 1000, [&](int i) {
    local.local().push_back(i);
    combined.local() += i;
  });
  long count = 0;
  for (const auto& v : local) count += static_cast<long>(v.size());
  return count + combined.combine(std::plus<>());
}

template <class Mutex>
long Locked() {
  Mutex mutex;
  long count = 0;
  tbb::parallel_for(0, 1000, [&](int) {
    typename Mutex::scoped_lock lock(mutex);
    ++count;
  });
  return count;
}

long ReadersAndWriters() {
  tbb::spin_rw_mutex spin;
  tbb::queuing_rw_mutex queuing;
  long a = 0, b = 0;
  std::atomic<long> sum{0};
  tbb::parallel_for(0, 600, [&](int i) {
    {
      tbb::spin_rw_mutex::scoped_lock lock(spin, i % 5 == 0);
      if (i % 5 == 0)
        ++a;
      else
        sum += a * 0;
    }
    {
      tbb::queuing_rw_mutex::scoped_lock lock(queuing, i % 5 == 0);
      if (i % 5 == 0)
        ++b;
      else
        sum += b * 0;
    }
  });
  return a + b + sum;
}

long Arena() {
  long result = 0;
  tbb::task_arena arena(2);
  arena.execute([&] {
    tbb::parallel_for(0, 100, [&](int i) {
      if (i == 50) result = 7;
    });
  });
  tbb::collaborative_once_flag once;
  long set = 0;
  std::atomic<long> sum{0};
  tbb::parallel_for(0, 100, [&](int) {
    tbb::collaborative_call_once(once, [&] { set = 5; });
    sum += set;
  });
  std::vector<long, tbb::cache_aligned_allocator<long>> v(100, 1);
  tbb::parallel_invoke([&] { v[0] = 2; }, [&] { v[1] = 3; });
  return result + sum + v[0] + v[1];
}

}  // namespace

int main() {
  tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 4);
  std::printf("for %ld\n", ParallelFor());
  std::printf("reduce %ld\n", ParallelReduce());
  std::printf("sort %ld\n", Sorted());
  std::printf("hash map %ld\n", HashMap());
  std::printf("containers %ld\n", Containers());
  std::printf("graph %ld\n", Graph());
  std::printf("fibonacci %ld\n", Fibonacci(12));
  std::printf("pipeline %ld\n", Pipeline());
  std::printf("locals %ld\n", Locals());
  std::printf("locks %ld %ld %ld\n", Locked<tbb::spin_mutex>(), Locked<tbb::queuing_mutex>(),
              Locked<tbb::speculative_spin_mutex>());
  std::printf("readers %ld\n", ReadersAndWriters());
  std::printf("arena %ld\n", Arena());
}

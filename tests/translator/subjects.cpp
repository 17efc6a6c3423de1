// Functions for the code cache to run that use the heap and the C++ runtime. They are loaded with a
// C library of their own: the translator allocates while the program may be inside malloc.
#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

__attribute__((noinline)) std::uint64_t Throws(std::uint64_t depth) {
  if (depth == 0) throw std::runtime_error("down");
  try {
    return Throws(depth - 1) + 1;
  } catch (const std::logic_error&) {
    return 0;
  }
}

struct Shape {
  virtual ~Shape() = default;
  virtual double Area() const = 0;
};
struct Square final : Shape {
  explicit Square(double with_side) : side(with_side) {}
  double Area() const override { return side * side; }
  double side;
};
struct Circle final : Shape {
  explicit Circle(double with_radius) : radius(with_radius) {}
  double Area() const override { return radius * radius * 3.14159; }
  double radius;
};

}  // namespace

extern "C" {

std::uint64_t SubjectExceptions(std::uint64_t depth) {
  try {
    return Throws(depth);
  } catch (const std::runtime_error& error) {
    return static_cast<std::uint64_t>(error.what()[0]) * 2;
  }
}

std::uint64_t SubjectContainers(std::uint64_t count) {
  std::map<std::uint64_t, std::string> map;
  for (std::uint64_t i = 0; i < count; ++i)
    map[i * 7919 % 101] += std::to_string(i) + " a string that is on the heap";
  std::uint64_t sum = 0;
  for (const auto& [key, text] : map)
    sum = sum * 31 + key + text.size() + static_cast<std::uint8_t>(text.back());
  return sum;
}

std::uint64_t SubjectVirtualCalls(std::uint64_t count) {
  std::vector<Shape*> shapes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto size = static_cast<double>(i);
    shapes.push_back(i % 3 == 0 ? static_cast<Shape*>(new Square(size)) : new Circle(size));
  }
  double sum = 0;
  for (Shape* shape : shapes) {
    sum += shape->Area();
    delete shape;
  }
  return static_cast<std::uint64_t>(sum);
}

std::uint64_t SubjectPrintf(std::uint64_t count) {
  char text[256];
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const int length = std::snprintf(text, sizeof text, "%d %s %5.3f %#lx %c", -17, "text",
                                     3.14159 * static_cast<double>(i), 0xbeef + i, 'x');
    for (int j = 0; j < length; ++j) sum = sum * 31 + static_cast<std::uint8_t>(text[j]);
  }
  return sum;
}
}

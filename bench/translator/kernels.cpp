#include "bench/translator/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

namespace trapline {
namespace {

// A fixed sequence of numbers.
class Numbers {
 public:
  std::uint64_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  double Fraction() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_ = 88172645463325252;
};

// --- gravity

struct Node {
  double mass;
  double position[3];
  double side;  // 0: a body
  Node* children[8];
};

struct Space {
  std::uint64_t made;
  Node* root;
  Node nodes[20000];
};
constexpr std::uint64_t kBodies = 4000;

Node* NewNode(Space& space) { return &space.nodes[space.made++]; }

void Insert(Space& space, Node* cell, Node* body, const double* center, double side) {
  double middle[3];
  unsigned octant = 0;
  for (unsigned i = 0; i < 3; ++i) {
    const bool upper = body->position[i] >= center[i];
    octant |= static_cast<unsigned>(upper) << i;
    middle[i] = center[i] + (upper ? side : -side) / 4;
  }
  Node*& child = cell->children[octant];
  if (child == nullptr) {
    child = body;
    return;
  }
  if (child->side == 0) {
    Node* const other = child;
    child = NewNode(space);
    child->side = side / 2;
    Insert(space, child, other, middle, side / 2);
  }
  Insert(space, child, body, middle, side / 2);
}

void SumUp(Node* cell) {
  for (Node* child : cell->children) {
    if (child == nullptr) continue;
    if (child->side != 0) SumUp(child);
    cell->mass += child->mass;
    for (unsigned i = 0; i < 3; ++i) cell->position[i] += child->mass * child->position[i];
  }
  for (double& at : cell->position) at /= cell->mass;
}

__attribute__((noinline)) void Attract(const Node* from, const Node* body, double* force) {
  double distance[3];
  double square = 1e-4;
  for (unsigned i = 0; i < 3; ++i) {
    distance[i] = from->position[i] - body->position[i];
    square += distance[i] * distance[i];
  }
  if (from->side != 0 && from->side * from->side > square) {
    for (const Node* child : from->children) {
      if (child != nullptr) Attract(child, body, force);
    }
    return;
  }
  if (from == body) return;
  const double strength = from->mass / (square * std::sqrt(square));
  for (unsigned i = 0; i < 3; ++i) force[i] += strength * distance[i];
}

std::uint64_t Gravity(std::uint64_t* memory, std::uint64_t rounds) {
  auto& space = *reinterpret_cast<Space*>(memory);
  if (space.root == nullptr) {
    Numbers numbers;
    space.root = NewNode(space);
    space.root->side = 1;
    constexpr double kCenter[] = {0.5, 0.5, 0.5};
    for (std::uint64_t i = 0; i < kBodies; ++i) {
      Node* const body = NewNode(space);
      body->mass = numbers.Fraction();
      for (double& at : body->position) at = numbers.Fraction();
      Insert(space, space.root, body, kCenter, 1);
    }
    SumUp(space.root);
  }
  double force[3] = {};
  for (std::uint64_t i = 0; i < rounds; ++i)
    Attract(space.root, &space.nodes[1 + i % (kBodies / 2)], force);
  return static_cast<std::uint64_t>(force[0]);
}

// --- patches that exchange light by lists, refined where much is exchanged

struct Patch;
struct Link {
  Patch* to;
  float share;
  float error;
  Link* next;
};
struct Patch {
  float light[3];
  float gathered[3];
  float area;
  std::uint32_t links;
  Link* first;
  Patch* children[4];
  Patch* parent;
};
struct Scene {
  std::uint64_t made;
  Patch patches[5460];
  std::uint64_t linked;
  Link all[40000];
};

void Gather(Patch* patch, const float* from_above) {
  float sum[3] = {from_above[0], from_above[1], from_above[2]};
  for (const Link* link = patch->first; link != nullptr; link = link->next) {
    const float share = link->share * (1 - link->error);
    for (unsigned i = 0; i < 3; ++i) sum[i] += share * link->to->light[i];
  }
  if (patch->children[0] == nullptr) {
    for (unsigned i = 0; i < 3; ++i) patch->gathered[i] = sum[i];
    return;
  }
  for (unsigned i = 0; i < 3; ++i) patch->gathered[i] = 0;
  for (Patch* child : patch->children) {
    Gather(child, sum);
    for (unsigned i = 0; i < 3; ++i)
      patch->gathered[i] += child->gathered[i] * (child->area / patch->area);
  }
}

void Emit(Patch* patch) {
  for (unsigned i = 0; i < 3; ++i)
    patch->light[i] = patch->light[i] * 0.5F + patch->gathered[i] * 0.4F + 0.1F;
  for (Patch* child : patch->children) {
    if (child != nullptr) Emit(child);
  }
}

Patch* MakePatch(Scene& scene, Patch* parent, float area, unsigned depth) {
  Patch* const patch = &scene.patches[scene.made++];
  patch->area = area;
  patch->parent = parent;
  if (depth == 0) return patch;
  for (Patch*& child : patch->children) child = MakePatch(scene, patch, area / 4, depth - 1);
  return patch;
}

std::uint64_t Light(std::uint64_t* memory, std::uint64_t rounds) {
  auto& scene = *reinterpret_cast<Scene*>(memory);
  constexpr unsigned kWalls = 4;
  constexpr std::uint64_t kPatches = 1365;  // of a wall
  if (scene.made == 0) {
    for (unsigned i = 0; i < kWalls; ++i) MakePatch(scene, nullptr, 1, 5);
    Numbers numbers;
    while (scene.linked < std::size(scene.all)) {
      Link& link = scene.all[scene.linked++];
      Patch& from = scene.patches[numbers() % scene.made];
      link = {&scene.patches[numbers() % scene.made], 0.01F, 0.1F, from.first};
      from.first = &link;
      ++from.links;
    }
  }
  constexpr float kNone[3] = {};
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (unsigned wall = 0; wall < kWalls; ++wall) Gather(&scene.patches[wall * kPatches], kNone);
    for (unsigned wall = 0; wall < kWalls; ++wall) Emit(&scene.patches[wall * kPatches]);
  }
  return static_cast<std::uint64_t>(scene.patches[0].light[0] * 1e6F);
}

// --- look-ups

struct Entry {
  std::uint64_t key;
  std::uint64_t value;
  Entry* smaller;
  Entry* larger;
};
struct Tree {
  Entry* root;
  Entry entries[65535];
};

Entry* Build(Entry* entries, std::uint64_t count) {
  if (count == 0) return nullptr;
  Entry* const middle = entries + count / 2;
  middle->key = static_cast<std::uint64_t>(middle - entries);
  middle->smaller = Build(entries, count / 2);
  middle->larger = Build(middle + 1, count - count / 2 - 1);
  return middle;
}

std::uint64_t LookUp(std::uint64_t* memory, std::uint64_t rounds) {
  auto& tree = *reinterpret_cast<Tree*>(memory);
  if (tree.root == nullptr) {
    tree.root = Build(tree.entries, std::size(tree.entries));
    for (std::uint64_t i = 0; i < std::size(tree.entries); ++i) tree.entries[i].key = i;
  }
  Numbers numbers;
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const std::uint64_t key = numbers() % 1000;
    Entry* at = tree.root;
    while (at != nullptr && at->key != key) at = key < at->key ? at->smaller : at->larger;
    if (at != nullptr) found += ++at->value;
  }
  return found;
}

// --- sorting

std::uint64_t Sort(std::uint64_t* memory, std::uint64_t rounds) {
  constexpr std::uint64_t kCount = 4096;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    Numbers numbers;
    for (std::uint64_t i = 0; i < kCount; ++i) memory[i] = numbers();
    std::sort(memory, memory + kCount);
  }
  return memory[kCount / 2];
}

// --- a sparse matrix times a vector

std::uint64_t Multiply(std::uint64_t* memory, std::uint64_t rounds) {
  constexpr std::uint32_t kRows = 4096;
  constexpr std::uint32_t kInRow = 16;
  struct Matrix {
    std::uint32_t begin[kRows + 1];
    std::uint32_t column[kRows * kInRow];
    double value[kRows * kInRow];
    double x[kRows];
    double y[kRows];
  };
  auto& matrix = *reinterpret_cast<Matrix*>(memory);
  if (matrix.begin[kRows] == 0) {
    Numbers numbers;
    for (std::uint32_t i = 0; i < kRows * kInRow; ++i) {
      matrix.column[i] = static_cast<std::uint32_t>(numbers() % kRows);
      matrix.value[i] = numbers.Fraction() / kInRow;
    }
    for (std::uint32_t i = 0; i <= kRows; ++i) matrix.begin[i] = i * kInRow;
    for (double& at : matrix.x) at = numbers.Fraction();
  }
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::uint32_t row = 0; row < kRows; ++row) {
      double sum = 0;
      for (std::uint32_t i = matrix.begin[row]; i < matrix.begin[row + 1]; ++i)
        sum += matrix.value[i] * matrix.x[matrix.column[i]];
      matrix.y[row] = sum;
    }
    std::copy_n(matrix.y, kRows, matrix.x);
  }
  return static_cast<std::uint64_t>(matrix.y[0] * 1e6);
}

// --- words of a text, counted

std::uint64_t Words(std::uint64_t* memory, std::uint64_t rounds) {
  struct Text {
    std::uint64_t length;
    char text[65536];
    struct Count {
      std::uint64_t hash;
      std::uint32_t length, count;
    } counts[4096];
  };
  auto& text = *reinterpret_cast<Text*>(memory);
  if (text.length == 0) {
    Numbers numbers;
    for (char& at : text.text) at = static_cast<char>('a' + numbers() % 6);
    for (std::uint64_t i = 0; i < sizeof text.text; i += 2 + numbers() % 7) text.text[i] = ' ';
    text.length = sizeof text.text;
  }
  std::uint64_t most = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::uint64_t hash = 0;
    std::uint32_t length = 0;
    for (std::uint64_t i = 0; i < text.length; ++i) {
      const char at = text.text[i];
      if (at != ' ') {
        hash = hash * 31 + static_cast<unsigned char>(at);
        ++length;
        continue;
      }
      std::uint64_t slot = hash % std::size(text.counts);
      for (int probes = 0; probes < 8; ++probes, slot = (slot + 1) % std::size(text.counts)) {
        Text::Count& count = text.counts[slot];
        if (count.count != 0 && (count.hash != hash || count.length != length)) continue;
        count.hash = hash;
        count.length = length;
        most = std::max<std::uint64_t>(most, ++count.count);
        break;
      }
      hash = 0;
      length = 0;
    }
  }
  return most;
}

}  // namespace

const NamedKernel kKernels[] = {
    {"gravity", Gravity, 400}, {"light", Light, 100},       {"look up", LookUp, 200000},
    {"sort", Sort, 50},        {"multiply", Multiply, 100}, {"words", Words, 100},
};
const std::size_t kKernelCount = std::size(kKernels);

}  // namespace trapline

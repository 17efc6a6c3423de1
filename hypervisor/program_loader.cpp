#include "hypervisor/program_loader.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/prctl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "hypervisor/elf/script.h"
#include "hypervisor/guest_copy.h"

namespace trapline {
namespace {

LoadError Failure(const std::string& path, int error, const std::string& why) {
  return {error, fmt::format("cannot run '{}': {}", path, why), false};
}

// What the kernel hands to its 32-bit loader: it goes by the machine, not by the class.
bool IsElf32(const char* start, std::size_t size) {
  Elf32_Ehdr header;
  if (size < sizeof header) return false;
  std::memcpy(&header, start, sizeof header);
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_machine == EM_386;
}

void* Pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

std::uint64_t Random(std::uint64_t limit) {
  if ((personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0) return 0;
  std::uint64_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) return 0;
  return value % limit;
}

// Where position-independent programs go: the range the kernel uses (from 0x555555554000;
// ThreadSanitizer accepts no other), 64 GiB above its start, where the monitor's own heap is.
constexpr std::uint64_t kPieBase = 0x556555554000;
constexpr std::uint64_t kPieRandomPages = 1ull << 27;
constexpr std::uint64_t kBreakRandomPages = 0x02000000 / kPageSize;
// Address space set aside for a stack without a limit, or with a larger one.
constexpr std::uint64_t kMaximumStack = 64ull << 30;

// A read lease is refused exactly when somebody has the file open for writing (fcntl(2)), which is
// when execve gives ETXTBSY.
bool IsOpenForWriting(int fd) {
  if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
  }
  return errno == EAGAIN;
}

struct MappedImage {
  std::uint64_t bias = 0;
  std::uint64_t entry = 0;
};

int ProtectionOf(const ElfSegment& segment) {
  return (segment.readable ? PROT_READ : 0) | (segment.writable ? PROT_WRITE : 0) |
         (segment.executable ? PROT_EXEC : 0);
}

Expected<MappedImage, LoadError> MapImage(AddressSpace& space, const std::string& path, int fd,
                                          const ElfImage& image, bool interpreter) {
  MappedImage mapped;
  const std::uint64_t span = image.Span();
  if (image.kind == ElfImage::Kind::kPie && span != 0) {
    const std::uint64_t alignment = std::min(image.alignment, std::uint64_t{1} << 30);
    std::uint64_t base = 0;
    if (interpreter) {
      void* area =
          mmap(nullptr, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (area == MAP_FAILED) return Unexpected{Failure(path, ENOMEM, "no address space for it")};
      munmap(area, span);
      base = reinterpret_cast<std::uint64_t>(area);
    } else {
      for (int attempt = 0; attempt < 16 && base == 0; ++attempt) {
        const std::uint64_t candidate =
            AlignUp(kPieBase + Random(kPieRandomPages) * kPageSize, alignment);
        if (AddressSpace::IsFree(candidate, candidate + span)) base = candidate;
      }
      if (base == 0) return Unexpected{Failure(path, ENOMEM, "no address space for it")};
    }
    mapped.bias = base - image.low;
  } else if (span != 0 && !AddressSpace::IsFree(image.low, image.high)) {
    return Unexpected{Failure(
        path, ENOMEM,
        fmt::format("it must lie at {:#x}-{:#x}, which is not available", image.low, image.high))};
  }

  for (const ElfSegment& segment : image.segments) {
    const int protection = ProtectionOf(segment);
    const std::uint64_t start = mapped.bias + segment.FileStart();
    const std::uint64_t file_end = mapped.bias + segment.FileEnd();
    const std::uint64_t end = mapped.bias + segment.End();
    if (file_end > start) {
      if (mmap(Pointer(start), file_end - start, protection, MAP_PRIVATE | MAP_FIXED, fd,
               static_cast<off_t>(segment.FileOffset())) == MAP_FAILED) {
        return Unexpected{
            Failure(path, errno, fmt::format("cannot map a segment: {}", std::strerror(errno)))};
      }
      Region region;
      region.protection = protection;
      region.untracked_code = space.IsUntrackedModule(path);
      space.Adopt(start, file_end, region);
      const std::uint64_t padding = mapped.bias + segment.PaddingStart();
      if (segment.writable && padding < file_end) {
        // A file shorter than its header says has no page there: as natively, that is not noticed
        // now.
        const std::vector<char> zeros(file_end - padding);
        WriteGuest(padding, zeros.data(), zeros.size());
      }
    }
    const std::uint64_t zero_start = mapped.bias + segment.ZeroStart();
    if (end > zero_start) {
      const int zero_protection = PROT_READ | PROT_WRITE | (segment.executable ? PROT_EXEC : 0);
      if (mmap(Pointer(zero_start), end - zero_start, zero_protection,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
        return Unexpected{
            Failure(path, errno, fmt::format("no memory for its data: {}", std::strerror(errno)))};
      }
      Region region;
      region.protection = zero_protection;
      space.Adopt(zero_start, end, region);
    }
  }
  mapped.entry = mapped.bias + image.entry;
  return mapped;
}

// Declares the kernel's vDSO and its data to be the program's too. Returns its address, 0 when
// there is none.
std::uint64_t AdoptVdso(AddressSpace& space) {
  const std::uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
  if (vdso == 0) return 0;
  bool found = false;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const bool code = line.ends_with("[vdso]");
    if (!code && line.find("[vvar") == std::string::npos) continue;
    std::uint64_t start = 0, end = 0;
    const char* at = std::from_chars(line.data(), line.data() + line.size(), start, 16).ptr + 1;
    std::from_chars(at, line.data() + line.size(), end, 16);
    Region region;
    region.protection = code ? PROT_READ | PROT_EXEC : PROT_READ;
    region.borrowed = true;
    space.Adopt(start, end, region);
    found = found || code;
  }
  return found ? vdso : 0;  // no /proc, as in a bare chroot: clocks go by system call
}

// Writes downwards from the top of the stack.
class StackBuilder {
 public:
  explicit StackBuilder(std::uint64_t top) : sp_(top) {}

  std::uint64_t PushBytes(const void* bytes, std::size_t size) {
    sp_ -= size;
    ok_ = ok_ && Write(sp_, bytes, size);
    return sp_;
  }
  std::uint64_t PushString(const std::string& text) {
    return PushBytes(text.c_str(), text.size() + 1);
  }
  void Align(std::uint64_t alignment) { sp_ = AlignDown(sp_, alignment); }
  std::uint64_t sp() const { return sp_; }
  bool ok() const { return ok_; }

 private:
  // The stack is ours and fresh, and was made large enough: a plain copy.
  static bool Write(std::uint64_t address, const void* bytes, std::size_t size) {
    return WriteGuest(address, bytes, size);
  }
  std::uint64_t sp_;
  bool ok_ = true;
};

// Tells the kernel where the program's arguments lie, for /proc/PID/cmdline and the like. Not
// essential.
void DescribeToKernel(std::uint64_t code_start, std::uint64_t code_end, std::uint64_t stack,
                      std::uint64_t argument_start, std::uint64_t argument_end,
                      std::uint64_t environment_end, std::vector<std::uint64_t>& auxiliary) {
  std::uint64_t start_brk = 0;
  std::ifstream stat("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 47 && fields >> field; ++i) {
    if (i == 47) start_brk = std::strtoull(field.c_str(), nullptr, 10);
  }
  prctl_mm_map map{};
  map.start_code = map.start_data = code_start;
  map.end_code = map.end_data = code_end;
  map.brk = reinterpret_cast<std::uint64_t>(sbrk(0));  // stays the monitor's
  map.start_brk = start_brk != 0 ? start_brk : map.brk;
  map.start_stack = stack;
  map.arg_start = argument_start;
  map.arg_end = map.env_start = argument_end;
  map.env_end = environment_end;
  map.auxv = reinterpret_cast<__u64*>(auxiliary.data());
  map.auxv_size = static_cast<__u32>(auxiliary.size() * sizeof(std::uint64_t));
  map.exe_fd = static_cast<__u32>(-1);
  prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

}  // namespace

std::string FindInPath(const std::string& name) {
  if (name.find('/') != std::string::npos || name.empty()) return name;
  const char* path = std::getenv("PATH");
  // An empty element, also the last one, is the working directory.
  std::istringstream directories(
      (path != nullptr ? std::string(path) : "/usr/local/bin:/usr/bin:/bin") + ":");
  std::string unusable;
  for (std::string directory; std::getline(directories, directory, ':');) {
    std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    struct stat status {};
    if (stat(candidate.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    if (unusable.empty()) unusable = candidate;
  }
  return unusable;
}

Expected<Executable, LoadError> OpenExecutable(const std::string& path,
                                               std::vector<std::string> arguments) {
  Executable result;
  result.path = result.image_path = path;
  for (int depth = 0;; ++depth) {
    if (depth > kMaxInterpreterDepth) {
      return Unexpected{
          Failure(path, ELOOP, "too many interpreters name each other in `#!` lines")};
    }
    const FileDescriptor handle(open(result.image_path.c_str(), O_PATH | O_CLOEXEC));
    if (!handle.valid()) return Unexpected{Failure(result.image_path, errno, std::strerror(errno))};
    if (const int error = CheckExecutable(handle.get()); error != 0) {
      struct stat status {};
      const bool directory = fstat(handle.get(), &status) == 0 && S_ISDIR(status.st_mode);
      const std::string why = directory ? "it is a directory" : std::strerror(error);
      if (depth == 0) return Unexpected{Failure(path, error, why)};
      return Unexpected{
          Failure(path, error, fmt::format("its interpreter '{}': {}", result.image_path, why))};
    }
    result.file = FileDescriptor(open(result.image_path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!result.file.valid()) {
      if (errno != EACCES)
        return Unexpected{Failure(result.image_path, errno, std::strerror(errno))};
      result.native_only = true;
      result.arguments = std::move(arguments);
      return result;
    }
    if (IsOpenForWriting(result.file.get())) {
      return Unexpected{Failure(result.image_path, ETXTBSY, "it is open for writing")};
    }
    char start[kScriptHeaderBytes] = {};
    const ssize_t size = pread(result.file.get(), start, sizeof start, 0);
    if (size < 0) return Unexpected{Failure(result.image_path, errno, std::strerror(errno))};
    const std::string_view header(start, static_cast<std::size_t>(size));
    if (header.starts_with("#!")) {
      const auto script = ParseScriptLine(header);
      if (!script)
        return Unexpected{
            Failure(result.image_path, ENOEXEC, "its `#!` line names no interpreter")};
      if (script->interpreter.empty()) {
        return Unexpected{Failure(result.image_path, EACCES, "its `#!` line names no interpreter")};
      }
      std::vector<std::string> extended{script->interpreter};
      if (script->argument) extended.push_back(*script->argument);
      extended.push_back(result.image_path);
      if (!arguments.empty())
        extended.insert(extended.end(), arguments.begin() + 1, arguments.end());
      arguments = std::move(extended);
      if (access(script->interpreter.c_str(), F_OK) != 0) {
        return Unexpected{Failure(
            result.image_path, errno,
            fmt::format("its interpreter '{}': {}", script->interpreter, std::strerror(errno)))};
      }
      result.image_path = script->interpreter;
      continue;
    }
    struct stat status {};
    if (fstat(result.file.get(), &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0 &&
        (((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) ||
         ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid()))) {
      result.native_only = true;
    }
    result.arguments = std::move(arguments);
    if (IsElf32(start, header.size())) {
      result.native_only = true;
      return result;
    }
    if (result.native_only) return result;
    auto image = ReadElfImage(result.file.get());
    if (!image) {
      return Unexpected{
          LoadError{image.error().error_number,
                    fmt::format("cannot run '{}': {}", result.image_path, image.error().message),
                    image.error().outcome == ElfError::Outcome::kLostImage}};
    }
    result.image = std::move(*image);
    return result;
  }
}

Expected<LoadedProgram, LoadError> LoadProgram(AddressSpace& space, const Executable& executable,
                                               const std::vector<std::string>& environment,
                                               bool guest_tsc_is_host_tsc) {
  const ElfImage& image = executable.image;
  const auto program = MapImage(space, executable.image_path, executable.file.get(), image, false);
  if (!program) return Unexpected{program.error()};
  std::uint64_t entry = program->entry;
  std::uint64_t interpreter_base = 0;
  if (image.interpreter) {
    const std::string& name = *image.interpreter;
    const FileDescriptor file(open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) {
      return Unexpected{
          Failure(executable.image_path, errno,
                  fmt::format("its ELF interpreter '{}': {}", name, std::strerror(errno)))};
    }
    if (const int error = CheckExecutable(file.get()); error != 0) {
      return Unexpected{
          Failure(executable.image_path, error,
                  fmt::format("its ELF interpreter '{}': {}", name, std::strerror(error)))};
    }
    const auto loader = ReadElfImage(file.get(), ElfRole::kInterpreter);
    if (!loader) {
      return Unexpected{
          Failure(executable.image_path, loader.error().error_number,
                  fmt::format("its ELF interpreter '{}': {}", name, loader.error().message))};
    }
    const auto mapped = MapImage(space, name, file.get(), *loader, true);
    if (!mapped) return Unexpected{mapped.error()};
    entry = mapped->entry;
    interpreter_base = mapped->bias + loader->low;
  }
  space.SetBreak(AlignUp(program->bias + image.high, kPageSize) +
                 Random(kBreakRandomPages) * kPageSize);

  // --- the stack
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  std::size_t strings = executable.path.size() + 64;
  for (const auto& text : executable.arguments) strings += text.size() + 1 + sizeof(std::uint64_t);
  for (const auto& text : environment) strings += text.size() + 1 + sizeof(std::uint64_t);
  const std::uint64_t stack_size = std::max<std::uint64_t>(
      limit.rlim_cur == RLIM_INFINITY ? kMaximumStack : std::min(limit.rlim_cur, kMaximumStack),
      strings + 64 * kPageSize);
  const std::uint64_t top =
      space.CreateStack(stack_size, strings + 4 * kPageSize, image.executable_stack);
  if (top == 0)
    return Unexpected{Failure(executable.image_path, ENOMEM, "no memory for its stack")};

  StackBuilder stack(top);
  const std::uint64_t zero = 0;
  stack.PushBytes(&zero, sizeof zero);
  const std::uint64_t file_name = stack.PushString(executable.path);
  const std::uint64_t environment_end = file_name;
  std::vector<std::uint64_t> environment_pointers, argument_pointers;
  for (auto it = environment.rbegin(); it != environment.rend(); ++it) {
    environment_pointers.push_back(stack.PushString(*it));
  }
  const std::uint64_t argument_end = stack.sp();
  for (auto it = executable.arguments.rbegin(); it != executable.arguments.rend(); ++it) {
    argument_pointers.push_back(stack.PushString(*it));
  }
  std::reverse(environment_pointers.begin(), environment_pointers.end());
  std::reverse(argument_pointers.begin(), argument_pointers.end());
  const std::uint64_t argument_start = stack.sp();
  stack.Align(16);
  const std::uint64_t platform = stack.PushString("x86_64");
  unsigned char random[16];
  if (getrandom(random, sizeof random, 0) != sizeof random)
    std::memset(random, 0x5a, sizeof random);
  const std::uint64_t random_at = stack.PushBytes(random, sizeof random);
  stack.Align(16);

  std::vector<std::uint64_t> auxiliary;
  const auto add = [&](std::uint64_t type, std::uint64_t value) {
    auxiliary.push_back(type);
    auxiliary.push_back(value);
  };
  if (guest_tsc_is_host_tsc) {
    if (const std::uint64_t vdso = AdoptVdso(space); vdso != 0) add(AT_SYSINFO_EHDR, vdso);
  }
  constexpr std::uint64_t kMinimumSignalStack =
      51;  // AT_MINSIGSTKSZ, newer than Debian 12's headers
  add(AT_HWCAP, getauxval(AT_HWCAP));
  add(AT_PAGESZ, kPageSize);
  add(AT_CLKTCK, getauxval(AT_CLKTCK));
  add(AT_PHDR,
      image.program_headers_address == 0 ? 0 : program->bias + image.program_headers_address);
  add(AT_PHENT, image.program_header_size);
  add(AT_PHNUM, image.program_header_count);
  add(AT_BASE, interpreter_base);
  add(AT_FLAGS, 0);
  add(AT_ENTRY, program->entry);
  add(AT_UID, getuid());
  add(AT_EUID, geteuid());
  add(AT_GID, getgid());
  add(AT_EGID, getegid());
  add(AT_SECURE, getauxval(AT_SECURE));
  add(AT_RANDOM, random_at);
  add(AT_HWCAP2, getauxval(AT_HWCAP2));
  add(AT_EXECFN, file_name);
  add(AT_PLATFORM, platform);
  if (space.Tracks()) add(TRAPLINE_AT_AGENT, agent::GuestAddressOf(trapline_agent_interface_table));
  if (const std::uint64_t size = getauxval(kMinimumSignalStack); size != 0)
    add(kMinimumSignalStack, size);
  add(AT_NULL, 0);

  std::vector<std::uint64_t> words;
  words.push_back(argument_pointers.size());
  words.insert(words.end(), argument_pointers.begin(), argument_pointers.end());
  words.push_back(0);
  words.insert(words.end(), environment_pointers.begin(), environment_pointers.end());
  words.push_back(0);
  words.insert(words.end(), auxiliary.begin(), auxiliary.end());
  if (words.size() % 2 != 0) {
    const std::uint64_t padding = 0;
    stack.PushBytes(&padding, sizeof padding);
  }
  stack.PushBytes(words.data(), words.size() * sizeof(std::uint64_t));
  if (!stack.ok())
    return Unexpected{
        Failure(executable.image_path, E2BIG, "its arguments do not fit on the stack")};

  DescribeToKernel(program->bias + image.low, program->bias + image.high, stack.sp(),
                   argument_start, argument_end, environment_end, auxiliary);
  return LoadedProgram{entry, stack.sp(), program->bias};
}

}  // namespace trapline

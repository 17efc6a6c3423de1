// From a file name to a program ready to run: what execve(2) does, in the monitor's own address
// space.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hypervisor/address_space.h"
#include "hypervisor/elf/elf_image.h"
#include "hypervisor/expected.h"
#include "hypervisor/file_descriptor.h"

namespace trapline {

// Why a program cannot be started: errno as execve would set it, and a message that names the file.
struct LoadError {
  int error_number = 0;
  std::string message;
  bool lost_image = false;  // execve natively finds out too late to return: death by SIGSEGV
};

// A file that can be executed, after following `#!` lines.
struct Executable {
  std::string path;        // of the file asked for (AT_EXECFN)
  std::string image_path;  // of the ELF file that runs
  std::vector<std::string> arguments;
  FileDescriptor file;
  ElfImage image;
  // The monitor cannot or must not run it, the kernel can: 32-bit programs, set-user-id programs,
  // files that may be executed but not read.
  bool native_only = false;
};

// `path` is used as it is (no PATH search). `directory`: descriptor that relative paths start from,
// or AT_FDCWD.
Expected<Executable, LoadError> OpenExecutable(const std::string& path,
                                               std::vector<std::string> arguments);

// The file a shell would run for `name`: `name` itself when it has a slash, else the first
// executable in PATH; empty when there is none.
std::string FindInPath(const std::string& name);

struct LoadedProgram {
  std::uint64_t entry = 0;  // first instruction: the ELF interpreter's, or the program's own
  std::uint64_t stack_pointer = 0;
  std::uint64_t bias = 0;  // of the program itself: its addresses in memory - those in its file
};

// Maps the program and its ELF interpreter, builds the initial stack. `guest_tsc_is_host_tsc`:
// whether the kernel's vDSO may be offered.
Expected<LoadedProgram, LoadError> LoadProgram(AddressSpace& space, const Executable& executable,
                                               const std::vector<std::string>& environment,
                                               bool guest_tsc_is_host_tsc);

}  // namespace trapline

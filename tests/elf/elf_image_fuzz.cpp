// Any bytes at all: either an error with an errno and a message, or an image a loader can rely on.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "hypervisor/elf/elf_image.h"
#include "tests/elf/elf_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = trapline::testing::OpenBytes({data, data + size});
  if (fd < 0) std::abort();
  for (auto role : {trapline::ElfRole::kProgram, trapline::ElfRole::kInterpreter}) {
    const auto image = trapline::ReadElfImage(fd, role);
    if (!image) {
      if (image.error().error_number <= 0 || image.error().message.empty()) std::abort();
      continue;
    }
    const std::string defect = trapline::testing::ImageDefect(*image);
    if (!defect.empty()) {
      (void)std::fprintf(stderr, "accepted image: wrong %s\n", defect.c_str());
      std::abort();
    }
  }
  close(fd);
  return 0;
}

// The ELF files behind a module: the file itself, and the separate one with its debug information.
#pragma once

#include <elfutils/libdw.h>
#include <gelf.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/memory_reader.h"
#include "symbols/modules.h"

namespace trapline {

// What every descriptor of an opened file is given to: moves it to where a program in the same
// process does not meet it, and returns its new number. Null, the default: they stay. To be called
// before any other thread uses this library.
void SetDescriptorMover(int (*move)(int descriptor));

// An ELF file open for reading. Not thread-safe.
class ElfFile {
 public:
  // Null if it is no ELF file of this machine's kind that can be read.
  static std::unique_ptr<ElfFile> Open(const std::string& path);
  // From bytes in memory.
  static std::unique_ptr<ElfFile> OfBytes(std::vector<char> bytes);

  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  ~ElfFile();

  Elf* elf() const { return elf_; }
  // When its contents were changed last; 0: it is none on disk.
  std::time_t modified() const { return modified_; }
  // Bytes of the file; false if not all of them are there, or it is none on disk.
  bool Read(std::uint64_t offset, void* out, std::size_t size) const;
  // Where the bytes are that it puts at `address` when it is loaded, and how many go on from there;
  // nothing: it puts none there.
  struct Loaded {
    std::uint64_t offset = 0, size = 0;
  };
  std::optional<Loaded> LoadedAt(std::uint64_t address) const;
  // What the file puts at `address` when it is loaded, at most `size` bytes; returns how many.
  std::size_t ReadLoaded(std::uint64_t address, void* out, std::size_t size) const;
  // By the note sections (a debug file has no program headers to rely on); empty: none.
  std::string BuildId() const;
  // The bytes of the first section called `name`; null if it is missing or holds no bytes.
  Elf_Data* Section(const char* name) const;
  // Whether the section has those bytes somewhere.
  bool HasText(const char* section, std::string_view text) const;
  // The section of that type, and its header; null if there is none.
  Elf_Scn* SectionOfType(unsigned type, GElf_Shdr& header) const;

 private:
  ElfFile() = default;

  std::vector<char> bytes_;  // what elf_ works on, or empty: on a file
  int descriptor_ = -1;
  std::time_t modified_ = 0;
  Elf* elf_ = nullptr;
};

// Not thread-safe.
class ModuleImage {
 public:
  // The file must be the one that is mapped (same headers, same build id); if it is not to be had
  // any more, what is mapped of it serves, which has no section headers and so no symbols. Null if
  // not even that can be read.
  static std::unique_ptr<ModuleImage> Open(const Module& module, const MemoryReader& memory,
                                           const std::string& debug_directory);
  // The file alone, which must have that build id. Null otherwise.
  static std::unique_ptr<ModuleImage> OpenFile(const std::string& path, const std::string& build_id,
                                               const std::string& debug_directory);
  ~ModuleImage();

  const ElfFile& file() const { return *file_; }
  // With debug information or at least a symbol table; null if there is none besides file(). Looked
  // for on first use.
  const ElfFile* debug_file();
  // Whether .debug_frame is anywhere.
  bool HasDebugFrame();
  // Of debug_file() or else of file(); null if neither has any.
  Dwarf* dwarf();
  // dwarf() is debug_file()'s.
  bool has_separate_debug_info() const {
    return dwarf_ != nullptr && dwarf_getelf(dwarf_) != file_->elf();
  }

 private:
  ModuleImage() = default;
  std::unique_ptr<ElfFile> FindDebugFile() const;

  std::string path_, build_id_, debug_directory_;
  std::unique_ptr<ElfFile> file_;
  std::unique_ptr<ElfFile> debug_file_;
  bool debug_file_sought_ = false, dwarf_sought_ = false;
  Dwarf* dwarf_ = nullptr;
};

}  // namespace trapline

// The table of memory effects against a second decoder, Zydis 4.0, encoding by encoding.
#include <Zydis/Zydis.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/translator/corpus.h"
#include "translator/instruction.h"

namespace trapline {
namespace {

// What both decoders say of one memory operand, in a form that compares.
struct Effect {
  std::string base;
  std::string index;
  unsigned scale = 0;
  std::int64_t displacement = 0;
  unsigned size = 0;
  bool reads = false;
  bool writes = false;
  std::string segment;

  auto Key() const {
    return std::tie(base, index, scale, displacement, size, reads, writes, segment);
  }
  bool operator==(const Effect& other) const { return Key() == other.Key(); }
  bool operator<(const Effect& other) const { return Key() < other.Key(); }
};

std::string Text(const std::vector<Effect>& effects) {
  std::string text;
  for (const Effect& effect : effects) {
    text += (effect.reads ? "r" : "-");
    text += (effect.writes ? "w" : "-");
    text += std::to_string(effect.size) + " " + effect.segment + "[" + effect.base + "+" +
            effect.index + "*" + std::to_string(effect.scale) + "+" +
            std::to_string(effect.displacement) + "] ";
  }
  return text.empty() ? "nothing" : text;
}

std::string GeneralName(std::uint8_t number) {
  static constexpr const char* kNames[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                           "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                           "r12", "r13", "r14", "r15", "rip"};
  return number == kNoRegister ? "" : kNames[number];
}

std::string ZydisName(ZydisRegister number) {
  if (number == ZYDIS_REGISTER_NONE) return "";
  const ZydisRegisterClass kind = ZydisRegisterGetClass(number);
  if (kind == ZYDIS_REGCLASS_GPR32 || kind == ZYDIS_REGCLASS_GPR64 || kind == ZYDIS_REGCLASS_GPR8) {
    return GeneralName(static_cast<std::uint8_t>(ZydisRegisterGetId(number)));
  }
  if (number == ZYDIS_REGISTER_EIP || number == ZYDIS_REGISTER_RIP) return "rip";
  return "v" + std::to_string(ZydisRegisterGetId(number));
}

// Where the two differ, and why. Every row must still be needed: a stale one fails the test.
struct KnownDifference {
  enum Kind { kNotDecoded, kEffects };
  Kind kind;
  const char* mnemonic;
  const char* reason;
  mutable unsigned long long used = 0;
};

constexpr const char* kNoAccess =
    "touches no data that a program could see: hints, and cache and TLB control";
constexpr const char* kPadLock =
    "VIA PadLock: not on any processor with VMX or SVM that Trapline runs on";
constexpr const char* kKnightsCorner =
    "only on Knights Corner, which runs no x86-64 Linux binaries";
constexpr const char* kAreaByCpuid =
    "Zydis gives a fixed 576 bytes; the area is the processor's, see Accesses";

const KnownDifference kKnownDifferences[] = {
    {KnownDifference::kEffects, "clflush", kNoAccess},
    {KnownDifference::kEffects, "clflushopt", kNoAccess},
    {KnownDifference::kEffects, "clwb", kNoAccess},
    {KnownDifference::kEffects, "invlpg", kNoAccess},
    {KnownDifference::kEffects, "nop", kNoAccess},
    {KnownDifference::kEffects, "prefetch", kNoAccess},
    {KnownDifference::kEffects, "prefetchnta", kNoAccess},
    {KnownDifference::kEffects, "prefetcht0", kNoAccess},
    {KnownDifference::kEffects, "prefetcht1", kNoAccess},
    {KnownDifference::kEffects, "prefetcht2", kNoAccess},
    {KnownDifference::kEffects, "prefetchw", kNoAccess},
    {KnownDifference::kEffects, "prefetchwt1", kNoAccess},
    {KnownDifference::kEffects, "vgatherpf0dpd", kNoAccess},
    {KnownDifference::kEffects, "vgatherpf0dps", kNoAccess},
    {KnownDifference::kEffects, "vgatherpf0qpd", kNoAccess},
    {KnownDifference::kEffects, "vgatherpf0qps", kNoAccess},
    {KnownDifference::kEffects, "vgatherpf1dpd", kNoAccess},
    {KnownDifference::kEffects, "vgatherpf1dps", kNoAccess},
    {KnownDifference::kEffects, "vgatherpf1qpd", kNoAccess},
    {KnownDifference::kEffects, "vgatherpf1qps", kNoAccess},
    {KnownDifference::kEffects, "vscatterpf0dpd", kNoAccess},
    {KnownDifference::kEffects, "vscatterpf0dps", kNoAccess},
    {KnownDifference::kEffects, "vscatterpf0qpd", kNoAccess},
    {KnownDifference::kEffects, "vscatterpf0qps", kNoAccess},
    {KnownDifference::kEffects, "vscatterpf1dpd", kNoAccess},
    {KnownDifference::kEffects, "vscatterpf1dps", kNoAccess},
    {KnownDifference::kEffects, "vscatterpf1qpd", kNoAccess},
    {KnownDifference::kEffects, "vscatterpf1qps", kNoAccess},
    {KnownDifference::kEffects, "ud0", "always #UD, reads nothing"},
    {KnownDifference::kEffects, "ud1", "always #UD, reads nothing"},
    {KnownDifference::kEffects, "clzero",
     "Zydis has no memory operand; writes the line at rax (APM vol. 3)"},
    {KnownDifference::kEffects, "enter", "Zydis leaves out the frame pointers that nesting copies"},
    {KnownDifference::kEffects, "xlat", "Zydis leaves out al as the index"},
    {KnownDifference::kEffects, "vmclear",
     "writes the VMCS state to memory (SDM vol. 3); privileged"},
    {KnownDifference::kEffects, "xrstor", kAreaByCpuid},
    {KnownDifference::kEffects, "xrstor64", kAreaByCpuid},
    {KnownDifference::kEffects, "xrstors", kAreaByCpuid},
    {KnownDifference::kEffects, "xrstors64", kAreaByCpuid},
    {KnownDifference::kEffects, "xsave", kAreaByCpuid},
    {KnownDifference::kEffects, "xsave64", kAreaByCpuid},
    {KnownDifference::kEffects, "xsavec", kAreaByCpuid},
    {KnownDifference::kEffects, "xsavec64", kAreaByCpuid},
    {KnownDifference::kEffects, "xsaveopt", kAreaByCpuid},
    {KnownDifference::kEffects, "xsaveopt64", kAreaByCpuid},
    {KnownDifference::kEffects, "xsaves", kAreaByCpuid},
    {KnownDifference::kEffects, "xsaves64", kAreaByCpuid},
    {KnownDifference::kNotDecoded, "montmul", kPadLock},
    {KnownDifference::kNotDecoded, "xcrypt_cbc", kPadLock},
    {KnownDifference::kNotDecoded, "xcrypt_cfb", kPadLock},
    {KnownDifference::kNotDecoded, "xcrypt_ctr", kPadLock},
    {KnownDifference::kNotDecoded, "xcrypt_ecb", kPadLock},
    {KnownDifference::kNotDecoded, "xcrypt_ofb", kPadLock},
    {KnownDifference::kNotDecoded, "xsha1", kPadLock},
    {KnownDifference::kNotDecoded, "xsha256", kPadLock},
    {KnownDifference::kNotDecoded, "xstore", kPadLock},
    {KnownDifference::kNotDecoded, "clevict0", kKnightsCorner},
    {KnownDifference::kNotDecoded, "clevict1", kKnightsCorner},
    {KnownDifference::kNotDecoded, "delay", kKnightsCorner},
    {KnownDifference::kNotDecoded, "jknzd", kKnightsCorner},
    {KnownDifference::kNotDecoded, "jkzd", kKnightsCorner},
    {KnownDifference::kNotDecoded, "kconcath", kKnightsCorner},
    {KnownDifference::kNotDecoded, "kconcatl", kKnightsCorner},
    {KnownDifference::kNotDecoded, "kextract", kKnightsCorner},
    {KnownDifference::kNotDecoded, "kmerge2l1h", kKnightsCorner},
    {KnownDifference::kNotDecoded, "kmerge2l1l", kKnightsCorner},
    {KnownDifference::kNotDecoded, "spflt", kKnightsCorner},
    {KnownDifference::kNotDecoded, "lzcnt", kKnightsCorner},
    {KnownDifference::kNotDecoded, "popcnt", kKnightsCorner},
    {KnownDifference::kNotDecoded, "tzcnt", kKnightsCorner},
    {KnownDifference::kNotDecoded, "tzcnti", kKnightsCorner},
    {KnownDifference::kNotDecoded, "vprefetch0", kKnightsCorner},
    {KnownDifference::kNotDecoded, "vprefetch1", kKnightsCorner},
    {KnownDifference::kNotDecoded, "vprefetch2", kKnightsCorner},
    {KnownDifference::kNotDecoded, "vprefetche0", kKnightsCorner},
    {KnownDifference::kNotDecoded, "vprefetche1", kKnightsCorner},
    {KnownDifference::kNotDecoded, "vprefetche2", kKnightsCorner},
    {KnownDifference::kNotDecoded, "vprefetchenta", kKnightsCorner},
    {KnownDifference::kNotDecoded, "vprefetchnta", kKnightsCorner},
};

bool IsKnown(KnownDifference::Kind kind, const std::string& mnemonic) {
  for (const KnownDifference& known : kKnownDifferences) {
    if (known.kind != kind || mnemonic != known.mnemonic) continue;
    ++known.used;
    return true;
  }
  return false;
}

// Differences of whole classes.
// Near branches with 66h: Intel's processors ignore it, AMD's cut rip to 16 bits, so Decode refuses
// them.
bool IsNearBranchWithOperandSize(const ZydisDecodedInstruction& instruction) {
  const bool prefix = (instruction.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) != 0;
  return prefix && instruction.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE &&
         instruction.meta.branch_type != ZYDIS_BRANCH_TYPE_FAR;
}
// SIB without base (mod 0, base 5) and REX.B: no base, as without REX.B (SDM vol. 2, table 2-5).
// With 67h Zydis makes r13 of it. Checked on the processor.
bool IsNoBaseWithAddressSize(const ZydisDecodedInstruction& instruction) {
  const auto& raw = instruction.raw;
  return instruction.address_width == 32 && raw.rex.B == 1 && raw.modrm.mod == 0 &&
         raw.modrm.rm == 4 && raw.sib.base == 5;
}

class ZydisComparison : public ::testing::Test {
 protected:
  ZydisComparison() {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    // Off: MPX, whose instructions are no-operations on every processor that still runs Linux.
    ZydisDecoderEnableMode(&decoder_, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE);
    ZydisDecoderEnableMode(&decoder_, ZYDIS_DECODER_MODE_KNC, ZYAN_FALSE);
    ZydisDecoderEnableMode(&decoder_, ZYDIS_DECODER_MODE_CLDEMOTE, ZYAN_FALSE);  // a hint
    ZydisFormatterInit(&formatter_, ZYDIS_FORMATTER_STYLE_INTEL);
  }

  void Compare(const EncodedBytes& bytes) {
    ZydisDecodedInstruction theirs;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    const bool valid = ZYAN_SUCCESS(
        ZydisDecoderDecodeFull(&decoder_, bytes.data(), bytes.size(), &theirs, operands));
    const auto ours = Decode(bytes, 0x1000);
    if (!valid) {
      accepted_only_by_us_ += ours.has_value();
      return;
    }
    ++compared_;
    const std::string name = ZydisMnemonicGetString(theirs.mnemonic);
    if (!ours) {
      if (IsKnown(KnownDifference::kNotDecoded, name) || IsNearBranchWithOperandSize(theirs))
        return;
      Report(name + ": not decoded", bytes, theirs, operands, "");
      return;
    }
    if (ours->length != theirs.length) {
      Report(name + ": length", bytes, theirs, operands, std::to_string(ours->length));
      return;
    }
    if (!ours->effects_known) {
      ++unknown_;
      unknown_names_[name]++;
      return;
    }
    const auto expected = Theirs(theirs, operands);
    const auto actual = Ours(*ours);
    if (expected != actual && !IsNoBaseWithAddressSize(theirs) &&
        !IsKnown(KnownDifference::kEffects, name))
      Report(name, bytes, theirs, operands, Text(actual) + " they: " + Text(expected));
    const bool writes_both = std::any_of(actual.begin(), actual.end(),
                                         [](const Effect& e) { return e.reads && e.writes; });
    if (writes_both) {
      const bool atomic = (theirs.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0 ||
                          theirs.mnemonic == ZYDIS_MNEMONIC_XCHG;
      if (atomic != ours->atomic) Report(name + ": atomic", bytes, theirs, operands, "");
    }
  }

  static std::vector<Effect> Theirs(const ZydisDecodedInstruction& instruction,
                                    const ZydisDecodedOperand* operands) {
    std::vector<Effect> effects;
    for (unsigned i = 0; i < instruction.operand_count; ++i) {
      const ZydisDecodedOperand& operand = operands[i];
      if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN)
        continue;
      Effect effect;
      effect.reads = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
      effect.writes = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
      effect.size = operand.size / 8u;
      effect.base = ZydisName(operand.mem.base);
      effect.index = ZydisName(operand.mem.index);
      effect.scale = effect.index.empty() ? 0 : operand.mem.scale;
      effect.displacement = operand.mem.disp.value;
      if (operand.mem.segment == ZYDIS_REGISTER_FS) effect.segment = "fs:";
      if (operand.mem.segment == ZYDIS_REGISTER_GS) effect.segment = "gs:";
      // Of the stack Zydis says the register, not the offset.
      if (operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
          operand.mem.segment == ZYDIS_REGISTER_SS)
        effect.displacement = 0;
      effects.push_back(effect);
    }
    std::sort(effects.begin(), effects.end());
    return effects;
  }

  static std::vector<Effect> Ours(const Instruction& instruction) {
    std::vector<Effect> effects;
    for (const MemoryOperand& operand : instruction.memory()) {
      Effect effect;
      effect.reads = operand.reads;
      effect.writes = operand.writes;
      effect.size = operand.size;
      effect.base = GeneralName(operand.base);
      const bool vector_index = operand.pattern == Pattern::kGather;
      effect.index =
          vector_index ? "v" + std::to_string(operand.index) : GeneralName(operand.index);
      effect.scale = effect.index.empty() ? 0 : operand.scale;
      effect.displacement = operand.displacement;
      // pop to an address with rsp: the processor takes rsp after the pop, and so do we; Zydis
      // takes the bytes.
      const bool pop = instruction.map == kMapOneByte && instruction.opcode == 0x8f;
      if (pop && operand.writes && operand.base == kRsp) effect.displacement -= operand.size;
      if (operand.segment == Segment::kFs) effect.segment = "fs:";
      if (operand.segment == Segment::kGs) effect.segment = "gs:";
      if (operand.implicit && (operand.base == kRsp || operand.base == kRbp))
        effect.displacement = 0;
      effects.push_back(effect);
    }
    std::sort(effects.begin(), effects.end());
    return effects;
  }

  void Report(const std::string& what, const EncodedBytes& bytes,
              const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands,
              const std::string& detail) {
    auto& entry = differences_[what];
    if (entry.first++ != 0) return;
    char text[200];
    ZydisFormatterFormatInstruction(&formatter_, &instruction, operands,
                                    instruction.operand_count_visible, text, sizeof text, 0x1000,
                                    nullptr);
    std::string hex;
    for (unsigned i = 0; i < instruction.length; ++i) {
      char byte[4];
      std::snprintf(byte, sizeof byte, "%02x ", bytes[i]);
      hex += byte;
    }
    entry.second = hex + text + " ours: " + detail;
  }

  void TearDown() override {
    for (const auto& [what, entry] : differences_) {
      ADD_FAILURE() << what << " (" << entry.first << "): " << entry.second;
    }
    EXPECT_GT(compared_, 0u);
    std::printf("compared %llu, unknown effects %llu, accepted only by us %llu\n", compared_,
                unknown_, accepted_only_by_us_);
    for (const auto& [name, count] : unknown_names_)
      std::printf("unknown: %s %llu\n", name.c_str(), count);
  }

  ZydisDecoder decoder_;
  ZydisFormatter formatter_;
  unsigned long long compared_ = 0;
  unsigned long long unknown_ = 0;
  unsigned long long accepted_only_by_us_ = 0;
  std::map<std::string, unsigned long long> unknown_names_;
  std::map<std::string, std::pair<unsigned long long, std::string>> differences_;
};

TEST_F(ZydisComparison, EveryEncoding) {
  const auto compare = [this](const EncodedBytes& bytes) { Compare(bytes); };
  ForEachLegacyEncoding(compare);
  ForEachVexEncoding(compare);
  ForEachEvexEncoding(compare);
  ForEachXopEncoding(compare);
  ForEach3dNowEncoding(compare);
  EXPECT_GT(compared_, 2'000'000u);
  for (const KnownDifference& known : kKnownDifferences) {
    EXPECT_GT(known.used, 0u) << known.mnemonic << " no longer differs: " << known.reason;
  }
}

}  // namespace
}  // namespace trapline

// What mem*, str*, streams and formatted output are reported to read and write.
//
// The functions are called through volatile pointers: the compiler must neither replace the calls
// nor reason about them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <strings.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <functional>
#include <string>
#include <vector>

#include "guest-agent/preload/declarations.h"
#include "tests/preload/recorder.h"

// Saves the stack pointer of its call of memcpy; behind the call lies after_memcpy.
asm(R"(
  .text
  .globl call_memcpy
call_memcpy:
  sub $8, %rsp
  mov %rsp, saved_stack_pointer(%rip)
  call memcpy@PLT
  .globl after_memcpy
after_memcpy:
  add $8, %rsp
  ret
  .bss
  .balign 8
saved_stack_pointer:
  .quad 0
  .globl saved_stack_pointer
  .text
)");
extern "C" {
void* call_memcpy(void* to, const void* from, std::size_t size);
extern const char after_memcpy[];
// Their C++ declarations differ between compilers.
char* call_index(const char* text, int c) asm("index");
char* call_rindex(const char* text, int c) asm("rindex");
extern std::uint64_t saved_stack_pointer;
}

namespace trapline::preload {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Report R(const volatile void* address, std::uint64_t size) {
  return {TRAPLINE_READ, address, size, NumberOfThisThread(), 0, 0};
}

Report W(const volatile void* address, std::uint64_t size) {
  return {TRAPLINE_WRITE, address, size, NumberOfThisThread(), 0, 0};
}

std::vector<Report> Accesses(const std::function<void()>& action) {
  SetTracking(true);
  auto reports = Record(What::kAccesses, action);
  SetTracking(false);
  return reports;
}

template <typename Function>
Function* Opaque(Function* function) {
  Function* volatile opaque = function;
  return opaque;
}

#define CALL(function, ...) Opaque(function)(__VA_ARGS__)

char from[64] = "abcdefgh";
char to[64];

TEST(Site, IsTheCallersInstructionAndStack) {
  SetTracking(true);
  const auto reports = Record(What::kAccesses, [] { call_memcpy(to, from, 5); });
  SetTracking(false);
  ASSERT_THAT(reports, ElementsAre(R(from, 5), W(to, 5)));
  for (const Report& report : reports) {
    EXPECT_EQ(report.ip, reinterpret_cast<std::uint64_t>(after_memcpy));
    EXPECT_EQ(report.stack_pointer, saved_stack_pointer);
  }
}

TEST(Site, NothingIsReportedWhileAccessesDoNotCount) {
  SetTracking(false);
  EXPECT_THAT(Record(What::kAccesses,
                     [] {
                       CALL(memcpy, to, from, 5);
                       CALL(strlen, from);
                       CALL(snprintf, to, 10, "%s", from);
                     }),
              IsEmpty());
}

TEST(Memory, Copies) {
  EXPECT_THAT(Accesses([] {
                CALL(memcpy, to, from, 5);
                CALL(memcpy, to, from, 0);
                CALL(memmove, to, from, 6);
                EXPECT_EQ(CALL(mempcpy, to, from, 7), to + 7);
                CALL(bcopy, from, to, 8);
                CALL(__memcpy_chk, to, from, 5, 9);
                CALL(__memmove_chk, to, from, 5, 9);
                CALL(__mempcpy_chk, to, from, 5, 9);
                EXPECT_EQ(CALL(memccpy, to, from, 'c', 20), to + 3);
                EXPECT_EQ(CALL(memccpy, to, from, 'x', 4), nullptr);
              }),
              ElementsAre(R(from, 5), W(to, 5), R(from, 6), W(to, 6), R(from, 7), W(to, 7),
                          R(from, 8), W(to, 8), R(from, 5), W(to, 5), R(from, 5), W(to, 5),
                          R(from, 5), W(to, 5), R(from, 3), W(to, 3), R(from, 4), W(to, 4)));
}

TEST(Memory, OverlappingCopiesWork) {
  char text[16] = "0123456789";
  CALL(memmove, text + 1, text, 5);
  EXPECT_STREQ(text, "0012346789");
  CALL(memmove, text, text + 2, 5);
  EXPECT_STREQ(text, "1234646789");
}

TEST(Memory, Fills) {
  EXPECT_THAT(Accesses([] {
                CALL(memset, to, 'x', 9);
                CALL(__memset_chk, to, 'x', 10, 64);
                CALL(bzero, to, 11);
                CALL(explicit_bzero, to, 12);
              }),
              ElementsAre(W(to, 9), W(to, 10), W(to, 11), W(to, 12)));
  EXPECT_EQ(to[0], 0);
}

TEST(Memory, Comparisons) {
  char other[64] = "abcXefgh";
  EXPECT_THAT(
      Accesses([&] {
        EXPECT_NE(CALL(memcmp, from, other, 8), 0);
        EXPECT_EQ(CALL(memcmp, from, other, 3), 0);
        EXPECT_NE(CALL(bcmp, from, other, 8), 0);
      }),
      ElementsAre(R(from, 4), R(other, 4), R(from, 3), R(other, 3), R(from, 4), R(other, 4)));
}

TEST(Memory, Searches) {
  EXPECT_THAT(
      Accesses([] {
        EXPECT_EQ(CALL(static_cast<void* (*)(void*, int, std::size_t)>(memchr), from, 'd', 8),
                  from + 3);
        EXPECT_EQ(CALL(static_cast<void* (*)(void*, int, std::size_t)>(memchr), from, 'x', 8),
                  nullptr);
        EXPECT_EQ(CALL(static_cast<void* (*)(void*, int, std::size_t)>(memrchr), from, 'd', 8),
                  from + 3);
        EXPECT_EQ(CALL(static_cast<void* (*)(void*, int, std::size_t)>(memrchr), from, 'x', 8),
                  nullptr);
        EXPECT_EQ(CALL(static_cast<void* (*)(void*, int)>(rawmemchr), from, 'b'), from + 1);
      }),
      ElementsAre(R(from, 4), R(from, 8), R(from + 3, 5), R(from, 8), R(from, 2)));
  EXPECT_THAT(Accesses([] {
                EXPECT_EQ(CALL(memmem, from, 8, "cd", 2), from + 2);
                EXPECT_EQ(CALL(memmem, from, 8, "zz", 2), nullptr);
              }),
              ElementsAre(R(from, 4), ::testing::Field(&Report::size, 2), R(from, 8),
                          ::testing::Field(&Report::size, 2)));
}

TEST(Strings, Lengths) {
  EXPECT_THAT(Accesses([] {
                EXPECT_EQ(CALL(strlen, from), 8U);
                EXPECT_EQ(CALL(strnlen, from, 4), 4U);
                EXPECT_EQ(CALL(strnlen, from, 40), 8U);
              }),
              ElementsAre(R(from, 9), R(from, 4), R(from, 9)));
}

TEST(Strings, Comparisons) {
  char other[64] = "abcXefgh";
  char shorter[64] = "ab";
  char upper[64] = "ABCDEFGH";
  EXPECT_THAT(Accesses([&] {
                EXPECT_GT(CALL(strcmp, from, other), 0);
                EXPECT_GT(CALL(strcmp, from, shorter), 0);
                EXPECT_EQ(CALL(strcmp, from, from), 0);
                EXPECT_EQ(CALL(strncmp, from, other, 3), 0);
                EXPECT_GT(CALL(strncmp, from, other, 30), 0);
                EXPECT_EQ(CALL(strcasecmp, from, upper), 0);
                EXPECT_EQ(CALL(strncasecmp, from, upper, 5), 0);
                EXPECT_GT(CALL(strcoll, from, shorter), 0);
              }),
              ElementsAre(R(from, 4), R(other, 4), R(from, 3), R(shorter, 3), R(from, 9),
                          R(from, 9), R(from, 3), R(other, 3), R(from, 4), R(other, 4), R(from, 9),
                          R(upper, 9), R(from, 5), R(upper, 5), R(from, 9), R(shorter, 3)));
}

TEST(Strings, Searches) {
  using Find = char* (*)(char*, int);
  using FindString = char* (*)(char*, const char*);
  char part[] = "cd";
  char none[] = "xyz";
  EXPECT_THAT(Accesses([] {
                EXPECT_EQ(CALL(static_cast<Find>(strchr), from, 'd'), from + 3);
                EXPECT_EQ(CALL(static_cast<Find>(strchr), from, 'x'), nullptr);
                EXPECT_EQ(CALL(call_index, from, 'd'), from + 3);
                EXPECT_EQ(CALL(static_cast<Find>(strchrnul), from, 'x'), from + 8);
                EXPECT_EQ(CALL(static_cast<Find>(strrchr), from, 'd'), from + 3);
                EXPECT_EQ(CALL(call_rindex, from, 'd'), from + 3);
              }),
              ElementsAre(R(from, 4), R(from, 9), R(from, 4), R(from, 9), R(from, 9), R(from, 9)));
  EXPECT_THAT(Accesses([&] {
                EXPECT_EQ(CALL(static_cast<FindString>(strstr), from, part), from + 2);
                EXPECT_EQ(CALL(static_cast<FindString>(strstr), from, none), nullptr);
                EXPECT_EQ(CALL(static_cast<FindString>(strcasestr), from, part), from + 2);
                EXPECT_EQ(CALL(strspn, from, "ba"), 2U);
                EXPECT_EQ(CALL(strcspn, from, part), 2U);
                EXPECT_EQ(CALL(static_cast<FindString>(strpbrk), from, none), nullptr);
              }),
              ElementsAre(R(from, 4), R(part, 3), R(from, 9), R(none, 4), R(from, 4), R(part, 3),
                          R(from, 3), ::testing::Field(&Report::size, 3), R(from, 3), R(part, 3),
                          R(from, 9), R(none, 4)));
}

TEST(Strings, Copies) {
  EXPECT_THAT(Accesses([] {
                CALL(strcpy, to, from);
                EXPECT_EQ(CALL(stpcpy, to, from), to + 8);
                CALL(strncpy, to, from, 4);
                CALL(strncpy, to, from, 20);
                EXPECT_EQ(CALL(stpncpy, to, from, 20), to + 8);
                CALL(__strcpy_chk, to, from, sizeof(to));
                CALL(__stpcpy_chk, to, from, sizeof(to));
                CALL(__strncpy_chk, to, from, 20, sizeof(to));
                CALL(__stpncpy_chk, to, from, 20, sizeof(to));
              }),
              ElementsAre(R(from, 9), W(to, 9), R(from, 9), W(to, 9), R(from, 4), W(to, 4),
                          R(from, 9), W(to, 20), R(from, 9), W(to, 20), R(from, 9), W(to, 9),
                          R(from, 9), W(to, 9), R(from, 9), W(to, 20), R(from, 9), W(to, 20)));
}

TEST(Strings, Appending) {
  for (const bool checked : {false, true}) {
    strcpy(to, "12");
    EXPECT_THAT(
        Accesses([checked] {
          if (checked) {
            CALL(__strcat_chk, to, from, sizeof(to));
            CALL(__strncat_chk, to, from, 3, sizeof(to));
          } else {
            CALL(strcat, to, from);
            CALL(strncat, to, from, 3);
          }
        }),
        ElementsAre(R(to, 3), R(from, 9), W(to + 2, 9), R(to, 11), R(from, 3), W(to + 10, 4)));
    EXPECT_STREQ(to, "12abcdefghabc");
  }
}

TEST(Strings, Duplicates) {
  char* copies[3] = {};
  EXPECT_THAT(Accesses([&] {
                copies[0] = CALL(strdup, from);
                copies[1] = CALL(__strdup, from);
                copies[2] = CALL(strndup, from, 3);
              }),
              ElementsAre(R(from, 9), R(from, 9), R(from, 3)));
  const auto allocations = Record(What::kAllocation, [&] {
    for (char*& copy : copies) {
      free(copy);
      copy = nullptr;
    }
    copies[0] = CALL(strdup, from);
  });
  ASSERT_EQ(allocations.size(), 4U);
  EXPECT_EQ(allocations[3], (Report{TRAPLINE_ALLOCATE, copies[0], 9, NumberOfThisThread(), 0, 0}));
  free(copies[0]);
}

TEST(Strings, Splitting) {
  char text[] = ",,a,bc";
  char commas[] = ",";
  char* rest = nullptr;
  EXPECT_THAT(Accesses([&] {
                EXPECT_EQ(CALL(strtok_r, text, commas, &rest), text + 2);
                EXPECT_EQ(CALL(strtok_r, nullptr, commas, &rest), text + 4);
                EXPECT_EQ(CALL(strtok_r, nullptr, commas, &rest), nullptr);
              }),
              ElementsAre(R(commas, 2), R(text, 4), W(text + 3, 1), R(commas, 2), R(text + 4, 3),
                          R(commas, 2), R(text + 6, 1)));
  char again[] = "a,bc";
  rest = again;
  EXPECT_THAT(
      Accesses([&] {
        EXPECT_EQ(CALL(strsep, &rest, commas), again);
        EXPECT_EQ(CALL(strsep, &rest, commas), again + 2);
        EXPECT_EQ(CALL(strsep, &rest, commas), nullptr);
      }),
      ElementsAre(R(commas, 2), R(again, 2), W(again + 1, 1), R(commas, 2), R(again + 2, 3)));
  char third[] = "x y";
  EXPECT_THAT(Accesses([&] { EXPECT_EQ(CALL(strtok, third, " "), third); }),
              ElementsAre(::testing::Field(&Report::size, 2), R(third, 2)));
}

TEST(Strings, Numbers) {
  char integer[] = "123 rest";
  char real[] = "1.5e2;";
  char* end = nullptr;
  EXPECT_THAT(Accesses([&] {
                EXPECT_EQ(CALL(strtol, integer, &end, 10), 123);
                EXPECT_EQ(end, integer + 3);
                EXPECT_EQ(CALL(strtoul, integer, nullptr, 10), 123U);
                EXPECT_EQ(CALL(strtoll, integer, &end, 8), 0123);
                EXPECT_EQ(CALL(strtoull, integer, &end, 16), 0x123U);
                EXPECT_EQ(CALL(atoi, integer), 123);
                EXPECT_EQ(CALL(atol, integer), 123);
                EXPECT_EQ(CALL(atoll, integer), 123);
              }),
              ElementsAre(R(integer, 4), R(integer, 4), R(integer, 4), R(integer, 4), R(integer, 4),
                          R(integer, 4), R(integer, 4)));
  EXPECT_THAT(Accesses([&] {
                EXPECT_EQ(CALL(strtod, real, &end), 150.0);
                EXPECT_EQ(end, real + 5);
                EXPECT_EQ(CALL(strtof, real, nullptr), 150.0F);
                EXPECT_EQ(CALL(strtold, real, nullptr), 150.0L);
                EXPECT_EQ(CALL(atof, real), 150.0);
              }),
              ElementsAre(R(real, 6), R(real, 6), R(real, 6), R(real, 6)));
}

TEST(Format, StringsAndTheFormatAreRead) {
  static const char format[] = "%5d %s|%-8.3s|%*.*f %Lf %c %% %lx %ls %p %s %.0s";
  static const wchar_t wide[] = L"wide";
  std::array<char, 300> buffer = {};
  int length = 0;
  EXPECT_THAT(
      Accesses([&] {
        length = CALL(snprintf, buffer.data(), buffer.size(), format, 1, from, from, 10, 2, 3.25,
                      1.5L, 'c', 0xabcL, wide, nullptr, nullptr, from);
      }),
      ElementsAre(
          R(format, sizeof(format)), R(from, 9), R(from, 3), R(wide, 5 * sizeof(wchar_t)),
          W(buffer.data(), std::string("    1 abcdefgh|abc     |      3.25 1.500000 c % abc "
                                       "wide (nil) (null) ")
                                   .size() +
                               1)));
  EXPECT_STREQ(buffer.data(),
               "    1 abcdefgh|abc     |      3.25 1.500000 c % abc wide (nil) (null) ");
  EXPECT_EQ(length, static_cast<int>(strlen(buffer.data())));
}

TEST(Format, ManyArgumentsKeepTheirPlaces) {
  // More than fit into registers, integers and floating point mixed.
  static const char format[] = "%d%f%d%f%d%f%d%f%d%f%d%f%d%f%d%f%d%f%hhd%s";
  std::array<char, 500> buffer = {};
  const auto reports = Accesses([&] {
    CALL(sprintf, buffer.data(), format, 1, 1.0, 2, 2.0, 3, 3.0, 4, 4.0, 5, 5.0, 6, 6.0, 7, 7.0, 8,
         8.0, 9, 9.0, 10, from);
  });
  ASSERT_EQ(reports.size(), 3U);
  EXPECT_EQ(reports[1], R(from, 9));
  EXPECT_EQ(reports[2], W(buffer.data(), strlen(buffer.data()) + 1));
}

TEST(Format, CountsAreWritten) {
  int whole = 0;
  char small = 0;
  long wide = 0;
  EXPECT_THAT(
      Accesses([&] { CALL(snprintf, to, sizeof(to), "ab%nc%hhn%ln", &whole, &small, &wide); }),
      ElementsAre(::testing::Field(&Report::size, 13), W(&whole, sizeof(whole)), W(&small, 1),
                  W(&wide, sizeof(wide)), W(to, 4)));
  EXPECT_EQ(whole, 2);
  EXPECT_EQ(small, 3);
}

TEST(Format, WhatDoesNotFitIsNotWritten) {
  static const char format[] = "%s";
  EXPECT_THAT(Accesses([] {
                EXPECT_EQ(CALL(snprintf, to, 4, format, from), 8);
                EXPECT_EQ(CALL(snprintf, nullptr, 0, format, from), 8);
              }),
              ElementsAre(R(format, 3), R(from, 9), W(to, 4), R(format, 3), R(from, 9)));
}

TEST(Format, AnUnterminatedStringIsReadUpToThePrecision) {
  char raw[4] = {'r', 'a', 'w', '!'};
  static const char format[] = "%.4s %.*s";
  EXPECT_THAT(Accesses([&] { CALL(snprintf, to, sizeof(to), format, raw, 2, raw); }),
              ElementsAre(R(format, sizeof(format)), R(raw, 4), R(raw, 2), W(to, 8)));
}

TEST(Format, NumberedArgumentsAreLeftOut) {
  static const char format[] = "%2$s %1$s";
  EXPECT_THAT(Accesses([] { CALL(snprintf, to, sizeof(to), format, from, "x"); }),
              ElementsAre(R(format, sizeof(format)), W(to, 11)));
  EXPECT_STREQ(to, "x abcdefgh");
}

int CallList(int (*print)(char*, std::size_t, const char*, va_list), char* buffer, std::size_t size,
             const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = print(buffer, size, format, arguments);
  va_end(arguments);
  return result;
}

TEST(Format, EveryFunction) {
  FILE* stream = fopen("/dev/null", "w");
  ASSERT_NE(stream, nullptr);
  static const char format[] = "%s";
  EXPECT_THAT(Accesses([&] {
                CALL(fprintf, stream, format, from);
                CALL(__fprintf_chk, stream, 1, format, from);
                CALL(dprintf, fileno(stream), format, from);
                CALL(__dprintf_chk, fileno(stream), 1, format, from);
              }),
              ElementsAre(R(format, 3), R(from, 9), R(format, 3), R(from, 9), R(format, 3),
                          R(from, 9), R(format, 3), R(from, 9)));
  fclose(stream);
  static const char empty[] = "%.0s";
  EXPECT_THAT(Accesses([&] {
                CALL(printf, empty, from);
                CALL(__printf_chk, 1, empty, from);
              }),
              ElementsAre(R(empty, 5), R(empty, 5)));
  const auto into_buffer = {R(format, 3), R(from, 9), W(to, 9)};
  EXPECT_THAT(Accesses([] { CALL(sprintf, to, format, from); }),
              ::testing::ElementsAreArray(into_buffer));
  EXPECT_THAT(Accesses([] { CALL(__sprintf_chk, to, 1, sizeof(to), format, from); }),
              ::testing::ElementsAreArray(into_buffer));
  EXPECT_THAT(Accesses([] { CALL(__snprintf_chk, to, sizeof(to), 1, sizeof(to), format, from); }),
              ::testing::ElementsAreArray(into_buffer));
  const std::initializer_list<int (*)(char*, std::size_t, const char*, va_list)> lists = {
      [](char* buffer, std::size_t size, const char* text, va_list arguments) {
        return vsnprintf(buffer, size, text, arguments);
      },
      [](char* buffer, std::size_t, const char* text, va_list arguments) {
        return vsprintf(buffer, text, arguments);
      },
      [](char* buffer, std::size_t size, const char* text, va_list arguments) {
        return __vsnprintf_chk(buffer, size, 1, size, text, arguments);
      },
      [](char* buffer, std::size_t size, const char* text, va_list arguments) {
        return __vsprintf_chk(buffer, 1, size, text, arguments);
      }};
  for (const auto list : lists)
    EXPECT_THAT(Accesses([list] { CallList(list, to, sizeof(to), format, from); }),
                ::testing::ElementsAreArray(into_buffer));
}

TEST(Format, IntoAFreshBlock) {
  static const char format[] = "%s";
  char* block = nullptr;
  // An allocator other than libc's may write where it notes blocks of a size when it gives out the
  // first one.
  ASSERT_EQ(CALL(asprintf, &block, format, from), 8);
  free(block);
  EXPECT_THAT(Accesses([&] { EXPECT_EQ(CALL(asprintf, &block, format, from), 8); }),
              ElementsAre(R(format, 3), R(from, 9)));
  EXPECT_STREQ(block, from);
  free(block);
  // Whatever blocks libc uses on the way, the last one stays and is the caller's.
  const auto reports = RecordFromAnywhere(
      What::kAllocation, [&] { EXPECT_EQ(CALL(__asprintf_chk, &block, 1, format, from), 8); });
  const auto about_block = About(reports, block);
  ASSERT_FALSE(about_block.empty());
  EXPECT_EQ(about_block.back().kind, TRAPLINE_ALLOCATE);
  EXPECT_TRUE(IsInThisProgram(about_block.back().ip));
  free(block);
}

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    stream_ = tmpfile();
    ASSERT_NE(stream_, nullptr);
    fputs("first line\nsecond\n12345", stream_);
    rewind(stream_);
  }
  void TearDown() override { fclose(stream_); }
  FILE* stream_ = nullptr;
};

TEST_F(Files, Writing) {
  EXPECT_THAT(Accesses([this] {
                CALL(fputs, from, stream_);
                CALL(fputs_unlocked, from, stream_);
                CALL(fwrite, from, 2, 3, stream_);
                CALL(fwrite_unlocked, from, 2, 3, stream_);
              }),
              ElementsAre(R(from, 9), R(from, 9), R(from, 6), R(from, 6)));
}

TEST_F(Files, Reading) {
  EXPECT_THAT(Accesses([this] {
                CALL(fgets, to, sizeof(to), stream_);
                CALL(fread, to, 3, 2, stream_);
                CALL(__fread_chk, to, sizeof(to), 1, 1, stream_);
                CALL(fread_unlocked, to, 2, 10, stream_);
                CALL(fgets, to, sizeof(to), stream_);
              }),
              ElementsAre(W(to, 12), W(to, 6), W(to, 1), W(to, 4)));
}

TEST_F(Files, Lines) {
  char* line = nullptr;
  std::size_t capacity = 0;
  ssize_t length = 0;
  const auto reports = Accesses([&] { length = CALL(getline, &line, &capacity, stream_); });
  EXPECT_EQ(length, 11);
  EXPECT_THAT(reports, ElementsAre(W(line, 12)));
  EXPECT_THAT(Accesses([&] { CALL(getdelim, &line, &capacity, 'o', stream_); }),
              ElementsAre(W(line, 5)));
  EXPECT_THAT(Accesses([&] { CALL(__fgets_chk, to, sizeof(to), 20, stream_); }),
              ElementsAre(W(to, 4)));
  free(line);
}

}  // namespace
}  // namespace trapline::preload

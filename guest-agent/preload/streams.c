/* Streams and formatted output: the program's buffers and strings that libc reads and writes. The
 * streams themselves are libc's own affair. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "guest-agent/preload/allocation.h"
#include "guest-agent/preload/runtime.h"

/* The header has inline versions as macros. */
#undef fread_unlocked
#undef fwrite_unlocked

static size_t Whole(const char* text) { return real.strlen(text) + 1; }

/* -- Formatted output -- */

enum ArgumentSize { kSizeInt, kSizeChar, kSizeShort, kSizeLong, kSizeLongDouble };

/* One conversion specification, from behind its '%'. */
struct Conversion {
  const char* next; /* behind it */
  int width_from_argument;
  int precision_from_argument;
  long precision; /* -1: none */
  enum ArgumentSize size;
  char type;
};

static const char* Digits(const char* at, long* value) {
  *value = 0;
  for (; *at >= '0' && *at <= '9'; ++at)
    if (*value < 1 << 24) *value = *value * 10 + (*at - '0');
  return at;
}

/* Numbered arguments ("%2$s") are left out: 0 is returned, and for what is no conversion of C's
 * or glibc's. */
static int ParseConversion(const char* at, struct Conversion* conversion) {
  long width;
  *conversion = (struct Conversion){.precision = -1};
  while (*at && real.strchr("-+ #0'I", *at)) ++at;
  if (*at == '*') {
    conversion->width_from_argument = 1;
    ++at;
    if (*at >= '0' && *at <= '9') return 0;
  } else {
    at = Digits(at, &width);
    if (*at == '$') return 0;
  }
  if (*at == '.') {
    ++at;
    if (*at == '*') {
      conversion->precision_from_argument = 1;
      ++at;
      if (*at >= '0' && *at <= '9') return 0;
    } else {
      at = Digits(at, &conversion->precision);
    }
  }
  for (; *at && real.strchr("hlqLjzZt", *at); ++at) {
    if (*at == 'h')
      conversion->size = conversion->size == kSizeShort ? kSizeChar : kSizeShort;
    else
      conversion->size = *at == 'L' ? kSizeLongDouble : kSizeLong;
  }
  conversion->type = *at;
  conversion->next = at + 1;
  return *at && real.strchr("diouxXcCsSpneEfFgGaAm%", *at) != NULL;
}

static void ReportString(struct Site site, const char* text, long limit, int wide) {
  if (!text) return; /* printed as "(null)" */
  size_t most = limit < 0 ? SIZE_MAX : (size_t)limit;
  if (wide) {
    /* The limit is in bytes of output: no more wide characters than that are looked at. */
    size_t length = 0;
    while (length < most && ((const wchar_t*)(const void*)text)[length]) ++length;
    Reads(site, text, (length < most ? length + 1 : most) * sizeof(wchar_t));
    return;
  }
  size_t length = real.strnlen(text, most);
  Reads(site, text, length < most ? length + 1 : most);
}

/* The format and its string arguments as read, what %n points to as written. */
static void ReportFormat(struct Site site, const char* format, va_list arguments) {
  static const size_t kCountSizes[] = {sizeof(int), sizeof(char), sizeof(short), sizeof(long),
                                       sizeof(long long)};
  if (!format) return; /* an error that libc reports */
  Reads(site, format, Whole(format));
  va_list rest;
  va_copy(rest, arguments);
  struct Conversion conversion;
  for (const char* at = real.strchr(format, '%'); at; at = real.strchr(conversion.next, '%')) {
    if (!ParseConversion(at + 1, &conversion)) break;
    if (conversion.width_from_argument) (void)va_arg(rest, int);
    if (conversion.precision_from_argument) conversion.precision = va_arg(rest, int);
    switch (conversion.type) {
      case '%':
      case 'm':
        break;
      case 's':
      case 'S':
        ReportString(site, va_arg(rest, const char*), conversion.precision,
                     conversion.type == 'S' || conversion.size == kSizeLong);
        break;
      case 'n':
        Writes(site, va_arg(rest, const void*), kCountSizes[conversion.size]);
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        if (conversion.size == kSizeLongDouble)
          (void)va_arg(rest, long double);
        else
          (void)va_arg(rest, double);
        break;
      default: /* an integer or a pointer: the same register or stack slot whatever its size */
        (void)va_arg(rest, long);
    }
  }
  va_end(rest);
}

/* `result` bytes and the terminator, as far as they fit. */
static void ReportPrinted(struct Site site, const char* buffer, size_t capacity, int result) {
  if (result < 0 || capacity == 0) return;
  size_t size = (size_t)result + 1;
  Writes(site, buffer, size < capacity ? size : capacity);
}

#define REPORT_FORMAT      \
  struct Site site = SITE; \
  if (site.agent) ReportFormat(site, format, arguments)

/* Body of a function with a variable number of arguments, by the one that takes a list. */
#define WITH_ARGUMENTS(print)  \
  va_list arguments;           \
  va_start(arguments, format); \
  REPORT_FORMAT;               \
  int result = (print);        \
  va_end(arguments);           \
  return result

#define INTO_BUFFER_WITH_ARGUMENTS(capacity, print)              \
  va_list arguments;                                             \
  va_start(arguments, format);                                   \
  REPORT_FORMAT;                                                 \
  int result = (print);                                          \
  va_end(arguments);                                             \
  if (site.agent) ReportPrinted(site, buffer, capacity, result); \
  return result

#define INTO_BUFFER(capacity, print)                             \
  REPORT_FORMAT;                                                 \
  int result = (print);                                          \
  if (site.agent) ReportPrinted(site, buffer, capacity, result); \
  return result

WRAPPER int printf(const char* restrict format, ...) {
  WITH_ARGUMENTS(real.vprintf(format, arguments));
}

WRAPPER int fprintf(FILE* restrict stream, const char* restrict format, ...) {
  WITH_ARGUMENTS(real.vfprintf(stream, format, arguments));
}

WRAPPER int dprintf(int file, const char* restrict format, ...) {
  WITH_ARGUMENTS(real.vdprintf(file, format, arguments));
}

WRAPPER int sprintf(char* restrict buffer, const char* restrict format, ...) {
  INTO_BUFFER_WITH_ARGUMENTS(SIZE_MAX, real.vsprintf(buffer, format, arguments));
}

WRAPPER int snprintf(char* restrict buffer, size_t size, const char* restrict format, ...) {
  INTO_BUFFER_WITH_ARGUMENTS(size, real.vsnprintf(buffer, size, format, arguments));
}

WRAPPER int vprintf(const char* restrict format, va_list arguments) {
  REPORT_FORMAT;
  return real.vprintf(format, arguments);
}

WRAPPER int vfprintf(FILE* restrict stream, const char* restrict format, va_list arguments) {
  REPORT_FORMAT;
  return real.vfprintf(stream, format, arguments);
}

WRAPPER int vdprintf(int file, const char* restrict format, va_list arguments) {
  REPORT_FORMAT;
  return real.vdprintf(file, format, arguments);
}

WRAPPER int vsprintf(char* restrict buffer, const char* restrict format, va_list arguments) {
  INTO_BUFFER(SIZE_MAX, real.vsprintf(buffer, format, arguments));
}

WRAPPER int vsnprintf(char* restrict buffer, size_t size, const char* restrict format,
                      va_list arguments) {
  INTO_BUFFER(size, real.vsnprintf(buffer, size, format, arguments));
}

WRAPPER int __printf_chk(int flag, const char* restrict format, ...) {
  WITH_ARGUMENTS(real.__vprintf_chk(flag, format, arguments));
}

WRAPPER int __fprintf_chk(FILE* restrict stream, int flag, const char* restrict format, ...) {
  WITH_ARGUMENTS(real.__vfprintf_chk(stream, flag, format, arguments));
}

WRAPPER int __dprintf_chk(int file, int flag, const char* restrict format, ...) {
  WITH_ARGUMENTS(real.__vdprintf_chk(file, flag, format, arguments));
}

WRAPPER int __sprintf_chk(char* restrict buffer, int flag, size_t capacity,
                          const char* restrict format, ...) {
  INTO_BUFFER_WITH_ARGUMENTS(capacity,
                             real.__vsprintf_chk(buffer, flag, capacity, format, arguments));
}

WRAPPER int __snprintf_chk(char* restrict buffer, size_t size, int flag, size_t capacity,
                           const char* restrict format, ...) {
  INTO_BUFFER_WITH_ARGUMENTS(size,
                             real.__vsnprintf_chk(buffer, size, flag, capacity, format, arguments));
}

WRAPPER int __vprintf_chk(int flag, const char* restrict format, va_list arguments) {
  REPORT_FORMAT;
  return real.__vprintf_chk(flag, format, arguments);
}

WRAPPER int __vfprintf_chk(FILE* restrict stream, int flag, const char* restrict format,
                           va_list arguments) {
  REPORT_FORMAT;
  return real.__vfprintf_chk(stream, flag, format, arguments);
}

WRAPPER int __vdprintf_chk(int file, int flag, const char* restrict format, va_list arguments) {
  REPORT_FORMAT;
  return real.__vdprintf_chk(file, flag, format, arguments);
}

WRAPPER int __vsprintf_chk(char* restrict buffer, int flag, size_t capacity,
                           const char* restrict format, va_list arguments) {
  INTO_BUFFER(capacity, real.__vsprintf_chk(buffer, flag, capacity, format, arguments));
}

WRAPPER int __vsnprintf_chk(char* restrict buffer, size_t size, int flag, size_t capacity,
                            const char* restrict format, va_list arguments) {
  INTO_BUFFER(size, real.__vsnprintf_chk(buffer, size, flag, capacity, format, arguments));
}

/* -- Into a fresh block -- */

#define INTO_BLOCK(print)                            \
  REPORT_FORMAT;                                     \
  struct Allocation outer = BeginAllocation(CALLER); \
  int result = (print);                              \
  EndAllocation(outer, result < 0 ? NULL : *block, (size_t)result + 1, CALLER)

WRAPPER int vasprintf(char** restrict block, const char* restrict format, va_list arguments) {
  INTO_BLOCK(real.vasprintf(block, format, arguments));
  return result;
}

WRAPPER int __vasprintf_chk(char** restrict block, int flag, const char* restrict format,
                            va_list arguments) {
  INTO_BLOCK(real.__vasprintf_chk(block, flag, format, arguments));
  return result;
}

WRAPPER int asprintf(char** restrict block, const char* restrict format, ...) {
  va_list arguments;
  va_start(arguments, format);
  INTO_BLOCK(real.vasprintf(block, format, arguments));
  va_end(arguments);
  return result;
}

WRAPPER int __asprintf_chk(char** restrict block, int flag, const char* restrict format, ...) {
  va_list arguments;
  va_start(arguments, format);
  INTO_BLOCK(real.__vasprintf_chk(block, flag, format, arguments));
  va_end(arguments);
  return result;
}

/* -- Unformatted output -- */

WRAPPER int puts(const char* text) {
  struct Site site = SITE;
  if (site.agent) Reads(site, text, Whole(text));
  return real.puts(text);
}

WRAPPER int fputs(const char* restrict text, FILE* restrict stream) {
  struct Site site = SITE;
  if (site.agent) Reads(site, text, Whole(text));
  return real.fputs(text, stream);
}

WRAPPER int fputs_unlocked(const char* restrict text, FILE* restrict stream) {
  struct Site site = SITE;
  if (site.agent) Reads(site, text, Whole(text));
  return real.fputs_unlocked(text, stream);
}

WRAPPER size_t fwrite(const void* restrict block, size_t size, size_t count,
                      FILE* restrict stream) {
  struct Site site = SITE;
  if (site.agent) Reads(site, block, size * count);
  return real.fwrite(block, size, count, stream);
}

WRAPPER size_t fwrite_unlocked(const void* restrict block, size_t size, size_t count,
                               FILE* restrict stream) {
  struct Site site = SITE;
  if (site.agent) Reads(site, block, size * count);
  return real.fwrite_unlocked(block, size, count, stream);
}

/* -- Input -- */

/* An incomplete last element is not counted, but written: that is left out. */
#define READ_BLOCK(read)                             \
  struct Site site = SITE;                           \
  size_t result = (read);                            \
  if (site.agent) Writes(site, block, size* result); \
  return result

WRAPPER size_t fread(void* restrict block, size_t size, size_t count, FILE* restrict stream) {
  READ_BLOCK(real.fread(block, size, count, stream));
}

WRAPPER size_t fread_unlocked(void* restrict block, size_t size, size_t count,
                              FILE* restrict stream) {
  READ_BLOCK(real.fread_unlocked(block, size, count, stream));
}

WRAPPER size_t __fread_chk(void* restrict block, size_t capacity, size_t size, size_t count,
                           FILE* restrict stream) {
  READ_BLOCK(real.__fread_chk(block, capacity, size, count, stream));
}

WRAPPER size_t __fread_unlocked_chk(void* restrict block, size_t capacity, size_t size,
                                    size_t count, FILE* restrict stream) {
  READ_BLOCK(real.__fread_unlocked_chk(block, capacity, size, count, stream));
}

/* A line that holds a zero byte counts up to there. */
#define READ_LINE(read)                                          \
  struct Site site = SITE;                                       \
  char* result = (read);                                         \
  if (site.agent && result) Writes(site, result, Whole(result)); \
  return result

WRAPPER char* fgets(char* restrict buffer, int size, FILE* restrict stream) {
  READ_LINE(real.fgets(buffer, size, stream));
}

WRAPPER char* fgets_unlocked(char* restrict buffer, int size, FILE* restrict stream) {
  READ_LINE(real.fgets_unlocked(buffer, size, stream));
}

WRAPPER char* __fgets_chk(char* restrict buffer, size_t capacity, int size, FILE* restrict stream) {
  READ_LINE(real.__fgets_chk(buffer, capacity, size, stream));
}

WRAPPER char* __fgets_unlocked_chk(char* restrict buffer, size_t capacity, int size,
                                   FILE* restrict stream) {
  READ_LINE(real.__fgets_unlocked_chk(buffer, capacity, size, stream));
}

/* The buffer grows by realloc, which comes through here. */
#define READ_DELIMITED(read)                                                \
  struct Site site = SITE;                                                  \
  ssize_t result = (read);                                                  \
  if (site.agent && result >= 0) Writes(site, *buffer, (size_t)result + 1); \
  return result

WRAPPER ssize_t getdelim(char** restrict buffer, size_t* restrict capacity, int delimiter,
                         FILE* restrict stream) {
  READ_DELIMITED(real.getdelim(buffer, capacity, delimiter, stream));
}

WRAPPER ssize_t __getdelim(char** restrict buffer, size_t* restrict capacity, int delimiter,
                           FILE* restrict stream) {
  READ_DELIMITED(real.getdelim(buffer, capacity, delimiter, stream));
}

WRAPPER ssize_t getline(char** restrict buffer, size_t* restrict capacity, FILE* restrict stream) {
  READ_DELIMITED(real.getline(buffer, capacity, stream));
}

/* What own_allocator.c gives out: blocks of so many bytes whatever is asked for, none if that is
 * more than kMostBlock. */
#pragma once

enum { kOwnBlock = 64, kMostBlock = 4096 };

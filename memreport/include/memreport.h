/* Memory reporters for code in C and C++ inside a Rust program.

   The program depends on the crate memreport with its feature `c-api`; these functions are in it.
   Texts are UTF-8; paths and descriptions are copied. SPDX-License-Identifier: MIT OR Apache-2.0

   Threads: reporters are registered and unregistered, and scopes entered and left, by any thread at
   any time. A collection calls a reporter on any thread, while other threads of the program run. One
   reporter is never called by two threads at once, two reporters may be. What a reporter reads needs
   a lock that it only tries to take; if that fails, it calls memreport_missed.

   The reports of a call are used on its thread alone, and not within a visit; the blocks of a visit
   on its thread alone. Other uses are refused, and a note of the snapshot counts them.

   Neither a reporter nor a visit may end by an exception of C++ or by longjmp: that is undefined. */
#ifndef MEMREPORT_H
#define MEMREPORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The reports of one collection. Valid during the call that received it. */
typedef struct memreport_reports memreport_reports;

/* The blocks of one report. Valid during the call that received it. */
typedef struct memreport_blocks memreport_blocks;

/* Makes a reporter's reports. It must not wait for a lock, whose holder may wait for the reports. It
   throws no exception. */
typedef void (*memreport_collect)(memreport_reports *reports, void *data);

/* Calls memreport_block for each block that a report counts, and no function that takes reports. It
   throws no exception. */
typedef void (*memreport_visit)(memreport_blocks *blocks, void *data);

/* Heap: blocks of malloc. Non-heap: other memory, such as mappings. Other: anything that is not
   added up. */
enum memreport_kind { MEMREPORT_NONHEAP = 0, MEMREPORT_HEAP = 1, MEMREPORT_OTHER = 2 };

/* The units of an amount. A percentage is in hundredths: 1234 is 12.34 %. */
enum memreport_units {
    MEMREPORT_BYTES = 0,
    MEMREPORT_COUNT = 1,
    MEMREPORT_COUNT_CUMULATIVE = 2,
    MEMREPORT_PERCENTAGE = 3
};

/* Registers a reporter, which collections call until it is unregistered. Returns its number. */
uint64_t memreport_register(memreport_collect collect, void *data);

/* Unregisters a reporter. Waits for a call of it that runs on another thread, and none comes later:
   its data may be freed then. A reporter must not unregister itself, which would wait for ever. */
void memreport_unregister(uint64_t reporter);

/* Reports an amount at a path such as "explicit/images/decoded". A path that begins with "explicit/"
   takes bytes. Heap bytes without blocks cannot be checked by DMD. */
void memreport_amount(memreport_reports *reports, const char *path, enum memreport_kind kind,
                      enum memreport_units units, int64_t amount, const char *description);

/* Reports the usable bytes of the blocks that `visit` passes to memreport_block, and returns them.
   The kind is heap if the blocks of malloc are in the program's heap-allocated (`about-memory run
   --c-heap`), which has DMD check each of them, and non-heap otherwise. */
size_t memreport_measure(memreport_reports *reports, const char *path, memreport_visit visit,
                         void *data, const char *description);

/* Counts a live block of malloc, by the pointer that malloc returned. Null counts nothing. */
void memreport_block(memreport_blocks *blocks, const void *block);

/* Marks this path as missing or too small, because a lock of its values was held. The snapshot is
   then incomplete. */
void memreport_missed(memreport_reports *reports, const char *path);

/* Returns 1 if the reporter must replace private words in paths, such as file names, and 0 otherwise. */
int memreport_anonymize(memreport_reports *reports);

/* Enters a scope: blocks that this thread allocates belong to it until it is left. Returns a number
   for memreport_leave_scope, which the same thread calls in the opposite order. */
uint64_t memreport_enter_scope(const char *name);

/* Leaves the scope that memreport_enter_scope entered. */
void memreport_leave_scope(uint64_t scope);

#ifdef __cplusplus
}
#endif

#endif

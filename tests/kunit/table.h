/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Files of the guest as a script reads them: whole, and as tables with a heading.
 *
 * A file is read by a process, since the kernel does not read those of debugfs itself, and in small
 * pieces, so that one that is generated has to go on where it was. A table
 * is well formed when its first line is "# " and the names, and every other line has as many words.
 */
#ifndef IBT_TABLE_H
#define IBT_TABLE_H

#include "helpers.h"

#define IBT_DEBUGFS	"/sys/kernel/debug/ib_mr/devices/rxe0/"
#define IBT_TRACING	"/sys/kernel/tracing/"

struct ibt_table {
	char *text;
	size_t size;
	char *heading;
	unsigned int columns;
	unsigned int rows;
};

/* Read the file @path in pieces of @piece bytes. Its length, or an error. */
ssize_t ibt_slurp(const char *path, char *buf, size_t size, size_t piece);

/* With a place for 128 KiB. Reading is false when the table is not well formed. */
void ibt_table(struct kunit *test, struct ibt_table *t);
bool ibt_table_read(struct ibt_table *t, const char *path, size_t piece);
/* The same from what a process has copied, on a file system that the kernel does read. */
bool ibt_table_copy(struct ibt_table *t, const char *copy);

/* The line whose word in @column is @value; the one after @after, if there are several. */
const char *ibt_row(const struct ibt_table *t, const char *column, const char *value,
		    const char *after);
/* A word of a line, copied to @buf; "" when there is no such column. */
const char *ibt_cell(const struct ibt_table *t, const char *row, const char *column, char *buf,
		     size_t size);

/* Expect the word in @column to be as the format says. */
void ibt_expect_cell(struct kunit *test, const struct ibt_table *t, const char *row,
		     const char *column, const char *fmt, ...) __printf(5, 6);

#endif /* IBT_TABLE_H */

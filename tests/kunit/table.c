// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See table.h. Nothing here knows what is in the tables.
 */
#include <linux/ctype.h>
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "proc.h"
#include "table.h"

#define ROOM	SZ_128K
#define COPY	"/tmp/ibt-copy"

static ssize_t read_copy(const char *copy, char *buf, size_t size)
{
	struct file *f = ibt_open(copy, O_RDONLY, 0);
	ssize_t n = PTR_ERR_OR_ZERO(f);
	loff_t pos = 0;

	buf[0] = '\0';
	if (n)
		return n;
	n = kernel_read(f, buf, size - 1, &pos);
	filp_close(f, NULL);
	buf[max_t(ssize_t, n, 0)] = '\0';
	return n;
}

ssize_t ibt_slurp(const char *path, char *buf, size_t size, size_t piece)
{
	char command[256];

	buf[0] = '\0';
	snprintf(command, sizeof(command), "dd if=%s of=" COPY " bs=%zu 2> /dev/null", path, piece);
	return ibt_shell(command) ? -EIO : read_copy(COPY, buf, size);
}

static void table_free(struct kunit *test, void *arg)
{
	vfree(arg);
}

void ibt_table(struct kunit *test, struct ibt_table *t)
{
	memset(t, 0, sizeof(*t));
	t->size = ROOM;
	t->text = vzalloc(ROOM);
	KUNIT_ASSERT_NOT_NULL(test, t->text);
	ibt_defer(test, table_free, t->text);
}

/* The start of word @n of a line, or of the line's end. */
static const char *word(const char *line, unsigned int n)
{
	for (;;) {
		while (*line == ' ')
			line++;
		if (!n-- || !*line || *line == '\n')
			return line;
		while (*line && !isspace(*line))
			line++;
	}
}

static unsigned int words(const char *line)
{
	unsigned int n = 0;

	while (!isspace(*word(line, n)) && *word(line, n))
		n++;
	return n;
}

static const char *next_line(const char *line)
{
	line = strchrnul(line, '\n');
	return *line ? line + 1 : line;
}

static size_t word_len(const char *at)
{
	return strcspn(at, "\n ");
}

static bool parse(struct ibt_table *t, ssize_t n)
{
	const char *line;

	t->rows = 0;
	if (n < 2 || t->text[0] != '#' || t->text[1] != ' ' || t->text[n - 1] != '\n')
		return false;
	t->heading = t->text + 1;
	t->columns = words(t->heading);
	for (line = next_line(t->heading); *line; line = next_line(line), t->rows++)
		if (words(line) != t->columns)
			return false;
	return true;
}

bool ibt_table_read(struct ibt_table *t, const char *path, size_t piece)
{
	return parse(t, ibt_slurp(path, t->text, t->size, piece));
}

bool ibt_table_copy(struct ibt_table *t, const char *copy)
{
	return parse(t, read_copy(copy, t->text, t->size));
}

static const char *find(const struct ibt_table *t, const char *row, const char *column)
{
	unsigned int i;

	for (i = 0; i < t->columns; i++) {
		const char *name = word(t->heading, i);

		if (word_len(name) == strlen(column) && !strncmp(name, column, strlen(column)))
			return word(row, i);
	}
	return NULL;
}

const char *ibt_row(const struct ibt_table *t, const char *column, const char *value,
		    const char *after)
{
	const char *line = next_line(after ?: t->heading), *at;

	for (; *line; line = next_line(line)) {
		at = find(t, line, column);
		if (at && word_len(at) == strlen(value) && !strncmp(at, value, strlen(value)))
			return line;
	}
	return NULL;
}

const char *ibt_cell(const struct ibt_table *t, const char *row, const char *column, char *buf,
		     size_t size)
{
	const char *at = row ? find(t, row, column) : NULL;

	buf[0] = '\0';
	if (at)
		snprintf(buf, size, "%.*s", (int)word_len(at), at);
	return buf;
}

void ibt_expect_cell(struct kunit *test, const struct ibt_table *t, const char *row,
		     const char *column, const char *fmt, ...)
{
	char want[96], got[96];
	va_list args;

	va_start(args, fmt);
	vsnprintf(want, sizeof(want), fmt, args);
	va_end(args);
	KUNIT_EXPECT_STREQ_MSG(test, ibt_cell(t, row, column, got, sizeof(got)), want,
			       "column %s of \"%.*s\"", column, row ? (int)strcspn(row, "\n") : 0,
			       row ?: "");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/guest/facts.h"

#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

/* ---- small texts --------------------------------------------------------------------------------- */

void guest_text_add(struct guest_text *t, const char *s)
{
	while (*s && t->len < sizeof(t->s) - 1)
		t->s[t->len++] = *s++;
	t->s[t->len] = '\0';
}

void guest_text_number(struct guest_text *t, uint64_t n, unsigned base)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n > 0);
	guest_text_add(t, digits + at);
}

void guest_text_word(struct guest_text *t, const char *word)
{
	if (t->len > 0)
		guest_text_add(t, " ");
	guest_text_add(t, word);
}

uint64_t guest_number(const char **at, unsigned base)
{
	uint64_t n = 0;

	while (**at == ' ' || **at == '\t')
		(*at)++;
	for (;; (*at)++) {
		unsigned digit = **at >= '0' && **at <= '9'   ? (unsigned)(**at - '0')
				 : **at >= 'a' && **at <= 'f' ? (unsigned)(**at - 'a' + 10)
							      : 99;

		if (digit >= base)
			return n;
		n = n * base + digit;
	}
}

/* ---- a process' status --------------------------------------------------------------------------- */

/* The value after "Name:" at the beginning of a line; NULL: none. */
static const char *field(const char *status, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = status; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, name, len) == 0 && line[len] == ':')
			return line + len + 1;
	return NULL;
}

/* The id, if all four of a "Uid:" or "Gid:" line are the same; otherwise 0. */
static uint64_t one_id(const char *at)
{
	uint64_t first = guest_number(&at, 10);
	bool same = true;

	for (int i = 1; i < 4; i++)
		same = guest_number(&at, 10) == first && same;
	return same ? first : 0;
}

static void read_numbers(const char *status, struct guest_status *ret)
{
	static const char *const names[] = {
		[STATUS_UID] = "Uid",
		[STATUS_GID] = "Gid",
		[STATUS_NO_NEW_PRIVS] = "NoNewPrivs",
		[STATUS_SECCOMP] = "Seccomp",
		[STATUS_SECCOMP_FILTERS] = "Seccomp_filters",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *at = field(status, names[i]);

		ret->known[i] = at;
		if (at)
			ret->number[i] = i == STATUS_UID || i == STATUS_GID ? one_id(at) : guest_number(&at, 10);
	}
}

static void read_capabilities(const char *status, struct guest_status *ret)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };

	ret->known[STATUS_CAPABILITIES] = true;
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		const char *at = field(status, sets[i]);

		ret->known[STATUS_CAPABILITIES] &= at != NULL;
		ret->number[STATUS_CAPABILITIES] |= at ? guest_number(&at, 16) : 0;
	}
}

static void read_groups(const char *status, struct guest_status *ret)
{
	const char *at = field(status, "Groups");
	size_t len;

	if (!at)
		return;
	at += strspn(at, " \t");
	len = strcspn(at, "\n");
	while (len > 0 && at[len - 1] == ' ')
		len--;
	ret->has_groups = len < sizeof(ret->groups);
	if (ret->has_groups)
		memcpy(ret->groups, at, len);
}

bool guest_status_read(const char *path, struct guest_status *ret)
{
	char status[4096];

	*ret = (struct guest_status){ .has_groups = false };
	if (fd_get_at(AT_FDCWD, path, status, sizeof(status)) < 0)
		return false;
	read_numbers(status, ret);
	read_capabilities(status, ret);
	read_groups(status, ret);
	return true;
}

/* ---- its ids, network and limits ----------------------------------------------------------------- */

bool guest_id_row_next(const char **at, struct guest_id_row *ret)
{
	while (**at == '\n')
		(*at)++;
	if (!**at)
		return false;
	*ret = (struct guest_id_row){ .inside = guest_number(at, 10) };
	ret->outside = guest_number(at, 10);
	ret->count = guest_number(at, 10);
	if (**at == '\n' || !**at)
		return ret->count > 0;
	return false;
}

void guest_id_map_text(const char *map, struct guest_text *ret)
{
	struct guest_id_row row;

	*ret = (struct guest_text){ .len = 0 };
	while (guest_id_row_next(&map, &row)) {
		guest_text_word(ret, "");
		guest_text_number(ret, row.inside, 10);
		guest_text_add(ret, "->");
		guest_text_number(ret, row.outside, 10);
		guest_text_add(ret, "+");
		guest_text_number(ret, row.count, 10);
	}
}

/* Eight receive counters, then bytes and packets sent. */
static uint64_t packets_sent(const char *at)
{
	uint64_t n = 0;

	for (int i = 0; i < 10; i++)
		n = guest_number(&at, 10);
	return n;
}

bool guest_network_read(const char *path, struct guest_network *ret)
{
	char text[4096];

	*ret = (struct guest_network){ .packets_out = 0 };
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	/* Two header lines, then "name: numbers". */
	for (char *line = text, *next; line; line = next) {
		char *colon;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		colon = strchr(line, ':');
		line += strspn(line, " ");
		if (!colon || strchr(line, '|'))
			continue;
		*colon = '\0';
		guest_text_word(&ret->interfaces, line);
		if (!str_eq(line, "lo"))
			ret->packets_out += packets_sent(colon + 1);
	}
	return true;
}

const char *guest_core_dumps(uint64_t hard_limit)
{
	char pattern[256] = "|";

	/* A limit of 1 is too small for a core file and stops a piped core_pattern; 0 does only the former. */
	if (hard_limit == 0)
		(void)fd_get_at(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof(pattern));
	return hard_limit == 1 || (hard_limit == 0 && pattern[0] != '|') ? "none" : "possible";
}

/*
 * The kernel shows a process's Landlock domain nowhere, so it is tested: an ioctl on a device opened inside the domain
 * must be denied (from ABI 5; before that there is no such right).
 */
int guest_landlock_in_force(int abi, int probe)
{
	return abi < 5 || probe == EACCES ? abi : 0;
}

const char *guest_landlock_source(int abi)
{
	return abi < 5 ? "landlock_restrict_self(2)" : "landlock_restrict_self(2) and a denied ioctl";
}

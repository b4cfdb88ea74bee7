/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what was seen of a failed installation to one sentence with a remedy (troubles.def).  What the proxy saw of hosts
 * is known; what the installer says is text that packages can write as well, so no more of it comes into the sentence than
 * a short printable name.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "packages/packages.h"

#define TOLD_MAX 120 /* bytes of a name that an installer wrote */

static const struct {
	enum network_end end;
	const char *why, *remedy;
} hosts[] = {
#define HOST(end, why, remedy) { end, why, remedy },
#define SAYS(ecosystem, words, ends, why, remedy)
#include "packages/troubles.def"
};

static const struct {
	const char *ecosystem, *words, *ends, *why, *remedy;
} says[] = {
#define HOST(end, why, remedy)
#define SAYS(ecosystem, words, ends, why, remedy) { ecosystem, words, ends, why, remedy },
#include "packages/troubles.def"
};

/* A host that was reached at another time is not what it failed for. */
static bool was_reached(const struct network *net, const struct network_row *r)
{
	for (size_t i = 0; i < net->n; i++)
		if (net->row[i].end == NETWORK_REACHED && net->row[i].port == r->port &&
		    net->row[i].received_bytes > 0 && str_eq(net->row[i].host, r->host))
			return true;
	return false;
}

/* The rows of the tables hold their formats: each has one %s, or none. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static bool tell_host(const struct ecosystem *e, const struct network_row *r, char *dst, size_t size)
{
	char place[300], why[400], remedy[200];

	if (r->end == NETWORK_UNRESOLVED)
		(void)snprintf(place, sizeof(place), "%.200s", r->host);
	else
		(void)snprintf(place, sizeof(place), "%.200s:%u", r->host, r->port);
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		if (hosts[i].end != r->end)
			continue;
		(void)snprintf(why, sizeof(why), hosts[i].why, place);
		(void)snprintf(remedy, sizeof(remedy), hosts[i].remedy, e->setting);
		(void)snprintf(dst, size, "%s; %s", why, remedy);
		return true;
	}
	return false;
}

static void tell_words(size_t row, const char *name, size_t len, char *dst, size_t size)
{
	char told[TOLD_MAX + 1] = "", why[400];
	size_t n = 0;

	while (n < len && n < TOLD_MAX && *says[row].ends && name[n] >= ' ' && name[n] <= '~' &&
	       !strchr(says[row].ends, name[n])) {
		told[n] = name[n];
		n++;
	}
	n -= n > 0 && told[n - 1] == '.'; /* of its sentence */
	told[n] = '\0';
	(void)snprintf(why, sizeof(why), says[row].why, told);
	(void)snprintf(dst, size, "%s; %s", why, says[row].remedy);
}
#pragma GCC diagnostic pop

bool packages_trouble_of_hosts(const struct ecosystem *e, const struct network *net, char *dst, size_t size)
{
	for (size_t i = 0; i < net->n; i++)
		if (!was_reached(net, &net->row[i]) && tell_host(e, &net->row[i], dst, size))
			return true;
	return false;
}

bool packages_trouble_of_words(const struct ecosystem *e, const char *text, size_t len, char *dst, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(says); i++) {
		size_t words = strlen(says[i].words);
		const char *at =
			str_eq(says[i].ecosystem, e->name) && len > 0 ? memmem(text, len, says[i].words, words) : NULL;

		if (!at)
			continue;
		tell_words(i, at + words, len - words - (size_t)(at - text), dst, size);
		return true;
	}
	return false;
}

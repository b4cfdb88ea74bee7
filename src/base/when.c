/* SPDX-License-Identifier: Apache-2.0 */
#include "base/when.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"

/* Exactly n digits; *s moves behind them. */
static bool take_digits(const char **s, int n, int *ret)
{
	int v = 0;

	for (int i = 0; i < n; i++, (*s)++) {
		if (!isdigit((unsigned char)**s))
			return false;
		v = 10 * v + (**s - '0');
	}
	*ret = v;
	return true;
}

static bool take(const char **s, char c)
{
	if (**s != c)
		return false;
	(*s)++;
	return true;
}

/* "7d" and the like; false if it is not one. */
static bool parse_age(const char *s, uint64_t now_ns, uint64_t *ret_ns)
{
	static const struct {
		char unit;
		uint64_t secs;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 'w', 604800 } };
	char digits[24];
	size_t len = strlen(s);
	uint64_t n, ns;

	if (len < 2 || len > sizeof(digits))
		return false;
	memcpy(digits, s, len - 1);
	digits[len - 1] = '\0';
	if (!str_to_u64(digits, &n))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (units[i].unit == s[len - 1]) {
			if (__builtin_mul_overflow(n, units[i].secs * NS_PER_SEC, &ns))
				ns = UINT64_MAX; /* longer ago than time itself */
			*ret_ns = ns < now_ns ? now_ns - ns : 0;
			return true;
		}
	return false;
}

/* The midnight that began today, days ago. */
static bool midnight(uint64_t now_ns, int days, uint64_t *ret_ns)
{
	time_t now = (time_t)(now_ns / NS_PER_SEC);
	struct tm tm;

	if (!localtime_r(&now, &tm))
		return false;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_mday -= days;
	tm.tm_isdst = -1;
	now = mktime(&tm);
	if (now < 0)
		return false;
	*ret_ns = (uint64_t)now * NS_PER_SEC;
	return true;
}

/* "Z" or "+hh:mm"; *ret_east in seconds. */
static bool take_zone(const char **s, int *ret_east)
{
	bool west = **s == '-';
	int h, m;

	*ret_east = 0;
	if (take(s, 'Z') || take(s, 'z'))
		return true;
	if (!take(s, '+') && !take(s, '-'))
		return false;
	if (!take_digits(s, 2, &h))
		return false;
	(void)take(s, ':');
	if (!take_digits(s, 2, &m) || h > 23 || m > 59)
		return false;
	*ret_east = (west ? -1 : 1) * (h * 3600 + m * 60);
	return true;
}

/* A fraction of a second, to the nanosecond. */
static bool take_fraction(const char **s, uint64_t *ret_ns)
{
	uint64_t unit = NS_PER_SEC / 10;

	if (!isdigit((unsigned char)**s))
		return false;
	for (*ret_ns = 0; isdigit((unsigned char)**s); (*s)++, unit /= 10)
		*ret_ns += unit * (uint64_t)(**s - '0');
	return true;
}

static bool take_date(const char **s, struct tm *tm)
{
	if (!take_digits(s, 4, &tm->tm_year) || !take(s, '-') || !take_digits(s, 2, &tm->tm_mon) || !take(s, '-') ||
	    !take_digits(s, 2, &tm->tm_mday))
		return false;
	tm->tm_year -= 1900;
	tm->tm_mon -= 1;
	return tm->tm_year >= 70 && tm->tm_mon >= 0 && tm->tm_mon < 12 && tm->tm_mday >= 1 && tm->tm_mday <= 31;
}

static bool take_time(const char **s, struct tm *tm, uint64_t *ret_ns)
{
	if (!take_digits(s, 2, &tm->tm_hour) || !take(s, ':') || !take_digits(s, 2, &tm->tm_min))
		return false;
	if (take(s, ':') && (!take_digits(s, 2, &tm->tm_sec) || (take(s, '.') && !take_fraction(s, ret_ns))))
		return false;
	return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 60;
}

static bool parse_date(const char *s, uint64_t *ret_ns)
{
	struct tm tm = { .tm_isdst = -1 }, asked;
	uint64_t ns = 0;
	bool zoned = false;
	int east = 0;
	time_t t;

	if (!take_date(&s, &tm))
		return false;
	if (*s) {
		if ((!take(&s, 'T') && !take(&s, ' ')) || !take_time(&s, &tm, &ns))
			return false;
		zoned = *s != '\0';
		if (zoned && !take_zone(&s, &east))
			return false;
	}
	asked = tm;
	t = zoned ? timegm(&tm) - east : mktime(&tm);
	/* A day that the month does not have was normalised to another one. */
	if (*s || t < 0 || tm.tm_mday != asked.tm_mday)
		return false;
	return !__builtin_mul_overflow((uint64_t)t, NS_PER_SEC, ret_ns) && !__builtin_add_overflow(*ret_ns, ns, ret_ns);
}

bool when_parse(const char *s, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t secs;

	if (str_eq(s, "now")) {
		*ret_ns = now_ns;
		return true;
	}
	if (str_eq(s, "today") || str_eq(s, "yesterday"))
		return midnight(now_ns, str_eq(s, "yesterday"), ret_ns);
	if (*s == '@')
		return str_to_u64(s + 1, &secs) && !__builtin_mul_overflow(secs, NS_PER_SEC, ret_ns);
	return parse_age(s, now_ns, ret_ns) || parse_date(s, ret_ns);
}

#define DAYS_PER_400_YEARS 146097
#define DAYS_TO_1970       719468 /* from 1 March of the year 0 */

/* The calendar repeats every 400 years; years that begin in March have their odd day last. */
static void date_of(unsigned days_since_1970, unsigned *ret_year, unsigned *ret_month, unsigned *ret_day)
{
	unsigned days = days_since_1970 + DAYS_TO_1970;
	unsigned era = days / DAYS_PER_400_YEARS, left = days % DAYS_PER_400_YEARS;
	/* Which of the 400 years, had each 365 days: the odd days of 4, 100 and 400 years are taken out first. */
	unsigned year = (left - left / 1460 + left / 36524 - left / 146096) / 365;
	unsigned of_year = left - (365 * year + year / 4 - year / 100);
	unsigned month = (5 * of_year + 2) / 153; /* March is 0; five months always have 153 days */

	*ret_day = of_year - (153 * month + 2) / 5 + 1;
	*ret_month = month < 10 ? month + 3 : month - 9;
	*ret_year = 400 * era + year + (*ret_month <= 2);
}

/* Not gmtime_r(): it reads the local time zone's file first, which every run would pay for. */
const char *when_utc(char *dst, size_t size, uint64_t ns)
{
	uint64_t secs = ns / NS_PER_SEC; /* 64 bits of ns end in the year 2554 */
	unsigned year, month, day, clock = (unsigned)(secs % 86400);

	date_of((unsigned)(secs / 86400), &year, &month, &day);
	(void)snprintf(dst, size, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", year, month, day, clock / 3600,
		       clock / 60 % 60, clock % 60, (unsigned)(ns / NS_PER_MS % 1000));
	return dst;
}

const char *when_local(char *dst, size_t size, uint64_t ns)
{
	time_t secs = (time_t)(ns / NS_PER_SEC);
	struct tm tm;

	if (!localtime_r(&secs, &tm) || strftime(dst, size, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		(void)str_copy(dst, size, "");
	return dst;
}

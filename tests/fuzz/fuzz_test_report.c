/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of test runs: the files that tested code can reach and that we read afterwards.  The first byte chooses: Go's
 * stream, a sealed report as it comes, or one whose lines are sealed here, so that what is behind the seals is reached.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sys/crypto.h"
#include "testing/testing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t key[SHA256_LEN] = { 1, 2, 3 };

static void seal(struct buf *to, const char *text, size_t len)
{
	uint8_t made[SHA256_LEN];
	char hex[SHA256_HEX + 1];
	struct hmac256 m;
	const char *end;

	hmac256_key(&m, key);
	for (; len > 0 && (end = memchr(text, '\n', len)); len -= (size_t)(end - text) + 1, text = end + 1) {
		hmac256(&m, text, (size_t)(end - text), made);
		buf_add(to, text, (size_t)(end - text));
		buf_addf(to, " %s\n", hex_put(hex, made, sizeof(made)));
	}
	buf_add(to, text, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct test_run t = { .framework = "pytest", .language = "python" };
	AUTO_BUF sealed = BUF_INIT(1 << 24);
	struct test_report r;
	char why[TEST_WHY_MAX];
	uint64_t counted;

	if (size == 0)
		return 0;
	(void)hex_put(t.key, key, sizeof(key));
	t.on_stdout = data[0] == 'g';
	if (data[0] == 's')
		seal(&sealed, (const char *)data + 1, size - 1);
	else
		buf_add(&sealed, data + 1, size - 1);
	testing_read(&t, buf_str(&sealed), sealed.len, &r, why);
	if (r.complete != (why[0] == '\0') || r.n + r.dropped > r.failed || strlen(why) >= TEST_WHY_MAX)
		abort();
	for (size_t i = 0; i < r.n; i++)
		if (!r.row[i].name || strlen(r.row[i].name) > 1024 ||
		    (r.row[i].message && strlen(r.row[i].message) > 4096))
			abort();
	counted = r.failed;
	if (testing_judge(&t, &r, 0, why) == TESTS_OK && (counted > 0 || !r.complete))
		abort();
	test_report_release(&r);
	return 0;
}

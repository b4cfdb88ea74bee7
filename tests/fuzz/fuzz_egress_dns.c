/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups of a program: whatever comes, the answer fits, repeats the question, and a name that is one survives its text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(const uint8_t *data, const struct dns_query *q, enum dns_code code, uint32_t address)
{
	uint8_t answer[DNS_ANSWER_MAX];
	size_t n = dns_answer(data, q, code, address, answer);
	struct dns_query again;

	if (n < 12 || n > sizeof(answer) || memcmp(answer, data, 2) != 0 || (answer[3] & 15) != (int)code)
		abort();
	if (q->end > 0 && (n < q->end || memcmp(answer + 12, data + 12, q->end - 12) != 0))
		abort();
	if (dns_parse(answer, n, &again))
		abort(); /* an answer that could be taken for a question */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_query q;
	struct host host;

	if (!dns_parse(data, size, &q))
		return 0;
	if (q.end > size || (q.code == DNS_OK) > (q.end > 0))
		abort();
	if (q.is_host &&
	    (!host_parse(q.host.text, strlen(q.host.text), false, &host) || strcmp(host.text, q.host.text) != 0))
		abort();
	check_answer(data, &q, q.code, 0x7f420001u);
	check_answer(data, &q, DNS_NO_SUCH_NAME, 0);
	return 0;
}

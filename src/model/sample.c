/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sample.h"

void sample_series_add(struct sample_series *s, const struct sample *row)
{
	if (s->stride == 0)
		s->stride = 1;
	if (s->seen++ % s->stride != 0)
		return;
	if (s->n == SAMPLES_MAX) {
		for (size_t i = 0; i < SAMPLES_MAX / 2; i++)
			s->row[i] = s->row[2 * i];
		s->n = SAMPLES_MAX / 2;
		s->stride *= 2;
	}
	s->row[s->n++] = *row;
}

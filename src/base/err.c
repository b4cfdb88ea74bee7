/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef err_set /* as the analyser knows it */
#undef err_nomem

int err_set(struct brig_error *err, enum brig_code code, int sys, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	if (!err)
		return -(int)code;
	err->code = (int)code;
	err->sys = sys;
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	len = strlen(err->msg);
	if (sys)
		(void)snprintf(err->msg + len, sizeof(err->msg) - len, ": %s", strerrordesc_np(sys) ?: "unknown error");
	return -(int)code;
}

int err_wrap(struct brig_error *err, const char *fmt, ...)
{
	char was[sizeof(err->msg)];
	va_list ap;
	size_t len;

	if (!err)
		return -BRIG_E_INTERNAL;
	memcpy(was, err->msg, sizeof(was));
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	len = strlen(err->msg);
	(void)snprintf(err->msg + len, sizeof(err->msg) - len, ": %s", was);
	return -err->code;
}

int err_nomem(struct brig_error *err)
{
	return err_set(err, BRIG_E_NOMEM, ENOMEM, "no memory left");
}

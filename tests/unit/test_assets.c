/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the console in the program: that the page is there, and that all it names is there too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/assets.h"

static void the_page_is_there(void **state)
{
	const struct asset *page = asset_find("/");

	(void)state;
	assert_non_null(page);
	assert_string_equal(page->type, "text/html; charset=utf-8");
	assert_false(page->gzip); /* small, and readable for whoever asks with curl */
	assert_true(page->len > 100);
	assert_memory_equal(page->data, "<!doctype html>", strlen("<!doctype html>"));
}

/* Copies the quoted value behind at; NULL if there is none. */
static const char *quoted(const char *at, char *dst, size_t size)
{
	const char *end = strchr(at, '"');
	size_t len = end ? (size_t)(end - at) : 0;

	if (!end || len >= size)
		return NULL;
	memcpy(dst, at, len);
	dst[len] = '\0';
	return dst;
}

static void what_the_page_names_is_there(void **state)
{
	const struct asset *page = asset_find("/");
	char *text = malloc(page->len + 1), path[256];
	size_t found = 0;

	(void)state;
	assert_non_null(text);
	memcpy(text, page->data, page->len);
	text[page->len] = '\0';
	for (const char *at = text; (at = strstr(at, "=\"/assets/")); at += 2) {
		assert_non_null(quoted(at + 2, path, sizeof(path)));
		assert_non_null(asset_find(path));
		found++;
	}
	/* Script, style sheet and licences; the page of a build without the console names nothing. */
	assert_int_equal(found, asset_count - 1);
	free(text);
}

static void each_file_is_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < asset_count; i++) {
		const struct asset *a = &asset_table[i];

		assert_ptr_equal(asset_find(a->path), a);
		assert_int_equal(a->path[0], '/');
		assert_int_equal(a->etag[0], '"');
		assert_int_equal(a->etag[strlen(a->etag) - 1], '"');
		assert_true(a->len > 0);
		if (a->gzip)
			assert_memory_equal(a->data, "\x1f\x8b", 2);
	}
}

static void nothing_else_is_there(void **state)
{
	static const char *const paths[] = { "",         "index.html", "/index.html",    "/assets",
					     "/assets/", "/assets/..", "/assets/app.js", "//" };

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		assert_null(asset_find(paths[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_page_is_there),
		cmocka_unit_test(what_the_page_names_is_there),
		cmocka_unit_test(each_file_is_whole),
		cmocka_unit_test(nothing_else_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

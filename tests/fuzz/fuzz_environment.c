/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_environment - documents of environments that somebody has been at.
 *
 * What must hold: nothing crashes; what is refused leaves nothing and says why; what is read has a name that is part of a
 * path, modules that are words of a program, a key where there are packages, and reads the same when it is written again.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "packages/environment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "broken promise: %s\n", what);
	abort();
}

static void check_sound(const struct environment *e)
{
	must(environment_is_name(e->name) && e->eco && *e->brig && *e->backend, "a document that was read is whole");
	must((e->n_packages > 0) == (strlen(e->key) == ENVIRONMENT_HASH_HEX),
	     "packages have a key, and nothing else has");
	must(strlen(e->key) == strlen(e->content) && strlen(e->key) == strlen(e->made_for), "hashes come together");
	must(e->n_packages <= PACKAGES_WORDS_MAX && e->n_warm <= WARM_MODULES_MAX, "lists have an end");
	for (size_t i = 0; i < e->n_warm; i++)
		must(warm_is_module(e->warm[i]), "modules are words");
	for (size_t i = 0; i < e->n_packages; i++)
		must(packages_check_word(e->packages[i], NULL) == 0, "packages are words");
}

static void check_again(const struct environment *e)
{
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *doc = environment_json(e), *same;
	char *text = json_dumps(doc, JSON_INDENT(2));
	struct environment twice;

	must(environment_read(text, strlen(text), &twice, &err) == 0, "what is written can be read");
	same = environment_json(&twice);
	must(json_equal(doc, same), "and is the same");
	json_decref(doc);
	json_decref(same);
	free(text);
	environment_release(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct environment e;

	if (environment_read((const char *)data, size, &e, &err) < 0) {
		must(*err.msg && !e.eco && !e.packages && !e.warm, "what is refused leaves nothing");
		return 0;
	}
	check_sound(&e);
	check_again(&e);
	environment_release(&e);
	return 0;
}

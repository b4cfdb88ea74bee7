/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of a project hold secrets: by name (secrets.def), and where that does not tell, by what is in them. */
#ifndef WORKSPACE_SECRETS_H
#define WORKSPACE_SECRETS_H

#include "base/util.h"

enum secret_when { SECRET_NEVER, SECRET_ALWAYS, SECRET_KEY, SECRET_TOKEN, SECRET_GIT, SECRET_CLUSTER, SECRET_ACCOUNT };

/* What the table says of a path; SECRET_NEVER also for what is not in it. */
enum secret_when secret_by_name(const char *path, bool is_dir);
/* For a folder of this name: calls each with the rest of every path that the table has below such a one, until it is not 0. */
typedef int (*secret_tail_fn)(void *arg, const char *rest);
int secret_tails(const char *name, secret_tail_fn each, void *arg);
/* Looks into the file dir/path, which the table makes depend on its content. */
bool secret_in_file(int dir, const char *path, enum secret_when when);
/* The part of that which sees text only. */
bool secret_in_text(const char *text, size_t len, enum secret_when when);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_read.c - reads a result from its document (docs/RESULT.md), made by another process
 *
 * The inverse of model/result.c: tables list the members of an object and where to store them. The document is not
 * trusted: a missing, unknown, mistyped or overlong member is an error that names it, and nothing is kept. Writing the
 * result again gives the same document.
 *
 * Two members are not part of the proper document and optional: "receipt", which a service adds on request, and
 * "unlisted", what the library reports about a result outside of any document (brig_result_unlisted_json).
 */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "api/handle.h"
#include "api/members.h"
#include "base/base64.h"
#include "base/str.h"

#define READ_ROWS_MAX 1000000 /* per list; some lists have lower limits in the result */

/* ---- bytes -------------------------------------------------------------------------------------------- */

/* Reads what json_bytes() wrote, with its encoding: on the heap, NUL-terminated (not counted). NULL: *err. */
static char *read_bytes(const json_t *object, const char *name, const char *encoding_name, size_t *ret_len,
			struct brig_error *err)
{
	const json_t *v = json_object_get(object, name);
	const char *encoding = json_string_value(json_object_get(object, encoding_name));
	size_t len = json_string_length(v);
	ssize_t decoded;
	char *bytes;

	if (!json_is_string(v) || !encoding || (!str_eq(encoding, "utf-8") && !str_eq(encoding, "base64"))) {
		(void)member_complain(err, name, "is no text, or has no encoding");
		return NULL;
	}
	bytes = malloc(len + 1);
	if (!bytes) {
		(void)err_nomem(err);
		return NULL;
	}
	memcpy(bytes, json_string_value(v), len);
	decoded = str_eq(encoding, "base64") ? base64_get(bytes, json_string_value(v), len) : (ssize_t)len;
	if (decoded < 0) {
		free(bytes);
		(void)member_complain(err, name, "is no base64");
		return NULL;
	}
	bytes[decoded] = '\0';
	*ret_len = (size_t)decoded;
	return bytes;
}

/* A path: bytes without a NUL. */
static char *read_path(const json_t *object, struct brig_error *err)
{
	size_t len = 0;
	char *path = read_bytes(object, "path", "path_encoding", &len, err);

	if (path && strlen(path) != len) {
		free(path);
		(void)member_complain(err, "path", "has a NUL");
		return NULL;
	}
	return path;
}

static int read_stream(const json_t *doc, const char *name, const char *encoding, struct buf *ret,
		       struct brig_error *err)
{
	size_t len = 0;
	AUTO_FREE char *bytes = read_bytes(doc, name, encoding, &len, err);

	if (!bytes)
		return -err->code;
	*ret = (struct buf)BUF_INIT(len);
	buf_add(ret, bytes, len);
	return ret->no_memory ? err_nomem(err) : 0;
}

/* ---- lists --------------------------------------------------------------------------------------------- */

typedef int (*read_row_fn)(const json_t *row, size_t i, struct result *r, struct brig_error *err);

static int read_rows(const json_t *doc, const char *name, size_t max, read_row_fn fn, struct result *r,
		     struct brig_error *err)
{
	const json_t *rows = json_object_get(doc, name), *row;
	size_t i;

	if (!json_is_array(rows) || json_array_size(rows) > max)
		return member_complain(err, name, "is no list, or too long a one");
	json_array_foreach(rows, i, row)
	{
		int rc = fn(row, i, r, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The document has no spans; a place of its own keeps each finding distinct. */
static int read_finding(const json_t *row, size_t i, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_TEXT(struct finding, rule),
		MEMBER_WORD("severity", AS_WORD, struct finding, severity, severity_name),
		MEMBER_AS(AS_U32, struct finding, line),
		MEMBER_AS(AS_U32, struct finding, column),
		MEMBER_AS(AS_U32, struct finding, end_line),
		MEMBER_AS(AS_U32, struct finding, end_column),
		MEMBER_TEXT(struct finding, name),
		MEMBER_TEXT(struct finding, message),
		MEMBER_TEXT(struct finding, remedy),
	};
	struct finding f = { .span = { (uint32_t)i, (uint32_t)i + 1 } };
	int rc = members_read(row, "findings", members, ARRAY_LEN(members), &f, err);

	if (rc == 0 && !findings_add(&r->findings, &f))
		rc = err_nomem(err);
	return rc;
}

/* The names of the checks that this library has. */
static const char *const check_names[] = {
#define CHECK(name, protection, fact, relation, ...)               #name,
#define CHECK_IF(condition, name, protection, fact, relation, ...) #name,
#define CHECK_IF_KNOWN(name, protection, fact, relation, ...)      #name,
#include "verify/checks.def"
};

static int read_evidence(const json_t *row, size_t i, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_OTHER("check"),
		MEMBER_TEXT(struct evidence_row, declared),
		MEMBER_TEXT(struct evidence_row, enforced),
		MEMBER_AS(AS_FLAG, struct evidence_row, kept),
		MEMBER_TEXT(struct evidence_row, source),
	};
	static const struct member check = { "check", AS_WORD, 0, 0, check_names, ARRAY_LEN(check_names) };
	struct evidence_row *e = &r->evidence.row[i];
	int which = 0, rc = members_read(row, "evidence", members, ARRAY_LEN(members), e, err);

	if (rc == 0)
		rc = member_read(json_object_get(row, "check"), &check, &which, err);
	if (rc < 0)
		return rc;
	e->check = check_names[which];
	r->evidence.n++;
	r->evidence.kept += e->kept;
	return 0;
}

static int read_sample(const json_t *row, size_t i, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_COUNT(struct sample, at_ms),        MEMBER_COUNT(struct sample, cpu_ms),
		MEMBER_COUNT(struct sample, memory_bytes), MEMBER_COUNT(struct sample, pids),
		MEMBER_COUNT(struct sample, output_bytes),
	};

	r->samples.n = i + 1;
	return members_read(row, "samples", members, ARRAY_LEN(members), &r->samples.row[i], err);
}

static int read_warning(const json_t *row, size_t i, struct result *r, struct brig_error *err)
{
	static const struct member m = { "warnings", AS_TEXT, 0, RESULT_TEXT_MAX, NULL, 0 };

	r->n_warnings = i + 1;
	return member_read(row, &m, r->warning[i], err);
}

/* Only the name of a protection is read: the rest comes from this library. */
static int read_degraded(const json_t *row, size_t i UNUSED, struct result *r, struct brig_error *err)
{
	static const struct member members[] = { MEMBER_OTHER("protection"), MEMBER_OTHER("lost"),
						 MEMBER_OTHER("fix") };
	const char *name = json_string_value(json_object_get(row, "protection"));
	enum protection p = name ? protection_from_name(name) : PROT_COUNT;
	int rc = members_read(row, "degraded", members, ARRAY_LEN(members), NULL, err);

	if (rc == 0 && p == PROT_COUNT)
		rc = member_complain(err, "protection", "is none that is known");
	if (rc == 0)
		r->degraded |= PROT_BIT(p);
	return rc;
}

static int read_denied(const json_t *row, size_t i UNUSED, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_WORD("kind", AS_WORD, struct denied_row, kind, denied_kind_name),
		MEMBER_TEXT(struct denied_row, what),
		MEMBER_COUNT(struct denied_row, count),
		MEMBER_TEXT(struct denied_row, why),
		MEMBER_TEXT_OR_NULL(struct denied_row, fix),
	};
	struct denied_row d = { .count = 0 };
	int rc = members_read(row, "denied", members, ARRAY_LEN(members), &d, err);

	if (rc == 0 && !denied_add(&r->denied, &d))
		rc = err_nomem(err);
	return rc;
}

static int read_network(const json_t *row, size_t i UNUSED, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_TEXT(struct network_row, host),
		MEMBER_AS(AS_PORT, struct network_row, port),
		MEMBER_AS(AS_FLAG, struct network_row, allowed),
		MEMBER_TEXT_OR_NULL(struct network_row, reason),
		MEMBER_COUNT(struct network_row, count),
		MEMBER_COUNT(struct network_row, sent_bytes),
		MEMBER_COUNT(struct network_row, received_bytes),
	};
	struct network_row n = { .port = 0 };
	int rc = members_read(row, "network", members, ARRAY_LEN(members), &n, err);

	if (rc == 0 && !network_add(&r->network, &n))
		rc = err_nomem(err);
	return rc;
}

static int read_sha256(const json_t *v, uint8_t ret[SHA256_LEN], struct brig_error *err)
{
	if (!json_is_string(v) || json_string_length(v) != SHA256_HEX ||
	    !hex_get(json_string_value(v), ret, SHA256_LEN))
		return member_complain(err, "sha256", "is no hash");
	return 0;
}

static int read_change(const json_t *row, size_t i UNUSED, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_OTHER("path"),
		MEMBER_OTHER("path_encoding"),
		MEMBER_WORD("change", AS_WORD, struct change, kind, change_kind_name),
		MEMBER_WORD("type", AS_WORD, struct change, type, change_type_name),
		MEMBER_COUNT(struct change, size),
		MEMBER_AS(AS_U32, struct change, mode),
		MEMBER_OTHER("sha256"),
	};
	AUTO_FREE char *path = read_path(row, err);
	const json_t *hash = json_object_get(row, "sha256");
	struct change c = { .path = path, .hashed = !json_is_null(hash) };
	int rc = path ? members_read(row, "changes", members, ARRAY_LEN(members), &c, err) : -err->code;

	if (rc == 0 && c.mode > 07777)
		rc = member_complain(err, "mode", "is no mode");
	if (rc == 0 && c.hashed)
		rc = read_sha256(hash, c.sha256, err);
	if (rc == 0 && !changes_add(&r->changes, &c))
		rc = err_nomem(err);
	return rc;
}

static int read_artifact(const json_t *row, size_t i UNUSED, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_OTHER("path"),       MEMBER_OTHER("path_encoding"), MEMBER_COUNT(struct artifact, size),
		MEMBER_OTHER("sha256"),     MEMBER_MAYBE("content"),       MEMBER_MAYBE("content_encoding"),
		MEMBER_MAYBE("executable"),
	};
	AUTO_FREE char *path = read_path(row, err);
	AUTO_FREE char *content = NULL;
	struct artifact a = { .path = path };
	int rc = path ? members_read(row, "artifacts", members, ARRAY_LEN(members), &a, err) : -err->code;
	size_t len = 0;

	if (rc == 0)
		rc = read_sha256(json_object_get(row, "sha256"), a.sha256, err);
	a.may_execute = json_is_true(json_object_get(row, "executable"));
	if (rc == 0 && json_object_get(row, "executable") && !a.may_execute)
		rc = member_complain(err, "executable", "is not true");
	if (rc == 0 && json_object_get(row, "content")) {
		content = read_bytes(row, "content", "content_encoding", &len, err);
		if (!content)
			return -err->code;
		if (len != a.size)
			return member_complain(err, "content", "is not as long as its file");
	}
	a.content = MOVE_PTR(content);
	if (rc == 0 && !artifacts_add(&r->artifacts, &a))
		rc = err_nomem(err);
	return rc;
}

static int read_lost(const json_t *v, struct result *r, struct brig_error *err)
{
	if (!v)
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return member_complain(err, "artifacts_lost", "is no count");
	r->artifacts.lost = (uint64_t)json_integer_value(v);
	return 0;
}

static int read_left(const json_t *row, size_t i UNUSED, struct result *r, struct brig_error *err)
{
	static const struct member members[] = { MEMBER_OTHER("path"), MEMBER_OTHER("path_encoding"),
						 MEMBER_COUNT(struct artifact, size) };
	AUTO_FREE char *path = read_path(row, err);
	struct artifact a = { .path = path };
	int rc = path ? members_read(row, "left", members, ARRAY_LEN(members), &a, err) : -err->code;

	if (rc == 0 && !artifacts_add(&r->left, &a))
		rc = err_nomem(err);
	return rc;
}

/* A copy of a text without a NUL; NULL: *err. */
static char *copy_text(const json_t *object, const char *name, struct brig_error *err)
{
	const json_t *v = json_object_get(object, name);
	char *copy;

	if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v)) {
		(void)member_complain(err, name, "is no text");
		return NULL;
	}
	copy = strdup(json_string_value(v));
	if (!copy)
		(void)err_nomem(err);
	return copy;
}

static int read_failure(const json_t *row, size_t i UNUSED, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_OTHER("name"),
		MEMBER_OTHER("message"),
		MEMBER_OTHER("file"),
		MEMBER_AS(AS_U32_OR_NULL, struct test_failure, line),
	};
	struct test_failure f = { .line = 0 };
	AUTO_FREE char *name = NULL;
	AUTO_FREE char *message = NULL;
	AUTO_FREE char *file = NULL;
	bool has_file;
	int rc = members_read(row, "failures", members, ARRAY_LEN(members), &f, err);

	if (rc < 0)
		return rc;
	has_file = !json_is_null(json_object_get(row, "file"));
	if (!(name = copy_text(row, "name", err)) || !(message = copy_text(row, "message", err)) ||
	    (has_file && !(file = copy_text(row, "file", err))))
		return -err->code;
	f.name = MOVE_PTR(name);
	f.message = MOVE_PTR(message);
	f.file = MOVE_PTR(file);
	return test_report_add(&r->tests, &f) ? 0 : err_nomem(err);
}

/* ---- objects that may be null ------------------------------------------------------------------------------ */

static int read_workspace(const json_t *v, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_WORD("mode", AS_WORD, struct changes, mode, workspace_mode_name),
		MEMBER_WORD("state", AS_WORD, struct changes, state, changes_state_name),
		MEMBER_AS(AS_FLAG, struct changes, git),
		MEMBER_COUNT(struct changes, added),
		MEMBER_COUNT(struct changes, modified),
		MEMBER_COUNT(struct changes, deleted),
		MEMBER_COUNT(struct changes, bytes),
		MEMBER_COUNT(struct changes, dropped),
	};

	r->changes.known = !json_is_null(v);
	return r->changes.known ? members_read(v, "workspace", members, ARRAY_LEN(members), &r->changes, err) : 0;
}

static const char *const report_words[] = { "own word", "sealed" };
static const char *const held_words[] = { "compared", "held" };

static int read_tests(const json_t *v, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_TEXT(struct test_report, framework),
		MEMBER_AS(AS_FLAG, struct test_report, complete),
		MEMBER_WORD("report", AS_WORD_FLAG, struct test_report, sealed, report_words),
		MEMBER_WORD("test_files", AS_WORD_FLAG, struct test_report, held, held_words),
		MEMBER_COUNT(struct test_report, passed),
		MEMBER_COUNT(struct test_report, failed),
		MEMBER_COUNT(struct test_report, skipped),
		MEMBER_OTHER("failures"),
		MEMBER_COUNT(struct test_report, dropped),
	};
	int rc;

	r->tests.known = !json_is_null(v);
	if (!r->tests.known)
		return 0;
	rc = members_read(v, "tests", members, ARRAY_LEN(members), &r->tests, err);
	return rc < 0 ? rc : read_rows(v, "failures", TEST_FAILURES_MAX, read_failure, r, err);
}

static int read_packages(const json_t *v, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_WORD("state", AS_WORD, struct result_packages, state, packages_state_name),
		MEMBER_TEXT(struct result_packages, ecosystem),
		MEMBER_TEXT(struct result_packages, key),
		MEMBER_TEXT(struct result_packages, content),
		MEMBER_COUNT(struct result_packages, files),
		MEMBER_COUNT(struct result_packages, bytes),
		MEMBER_AS(AS_COUNT_OR_NULL, struct result_packages, age_ms),
	};

	return json_is_null(v) ? 0 : members_read(v, "packages", members, ARRAY_LEN(members), &r->packages, err);
}

static int read_cache(const json_t *v, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_WORD("compile", AS_WORD, struct result_cache, compile, cached_name),
		MEMBER_TEXT_OR_NULL(struct result_cache, content),
		MEMBER_AS(AS_COUNT_OR_NULL, struct result_cache, age_ms),
	};

	return json_is_null(v) ? 0 : members_read(v, "cache", members, ARRAY_LEN(members), &r->cache, err);
}

static int read_audit(const json_t *v, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_AT("entry", AS_COUNT, struct result, audit_seq),
		MEMBER_AT("hash", AS_TEXT, struct result, audit_hash),
	};

	return json_is_null(v) ? 0 : members_read(v, "audit", members, ARRAY_LEN(members), r, err);
}

static int read_receipt(const json_t *v, struct result *r, struct brig_error *err)
{
	if (!v)
		return 0;
	if (!json_is_object(v))
		return member_complain(err, "receipt", "is no object");
	r->receipt = json_dumps(v, JSON_COMPACT);
	return r->receipt ? 0 : err_nomem(err);
}

/* Present only if the run was to report it. */
static int read_diff(const json_t *v, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_OTHER("text"),
		MEMBER_OTHER("encoding"),
		MEMBER_AT("truncated", AS_FLAG, struct result, diff_is_cut),
	};
	int rc;

	if (!v)
		return 0;
	r->has_diff = true;
	rc = members_read(v, "diff", members, ARRAY_LEN(members), r, err);
	return rc < 0 ? rc : read_stream(v, "text", "encoding", &r->diff, err);
}

/* ---- members outside the document ---------------------------------------------------------------------------- */

static int read_unlisted(const json_t *v, struct result *r, struct brig_error *err)
{
	static const struct member members[] = {
		MEMBER_OTHER("network_findings"),
		MEMBER_AT("left_dropped", AS_COUNT, struct result, left.dropped),
	};
	const json_t *item;
	size_t i;
	int rc;

	if (!v)
		return 0;
	rc = members_read(v, "unlisted", members, ARRAY_LEN(members), r, err);
	if (rc < 0)
		return rc;
	json_array_foreach(json_object_get(v, "network_findings"), i, item)
	{
		json_int_t at = json_is_integer(item) ? json_integer_value(item) : -1;

		if (at < 0 || (size_t)at >= r->findings.n)
			return member_complain(err, "network_findings", "names a finding that is not there");
		r->findings.row[at].network = true;
	}
	return 0;
}

int brig_result_unlisted_json(const struct brig_result *r, char **ret, struct brig_error *err)
{
	json_t *list = json_array(), *doc;
	char *text;

	if (!r || !ret) {
		json_decref(list);
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_result_unlisted_json needs a result and a place for the text");
	}
	for (size_t i = 0; i < r->r.findings.n; i++)
		if (r->r.findings.row[i].network)
			(void)json_array_append_new(list, json_integer((json_int_t)i));
	doc = json_pack("{s:o, s:I}", "network_findings", list, "left_dropped", (json_int_t)r->r.left.dropped);
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	if (!text)
		return err_nomem(err);
	*ret = text;
	return 0;
}

/* ---- the document ---------------------------------------------------------------------------------------------- */

static const char *const verdict_words[] = {
#define VERDICT(name, status, meaning) #name,
#include "model/verdicts.def"
};

static const struct member top_members[] = {
	MEMBER_TEXT(struct result, id),
	MEMBER_WORD("verdict", AS_WORD, struct result, verdict, verdict_words),
	MEMBER_TEXT(struct result, reason),
	MEMBER_TEXT_OR_NULL(struct result, hint),
	MEMBER_OTHER("exit_code"),
	MEMBER_OTHER("signal"),
	MEMBER_TEXT_OR_NULL(struct result, step),
	MEMBER_TEXT_OR_NULL(struct result, language),
	MEMBER_TEXT_OR_NULL(struct result, backend),
	MEMBER_WORD("trust", AS_WORD, struct result, trust, trust_name),
	MEMBER_WORD("inspection", AS_WORD, struct result, inspection, inspection_name),
	MEMBER_TEXT(struct result, trust_source),
	MEMBER_OTHER("stdout"),
	MEMBER_OTHER("stderr"),
	MEMBER_OTHER("stdout_encoding"),
	MEMBER_OTHER("stderr_encoding"),
	MEMBER_AT("stdout_truncated", AS_FLAG, struct result, out_truncated),
	MEMBER_AT("stderr_truncated", AS_FLAG, struct result, err_truncated),
	MEMBER_OTHER("usage"),
	MEMBER_OTHER("timing"),
	MEMBER_OTHER("limits"),
	MEMBER_OTHER("cache"),
	MEMBER_AS(AS_FLAG, struct result, warm),
	MEMBER_AS(AS_FLAG, struct result, forked),
	MEMBER_OTHER("audit"),
	MEMBER_OTHER("findings"),
	MEMBER_OTHER("evidence"),
	MEMBER_OTHER("denied"),
	MEMBER_OTHER("network"),
	MEMBER_OTHER("workspace"),
	MEMBER_OTHER("changes"),
	MEMBER_OTHER("artifacts"),
	MEMBER_OTHER("left"),
	MEMBER_OTHER("tests"),
	MEMBER_OTHER("packages"),
	MEMBER_TEXT_OR_NULL(struct result, environment),
	MEMBER_OTHER("samples"),
	MEMBER_OTHER("degraded"),
	MEMBER_OTHER("warnings"),
	MEMBER_MAYBE("artifacts_lost"),
	MEMBER_MAYBE("diff"),
	MEMBER_MAYBE("receipt"),
	MEMBER_MAYBE("unlisted"),
};

static int read_signal(const json_t *v, int *ret, struct brig_error *err)
{
	char name[32];

	if (json_is_null(v))
		return 0;
	for (int sig = 1; sig <= SIGRTMAX && json_is_string(v); sig++)
		if (str_eq(json_string_value(v), result_signal_name(sig, name, sizeof(name)))) {
			*ret = sig;
			return 0;
		}
	return member_complain(err, "signal", "is none");
}

static int read_exit(const json_t *doc, struct result *r, struct brig_error *err)
{
	const json_t *code = json_object_get(doc, "exit_code");

	if (json_is_integer(code) && json_integer_value(code) >= 0 && json_integer_value(code) <= 255)
		r->exit_code = (int)json_integer_value(code);
	else if (!json_is_null(code))
		return member_complain(err, "exit_code", "is none");
	return read_signal(json_object_get(doc, "signal"), &r->signal, err);
}

#define USAGE(name)        MEMBER_AT(#name, AS_COUNT, struct result, usage.name)
#define PHASE(name, which) MEMBER_AT(name, AS_MILLIS, struct result, phase_ns[which])

static int read_measurements(const json_t *doc, struct result *r, struct brig_error *err)
{
	static const struct member usage[] = {
		USAGE(wall_ms), USAGE(cpu_ms), USAGE(memory_peak_bytes), USAGE(pids_peak), USAGE(output_bytes),
	};
	static const struct member timing[] = {
		PHASE("resolve_ms", PHASE_RESOLVE), PHASE("inspect_ms", PHASE_INSPECT),
		PHASE("cache_ms", PHASE_CACHE),     PHASE("create_ms", PHASE_CREATE),
		PHASE("run_ms", PHASE_RUN),         PHASE("verify_ms", PHASE_VERIFY),
		PHASE("release_ms", PHASE_RELEASE), MEMBER_AT("total_ms", AS_MILLIS, struct result, total_ns),
	};
	static const struct member limits[] = {
		MEMBER_COUNT(struct limits, cpu_percent),  MEMBER_COUNT(struct limits, cpu_time_ms),
		MEMBER_COUNT(struct limits, memory_bytes), MEMBER_COUNT(struct limits, pids),
		MEMBER_COUNT(struct limits, disk_bytes),   MEMBER_COUNT(struct limits, inodes),
		MEMBER_COUNT(struct limits, output_bytes), MEMBER_COUNT(struct limits, open_files),
		MEMBER_COUNT(struct limits, startup_ms),   MEMBER_COUNT(struct limits, wall_ms),
		MEMBER_COUNT(struct limits, cleanup_ms),
	};
	const json_t *l = json_object_get(doc, "limits");
	int rc = members_read(json_object_get(doc, "usage"), "usage", usage, ARRAY_LEN(usage), r, err);

	if (rc == 0)
		rc = members_read(json_object_get(doc, "timing"), "timing", timing, ARRAY_LEN(timing), r, err);
	r->has_limits = json_object_size(l) > 0;
	if (rc == 0)
		rc = members_read(l, "limits", limits, r->has_limits ? ARRAY_LEN(limits) : 0, &r->limits, err);
	return rc;
}

static int read_lists(const json_t *doc, struct result *r, struct brig_error *err)
{
	static const struct {
		const char *name;
		size_t max;
		read_row_fn fn;
	} lists[] = {
		{ "findings", FINDINGS_MAX, read_finding }, { "evidence", EVIDENCE_MAX, read_evidence },
		{ "denied", DENIED_MAX, read_denied },      { "network", NETWORK_MAX, read_network },
		{ "changes", READ_ROWS_MAX, read_change },  { "artifacts", READ_ROWS_MAX, read_artifact },
		{ "left", READ_ROWS_MAX, read_left },       { "samples", SAMPLES_MAX, read_sample },
		{ "degraded", PROT_COUNT, read_degraded },  { "warnings", RESULT_WARNINGS_MAX, read_warning },
	};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		int rc = read_rows(doc, lists[i].name, lists[i].max, lists[i].fn, r, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_parts(const json_t *doc, struct result *r, struct brig_error *err)
{
	static const struct {
		const char *name;
		int (*fn)(const json_t *v, struct result *r, struct brig_error *err);
	} parts[] = {
		{ "workspace", read_workspace }, { "tests", read_tests }, { "packages", read_packages },
		{ "cache", read_cache },         { "audit", read_audit }, { "receipt", read_receipt },
		{ "unlisted", read_unlisted },   { "diff", read_diff },   { "artifacts_lost", read_lost },
	};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		int rc = parts[i].fn(json_object_get(doc, parts[i].name), r, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_document(const json_t *doc, struct result *r, struct brig_error *err)
{
	if (members_read(doc, "result", top_members, ARRAY_LEN(top_members), r, err) < 0 ||
	    read_exit(doc, r, err) < 0 || read_stream(doc, "stdout", "stdout_encoding", &r->out, err) < 0 ||
	    read_stream(doc, "stderr", "stderr_encoding", &r->err, err) < 0 || read_measurements(doc, r, err) < 0 ||
	    read_lists(doc, r, err) < 0 || read_parts(doc, r, err) < 0)
		return -err->code;
	return 0;
}

int brig_result_from_json(const char *json, size_t len, struct brig_result **ret, struct brig_error *err)
{
	struct brig_error own = BRIG_ERROR_INIT;
	struct brig_result *result = NULL;
	json_error_t where;
	json_t *doc;
	int rc;

	if (!json || !ret)
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_result_from_json needs a document and a place for the result");
	if (!err)
		err = &own;
	doc = json_loadb(json, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &where);
	if (!doc)
		return err_set(err, BRIG_E_USAGE, 0, "the result is no JSON: byte %d: %.100s", where.position,
			       where.text);
	result = result_new();
	rc = result ? read_document(doc, &result->r, err) : err_nomem(err);
	json_decref(doc);
	if (rc < 0) {
		brig_result_free(result);
		return rc;
	}
	*ret = result;
	return 0;
}

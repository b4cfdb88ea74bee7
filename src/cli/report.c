/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* How verdicts are shown; those not listed are red, with their reason. */
static const struct {
	const char *verdict;
	enum ui_color color;
	bool speaks_for_itself; /* the program's own error, which it has reported itself */
} looks[] = {
	{ "ok", UI_GREEN, true },
	{ "error", UI_YELLOW, true },
	{ "cancelled", UI_YELLOW, false },
};

enum ui_color report_verdict_color(const char *verdict)
{
	for (size_t i = 0; i < ARRAY_LEN(looks); i++)
		if (str_eq(looks[i].verdict, verdict))
			return looks[i].color;
	return UI_RED;
}

static bool needs_reason(const struct brig_result *r)
{
	const char *verdict = brig_result_verdict(r);

	/* A failed compile or install step looks like the program's own error, but the program never ran. */
	if (str_eq(brig_result_step(r), "compile") || str_eq(brig_result_step(r), "install"))
		return !str_eq(verdict, "ok");
	for (size_t i = 0; i < ARRAY_LEN(looks); i++)
		if (str_eq(looks[i].verdict, verdict))
			return !looks[i].speaks_for_itself;
	return true;
}

/* One line for all missing protections, since it appears with every run on such a host. */
static void say_degraded(const struct brig_result *r)
{
	const char *protection, *lost, *fix;
	AUTO_BUF names = BUF_INIT(4096);
	size_t kept, total;

	brig_result_evidence(r, &kept, &total);
	if (total == 0) /* nothing ran */
		return;
	for (size_t i = 0; brig_result_degraded(r, i, &protection, &lost, &fix); i++)
		buf_addf(&names, "%s%s", i > 0 ? ", " : "", protection);
	if (names.len > 0 && str_eq(brig_result_backend(r), "native"))
		ui_say("warning: ran without %s, as allow_degraded permits; 'brig doctor' tells how to get them",
		       buf_str(&names));
	else if (names.len > 0)
		ui_say("warning: ran without %s, which the %s backend does not give here", buf_str(&names),
		       brig_result_backend(r));
}

#define FINDINGS_SHOWN 10

/* Each rule warns once, and so do all rules together whose only message is that there is no network. */
static bool is_worth_a_line(const struct brig_result *r, size_t at, const struct brig_finding *f)
{
	struct brig_finding before = BRIG_FINDING_INIT;

	if (!str_eq(f->severity, "HIGH"))
		return str_eq(f->severity, "CRITICAL");
	for (size_t i = 0; i < at && brig_result_finding(r, i, &before); i++)
		if (str_eq(before.severity, "HIGH") && (str_eq(before.rule, f->rule) || (before.network && f->network)))
			return false;
	return true;
}

static void say_finding(const struct brig_result *r, const struct brig_finding *f, const char *name)
{
	bool in_cell = !str_eq(brig_result_backend(r), "direct"); /* direct runs have the host's network */
	bool blocks = str_eq(f->severity, "CRITICAL");

	if (!blocks && f->network && *f->name && in_cell)
		ui_say("warning: %s:%u:%u: this cell has no network: %s will fail [%s]", name, f->line, f->column,
		       f->name, f->rule);
	else
		ui_say("%s: %s:%u:%u: %s [%s]", blocks ? "blocking" : "warning", name, f->line, f->column, f->message,
		       f->rule);
}

/* Findings that block and, unless only_blocking, those that warn; --json has the others. */
static void say_findings(const struct brig_result *r, const char *name, bool only_blocking)
{
	struct brig_finding f = BRIG_FINDING_INIT;
	size_t n = 0;

	for (size_t i = 0; brig_result_finding(r, i, &f); i++) {
		bool said = only_blocking ? str_eq(f.severity, "CRITICAL") : is_worth_a_line(r, i, &f);

		if (said && n++ < FINDINGS_SHOWN)
			say_finding(r, &f, name ? name : "code");
	}
	if (n > FINDINGS_SHOWN)
		ui_say("and %zu more findings; 'brig check' shows all of them", n - FINDINGS_SHOWN);
}

#define REMEDIES_SHOWN 3

static bool blocked_before(const struct brig_result *r, size_t at, const struct brig_finding *f)
{
	struct brig_finding before = BRIG_FINDING_INIT;

	for (size_t i = 0; i < at && brig_result_finding(r, i, &before); i++)
		if (str_eq(before.severity, "CRITICAL") && str_eq(before.rule, f->rule))
			return true;
	return false;
}

/* The remedy for each rule that blocks. */
static void say_remedies(const struct brig_result *r)
{
	struct brig_finding f = BRIG_FINDING_INIT;
	size_t n = 0;

	for (size_t i = 0; n < REMEDIES_SHOWN && brig_result_finding(r, i, &f); i++)
		if (str_eq(f.severity, "CRITICAL") && *f.remedy && !blocked_before(r, i, &f)) {
			ui_say("help: %s", f.remedy);
			n++;
		}
}

/* One line, if the program changed something. */
static void say_changes(const struct brig_result *r)
{
	struct brig_changes c = BRIG_CHANGES_INIT;
	char counts[128];

	brig_result_changes(r, &c);
	if (c.added + c.modified + c.deleted == 0 && !c.git)
		return;
	(void)snprintf(counts, sizeof(counts), "workspace: %llu added, %llu modified, %llu deleted%s",
		       (unsigned long long)c.added, (unsigned long long)c.modified, (unsigned long long)c.deleted,
		       c.git ? ", and commits or branches of .git" : "");
	if (str_eq(c.state, "kept"))
		ui_say("%s; 'brig workspace diff %s' shows this, 'brig workspace apply %s%s' applies it", counts,
		       brig_result_id(r), c.git ? "--git " : "", brig_result_id(r));
	else
		ui_say("%s; %s", counts, str_eq(c.state, "applied") ? "applied" : "not kept");
}

static void say_artifacts(const struct brig_result *r)
{
	uint64_t size, total = 0;
	const char *path;
	char text[32];
	size_t n = 0;

	for (; brig_result_artifact(r, n, &path, &size); n++)
		total += size;
	if (n > 0)
		ui_say("artifacts: %zu %s, %s", n, n == 1 ? "file" : "files", str_bytes(text, sizeof(text), total));
}

#define LEFT_SHOWN 5

/* Files that are lost because they were not requested. */
static void say_left(const struct brig_result *r)
{
	AUTO_BUF names = BUF_INIT(4096);
	uint64_t size = 0;
	const char *path;
	size_t n = 0;

	for (; brig_result_left(r, n, &path, &size); n++)
		if (n < LEFT_SHOWN)
			buf_addf(&names, "%s%.80s", n > 0 ? ", " : "", path);
	if (n == 0)
		return;
	n += (size_t)size;
	ui_say("%zu %s left: %s%s; --out DIR fetches %s", n, n == 1 ? "file" : "files", buf_str(&names),
	       n > LEFT_SHOWN ? " ..." : "", n == 1 ? "it" : "them");
}

static void say_reason(const struct brig_result *r)
{
	const char *text = brig_result_reason(r);

	ui_say("%s%s%s", brig_result_verdict(r), *text ? ": " : "", text);
	if (str_eq(brig_result_verdict(r), "blocked"))
		say_remedies(r);
}

void report_fatal(const struct brig_result *r, const char *name)
{
	static const char *const fatal[] = { "blocked", "refused", "failed", "violated" };

	for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
		if (str_eq(brig_result_verdict(r), fatal[i])) {
			say_findings(r, name, /* only_blocking= */ true);
			say_reason(r);
		}
}

void report_remarks(const struct brig_result *r, const char *name)
{
	const char *text;

	say_findings(r, name, /* only_blocking= */ false);
	for (size_t i = 0; (text = brig_result_warning(r, i)) != NULL; i++)
		ui_say("warning: %s", text);
	say_degraded(r);
	say_changes(r);
	say_artifacts(r);
	say_left(r);
	if (*brig_result_hint(r))
		ui_say("hint: %s", brig_result_hint(r));
	if (needs_reason(r))
		say_reason(r);
}

static void add_verdict(struct buf *line, const struct brig_result *r, bool has_color)
{
	const char *verdict = brig_result_verdict(r);
	const char *name = brig_result_signal(r) ? sigabbrev_np(brig_result_signal(r)) : NULL;

	ui_paint(line, has_color, report_verdict_color(verdict), verdict);
	if (str_eq(verdict, "error"))
		buf_addf(line, " (%s code %d)", str_eq(brig_result_step(r), "compile") ? "compiler's exit" : "exit",
			 brig_result_exit_code(r));
	else if (str_eq(verdict, "crash") && name)
		buf_addf(line, " (SIG%s)", name);
}

static void add_usage(struct buf *line, const struct brig_result *r)
{
	struct brig_usage usage;
	char wall[32], cpu[32], memory[32];

	brig_result_usage(r, &usage);
	buf_addf(line, "  wall %s  cpu %s  memory %s", ui_millis(wall, sizeof(wall), usage.wall_ms),
		 ui_millis(cpu, sizeof(cpu), usage.cpu_ms), str_bytes(memory, sizeof(memory), usage.memory_peak_bytes));
}

static void add_evidence(struct buf *line, const struct brig_result *r, bool has_color)
{
	size_t kept, total;
	char text[64];

	brig_result_evidence(r, &kept, &total);
	if (total == 0)
		return;
	(void)snprintf(text, sizeof(text), "%zu/%zu protections kept", kept, total);
	buf_adds(line, "  ");
	ui_paint(line, has_color, kept == total ? UI_PLAIN : UI_RED, text);
}

#define DENIED_SHOWN 5

/* One line with what the program was denied; --json has the reasons and what would permit it. */
static void say_denied(const struct brig_result *r)
{
	struct brig_denied d = BRIG_DENIED_INIT;
	AUTO_BUF line = BUF_INIT(4096);
	size_t i;

	for (i = 0; brig_result_denied(r, i, &d); i++) {
		if (i >= DENIED_SHOWN)
			continue;
		buf_addf(&line, "%s%s%s", i > 0 ? ", " : "", str_eq(d.kind, "host") ? "connect to " : "", d.what);
		if (d.count > 1)
			buf_addf(&line, " (%llu times)", (unsigned long long)d.count);
	}
	if (i > DENIED_SHOWN)
		buf_addf(&line, " and %zu more", i - DENIED_SHOWN);
	if (i > 0)
		ui_say("refused: %s; --json says why", buf_str(&line));
}

void report_summary(const struct brig_result *r, bool has_color)
{
	AUTO_BUF line = BUF_INIT(1024);
	size_t kept, total;

	say_denied(r);
	buf_adds(&line, "brig: ");
	add_verdict(&line, r, has_color);
	brig_result_evidence(r, &kept, &total);
	if (total > 0) /* otherwise nothing ran */
		add_usage(&line, r);
	if (str_eq(brig_result_cache(r), "hit"))
		buf_adds(&line, "  compiled earlier");
	if (*brig_result_backend(r))
		buf_addf(&line, "  %s", brig_result_backend(r));
	add_evidence(&line, r, has_color);
	buf_adds(&line, "\n");
	(void)ui_put(STDERR_FILENO, &line);
}

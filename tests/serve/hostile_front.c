/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_front.c - the compromise drill: `brig serve` whose front is foreign code
 *
 *	hostile-front calls STATE
 *	hostile-front serve STATE POLICY SOCKET MALLORY ALICE
 *
 * Master, runner and the front's own beginning (descriptors, confinement) are the service's; but where the front would begin to
 * read connections, __wrap_front_run() does as an attacker would who has taken it over: he holds the channel and what mallory's
 * requests have brought (her token), and would like to have what is alice's, the host's or an administrator's.
 *
 * Rows are told on standard error, "ok - NAME" or "not ok - NAME: WHY".  A row that breaks the channel's format ends this front,
 * and the next one, which the master starts, goes on behind it: how far the drill is, is in a file that all of them map.
 * After each row an honest request must be answered as ever.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "hostile.h"
#include "server/role.h"

#define FLOOD 100000

int __real_front_run(struct front *f);
int __wrap_front_run(struct front *f);

/* ---- alice, before the front was taken over --------------------------------------------------------------------- */

static bool keep_id(struct buf *m, const int *fds, size_t n_fds, int status, char dst[32])
{
	AUTO_GOT g = ask_with(m, fds, n_fds);

	return g.status == status && str_copy(dst, 32, member(&g, "id"));
}

static const char *row_alice(void)
{
	AUTO_BUF job = BUF_INIT(MiB);
	AUTO_FD files = archive_with("notes.txt", "alice's");
	struct buf m;

	begin_shell(&m, alice, "echo alice; echo hers > out.txt");
	message_put_text(&m, FIELD_artifact, "*.txt");
	message_put_number(&m, FIELD_async, 1);
	message_put_text(&m, FIELD_idempotency_key, "hers");
	if (!keep_id(&m, NULL, 0, 202, shared->execution))
		return "no execution";
	begin_shell(&m, alice, "sleep 600");
	message_put_number(&m, FIELD_async, 1);
	if (!keep_id(&m, NULL, 0, 202, shared->running))
		return "no execution that goes on";
	message_put_text(&job, FIELD_job_id, "one");
	message_put_number(&job, FIELD_kind, BRIG_KIND_SHELL);
	message_put_bytes(&job, FIELD_code, "sleep 600", 9);
	begin(&m, ROUTE_batch, alice);
	message_put_bytes(&m, FIELD_job, buf_str(&job), job.len);
	if (!keep_id(&m, NULL, 0, 202, shared->batch))
		return "no batch";
	begin(&m, ROUTE_workspace_put, alice);
	message_put_number(&m, FIELD_has_files, 1);
	return keep_id(&m, &files, 1, 201, shared->workspace) ? NULL : "no workspace";
}

/* ---- what is asked for in plain messages ---------------------------------------------------------------------------- */

#define HER_EXECUTION "@e"
#define HER_RUN       "@r"
#define HER_BATCH     "@b"
#define HER_WORKSPACE "@w"

static const char *resolve(const char *text)
{
	const struct {
		const char *mark, *is;
	} marks[] = { { HER_EXECUTION, shared->execution },
		      { HER_RUN, shared->running },
		      { HER_BATCH, shared->batch },
		      { HER_WORKSPACE, shared->workspace } };

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (str_eq(text, marks[i].mark))
			return marks[i].is;
	return text;
}

enum by { NOBODY, MALLORY, GUESSED, CUT };

static const struct plain {
	const char *name;
	enum by by;
	uint64_t route;
	int status;
	struct {
		enum field field;
		const char *text;
	} with[3];
} plains[] = {
	{ "execution without a token", NOBODY, ROUTE_execute, 401, { { FIELD_code, "echo" } } },
	{ "who is said to ask", NOBODY, ROUTE_whoami, 401, { { FIELD_who, "alice" } } },
	{ "a token that is guessed", GUESSED, ROUTE_whoami, 401, { { 0 } } },
	{ "a part of alice's token", CUT, ROUTE_whoami, 401, { { 0 } } },
	{ "cells, for administrators", MALLORY, ROUTE_cells, 403, { { 0 } } },
	{ "her execution", MALLORY, ROUTE_execution, 404, { { FIELD_id, HER_EXECUTION } } },
	{ "its events", MALLORY, ROUTE_execution_events, 404, { { FIELD_id, HER_EXECUTION } } },
	{ "its file", MALLORY, ROUTE_artifact, 404, { { FIELD_id, HER_EXECUTION }, { FIELD_path, "out.txt" } } },
	{ "its record", MALLORY, ROUTE_history_entry, 404, { { FIELD_id, HER_EXECUTION } } },
	{ "cancel what she runs", MALLORY, ROUTE_cancel, 404, { { FIELD_id, HER_RUN } } },
	{ "her batch", MALLORY, ROUTE_batch_state, 404, { { FIELD_id, HER_BATCH } } },
	{ "its results", MALLORY, ROUTE_batch_results, 404, { { FIELD_id, HER_BATCH } } },
	{ "cancel it", MALLORY, ROUTE_batch_cancel, 404, { { FIELD_id, HER_BATCH } } },
	{ "her workspace", MALLORY, ROUTE_workspace, 404, { { FIELD_id, HER_WORKSPACE } } },
	{ "its archive", MALLORY, ROUTE_workspace_archive, 404, { { FIELD_id, HER_WORKSPACE } } },
	{ "what changed in it", MALLORY, ROUTE_workspace_diff, 404, { { FIELD_id, HER_WORKSPACE } } },
	{ "remove it", MALLORY, ROUTE_workspace_delete, 404, { { FIELD_id, HER_WORKSPACE } } },
	{ "run on it",
	  MALLORY,
	  ROUTE_execute,
	  422,
	  { { FIELD_workspace, HER_WORKSPACE }, { FIELD_code, "cat notes.txt" } } },
	{ "an id that is a path", MALLORY, ROUTE_execution, 404, { { FIELD_id, "../tokens" } } },
	{ "a batch that is a path", MALLORY, ROUTE_batch_state, 404, { { FIELD_id, "../../tokens" } } },
	{ "a workspace that is a path", MALLORY, ROUTE_workspace_archive, 404, { { FIELD_id, "../../tokens" } } },
	{ "a workspace to run on that is a path",
	  MALLORY,
	  ROUTE_execute,
	  422,
	  { { FIELD_workspace, "../ledger" }, { FIELD_code, "ls" } } },
	{ "no id", MALLORY, ROUTE_execution, 404, { { 0 } } },
	{ "a trust above the token's",
	  MALLORY,
	  ROUTE_execute,
	  403,
	  { { FIELD_trust, "trusted" }, { FIELD_code, "echo" } } },
	{ "a route that is none", MALLORY, 9999, 404, { { 0 } } },
	{ "a route of the front's own", MALLORY, ROUTE_page, 404, { { 0 } } },
};

static const char *run_plain(const struct plain *p)
{
	const char *secrets[] = {
		[NOBODY] = NULL, [MALLORY] = mallory, [GUESSED] = "brig_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	};
	char cut[300];
	struct buf m;

	(void)str_copy(cut, sizeof(cut), alice);
	cut[strlen(alice) - 1] = '\0';
	begin(&m, 0, p->by == CUT ? cut : secrets[p->by]);
	m.len = 0;
	message_put_number(&m, FIELD_route, p->route);
	message_put_text(&m, FIELD_credential, p->by == CUT ? cut : secrets[p->by]);
	for (size_t i = 0; i < ARRAY_LEN(p->with) && p->with[i].text; i++)
		if (p->with[i].field == FIELD_code)
			message_put_bytes(&m, FIELD_code, p->with[i].text, strlen(p->with[i].text));
		else
			message_put_text(&m, p->with[i].field, resolve(p->with[i].text));
	if (p->route == ROUTE_execute)
		message_put_number(&m, FIELD_kind, BRIG_KIND_SHELL);
	AUTO_GOT g = ask(&m);
	return expect(&g, p->status);
}

/* Above what the policy (mem_limit 64m, its ceilings) and the token let a request have, or not for requests at all. */
static const char *const options[] = {
	"mem_limit=64g",
	"memory_mb=65536",
	"pids_limit=30000",
	"execution_timeout_ms=86400000",
	"disk_limit=1000g",
	"max_mem_limit=64g",
	"max_timeout=86400",
	"default_trust=trusted",
	"allow_degraded=cgroups",
	"enable_sandbox=false",
	"fallback=direct",
	"backend=direct",
	"rootfs=/",
	"user=0:0",
	"read_only=false",
	"cap_drop=",
	"network_mode=allowlist",
	"whitelist=10.0.0.1",
	"audit=off",
	"history=false",
	"keep_code=none",
	"inspection=off",
	"inspection=false",
	"memory_mb=300.5",
	"rules=py-network=allow",
	"rules_file=/etc/passwd",
	"docker_host=tcp://127.0.0.1:1",
	"state=/tmp",
	"=",
	"mem_limit",
};

static const char *run_option(const char *option)
{
	struct buf m;

	begin_shell(&m, mallory, "echo 1");
	message_put_text(&m, FIELD_option, option);
	AUTO_GOT g = ask(&m);
	return g.status < 0 || is_ok(&g) ? wrong("%d, %s", g.status, member(&g, "verdict")) : NULL;
}

/* ---- who asks --------------------------------------------------------------------------------------------------------- */

static struct got whoami(const char *credential, int peer)
{
	struct buf m;

	begin(&m, ROUTE_whoami, credential);
	if (peer >= 0)
		message_put_number(&m, FIELD_has_peer, 1);
	return ask_with(&m, &peer, peer >= 0);
}

/* Whatever the front holds, sent as the socket of a client whom the kernel is to be asked about. */
static const char *row_own_sockets(void)
{
	AUTO_FD memory = memfd_create("peer", MFD_CLOEXEC);
	const int own[] = { STDIN_FILENO, STDERR_FILENO,           memory,
			    front->epoll, front->master_source.fd, channel_fd(front->channel) };
	const char *why = NULL;

	for (size_t i = 0; i < ARRAY_LEN(own) && !why; i++) {
		AUTO_GOT g = whoami(NULL, own[i]);
		why = expect(&g, 401);
	}
	for (size_t i = 0; i < front->n_listeners && !why; i++) {
		AUTO_GOT g = whoami(NULL, front->listener[i].source.fd);
		why = expect(&g, 401);
	}
	return why;
}

static int accept_one(void)
{
	for (size_t i = 0; i < front->n_listeners; i++) {
		struct pollfd p = { .fd = front->listener[i].source.fd, .events = POLLIN };

		if (front->listener[i].listener->is_records && poll(&p, 1, PATIENCE_MS) == 1)
			return accept4(p.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	}
	return FD_NONE;
}

/* What an administrator's connection cannot get either, for it is not a request's to have. */
static const char *row_of_administrator(int peer)
{
	static const char *const never[] = {
		"enable_sandbox=false", "backend=direct", "fallback=direct", "rootfs=/", "audit=off", "mem_limit=64g"
	};
	struct buf m;

	for (size_t i = 0; i < ARRAY_LEN(never); i++) {
		begin_shell(&m, NULL, "echo 1");
		message_put_number(&m, FIELD_has_peer, 1);
		message_put_text(&m, FIELD_trust, "unknown");
		message_put_text(&m, FIELD_option, never[i]);
		AUTO_GOT g = ask_with(&m, &peer, 1);
		if (g.status < 0 || is_ok(&g))
			return wrong("%s: %d, %s", never[i], g.status, member(&g, "verdict"));
	}
	return NULL;
}

/* Two connections of an administrator: who has gone does not ask any more; who is there does. */
static const char *row_left_behind(void)
{
	AUTO_FD gone = accept_one();
	AUTO_FD there = accept_one();
	const char *why;

	AUTO_GOT by_gone = whoami(NULL, gone);
	why = expect(&by_gone, 401);
	AUTO_GOT by_there = whoami(NULL, there);
	if (!why)
		why = expect(&by_there, 200);
	return why ? why : row_of_administrator(there);
}

static const char *row_forged_who(void)
{
	struct buf m;

	begin(&m, ROUTE_whoami, mallory);
	message_put_text(&m, FIELD_who, "alice");
	AUTO_GOT g = ask(&m);
	return g.status == 200 && str_eq(member(&g, "name"), "mallory") && str_eq(g.who, "mallory")
		       ? NULL
		       : wrong("%d '%s'", g.status, member(&g, "name"));
}

/* ---- lists, keys ---------------------------------------------------------------------------------------------------- */

static const char *row_lists(void)
{
	static const enum route routes[] = { ROUTE_executions, ROUTE_batches, ROUTE_workspaces, ROUTE_history,
					     ROUTE_queue };
	struct buf m;

	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		begin(&m, routes[i], mallory);
		message_put_number(&m, FIELD_limit, 1000);
		AUTO_GOT g = ask(&m);
		AUTO_FREE char *text = g.doc ? json_dumps(g.doc, 0) : NULL;

		if (g.status != 200 || !text || strstr(text, "alice") || strstr(text, shared->execution) ||
		    strstr(text, shared->running) || strstr(text, shared->batch) || strstr(text, shared->workspace))
			return wrong("%s has what is alice's", route_rows[routes[i]].path);
	}
	return NULL;
}

static const char *row_key_of_alice(void)
{
	struct buf m;

	begin_shell(&m, mallory, "echo mine");
	message_put_text(&m, FIELD_idempotency_key, "hers");
	AUTO_GOT g = ask(&m);
	return is_ok(&g) && str_eq(member(&g, "stdout"), "mine\n") ? NULL : "the key is shared";
}

/* After everything that was tried on it. */
static const char *row_alice_has_all(void)
{
	static const struct {
		enum route route;
		const char *id, *state;
	} hers[] = { { ROUTE_execution, HER_EXECUTION, "finished" },
		     { ROUTE_execution, HER_RUN, "running" },
		     { ROUTE_batch_state, HER_BATCH, "running" },
		     { ROUTE_workspace, HER_WORKSPACE, "" },
		     { ROUTE_cancel, HER_RUN, NULL },
		     { ROUTE_batch_cancel, HER_BATCH, NULL } };
	struct buf m;

	for (size_t i = 0; i < ARRAY_LEN(hers); i++) {
		begin(&m, hers[i].route, alice);
		message_put_text(&m, FIELD_id, resolve(hers[i].id));
		AUTO_GOT g = ask(&m);
		if (g.status >= 300 || g.status < 0 || (hers[i].state && !str_eq(member(&g, "state"), hers[i].state)))
			return wrong("%s: %d, %s", route_rows[hers[i].route].path, g.status, member(&g, "state"));
	}
	return NULL;
}

/* ---- tags, storms ------------------------------------------------------------------------------------------------------------ */

static const char *row_tag_twice(void)
{
	unsigned answers = 0;

	for (int i = 0; i < 2; i++) {
		struct buf m;

		begin_shell(&m, mallory, "echo twice");
		(void)put(&m, NULL, 0);
		last_tag--;
	}
	last_tag++;
	while (answers < 2) {
		AUTO_GOT g = next_record();
		if (g.status < 0)
			return "the channel has ended";
		answers += g.type == RECORD_ANSWER && g.tag == last_tag && is_ok(&g);
	}
	return NULL;
}

static void send_plain(enum record_type type, uint32_t tag)
{
	(void)channel_send(front->channel, &(struct record){ .type = type, .tag = tag }, NULL);
}

static const char *row_cancel_storm(void)
{
	struct buf m;
	uint32_t tag;

	begin_shell(&m, mallory, "sleep 600");
	tag = put(&m, NULL, 0);
	for (uint32_t i = 0; i < FLOOD / 2; i++)
		send_plain(i % 2 ? RECORD_CANCEL : RECORD_GONE, 0x40000000 + i);
	for (int i = 0; i < 1000; i++)
		send_plain(RECORD_CANCEL, tag);
	AUTO_GOT g = next_record();
	return g.tag == tag && str_eq(member(&g, "verdict"), "cancelled")
		       ? NULL
		       : wrong("%d, %s", g.status, member(&g, "verdict"));
}

/* Nothing is read until the runner takes no more: then its answers, each once. */
static const char *row_flood(void)
{
	struct pollfd p = { .fd = channel_fd(front->channel), .events = POLLOUT };
	AUTO_BUF m = BUF_INIT(4 * KiB);
	uint32_t first = last_tag + 1, answered = 0;

	message_put_number(&m, FIELD_route, ROUTE_whoami);
	message_put_text(&m, FIELD_credential, mallory);
	for (size_t i = 0; i < FLOOD; i++)
		if (channel_send(
			    front->channel,
			    &(struct record){ .type = RECORD_ASK, .tag = ++last_tag, .data = m.data, .len = m.len },
			    NULL) < 0)
			return "the channel has ended";
	while (channel_waiting(front->channel) > 0 && poll(&p, 1, 500) == 1)
		if (channel_flush(front->channel, NULL) < 0)
			return "the channel has ended";
	if (channel_waiting(front->channel) == 0)
		return "the runner takes more than it can answer";
	while (answered < FLOOD) {
		AUTO_GOT g = next_record();
		if (g.status != 200 || g.tag != first + answered)
			return wrong("answer %u: %d", answered, g.status);
		answered++;
	}
	return NULL;
}

/* ---- what breaks the format: the channel ends, nothing else does ------------------------------------------------------------------ */

struct raw_head {
	uint32_t tag;
	uint16_t type, status;
	uint32_t len, in_file;
};

static void send_raw(const struct raw_head *head, const void *bytes, size_t len, const int *fds, size_t n_fds)
{
	struct raw_head copy = *head;
	struct iovec pieces[] = { { &copy, sizeof(copy) }, { .iov_len = len } };

	memcpy(&pieces[1].iov_base, &bytes, sizeof(bytes));
	(void)fd_send_record(channel_fd(front->channel), pieces, 2, fds, n_fds, 0);
}

static const struct raw_row {
	const char *name;
	struct raw_head head;
	const char *bytes;
	size_t len;
	size_t n_fds; /* of a file that is not sealed */
} raws[] = {
	{ "a record without a whole head: type", { 1, 77, 0, 0, 0 }, "", 0, 0 },
	{ "a record of the runner's own side", { 1, RECORD_ANSWER, 200, 0, 0 }, "", 0, 0 },
	{ "a length that is another", { 1, RECORD_ASK, 0, 4000, 0 }, "xxxx", 4, 0 },
	{ "data in a file that did not come", { 1, RECORD_ASK, 0, 100000, 1 }, "", 0, 0 },
	{ "data in a file that can be changed", { 1, RECORD_ASK, 0, 4096, 1 }, "\0\0\0\0\0\0\0\0", 8, 1 },
	{ "descriptors that nobody announced", { 1, RECORD_ASK, 0, 0, 0 }, "", 0, 1 },
	{ "more descriptors than there can be", { 1, RECORD_ASK, 0, 0, 0 }, "", 0, 8 },
	{ "an unknown field", { 1, RECORD_ASK, 0, 8, 0 }, "\xff\xff\0\0\0\0\0\0", 8, 0 },
	{ "a field that is cut", { 1, RECORD_ASK, 0, 8, 0 }, "\0\0\0\0\x08\0\0\0", 8, 0 },
};

/* They are the same for the front to come. */
static void spoil_listeners(void)
{
	const struct linger at_once = { .l_onoff = 1 };

	for (size_t i = 0; i < front->n_listeners; i++) {
		int fd = front->listener[i].source.fd;

		(void)fcntl(fd, F_SETFL, 0);
		(void)shutdown(fd, SHUT_RDWR);
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	}
}

static const char *check_listeners(void)
{
	for (size_t i = 0; i < front->n_listeners; i++)
		if (!(fcntl(front->listener[i].source.fd, F_GETFL) & O_NONBLOCK))
			return "a listener is as the front before has left it";
	return NULL;
}

static const char *run_raw(const struct raw_row *row)
{
	AUTO_FD file = hollow(4096, SEALS_NONE);
	const int files[8] = { file, file, file, file, file, file, file, file };

	spoil_listeners();
	send_raw(&row->head, row->bytes, row->len, files, row->n_fds);
	AUTO_GOT g = next_record();
	return g.status < 0 ? NULL : "the runner listens on";
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	const char *(*run)(void);
} rows[] = {
	{ "sockets of its own as those of clients", row_own_sockets },
	{ "a connection whose owner has gone", row_left_behind },
	{ "a name beside a token", row_forged_who },
	{ "lists", row_lists },
	{ "a key of alice's", row_key_of_alice },
	{ "archives that are none", row_no_archives },
	{ "inputs and places that are none", row_no_streams },
	{ "inputs and places that are odd", row_odd_streams },
	{ "an archive that changes", row_archive_changes },
	{ "archives that no front writes", row_foul_archives },
	{ "names that lead out", row_ways_out },
	{ "names of jobs", row_names_of_jobs },
	{ "a job that is noise", row_job_that_is_noise },
	{ "noise in fields", row_noise_in_fields },
	{ "more files than can be open", row_many_files },
	{ "one tag for two", row_tag_twice },
	{ "a storm of cancels", row_cancel_storm },
	{ "alice has what she had", row_alice_has_all },
};

/* False: the channel is over.  Rows in their order: plain messages, options, the above, what breaks the format, and at last the flood. */
static bool run_row(size_t i)
{
	const char *why, *name;
	bool breaks = false, is_plain = i < ARRAY_LEN(plains) + ARRAY_LEN(options);

	if (i < ARRAY_LEN(plains)) {
		name = plains[i].name;
		why = run_plain(&plains[i]);
	} else if ((i -= ARRAY_LEN(plains)) < ARRAY_LEN(options)) {
		name = options[i];
		why = run_option(options[i]);
	} else if ((i -= ARRAY_LEN(options)) < ARRAY_LEN(rows)) {
		name = rows[i].name;
		why = rows[i].run();
	} else if ((i -= ARRAY_LEN(rows)) < ARRAY_LEN(raws)) {
		name = raws[i].name;
		why = run_raw(&raws[i]);
		breaks = true;
	} else {
		name = "answers that nobody reads";
		why = row_flood();
	}
	if (!why && !breaks)
		why = is_plain ? honest_word() : honest();
	tell(why, "front: %s", name);
	return !breaks && !is_broken;
}

#define N_ROWS (ARRAY_LEN(plains) + ARRAY_LEN(options) + ARRAY_LEN(rows) + ARRAY_LEN(raws) + 1)

/* Of the row that ended the front before, by the master's hand: what breaks the format is to. */
static void tell_of_last(void)
{
	size_t first = N_ROWS - 1 - ARRAY_LEN(raws);

	if (!shared->is_under)
		return;
	if (shared->row >= first && shared->row - first < ARRAY_LEN(raws))
		tell(NULL, "front: %s", raws[shared->row - first].name);
	else
		tell("the front was ended by it", "front: row %zu", shared->row);
	shared->row++;
	shared->is_under = false;
}

/* As told: until the master wants an end. */
static int wait_for_master(void)
{
	struct pollfd p = { .fd = front->master_source.fd, .events = POLLIN };

	say("drill done\n");
	while (poll(&p, 1, -1) <= 0)
		;
	return 0;
}

int __wrap_front_run(struct front *f)
{
	const char *why;

	front = f;
	if (shared->row == 0 && !shared->is_under) {
		why = row_alice();
		tell(why, "front: alice was served");
	} else {
		why = check_listeners();
		if (!why)
			why = honest(); /* after the one before has broken the channel */
		if (why)
			tell(why, "front: the service after row %zu", shared->row);
	}
	tell_of_last();
	while (!why && shared->row < N_ROWS) {
		shared->is_under = true;
		if (!run_row(shared->row)) {
			shared->row++;
			shared->is_under = false;
			return 1;
		}
		shared->row++;
		shared->is_under = false;
	}
	return why ? 1 : wait_for_master();
}

/* Where it is told from, and how far it is: of each process that it starts the master's words are known. */
static bool share(const char *state)
{
	char path[512];
	AUTO_FD fd = FD_NONE;

	(void)snprintf(path, sizeof(path), "%s.drill", state);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*shared)) < 0)
		return false;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return shared != MAP_FAILED;
}

/* A process of the service: the words that the drill was started with are its master's. */
static bool learn_words(void)
{
	static char text[4096];
	char path[64], *word[7], *at = text;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)getppid());
	n = fd_get_at(AT_FDCWD, path, text, sizeof(text));
	for (size_t i = 0; i < ARRAY_LEN(word); i++, at += strlen(at) + 1) {
		if (n < 0 || at >= text + n)
			return false;
		word[i] = at;
	}
	mallory = word[5];
	alice = word[6];
	return share(word[2]);
}

int main(int argc, char **argv)
{
	struct serve_options options_of_serve = { .listen = { "127.0.0.1:0" }, .n_listen = 1, .jobs = 3 };
	struct brig_error err = BRIG_ERROR_INIT;

	if (role_is_spawned(argc, argv))
		return learn_words() ? role_main() : 1;
	if (argc == 3 && str_eq(argv[1], "calls"))
		return hostile_calls(argv[2]);
	if (argc != 7)
		return 2;
	options_of_serve.state = argv[2];
	options_of_serve.policy = argv[3];
	options_of_serve.socket_path = argv[4];
	if (!share(argv[2]) || setrlimit(RLIMIT_NOFILE, &(struct rlimit){ FILES_MAX, FILES_MAX }) < 0)
		return 1;
	if (serve(&options_of_serve, &err) < 0) {
		(void)dprintf(STDERR_FILENO, "hostile-front: %s\n", err.msg);
		return 1;
	}
	return 0;
}

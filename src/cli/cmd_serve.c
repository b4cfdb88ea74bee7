/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.c - `brig serve`: the service over HTTP, with its console. */
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/queue.h"
#include "cli/rows.h"
#include "cli/serve_values.h"
#include "cli/ui.h"
#include "server/doors/librechat/jwt.h"
#include "server/serve.h"
#include "server/socket_path.h"

#define QUEUE_MAX       1000000
#define CONNECTIONS_MAX 60000

struct serve_values {
	const char *unix_path, *socket, *policy, *state, *queue, *log, *tls_cert, *tls_key, *otlp, *port_domain,
		*librechat_key;
	const char *head_timeout, *body_timeout, *idle_timeout, *body_limit, *connections, *doors;
	struct words listen, hosts, refuse_keys;
	struct serve_common common;
	struct queue_values with;
	bool no_auth;
};

#define AT(member) offsetof(struct serve_values, member)
static const struct option_row serve_rows[] = {
	{ "listen", 0, OPTION_LIST, "ADDR:PORT", AT(listen), NULL,
	  "address to listen at, port 0 for any; may be repeated; without it 127.0.0.1:8377" },
	{ "unix", 0, OPTION_TEXT, "PATH", AT(unix_path), NULL, "unix socket to listen at" },
	{ "socket", 0, OPTION_TEXT, "PATH", AT(socket), NULL,
	  "where 'brig run' and other commands find this service, or 'none'; without it /run/brig/run.sock for root "
	  "and "
	  "$XDG_RUNTIME_DIR/brig/run.sock for others" },
	{ "no-auth", 0, OPTION_FLAG, NULL, AT(no_auth), NULL,
	  "serve everybody who can connect; only on loopback and unix sockets" },
	{ "doors", 0, OPTION_TEXT, "NAMES", AT(doors), NULL,
	  "wire formats of other clients to serve, too: piston,dify:untrusted or all (docs/DOORS.md); without it those "
	  "of the policy, which are none" },
	{ "refuse-keys", 0, OPTION_LIST, "KEYS", AT(refuse_keys), NULL,
	  "keys that are always refused, even with --no-auth; may be repeated" },
	{ "librechat-jwt-key", 0, OPTION_TEXT, "FILE", AT(librechat_key), NULL,
	  "Ed25519 public key (PEM or JWK) of the LibreChat that signs its requests: unsigned ones are refused" },
	{ "host", 0, OPTION_LIST, "NAME", AT(hosts), NULL,
	  "name that clients may call this host by, besides its addresses; may be repeated" },
	{ "port-domain", 0, OPTION_TEXT, "NAME", AT(port_domain), NULL,
	  "servers of sessions are at PORT-SESSION.NAME; without it localhost" },
	{ "tls-cert", 0, OPTION_TEXT, "FILE", AT(tls_cert), NULL,
	  "certificate of this host and those above it (PEM): TCP is served as https" },
	{ "tls-key", 0, OPTION_TEXT, "FILE", AT(tls_key), NULL, "its private key (PEM, without a passphrase)" },
	ROW_JOBS,
	{ "queue", 0, OPTION_TEXT, "COUNT|URL", AT(queue), NULL,
	  "executions that may wait, without it 4096; or nats://HOST:PORT,...: executions run on workers of that "
	  "queue" },
	ROW_NODES,
	ROW_NODE_NAME,
	ROW_QUEUE_CA,
	ROW_QUEUE_CERT,
	ROW_QUEUE_KEY,
	ROW_QUEUE_CREDENTIALS,
	ROW_QUEUE_PATIENCE,
	ROW_WARM,
	{ "connections", 0, OPTION_TEXT, "COUNT", AT(connections), NULL, "connections at once; without it 4096" },
	{ "body-limit", 0, OPTION_TEXT, "SIZE", AT(body_limit), NULL, "bytes of a request's body; without it 64m" },
	{ "head-timeout", 0, OPTION_TEXT, "TIME", AT(head_timeout), NULL,
	  "for the head of a request to come in; without it 5s" },
	{ "body-timeout", 0, OPTION_TEXT, "TIME", AT(body_timeout), NULL,
	  "for each 64 KB of a body to come in; without it 10s" },
	{ "idle-timeout", 0, OPTION_TEXT, "TIME", AT(idle_timeout), NULL,
	  "until a connection without a request is closed; without it 60s" },
	ROW_DRAIN,
	ROW_END_WITH_STDIN,
	{ "otlp", 0, OPTION_TEXT, "URL", AT(otlp), NULL,
	  "OpenTelemetry collector that executions are reported to as traces; without it "
	  "$OTEL_EXPORTER_OTLP_ENDPOINT, or none" },
	{ "log", 0, OPTION_TEXT, "FORM", AT(log), NULL, "text or json: lines about requests on standard error" },
	ROW_POLICY,
	ROW_PRESET,
	ROW_SET,
	ROW_STATE,
};

/* ---- values ---------------------------------------------------------------------------------------- */

static int read_names(const struct serve_values *v, struct serve_options *o, struct brig_error *err)
{
	if (v->listen.n > LISTENERS_MAX || v->hosts.n > HOST_NAMES_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "--listen may be given %d times and --host %d times",
			       LISTENERS_MAX, HOST_NAMES_MAX);
	for (size_t i = 0; i < v->listen.n; i++)
		o->listen[o->n_listen++] = v->listen.item[i];
	for (size_t i = 0; i < v->hosts.n; i++)
		o->host_names[o->n_host_names++] = v->hosts.item[i];
	o->port_domain = v->port_domain ? v->port_domain : "localhost";
	if (v->log && !str_eq(v->log, "text") && !str_eq(v->log, "json"))
		return err_set(err, BRIG_E_USAGE, 0, "--log '%.40s' is neither text nor json", v->log);
	o->json_log = v->log && str_eq(v->log, "json");
	return 0;
}

static int read_librechat_key(const struct serve_values *v, struct serve_options *o, struct brig_error *err)
{
	static char hex[JWT_KEY_HEX + 1];
	char text[4096];
	ssize_t n;

	if (!v->librechat_key)
		return 0;
	n = fd_get_at(AT_FDCWD, v->librechat_key, text, sizeof(text));
	if (n < 0)
		return err_set(err, BRIG_E_USAGE, (int)-n, "--librechat-jwt-key: cannot read %.200s", v->librechat_key);
	if (jwt_read_key(text, hex, err) < 0)
		return err_wrap(err, "--librechat-jwt-key %.100s", v->librechat_key);
	o->librechat_key = hex;
	return 0;
}

/* Only the process that uses these files reads them. */
static int read_tls(const struct serve_values *v, struct serve_options *o, struct brig_error *err)
{
	if (!v->tls_cert != !v->tls_key)
		return err_set(err, BRIG_E_USAGE, 0, "--tls-cert and --tls-key need each other: --%s is missing",
			       v->tls_cert ? "tls-key" : "tls-cert");
	o->tls_cert = v->tls_cert;
	o->tls_key = v->tls_key;
	return 0;
}

/* usual: buffer for the default path. */
static void read_socket(const struct serve_values *v, char usual[SOCKET_PATH_MAX], struct serve_options *o)
{
	if (v->socket) {
		o->socket_path = str_eq(v->socket, "none") ? NULL : v->socket;
		return;
	}
	o->socket_is_usual = true;
	o->socket_path = socket_path_own(usual) ? usual : NULL;
}

static int read_values(const struct serve_values *v, struct serve_options *o, struct brig_error *err)
{
	if (read_names(v, o, err) < 0 || serve_read_common(&v->common, o, err) < 0 ||
	    (queue_is_url(v->queue) ? queue_read(v->queue, &v->with, o, err)
				    : serve_read_count("queue", v->queue, QUEUE_MAX, &o->queue, err)) < 0 ||
	    serve_read_count("connections", v->connections, CONNECTIONS_MAX, &o->connections, err) < 0 ||
	    serve_read_time("head-timeout", v->head_timeout, &o->head_ms, err) < 0 ||
	    serve_read_time("body-timeout", v->body_timeout, &o->body_ms, err) < 0 ||
	    serve_read_time("idle-timeout", v->idle_timeout, &o->idle_ms, err) < 0 || read_tls(v, o, err) < 0 ||
	    read_librechat_key(v, o, err) < 0)
		return -err->code;
	if (v->body_limit && (!str_to_bytes(v->body_limit, &o->body_max) || o->body_max == 0 || o->body_max > 64 * MiB))
		return err_set(err, BRIG_E_USAGE, 0, "--body-limit '%.40s' is no size of at most 64m", v->body_limit);
	o->unix_path = v->unix_path;
	o->policy = v->policy;
	o->state = v->state;
	o->no_auth = v->no_auth;
	o->otlp = v->otlp ? v->otlp : getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
	if (o->otlp && (!*o->otlp || str_eq(o->otlp, "none")))
		o->otlp = NULL;
	return 0;
}

/* The policy and lists from which doors are read; they must outlive the options. */
struct doors_of {
	json_t *policy;
	struct buf names, keys;
};

/* Errors in the policy are reported once, with their own exit status, before anything listens. */
static int check_policy(const struct serve_options *o, struct doors_of *ret, struct brig_error *err)
{
	struct brig_open_opts opts = BRIG_OPEN_OPTS_INIT;
	struct brig *b = NULL;
	char *text = NULL;
	int rc;

	opts.policy_file = o->policy;
	opts.preset = o->preset;
	opts.state_dir = o->state;
	rc = brig_open(&opts, &b, err);
	if (rc == 0)
		rc = brig_policy_json(b, NULL, &text, err);
	brig_close(b);
	if (rc == 0)
		ret->policy = json_loads(text, 0, NULL);
	brig_free(text);
	return rc;
}

/* Joins the strings of a list setting with commas. */
static void join_setting(const json_t *policy, const char *key, struct buf *out)
{
	const json_t *setting, *item;
	size_t i, k;

	json_array_foreach(json_object_get(policy, "settings"), i, setting)
	{
		const char *name = json_string_value(json_object_get(setting, "key"));

		if (!name || !str_eq(name, key))
			continue;
		json_array_foreach(json_object_get(setting, "value"), k, item)
			buf_addf(out, "%s%s", out->len ? "," : "", json_string_value(item));
	}
}

/* Doors on the command line replace the policy's; refused keys are added to it. */
static int read_doors(const struct serve_values *v, struct doors_of *of, struct serve_options *o,
		      struct brig_error *err)
{
	for (size_t i = 0; i < v->refuse_keys.n; i++)
		buf_addf(&of->keys, "%s%s", of->keys.len ? "," : "", v->refuse_keys.item[i]);
	join_setting(of->policy, "refuse_keys", &of->keys);
	if (v->doors)
		buf_adds(&of->names, v->doors);
	else
		join_setting(of->policy, "doors", &of->names);
	if (of->keys.no_memory || of->names.no_memory)
		return err_nomem(err);
	for (char *at = of->keys.data, *key; (key = at ? strsep(&at, ",") : NULL);) {
		if (*key == '\0')
			continue;
		if (o->n_refused_keys == REFUSED_KEYS_MAX)
			return err_set(err, BRIG_E_USAGE, 0, "more than %d keys to refuse", REFUSED_KEYS_MAX);
		o->refused_keys[o->n_refused_keys++] = key;
	}
	return doors_parse(buf_str(&of->names), &o->doors, err);
}

static int serve_with(const struct command *self, const struct serve_values *v)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct serve_options o = { 0 };
	struct doors_of doors = { .names = BUF_INIT(64 * KiB), .keys = BUF_INIT(64 * KiB) };
	char usual[SOCKET_PATH_MAX];
	int status;

	read_socket(v, usual, &o);
	if (read_values(v, &o, &err) < 0)
		return ui_usage(self->name, &err);
	if (check_policy(&o, &doors, &err) < 0)
		return ui_fail(&err);
	status = read_doors(v, &doors, &o, &err) == 0 ? serve_until_stopped(self, &o)
						      : ui_fail_or_usage(self->name, &err);
	json_decref(doors.policy);
	buf_release(&doors.names);
	buf_release(&doors.keys);
	return status;
}

static int serve_main(const struct command *self, int argc, char **argv)
{
	struct serve_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = serve_with(self, &v);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_serve = {
	.name = "serve",
	.synopsis = "[OPTIONS]",
	.summary = "serve executions over HTTP, with a console",
	.examples =
		"  brig serve\n"
		"  brig serve --queue nats://10.0.0.1:4222 --nodes nodes.list   # executions run on workers\n"
		"  brig serve --listen 127.0.0.1:0 --no-auth   # for trying: any port, no token\n"
		"  brig serve --unix /run/brig/brig.sock\n"
		"  brig serve --doors piston,dify              # clients of other services, too\n"
		"  brig serve --listen 0.0.0.0:8377 --host brig.example.org --tls-cert cert.pem --tls-key key.pem\n",
	.details = "Prints 'ready http://ADDRESS:PORT' (https with TLS) when it answers.  The console is at that\n"
		   "address, the description of the API at /openapi.json.  Without a token in the state folder\n"
		   "it makes one and shows it once, on a terminal; 'brig token create' makes others.\n\n"
		   "SIGTERM and SIGINT: nothing new is taken, what runs ends; a second one ends it at once.\n"
		   "SIGHUP: tokens and policy are read anew.\n\n"
		   "Exit status: 0 when it was asked to stop, 2 wrong use, 125 if the policy is wrong, 121 if it\n"
		   "could not serve.\n",
	.options = serve_rows,
	.n_options = ARRAY_LEN(serve_rows),
	.run = serve_main,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/queue.h"

#include <string.h>
#include <sys/utsname.h>

#include "base/str.h"

#define URL_MAX      4000
#define PATIENCE_MIN 1000

bool queue_is_url(const char *text)
{
	return text && (strncmp(text, "nats://", 7) == 0 || strncmp(text, "tls://", 6) == 0);
}

/* The host's name, which lives as long as the process. */
static const char *host_name(void)
{
	static struct utsname host;

	return uname(&host) == 0 && host.nodename[0] ? host.nodename : "node";
}

int queue_read(const char *url, const struct queue_values *v, struct serve_options *o, struct brig_error *err)
{
	if (!queue_is_url(url) || strlen(url) > URL_MAX || strpbrk(url, " \t\n"))
		return err_set(err, BRIG_E_USAGE, 0,
			       "--queue '%.100s' is no address of brokers: give one such as nats://10.0.0.1:4222", url);
	if (!v->nodes)
		return err_set(
			err, BRIG_E_USAGE, 0,
			"--queue needs --nodes FILE, the list of nodes that are believed; 'brig worker --show-key' "
			"tells the key of this one");
	if (!v->cert != !v->key)
		return err_set(err, BRIG_E_USAGE, 0, "--queue-cert and --queue-key need each other");
	if (v->patience && (!str_to_millis(v->patience, 1000, &o->queue_patience_ms) ||
			    o->queue_patience_ms < PATIENCE_MIN || o->queue_patience_ms > 3600000))
		return err_set(err, BRIG_E_USAGE, 0, "--queue-patience '%.40s' is no time from 1s to 1h", v->patience);
	o->queue_url = url;
	o->nodes_file = v->nodes;
	o->node_name = v->node_name ? v->node_name : host_name();
	o->queue_ca = v->ca;
	o->queue_cert = v->cert;
	o->queue_key = v->key;
	o->queue_credentials = v->credentials;
	return strlen(o->node_name) <= 64 ? 0 : err_set(err, BRIG_E_USAGE, 0, "--node-name has more than 64 bytes");
}

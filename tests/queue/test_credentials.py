# SPDX-License-Identifier: Apache-2.0
"""What nodes show brokers, and brokers nodes: certificates both ways, NATS credentials, passwords."""
import os
import signal

import credentials
from cluster import Cluster, wait_until
from harness import case

FIRST = "10.88.0.1"	# the first broker of a cluster


def tls_lines(authority):
	cert, key = authority.certificate("broker", FIRST)
	return [f'tls {{ cert_file: "{cert}", key_file: "{key}", ca_file: "{authority.ca}", verify: true }}']


def refused(t, c, node, url, words, *said):
	"""The node, begun with these words, says so, and what to do about it; it goes on trying, since brokers may change."""
	node.end()
	before, c.url, c.node_words = node.said(), url, words
	node.begin(*node.extra)
	wait_until(f"{node.name} says {said} after {words}: {node.said()}", lambda: all(word in node.said()[len(before):] for word in said), 60)
	t.check("the brokers are there" not in node.said()[len(before):], f"nothing is asked of brokers with {words}")
	t.equal(node.proc.poll(), None, "it goes on trying")


@case("brokers that want certificates, and credentials signed by an operator: jobs run; whoever lacks one or has another's is told what to do")
def both_ways(t):
	ours, others = (credentials.Authority(t.dir, name) for name in ("ours", "others"))
	operator, stranger = credentials.Operator(), credentials.Operator()
	creds = operator.user(os.path.join(t.dir, "node.creds"))
	forged = operator.user(os.path.join(t.dir, "forged.creds"), stranger.account)
	cert, key = ours.certificate("node")
	other_cert, other_key = others.certificate("node")
	right = ["--queue-ca", ours.ca, "--queue-cert", cert, "--queue-key", key, "--queue-credentials", creds]
	url = f"tls://{FIRST}:4222"
	with Cluster(t, url=url, broker_lines=tls_lines(ours) + operator.broker_lines(), node_words=right) as c:
		t.equal(c.fronts[0].run("print(1)").json["stdout"], "1\n", "a program")
		w = c.workers[0]
		refused(t, c, w, url, ["--queue-ca", others.ca, *right[2:]], "certificate", "--queue-ca")
		refused(t, c, w, url, [*right[:2], *right[6:]], "require a client certificate", "--queue-cert")
		refused(t, c, w, url, [*right[:2], "--queue-cert", other_cert, "--queue-key", other_key, *right[6:]], "certificate", "--queue-cert")
		refused(t, c, w, url, right[:6], "who this is", "--queue-credentials")
		refused(t, c, w, url, [*right[:6], "--queue-credentials", forged], "who this is", "--queue-credentials")
		c.url, c.node_words, before = url, right, w.said().count("the brokers are there")
		w.end()
		w.begin(*w.extra)
		wait_until("it is taken back", lambda: w.said().count("the brokers are there") > before)
		t.equal(c.fronts[0].run("print(2)").json["stdout"], "2\n", "a program after all that")


@case("brokers that want a user and a password, behind TLS: a wrong password is told, and what to do; when brokers change, who was refused is taken and who was taken refused")
def password(t):
	ours = credentials.Authority(t.dir, "ours")
	lines = [line.replace(", verify: true", "") for line in tls_lines(ours)] + ["authorization { user: brig, password: secret }"]
	words = ["--queue-ca", ours.ca]
	with Cluster(t, url=f"tls://brig:secret@{FIRST}:4222", broker_lines=lines, node_words=words) as c:
		t.equal(c.fronts[0].run("print(1)").json["stdout"], "1\n", "a program")
		w = c.workers[0]
		refused(t, c, w, f"tls://brig:wrong@{FIRST}:4222", words, "who this is", "password")
		t.check("wrong@" not in w.said() and "secret@" not in w.said(), "no password is in the log")
		c.broker_lines[-1] = "authorization { user: brig, password: wrong }"
		c.brokers[0].configure()
		c.brokers[0].proc.send_signal(signal.SIGHUP)
		before = w.said().count("the brokers are there")
		wait_until("it is taken when the broker takes that password", lambda: w.said().count("the brokers are there") > before)
		wait_until("who had the other one is told", lambda: "who this is" in c.fronts[0].said())

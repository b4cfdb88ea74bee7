# SPDX-License-Identifier: Apache-2.0
"""
Attacks on PID 1 of the cell.  In a container it has the program's own user id and speaks over the program's own stderr,
so whatever the program can reach of it, or say in its name, would be the verdict.
"""
from judge import attack, denied, says


def own_words(code, text):
	"""The program's end and its stderr are what it did and wrote, whatever it pretended."""
	def judge(t, r, seen):
		t.equal((r.verdict, r.json["exit_code"]), ("error", code), "verdict and exit code", r)
		t.check(seen.begun, "the hostile part began", r)
		t.equal(r.stderr, text, "stderr", r)
	return says(judge, "`error`, with its own exit code and output")


attack("DK-02", "signals, stops, slows and limits PID 1", "c", r"""
int main(void)
{
	struct rlimit none = { 0, 0 };
	struct sched_param idle = { 0 };
	cpu_set_t first;
	CPU_ZERO(&first); CPU_SET(0, &first);
	int fatal[] = { SIGKILL, SIGSTOP, SIGTERM, SIGSEGV, SIGALRM, SIGCHLD };
	for (unsigned i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
		attempt("signal", kill(1, fatal[i]));
	attempt("cpu-limit", prlimit(1, RLIMIT_CPU, &none, NULL));
	attempt("file-limit", prlimit(1, RLIMIT_NOFILE, &none, NULL));
	attempt("stack-limit", syscall(SYS_prlimit64, (1UL << 32) | 1, RLIMIT_STACK, &none, NULL));
	attempt("affinity", sched_setaffinity(1, sizeof first, &first));
	attempt("idle", sched_setscheduler(1, SCHED_IDLE, &idle));
	attempt("memory", open("/proc/1/mem", O_RDWR));
	attempt("maps", open("/proc/1/maps", O_RDONLY));
	attempt("environ", open("/proc/1/environ", O_RDONLY));
	attempt("stdin", open("/proc/1/fd/0", O_RDONLY));
	attempt("oom", open("/proc/1/oom_score_adj", O_WRONLY));
	return done();
}""", denied(16))

attack("DK-03", "ends with words that only PID 1 may say", "python", """
begun()
import fcntl, struct
fcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_NONBLOCK)
def frame(kind, body=b''): return struct.pack('<II', kind, len(body)) + body
# The shape of a last word, under a key that is not the right one: exit code 0.
os.write(2, b'k' * 32 + frame(6, struct.pack('<IIIIQQQQQQ', 1, 0, 0, 0, 1, 1, 1, 1, 0, 0)) + frame(1))
os._exit(7)
""", own_words(7, b"k" * 32 + bytes([6, 0, 0, 0, 64, 0, 0, 0, 1, 0, 0, 0] + [0] * 12 + ([1] + [0] * 7) * 4 + [0] * 16
				    + [1, 0, 0, 0, 0, 0, 0, 0])))

attack("DK-04", "reads its own stderr to learn what PID 1 says there", "python", """
begun()
import select
heard = b''
try:
    fd = os.open('/proc/self/fd/2', os.O_RDONLY | os.O_NONBLOCK)
    while True:
        ready, _, _ = select.select([fd], [], [], 0.3)
        if not ready: break
        piece = os.read(fd, 65536)
        if not piece: break
        heard += piece
except OSError: pass
# Whatever was there may be said again; the end is still the program's own.
os.write(2, heard + b'x' if len(heard) < 4096 else b'much')
os._exit(9)
""", own_words(9, b"x"))

attack("DK-05", "leaves a crowd that holds stdout and stderr open", "c", r"""
int main(void)
{
	begun();
	for (int i = 0; i < 10; i++)
		if (fork() == 0) {
			setsid();
			signal(SIGTERM, SIG_IGN);
			for (;;)
				pause();
		}
	fputs("bye", stderr);
	return 5;
}""", own_words(5, b"bye"))

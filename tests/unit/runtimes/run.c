/* SPDX-License-Identifier: Apache-2.0 */
/* What ordinary C programs do, for test_seccomp_runtimes: prints "ok" at the end. */
#include <arpa/inet.h>
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *add(void *counter)
{
	for (int i = 0; i < 1000; i++)
		__atomic_fetch_add((int *)counter, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void threads(void)
{
	pthread_t id[4];
	int counter = 0;

	for (int i = 0; i < 4; i++)
		assert(pthread_create(&id[i], NULL, add, &counter) == 0);
	for (int i = 0; i < 4; i++)
		assert(pthread_join(id[i], NULL) == 0);
	assert(counter == 4000);
}

static void system_v(void)
{
	int shm = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600), sem = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
	int queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
	char *p = shmat(shm, NULL, 0);
	struct {
		long type;
		char text[8];
	} message = { 1, "hi" };

	assert(shm >= 0 && sem >= 0 && queue >= 0 && p != (void *)-1);
	assert(msgsnd(queue, &message, sizeof(message.text), 0) == 0);
	if (fork() == 0) {
		strcpy(p, "child");
		_exit(3);
	}
	assert(wait(NULL) > 0 && strcmp(p, "child") == 0);
	assert(shmctl(shm, IPC_RMID, NULL) == 0 && semctl(sem, 0, IPC_RMID) == 0 && msgctl(queue, IPC_RMID, NULL) == 0);
}

static void events(void)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	struct epoll_event event = { .events = EPOLLIN };
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), ep = epoll_create1(0), counter = eventfd(0, 0);

	assert(timer >= 0 && ep >= 0 && counter >= 0);
	assert(epoll_ctl(ep, EPOLL_CTL_ADD, timer, &event) == 0 && timerfd_settime(timer, 0, &soon, NULL) == 0);
	assert(epoll_wait(ep, &event, 1, 5000) == 1);
}

static void network(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);

	assert(bind(server, (struct sockaddr *)&at, len) == 0 && listen(server, 1) == 0);
	assert(getsockname(server, (struct sockaddr *)&at, &len) == 0);
	assert(connect(client, (struct sockaddr *)&at, len) == 0 && accept(server, NULL, NULL) >= 0);
}

int main(void)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert(code != MAP_FAILED && mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0);
	threads();
	system_v();
	events();
	network();
	assert(system("exit 3") >> 8 == 3);
	assert(getenv("HOME") || 1);
	puts("ok");
	return 0;
}

// SPDX-License-Identifier: Apache-2.0

// What ordinary Go programs do, for test_seccomp_runtimes: prints "ok" at the end.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const size = 300000

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func goroutines() {
	var group sync.WaitGroup
	sums := make(chan int, 100)
	for i := 0; i < 100; i++ {
		group.Add(1)
		go func(n int) {
			defer group.Done()
			time.Sleep(time.Millisecond)
			sums <- n
		}(i)
	}
	group.Wait()
	close(sums)
	total := 0
	for n := range sums {
		total += n
	}
	if total != 4950 {
		panic(total)
	}
}

// io.Copy tries copy_file_range between files, sendfile from a file to a socket, splice between sockets.
func copies() {
	must(os.WriteFile("a", bytes.Repeat([]byte("x"), size), 0o600))
	a, err := os.Open("a")
	must(err)
	b, err := os.Create("b")
	must(err)
	n, err := io.Copy(b, a)
	must(err)
	if n != size {
		panic(n)
	}
	must(b.Close())
	must(a.Close())
}

func listen(serve func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go func() {
		c, err := l.Accept()
		must(err)
		serve(c)
		must(c.Close())
		must(l.Close())
	}()
	return l.Addr().String()
}

func network() {
	origin := listen(func(c net.Conn) {
		f, err := os.Open("a")
		must(err)
		_, err = io.Copy(c, f)
		must(err)
		must(f.Close())
	})
	proxy := listen(func(c net.Conn) {
		up, err := net.Dial("tcp", origin)
		must(err)
		_, err = io.Copy(c, up)
		must(err)
		must(up.Close())
	})
	c, err := net.Dial("tcp", proxy)
	must(err)
	data, err := io.ReadAll(c)
	must(err)
	if len(data) != size {
		panic(len(data))
	}
	must(c.Close())
	_, err = net.Interfaces()
	must(err)
}

func children() {
	out, err := exec.Command("echo", "hi").Output()
	must(err)
	if string(out) != "hi\n" {
		panic(string(out))
	}
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR1)
	must(syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	<-got
}

func main() {
	goroutines()
	copies()
	network()
	children()
	fmt.Println("ok")
}

// program.go: Go has goroutines on small stacks and handlers of its own for every signal.
package main

// #include <math.h>
// #cgo LDFLAGS: -lm
import "C"

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func deep(depth int) int {
	if depth == 0 {
		return int(C.sqrt(4))
	}
	return deep(depth-1) + 1
}

func main() {
	notified := make(chan os.Signal, 64)
	signal.Notify(notified)
	for number := 35; number <= 64; number++ {
		syscall.Kill(os.Getpid(), syscall.Signal(number))
		time.Sleep(time.Millisecond)
	}
	var group sync.WaitGroup
	sums := make([]int, 200)
	for i := range sums {
		group.Add(1)
		go func() {
			defer group.Done()
			for round := 0; round < 200; round++ {
				sums[i] += deep(200 + i)
			}
		}()
	}
	group.Wait()
	seen := map[string]bool{}
	for len(notified) > 0 {
		got := <-notified
		if got != syscall.SIGURG {
			seen[got.String()] = true
		}
	}
	fmt.Println(sums, len(seen))
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

func main() {
	var wg sync.WaitGroup
	results := make(chan int, 100)
	for i := 0; i < 100; i++ {
		wg.Add(1)
		go func(n int) {
			defer wg.Done()
			s := 0
			for k := 0; k < 200000; k++ {
				s += k % (n + 1)
			}
			results <- s
		}(i)
	}
	wg.Wait()
	close(results)
	sum := 0
	for r := range results {
		sum += r
	}
	fmt.Println("sum", sum)
	func() {
		defer func() { fmt.Println("recovered", recover()) }()
		var p *int
		fmt.Println(*p)
	}()
	out, err := exec.Command("sh", "-c", "echo child; exit 5").Output()
	fmt.Print(string(out), err, "\n")
	select {
	case <-time.After(20 * time.Millisecond):
		fmt.Println("timer")
	}
	garbage := make([][]byte, 64)
	for i := 0; i < 5000; i++ {
		garbage[i%64] = make([]byte, 20000)
	}
	fmt.Println(len(garbage[3]), len(os.Args))
}

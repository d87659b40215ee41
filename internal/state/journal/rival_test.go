package journal

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// rival opens the session as soon as it is told to, writes, and leaves when it is told
// to. It prints what it was refused, and what was acknowledged.
func rival(dir string) error {
	s, err := NewLocal(LocalOptions{Dir: dir})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	orders := bufio.NewReader(os.Stdin)
	if _, err := orders.ReadString('\n'); err != nil {
		return err
	}
	var l Lease
	for l == nil {
		begun := time.Now()
		l, err = s.Acquire(background, "s", Owner{})
		if owned, ok := errors.AsType[*OwnedError](err); ok {
			fmt.Println("refused", owned.PID, time.Since(begun).Microseconds())
			<-time.After(time.Millisecond)
		} else if err != nil {
			return err
		}
	}
	fmt.Println("open", l.Epoch(), l.Head())
	me := fmt.Sprintf("pid %d", os.Getpid())
	for range 1 + rand.IntN(60) {
		events, err := l.Append(background, Batch{Events: texts(1+rand.IntN(3), me), Sync: Durability(rand.IntN(2))})
		if err != nil {
			return err
		}
		for _, e := range events {
			fmt.Println("ack", e.Seq, e.ID)
		}
	}
	if _, err := orders.ReadString('\n'); err != nil {
		return err
	}
	if err := l.Release(background, Parked, l.Session()); err != nil {
		return err
	}
	fmt.Println("left")
	return s.Close()
}

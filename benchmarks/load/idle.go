package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// holdIdle opens connections as clients do, each after ApiVersions and Metadata, says so on stdout, and keeps them
// until stdin ends or the time is over.
func holdIdle(address, topic string, count int, limit time.Duration) error {
	for range count {
		c, err := dial(address)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := checkVersions(c); err != nil {
			return err
		}
		if _, err := describe(c, topic); err != nil {
			return err
		}
		c.payload = nil
	}
	fmt.Printf("{\"connections\": %d}\n", count)
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(limit):
	}
	return nil
}

// Load for a Kafka-compatible broker: finished frames on raw sockets, so that the broker is the limit and not its client.
//
//	load create  -server HOST:PORT -topic T -partitions P -replicas N -configs NAME=VALUE,...
//	load produce -server HOST:PORT -topic T -records N -batch-records R -value-bytes B -acks A -connections C -window W
//	load consume -server HOST:PORT -topic T -records N -connections C
//	load e2e     -server HOST:PORT -topic T -rate R -seconds S
//	load leaders -server HOST:PORT -topic T
//	load idle    -server HOST:PORT -topic T -connections C
//	load null    -listen HOST:PORT
//
// Results are one JSON object on stdout; an error code in any answer is a failure with exit code 1.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

type options struct {
	server, topic, listen, configs                           string
	replicas                                                 int
	partitions, connections, window, batchRecords, valueSize int
	acks, rate                                               int
	records                                                  int64
	seconds                                                  float64
	verify                                                   bool
}

func parse(arguments []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("load", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "127.0.0.1:9092", "the broker to start from")
	f.StringVar(&o.topic, "topic", "load", "the topic")
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "null: where to listen")
	f.IntVar(&o.partitions, "partitions", 1, "create: how many partitions")
	f.IntVar(&o.replicas, "replicas", 1, "create: how many copies of each")
	f.StringVar(&o.configs, "configs", "", "create: name=value,name=value")
	f.IntVar(&o.connections, "connections", 1, "how many connections")
	f.IntVar(&o.window, "window", 5, "produce: requests under way on a connection")
	f.IntVar(&o.batchRecords, "batch-records", 1, "produce: records in a batch")
	f.IntVar(&o.valueSize, "value-bytes", 100, "produce, e2e: bytes in a value")
	f.IntVar(&o.acks, "acks", 1, "produce, e2e: 0, 1 or -1 for all")
	f.IntVar(&o.rate, "rate", 1000, "e2e: records a second")
	f.Int64Var(&o.records, "records", 1_000_000, "produce, consume: stop after so many records")
	f.Float64Var(&o.seconds, "seconds", 60, "stop after so many seconds")
	f.BoolVar(&o.verify, "verify", false, "consume: check checksums and offsets")
	if err := f.Parse(arguments); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected %q", f.Arg(0))
	}
	for name, value := range map[string]int{
		"connections": o.connections, "window": o.window, "batch-records": o.batchRecords, "rate": o.rate,
		"partitions": o.partitions, "value-bytes": o.valueSize,
	} {
		if value < 1 {
			return nil, fmt.Errorf("-%s must be at least 1", name)
		}
	}
	return o, nil
}

var modes = map[string]func(*options) (any, error){
	"create": func(o *options) (any, error) {
		c, err := dial(o.server)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if err := createTopic(c, o.topic, o.partitions, o.replicas, o.configs, time.Minute); err != nil {
			return nil, err
		}
		t, err := led(c, o.topic, time.Minute)
		if err != nil {
			return nil, err
		}
		return map[string]any{"topic": t.name, "partitions": len(t.leaders)}, nil
	},
	"leaders": func(o *options) (any, error) {
		t, err := open(o.server, o.topic)
		if err != nil {
			return nil, err
		}
		return map[string]any{"topic": t.name, "partitions": len(t.leaders)}, nil
	},
	"produce": func(o *options) (any, error) {
		t, err := open(o.server, o.topic)
		if err != nil {
			return nil, err
		}
		return produceLoad{
			connections: o.connections, window: o.window, batchRecords: o.batchRecords, valueBytes: o.valueSize,
			acks: int16(o.acks), records: o.records, seconds: o.seconds,
		}.run(t)
	},
	"consume": func(o *options) (any, error) {
		t, err := open(o.server, o.topic)
		if err != nil {
			return nil, err
		}
		return consumeLoad{connections: o.connections, records: o.records, seconds: o.seconds, verify: o.verify}.run(t)
	},
	"e2e": func(o *options) (any, error) {
		t, err := open(o.server, o.topic)
		if err != nil {
			return nil, err
		}
		return latencyLoad{perSecond: o.rate, seconds: o.seconds, valueBytes: o.valueSize, acks: int16(o.acks)}.run(t)
	},
	"idle": func(o *options) (any, error) {
		return nil, holdIdle(o.server, o.topic, o.connections, time.Duration(o.seconds*float64(time.Second)))
	},
	"null": func(o *options) (any, error) { return nil, serveNull(o.listen) },
}

func main() {
	// What is allocated is allocated before measuring; a collection then would only disturb latencies.
	debug.SetGCPercent(1000)
	if len(os.Args) < 2 || modes[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: load create|produce|consume|e2e|leaders|idle|null [flags]")
		os.Exit(2)
	}
	o, err := parse(os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(2)
	}
	result, err := modes[os.Args[1]](o)
	if err == nil && result != nil {
		err = report(result)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "load %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// report prints the result together with this process's own processor time, which tells whether the client was the limit.
func report(result any) error {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	spent := time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"result": result, "client_cpu_s": spent})
}

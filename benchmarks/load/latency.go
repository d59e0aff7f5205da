package main

import (
	"encoding/binary"
	"fmt"
	"sort"
	"time"
)

// latencyLoad sends one record a request on a fixed schedule, never waiting for answers, and reads them by long polls on
// another connection. A record carries its number and the moment of its sending; both ends are this process, so one
// clock measures.
type latencyLoad struct {
	perSecond  int
	seconds    float64
	valueBytes int
	acks       int16
}

const (
	drainTimeout       = 10 * time.Second
	latencyHeaderBytes = 16 // number and time, at the start of the value
)

type latencies struct {
	Sent     int     `json:"sent"`
	Received int     `json:"received"`
	Seconds  float64 `json:"seconds"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	P999     float64 `json:"p999_ms"`
	Max      float64 `json:"max_ms"`
	LateP99  float64 `json:"sender_late_p99_ms"` // how far the sender itself was behind its schedule
}

func (l latencyLoad) run(of *topic) (*latencies, error) {
	if l.valueBytes < latencyHeaderBytes {
		return nil, fmt.Errorf("a value needs %d bytes", latencyHeaderBytes)
	}
	if l.acks == 0 {
		return nil, fmt.Errorf("acks=0 tells no offset to read from: use 1 or -1")
	}
	sender, err := newLane(produceLoad{window: 1, batchRecords: 1, valueBytes: l.valueBytes, acks: l.acks}, of, 0)
	if err != nil {
		return nil, err
	}
	defer sender.conn.Close()
	first, err := firstOffset(sender)
	if err != nil {
		return nil, err
	}
	session, err := newFetchSession(of.leaders[0], of, []*position{{partition: 0, offset: first}})
	if err != nil {
		return nil, err
	}
	defer session.conn.Close()
	clock := time.Now()
	total := int(float64(l.perSecond) * l.seconds)
	sent := make(chan sendings, 1)
	acked := make(chan error, 1)
	go func() { acked <- drainAnswers(sender, total) }()
	go func() { sent <- l.send(sender, clock, total) }()
	times, err := l.receive(session, clock, total)
	if err != nil {
		return nil, err
	}
	out := <-sent
	if out.err != nil {
		return nil, out.err
	}
	if err := <-acked; err != nil {
		return nil, err
	}
	return summarize(times, out.late, time.Since(clock)), nil
}

// firstOffset sends one record that is not counted; reading starts after it.
func firstOffset(l *lane) (int64, error) {
	if err := l.send(); err != nil {
		return 0, err
	}
	body, err := l.conn.receive()
	if err != nil {
		return 0, err
	}
	offset, err := readProduced(body, 0)
	return offset + 1, err
}

type sendings struct {
	late []time.Duration
	err  error
}

func (l latencyLoad) send(to *lane, clock time.Time, total int) (out sendings) {
	out.late = make([]time.Duration, 0, total)
	value := to.slots[0].batch[valueOffset(l.valueBytes):]
	pace := time.Second / time.Duration(l.perSecond)
	for i := range total {
		due := time.Duration(i) * pace
		if wait := due - time.Since(clock); wait > 0 {
			time.Sleep(wait)
		}
		now := time.Since(clock)
		out.late = append(out.late, now-due)
		binary.BigEndian.PutUint64(value, uint64(i))
		binary.BigEndian.PutUint64(value[8:], uint64(now))
		if out.err = to.send(); out.err != nil {
			return out
		}
	}
	return out
}

func drainAnswers(l *lane, total int) error {
	for i := range total {
		body, err := l.conn.receive()
		if err != nil {
			return err
		}
		if _, err := readProduced(body, int32(i+1)); err != nil {
			return err
		}
	}
	return nil
}

// receive wants every record once and in order.
func (l latencyLoad) receive(from *fetchSession, clock time.Time, total int) ([]time.Duration, error) {
	times := make([]time.Duration, 0, total)
	at := valueOffset(l.valueBytes)
	deadline := clock.Add(time.Duration(l.seconds*float64(time.Second)) + drainTimeout)
	visit := func(p *position, records []byte, _ int64) error {
		now := time.Since(clock)
		return eachBatch(records, func(batch []byte) error {
			if recordCount(batch) != 1 || len(batch) < at+latencyHeaderBytes {
				return fmt.Errorf("a foreign batch at offset %d", baseOffset(batch))
			}
			if number := int(binary.BigEndian.Uint64(batch[at:])); number != len(times) {
				return fmt.Errorf("record %d where %d was due", number, len(times))
			}
			times = append(times, now-time.Duration(binary.BigEndian.Uint64(batch[at+8:])))
			p.moveTo(nextOffset(batch))
			return nil
		})
	}
	for len(times) < total {
		if err := from.poll(visit); err != nil {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d of %d records arrived within %v of the last", len(times), total, drainTimeout)
		}
	}
	return times, nil
}

func summarize(times, late []time.Duration, elapsed time.Duration) *latencies {
	out := &latencies{Sent: len(late), Received: len(times), Seconds: elapsed.Seconds()}
	out.P50, out.P99, out.P999 = quantile(times, 0.5), quantile(times, 0.99), quantile(times, 0.999)
	out.Max, out.LateP99 = quantile(times, 1), quantile(late, 0.99)
	return out
}

// quantile sorts in place; the answer is in milliseconds.
func quantile(times []time.Duration, q float64) float64 {
	if len(times) == 0 {
		return 0
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	at := min(int(q*float64(len(times))), len(times)-1)
	return float64(times[at]) / float64(time.Millisecond)
}

package main

import (
	"fmt"
	"sync"
	"time"
)

// consumeLoad is a number of consumers that share a topic's partitions and read them from the start, again and again
// until the records or the time are over. Each has one Fetch under way, as clients have.
type consumeLoad struct {
	connections int
	records     int64
	seconds     float64
	verify      bool // check every batch's checksum and that offsets follow each other
}

type consumed struct {
	Records     int64   `json:"records"`
	Requests    int64   `json:"requests"`
	Bytes       int64   `json:"batch_bytes"`
	Seconds     float64 `json:"seconds"`
	PerSecond   float64 `json:"records_per_s"`
	MBPerSecond float64 `json:"mb_per_s"`
}

// share is one consumer's part of the work, and what it has read.
type share struct {
	consumeLoad
	session  *fetchSession
	records  int64
	requests int64
	bytes    int64
}

func (c consumeLoad) run(of *topic) (*consumed, error) {
	shares, err := c.split(of)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	budget := &budget{deadline: started.Add(time.Duration(c.seconds * float64(time.Second)))}
	budget.left.Store(c.records)
	errs := make([]error, len(shares))
	var done sync.WaitGroup
	for i, s := range shares {
		done.Add(1)
		go func() {
			defer done.Done()
			defer s.session.conn.Close()
			errs[i] = s.run(budget)
		}()
	}
	done.Wait()
	out := &consumed{Seconds: time.Since(started).Seconds()}
	for i, s := range shares {
		if errs[i] != nil {
			return nil, errs[i]
		}
		out.Records += s.records
		out.Requests += s.requests
		out.Bytes += s.bytes
	}
	out.PerSecond = float64(out.Records) / out.Seconds
	out.MBPerSecond = float64(out.Bytes) / out.Seconds / 1e6
	return out, nil
}

// split deals the partitions out, to at most so many consumers a leader; a consumer reads from one leader only.
func (c consumeLoad) split(of *topic) (shares []*share, err error) {
	for i, leader := range of.leaders {
		if contains(of.leaders[:i], leader) {
			continue
		}
		own := ledBy(of, leader)
		hands := make([][]*position, min(c.connections, len(own)))
		for j, partition := range own {
			hands[j%len(hands)] = append(hands[j%len(hands)], &position{partition: partition})
		}
		for _, hand := range hands {
			session, err := newFetchSession(leader, of, hand)
			if err != nil {
				return nil, err
			}
			shares = append(shares, &share{consumeLoad: c, session: session})
		}
	}
	return shares, nil
}

func (s *share) run(b *budget) error {
	for {
		before := s.records
		if err := s.session.poll(s.visit); err != nil {
			return err
		}
		s.requests++
		got := s.records - before
		if got == 0 && s.records == 0 && s.requests > 3 {
			return fmt.Errorf("nothing to consume in %s", s.session.topic.name)
		}
		if !b.take(int(got)) {
			return nil
		}
	}
}

func (s *share) visit(p *position, records []byte, highWatermark int64) error {
	next := p.offset
	err := eachBatch(records, func(batch []byte) error {
		if s.verify {
			if baseOffset(batch) != next {
				return fmt.Errorf("partition %d: offset %d where %d was due", p.partition, baseOffset(batch), next)
			}
			if err := checkCRC(batch); err != nil {
				return err
			}
		}
		next = nextOffset(batch)
		s.records += int64(recordCount(batch))
		s.bytes += int64(len(batch))
		return nil
	})
	if next >= highWatermark && highWatermark > 0 {
		next = 0 // once more from the start
	}
	if next != p.offset {
		p.moveTo(next)
	}
	return err
}
